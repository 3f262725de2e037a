package search

import (
	"cmp"
	"math"
	"slices"
)

// EvolveOptions configure [NewEvolve].
type EvolveOptions struct {
	// Population is the number of trials that have offspring; 0 means 32.
	Population int
	// Points is how many trials the search may take, which decides how many come first to get to know the space; 0 means
	// many.
	Points int
}

// NewEvolve returns an evolutionary strategy in the manner of NSGA-II: the best trials so far, by dominance and then by
// how alone they are on their frontier, have offspring that mixes the places of two and moves some of them. A trial
// that keeps the constraints is better than one that does not, and of two that do not, the nearer one. More offspring is
// made than asked for: of that, the one is asked for that is expected to add the most. See K. Deb et al., "A Fast and
// Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE Transactions on Evolutionary Computation 6(2), 2002.
func NewEvolve(space Space, opt EvolveOptions, seed uint64) Strategy {
	if opt.Population < 2 {
		opt.Population = defaultPopulation
	}
	g := newGuided(space, opt.Points, seed)
	e := &evolution{h: g.h, population: opt.Population}
	g.candidates = func([]Result) [][]int { return e.offspring(maxOffspring) }
	g.rest = e.offspring
	return g
}

const (
	defaultPopulation = 32
	// maxOffspring is how many are made for one batch to choose from.
	maxOffspring = 600
)

// evolution makes offspring of what is remembered.
type evolution struct {
	h          *history
	population int
}

// offspring returns up to n open places.
func (e *evolution) offspring(n int) [][]int {
	parents := rankResults(e.h.results)
	parents = parents[:min(len(parents), e.population)]
	p := newPlaces(e.h, n)
	for tries := 0; tries < 2*n && !p.full() && len(parents) > 0; tries++ {
		place := e.cross(e.pick(parents), e.pick(parents))
		for range 1 + e.h.src.IntN(2) {
			e.h.move(place)
		}
		p.add(place)
	}
	if len(p.list) == 0 {
		return e.h.randomPlaces(n)
	}
	return p.list
}

// pick returns the better of two parents drawn at random.
func (e *evolution) pick(parents []Result) []int {
	return parents[min(e.h.src.IntN(len(parents)), e.h.src.IntN(len(parents)))].Place
}

// cross takes each place from one of two parents.
func (e *evolution) cross(a, b []int) []int {
	place := slices.Clone(a)
	for i := range place {
		if e.h.src.IntN(2) == 0 {
			place[i] = b[i]
		}
	}
	return place
}

// rankResults orders results that succeeded, the best first: by constraint violation, then by fronts of mutual
// non-dominance, then by crowding distance. Results without a figure come last.
func rankResults(results []Result) []Result {
	var feasible, rest []Result
	for _, r := range results {
		switch {
		case r.Feasible():
			feasible = append(feasible, r)
		case r.OK:
			rest = append(rest, r)
		}
	}
	out := make([]Result, 0, len(results))
	for len(feasible) > 0 {
		var f Front
		for _, r := range feasible {
			f.admit(r)
		}
		on := map[string]bool{}
		for _, m := range f.members {
			on[keyOf(m.Place)] = true
		}
		out = append(out, byCrowding(f.members)...)
		feasible = slices.DeleteFunc(feasible, func(r Result) bool { return on[keyOf(r.Place)] })
	}
	slices.SortStableFunc(rest, func(a, b Result) int { return cmp.Compare(a.Violation(), b.Violation()) })
	return append(out, rest...)
}

// byCrowding orders the results of a front, those with the widest gap to their neighbours first.
func byCrowding(front []Result) []Result {
	distance := make([]float64, len(front))
	order := make([]int, len(front))
	for i := range order {
		order[i] = i
	}
	for o := range front[0].Objectives {
		value := func(i int) float64 { return front[i].Objectives[o] }
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(a), value(b)) })
		span := value(order[len(order)-1]) - value(order[0])
		for k, i := range order {
			switch {
			case k == 0 || k == len(order)-1:
				distance[i] = math.Inf(1)
			case span > 0:
				distance[i] += (value(order[k+1]) - value(order[k-1])) / span
			}
		}
	}
	slices.Sort(order)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distance[b], distance[a]) })
	out := make([]Result, len(front))
	for k, i := range order {
		out[k] = front[i]
	}
	return out
}
