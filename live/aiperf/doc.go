// Package aiperf reads and writes the files of NVIDIA AIPerf 0.13, so that tools for its runs read ours and the other way round.
//
// Read record.go for a request, summary.go for the statistics over all of them, and write.go for the files of a run.
package aiperf
