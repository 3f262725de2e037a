package results

import (
	"fmt"
	"math"
	"strconv"
)

// MostReportTimelines is how many points a report shows over time at most: as many as colours tell apart. With at most
// [MostTimelineWindows] windows each, ten figures of eight points take about 150 kB of the page.
const (
	MostReportTimelines = 8
	MostTimelineWindows = 240
)

// ReportTimeline is what happened over time at one point of a report.
type ReportTimeline struct {
	// Row is the point's row in the table of the report.
	Row int
	// EndSeconds is when the run ended.
	EndSeconds float64
	// AtSeconds is when each window begins.
	AtSeconds []float64
	// Figures hold a value a window.
	Figures []TimelineFigure
}

// TimelineFigure is one quantity over time.
type TimelineFigure struct {
	// Name is the column of the timeline, Title what people call it, Note what it counts.
	Name, Title, Unit, Note string
	// Values has one value a window; NaN where there is none.
	Values []float64
}

// reportTimeline is a timeline inside a report, with figures of four digits, more than its plots show.
type reportTimeline struct {
	Row     int              `json:"row"`
	End     float64          `json:"end"`
	At      []float64        `json:"at"`
	Figures []timelineFigure `json:"figures"`
}

type timelineFigure struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Unit   string `json:"unit"`
	Note   string `json:"note"`
	Values []any  `json:"values"`
}

// newReportTimelines refuses timelines that are no figures a window, of no row, or too many for a page.
func newReportTimelines(timelines []ReportTimeline, rows int) ([]reportTimeline, error) {
	if len(timelines) > MostReportTimelines {
		return nil, fmt.Errorf("timelines of %d points would hide each other; give at most %d", len(timelines), MostReportTimelines)
	}
	out := []reportTimeline{}
	for _, t := range timelines {
		if t.Row < 0 || t.Row >= rows {
			return nil, fmt.Errorf("timeline of row %d: the table has %d rows", t.Row, rows)
		}
		kept := evenly(len(t.AtSeconds), MostTimelineWindows)
		r := reportTimeline{Row: t.Row, End: digits(t.EndSeconds, 7), At: make([]float64, len(kept)), Figures: []timelineFigure{}}
		for i, at := range kept {
			r.At[i] = digits(t.AtSeconds[at], 7)
		}
		for _, f := range t.Figures {
			if len(f.Values) != len(t.AtSeconds) {
				return nil, fmt.Errorf("timeline of row %d: %s has %d values for %d windows", t.Row, f.Name, len(f.Values), len(t.AtSeconds))
			}
			figure := timelineFigure{Name: f.Name, Title: f.Title, Unit: f.Unit, Note: f.Note, Values: make([]any, len(kept))}
			for i, at := range kept {
				if v := f.Values[at]; !math.IsNaN(v) && !math.IsInf(v, 0) {
					figure.Values[i] = digits(v, 4)
				}
			}
			r.Figures = append(r.Figures, figure)
		}
		out = append(out, r)
	}
	return out, nil
}

// evenly returns at most so many places of n, evenly spaced from the first.
func evenly(n, most int) []int {
	out := make([]int, min(n, most))
	for i := range out {
		out[i] = i * n / len(out)
	}
	return out
}

// digits rounds to significant digits; what is no number is 0.
func digits(v float64, n int) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil || math.IsInf(short, 0) || math.IsNaN(short) {
		return 0
	}
	return short
}
