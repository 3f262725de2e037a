package timelines

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/timeplot"
)

// MostCurves is how many points a page lays over each other at most: as many as colours tell apart.
const MostCurves = 8

// Curve is the timeline of one point.
type Curve struct {
	// Label tells the point from the others.
	Label string
	// Table is its timeline, as [Table] makes it.
	Table *results.Table
}

// figureOf is a column of timelines that a page plots.
type figureOf struct{ column, title, unit, note string }

var figures = []figureOf{
	{"ready_workers", "Ready workers", "", "mean of each window"},
	{"prefill_ready_workers", "Ready prefill workers", "", "mean of each window"},
	{"decode_ready_workers", "Ready decode workers", "", "mean of each window"},
	{"starting_workers", "Starting workers", "", "mean of each window"},
	{"prefill_starting_workers", "Starting prefill workers", "", "mean of each window"},
	{"decode_starting_workers", "Starting decode workers", "", "mean of each window"},
	{"arrived", "Requests", "per second", "that arrive"},
	{"waiting", "Queue", "requests", "that no worker has admitted yet, mean"},
	{"in_flight", "In flight", "requests", "that have arrived and not ended, mean"},
	{"p90_ttft_ms", "Time to first token, p90", "ms", "of the requests that arrive in each window"},
	{"mean_ttft_ms", "Time to first token, mean", "ms", "of the requests that arrive in each window"},
	{"mean_tpot_ms", "Time per output token, mean", "ms", "of the requests that arrive in each window"},
	{"sla_attainment", "SLA attainment", "%", "of the requests that arrive in each window"},
	{"gpus", "GPUs", "", "of all workers, those that start or drain included"},
}

// WritePage lays the timelines over each other, one colour a point.
func WritePage(w io.Writer, title string, sla []results.Constraint, curves []Curve) error {
	if len(curves) > MostCurves {
		return fmt.Errorf("timelines of %d points would hide each other; choose at most %d", len(curves), MostCurves)
	}
	page := timeplot.Page{Title: title, Subtitle: subtitle(sla, curves), Linked: true}
	for _, f := range figures {
		chart := timeplot.Chart{Title: f.title, Unit: f.unit, Note: f.note}
		for i, c := range curves {
			s, end, err := f.series(c)
			if err != nil {
				return fmt.Errorf("timeline of %s: %w", c.Label, err)
			}
			page.EndSeconds = max(page.EndSeconds, end)
			if s.Colour = i; s.Values != nil {
				chart.Series = append(chart.Series, s)
			}
		}
		if len(chart.Series) > 0 {
			page.Charts = append(page.Charts, chart)
		}
	}
	return timeplot.Write(w, page, nil)
}

// ForReport makes a point's timeline part of a report; row is the point's row in the report's table.
func ForReport(row int, timeline *results.Table) (results.ReportTimeline, error) {
	out := results.ReportTimeline{Row: row}
	for _, f := range figures {
		s, end, err := f.series(Curve{Table: timeline})
		if err != nil {
			return out, fmt.Errorf("timeline: %w", err)
		}
		out.EndSeconds = end
		if s.Values != nil {
			out.AtSeconds = s.AtSeconds
			out.Figures = append(out.Figures, results.TimelineFigure{Name: f.column, Title: f.title, Unit: f.unit, Note: f.note, Values: s.Values})
		}
	}
	return out, nil
}

func subtitle(sla []results.Constraint, curves []Curve) string {
	text := fmt.Sprintf("Timelines of %d points", len(curves))
	if len(curves) == 1 {
		text = "Timeline of 1 point"
	}
	var bounds []string
	for _, c := range sla {
		bounds = append(bounds, c.String())
	}
	if len(bounds) > 0 {
		text += " · SLA " + strings.Join(bounds, " and ")
	}
	return text
}

// series has no values where the timeline lacks the figure, or has only zeros of workers that never start.
func (f figureOf) series(c Curve) (s timeplot.Series, endSeconds float64, err error) {
	at, err := c.Table.Lookup("at_ms")
	if err != nil {
		return s, 0, err
	}
	length, err := c.Table.Lookup("window_ms")
	if err != nil {
		return s, 0, err
	}
	for row := range at.Floats {
		endSeconds = max(endSeconds, (at.Floats[row]+length.Floats[row])/1000)
	}
	column := c.Table.Column(f.column)
	if column == nil {
		return s, endSeconds, nil
	}
	values, err := column.Float64s()
	if err != nil {
		return s, 0, err
	}
	s = timeplot.Series{Name: c.Label, Look: timeplot.Steps}
	seen := !strings.Contains(f.column, "starting")
	for row, v := range values {
		switch {
		case f.unit == "per second":
			v = rate(v, length.Floats[row])
		case f.unit == "%":
			v *= 100
		}
		seen = seen || v > 0
		s.AtSeconds, s.Values = append(s.AtSeconds, at.Floats[row]/1000), append(s.Values, v)
	}
	if !seen {
		s.Values = nil
	}
	return s, endSeconds, nil
}

// rate is per second.
func rate(count, windowMs float64) float64 {
	if windowMs <= 0 {
		return math.NaN()
	}
	return count / windowMs * 1000
}
