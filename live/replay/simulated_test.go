package replay

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/workload"
)

// drawConversations makes conversations with subagents, some of which wait for each other.
func drawConversations(t *rapid.T) *workload.Workload {
	b := workload.NewGraphBuilder("made", 16)
	for play := range rapid.IntRange(1, 4).Draw(t, "plays") {
		at, before := 0., int32(-1)
		for turn := range rapid.IntRange(1, 5).Draw(t, "turns") {
			gap := float64(rapid.IntRange(0, 20_000).Draw(t, "gap"))
			r := workload.GraphRequest{
				Request: workload.Request{
					ID: fmt.Sprintf("%d.%d", play, turn), Session: fmt.Sprint(play), Input: 16, Output: rapid.IntRange(1, 20).Draw(t, "output"), Hashes: []uint64{uint64(play)},
				},
				NotBeforeMs: math.Inf(-1), Play: fmt.Sprint(play), RecordedStartMs: at + gap, RecordedEndMs: at + gap + 100,
			}
			if turn == 0 {
				r.NotBeforeMs = gap
			}
			number := b.Add(r)
			if before >= 0 {
				trigger := rapid.SampledFrom([]workload.Trigger{workload.OnCompletion, workload.OnDispatch}).Draw(t, "trigger")
				b.AddEdge(number, workload.Edge{From: before, DelayMs: gap, Trigger: trigger})
			}
			before, at = number, at+gap+100
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Against a target that takes as long as a simulated deployment, every request is sent when the simulation released it, and
// what is cancelled is what the simulation did not finish.
func TestRunsAreThoseOfSimulations(t *testing.T) {
	bubble := t
	rapid.Check(t, func(t *rapid.T) {
		w := drawConversations(t)
		cfg := simcore.DefaultConfig()
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 4096
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 20, 3
		if lanes := rapid.IntRange(0, 4).Draw(t, "lanes"); lanes > 0 {
			cfg.Load.Mode, cfg.Load.Concurrency = simcore.LoadConcurrency, lanes
			if cfg.AgentX.Preset = rapid.SampledFrom([]string{"", simcore.AgentXRFC, simcore.AgentXInferenceX}).Draw(t, "preset"); cfg.AgentX.Enabled() {
				cfg.AgentX.DurationS, cfg.AgentX.Seed = rapid.Float64Range(1, 40).Draw(t, "duration"), rapid.Uint64().Draw(t, "seed")
				cfg.AgentX.GraceS = rapid.SampledFrom([]float64{0, .05, 30}).Draw(t, "grace")
			}
		}
		lives := map[int32]simcore.RequestRecord{}
		report, err := simcore.Run(t.Context(), cfg, w, simcore.Options{Records: func(r simcore.RequestRecord) { lives[r.Life.Number] = r }})
		if err != nil {
			t.Fatal(err)
		}
		target := &fakeTarget{answer: func(call *live.Call) ([]float64, error) {
			life := lives[call.Number].Life
			if life.Tokens < life.Output {
				return []float64{1e9}, nil // it does not end
			}
			return []float64{life.FirstTokenMs - life.ArrivalMs, life.LastTokenMs - life.ArrivalMs}, nil
		}}
		var run *live.Run
		synctest.Test(bubble, func(t *testing.T) {
			run, err = Run(t.Context(), Options{Target: target, Config: cfg, Workload: w})
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Records) != len(lives) || target.underWay != 0 {
			t.Fatalf("%d requests were sent, %d simulated", len(run.Records), len(lives))
		}
		ids := map[string]bool{}
		for i := range run.Records {
			r := &run.Records[i]
			life := lives[r.Call.Number]
			if math.Abs(r.SentMs-life.Life.ArrivalMs) > .01 || r.Call.Request != life.Request || (r.Phase == live.PhaseWarmUp) != life.WarmUp {
				t.Fatalf("request %d, %q, was sent at %v; the simulation released %d at %v, warm-up %v", r.Call.Request, r.Phase, r.SentMs, life.Request, life.Life.ArrivalMs, life.WarmUp)
			}
			past := math.Inf(-1) // of the stop, after which a pass of a simulation ends all the same
			if run.Window != nil {
				past = life.Life.LastTokenMs - run.Window.EndMs - 1000*cfg.AgentX.GraceS
			}
			if r.Cancelled != (past > 0 || life.Life.Tokens < life.Life.Output) && math.Abs(past) > .01 || r.Err != nil {
				t.Fatalf("request %s: cancelled %v, %v; it has %d tokens of %d", r.Call.ID, r.Cancelled, r.Err, life.Life.Tokens, life.Life.Output)
			}
			if ids[r.Call.ID] {
				t.Fatalf("two requests have the name %s", r.Call.ID)
			}
			ids[r.Call.ID] = true
			if run.Window != nil && run.Play(r) != life.Play {
				t.Fatalf("request %s is of play %d; the simulation has %d", r.Call.ID, run.Play(r), life.Play)
			}
		}
		if a := report.AgentX; a != nil {
			if run.Window == nil || math.Abs(run.Window.StartMs-a.StartMs) > .01 || run.Planned != -1 {
				t.Fatalf("the window is %+v, and the simulation's starts at %v", run.Window, a.StartMs)
			}
		}
	})
}
