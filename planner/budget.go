package planner

import "math"

// withinBudget changes numbers of workers so that their GPUs are within the budget: proportionally if there are two pools
// (planner specification §11).
func (c *core) withinBudget(wanted proposal) proposal {
	if c.aggregated() {
		return proposal{c.withinBudgetAlone(max(wanted[0], c.config.MinEndpoint))}
	}
	return c.withinBudgetTogether(wanted)
}

// floor is the least number of GPUs; with relaxed rules it may be missed by those of the greatest worker.
func (c *core) floor() float64 {
	floor := float64(c.config.MinGPUBudget)
	if c.rules.RelaxedFloor && c.config.MinGPUBudget >= 0 && c.config.MaxGPUBudget >= 0 {
		greatest := 0
		for _, p := range c.pools {
			greatest = max(greatest, p.gpus)
		}
		floor -= float64(greatest)
	}
	return floor
}

// withinBudgetAlone is for one pool.
func (c *core) withinBudgetAlone(n int) int {
	least, gpus := c.config.MinEndpoint, c.pools[0].gpus
	switch total := n * gpus; {
	case c.config.MaxGPUBudget >= 0 && total > c.config.MaxGPUBudget:
		if least*gpus > c.config.MaxGPUBudget && c.rules.BudgetCanEmpty {
			return 0
		}
		return max(least, c.config.MaxGPUBudget/gpus)
	case c.config.MinGPUBudget >= 0 && float64(total) < c.floor():
		n = max(least, ceilDiv(c.config.MinGPUBudget, gpus))
		if !c.rules.RelaxedFloor && c.config.MaxGPUBudget >= 0 {
			n = max(least, min(n, c.config.MaxGPUBudget/gpus))
		}
		return n
	}
	return n
}

// withinBudgetTogether is for two pools.
func (c *core) withinBudgetTogether(wanted proposal) proposal {
	total := wanted[0]*c.pools[0].gpus + wanted[1]*c.pools[1].gpus
	switch {
	case c.config.MaxGPUBudget >= 0 && total > c.config.MaxGPUBudget:
		return c.shrink(wanted, total)
	case c.config.MinGPUBudget >= 0 && float64(total) < c.floor():
		return c.grow(wanted, total)
	}
	return wanted
}

// shrink takes workers of both pools away, in proportion.
func (c *core) shrink(wanted proposal, total int) proposal {
	least, most := c.config.MinEndpoint, c.config.MaxGPUBudget
	first, second := c.pools[0].gpus, c.pools[1].gpus
	if least*(first+second) > most {
		if c.rules.BudgetCanEmpty {
			return proposal{0, 0}
		}
		return proposal{least, least}
	}
	scaled := math.Floor(float64(wanted[0]) * (float64(most) / float64(total)))
	p := max(least, min((most-least*second)/first, int(scaled)))
	return proposal{p, max(least, (most-p*first)/second)}
}

// grow adds workers to both pools, in proportion, unless that would be too many.
func (c *core) grow(wanted proposal, total int) proposal {
	least, floor := c.config.MinEndpoint, c.config.MinGPUBudget
	first, second := c.pools[0].gpus, c.pools[1].gpus
	p := float64(floor) / 2 / float64(first)
	if total > 0 {
		p = float64(wanted[0]) * float64(floor) / float64(total)
	}
	grown := proposal{max(least, int(math.Ceil(p))), 0}
	grown[1] = max(least, ceilDiv(max(0, floor-grown[0]*first), second))
	if c.config.MaxGPUBudget >= 0 && grown[0]*first+grown[1]*second > c.config.MaxGPUBudget {
		return wanted
	}
	return grown
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
