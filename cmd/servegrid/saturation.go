package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/search"
)

// edges are what a saturation search found, with the configurations by the values of their axes.
type edges struct {
	found []search.Edge
	// unfinished counts the configurations whose edge the search did not find before it ended.
	unfinished int
	// byAxes is the number of the edge of a configuration.
	byAxes map[string]int
	axis   gridspec.Dimension
	at     int // the place of the axis among the dimensions
}

// findEdges finds the edges of a search that looks for them, once it is over, and writes the results once more, with them.
func (j *sweepJob) findEdges() error {
	out := &j.search.outcome
	if j.search.saturation == nil || len(out.Rows) == 0 || !out.ResultsWritten {
		return nil
	}
	var err error
	if j.search.edges, err = j.search.edgesFound(); err != nil {
		return err
	}
	j.laidOut = nil
	return j.writeResults(filepath.Join(j.dir, sweep.ResultsFile), out.Rows)
}

func (s *searchJob) edgesFound() (*edges, error) {
	e := &edges{byAxes: map[string]int{}}
	for _, edge := range s.saturation.Edges() {
		if edge.Found {
			e.found = append(e.found, edge)
		} else {
			e.unfinished++
		}
	}
	e.at = slices.IndexFunc(s.space.Dimensions, func(d gridspec.Dimension) bool { return indexOfAxis(d, s.spec.Axis) >= 0 })
	e.axis = s.space.Dimensions[e.at]
	for i, edge := range e.found {
		points, err := s.space.Points(edge.Place)
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			if edge.Holds {
				e.byAxes[axesKey(p.Axes)] = i
			}
		}
	}
	return e, nil
}

// expectedTrials is about how many trials a saturation search takes: bisection of each curve, and the checks.
func (s *searchJob) expectedTrials() float64 {
	for _, d := range s.space.Dimensions {
		if indexOfAxis(d, s.spec.Axis) >= 0 {
			return float64(s.space.Count()) / float64(d.Size) * min(float64(d.Size), math.Ceil(math.Log2(float64(d.Size+1)))+2*float64(s.spec.Checks))
		}
	}
	return 0
}

// axesKey tells points apart by the values of their axes.
func axesKey(axes []gridspec.AxisValue) string {
	var b strings.Builder
	for _, a := range axes {
		if a.Column != gridspec.SearchRound {
			fmt.Fprintf(&b, "%q ", fmt.Sprint(a.Value))
		}
	}
	return b.String()
}

// markEdges adds the column of the edges to the table of a saturation search that is over.
func (j *sweepJob) markEdges(t *results.Table, rows []results.Row) {
	if j.search == nil || j.search.edges == nil {
		return
	}
	marks := make([]bool, len(rows))
	for i := range rows {
		_, marks[i] = j.search.edges.byAxes[axesKey(rows[i].Point.Axes)]
	}
	t.Add(results.MarkColumn(results.EdgeColumn, marks))
}

// printEdges prints the configurations at their edges, and what is to know about the others.
func (j *sweepJob) printEdges(w io.Writer, t *results.Table) error {
	e := j.search.edges
	if e == nil {
		return nil
	}
	f := frontierTable{table: t, analysis: t.Analysis(), candidates: t.Candidates()}
	marks, err := f.candidates.Table.Lookup(results.EdgeColumn)
	if err != nil {
		return err
	}
	var rows []int
	for row, on := range marks.Bools {
		if on {
			rows = append(rows, row)
		}
	}
	number := func(row int) int { return e.byAxes[axesKey(j.laidOut[f.candidates.Rows[row][0]].Point.Axes)] }
	slices.SortStableFunc(rows, func(a, b int) int { return number(a) - number(b) })
	if len(rows) > 0 {
		which := map[bool]string{true: "Smallest", false: "Largest"}[j.search.spec.Smallest]
		if err := printText(w, "%s %s that keeps the SLA%s, for each configuration:\n%s\n", which, cellText(e.axis.Name), constraintsText(f.analysis.Constraints), f.render([][]int{rows})); err != nil {
			return err
		}
	}
	for _, note := range e.notes() {
		if err := printText(w, "%s\n", note); err != nil {
			return err
		}
	}
	return nil
}

// notes say which configurations have no edge, and which more than one.
func (e *edges) notes() []string {
	never, always, unclear, failed := 0, 0, []string{}, 0
	for _, edge := range e.found {
		switch {
		case !edge.Holds:
			never++
		case edge.Next < 0:
			always++
		}
		if len(edge.Regained)+len(edge.Dips) > 0 {
			unclear = append(unclear, e.unclear(edge))
		}
		failed += edge.Failed
	}
	axis := cellText(e.axis.Name)
	var out []string
	add := func(n int, format string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, plural(n, "configuration"), axis))
		}
	}
	add(never, "%s: no value of %s keeps the SLA.")
	add(always, "%s: all values of %s keep the SLA, so the edge is further away.")
	if e.unfinished > 0 {
		out = append(out, fmt.Sprintf("%s: the search ended before the edge was found; run it again, with a larger search.points if it has one.", plural(e.unfinished, "configuration")))
	}
	if failed > 0 {
		out = append(out, fmt.Sprintf("%s failed and counted as not keeping the SLA; their rows say why.", plural(failed, "point")))
	}
	if n := len(unclear); n > 0 {
		out = append(out, fmt.Sprintf("%s: the edge is not the only one; %s.", plural(n, "configuration"), unclear[0]))
	}
	return out
}

// unclear describes an edge that is not the only one.
func (e *edges) unclear(edge search.Edge) string {
	value := func(place int) string {
		if e.axis.Values == nil {
			return fmt.Sprint("value ", place+1)
		}
		return figure(e.axis.Values[place])
	}
	text := fmt.Sprintf("the first keeps it at %s and not at %s", value(edge.Place[e.at]), value(edge.Next))
	if len(edge.Regained) > 0 {
		text += ", but again at " + value(edge.Regained[0])
	}
	if len(edge.Dips) > 0 {
		text += ", nor at " + value(edge.Dips[0])
	}
	return text
}
