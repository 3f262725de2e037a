package simcore

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// drawGraph makes a few plays of requests that wait for earlier ones in any way.
func drawGraph(t *rapid.T) *workload.Workload {
	b := workload.NewGraphBuilder("graph", 16)
	requests := rapid.IntRange(1, 30).Draw(t, "requests")
	plays := rapid.IntRange(1, 5).Draw(t, "plays")
	floors := rapid.Bool().Draw(t, "floors")
	members := map[string][]int32{}
	for i := range requests {
		play := fmt.Sprint("play ", rapid.IntRange(1, plays).Draw(t, "play"))
		r := workload.GraphRequest{Play: play, NotBeforeMs: math.Inf(-1), RecordedStartMs: math.NaN(), RecordedEndMs: math.NaN()}
		r.Session = fmt.Sprint(play, "/", rapid.IntRange(0, 2).Draw(t, "session"))
		r.Hashes = rapid.SliceOfN(rapid.Uint64Range(0, 5), 1, 8).Draw(t, "hashes")
		r.Input, r.Output = 16*len(r.Hashes), rapid.IntRange(1, 20).Draw(t, "output")
		r.DelayMs = rapid.SampledFrom([]float64{0, 0, 3.5}).Draw(t, "delay after all")
		if floors || len(members[play]) == 0 {
			r.NotBeforeMs = float64(rapid.IntRange(0, 400).Draw(t, "floor"))
		}
		number := b.Add(r)
		for range rapid.IntRange(0, min(3, i)).Draw(t, "edges") {
			if earlier := members[play]; len(earlier) > 0 {
				b.AddEdge(number, workload.Edge{
					From:     rapid.SampledFrom(earlier).Draw(t, "from"),
					Trigger:  rapid.SampledFrom([]workload.Trigger{workload.OnCompletion, workload.OnDispatch}).Draw(t, "trigger"),
					DelayMs:  rapid.SampledFrom([]float64{0, 1, 7.25, 60}).Draw(t, "delay"),
					Relation: workload.Join,
				})
			}
		}
		members[play] = append(members[play], number)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// runGraph returns when each request was released and ended.
func runGraph(t *rapid.T, cfg Config, w *workload.Workload) (released, ended []float64) {
	released, ended = make([]float64, w.Requests()), make([]float64, w.Requests())
	seen := 0
	report, err := Run(context.Background(), cfg, w, Options{Records: func(r RequestRecord) {
		released[r.Request], ended[r.Request] = r.Life.ArrivalMs, r.Life.LastTokenMs
		seen++
	}})
	if err != nil {
		t.Fatal(err)
	}
	if seen != w.Requests() || report.CompletedRequests != int64(w.Requests()) {
		t.Fatalf("%d records, %d completed, of %d", seen, report.CompletedRequests, w.Requests())
	}
	return released, ended
}

// A request is released when the last thing that it waits for has come, neither sooner nor later, in every topology; and
// lanes hold no more plays than they are.
func TestGraphReleases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawGraph(t)
		g := w.Graph
		cfg := DefaultConfig()
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 10, 2
		cfg.Load.Speedup = rapid.SampledFrom([]float64{1, 2, 0.5}).Draw(t, "speedup")
		if rapid.Bool().Draw(t, "disaggregated") {
			cfg.Deployment.Mode, cfg.Deployment.PrefillWorkers, cfg.Deployment.DecodeWorkers = ModeDisaggregated, 2, 2
		} else {
			cfg.Deployment.Workers = rapid.IntRange(1, 3).Draw(t, "workers")
		}
		lanes := rapid.IntRange(0, 3).Draw(t, "lanes")
		if lanes > 0 {
			cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, lanes
		}
		released, ended := runGraph(t, cfg, w)

		zero := make([]float64, g.Plays())  // when each play's floors count from
		first := make([]float64, g.Plays()) // the floor of its first root
		for i := range zero {
			first[i] = math.Inf(1)
		}
		ends := make([]float64, g.Plays())
		for r := range w.Requests() {
			p := g.Play[r]
			ends[p] = max(ends[p], ended[r])
			if len(g.Edges(int32(r))) == 0 {
				first[p] = min(first[p], max(0, g.NotBeforeMs[r]))
			}
		}
		if lanes > 0 {
			free := make([]float64, lanes) // the ends of the plays that lanes are in
			for p := range zero {
				lane := 0
				for i := range free {
					if free[i] < free[lane] {
						lane = i
					}
				}
				zero[p] = free[lane] - first[p]/cfg.Load.Speedup
				free[lane] = ends[p]
			}
		}
		for r := range w.Requests() {
			p := g.Play[r]
			want := max(0, zero[p], zero[p]+g.NotBeforeMs[r]/cfg.Load.Speedup)
			for _, e := range g.Edges(int32(r)) {
				at := ended[e.From]
				if e.Trigger == workload.OnDispatch {
					at = released[e.From]
				}
				want = max(want, at+e.DelayMs/cfg.Load.Speedup)
			}
			want += w.DelayMs[r] / cfg.Load.Speedup
			if math.Abs(released[r]-want) > 1e-9 {
				t.Fatalf("request %d of play %d was released at %v, want %v", r, p, released[r], want)
			}
		}
	})
}

