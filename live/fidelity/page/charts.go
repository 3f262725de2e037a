package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/servegrid/servegrid/live/fidelity"
	"github.com/servegrid/servegrid/results/xyplot"
)

// mostDots and mostSteps bound what a plot draws.
const (
	mostDots  = 1500
	mostSteps = 500
)

// charts are three plots a metric: how it is distributed in both runs, pair by pair, and over time.
func charts(c *fidelity.Comparison) []xyplot.Chart {
	var out []xyplot.Chart
	points := c.Points()
	for i := range points {
		p := &points[i]
		unit := p.Delta.Title + ", " + p.Delta.Unit
		if p.Delta.Metric != "arrival" {
			out = append(out, distributions(p, unit), scatter(p, unit))
		}
		if p.AtMs != nil {
			out = append(out, overTime(p, unit))
		}
	}
	return out
}

// distributions shows which share of the requests is below each value.
func distributions(p *fidelity.Points, unit string) xyplot.Chart {
	c := xyplot.Chart{Title: p.Delta.Title + ": distribution", Note: "share of the requests at or below each value", XLabel: unit, YLabel: "%"}
	for i, values := range [][]float64{p.A, p.B} {
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		line := xyplot.Series{Name: [...]string{"A", "B"}[i], Colour: i, Steps: true}
		n := len(sorted)
		line.Add(sorted[0], 0)
		for k := range min(n, mostSteps) {
			at := (k+1)*n/min(n, mostSteps) - 1
			line.Add(sorted[at], 100*float64(at+1)/float64(n))
		}
		c.Series = append(c.Series, line)
	}
	c.Lay(scaleOf(p.A, p.B), xyplot.Linear)
	return c
}

// scaleOf is logarithmic for values above 1 that are orders of magnitude apart.
func scaleOf(lists ...[]float64) xyplot.Scale {
	low, high := math.Inf(1), 0.0
	for _, values := range lists {
		low, high = min(low, slices.Min(values)), max(high, slices.Max(values))
	}
	if low >= 1 && high > 30*low {
		return xyplot.Logarithmic
	}
	return xyplot.Linear
}

func scatter(p *fidelity.Points, unit string) xyplot.Chart {
	c := xyplot.Chart{Title: p.Delta.Title + ": pair by pair", Note: "on the dashed line both are equal" + thinned(len(p.A)), XLabel: unit + " in A", YLabel: "in B", Diagonal: true}
	dots := xyplot.Series{Dots: true, Apart: true}
	for _, i := range chosen(len(p.A)) {
		dots.Add(p.A[i], p.B[i])
	}
	c.Series = []xyplot.Series{dots}
	scale := scaleOf(p.A, p.B)
	c.Lay(scale, scale)
	return c
}

func overTime(p *fidelity.Points, unit string) xyplot.Chart {
	c := xyplot.Chart{Title: p.Delta.Title + ": difference over time", Note: "B − A of each pair" + thinned(len(p.A)), XLabel: "start in A, s", YLabel: unit}
	dots := xyplot.Series{Dots: true, Apart: true, Colour: 1}
	for _, i := range chosen(len(p.A)) {
		dots.Add(p.AtMs[i]/1000, p.B[i]-p.A[i])
	}
	c.Series = []xyplot.Series{dots}
	c.Lay(xyplot.Linear, xyplot.Linear)
	return c
}

// chosen are the places of the dots that are drawn: all, or evenly spread ones.
func chosen(n int) []int {
	drawn := min(n, mostDots)
	out := make([]int, drawn)
	for k := range out {
		out[k] = k * n / drawn
	}
	return out
}

func thinned(n int) string {
	if n <= mostDots {
		return ""
	}
	return fmt.Sprintf("; %d of %d are drawn", mostDots, n)
}
