// Package fidelity says how far two runs of one workload agree: a capture and its replay, a live run and its simulation, or any
// two simulations.
//
// Read run.go for what is known of a run and read.go for the files that it comes from (readtable.go, readaiperf.go and
// readcapture.go know one kind each); join.go for which requests of both are the same, checks.go for what must be equal,
// deltas.go for how far the rest is apart, compare.go for the whole and verdict.go for it in words. The room page shows a
// comparison; calibrate fits the timing model to a run.
package fidelity
