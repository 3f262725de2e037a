package search

import (
	"math/bits"
	"slices"
)

// BayesOptions configure [NewBayes].
type BayesOptions struct {
	// Points is how many trials the search may take, which decides how many come first to get to know the space; 0 means
	// many.
	Points int
}

// NewBayes returns a Bayesian strategy: it learns Gaussian processes of all objectives and constraints and asks for the
// places of the whole space that are expected to add the most hypervolume to the frontier.
func NewBayes(space Space, opt BayesOptions, seed uint64) Strategy {
	g := newGuided(space, opt.Points, seed)
	g.candidates = g.h.anywhere
	g.rest = g.h.randomPlaces
	return g
}

// maxConsidered bounds the places that a batch is chosen from.
const maxConsidered = 1500

// anywhere returns the neighbours of centres, random places, and some a few moves from centres.
func (h *history) anywhere(centres []Result) [][]int {
	p := newPlaces(h, maxConsidered)
	for _, r := range centres {
		h.space.neighbours(r.Place, 1, p.add)
	}
	for range maxConsidered / 4 {
		if place, ok := h.random(); ok {
			p.add(place)
		}
	}
	for tries := 0; tries < maxConsidered && !p.full() && len(centres) > 0; tries++ {
		place := slices.Clone(centres[h.src.IntN(len(centres))].Place)
		for range 2 + h.src.IntN(2) {
			h.move(place)
		}
		p.add(place)
	}
	return p.list
}

// move changes one place: an ordered one by a step, others to any.
func (h *history) move(place []int) {
	i := h.src.IntN(len(place))
	d := h.space.Dimensions[i]
	if d.Values == nil {
		place[i] = h.src.IntN(d.Size)
		return
	}
	// Steps of half the dimension are as likely as those of a quarter, an eighth, and so on down to one.
	step := 1 << h.src.IntN(bits.Len(uint(max(1, d.Size/2))))
	if h.src.IntN(2) == 0 {
		step = -step
	}
	place[i] = min(max(place[i]+step, 0), d.Size-1)
}
