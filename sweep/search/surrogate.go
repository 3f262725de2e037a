package search

import (
	"math"
	"slices"
)

// surrogate expects the figures of places from those of other places: a process for each objective and constraint.
type surrogate struct {
	space      Space
	objectives []*process
	signs      []float64 // of objectives that are modelled by their logarithm; 0 for others
	margins    []*process
}

// maxLearnt bounds the results that a surrogate is made of, maxTuned those that its weights are learnt from: the cost
// grows with their cube.
const (
	maxLearnt = 240
	maxTuned  = 100
)

// update learns from results that succeeded; false while there are too few.
func (s *surrogate) update(h *history) bool {
	chosen := h.choose(maxLearnt)
	if len(chosen) < 2*len(s.space.Dimensions) && len(chosen) < 8 {
		return false
	}
	s.objectives = s.models(s.objectives, len(chosen[0].Objectives))
	s.margins = s.models(s.margins, len(chosen[0].Margins))
	s.signs = make([]float64, len(s.objectives))
	places := make([][]float64, len(chosen))
	for i, r := range chosen {
		places[i] = s.space.coordinates(r.Place)
	}
	for o, p := range s.objectives {
		values := make([]float64, len(chosen))
		for i, r := range chosen {
			values[i] = r.Objectives[o]
		}
		if s.signs[o] = commonSign(values); s.signs[o] != 0 {
			for i, v := range values {
				values[i] = math.Log(math.Abs(v))
			}
		}
		p.update(places, values)
	}
	for m, p := range s.margins {
		values := make([]float64, len(chosen))
		for i, r := range chosen {
			values[i] = marginScale(r.Margins[m])
		}
		p.update(places, values)
	}
	return true
}

func (p *process) update(places [][]float64, values []float64) {
	n := min(len(places), maxTuned)
	p.learn(places[:n], values[:n])
	for math.IsNaN(p.fit(places, values)) {
		p.noise = max(1e-6, 10*p.noise)
	}
}

// models returns n processes, those of before where there are so many.
func (s *surrogate) models(before []*process, n int) []*process {
	for len(before) < n {
		p := &process{noise: 1e-4, weights: make([]float64, len(s.space.Dimensions)), ordered: make([]bool, len(s.space.Dimensions))}
		for i, d := range s.space.Dimensions {
			p.ordered[i], p.weights[i] = d.Values != nil, 1
		}
		before = append(before, p)
	}
	return before[:n]
}

// commonSign is 1 when all values are above 0, -1 when all are below, and otherwise 0.
func commonSign(values []float64) float64 {
	switch {
	case !slices.ContainsFunc(values, func(v float64) bool { return !(v > 0) }):
		return 1
	case !slices.ContainsFunc(values, func(v float64) bool { return !(v < 0) }):
		return -1
	}
	return 0
}

// marginScale makes a margin additive: a latency of twice the bound is as far beyond it as one of half the bound is
// within.
func marginScale(m float64) float64 {
	switch {
	case math.IsNaN(m):
		return -3
	case m < 0:
		return max(-math.Log1p(-m), -3)
	}
	return -math.Log(max(1-m, 0.05))
}

// choose returns up to n results that the surrogate learns from, in an order in which every beginning has good ones and
// others: the best, and between them the rest from the newest on.
func (h *history) choose(n int) []Result {
	var usable []Result
	for _, r := range h.results {
		if r.complete() {
			usable = append(usable, r)
		}
	}
	if len(usable) == 0 {
		return nil
	}
	ranked := rankResults(usable)
	taken := map[string]bool{}
	var out []Result
	add := func(r Result) {
		if key := keyOf(r.Place); !taken[key] {
			taken[key] = true
			out = append(out, r)
		}
	}
	step := max(1, len(usable)/n)
	for i := 0; i < len(usable) && len(out) < n; i++ {
		add(ranked[i])
		if at := len(usable) - 1 - i*step; at >= 0 && len(out) < n {
			add(usable[at])
		}
	}
	return out
}

// expectation is what a surrogate expects of a place.
type expectation struct {
	place []int
	// mean and deviation are those of the objectives, in the scale of the model.
	mean, deviation []float64
	// keeps holds for each constraint by how many deviations it is expected to be kept, probability that of keeping all.
	keeps       []float64
	probability float64
}

// doubt makes the deviations larger by a factor.
func (e *expectation) doubt(factor float64) {
	e.probability = 1
	for i := range e.keeps {
		e.keeps[i] /= factor
		e.probability *= normalCDF(e.keeps[i])
	}
	for o := range e.deviation {
		e.deviation[o] *= factor
	}
}

func (s *surrogate) expect(place []int) expectation {
	at := s.space.coordinates(place)
	e := expectation{place: place, mean: make([]float64, len(s.objectives)), deviation: make([]float64, len(s.objectives)), probability: 1}
	for o, p := range s.objectives {
		e.mean[o], e.deviation[o] = p.at(at)
	}
	for _, p := range s.margins {
		mean, deviation := p.at(at)
		e.keeps = append(e.keeps, mean/max(deviation, 1e-9))
		e.probability *= normalCDF(e.keeps[len(e.keeps)-1])
	}
	return e
}

// means returns the expected objectives of a place and its expected violation, which take less time.
func (s *surrogate) means(place []int) (objectives []float64, violation float64) {
	at := s.space.coordinates(place)
	mean := make([]float64, len(s.objectives))
	for o, p := range s.objectives {
		mean[o] = p.expected(at)
	}
	for _, p := range s.margins {
		violation += max(-p.expected(at), 0)
	}
	return s.figures(mean), violation
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// figures turns figures of the model into the objectives' own.
func (s *surrogate) figures(values []float64) []float64 {
	out := make([]float64, len(values))
	for o, v := range values {
		out[o] = s.objective(o, v)
	}
	return out
}

// objective turns a figure of the model into the objective's own.
func (s *surrogate) objective(o int, v float64) float64 {
	if sign := s.signs[o]; sign != 0 {
		return sign * math.Exp(v)
	}
	return v
}
