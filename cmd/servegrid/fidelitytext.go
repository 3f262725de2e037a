package main

import (
	"fmt"
	"math"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/servegrid/servegrid/live/fidelity"
)

// fidelityLines are a comparison as the terminal shows it: what was compared, what must be equal, how far the rest is apart, and
// the verdict at the end.
func fidelityLines(c *fidelity.Comparison) []string {
	lines := []string{
		fmt.Sprintf("A: %s (%s, %s)", visible(c.A.Name), c.A.Kind, counted(len(c.A.Requests), "request")),
		fmt.Sprintf("B: %s (%s, %s)", visible(c.B.Name), c.B.Kind, counted(len(c.B.Requests), "request")),
		fmt.Sprintf("%s, paired by %s", counted(c.Pairs, "pair"), c.Join),
		"Conditions, which ought to be equal:", checksTable(c.Conditions),
		"Checks, which must hold:", checksTable(c.Checks),
	}
	if len(c.Deltas) > 0 {
		lines = append(lines, "Differences, B − A:", deltasTable(c))
	}
	if len(c.Bounds) > 0 {
		lines = append(lines, "Bounds:", boundsTable(c.Bounds))
	}
	if len(c.Worst) > 0 {
		lines = append(lines, "Furthest apart:")
		for _, w := range c.Worst {
			lines = append(lines, fmt.Sprintf("  %s: %s %s in A, %s in B", cellText(w.Request), w.Metric, withUnit(w.A, w.Unit), withUnit(w.B, w.Unit)))
		}
	}
	for _, caution := range c.Verdict.Cautions {
		lines = append(lines, "Note: "+visible(caution))
	}
	for _, failure := range c.Verdict.Failures {
		lines = append(lines, "FAILED: "+visible(failure))
	}
	return append(lines, c.Verdict.Sentence)
}

func withUnit(v float64, unit string) string { return fidelityFigure(v) + " " + unit }

// fidelityFigure shows a figure with four digits.
func fidelityFigure(v float64) string {
	if math.Abs(v) >= 1000 {
		return grouped(v)
	}
	return fmt.Sprintf("%.4g", v)
}

func checksTable(checks []fidelity.Check) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"", "A", "B", ""})
	for _, c := range checks {
		out.AppendRow(table.Row{c.Name, cellText(c.A), cellText(c.B), c.Outcome})
	}
	return out.Render()
}

func deltasTable(c *fidelity.Comparison) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"", "pairs", "mean A", "mean B", "mean", "of A", "|p50|", "|p90|", "|p99|", "|max|", "ratio p50", "p90", "p99"})
	for i := range c.Deltas {
		d := &c.Deltas[i]
		row := table.Row{d.Title + ", " + d.Unit, count(d.Signed.Count), fidelityFigure(d.A.Mean), fidelityFigure(d.B.Mean), fmt.Sprintf("%+.4g", d.Signed.Mean), percentOf(d)}
		for _, v := range []float64{d.Absolute.P50, d.Absolute.P90, d.Absolute.P99, d.Absolute.Max} {
			row = append(row, fidelityFigure(v))
		}
		if d.Ratio != nil {
			for _, v := range []float64{d.Ratio.P50, d.Ratio.P90, d.Ratio.P99} {
				row = append(row, fmt.Sprintf("%.4f", v))
			}
		}
		out.AppendRow(row)
	}
	for _, lag := range []struct {
		name string
		of   *fidelity.Distribution
	}{{"Schedule lag of A, ms", c.LagA}, {"Schedule lag of B, ms", c.LagB}} {
		if d := lag.of; d != nil {
			out.AppendRow(table.Row{lag.name, count(d.Count), "", "", fidelityFigure(d.Mean), "", fidelityFigure(d.P50), fidelityFigure(d.P90), fidelityFigure(d.P99), fidelityFigure(d.Max)})
		}
	}
	out.SetColumnConfigs(rightAligned(2, 13))
	return out.Render()
}

// percentOf is the change of the mean as a share of A's.
func percentOf(d *fidelity.Delta) string {
	if change := d.MeanChange(); d.Ratio != nil && !math.IsNaN(change) {
		return fmt.Sprintf("%+.2f %%", 100*change)
	}
	return ""
}

func boundsTable(bounds []fidelity.Bound) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"bound", "there is", ""})
	for _, b := range bounds {
		value, outcome := "not stated", fidelity.Fails
		if b.Value != nil {
			if value = fidelityFigure(*b.Value); b.Relative {
				value = fmt.Sprintf("%.4g %%", 100**b.Value)
			}
		}
		if b.Kept {
			outcome = fidelity.Holds
		}
		out.AppendRow(table.Row{b.String(), value, outcome})
	}
	return out.Render()
}
