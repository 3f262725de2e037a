package results

import (
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// Figures returns what the analysis makes of one configuration, whose replicates the rows are: the mean of each
// objective, turned so that more is better and NaN where no row has it, and for each constraint by how much the mean
// keeps it, as a share of the bound. A margin below 0 is a constraint that is not kept; one that is no comparison of
// numbers has 0 or -1, and so does a missing figure. Objectives and constraints are metrics, axes, derived values or gpus.
func (a Analysis) Figures(rows []Row) (objectives, margins []float64) {
	for _, o := range a.Objectives {
		v := meanFigure(rows, o.Name)
		if !o.Maximize {
			v = -v
		}
		objectives = append(objectives, v)
	}
	for _, c := range a.Constraints {
		margins = append(margins, c.margin(meanFigure(rows, c.Column)))
	}
	return objectives, margins
}

func meanFigure(rows []Row, name string) float64 {
	values, all := make([]float64, len(rows)), make([]int, len(rows))
	for i := range rows {
		values[i], all[i] = rows[i].figure(name), i
	}
	return meanOf(values, all)
}

// figure is a metric, axis or derived value of a row as a number; NaN when it has none.
func (r *Row) figure(name string) float64 {
	if at, ok := metricPlaces[name]; ok {
		if at < len(r.Metrics) {
			return r.Metrics[at]
		}
		return math.NaN()
	}
	for _, v := range r.Point.Axes {
		if v.Column == name {
			return v.Value.Float64()
		}
	}
	if name == "gpus" {
		return float64(r.Point.Config.GPUs())
	}
	return math.NaN()
}

// metricPlaces maps the names of metrics to their places in a row.
var metricPlaces = func() map[string]int {
	out := map[string]int{}
	for i, f := range metrics.Fields() {
		out[f.Name] = i
	}
	return out
}()

// margin says by how much a value keeps the constraint, as a share of its bound.
func (c Constraint) margin(v float64) float64 {
	bound := c.size()
	if math.IsNaN(v) || math.IsNaN(bound) {
		return -1
	}
	share := (v - bound) / max(math.Abs(bound), 1e-9)
	kept := compareFloats(c.Operator, v, bound)
	switch {
	case !slices.Contains([]string{"<", "<=", ">", ">="}, c.Operator):
		share = map[bool]float64{true: 0, false: -1}[kept]
	case strings.HasPrefix(c.Operator, "<"):
		share = -share
	}
	if !kept {
		return min(share, -math.SmallestNonzeroFloat64) // a strict bound is missed by equality too
	}
	return share
}

// CommonConstraints returns the constraints that [NewTable] would find for the points of a sweep with these objectives:
// the SLA, when all points have the same one and no objective counts what keeps it.
func CommonConstraints(points []gridspec.Point, objectives []Objective) []Constraint {
	if CountsSLA(objectives) {
		return nil
	}
	rows := make([]Row, len(points))
	for i := range points {
		rows[i].Point = &points[i]
	}
	return commonSLA(rows)
}