// The reference replays graphs in open loop on one pool only; its rules refuse the rest, and the default ones do not.
func TestGraphRefusals(t *testing.T) {
	b := workload.NewGraphBuilder("graph", 16)
	first := b.Add(workload.GraphRequest{Request: workload.Request{Input: 16, Output: 1}})
	second := b.Add(workload.GraphRequest{Request: workload.Request{Input: 16, Output: 1}})
	b.AddEdge(second, workload.Edge{From: first})
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, want string
		change     func(*Config)
	}{
		{"open loop", "", func(*Config) {}},
		{"closed loop", "load.mode: the requests of graph wait for each other", func(c *Config) { c.Load.Mode, c.Load.Concurrency = LoadConcurrency, 1 }},
		{"rate", "load.mode: the requests of graph wait for each other", func(c *Config) { c.Load.Mode, c.Load.Rate = LoadRate, 1 }},
		{"disaggregated", "deployment.mode: the requests of graph wait for each other", func(c *Config) {
			c.Deployment.Mode, c.Deployment.PrefillWorkers, c.Deployment.DecodeWorkers = ModeDisaggregated, 1, 1
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 10, 2
			test.change(&cfg)
			if _, err := Run(context.Background(), cfg, w, Options{}); err != nil {
				t.Errorf("default rules: %v", err)
			}
			cfg.Compat = rules.Dynamo13
			_, err := Run(context.Background(), cfg, w, Options{})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("compat %s: got %v, want %q", cfg.Compat, err, test.want)
			}
		})
	}
}

// BenchmarkRunGraph simulates 1,500 plays of eight requests each: a main agent whose second turn joins two subagents.
func BenchmarkRunGraph(b *testing.B) {
	builder := workload.NewGraphBuilder("graph", 64)
	add := func(play int, session string, hashes []uint64, floor float64) int32 {
		return builder.Add(workload.GraphRequest{
			Request: workload.Request{Session: fmt.Sprint(play, session), Hashes: hashes, Input: 64 * len(hashes), Output: 50},
			Play:    fmt.Sprint(play), NotBeforeMs: floor, RecordedStartMs: math.NaN(), RecordedEndMs: math.NaN(),
		})
	}
	for play := range 1500 {
		prompt := []uint64{1, 2, 3, 4}
		main := add(play, "main", prompt, float64(play)*200)
		joined := []workload.Edge{{From: main, DelayMs: 100}}
		for sub := range 2 {
			session, ids := fmt.Sprint("sub", sub), []uint64{10, 11, uint64(1000 + 2*play + sub)}
			before := workload.Edge{From: main, Trigger: workload.OnDispatch, DelayMs: 50, Relation: workload.Spawn}
			for turn := range 2 {
				r := add(play, session, append(ids, uint64(100_000+10*play+2*sub+turn)), math.Inf(-1))
				builder.AddEdge(r, before)
				before = workload.Edge{From: r, DelayMs: 30}
			}
			joined = append(joined, workload.Edge{From: before.From, DelayMs: 20, Relation: workload.Join})
		}
		for turn := range 3 {
			prompt = append(prompt, uint64(200_000+10*play+turn))
			r := add(play, "main", prompt, math.Inf(-1))
			for _, e := range joined {
				builder.AddEdge(r, e)
			}
			joined = []workload.Edge{{From: r, DelayMs: 100}}
		}
	}
	w, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Deployment.Workers = 8
	benchmarkRun(b, cfg, w)
}
