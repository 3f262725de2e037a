package page

import (
	"fmt"

	"github.com/servegrid/servegrid/live/fidelity"
	"github.com/servegrid/servegrid/results/htmlpage"
)

func tables(c *fidelity.Comparison) []htmlpage.Table {
	out := []htmlpage.Table{
		checks("Conditions", "what ought to be equal for the rest to mean anything", c.Conditions),
		checks("Checks", "what must hold", c.Checks),
		deltas(c),
	}
	if len(c.Bounds) > 0 {
		out = append(out, bounds(c.Bounds))
	}
	if len(c.Worst) > 0 {
		out = append(out, worst(c.Worst))
	}
	return out
}

func checks(title, note string, list []fidelity.Check) htmlpage.Table {
	t := htmlpage.Table{Title: title, Note: note, Head: []string{"", "A", "B", "", ""}}
	for _, c := range list {
		t.Rows = append(t.Rows, []string{c.Name, c.A, c.B, string(c.Outcome), c.Detail})
	}
	return t
}

func deltas(c *fidelity.Comparison) htmlpage.Table {
	t := htmlpage.Table{
		Title: "Differences", Note: "B − A of each pair; percentiles are nearest-rank",
		Head: []string{"", "pairs", "mean A", "mean B", "mean B − A", "size: mean", "p50", "p90", "p99", "max", "B ÷ A: p50", "p90", "p99", "max"},
	}
	for i := range c.Deltas {
		d := &c.Deltas[i]
		row := []string{d.Title + ", " + d.Unit, htmlpage.Whole(d.Signed.Count)}
		for _, v := range []float64{d.A.Mean, d.B.Mean, d.Signed.Mean, d.Absolute.Mean, d.Absolute.P50, d.Absolute.P90, d.Absolute.P99, d.Absolute.Max} {
			row = append(row, htmlpage.Number(v))
		}
		if r := d.Ratio; r != nil {
			row = append(row, fmt.Sprintf("%.4f", r.P50), fmt.Sprintf("%.4f", r.P90), fmt.Sprintf("%.4f", r.P99), fmt.Sprintf("%.4f", r.Max))
		}
		t.Rows = append(t.Rows, filled(row, len(t.Head)))
	}
	for _, lag := range []struct {
		name string
		of   *fidelity.Distribution
	}{{"Schedule lag of A, ms", c.LagA}, {"Schedule lag of B, ms", c.LagB}} {
		if d := lag.of; d != nil {
			row := []string{lag.name, htmlpage.Whole(d.Count), "", "", ""}
			for _, v := range []float64{d.Mean, d.P50, d.P90, d.P99, d.Max} {
				row = append(row, htmlpage.Number(v))
			}
			t.Rows = append(t.Rows, filled(row, len(t.Head)))
		}
	}
	return t
}

// filled makes a row as long as the table is wide.
func filled(row []string, n int) []string {
	for len(row) < n {
		row = append(row, "")
	}
	return row
}

func bounds(list []fidelity.Bound) htmlpage.Table {
	t := htmlpage.Table{Title: "Bounds", Head: []string{"bound", "there is", ""}}
	for _, b := range list {
		value, outcome := "not stated", "missed"
		if b.Value != nil {
			if value = htmlpage.Number(*b.Value); b.Relative {
				value = htmlpage.Number(100**b.Value) + " %"
			}
		}
		if b.Kept {
			outcome = "kept"
		}
		t.Rows = append(t.Rows, []string{b.String(), value, outcome})
	}
	return t
}

func worst(list []fidelity.Worst) htmlpage.Table {
	t := htmlpage.Table{Title: "Furthest apart", Head: []string{"request", "", "A", "B", "B − A"}}
	for _, w := range list {
		t.Rows = append(t.Rows, []string{w.Request, w.Metric + ", " + w.Unit, htmlpage.Number(w.A), htmlpage.Number(w.B), htmlpage.Number(w.B - w.A)})
	}
	return t
}
