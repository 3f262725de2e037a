package recommend

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/results"
)

// distinctFigure is the least relative difference in a figure for which another value of a knob is worth naming.
const distinctFigure = 0.01

// runnersUp picks the best configurations that differ meaningfully from the best one and from each other: first other
// hardware, then the same divided otherwise, then, when these run out, other knobs that change a figure.
func (g *group) runnersUp(feasible []int, best int) []Alternative {
	chosen := []int{best}
	for _, differs := range []func(a, b int) bool{g.otherHardware, g.otherDeployment, g.otherKnobs} {
		left := feasible
		for len(chosen) <= g.request.RunnersUp {
			last := slices.Clone(chosen)
			left = slices.DeleteFunc(slices.Clone(left), func(row int) bool {
				return slices.ContainsFunc(last, func(c int) bool { return !differs(row, c) })
			})
			if len(left) == 0 {
				break
			}
			chosen = append(chosen, g.first(left))
		}
	}
	out := []Alternative{}
	for _, row := range chosen[1:] {
		out = append(out, g.alternative(row, best))
	}
	return out
}

// otherHardware reports whether two configurations differ in GPUs, their number, or the software on them.
func (g *group) otherHardware(a, b int) bool {
	return compareKnown(g.gpus[a], g.gpus[b]) != 0 || g.differ(hardware, a, b)
}

// otherDeployment reports whether two configurations differ in how the GPUs are divided.
func (g *group) otherDeployment(a, b int) bool { return g.differ(structural, a, b) }

// differ reports whether two configurations differ in some of the settings.
func (g *group) differ(settings []string, a, b int) bool {
	return slices.ContainsFunc(g.varied, func(c *results.Column) bool {
		return c.Role != results.RoleDerived && namedLike(c.Name, settings) && !sameValue(c, a, b)
	})
}

// otherKnobs reports whether two configurations differ in a setting, other than the load, and in a figure that counts.
func (g *group) otherKnobs(a, b int) bool {
	setting := slices.ContainsFunc(g.varied, func(c *results.Column) bool {
		return g.isSetting(c) && !isLoad(c) && !sameValue(c, a, b)
	})
	if !setting {
		return false
	}
	names := []string{g.request.Objective.Name, HourlyCostColumn}
	for i, c := range g.bounds {
		if !g.isBudget(i) {
			names = append(names, c.Column)
		}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		values := g.optional(name)
		return math.Abs(values[a]-values[b]) > distinctFigure*math.Max(math.Abs(values[a]), math.Abs(values[b]))
	})
}

func sameValue(c *results.Column, a, b int) bool {
	x, okX := c.Value(a)
	y, okY := c.Value(b)
	return okX == okY && x == y
}

// alternative describes a configuration beside the best one.
func (g *group) alternative(row, best int) Alternative {
	a := Alternative{Choice: *g.choice(row), Changes: []Change{}, WithinNoise: g.withinNoise(row, best)}
	for _, name := range g.shown() {
		values := g.optional(name)
		if from, to := values[best], values[row]; finite(from) && finite(to) && from != 0 && from != to {
			if share := (to - from) / math.Abs(from); finite(share) {
				a.Changes = append(a.Changes, Change{name, share})
			}
		}
	}
	for _, i := range g.budgetPlaces() {
		a.OverBudget = a.OverBudget || !g.keeps[i][row]
	}
	return a
}

// nextGPUs finds the best configuration with the next larger number of GPUs, of the same kind and under the same load as
// the best one, whatever the budget; nil when no such configuration keeps the limits.
func (g *group) nextGPUs(best int) *Alternative {
	next := math.Inf(1)
	var rows []int
	for _, row := range g.keeping(g.budgetPlaces()...) {
		if n := g.gpus[row]; n > g.gpus[best] && n <= next && g.comparable(row, best) {
			if n < next {
				next, rows = n, nil
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	a := g.alternative(g.first(rows), best)
	return &a
}

// comparable reports whether two configurations have GPUs of the same kind and the same load.
func (g *group) comparable(a, b int) bool {
	return !slices.ContainsFunc(g.varied, func(c *results.Column) bool {
		return (isLoad(c) || namedLike(c.Name, []string{"gpu"})) && !sameValue(c, a, b)
	})
}
