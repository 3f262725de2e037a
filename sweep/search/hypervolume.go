package search

import (
	"cmp"
	"math"
	"slices"
)

// Hypervolume returns the volume of what some points dominate, above a reference: the measure of the union of the boxes
// between the reference and each point. More is better in every coordinate. Points that are not above the reference in
// every coordinate, or have no number in one, add nothing. It is exact (by slicing along the last coordinate) and takes
// O(n log n) steps for one or two coordinates and a factor n more for each further one. See E. Zitzler, L. Thiele,
// "Multiobjective Optimization Using Evolutionary Algorithms", PPSN V, 1998.
func Hypervolume(points [][]float64, reference []float64) float64 {
	kept := make([][]float64, 0, len(points))
	for _, p := range points {
		if above(p, reference) {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 || len(reference) == 0 {
		return 0
	}
	return sliced(kept, reference)
}

func above(p, reference []float64) bool {
	for i, r := range reference {
		if !(p[i] > r) {
			return false
		}
	}
	return true
}

// sliced adds up slices: from the highest point downwards along the last coordinate, the points so far dominate
// an area of one coordinate less.
func sliced(points [][]float64, reference []float64) float64 {
	last := len(reference) - 1
	slices.SortFunc(points, func(a, b []float64) int { return cmp.Compare(b[last], a[last]) })
	switch last {
	case 0:
		return points[0][0] - reference[0]
	case 1:
		return area(points, reference)
	}
	total := 0.0
	below := make([][]float64, 0, len(points))
	for i, p := range points {
		below = nondominated(append(below, p), last)
		next := reference[last]
		if i+1 < len(points) {
			next = points[i+1][last]
		}
		if depth := p[last] - next; depth > 0 {
			total += depth * sliced(slices.Clone(below), reference[:last])
		}
	}
	return total
}

// area is the volume for two coordinates; the points fall in the second.
func area(points [][]float64, reference []float64) float64 {
	total, right := 0.0, reference[0]
	for _, p := range points {
		if p[0] > right {
			total += (p[0] - right) * (p[1] - reference[1])
			right = p[0]
		}
	}
	return total
}

// nondominated drops what the last point dominates, or the last point, in the first n coordinates. The others do not
// dominate each other.
func nondominated(points [][]float64, n int) [][]float64 {
	p := points[len(points)-1]
	rest := points[:len(points)-1]
	if slices.ContainsFunc(rest, func(q []float64) bool { return noWorse(q, p, n) }) {
		return rest
	}
	return append(slices.DeleteFunc(rest, func(q []float64) bool { return noWorse(p, q, n) }), p)
}

// noWorse reports whether a is at least as good as b in the first n coordinates.
func noWorse(a, b []float64, n int) bool {
	for i := range n {
		if !(a[i] >= b[i]) {
			return false
		}
	}
	return true
}

// dominates reports whether a is nowhere worse than b and better somewhere.
func dominates(a, b []float64) bool { return noWorse(a, b, len(a)) && !noWorse(b, a, len(a)) }

// Box is the range of a frontier, by which hypervolumes are made comparable: from its worst figure in each objective to
// the best, and a tenth of that further down, so that its ends count too.
type Box struct{ low, size []float64 }

// BoxOf returns the box of a frontier.
func BoxOf(frontier [][]float64) Box { return boxOf(frontier, boxMargin) }

func boxOf(frontier [][]float64, margin float64) Box {
	if len(frontier) == 0 {
		return Box{}
	}
	low, high := slices.Clone(frontier[0]), slices.Clone(frontier[0])
	for _, p := range frontier {
		for i, v := range p {
			low[i], high[i] = min(low[i], v), max(high[i], v)
		}
	}
	b := Box{low: low, size: make([]float64, len(low))}
	for i := range low {
		b.size[i] = high[i] - low[i]
		if b.size[i] == 0 {
			b.size[i] = max(math.Abs(high[i]), 1e-300)
		}
		b.low[i] -= margin * b.size[i]
		b.size[i] *= 1 + margin
	}
	return b
}

// boxMargin is how far a box goes on below the frontier, as a share of its range.
const boxMargin = 0.1

// Volume returns the hypervolume of points as a share of the box, above its lowest corner.
func (b Box) Volume(points [][]float64) float64 {
	scaled := make([][]float64, len(points))
	for i, p := range points {
		scaled[i] = b.scale(p)
	}
	return Hypervolume(scaled, make([]float64, len(b.low)))
}

// scale gives a point coordinates of 0 to 1 within the box.
func (b Box) scale(p []float64) []float64 {
	out := make([]float64, len(p))
	for i, v := range p {
		out[i] = (v - b.low[i]) / b.size[i]
	}
	return out
}
