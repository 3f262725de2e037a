// Package report writes what was measured in a live run: the row of results with the columns of simulated points, the requests,
// what the servers said of themselves, the facts of the run, the files of AIPerf, and a page.
//
// Read write.go for the folder, records.go for how a live request becomes one of the simulator's, and journal.go for how a run
// that is killed is not lost.
package report
