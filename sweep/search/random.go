package search

// NewRandom returns a strategy that asks for places at random, each once: what others are to be compared with.
func NewRandom(space Space, seed uint64) Strategy {
	return &random{newHistory(space, seed)}
}

type random struct{ h *history }

// Ask draws places.
func (r *random) Ask(n int) []Trial {
	var out []Trial
	for range n {
		place, ok := r.h.random()
		if !ok {
			break
		}
		out = append(out, r.h.trial(place))
	}
	return out
}

// Tell does nothing: no draw depends on results.
func (r *random) Tell([]Result) {}
