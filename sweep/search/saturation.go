package search

import (
	"cmp"
	"math"
	"slices"
)

// SaturationOptions configure a [Saturation].
type SaturationOptions struct {
	// Axis is the name of the dimension along which the edge is looked for, such as "rate".
	Axis string
	// Smallest looks for the smallest value that keeps the constraints, as with a number of workers, instead of the largest,
	// as with a rate.
	Smallest bool
	// Tolerance is how far apart the last value that keeps them and the first that does not may be, relative to the smaller
	// one; 0 goes on until they are neighbours.
	Tolerance float64
	// Checks is the number of further values on either side of the edge that are tried once it is found, to see whether
	// there is just one.
	Checks int
}

// Saturation finds for each combination of all other dimensions where an axis stops keeping the constraints, by bisection:
// a dozen trials for a thousand values. As many combinations are under way at a time as trials are asked for.
//
// Bisection finds a value that keeps the constraints next to one that does not. Where there are several such edges,
// since latencies near saturation are chaotic, it finds one of them; the checks tell.
type Saturation struct {
	space    Space
	opt      SaturationOptions
	axis     int
	order    []int     // places along the axis, from those that keep the constraints most easily
	values   []float64 // at these places; nil when they are no numbers
	combined []int     // the combination that is begun next, as a place; nil after the last
	active   []*edgeSearch
	pending  []*edgeSearch
	edges    []*edgeSearch
}

// Edge is what a [Saturation] found for one combination.
type Edge struct {
	// Found says that the edge was found; otherwise the search ended before, and it is somewhere between Place and Next.
	Found bool
	// Place is the combination, at the last value of the axis that keeps the constraints, or at the easiest one that was
	// tried when Holds is false.
	Place []int
	// Holds says that some value keeps the constraints.
	Holds bool
	// Next is the first value beyond that does not keep them, as a place along the axis; -1 when all do.
	Next int
	// Regained are harder values that keep them all the same, and Dips easier ones that do not, as places along the axis.
	Regained, Dips []int
	// Failed counts the trials that failed. They keep nothing.
	Failed int
	// Trials counts all of them.
	Trials int
}

// NewSaturation returns the search for the edges of a space along a dimension, which must have that name. Nothing in it is
// random.
func NewSaturation(space Space, opt SaturationOptions, _ uint64) *Saturation {
	s := &Saturation{space: space, opt: opt, combined: make([]int, len(space.Dimensions))}
	s.axis = slices.IndexFunc(space.Dimensions, func(d Dimension) bool { return d.Name == opt.Axis })
	if s.axis < 0 || slices.ContainsFunc(space.Dimensions, func(d Dimension) bool { return d.Size == 0 }) {
		s.combined = nil
		return s
	}
	d := space.Dimensions[s.axis]
	s.order = make([]int, d.Size)
	for i := range s.order {
		s.order[i] = i
	}
	if len(d.Values) == d.Size {
		slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(d.Values[a], d.Values[b]) })
		s.values = d.Values
	}
	if opt.Smallest {
		slices.Reverse(s.order)
	}
	return s
}

// Ask returns the next trial of each combination under way, and begins further ones.
func (s *Saturation) Ask(n int) []Trial {
	var out []Trial
	s.pending = s.pending[:0]
	ask := func(e *edgeSearch) {
		if t, ok := e.next(); ok {
			out, s.pending = append(out, t), append(s.pending, e)
		}
	}
	for _, e := range s.active {
		if len(out) < n {
			ask(e)
		}
	}
	s.active = slices.DeleteFunc(s.active, func(e *edgeSearch) bool { return e.done })
	for len(out) < n && s.combined != nil {
		e := newEdgeSearch(s, s.combined)
		s.edges = append(s.edges, e)
		s.combined = s.following(s.combined)
		ask(e)
		if !e.done {
			s.active = append(s.active, e)
		}
	}
	return out
}

// following returns the combination after one, the last dimension fastest; nil after the last.
func (s *Saturation) following(place []int) []int {
	next := slices.Clone(place)
	for i := len(next) - 1; i >= 0; i-- {
		if i == s.axis {
			continue
		}
		if next[i]++; next[i] < s.space.Dimensions[i].Size {
			return next
		}
		next[i] = 0
	}
	return nil
}

// Tell hears whether the trials that were asked for keep the constraints.
func (s *Saturation) Tell(told []Result) {
	for i, r := range told {
		if i < len(s.pending) {
			s.pending[i].hear(r)
		}
	}
	s.pending = s.pending[:0]
}

