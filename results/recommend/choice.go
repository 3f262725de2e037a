package recommend

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/results"
)

// group is the configurations of one traffic.
type group struct {
	*scale
	// rows are those that the request selects, simulated those of them that ran to an end.
	rows, simulated []int
	// ok are those of the simulated that can be chosen from: all but the ones that drop requests, where others do not.
	ok []int
	// bounds are limits, then budget.
	bounds []results.Constraint
}

func (s *scale) group(rows []int) *group {
	g := &group{scale: s, bounds: s.constraints()}
	g.rows = slices.DeleteFunc(slices.Clone(rows), func(row int) bool {
		for i, c := range g.bounds {
			if s.selects(c) && !g.keeps[i][row] {
				return true
			}
		}
		return false
	})
	g.simulated = slices.DeleteFunc(slices.Clone(g.rows), func(row int) bool { return !s.ok[row] })
	g.ok = g.simulated
	rejected := g.optional("rejected_requests")
	drops := func(row int) bool { return rejected[row] > 0 }
	serves := slices.ContainsFunc(g.ok, func(row int) bool { return !drops(row) })
	if serves && !g.request.AllowRejected {
		g.ok = slices.DeleteFunc(slices.Clone(g.ok), drops)
	}
	return g
}

// isBudget reports whether a constraint, by its place, is one of the budget.
func (g *group) isBudget(i int) bool {
	limits := len(g.request.Limits)
	return i >= limits && i < limits+len(g.request.Budget)
}

// keeping lists the simulated configurations that keep all constraints but those at some places.
func (g *group) keeping(but ...int) []int {
	return slices.DeleteFunc(slices.Clone(g.ok), func(row int) bool {
		for i := range g.bounds {
			if !g.keeps[i][row] && !slices.Contains(but, i) {
				return true
			}
		}
		return false
	})
}

// budgetPlaces are the places of the budget among the constraints.
func (g *group) budgetPlaces() []int {
	var out []int
	for i := range g.bounds {
		if g.isBudget(i) {
			out = append(out, i)
		}
	}
	return out
}

// choice describes a configuration.
func (g *group) choice(row int) *Choice {
	c := &Choice{
		ID: g.text("id", row), LimitedBy: g.text("limiting_resource", row), Command: g.text(results.CommandColumn, row),
		Row: g.candidates.Counted[row][0], Settings: []Setting{}, Figures: []Figure{}, Limits: []Limit{}, Binding: -1,
	}
	for _, column := range g.varied {
		if g.isSetting(column) && !column.Null[row] {
			c.Settings = append(c.Settings, Setting{column.Name, column.Text(row)})
		}
	}
	for _, name := range g.shown() {
		column := g.table.Column(name)
		values, err := column.Float64s()
		if err == nil && finite(values[row]) {
			c.Figures = append(c.Figures, Figure{name, values[row], column.Unit, g.halfWidth(name, row)})
		}
	}
	for i, b := range g.bounds {
		v, ok := g.measured(b, row)
		if !ok {
			continue
		}
		l := Limit{Constraint: b, Value: v, Headroom: headroom(b, v), Runs: len(g.candidates.Counted[row])}
		for _, run := range g.candidates.Counted[row] {
			if g.kept[i][run] {
				l.Kept++
			}
		}
		c.Limits = append(c.Limits, l)
	}
	c.Binding = g.binding(c.Limits)
	return c
}

// binding is the place of the limit with the least headroom, a budget only when there is nothing else.
func (g *group) binding(limits []Limit) int {
	least, at := math.Inf(1), -1
	for _, budget := range []bool{false, true} {
		for i, l := range limits {
			if slices.Contains(g.request.Budget, l.Constraint) == budget && l.Headroom < least {
				least, at = l.Headroom, i
			}
		}
		if at >= 0 {
			break
		}
	}
	return at
}

// usualFigures are what people ask of a configuration.
var usualFigures = []string{
	gpusColumn, HourlyCostColumn, "cost_usd_per_mtok_input", "cost_usd_per_mtok_output",
	"p99_ttft_ms", "p99_tpot_ms", "p99_e2e_latency_ms", "output_throughput_tok_s", "output_throughput_tok_s_per_gpu",
	"mean_output_token_throughput_per_user", "request_throughput_rps", "sla_attainment", "prefix_cache_reused_ratio",
	"queue_time_share", "prefill_time_share", "transfer_time_share", "decode_time_share", "stall_time_share",
}

// shown are the columns of the figures: the objective, what is bounded, and the usual ones, as far as they are numbers.
func (g *group) shown() []string {
	names := []string{g.request.Objective.Name}
	for _, b := range g.bounds {
		if !g.selects(b) {
			names = append(names, b.Column)
		}
	}
	var out []string
	for _, name := range append(names, usualFigures...) {
		c := g.table.Column(name)
		if c == nil || slices.Contains(out, name) || !c.Numeric() {
			continue
		}
		out = append(out, name)
	}
	return out
}
