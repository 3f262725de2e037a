package search

import (
	"cmp"
	"math"
	"slices"
)

// improvement measures how much of a frontier's box a point would add to what the frontier dominates.
type improvement struct {
	box    Box
	front  [][]float64 // scaled to the box; for two objectives rising in the first
	origin []float64
}

// reach is how far below the frontier known so far a point may be in one objective and still add something, as a share of
// its range: the ends of the frontier lie there.
const reach = 1

func newImprovement(front [][]float64) *improvement {
	m := &improvement{box: boxOf(front, reach)}
	m.origin = make([]float64, len(m.box.low))
	for _, p := range front {
		m.add(p)
	}
	return m
}

// add makes a point part of the frontier.
func (m *improvement) add(p []float64) {
	scaled := m.box.scale(p)
	if slices.ContainsFunc(m.front, func(q []float64) bool { return noWorse(q, scaled, len(q)) }) {
		return
	}
	m.front = append(slices.DeleteFunc(m.front, func(q []float64) bool { return dominates(scaled, q) }), scaled)
	slices.SortFunc(m.front, func(a, b []float64) int { return cmp.Compare(a[0], b[0]) })
}

// of returns the volume that a point adds, as a share of the box.
func (m *improvement) of(p []float64) float64 {
	scaled := m.box.scale(p)
	if len(scaled) == 2 {
		return m.ofTwo(scaled)
	}
	own := 1.0
	for _, v := range scaled {
		own *= max(v, 0)
	}
	if own == 0 {
		return 0
	}
	// What the frontier dominates within the box of the point alone.
	limited := make([][]float64, len(m.front))
	for i, q := range m.front {
		limited[i] = make([]float64, len(q))
		for j, v := range q {
			limited[i][j] = min(v, scaled[j])
		}
	}
	return max(own-Hypervolume(limited, m.origin), 0)
}

// nearly scores a point by what it adds, or, when that is nothing, by how little it lacks: less than 0. A violation of
// the constraints counts like a lack.
func (m *improvement) nearly(p []float64, violation float64) float64 {
	if gain := m.of(p); gain > 0 && violation == 0 {
		return gain
	}
	scaled := m.box.scale(p)
	lack := 0.0
	for _, q := range m.front {
		least := math.Inf(1)
		for i, v := range q {
			least = min(least, v-scaled[i])
		}
		lack = max(lack, least)
	}
	return -lack - violation
}

// ofTwo adds up the columns between a point and the stairs of the frontier.
func (m *improvement) ofTwo(p []float64) float64 {
	if !(p[0] > 0 && p[1] > 0) {
		return 0
	}
	total, left := 0.0, 0.0
	for _, q := range m.front {
		right := min(q[0], p[0])
		if right > left {
			total += (right - left) * max(p[1]-max(q[1], 0), 0)
			left = right
		}
		if left >= p[0] {
			return total
		}
	}
	return total + (p[0]-left)*p[1]
}

// The places and weights of the Gauss-Hermite rule of three points: it integrates a polynomial of up to degree five of a
// normally distributed variable exactly.
var (
	quadratureAt     = [3]float64{-math.Sqrt(3), 0, math.Sqrt(3)}
	quadratureWeight = [3]float64{1. / 6, 2. / 3, 1. / 6}
)

// expected returns the volume that a place adds by expectation, times the probability that it is feasible.
func (m *improvement) expected(s *surrogate, e *expectation) float64 {
	if e.probability < 1e-6 {
		return 0
	}
	k := len(e.mean)
	at := make([]int, k)
	p := make([]float64, k)
	total := 0.0
	for {
		weight := 1.0
		for o := range p {
			weight *= quadratureWeight[at[o]]
			p[o] = s.objective(o, e.mean[o]+quadratureAt[at[o]]*e.deviation[o])
		}
		total += weight * m.of(p)
		i := k - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(quadratureAt) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return total * e.probability
		}
	}
}
