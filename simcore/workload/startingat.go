package workload

import (
	"fmt"
	"math"
)

// StartingAt returns the workload with each request released at a time of its own, in ms, whatever it waits for otherwise: the
// work of a run that took place, for comparisons. Requests whose time is +Inf are never released. There must be a time for each,
// and one that is not +Inf.
func (w *Workload) StartingAt(startsMs []float64) (*Workload, error) {
	if len(startsMs) != w.Requests() {
		return nil, fmt.Errorf("%s has %d requests, and there are %d starts", w.Name, w.Requests(), len(startsMs))
	}
	first := math.Inf(1)
	for i, at := range startsMs {
		if math.IsNaN(at) || at < 0 || at > maxTimeMs && !math.IsInf(at, 1) {
			return nil, fmt.Errorf("the start of request %d of %s is %v ms; give 0 or more", i, w.Name, at)
		}
		first = min(first, at)
	}
	if math.IsInf(first, 1) {
		return nil, fmt.Errorf("no request of %s starts", w.Name)
	}
	n := w.Requests()
	out := &Workload{
		Name: w.Name, Format: w.Format, Detected: w.Detected, Warnings: w.Warnings, LeftOut: w.LeftOut, BlockSize: w.BlockSize,
		Input: w.Input, Output: w.Output, ArrivalMs: filledWith(math.NaN(), n), DelayMs: make([]float64, n), SessionStart: w.SessionStart,
		ids: w.ids, sessionNames: w.sessionNames, names: w.names, runStart: w.runStart, runs: w.runs, planned: w.planned, hints: w.hints,
		measured: w.measured, transcripts: w.transcripts,
		chains: w.chains, tables: map[tableKey]*BlockTable{}, tableErrs: map[tableKey]error{}, tableOf: w.Blocks,
	}
	g := &Graph{
		Rank: make([]int32, n), NotBeforeMs: startsMs, Play: make([]int32, n), PlayNames: make([]string, n), Model: make([]int32, n),
		Parent: make([]int32, w.Sessions()), RecordedStartMs: filledWith(math.NaN(), n), RecordedEndMs: filledWith(math.NaN(), n), ToolWaitMs: make([]float64, n),
		inStart: make([]uint32, n+1), outStart: make([]uint32, n+1),
	}
	for i := range n {
		g.Rank[i], g.Play[i], g.PlayNames[i], g.Model[i] = int32(i), int32(i), fmt.Sprint(i), -1
	}
	for s := range g.Parent {
		g.Parent[s] = -1
	}
	if w.Graph != nil { // what starts together goes in the order in which it went
		g.Rank = w.Graph.Rank
	}
	out.Graph = g
	out.digest = out.computeDigest()
	return out, nil
}

func filledWith(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}
