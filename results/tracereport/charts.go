package tracereport

import (
	"fmt"

	"github.com/servegrid/servegrid/results/htmlpage"
	"github.com/servegrid/servegrid/results/xyplot"
	"github.com/servegrid/servegrid/simcore/workload"
)

// charts are the plots of the page.
func (s Summary) charts() []xyplot.Chart {
	var out []xyplot.Chart
	out = append(out, s.overTime("Starts", "requests per second", "how many requests start", func(v workload.Window) float64 { return float64(v.Starts) / s.Timeline.WindowMs * 1000 }, nil))
	out = append(out, s.overTime("In flight", "requests", s.ServiceText(), func(v workload.Window) float64 { return v.Requests }, nil))
	out = append(out, s.overTime("Tokens in flight", "tokens", "prompts and whole answers", func(v workload.Window) float64 { return v.Tokens }, nil))
	out = append(out, s.overTime("Tokens that come", "tokens per second", "input and output of the requests that start",
		func(v workload.Window) float64 { return float64(v.InputTokens) / s.Timeline.WindowMs * 1000 },
		func(v workload.Window) float64 { return float64(v.OutputTokens) / s.Timeline.WindowMs * 1000 }))
	if s.MultiTurnSessions > 0 {
		out = append(out, s.overTime("Open sessions", "sessions", "from their first request to the end of their last", func(v workload.Window) float64 { return v.Sessions }, nil))
	}
	out = append(out, lengthsChart("Lengths", "tokens", s.Histograms.Input, s.Histograms.Output, "input", "output"))
	if s.Histograms.Gaps.Count() > 0 {
		out = append(out, lengthsChart("Gaps between turns", "ms", s.Histograms.Gaps, workload.Histogram{}, "gap", ""))
	}
	if s.Reuse != nil && len(s.Reuse.LRU) > 0 {
		out = append(out, s.reuseChart())
	}
	return out
}

// overTime draws one or two figures of the windows as steps.
func (s Summary) overTime(title, unit, note string, first, second func(workload.Window) float64) xyplot.Chart {
	c := xyplot.Chart{Title: title, Note: note, XLabel: "time, " + timeUnit(s.span()).name, YLabel: unit}
	unitMs := timeUnit(s.span()).ms
	for i, of := range []func(workload.Window) float64{first, second} {
		if of == nil {
			continue
		}
		line := xyplot.Series{Colour: i, Steps: true}
		if second != nil {
			line.Name = [...]string{"input", "output"}[i]
		}
		for k, v := range s.Timeline.Windows {
			line.Add(float64(k)*s.Timeline.WindowMs/unitMs, of(v))
		}
		line.Add(float64(len(s.Timeline.Windows))*s.Timeline.WindowMs/unitMs, 0)
		c.Series = append(c.Series, line)
	}
	c.Lay(xyplot.Linear, xyplot.Linear)
	return c
}

func (s Summary) span() float64 { return float64(len(s.Timeline.Windows)) * s.Timeline.WindowMs }

type unit struct {
	ms   float64
	name string
}

// timeUnit is the largest unit of which a span has several.
func timeUnit(spanMs float64) unit {
	for _, u := range []unit{{86_400_000, "days"}, {3_600_000, "hours"}, {60_000, "minutes"}, {1000, "seconds"}} {
		if spanMs >= 3*u.ms {
			return u
		}
	}
	return unit{1, "ms"}
}

// lengthsChart draws how many values there are in each bin of one or two histograms.
func lengthsChart(title, unit string, first, second workload.Histogram, firstName, secondName string) xyplot.Chart {
	c := xyplot.Chart{Title: title, Note: "share of the requests in each bin", XLabel: unit, YLabel: "%"}
	for i, h := range []workload.Histogram{first, second} {
		if h.Count() == 0 {
			continue
		}
		line := xyplot.Series{Colour: i, Steps: true, Name: [...]string{firstName, secondName}[i]}
		for _, bin := range h.Bins {
			line.Add(bin.From, 100*float64(bin.Count)/float64(h.Count()))
		}
		line.Add(h.Bins[len(h.Bins)-1].To, 0)
		c.Series = append(c.Series, line)
	}
	c.Lay(xyplot.Logarithmic, xyplot.Linear)
	return c
}

// reuseChart draws the hit ratio over the size of the cache.
func (s Summary) reuseChart() xyplot.Chart {
	c := xyplot.Chart{
		Title: "Reuse by cache size", XLabel: "tokens that the cache holds", YLabel: "% of the full blocks of prompts",
		Note: fmt.Sprintf("least recently used blocks go first; without a limit %s %%", htmlpage.Number(100*s.Reuse.Ideal)),
	}
	line := xyplot.Series{Dots: len(s.Reuse.LRU) < 40}
	for _, size := range s.Reuse.LRU {
		line.Add(float64(size.CacheBlocks)*float64(s.Reuse.BlockSize), 100*size.HitRatio)
	}
	c.Series = []xyplot.Series{line}
	c.Lay(xyplot.Logarithmic, xyplot.Linear)
	return c
}
