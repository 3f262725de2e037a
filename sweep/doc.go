// Package sweep runs the points of a grid: each is simulated once, on all cores, and what is finished stays
// finished, whatever happens to the process.
//
// [Run] is the whole job. It takes the points of an expanded spec and an output folder, and returns one row for
// each point in the order of the expansion. The folder holds
//
//   - journal.jsonl, to which every finished point is appended. A point is reported as finished only after its
//     line is on the disk, at most a fraction of a second later. This file is what a resumed sweep reads.
//   - results.parquet, which is replaced as a whole from time to time and at the end. It is always complete and
//     readable.
//   - .sweep.lock, which keeps a second sweep out of the folder. The operating system gives the lock back when
//     the process ends, also when it is killed.
//
// A point's name is its content ID. It depends on the configuration and on the requests, so an edited or extended
// spec runs just the points that the journal does not have. [Plan] says what would run and why; [Estimate]
// says how long it would take; [Tracker] turns what an [Observer] sees into progress.
//
// Read run.go first, then dispatch.go (which point runs when), point.go (one point: timeout, panic, reasons),
// ledger.go (what is finished), journal.go and commit.go (how it is kept), folder.go (whose folder it is) and
// publish.go (the results file); inspect.go looks at a folder from outside. workloads.go and memory.go decide what is in memory at once.
package sweep
