package search

import (
	"math"
	"slices"
)

// BayesOptions configure [NewBayes].
type BayesOptions struct {
	// Points is how many trials the search may take, which decides how many come first to get to know the space; 0 means
	// many.
	Points int
}

// NewBayes returns a Bayesian strategy: after a first design it learns Gaussian processes of all objectives and
// constraints and asks for the places that are expected to add the most hypervolume to the frontier, weighted by how
// likely they keep the constraints. Within a batch, a place that was asked for counts as if it had given what was
// expected of it. See M. Emmerich, K. Giannakoglou, B. Naujoks, "Single- and Multiobjective Evolutionary Optimization
// Assisted by Gaussian Random Field Metamodels", IEEE Transactions on Evolutionary Computation 10(4), 2006.
func NewBayes(space Space, opt BayesOptions, seed uint64) Strategy {
	b := &bayes{h: newHistory(space, seed), model: surrogate{space: space}}
	b.first = b.h.design(designSize(space, opt.Points))
	return b
}

// designSize is the number of trials that come before a strategy learns from them: about four for each dimension and
// choice, and a fifth of the budget at most.
func designSize(space Space, points int) int {
	n := 0
	for _, d := range space.Dimensions {
		if d.Values != nil {
			n += 3
		} else {
			n += min(d.Size, 8)
		}
	}
	n = max(n, 8)
	if points > 0 {
		n = max(2, min(n, points/5))
	}
	return n
}

type bayes struct {
	h     *history
	model surrogate
	first [][]int
}

// Ask returns what is left of the design, then the places of most expected improvement.
func (b *bayes) Ask(n int) []Trial {
	var out []Trial
	for len(out) < n && len(b.first) > 0 {
		out = append(out, b.h.trial(b.first[0]))
		b.first = b.first[1:]
	}
	if len(out) > 0 {
		return out
	}
	if b.model.update(b.h) {
		out = b.best(n)
	}
	for len(out) < n {
		place, ok := b.h.random()
		if !ok {
			break
		}
		out = append(out, b.h.trial(place))
	}
	return out
}

// Tell adds results.
func (b *bayes) Tell(results []Result) { b.h.tell(results) }

// maxConsidered bounds the places that a batch is chosen from.
const maxConsidered = 1500

// best chooses up to n places.
func (b *bayes) best(n int) []Trial {
	front := b.h.front()
	candidates := b.candidates(front)
	expectations := make([]expectation, len(candidates))
	for i, c := range candidates {
		expectations[i] = b.model.expect(c)
	}
	if len(front) == 0 {
		return b.towardsFeasible(expectations, n)
	}
	points := make([][]float64, len(front))
	for i, r := range front {
		points[i] = r.Objectives
	}
	bold := n / 8
	m := newImprovement(points)
	out := b.byImprovement(m, expectations, n-bold)
	for i := range expectations {
		e := &expectations[i]
		if !b.h.open(e.place) {
			e.probability = 0
		}
		e.probability = math.Sqrt(e.probability)
		for o := range e.deviation {
			e.deviation[o] *= 3
		}
	}
	return append(out, b.byImprovement(m, expectations, n-len(out))...)
}

func (b *bayes) byImprovement(m *improvement, expectations []expectation, n int) []Trial {
	scores := make([]float64, len(expectations))
	for i := range expectations {
		scores[i] = m.expected(&b.model, &expectations[i])
	}
	var out []Trial
	for len(out) < n {
		// Scores only fall as the frontier grows, so the best one that is still right is the best.
		fresh := make([]bool, len(scores))
		at := -1
		for {
			at = indexOfMax(scores)
			if at < 0 || !(scores[at] > 0) {
				return out
			}
			if fresh[at] {
				break
			}
			scores[at], fresh[at] = m.expected(&b.model, &expectations[at]), true
		}
		e := expectations[at]
		scores[at] = -1
		out = append(out, b.h.trial(e.place))
		p := make([]float64, len(e.mean))
		for o, v := range e.mean {
			p[o] = b.model.objective(o, v)
		}
		m.add(p)
	}
	return out
}

// towardsFeasible chooses the places that most likely keep the constraints.
func (b *bayes) towardsFeasible(expectations []expectation, n int) []Trial {
	scores := make([]float64, len(expectations))
	for i, e := range expectations {
		scores[i] = e.probability
	}
	var out []Trial
	for len(out) < n {
		at := indexOfMax(scores)
		if at < 0 || scores[at] < 0 {
			break
		}
		scores[at] = -1
		out = append(out, b.h.trial(expectations[at].place))
	}
	return out
}

// indexOfMax returns the first of the largest values, -1 when there is none.
func indexOfMax(values []float64) int {
	best := -1
	for i, v := range values {
		if best < 0 || v > values[best] {
			best = i
		}
	}
	return best
}

// candidates returns open places: all that are one or two moves from the frontier, and random ones.
func (b *bayes) candidates(front []Result) [][]int {
	seen := map[string]bool{}
	var out [][]int
	add := func(place []int) {
		if key := keyOf(place); !seen[key] {
			seen[key] = true
			if b.h.open(place) {
				out = append(out, slices.Clone(place))
			}
		}
	}
	centres := front
	if len(centres) == 0 {
		ranked := rankResults(b.h.results)
		centres = ranked[:min(len(ranked), 20)]
	}
	for _, r := range centres {
		b.h.space.neighbours(r.Place, func(int) int { return 1 }, add)
	}
	for range maxConsidered / 4 {
		if place, ok := b.h.random(); ok {
			add(place)
		}
	}
	for tries := 0; tries < maxConsidered && len(out) < maxConsidered && len(centres) > 0; tries++ {
		place := slices.Clone(centres[b.h.src.IntN(len(centres))].Place)
		for range 2 + b.h.src.IntN(2) {
			b.h.move(place)
		}
		add(place)
	}
	return out
}

// move changes one place: an ordered one by a few steps, others to any.
func (h *history) move(place []int) {
	i := h.src.IntN(len(place))
	d := h.space.Dimensions[i]
	if d.Values == nil {
		place[i] = h.src.IntN(d.Size)
		return
	}
	step := 1 + h.src.IntN(2)
	if h.src.IntN(2) == 0 {
		step = -step
	}
	place[i] = min(max(place[i]+step, 0), d.Size-1)
}

// neighbours calls add with the places that are one move away: so many steps up and down along each ordered dimension,
// and every other choice. The place that add gets is valid during the call.
func (s Space) neighbours(place []int, step func(dimension int) int, add func([]int)) {
	at := slices.Clone(place)
	for i, d := range s.Dimensions {
		was := at[i]
		if d.Values == nil {
			for c := range d.Size {
				if c != was {
					at[i] = c
					add(at)
				}
			}
		} else {
			for _, to := range []int{was - step(i), was + step(i)} {
				if to = min(max(to, 0), d.Size-1); to != was {
					at[i] = to
					add(at)
				}
			}
		}
		at[i] = was
	}
}
