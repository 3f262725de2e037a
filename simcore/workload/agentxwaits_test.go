package workload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// agents makes one conversation of sessions that spawn each other, wait for each other or do not, and go on beside each other.
func agents(t *rapid.T) *Workload {
	b := NewGraphBuilder("made", 16)
	type session struct{ requests []int32 }
	sessions := make([]session, rapid.IntRange(1, 4).Draw(t, "sessions"))
	anyOf := func(requests []int32, what string) int32 { return rapid.SampledFrom(requests).Draw(t, what) }
	trigger := func(what string) Trigger { return rapid.SampledFrom([]Trigger{OnCompletion, OnDispatch}).Draw(t, what) }
	for i := range rapid.IntRange(1, 14).Draw(t, "requests") {
		at := rapid.IntRange(0, len(sessions)-1).Draw(t, "session")
		s := &sessions[at]
		number := b.Add(GraphRequest{
			Request: Request{ID: fmt.Sprint(i), Session: fmt.Sprint(at), Input: 16, Output: 1, Hashes: []uint64{uint64(i)}}, Play: "p",
			RecordedStartMs: float64(i), RecordedEndMs: float64(i) + .5,
		})
		if len(s.requests) > 0 {
			b.AddEdge(number, Edge{From: anyOf(s.requests, "follows"), Trigger: trigger("follows at")})
		}
		other := &sessions[rapid.IntRange(0, len(sessions)-1).Draw(t, "other session")]
		if other != s && len(other.requests) > 0 {
			switch {
			case len(s.requests) == 0 && at > 0:
				b.AddEdge(number, Edge{From: anyOf(other.requests, "spawned by"), Trigger: trigger("spawned at"), Relation: Spawn})
			case rapid.Bool().Draw(t, "waits"):
				b.AddEdge(number, Edge{From: anyOf(other.requests, "waits for"), Relation: Join})
			}
		}
		s.requests = append(s.requests, number)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Who waits for all subagents starts the next turn when all requests of all that it has spawned, and that those have, are done,
// unless they wait for that turn themselves. Nothing waits for itself.
func TestWaitForSubagents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := agents(t)
		s, err := AgentX(context.Background(), base, AgentXPlan{Users: 1, GapCapMs: math.Inf(1), Salt: SaltPlay, WaitForSubagents: true, StartsMs: []float64{math.Inf(-1)}})
		if err != nil {
			t.Fatal(err)
		}
		g, n := s.Workload.Graph, int32(base.Requests()) // the only play has all requests, with their numbers
		before := make([][]bool, n)                      // [a][b]: b waits for a, for its start at least
		ended := make([][]bool, n)                       // [a][b]: b waits for the end of a
		for a := range n {
			before[a], ended[a] = make([]bool, n), make([]bool, n)
		}
		for changed := true; changed; {
			changed = false
			for b := range n {
				for _, e := range g.Edges(b) {
					for a := range n {
						starts := a == e.From || before[a][e.From]
						ends := a == e.From && e.Trigger == OnCompletion || ended[a][e.From]
						changed = changed || starts && !before[a][b] || ends && !ended[a][b]
						before[a][b], ended[a][b] = before[a][b] || starts, ended[a][b] || ends
					}
				}
			}
		}
		if slices.ContainsFunc(g.Dependants(0), func(e Edge) bool {
			return !slices.ContainsFunc(g.Edges(e.From), func(e Edge) bool { return e.From == 0 })
		}) {
			t.Fatal("the edges differ by direction")
		}
		session := func(r int32) int32 { return base.sessionOf(r) }
		spawned := func(parent int32) (children []int32) { // with those that they spawn
			todo := []int32{parent}
			for len(todo) > 0 {
				r := todo[0]
				todo = todo[1:]
				for _, e := range base.Graph.Dependants(r) {
					if child := session(e.From); e.Relation == Spawn && child != session(r) && !slices.Contains(children, child) {
						children = append(children, child)
						for c := base.SessionStart[child]; c < base.SessionStart[child+1]; c++ {
							todo = append(todo, c)
						}
					}
				}
			}
			return children
		}
		for parent := range n {
			if before[parent][parent] {
				t.Fatalf("request %d waits for itself", parent)
			}
			next := parent + 1
			if next == n || session(next) != session(parent) {
				continue
			}
			var theirs []int32
			for _, child := range spawned(parent) {
				for c := base.SessionStart[child]; c < base.SessionStart[child+1]; c++ {
					theirs = append(theirs, c)
				}
			}
			for _, c := range theirs {
				if ended[c][next] || slices.ContainsFunc(theirs, func(d int32) bool { return (d == c || ended[c][d]) && (d == next || before[next][d]) }) {
					continue
				}
				t.Fatalf("request %d does not wait for %d, which %d has spawned", next, c, parent)
			}
		}
	})
}
