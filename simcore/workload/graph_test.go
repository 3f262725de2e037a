package workload

import (
	"math"
	"strings"
	"testing"
)

func graphRequest(id, session, play string) GraphRequest {
	return GraphRequest{
		Request:     Request{ID: id, Session: session, Input: 10, Output: 1},
		NotBeforeMs: math.Inf(-1), Play: play, RecordedStartMs: math.NaN(), RecordedEndMs: math.NaN(),
	}
}

// Turns of a session become neighbours, and everything that names requests by number follows.
func TestGraphLowers(t *testing.T) {
	b := NewGraphBuilder("made", 0)
	b.PlayPrefix, b.PlayOrder = "play:", strings.Compare
	z := b.Add(graphRequest("z", "other", ""))
	a1 := b.Add(graphRequest("a1", "a", ""))
	child := graphRequest("c", "child", "")
	child.ParentSession = "a"
	c := b.Add(child)
	a2 := b.Add(graphRequest("a2", "a", ""))
	b.AddEdge(a2, Edge{From: c, DelayMs: 5, Relation: Join})
	b.AddEdge(a2, Edge{From: a1, DelayMs: 7})
	b.AddEdge(c, Edge{From: a1, Trigger: OnDispatch, Relation: Spawn})
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	g := w.Graph
	number := map[string]int32{}
	for i := range w.Requests() {
		number[w.ID(i)] = int32(i)
	}
	if got := strings.Join(g.PlayNames, " "); got != "play:a1 play:z" {
		t.Errorf("plays %s", got)
	}
	if g.Play[number["z"]] != 1 || g.Play[number["c"]] != 0 || g.Rank[number["z"]] != z || g.Rank[number["a2"]] != a2 {
		t.Errorf("plays %v, ranks %v", g.Play, g.Rank)
	}
	if number["a2"] != number["a1"]+1 {
		t.Errorf("the turns of a session are apart: %v", number)
	}
	want := []Edge{{From: number["a1"], DelayMs: 7}, {From: number["c"], DelayMs: 5, Relation: Join}}
	if got := g.Edges(number["a2"]); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("a2 waits for %v, want %v", got, want)
	}
	if got := g.Dependants(number["a1"]); len(got) != 2 || got[0].From != number["a2"] || got[1].Trigger != OnDispatch {
		t.Errorf("for a1 wait %v", got)
	}
	for s := range w.Sessions() {
		if parent := g.Parent[s]; (w.SessionName(s) == "child") != (parent >= 0 && w.SessionName(int(parent)) == "a") {
			t.Errorf("session %s has parent %d", w.SessionName(s), parent)
		}
	}
}

func TestGraphRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		plays [3]string
		edges [][2]int32 // from, to
		want  string
	}{
		{"a cycle", [3]string{}, [][2]int32{{0, 1}, {1, 2}, {2, 1}}, "cycle detected among 2 requests, which wait for each other: b, c"},
		{"itself", [3]string{}, [][2]int32{{1, 1}}, "cycle detected among 1 requests"},
		{"an edge between plays", [3]string{"p", "p", "q"}, [][2]int32{{0, 2}}, "request c of play q waits for request a of play p"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := NewGraphBuilder("made", 0)
			for i, id := range []string{"a", "b", "c"} {
				b.Add(graphRequest(id, id, test.plays[i]))
			}
			for _, e := range test.edges {
				b.AddEdge(e[1], Edge{From: e[0]})
			}
			if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
