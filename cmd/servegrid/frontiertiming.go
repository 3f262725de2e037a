package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// origin is the column that says where rows come from: whether they are simulated or measured, else of which results they are.
// nil when all come from one place.
func (f frontierTable) origin() *results.Column {
	if c := f.differing(results.SourceColumn); c != nil {
		return c
	}
	return f.differing(results.RunColumn)
}

// differing is a column of words when it has more than one; otherwise nil.
func (f frontierTable) differing(name string) *results.Column {
	c := f.candidates.Table.Column(name)
	if c == nil || c.Strings == nil {
		return nil
	}
	words := map[string]bool{}
	for row := range c.Len() {
		if !c.Null[row] {
			words[c.Strings[row]] = true
		}
	}
	if len(words) < 2 {
		return nil
	}
	return c
}

// rejections is the column of the rejected requests when a row of the frontier has some: such a row does less work.
func (f frontierTable) rejections() *results.Column {
	t := f.candidates.Table
	c, on := t.Column("rejected_requests"), t.Column(results.FrontierColumn)
	if c == nil || c.Kind == gridspec.KindString {
		return nil
	}
	rejected, err := c.Float64s()
	if err != nil {
		return nil
	}
	for row, n := range rejected {
		if on.Bools[row] && n > 0 {
			return c
		}
	}
	return nil
}

// timingNotes says how far off the analytic ones of the shown rows are, and which come from suspect tables.
func (f frontierTable) timingNotes(groups [][]int) []string {
	t := f.candidates.Table
	source, anomaly := t.Column("timing_source"), t.Column("timing_anomaly")
	var analytic, suspect []int
	for _, row := range slices.Concat(groups...) {
		if source != nil && source.Text(row) == perfmodel.SourceAnalytic {
			analytic = append(analytic, row)
		}
		if anomaly != nil && anomaly.Text(row) == "true" {
			suspect = append(suspect, row)
		}
	}
	var notes []string
	if len(analytic) > 0 {
		notes = append(notes, fmt.Sprintf("%s with analytic timing, a roofline: ±%s %% in prefill, ±%s %% in decode.",
			plural(len(analytic), "row"), rangeOf(t.Column("timing_prefill_error_pct"), analytic), rangeOf(t.Column("timing_decode_error_pct"), analytic)))
	}
	if len(suspect) > 0 {
		notes = append(notes, fmt.Sprintf("%s from tables whose source is suspect (timing_anomaly): %s.",
			plural(len(suspect), "row"), perfmodel.AnomalyMeaning))
	}
	return notes
}

// rangeOf is the least and the greatest value of a column in some rows, such as 20–40.
func rangeOf(c *results.Column, rows []int) string {
	if c == nil || c.Floats == nil {
		return "?"
	}
	low, high := c.Floats[rows[0]], c.Floats[rows[0]]
	for _, row := range rows {
		low, high = min(low, c.Floats[row]), max(high, c.Floats[row])
	}
	if low == high {
		return errorPct(low)
	}
	return errorPct(low) + "–" + errorPct(high)
}

// errorPct is an error in percent with two digits, and never an exponent.
func errorPct(pct float64) string {
	switch {
	case pct >= 10:
		return strconv.FormatFloat(pct, 'f', 0, 64)
	case pct > 0 && pct < .001:
		return "<0.001"
	}
	return strconv.FormatFloat(pct, 'g', 2, 64)
}
