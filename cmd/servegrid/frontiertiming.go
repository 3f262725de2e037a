package main

import (
	"fmt"
	"slices"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// timingSource is the column of the timing sources when there are several, so that analytic rows are told apart from
// measured ones; nil when all rows have the same.
func (f frontierTable) timingSource() *results.Column {
	c := f.candidates.Table.Column("timing_source")
	if c == nil || c.Strings == nil {
		return nil
	}
	sources := map[string]bool{}
	for row := range c.Len() {
		if !c.Null[row] {
			sources[c.Strings[row]] = true
		}
	}
	if len(sources) < 2 {
		return nil
	}
	return c
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
		notes = append(notes, fmt.Sprintf("%s from tables whose source is suspect (timing_anomaly): a pass takes more than twice as long as on the best backend.",
			plural(len(suspect), "row")))
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
		return fmt.Sprintf("%.2g", low)
	}
	return fmt.Sprintf("%.2g–%.2g", low, high)
}
