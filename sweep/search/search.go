// Package search chooses which points of a large space to simulate, so that a study finds its frontier, or the edge of
// its SLA, with a small part of the points.
//
// A [Strategy] is asked for trials and told what they gave; it knows nothing of simulations, so every strategy runs on a
// made-up function in its tests. Whoever drives it (package sweep) simulates the trials in any order, on any number of
// cores, and tells the results in the order in which they were asked for: the same space, strategy and seed give the
// same trials, whatever the parallelism, and a search that is run again asks for the same trials and finds them in the
// journal.
package search

// Dimension is one direction of a [Space]: an axis, or several that move together.
type Dimension struct {
	// Name is the column of the axis; names of axes that move together are joined by "+".
	Name string
	// Values holds a number for each place along the dimension, rising or falling, when the axis is numeric; it is nil for
	// choices without an order, such as policies.
	Values []float64
	// Size is the number of places.
	Size int
}

// Space is a lattice of candidates: a place along each dimension names one.
type Space struct {
	Dimensions []Dimension
	// Allowed reports whether a candidate exists: `exclude` drops some, others are impossible. Nil allows all.
	Allowed func(place []int) bool
}

// Trial is one candidate to evaluate.
type Trial struct {
	// Place holds the candidate's place along each dimension.
	Place []int
	// Fidelity is the share of the workload to replay, above 0 and up to 1, which is all of it.
	Fidelity float64
}

// Result is what a trial gave.
type Result struct {
	Trial
	// OK is false for a trial that failed or was skipped; it has no figures.
	OK bool
	// Objectives holds a figure for each objective, turned so that more is better; NaN where the point has none.
	Objectives []float64
	// Margins holds for each constraint how far the point keeps it, relative to its bound: 0.1 is 10 % within, -0.1 is
	// 10 % beyond. A point is feasible when none is below 0.
	Margins []float64
}

// Strategy decides which trials to run.
type Strategy interface {
	// Ask returns up to n trials that were not asked for before; none when the search is over. It may return fewer
	// than n while results are missing that the next ones depend on, but never none before the end when all results were told.
	Ask(n int) []Trial
	// Tell hears the results of trials in the order in which they were asked for.
	Tell([]Result)
}
