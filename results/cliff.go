package results

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// CliffSearch asks where along an axis an SLA is lost.
type CliffSearch struct {
	// Axis is a numeric column, such as startup_time.
	Axis string
	// Constraints are the SLA; those on columns that were not measured, such as axes, choose the points instead.
	Constraints []Constraint
	// By names the columns whose every combination of values has a curve of its own. Nil means all other axes and the
	// workload.
	By []string
}

// Cliff is where one curve along an axis loses the SLA.
type Cliff struct {
	// Of are the values of the columns that tell the curve from others.
	Of []CliffColumn `json:"of"`
	// Falling says that the SLA is lost towards low values, as with the number of workers; otherwise towards high ones.
	Falling bool `json:"falling"`
	// Edge is where the SLA is lost for good: no value beyond keeps it. It is nil where the last value keeps it.
	Edge *CliffBracket `json:"edge"`
	// FirstLost is where the SLA is lost for the first time; it is Edge unless a value beyond keeps the SLA again.
	FirstLost *CliffBracket `json:"first_lost"`
	// Regained are the values beyond FirstLost that keep the SLA all the same: the curve is not monotone.
	Regained []float64 `json:"regained"`
	// Replicates is the number of replicates that have the whole curve; Agreeing are those whose own edge is Edge.
	Replicates int `json:"replicates"`
	Agreeing   int `json:"agreeing"`
	// Confidence is their share; nil without replicates.
	Confidence *float64 `json:"confidence"`
	// Edges are the values from which single replicates lose the SLA for good, from the least to the greatest; a replicate
	// that never does has none.
	Edges []float64 `json:"edges"`
	// Bounded are the columns that the SLA bounds.
	Bounded []string `json:"bounded"`
	// Points are the values in order, from where the SLA is kept to where it is lost.
	Points []CliffPoint `json:"points"`
}

// CliffColumn is a value of a column, as text.
type CliffColumn struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CliffBracket is two neighbouring values with the edge between them.
type CliffBracket struct {
	// Kept is the last value before the edge; nil where the first value of all is lost.
	Kept *float64 `json:"kept"`
	// Lost is the first value beyond.
	Lost float64 `json:"lost"`
}

// CliffPoint is one value of the axis.
type CliffPoint struct {
	Value float64 `json:"value"`
	// Kept says that the SLA is kept, by the mean of the replicates' figures.
	Kept bool `json:"kept"`
	// Runs is the number of runs, Keeping of those that keep the SLA by themselves.
	Runs    int `json:"runs"`
	Keeping int `json:"keeping"`
	// Figures are those of the bounded columns; the worst where several configurations share the
	// value, and 0 where the column holds text.
	Figures []float64 `json:"figures"`
	// Stopped says that a simulation ended as soon as the SLA was lost, so that it has no figures; they are 0 if no other
	// has any.
	Stopped bool `json:"stopped"`
}

// Cliffs finds where an axis loses the SLA, curve by curve, in order of first appearance. Points that failed, or lack a
// figure, are left out; those that were stopped because they had lost it count as lost, and those that had lost only a
// stricter SLA are left out too (see [Candidates.Cautions]). A value keeps the SLA when the means over its replicates do;
// each replicate has an edge of its own as well, which says how sure the edge is.
func (t *Table) Cliffs(search CliffSearch) ([]Cliff, error) {
	t.takeForMetrics(Analysis{Constraints: slices.DeleteFunc(slices.Clone(search.Constraints), func(c Constraint) bool {
		return c.Operator == "==" || c.Operator == "!=" // which say what a point is, rather than bound a figure
	})})
	candidates := t.Candidates()
	if err := candidates.Check(Analysis{Constraints: search.Constraints, By: search.By}); err != nil {
		return nil, err
	}
	f := &cliffFinder{table: t, candidates: candidates}
	if err := f.prepare(search); err != nil {
		return nil, err
	}
	var out []Cliff
	varied := false
	for _, rows := range groupRows(candidates.Table.Rows(), f.by) {
		rows = slices.DeleteFunc(rows, func(row int) bool { return !f.usable[row] })
		if len(rows) == 0 {
			continue
		}
		c := f.curve(rows)
		varied = varied || len(c.Points) > 1
		out = append(out, c)
	}
	switch {
	case len(out) == 0:
		err := fmt.Errorf("axis %s: no point has a value and all figures of the constraints", search.Axis)
		if stops := candidates.stops(search.Constraints); stops != "" {
			err = fmt.Errorf("%w\n%s", err, stops)
		}
		return nil, err
	case !varied:
		return nil, fmt.Errorf("axis %s never varies while %s stay as they are; name the columns that tell curves apart, or none", search.Axis, joinNames(f.names()))
	}
	return out, nil
}

