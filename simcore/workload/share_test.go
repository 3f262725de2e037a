package workload

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// firstOf loads a text and takes the beginning of it.
func firstOf(t *testing.T, text string, share float64, change func(*TraceSpec)) *Workload {
	t.Helper()
	w, err := loadText(text, change)
	if err != nil {
		t.Fatal(err)
	}
	return w.First(share)
}

// TestFirstEqualsShorterTrace checks that the beginning of a workload is what a trace has that holds nothing else.
func TestFirstEqualsShorterTrace(t *testing.T) {
	sessions := `{"session_id":"a","timestamp":0,"input_length":600,"output_length":16,"hash_ids":[1,2]}
{"session_id":"b","timestamp":5,"input_length":512,"output_length":32,"hash_ids":[1]}
{"session_id":"a","delay":20,"input_length":128,"output_length":16,"hash_ids":[3]}
{"session_id":"b","delay":20,"input_length":64,"output_length":2,"hash_ids":[4]}
`
	rest := `{"session_id":"c","timestamp":9,"input_length":512,"output_length":16,"hash_ids":[9]}
{"session_id":"d","timestamp":10,"input_length":512,"output_length":16,"hash_ids":[1]}
{"session_id":"c","delay":9,"input_length":512,"output_length":16,"hash_ids":[9]}
`
	for format, change := range map[string]func(*TraceSpec){"mooncake": func(*TraceSpec) {}, "delta": asDelta} {
		t.Run(format, func(t *testing.T) {
			want, err := loadText(sessions, change)
			if err != nil {
				t.Fatal(err)
			}
			for _, share := range []float64{.5, 4. / 7} {
				got := firstOf(t, sessions+rest, share, change)
				if got.Digest() != want.Digest() || got.SessionName(1) != "b" {
					t.Errorf("share %v: %d requests %v, session %q; want %d %v", share, got.Requests(), got.Input, got.SessionName(1), want.Requests(), want.Input)
				}
				if _, err := got.Blocks(64, true); err != nil {
					t.Error(err)
				}
			}
			if got := firstOf(t, sessions+rest, 1e-9, change); got.Sessions() != 1 || got.Requests() != 2 {
				t.Errorf("%d sessions, want the first one", got.Sessions())
			}
			if got := firstOf(t, sessions+rest, 1, change); got.Requests() != 7 {
				t.Errorf("%d requests, want all", got.Requests())
			}
		})
	}
}

// The order is that of the starts, not that of the file, unless a session has none.
func TestFirstGoesByStart(t *testing.T) {
	for start, want := range map[string]int32{`"timestamp":5,`: 11, "": 10} {
		text := fmt.Sprintf(`{"timestamp":50,"input_length":10,"output_length":1}
{%s"input_length":11,"output_length":1}
`, start)
		if got := firstOf(t, text, .5, func(*TraceSpec) {}); got.Requests() != 1 || got.Input[0] != want {
			t.Errorf("start %q: prompts of %v tokens, want %d", start, got.Input, want)
		}
	}
}

// drawnGraph is a random graph of plays, whose requests may also be of sessions that several plays have.
type drawnGraph struct {
	requests []GraphRequest
	edges    []builtEdge
}

func drawGraphParts(t *rapid.T) drawnGraph {
	var g drawnGraph
	named := rapid.Bool().Draw(t, "named plays")
	for i := range rapid.IntRange(1, 20).Draw(t, "requests") {
		play := rapid.IntRange(1, 4).Draw(t, "play")
		r := graphRequest(fmt.Sprint("r", i), fmt.Sprint("s", play, rapid.IntRange(0, 2).Draw(t, "session")), "")
		if named {
			r.Play = fmt.Sprint("play", play)
		}
		r.Input = rapid.IntRange(1, 50).Draw(t, "input")
		if rapid.Bool().Draw(t, "floor") {
			r.NotBeforeMs = float64(rapid.IntRange(0, 100).Draw(t, "not before"))
		}
		r.Model = rapid.SampledFrom([]string{"", "m"}).Draw(t, "model")
		for j, earlier := range g.requests {
			if earlier.Session[:2] == r.Session[:2] && rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				g.edges = append(g.edges, builtEdge{int32(i), Edge{From: int32(j), DelayMs: float64(i), Relation: Join}})
			}
		}
		g.requests = append(g.requests, r)
	}
	return g
}

// build makes the workload of the requests whose ids are kept; nil keeps all.
func (g drawnGraph) build(t rapid.TB, kept map[string]bool) *Workload {
	t.Helper()
	b, number := NewGraphBuilder("drawn", 16), make([]int32, len(g.requests))
	for i, r := range g.requests {
		number[i] = -1
		if kept == nil || kept[r.ID] {
			number[i] = b.Add(r)
		}
	}
	for _, e := range g.edges {
		if number[e.to] >= 0 && number[e.From] >= 0 {
			e.From, e.to = number[e.From], number[e.to]
			b.AddEdge(e.to, e.Edge)
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestFirstOfGraphs checks that the beginning of a graph is the graph of these requests alone, and that no request in it
// has lost what it waited for.
func TestFirstOfGraphs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := drawGraphParts(rt)
		w := g.build(rt, nil)
		share := rapid.Float64Range(0, 1).Draw(rt, "share")
		got := w.First(share)
		kept, edges := map[string]bool{}, 0
		for i := range got.Requests() {
			kept[got.ID(i)] = true
			edges += len(got.Graph.Edges(int32(i)))
		}
		want := g.build(rt, kept)
		if got.Digest() != want.Digest() {
			rt.Fatalf("the beginning is %v, of plays %v; the requests alone are %v, of plays %v", got.Input, got.Graph.Play, want.Input, want.Graph.Play)
		}
		all := 0
		for _, e := range g.edges {
			if kept[g.requests[e.to].ID] {
				all++
			}
		}
		if edges != all {
			rt.Fatalf("%d edges, want %d", edges, all)
		}
		if float64(got.Requests()) < share*float64(w.Requests())-1e-9 {
			rt.Fatalf("%d of %d requests are less than %v", got.Requests(), w.Requests(), share)
		}
		for s, parent := range got.Graph.Parent {
			if int(parent) >= got.Sessions() || parent == int32(s) {
				rt.Fatalf("session %d has parent %d of %d", s, parent, got.Sessions())
			}
		}
	})
}

func TestShareOfSpecs(t *testing.T) {
	spec := Spec{Preset: &PresetSpec{Name: PresetChat, Requests: 400, Seed: 1}, Share: .5}
	whole, err := Spec{Preset: spec.Preset}.Load(context.Background(), Source{})
	if err != nil {
		t.Fatal(err)
	}
	half, err := spec.Load(context.Background(), Source{})
	if err != nil {
		t.Fatal(err)
	}
	spec.ShortenTo(.5)
	quarter, err := spec.Load(context.Background(), Source{})
	if err != nil {
		t.Fatal(err)
	}
	for w, want := range map[*Workload]int{half: whole.Requests() / 2, quarter: whole.Requests() / 4} {
		if n := w.Requests(); n < want || n > want+20 {
			t.Errorf("%d requests, want about %d", n, want)
		}
	}
	if half.Digest() == whole.Digest() {
		t.Error("the share does not count in the digest")
	}
	for _, share := range []float64{-.1, 1.1, math.NaN()} {
		spec.Share = share
		if problems := spec.Validate(); len(problems) != 1 || !strings.Contains(problems.Err().Error(), "share") {
			t.Errorf("share %v: %v", share, problems)
		}
	}
}
