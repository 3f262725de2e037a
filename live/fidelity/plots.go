package fidelity

// Points are the values of a metric in both runs, pair by pair in order of A's starts, for plots. AtMs is when a pair's request
// started in A, from the first one on; it is nil when A does not say.
type Points struct {
	// Delta is what sums them up.
	Delta *Delta
	// AtMs, A and B are as long as each other.
	AtMs, A, B []float64
}

// Points returns the values behind each delta.
func (c *Comparison) Points() []Points {
	var at []float64 // by pair
	if len(c.Deltas) > 0 && c.Deltas[0].Metric == "arrival" && len(c.Deltas[0].a) == len(c.pairs) {
		at = c.Deltas[0].a
	}
	out := make([]Points, len(c.Deltas))
	for i := range c.Deltas {
		d := &c.Deltas[i]
		out[i] = Points{Delta: d, A: d.a, B: d.b}
		if at == nil {
			continue
		}
		for _, place := range d.places {
			out[i].AtMs = append(out[i].AtMs, at[place])
		}
	}
	return out
}