// cliffFinder holds what all curves need.
type cliffFinder struct {
	CliffSearch
	table      *Table
	candidates *Candidates
	by         []*Column
	// at are the values of the axis, bounded the figures of each constraint; both by candidate.
	at      []float64
	bounded [][]float64
	// keeps says by candidate, and keepsRow by row of the table, whether the SLA is kept; usable which candidates count.
	keeps, keepsRow, usable []bool
	// stopped says which candidates have lost the SLA without figures to show.
	stopped []bool
}

func (f *cliffFinder) names() []string {
	names := make([]string, len(f.by))
	for i, c := range f.by {
		names[i] = c.Name
	}
	return names
}

// prepare reads the columns. Constraints on what was measured are the SLA, the others choose points.
func (f *cliffFinder) prepare(search CliffSearch) error {
	shown := f.candidates.Table
	axis, err := shown.Lookup(search.Axis)
	if err == nil {
		f.at, err = axis.Float64s()
	}
	if err != nil {
		return fmt.Errorf("axis %s: %w", search.Axis, err)
	}
	f.CliffSearch = CliffSearch{Axis: search.Axis, By: search.By}
	var choice []Constraint
	for _, c := range search.Constraints {
		if column := shown.Column(c.Column); column == nil || column.Role == RoleMetric {
			f.Constraints = append(f.Constraints, c)
		} else {
			choice = append(choice, c)
		}
	}
	if len(f.Constraints) == 0 {
		return errors.New("a cliff needs to know what is lost: give constraints on figures, such as p90_ttft_ms <= 5000")
	}
	var problems [4]error
	f.by, problems[0] = f.columns(shown)
	f.keeps, problems[1] = Feasible(shown, f.Constraints)
	f.keepsRow, problems[2] = Feasible(f.table, f.Constraints)
	chosen, err := Feasible(shown, choice)
	if problems[3] = err; problems[1] != nil {
		problems[2] = nil // the same once more
	}
	if err := errors.Join(problems[:]...); err != nil {
		return err
	}
	f.usable, f.stopped = make([]bool, shown.Rows()), make([]bool, shown.Rows())
	for _, row := range f.candidates.withStatus(StatusStopped) {
		lost := shown.loses(row, f.Constraints)
		f.stopped[row], f.usable[row] = lost, lost && chosen[row] && !axis.Null[row]
	}
	for _, row := range f.candidates.okRows() {
		f.usable[row] = chosen[row] && !axis.Null[row]
	}
	if err := f.readFigures(shown); err != nil || f.By != nil {
		return err
	}
	f.by = slices.DeleteFunc(f.by, f.tellsNothing)
	return nil
}

// tellsNothing reports whether a column is the same for all points that count.
func (f *cliffFinder) tellsNothing(c *Column) bool {
	first := slices.Index(f.usable, true)
	for row, usable := range f.usable {
		if usable && c.Text(row) != c.Text(first) {
			return false
		}
	}
	return true
}

// readFigures reads the bounded columns; points without a figure do not count.
func (f *cliffFinder) readFigures(shown *Table) error {
	for _, c := range f.Constraints {
		column := shown.Column(c.Column)
		values := make([]float64, shown.Rows())
		if column.Kind != gridspec.KindString {
			var err error
			if values, err = column.Float64s(); err != nil {
				return err
			}
		}
		f.bounded = append(f.bounded, values)
		for row := range f.usable {
			f.usable[row] = f.usable[row] && (!column.Null[row] || f.stopped[row])
		}
	}
	return nil
}

