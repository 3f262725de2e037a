package search

import (
	"cmp"
	"math"
	"slices"
)

// guided is what the strategies with a model have in common: a first design, then batches of those candidates that are
// expected to add the most hypervolume to the frontier, weighted by how likely they keep the constraints. Within a batch, a
// place that was asked for counts as if it had given what was expected of it. See M. Emmerich, K. Giannakoglou,
// B. Naujoks, "Single- and Multiobjective Evolutionary Optimization Assisted by Gaussian Random Field Metamodels", IEEE
// Transactions on Evolutionary Computation 10(4), 2006.
type guided struct {
	h     *history
	model surrogate
	first [][]int // what is left of the design
	// chosen counts the trials that were chosen by the model; the first doubtful of them with doubt.
	chosen, doubtful int
	// candidates returns open places to choose from, near centres: the frontier, or what is nearest to feasible.
	candidates func(centres []Result) [][]int
	// rest returns up to n open places for when no candidate promises anything; none ends the search.
	rest func(n int) [][]int
}

func newGuided(space Space, points int, seed uint64) *guided {
	g := &guided{h: newHistory(space, seed), model: surrogate{space: space}}
	g.first = g.h.design(designSize(space, points))
	g.doubtful = math.MaxInt
	if points > 0 {
		g.doubtful = points / 2
	}
	return g
}

// designSize is the number of trials that come before a strategy learns from them: three for each ordered dimension, one
// for each choice of others, and a fifth of the budget at most.
func designSize(space Space, points int) int {
	n := 0
	for _, d := range space.Dimensions {
		if d.Values != nil {
			n += 3
		} else {
			n += min(d.Size, maxDesigned)
		}
	}
	n = max(n, minDesign)
	if points > 0 {
		n = max(2, min(n, points/5))
	}
	return n
}

const (
	minDesign   = 8
	maxDesigned = 8 // choices of a dimension that count for the design
)

// Ask returns what is left of the design, then the candidates that promise most, then the rest.
func (g *guided) Ask(n int) []Trial {
	var out []Trial
	for len(out) < n && len(g.first) > 0 {
		out = append(out, g.h.trial(g.first[0]))
		g.first = g.first[1:]
	}
	if len(out) > 0 {
		return out
	}
	if g.model.update(g.h) {
		out = g.best(n)
	}
	for len(out) < n {
		places := g.rest(n - len(out))
		if len(places) == 0 {
			break
		}
		for _, p := range places {
			out = append(out, g.h.trial(p))
		}
	}
	return out
}

// Tell adds results.
func (g *guided) Tell(results []Result) { g.h.tell(results) }

// maxCentres bounds the results that candidates are sought around while none is feasible.
const maxCentres = 20

// best chooses up to n candidates.
func (g *guided) best(n int) []Trial {
	front := g.h.front()
	if len(front) == 0 {
		ranked := rankResults(g.h.results)
		return g.towardsFeasible(g.candidates(ranked[:min(len(ranked), maxCentres)]), n)
	}
	points := make([][]float64, len(front))
	for i, r := range front {
		points[i] = r.Objectives
	}
	m := newImprovement(points)
	expectations := g.promising(m, g.candidates(front))
	doubts := 0
	for range n {
		if g.chosen++; g.chosen%doubtEvery == 0 && g.chosen < g.doubtful {
			doubts++
		}
	}
	out := g.byImprovement(m, expectations, n-doubts)
	for i := range expectations {
		expectations[i].doubt(doubt)
	}
	expectations = slices.DeleteFunc(expectations, func(e expectation) bool { return !g.h.open(e.place) })
	return append(out, g.byImprovement(m, expectations, n-len(out))...)
}

// One in so many trials is chosen as if the model were so many times less sure of itself: where it errs it is too sure,
// and nothing else would show it.
const (
	doubtEvery = 5
	doubt      = 5
)

// maxWeighed bounds the candidates whose expectation is computed in full.
const maxWeighed = 400

// promising returns what is expected of the candidates that would add the most if what the model expects came true.
func (g *guided) promising(m *improvement, candidates [][]int) []expectation {
	if len(candidates) > maxWeighed {
		type scored struct {
			place []int
			score float64
		}
		all := make([]scored, len(candidates))
		for i, c := range candidates {
			all[i] = scored{c, m.nearly(g.model.means(c))}
		}
		slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		for i := range maxWeighed {
			candidates[i] = all[i].place
		}
		candidates = candidates[:maxWeighed]
	}
	out := make([]expectation, len(candidates))
	for i, c := range candidates {
		out[i] = g.model.expect(c)
	}
	return out
}

func (g *guided) byImprovement(m *improvement, expectations []expectation, n int) []Trial {
	scores := make([]float64, len(expectations))
	for i := range expectations {
		scores[i] = m.expected(&g.model, &expectations[i])
	}
	var out []Trial
	for len(out) < n {
		at := m.best(&g.model, expectations, scores)
		if at < 0 {
			break
		}
		scores[at] = 0
		out = append(out, g.h.trial(expectations[at].place))
		m.add(g.model.figures(expectations[at].mean))
	}
	return out
}

// best returns the place with the highest score, -1 when none promises anything. Scores only fall while the frontier
// grows, so the highest is the best as soon as it is up to date.
func (m *improvement) best(s *surrogate, expectations []expectation, scores []float64) int {
	fresh := -1
	for {
		at := indexOfMax(scores)
		if at < 0 || scores[at] <= negligible {
			return -1
		}
		if at == fresh {
			return at
		}
		scores[at], fresh = m.expected(s, &expectations[at]), at
	}
}

// negligible is the share of the box below which an expected improvement is none.
const negligible = 1e-9

// towardsFeasible chooses the candidates that most likely keep the constraints.
func (g *guided) towardsFeasible(candidates [][]int, n int) []Trial {
	scores := make([]float64, len(candidates))
	for i, c := range candidates {
		scores[i] = g.model.expect(c).probability
	}
	var out []Trial
	for len(out) < min(n, len(candidates)) {
		at := indexOfMax(scores)
		scores[at] = -1
		out = append(out, g.h.trial(candidates[at]))
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

// randomPlaces returns up to n different open places.
func (h *history) randomPlaces(n int) [][]int {
	p := newPlaces(h, n)
	for range n {
		place, ok := h.random()
		if !ok {
			break
		}
		p.add(place)
	}
	return p.list
}

// places gathers different open places, up to a limit.
type places struct {
	h     *history
	limit int
	seen  map[string]bool
	list  [][]int
}

func newPlaces(h *history, limit int) *places {
	return &places{h: h, limit: limit, seen: map[string]bool{}}
}

func (p *places) full() bool { return len(p.list) >= p.limit }

// add adds a place that may change later.
func (p *places) add(place []int) {
	if p.full() {
		return
	}
	if key := keyOf(place); !p.seen[key] {
		p.seen[key] = true
		if p.h.open(place) {
			p.list = append(p.list, slices.Clone(place))
		}
	}
}
