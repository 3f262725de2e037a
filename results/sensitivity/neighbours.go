package sensitivity

import (
	"cmp"
	"math"
	"slices"
)

// neighbours are the pairs of cells that differ in one factor only, by its next level that occurs, from lower to higher.
func (c *cells) neighbours(factor int) [][2]int {
	order := c.all()
	others := func(a, b int) int {
		for i := range c.factors {
			if i != factor && c.level[a][i] != c.level[b][i] {
				return cmp.Compare(c.level[a][i], c.level[b][i])
			}
		}
		return 0
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(others(a, b), cmp.Compare(c.level[a][factor], c.level[b][factor])) })
	var out [][2]int
	for i := 1; i < len(order); i++ {
		if others(order[i-1], order[i]) == 0 {
			out = append(out, [2]int{order[i-1], order[i]})
		}
	}
	return out
}

// Direction says how a metric moves when an axis of numbers grows and all else stays.
type Direction string

// The directions. An axis of names has none.
const (
	Rises       Direction = "rises"
	Falls       Direction = "falls"
	MostlyRises Direction = "mostly rises"
	MostlyFalls Direction = "mostly falls"
	Mixed       Direction = "mixed"
	Flat        Direction = "flat"
)

// mostly is the share of the steps that must agree.
const mostly = 0.9

// unmoved is the relative change that is only rounding.
const unmoved = 1e-9

// direction of a metric over steps, given as the values before and after.
func direction(steps [][2]float64) Direction {
	up, down := 0, 0
	for _, s := range steps {
		switch change := s[1] - s[0]; {
		case math.Abs(change) <= unmoved*max(math.Abs(s[0]), math.Abs(s[1])):
		case change > 0:
			up++
		default:
			down++
		}
	}
	share := float64(up) / float64(up+down)
	switch {
	case len(steps) == 0:
		return ""
	case up+down == 0:
		return Flat
	case down == 0:
		return Rises
	case up == 0:
		return Falls
	case share >= mostly:
		return MostlyRises
	case share <= 1-mostly:
		return MostlyFalls
	}
	return Mixed
}
