package search

// RefineOptions configure [NewRefine].
type RefineOptions struct {
	// Points is how many trials the search may take, which decides how many come first to get to know the space; 0 means
	// many.
	Points int
}

// NewRefine returns a strategy that starts with a coarse design and refines around what is best: it asks for neighbours
// of the frontier, at a distance of half a dimension, a quarter, and so on down to one place, and first for those that
// are expected to add the most; random places are candidates too, so that a second hill is not missed. When no
// candidate promises anything it asks for the direct neighbours of the frontier that were not tried, after which no
// single move improves it, and then for random places.
func NewRefine(space Space, opt RefineOptions, seed uint64) Strategy {
	g := newGuided(space, opt.Points, seed)
	g.candidates = g.h.around
	g.rest = func(n int) [][]int {
		if out := g.h.untriedNeighbours(n); len(out) > 0 {
			return out
		}
		return g.h.randomPlaces(n)
	}
	return g
}

// elsewhere is how many random places a batch may be chosen from besides neighbours.
const elsewhere = 200

// around returns the neighbours of centres at every distance, the nearest first, and random places.
func (h *history) around(centres []Result) [][]int {
	p := newPlaces(h, maxConsidered)
	for range elsewhere {
		if place, ok := h.random(); ok {
			p.add(place)
		}
	}
	largest := 1
	for _, d := range h.space.Dimensions {
		if d.Values != nil {
			largest = max(largest, d.Size/2)
		}
	}
	for step := 1; step <= largest && !p.full(); step *= 2 {
		for _, r := range centres {
			h.space.neighbours(r.Place, step, p.add)
		}
	}
	return p.list
}

// untriedNeighbours returns up to n direct neighbours of the frontier.
func (h *history) untriedNeighbours(n int) [][]int {
	p := newPlaces(h, n)
	for _, r := range h.front() {
		h.space.neighbours(r.Place, 1, p.add)
	}
	return p.list
}