// Edges returns what is known of each combination that was begun and has any candidates, in the order of the space.
func (s *Saturation) Edges() []Edge {
	var out []Edge
	for _, e := range s.edges {
		if len(e.tried) > 0 {
			out = append(out, e.edge())
		}
	}
	return out
}

// edgeSearch is the search of one combination. Steps number the values of the axis in its order: from those that keep the
// constraints most easily.
type edgeSearch struct {
	s     *Saturation
	place []int
	// kept is the hardest step that keeps the constraints, -1 before any does; lost is the easiest beyond that does not,
	// the number of steps before any does.
	kept, lost int
	asked      int
	tried      map[int]bool
	failed     int
	// checks are the steps still to be tried on either side of the edge; nil before it is found.
	checks []int
	found  bool
	done   bool
}

func newEdgeSearch(s *Saturation, combination []int) *edgeSearch {
	return &edgeSearch{s: s, place: combination, kept: -1, lost: len(s.order), tried: map[int]bool{}}
}

// next returns the trial that tells most; false when all is known.
func (e *edgeSearch) next() (Trial, bool) {
	if !e.found {
		if step, ok := e.middle(); ok {
			return e.trial(step), true
		}
		e.found, e.checks = true, e.besides()
	}
	if len(e.checks) == 0 {
		e.done = true
		return Trial{}, false
	}
	step := e.checks[0]
	e.checks = e.checks[1:]
	return e.trial(step), true
}

func (e *edgeSearch) trial(step int) Trial {
	e.asked = step
	return Trial{Place: e.at(step), Fidelity: 1}
}

// at is the place of a step.
func (e *edgeSearch) at(step int) []int {
	place := slices.Clone(e.place)
	place[e.s.axis] = e.s.order[step]
	return place
}

func (e *edgeSearch) allowed(step int) bool {
	return e.s.space.Allowed == nil || e.s.space.Allowed(e.at(step))
}

// middle returns the step nearest to the middle between what keeps the constraints and what does not; false when these
// are near enough, or nothing is between them.
func (e *edgeSearch) middle() (step int, ok bool) {
	if e.nearEnough() {
		return 0, false
	}
	middle := (e.kept + e.lost) / 2
	for d := 0; middle-d > e.kept || middle+d < e.lost; d++ {
		for _, step := range []int{middle - d, middle + d} {
			if step > e.kept && step < e.lost && e.allowed(step) {
				return step, true
			}
		}
	}
	return 0, false
}

func (e *edgeSearch) nearEnough() bool {
	if e.s.values == nil || e.kept < 0 || e.lost == len(e.s.order) {
		return false
	}
	a, b := e.s.values[e.s.order[e.kept]], e.s.values[e.s.order[e.lost]]
	return math.Abs(a-b) <= e.s.opt.Tolerance*min(math.Abs(a), math.Abs(b))
}

// besides lists steps on either side of the edge that were not tried, the nearest first.
func (e *edgeSearch) besides() []int {
	var out []int
	for _, from := range []struct{ step, by int }{{e.lost, 1}, {e.kept, -1}} {
		left := e.s.opt.Checks
		for step := from.step + from.by; left > 0 && step >= 0 && step < len(e.s.order); step += from.by {
			if !e.allowed(step) {
				continue
			}
			left--
			if _, tried := e.tried[step]; !tried {
				out = append(out, step)
			}
		}
	}
	return out
}

// hear takes in what the trial that was asked for gave.
func (e *edgeSearch) hear(r Result) {
	keeps := r.OK && r.Violation() == 0
	e.tried[e.asked] = keeps
	if !r.OK {
		e.failed++
	}
	switch {
	case e.found:
	case keeps:
		e.kept = e.asked
	default:
		e.lost = e.asked
	}
}

func (e *edgeSearch) edge() Edge {
	out := Edge{Found: e.found, Holds: e.kept >= 0, Next: -1, Failed: e.failed, Trials: len(e.tried)}
	if e.lost < len(e.s.order) {
		out.Next = e.s.order[e.lost]
	}
	out.Place = e.at(max(e.kept, 0))
	if !out.Holds {
		out.Place = e.at(e.lost) // nothing easier was left to try
	}
	for step := range e.s.order {
		switch keeps, tried := e.tried[step]; {
		case tried && keeps && step > e.lost:
			out.Regained = append(out.Regained, e.s.order[step])
		case tried && !keeps && step < e.kept:
			out.Dips = append(out.Dips, e.s.order[step])
		}
	}
	return out
}