// columns are those that tell curves apart.
func (f *cliffFinder) columns(shown *Table) ([]*Column, error) {
	var out []*Column
	if f.By != nil {
		var problems []error
		for _, name := range f.By {
			c, err := shown.Lookup(name)
			if err != nil {
				problems = append(problems, fmt.Errorf("curves by %s: %w", name, err))
			}
			out = append(out, c)
		}
		return out, errors.Join(problems...)
	}
	for _, c := range shown.Columns {
		tells := c.Role == RoleAxis || c.Name == "workload"
		if tells && c.Name != f.Axis {
			out = append(out, c)
		}
	}
	return out, nil
}

// curve lays the candidates of one curve out along the axis.
func (f *cliffFinder) curve(rows []int) Cliff {
	c := Cliff{Of: []CliffColumn{}, Regained: []float64{}, Edges: []float64{}}
	for _, column := range f.by {
		c.Of = append(c.Of, CliffColumn{Name: column.Name, Value: column.Text(rows[0])})
	}
	for _, b := range f.Constraints {
		c.Bounded = append(c.Bounded, b.Column)
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(f.at[a], f.at[b]) })
	runs := f.runs(rows)
	for _, row := range rows {
		p := CliffPoint{Value: f.at[row], Kept: f.keeps[row], Figures: f.figures(row), Stopped: f.stopped[row]}
		for _, r := range f.candidates.Counted[row] {
			p.Runs++
			if f.keepsRow[r] {
				p.Keeping++
			}
		}
		if n := len(c.Points); n > 0 && c.Points[n-1].Value == p.Value {
			p = f.merged(c.Points[n-1], p)
			c.Points = c.Points[:n-1]
		}
		c.Points = append(c.Points, p)
	}
	kept := make([]bool, len(c.Points))
	for i, p := range c.Points {
		kept[i] = p.Kept
	}
	if c.Falling = falls(kept); c.Falling {
		slices.Reverse(c.Points)
		slices.Reverse(kept)
	}
	edge, first := edges(kept)
	c.Edge, c.FirstLost = c.bracket(edge), c.bracket(first)
	for i := first; i < len(kept); i++ {
		if kept[i] {
			c.Regained = append(c.Regained, c.Points[i].Value)
		}
	}
	c.judge(runs, edge)
	return c
}

func (f *cliffFinder) figures(row int) []float64 {
	out := make([]float64, len(f.bounded))
	for i, values := range f.bounded {
		if !f.stopped[row] {
			out[i] = values[row]
		}
	}
	return out
}

// merged is a value that several configurations share: it keeps the SLA when all do.
func (f *cliffFinder) merged(a, b CliffPoint) CliffPoint {
	for i, c := range f.Constraints {
		if a.Stopped || b.Stopped {
			a.Figures[i] = cmp.Or(a.Figures[i], b.Figures[i])
			continue
		}
		if c.Operator == ">" || c.Operator == ">=" {
			a.Figures[i] = min(a.Figures[i], b.Figures[i])
		} else {
			a.Figures[i] = max(a.Figures[i], b.Figures[i])
		}
	}
	return CliffPoint{Value: a.Value, Kept: a.Kept && b.Kept, Runs: a.Runs + b.Runs, Keeping: a.Keeping + b.Keeping, Figures: a.Figures, Stopped: a.Stopped || b.Stopped}
}

// runs are the curves of single replicates that have all values of the axis: whether each value, in order, keeps the SLA.
func (f *cliffFinder) runs(rows []int) [][]bool {
	replicate := f.table.Column(replicateColumn)
	if replicate == nil || !f.candidates.Replicated() {
		return nil
	}
	byReplicate := map[string]map[float64]bool{}
	values := map[float64]bool{}
	var names []string
	for _, row := range rows {
		values[f.at[row]] = true
		for _, r := range f.candidates.Counted[row] {
			n := replicate.Text(r)
			if byReplicate[n] == nil {
				byReplicate[n] = map[float64]bool{}
				names = append(names, n)
			}
			earlier, known := byReplicate[n][f.at[row]]
			byReplicate[n][f.at[row]] = f.keepsRow[r] && (earlier || !known)
		}
	}
	var out [][]bool
	for _, n := range names {
		if len(byReplicate[n]) != len(values) {
			continue
		}
		var kept []bool
		for i, row := range rows {
			if i == 0 || f.at[row] != f.at[rows[i-1]] {
				kept = append(kept, byReplicate[n][f.at[row]])
			}
		}
		out = append(out, kept)
	}
	return out
}

