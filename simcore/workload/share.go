package workload

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// First returns the beginning of the workload: as many whole sessions, or plays where requests wait for each other, as have
// that share of the requests, in the order in which they start, and at least one. All else about them is as it was. A share
// of 1 is the workload itself.
//
// Where some session has no time it is the order in which a closed loop takes them.
func (w *Workload) First(share float64) *Workload {
	kept := w.firstSessions(share)
	if len(kept) == w.Sessions() {
		return w
	}
	out := &Workload{
		Name: w.Name, Format: w.Format, Detected: w.Detected, Warnings: w.Warnings, LeftOut: w.LeftOut, BlockSize: w.BlockSize,
		SessionStart: make([]int32, 1, len(kept)+1), names: w.names, runStart: []uint32{0},
		tables: map[tableKey]*BlockTable{}, tableErrs: map[tableKey]error{},
	}
	var requests []int32
	for _, s := range kept {
		for r := w.SessionStart[s]; r < w.SessionStart[s+1]; r++ {
			requests = append(requests, r)
		}
		out.SessionStart = append(out.SessionStart, int32(len(requests)))
		if w.sessionNames != nil {
			out.sessionNames = append(out.sessionNames, w.SessionName(int(s)))
		}
	}
	w.copyRequests(out, requests)
	if w.transcripts != nil {
		out.transcripts = w.transcripts.of(w, kept)
	}
	if w.Graph != nil {
		out.Graph = w.Graph.of(requests, kept)
	}
	out.chains = sync.OnceValue(func() *chainIndex { return newChainIndex(out) })
	out.digest = out.computeDigest()
	return out
}

// firstSessions lists the sessions that have the given share of the requests, by number.
func (w *Workload) firstSessions(share float64) []int32 {
	wanted := share * float64(w.Requests())
	unit, starts := w.units()
	sizes := make([]int, len(starts))
	for s := range unit {
		sizes[unit[s]] += int(w.SessionStart[s+1] - w.SessionStart[s])
	}
	order := make([]int32, len(starts))
	for i := range order {
		order[i] = int32(i)
	}
	if !slices.ContainsFunc(starts, math.IsNaN) {
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(starts[a], starts[b]) })
	}
	keeps, requests := make([]bool, len(starts)), 0
	for i, u := range order {
		if i > 0 && float64(requests) >= wanted {
			break
		}
		keeps[u] = true
		requests += sizes[u]
	}
	var kept []int32
	for s := range unit {
		if keeps[unit[s]] {
			kept = append(kept, int32(s))
		}
	}
	return kept
}

// units returns which unit each session belongs to that is kept as a whole, a play or the session itself, and when the
// units start.
func (w *Workload) units() (unit []int32, starts []float64) {
	unit = make([]int32, w.Sessions())
	if w.Graph == nil {
		starts = make([]float64, w.Sessions())
		for s := range unit {
			unit[s], starts[s] = int32(s), w.ArrivalMs[w.SessionStart[s]]
		}
		return unit, starts
	}
	starts = make([]float64, w.Graph.Plays())
	for i := range starts {
		starts[i] = math.Inf(1)
	}
	together := w.playsOfSessions()
	for s := range unit {
		unit[s] = together[w.Graph.Play[w.SessionStart[s]]]
		for r := w.SessionStart[s]; r < w.SessionStart[s+1]; r++ {
			if len(w.Graph.Edges(r)) == 0 {
				starts[unit[s]] = min(starts[unit[s]], max(0, w.Graph.NotBeforeMs[r]))
			}
		}
	}
	return unit, starts
}

// playsOfSessions returns a number for each play that is equal for plays which have a session in common.
func (w *Workload) playsOfSessions() []int32 {
	plays := newDisjointSets(w.Graph.Plays())
	for s := range w.Sessions() {
		first := w.Graph.Play[w.SessionStart[s]]
		for r := w.SessionStart[s] + 1; r < w.SessionStart[s+1]; r++ {
			plays.join(first, w.Graph.Play[r])
		}
	}
	for i := range plays {
		plays[i] = plays.of(int32(i))
	}
	return plays
}

