package workload

import "slices"

// agentXWaits are edges that a scenario has beyond those of its conversations: by the request that waits, and by the one that is
// waited for, as those of a graph.
type agentXWaits struct{ in, out map[int32][]Edge }

// waitForSubagents lets each agent wait, before its next turn, for all subagents that it has spawned and for theirs, where the
// source lets it go on beside them. Such a wait takes no time of its own.
func (x *agentXExpansion) waitForSubagents(p *sourcePlay) {
	f := subagentWaits{agentXExpansion: x, play: p, spawned: map[int32][]int32{}, ends: map[int32][]int32{}}
	f.findSpawned()
	for _, parent := range p.requests {
		next := parent + 1
		if next == f.base.SessionStart[f.sessions[parent]+1] || !f.holds(next) {
			continue
		}
		for _, child := range f.spawned[parent] {
			for _, end := range f.endsOf(child) {
				if !f.leadsTo(next, end) && !f.awaits(next, end) {
					x.waits.in[next] = append(x.waits.in[next], Edge{From: end, Relation: Join})
					x.waits.out[end] = append(x.waits.out[end], Edge{From: next, Relation: Join})
				}
			}
		}
	}
}

// subagentWaits finds what agents of a conversation wait for.
type subagentWaits struct {
	*agentXExpansion
	play    *sourcePlay
	spawned map[int32][]int32 // sessions, by the request that spawned them
	ends    map[int32][]int32 // of sessions: the last requests of each and of its subagents
}

func (f *subagentWaits) holds(request int32) bool {
	_, ok := slices.BinarySearch(f.play.requests, request)
	return ok
}

func (f *subagentWaits) findSpawned() {
	for _, r := range f.play.requests {
		for _, e := range f.base.Graph.Edges(r) {
			if child := f.sessions[r]; e.Relation == Spawn && f.sessions[e.From] != child && f.holds(e.From) && !slices.Contains(f.spawned[e.From], child) {
				f.spawned[e.From] = append(f.spawned[e.From], child)
			}
		}
	}
}

// endsOf are the requests of a session whose end none of its others waits for, and those of the subagents of the session.
func (f *subagentWaits) endsOf(session int32) []int32 {
	if ends, ok := f.ends[session]; ok {
		return ends
	}
	f.ends[session] = nil // sessions that spawn each other in a circle end here
	var ends []int32
	for r := f.base.SessionStart[session]; r < f.base.SessionStart[session+1]; r++ {
		if !f.holds(r) {
			continue
		}
		goesOn := func(e Edge) bool {
			return e.Trigger == OnCompletion && f.sessions[e.From] == session && f.holds(e.From)
		}
		if !slices.ContainsFunc(f.base.Graph.Dependants(r), goesOn) {
			ends = append(ends, r)
		}
		for _, child := range f.spawned[r] {
			ends = append(ends, f.endsOf(child)...)
		}
	}
	f.ends[session] = ends
	return ends
}

// awaits reports whether a request starts after the end of another one, however many are between them.
func (f *subagentWaits) awaits(request, other int32) bool {
	for _, edges := range f.after(other) {
		if slices.ContainsFunc(edges, func(e Edge) bool { return e.Trigger == OnCompletion && f.leadsTo(e.From, request) }) {
			return true
		}
	}
	return false
}

// after are the edges to the requests that wait for one: those of the source, and those that were added.
func (f *subagentWaits) after(r int32) [2][]Edge {
	return [2][]Edge{f.base.Graph.Dependants(r), f.waits.out[r]}
}

// leadsTo reports whether a request is another one or comes before it, however many are between them.
func (f *subagentWaits) leadsTo(from, to int32) bool {
	seen, left := map[int32]bool{from: true}, []int32{from}
	for len(left) > 0 {
		r := left[len(left)-1]
		left = left[:len(left)-1]
		if r == to {
			return true
		}
		for _, edges := range f.after(r) {
			for _, e := range edges {
				if !seen[e.From] && f.holds(e.From) {
					seen[e.From] = true
					left = append(left, e.From)
				}
			}
		}
	}
	return false
}
