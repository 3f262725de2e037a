package search

import (
	"math"
	"slices"
)

// Front gathers results and keeps those that no other one dominates. Its zero value is empty.
type Front struct {
	members []Result
	// nearest is the smallest violation of a result while none is feasible.
	nearest float64
	any     bool
}

// Size is the number of results on the frontier; equal ones count once.
func (f *Front) Size() int { return len(f.members) }

// Members returns the results on the frontier in the order in which they came.
func (f *Front) Members() []Result { return slices.Clone(f.members) }

// Add adds results and returns which share of the frontier's hypervolume, in its [Box], is new. While no result is
// feasible it is 1 when one comes nearer to that than all before.
func (f *Front) Add(told []Result) (gain float64) {
	before := f.points()
	nearer := false
	for _, r := range told {
		switch {
		case r.Feasible():
			f.admit(r)
		case r.OK && len(f.members) == 0 && (!f.any || r.Violation() < f.nearest):
			nearer = f.any || nearer
			f.nearest, f.any = r.Violation(), true
		}
	}
	if len(f.members) == 0 {
		if nearer {
			return 1
		}
		return 0
	}
	after := f.points()
	box := BoxOf(after)
	all := box.Volume(after)
	return (all - box.Volume(before)) / all
}

func (f *Front) admit(r Result) {
	for _, m := range f.members {
		if noWorse(m.Objectives, r.Objectives, len(r.Objectives)) {
			return
		}
	}
	f.members = append(slices.DeleteFunc(f.members, func(m Result) bool { return dominates(r.Objectives, m.Objectives) }), r)
}

func (f *Front) points() [][]float64 {
	out := make([][]float64, len(f.members))
	for i, m := range f.members {
		out[i] = m.Objectives
	}
	return out
}

// Feasible reports whether the trial succeeded, keeps every constraint and has a figure for each objective.
func (r Result) Feasible() bool {
	return r.complete() && r.Violation() == 0
}

// complete reports whether the trial succeeded and has a finite figure for each objective.
func (r Result) complete() bool {
	return r.OK && len(r.Objectives) > 0 && !slices.ContainsFunc(r.Objectives, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// Violation is how far the trial is beyond its constraints: the sum of its negative margins, 0 when it keeps all. A
// margin that is no number counts 1.
func (r Result) Violation() float64 {
	total := 0.0
	for _, m := range r.Margins {
		switch {
		case math.IsNaN(m):
			total++
		case m < 0:
			total -= m
		}
	}
	return total
}