// copyRequests appends some requests to another workload with the same block names.
func (w *Workload) copyRequests(out *Workload, requests []int32) {
	for i, r := range requests {
		out.Input, out.Output = append(out.Input, w.Input[r]), append(out.Output, w.Output[r])
		out.ArrivalMs, out.DelayMs = append(out.ArrivalMs, w.ArrivalMs[r]), append(out.DelayMs, w.DelayMs[r])
		out.runs = append(out.runs, w.promptRuns(int(r))...)
		out.runStart = append(out.runStart, uint32(len(out.runs)))
		if w.ids != nil {
			out.ids = append(out.ids, w.ids[r])
		}
		if w.hints != nil {
			out.hints = append(out.hints, w.hints[r])
		}
		if w.measured != nil {
			out.measured = append(out.measured, w.measured[r])
		}
		if planned, ok := w.planned[r]; ok {
			if out.planned == nil {
				out.planned = map[int32][]tokenRun{}
			}
			out.planned[int32(i)] = planned
		}
	}
}

// of returns the transcripts of some sessions of a workload.
func (t *transcripts) of(w *Workload, sessions []int32) *transcripts {
	out := &transcripts{}
	for _, s := range sessions {
		from, to := w.SessionStart[s], w.SessionStart[s+1]
		base := t.first[from]
		shift := uint32(len(out.runs)) - base // wraps around, and back when it is added
		out.runs = append(out.runs, t.runs[base:t.answered[to-1]]...)
		for r := from; r < to; r++ {
			out.first = append(out.first, base+shift)
			out.end, out.answered = append(out.end, t.end[r]+shift), append(out.answered, t.answered[r]+shift)
		}
	}
	return out
}

// of returns the graph of some requests, which are those of the given sessions and whole plays.
func (g *Graph) of(requests, sessions []int32) *Graph {
	n := len(requests)
	out := &Graph{Rank: make([]int32, n), ModelNames: g.ModelNames}
	number := renumbered(len(g.Rank), requests)
	var playsKept []int32
	for _, r := range requests {
		playsKept = append(playsKept, g.Play[r])
	}
	slices.Sort(playsKept)
	playsKept = slices.Compact(playsKept)
	play := renumbered(g.Plays(), playsKept)
	for _, p := range playsKept {
		out.PlayNames = append(out.PlayNames, g.PlayNames[p])
	}
	var edges []builtEdge
	for i, r := range requests {
		out.NotBeforeMs, out.Play = append(out.NotBeforeMs, g.NotBeforeMs[r]), append(out.Play, play[g.Play[r]])
		out.Model, out.ToolWaitMs = append(out.Model, g.Model[r]), append(out.ToolWaitMs, g.ToolWaitMs[r])
		out.RecordedStartMs = append(out.RecordedStartMs, g.RecordedStartMs[r])
		out.RecordedEndMs = append(out.RecordedEndMs, g.RecordedEndMs[r])
		for _, e := range g.Edges(r) {
			e.From = number[e.From]
			edges = append(edges, builtEdge{int32(i), e})
		}
	}
	ranks := slices.Clone(requests)
	slices.SortFunc(ranks, func(a, b int32) int { return cmp.Compare(g.Rank[a], g.Rank[b]) })
	for rank, r := range ranks {
		out.Rank[number[r]] = int32(rank)
	}
	session := renumbered(len(g.Parent), sessions)
	for at, s := range sessions {
		parent := g.Parent[s]
		if parent >= 0 {
			parent = session[parent]
		}
		out.Parent = append(out.Parent, parent)
		if named, ok := g.Orphans[s]; ok {
			if out.Orphans == nil {
				out.Orphans = map[int32]string{}
			}
			out.Orphans[int32(at)] = named
		}
	}
	out.connect(edges)
	return out
}

// renumbered returns the new number of each of n things of which some are kept, -1 for the others.
func renumbered(n int, kept []int32) []int32 {
	number := make([]int32, n)
	for i := range number {
		number[i] = -1
	}
	for i, old := range kept {
		number[old] = int32(i)
	}
	return number
}

// connect sets the edges, which name the requests that wait and, as From, those that are waited for.
func (g *Graph) connect(edges []builtEdge) {
	n := len(g.Rank)
	g.inStart, g.in = edgesBy(n, edges, func(e builtEdge) (int32, Edge) { return e.to, e.Edge })
	g.outStart, g.out = edgesBy(n, edges, func(e builtEdge) (int32, Edge) {
		from := e.From
		e.From = e.to
		return from, e.Edge
	})
}
