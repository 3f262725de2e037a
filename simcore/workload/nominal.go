package workload

import (
	"cmp"
	"math"
	"slices"
)

// nominalStarts says when each request would start if each took the time that service says, in ms from the workload's
// own zero. Sessions that do not say when they start do so at 0.
func (w *Workload) nominalStarts(service func(request int) float64) []float64 {
	if w.Graph != nil {
		return w.graphStarts(service)
	}
	starts := make([]float64, w.Requests())
	for s := range w.Sessions() {
		at := w.ArrivalMs[w.SessionStart[s]]
		if math.IsNaN(at) {
			at = 0
		}
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			at += w.DelayMs[i]
			starts[i] = at
			at += service(int(i))
		}
	}
	return starts
}

// graphStarts goes through a graph from its roots on.
func (w *Workload) graphStarts(service func(request int) float64) []float64 {
	g, n := w.Graph, w.Requests()
	starts, waits := make([]float64, n), make([]int, n)
	ready := make([]int32, 0, n)
	for i := range int32(n) {
		starts[i] = g.NotBeforeMs[i]
		if waits[i] = len(g.Edges(i)); waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for at := 0; at < len(ready); at++ {
		r := ready[at]
		if math.IsInf(starts[r], -1) {
			starts[r] = 0
		}
		starts[r] += w.DelayMs[r]
		for _, e := range g.Dependants(r) {
			from := starts[r] + e.DelayMs
			if e.Trigger == OnCompletion {
				from += service(int(r))
			}
			starts[e.From] = max(starts[e.From], from)
			if waits[e.From]--; waits[e.From] == 0 {
				ready = append(ready, e.From)
			}
		}
	}
	return starts
}

// recordedService is how long a request took in the trace, in ms; 0 when it does not say.
func (w *Workload) recordedService(request int) float64 {
	if w.Graph == nil {
		return 0
	}
	took := w.Graph.RecordedEndMs[request] - w.Graph.RecordedStartMs[request]
	if !(took > 0) {
		return 0
	}
	return took
}

// startOrder lists the requests by start, those that start together in the order of the source.
func startOrder(w *Workload) []int {
	starts := w.nominalStarts(w.recordedService)
	order := make([]int, w.Requests())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if by := cmp.Compare(starts[a], starts[b]); by != 0 || w.Graph == nil {
			return by
		}
		return cmp.Compare(w.Graph.Rank[a], w.Graph.Rank[b])
	})
	return order
}
