package compare

import (
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// PointDifference is what differs between two points.
type PointDifference struct {
	Before Point `json:"before"`
	After  Point `json:"after"`
	// Settings are those that differ.
	Settings []Setting `json:"settings"`
	// Metrics are the figures that either has, in the order of the second table.
	Metrics []FigurePair `json:"metrics"`
	// Explanations split the differences of mean latencies into parts of the time.
	Explanations []Explanation `json:"explanations"`
	// Reasons say in words what is behind the differences.
	Reasons []string `json:"reasons"`
}

// FigurePair is one figure of both points.
type FigurePair struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Before and After are nil where the point has no value; Relative is the change as a share of the value before, nil where
	// that is missing or 0.
	Before   *float64 `json:"before"`
	After    *float64 `json:"after"`
	Relative *float64 `json:"relative"`
	// Differs says that the change is above the tolerance.
	Differs bool `json:"differs"`
}

// Points compares a row of one table with a row of another, which may be the same table. The error lists every unknown metric.
func Points(before *results.Table, rowBefore int, after *results.Table, rowAfter int, opt Options) (*PointDifference, error) {
	names, err := metricNames(before, after, opt.Metrics)
	if err != nil {
		return nil, err
	}
	d := &PointDifference{Before: newNamer(before).point(rowBefore), After: newNamer(after).point(rowAfter), Settings: settingsThatDiffer(before, rowBefore, after, rowAfter),
		Explanations: Explain(before, rowBefore, after, rowAfter), Reasons: Reasons(before, rowBefore, after, rowAfter, "")}
	d.Metrics = []FigurePair{}
	for _, name := range names {
		c := newFigureChange(figureOf(before, name, rowBefore), figureOf(after, name, rowAfter))
		if c.Before == nil && c.After == nil {
			continue
		}
		pair := FigurePair{Name: name, Unit: after.Column(name).Unit, Before: c.Before, After: c.After, Relative: c.Relative, Differs: differ(c, opt.Tolerance)}
		d.Metrics = append(d.Metrics, pair)
	}
	return d, nil
}

// Same reports whether neither settings nor figures differ.
func (d *PointDifference) Same() bool {
	return len(d.Settings) == 0 && !slices.ContainsFunc(d.Metrics, func(p FigurePair) bool { return p.Differs })
}

// settingsThatDiffer are those of two points, wherever their tables hold them.
func settingsThatDiffer(before *results.Table, rowBefore int, after *results.Table, rowAfter int) []Setting {
	out := []Setting{}
	names := settingColumns(before, after)
	add := func(name string) {
		if a, b := settingReader(before, name)(rowBefore), settingReader(after, name)(rowAfter); a != b {
			out = append(out, Setting{name, a, b})
		}
	}
	for _, name := range []string{"workload", "replicate"} {
		if (before.Column(name) != nil || after.Column(name) != nil) && !slices.Contains(names, name) {
			add(name)
		}
	}
	for _, name := range names {
		add(name)
	}
	for _, c := range constants(before, after) {
		if c.Before != varied && c.After != varied {
			out = append(out, c) // those that vary have a column
		}
	}
	if before != after && before.Column("simulator_version") != nil && after.Column("simulator_version") != nil {
		if i := slices.IndexFunc(out, func(s Setting) bool { return s.Name == "version of simulator" }); i < 0 {
			add("simulator_version")
		}
	}
	return out
}

// FindPoint returns the row that a point's name means: how its ID begins, or in a file without IDs the row's number from 1.
func FindPoint(t *results.Table, name string) (int, error) {
	id := t.Column("id")
	if id == nil || id.Kind != gridspec.KindString {
		return rowNumber(t, name)
	}
	return uniquePrefix(id.Strings, name)
}
