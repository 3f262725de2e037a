package sensitivity

import (
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// The values of the column order of [Analysis.Table].
const (
	orderFirst       = "first"
	orderTotal       = "total"
	orderInteraction = "interaction"
)

// Table lays the shares out with one row each, for files: what each axis does alone (order first), together with others
// (total), and what pairs do (interaction, with the second axis in other_axis).
func (a *Analysis) Table() *results.Table {
	var lines []line
	for i := range a.Metrics {
		m := &a.Metrics[i]
		for _, e := range m.Effects {
			lines = append(lines, line{m, e.Axis, "", orderFirst, e.First, e.Direction}, line{m, e.Axis, "", orderTotal, e.Total, e.Direction})
		}
		for _, pair := range m.Interactions {
			lines = append(lines, line{m, pair.Axes[0], pair.Axes[1], orderInteraction, pair.Share, ""})
		}
	}
	t := &results.Table{}
	for _, c := range lineColumns {
		column := results.NewColumn(c.name, c.kind, len(lines))
		column.Doc, column.Role = c.doc, c.role
		for row := range lines {
			if v, ok := c.get(&lines[row]); ok {
				column.Set(row, v)
			}
		}
		t.Add(column)
	}
	return t
}

// line is one row of the table.
type line struct {
	metric      *Metric
	axis, other string
	order       string
	share       Share
	direction   Direction
}

// lineColumn is one column of the table.
type lineColumn struct {
	name, doc string
	role      results.Role
	kind      gridspec.Kind
	get       func(*line) (gridspec.Value, bool)
}

var lineColumns = []lineColumn{
	{"metric", "Figure whose variance is split.", results.RoleAxis, gridspec.KindString, func(l *line) (gridspec.Value, bool) { return text(l.metric.Name) }},
	{"axis", "Axis that the share belongs to.", results.RoleAxis, gridspec.KindString, func(l *line) (gridspec.Value, bool) { return text(l.axis) }},
	{"other_axis", "The second axis of an interaction.", results.RoleAxis, gridspec.KindString, func(l *line) (gridspec.Value, bool) { return text(l.other) }},
	{"order", "first (the axis alone), total (together with all others), or interaction (two axes beyond what each does alone).", results.RoleAxis, gridspec.KindString, func(l *line) (gridspec.Value, bool) { return text(l.order) }},
	{"share", "Share of the variance.", results.RoleMetric, gridspec.KindFloat, func(l *line) (gridspec.Value, bool) { return real(&l.share.Value) }},
	{"share_low", "Lower end of the interval that holds the share with 90 % confidence; null where nothing is uncertain.", results.RoleMetric, gridspec.KindFloat, func(l *line) (gridspec.Value, bool) { return real(l.share.Low) }},
	{"share_high", "Upper end of the interval.", results.RoleMetric, gridspec.KindFloat, func(l *line) (gridspec.Value, bool) { return real(l.share.High) }},
	{"direction", "How the metric moves when the axis grows and all else stays.", results.RoleMetric, gridspec.KindString, func(l *line) (gridspec.Value, bool) { return text(string(l.direction)) }},
	{"explained", "Share of the variance between points that is accounted for.", results.RoleMetric, gridspec.KindFloat, func(l *line) (gridspec.Value, bool) { return real(&l.metric.Explained) }},
	{"noise", "Share of the variance between runs of the same point; null without replicates.", results.RoleMetric, gridspec.KindFloat, func(l *line) (gridspec.Value, bool) { return real(l.metric.Noise) }},
	{"points", "Number of different points.", results.RoleMetric, gridspec.KindInt, func(l *line) (gridspec.Value, bool) {
		return gridspec.Value{Kind: gridspec.KindInt, Int: int64(l.metric.Points)}, true
	}},
}

func text(s string) (gridspec.Value, bool) {
	return gridspec.Value{Kind: gridspec.KindString, Str: s}, s != ""
}

func real(v *float64) (gridspec.Value, bool) {
	if v == nil {
		return gridspec.Value{}, false
	}
	return gridspec.Value{Kind: gridspec.KindFloat, Float: *v}, true
}
