package recommend

import (
	"cmp"
	"math"
	"slices"

	"github.com/servegrid/servegrid/results"
)

// mostRelaxed bounds how far beyond a bound a relaxation looks, as a share of the bound: up to twice what was asked. A bound
// from below gives way to half of it; a share of a half or more, such as an attainment of 0.95, until twice as many are missed: 0.9.
func mostRelaxed(c results.Constraint) float64 {
	bound := c.Bound.Float64()
	switch {
	case c.Operator == "<" || c.Operator == "<=":
		return 1
	case bound > .5 && bound <= 1:
		return min(.5, (1-bound)/bound+1e-9) // what arithmetic leaves does not decide
	}
	return .5
}

// relaxations says for each limit and budget with a distance what giving way would buy compared with the best
// configuration, or, when that is nil, what would be feasible then.
func (g *group) relaxations(best *int) []Relaxation {
	out := []Relaxation{}
	for i, c := range g.bounds {
		rows := g.keeping(i)
		rows = slices.DeleteFunc(rows, func(row int) bool {
			v, measured := g.measured(c, row)
			return g.keeps[i][row] || !measured || best != nil && headroom(c, v) < -mostRelaxed(c)
		})
		if len(rows) == 0 {
			continue
		}
		row, gain := g.least(rows, c), 0.0
		if best != nil {
			row = g.first(rows)
			gain = (g.objective[row] - g.objective[*best]) / math.Abs(g.objective[*best])
			if !(gain > g.request.Tolerance) || !finite(gain) {
				continue
			}
		}
		needed, _ := g.measured(c, row)
		out = append(out, Relaxation{Constraint: c, Needed: needed, Gain: gain, Choice: *g.choice(row)})
	}
	slices.SortStableFunc(out, func(a, b Relaxation) int {
		if best != nil {
			return cmp.Compare(b.Gain, a.Gain)
		}
		return cmp.Compare(headroom(b.Constraint, b.Needed), headroom(a.Constraint, a.Needed))
	})
	return out
}

// least returns the configuration that exceeds a bound the least.
func (g *group) least(rows []int, c results.Constraint) int {
	return slices.MinFunc(rows, func(a, b int) int {
		x, _ := g.measured(c, a)
		y, _ := g.measured(c, b)
		return cmp.Or(cmp.Compare(headroom(c, y), headroom(c, x)), g.prefer(a, b))
	})
}

// closest is the configuration whose largest miss is the smallest in proportion to its bound; nil when none was simulated
// or bounded figures are missing.
func (g *group) closest() *Choice {
	worst := map[int]float64{}
	rows := slices.DeleteFunc(slices.Clone(g.ok), func(row int) bool {
		least := math.Inf(1)
		for i, c := range g.bounds {
			if g.keeps[i][row] {
				continue
			}
			v, ok := g.measured(c, row)
			if !ok {
				return true
			}
			least = min(least, headroom(c, v))
		}
		worst[row] = least
		return false
	})
	if len(rows) == 0 {
		return nil
	}
	return g.choice(slices.MinFunc(rows, func(a, b int) int { return cmp.Or(cmp.Compare(worst[b], worst[a]), g.prefer(a, b)) }))
}