// judge compares the edge with those of single replicates.
func (c *Cliff) judge(runs [][]bool, edge int) {
	if c.Replicates = len(runs); c.Replicates < 2 {
		return
	}
	for _, kept := range runs {
		if c.Falling {
			slices.Reverse(kept)
		}
		own, _ := edges(kept)
		if own == edge {
			c.Agreeing++
		}
		if own < len(kept) {
			c.Edges = append(c.Edges, c.Points[own].Value)
		}
	}
	slices.Sort(c.Edges)
	share := float64(c.Agreeing) / float64(c.Replicates)
	c.Confidence = &share
}

// falls reports whether the SLA is lost towards low values rather than towards high ones: whichever direction has an edge
// that fewer values contradict.
func falls(kept []bool) bool {
	reversed := slices.Clone(kept)
	slices.Reverse(reversed)
	return contradictions(reversed) < contradictions(kept)
}

// contradictions counts the values that are on the wrong side of the best edge.
func contradictions(kept []bool) int {
	wrong := 0 // of an edge before all values
	for _, k := range kept {
		if k {
			wrong++
		}
	}
	least := wrong
	for _, k := range kept {
		if k {
			wrong--
		} else {
			wrong++
		}
		least = min(least, wrong)
	}
	return least
}

// edges are the places of the first value of those that are all lost to the end, and of the first lost one; both are
// the number of values where there is none.
func edges(kept []bool) (forGood, first int) {
	forGood = len(kept)
	for forGood > 0 && !kept[forGood-1] {
		forGood--
	}
	first = slices.Index(kept, false)
	if first < 0 {
		first = len(kept)
	}
	return forGood, first
}

// bracket is the edge before a place.
func (c *Cliff) bracket(place int) *CliffBracket {
	if place == len(c.Points) {
		return nil
	}
	b := &CliffBracket{Lost: c.Points[place].Value}
	if place > 0 {
		b.Kept = &c.Points[place-1].Value
	}
	return b
}

// Text says in words where the axis loses the SLA.
func (c *Cliff) Text(axis string) string {
	number := func(v float64) string { return FormatNumber(v, 5) }
	towards := map[bool]string{false: "on", true: "down"}[c.Falling]
	var parts []string
	switch {
	case c.FirstLost == nil:
		parts = append(parts, "kept at all values of "+axis)
	case c.Edge == nil:
		parts = append(parts, fmt.Sprintf("kept at %s %s, the last value", axis, number(c.Points[len(c.Points)-1].Value)))
	case c.Edge.Kept == nil:
		parts = append(parts, "lost at all values of "+axis)
	default:
		parts = append(parts, fmt.Sprintf("kept at %s %s, lost from %s %s", axis, number(*c.Edge.Kept), number(c.Edge.Lost), towards))
	}
	if len(c.Regained) > 0 {
		again := make([]string, len(c.Regained))
		for i, v := range c.Regained {
			again[i] = number(v)
		}
		parts = append(parts, fmt.Sprintf("not monotone: lost at %s already, kept again at %s", number(c.FirstLost.Lost), strings.Join(again, ", ")))
	}
	if c.Confidence != nil {
		parts = append(parts, c.agreement(number))
	}
	return strings.Join(parts, "; ")
}

// agreement says how single replicates see the edge.
func (c *Cliff) agreement(number func(float64) string) string {
	text := fmt.Sprintf("%d of %d replicates agree", c.Agreeing, c.Replicates)
	if n := len(c.Edges); n > 0 && c.Agreeing < c.Replicates {
		text += fmt.Sprintf(", theirs are lost from %s to %s", number(c.Edges[0]), number(c.Edges[n-1]))
		if n < c.Replicates {
			text += fmt.Sprintf(", %d never", c.Replicates-n)
		}
	}
	return text
}
