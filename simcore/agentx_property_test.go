package simcore

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/workload"
)

// conversations makes plays of a few turns with subagents.
func conversations(t *rapid.T) *workload.Workload {
	b := workload.NewGraphBuilder("made", 16)
	for play := range rapid.IntRange(1, 4).Draw(t, "plays") {
		var before int32
		at := 0.0
		ids := []uint64{uint64(play) * 1000}
		for turn := range rapid.IntRange(1, 5).Draw(t, "turns") {
			gap, service := rapid.Float64Range(0, 20_000).Draw(t, "gap"), rapid.Float64Range(1, 3000).Draw(t, "service")
			ids = append(ids, uint64(play*1000+turn+1))
			r := workload.GraphRequest{
				Request:     workload.Request{ID: fmt.Sprintf("%d.%d", play, turn), Session: fmt.Sprint(play), Input: 16 * len(ids), Output: rapid.IntRange(1, 20).Draw(t, "output"), Hashes: ids},
				NotBeforeMs: math.Inf(-1), Play: fmt.Sprint(play), RecordedStartMs: at + gap, RecordedEndMs: at + gap + service,
			}
			if turn == 0 {
				r.NotBeforeMs = at + gap
			}
			number := b.Add(r)
			if turn > 0 {
				b.AddEdge(number, workload.Edge{From: before, DelayMs: gap})
			}
			before, at = number, at+gap+service
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// drawAgentX chooses what a preset chooses otherwise.
func drawAgentX(t *rapid.T, a *AgentX) {
	a.Preset = rapid.SampledFrom([]string{AgentXRFC, AgentXInferenceX}).Draw(t, "preset")
	for _, choice := range a.choices() {
		*choice.value = rapid.SampledFrom(append(choice.values, "")).Draw(t, choice.key)
	}
	if rapid.Bool().Draw(t, "caps") {
		a.TreeIdleCapS, a.GlobalIdleCapS = rapid.Float64Range(0, 5).Draw(t, "tree cap"), rapid.Float64Range(0, 5).Draw(t, "global cap")
	}
	a.PrimersPerUser = rapid.IntRange(-1, 12).Draw(t, "primers")
}

// Whatever conversations there are: the same seed gives the same run, no more users than asked for play at a time, turns
// of a play come in order, nothing starts after the window, and plays reuse nothing of each other but of their own warm-up.
func TestAgentXProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := conversations(t)
		cfg := DefaultConfig()
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 4096
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 20, 3
		cfg.Deployment.Workers = rapid.IntRange(1, 3).Draw(t, "workers")
		if rapid.Bool().Draw(t, "pools") {
			cfg.Deployment.Mode = ModeDisaggregated
			cfg.Prefill, cfg.Decode = Stage{cfg.Engine, cfg.Timing}, Stage{cfg.Engine, cfg.Timing}
		}
		cfg.Router.Policy = rapid.SampledFrom([]string{router.PolicyRoundRobin, router.PolicyKVRouter, router.PolicySessionAffinity}).Draw(t, "router")
		cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, rapid.IntRange(1, 5).Draw(t, "users")
		drawAgentX(t, &cfg.AgentX)
		cfg.AgentX.DurationS, cfg.AgentX.Seed = rapid.Float64Range(1, 40).Draw(t, "duration"), rapid.Uint64().Draw(t, "seed")
		run := func() (*Report, []RequestRecord) {
			var records []RequestRecord
			report, err := Run(context.Background(), cfg, w, Options{Records: func(r RequestRecord) { records = append(records, r) }})
			if err != nil {
				t.Fatal(err)
			}
			return report, records
		}
		report, records := run()
		if again, _ := run(); !reflect.DeepEqual(again, report) {
			t.Fatalf("the same seed gives\n%+v\nand\n%+v", report, again)
		}
		warmMs, warmed := 0.0, map[int]bool{}
		for _, r := range records {
			if r.WarmUp {
				warmMs, warmed[r.Play] = max(warmMs, r.Life.LastTokenMs), true
			}
		}
		last := map[int]float64{}
		open := map[int][2]float64{}
		for _, r := range records {
			if r.WarmUp {
				continue
			}
			if r.Life.ArrivalMs < warmMs || r.Life.ArrivalMs >= warmMs+cfg.AgentX.DurationS*1000 {
				t.Fatalf("%s arrives at %v ms, the window is from %v for %v s", w.ID(r.Request), r.Life.ArrivalMs, warmMs, cfg.AgentX.DurationS)
			}
			if r.Life.ArrivalMs < last[r.Play] {
				t.Fatalf("play %d: %s arrives at %v ms, before the turn before it ended at %v", r.Play, w.ID(r.Request), r.Life.ArrivalMs, last[r.Play])
			}
			end := r.Life.LastTokenMs
			if end < 0 {
				end = math.Inf(1)
			}
			last[r.Play] = end
			span, ok := open[r.Play]
			if !ok {
				span[0] = r.Life.ArrivalMs
			}
			open[r.Play] = [2]float64{span[0], end}
			if r.Turn == 0 && r.Life.ReusedFirst > 0 && !warmed[r.Play] {
				t.Fatalf("play %d: its first turn reuses %d tokens", r.Play, r.Life.ReusedFirst)
			}
		}
		for play, span := range open {
			others := 0
			for other, o := range open {
				if other != play && o[0] <= span[0] && span[0] < o[1] {
					others++
				}
			}
			if others >= cfg.Load.Concurrency {
				t.Fatalf("play %d starts beside %d others, with %d users", play, others, cfg.Load.Concurrency)
			}
		}
	})
}

// However many plays are made ready, a run is the same: one that needs more starts again with more.
func TestAgentXPlansEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := conversations(t)
		cfg := DefaultConfig()
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 4096
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 20, 3
		cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, rapid.IntRange(1, 4).Draw(t, "users")
		if rapid.Bool().Draw(t, "pools") {
			cfg.Deployment.Mode = ModeDisaggregated
			cfg.Prefill, cfg.Decode = Stage{cfg.Engine, cfg.Timing}, Stage{cfg.Engine, cfg.Timing}
		}
		drawAgentX(t, &cfg.AgentX)
		cfg.AgentX.DurationS, cfg.AgentX.Seed = rapid.Float64Range(1, 120).Draw(t, "duration"), rapid.Uint64().Draw(t, "seed")
		cfg.AgentX.Salt = rapid.SampledFrom([]string{workload.SaltPlay, workload.SaltUser, workload.SaltNone}).Draw(t, "salt")
		run := func(plays int) *Report {
			report, err := Run(context.Background(), cfg, w, Options{plan: func(p *workload.AgentXPlan) { p.Plays = plays }})
			if err != nil {
				t.Fatal(err)
			}
			return report
		}
		if few, many := run(0), run(150); !reflect.DeepEqual(few, many) {
			t.Fatalf("with few plays ready\n%+v\nwith many\n%+v", few, many)
		}
	})
}

// The salt says which plays have prompts in common: here one user plays the only conversation again and again, and two play
// it side by side.
func TestAgentXSalt(t *testing.T) {
	b := workload.NewGraphBuilder("made", 16)
	b.Add(workload.GraphRequest{Request: workload.Request{ID: "only", Session: "s", Input: 64, Output: 1, Hashes: []uint64{1, 2, 3, 4}}, Play: "p", RecordedEndMs: 100})
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		salt  string
		users int
		want  []int32 // the reuse of the first requests
	}{
		{workload.SaltPlay, 1, []int32{0, 0, 0}},
		{workload.SaltUser, 1, []int32{0, 48, 48}},
		{workload.SaltUser, 2, []int32{0, 0, 48, 48}},
		{workload.SaltNone, 2, []int32{0, 48, 48, 48}}, // the second one is computed after the first,
	} {
		cfg := DefaultConfig()
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks, cfg.Engine.MaxNumBatchedTokens = 16, 4096, 64
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 20, 3
		cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, test.users
		cfg.AgentX.Preset, cfg.AgentX.DurationS, cfg.AgentX.Salt = AgentXRFC, 1, test.salt
		var got []int32
		if _, err := Run(context.Background(), cfg, w, Options{Records: func(r RequestRecord) { got = append(got, r.Life.ReusedFirst) }}); err != nil {
			t.Fatal(err)
		}
		if len(got) < len(test.want) || !reflect.DeepEqual(got[:len(test.want)], test.want) {
			t.Errorf("salt %s, %d users: %v tokens are reused, want %v", test.salt, test.users, got, test.want)
		}
	}
}

func TestAgentXProblems(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.AgentX.Preset = "mvp" }, "agentx.preset: mvp is not allowed; use one of: rfc, ix"},
		{func(c *Config) { c.Load = DefaultConfig().Load }, "load.mode: trace is not allowed; the AgentX scenario has a number of users"},
		{func(c *Config) { c.Load.MaxSimTimeSeconds = 5 }, "load.max_sim_time_seconds: 5 is not allowed; the AgentX scenario ends by itself"},
		{func(c *Config) { c.Compat = "dynamo-1.3" }, "agentx.preset: rfc is not allowed; the releases that compat stands for have no such scenario"},
		{func(c *Config) { c.AgentX.GraceS = -2 }, "agentx.grace_s: -2 is not allowed"},
		{func(c *Config) { c.AgentX.DurationS = 0 }, "agentx.duration_s: 0 is not allowed; give a window above 0"},
		{func(c *Config) { c.AgentX.StartMin = .9 }, "agentx.start_max: 0.7 is not allowed; give a share from start_min, 0.9, to 1"},
		{func(c *Config) { c.AgentX.Salt = "trace" }, "agentx.salt: trace is not allowed; use one of: play, user, none"},
		{func(c *Config) { c.AgentX.PrimersPerUser = -3 }, "agentx.primers_per_user: -3 is not allowed"},
		{func(c *Config) { c.AgentX.StartBasis = "tokens" }, "agentx.start_basis: tokens is not allowed; use one of: turns, time; or leave it out for the preset's"},
		{func(c *Config) { c.AgentX.WarmUp = "none" }, "agentx.warm_up: none is not allowed; use one of: repeated_prefixes, live_trajectory"},
		{func(c *Config) { c.AgentX.SpawnWait = "none" }, "agentx.spawn_wait: none is not allowed; use one of: recorded, all"},
		{func(c *Config) { c.AgentX.Overflow = "fail" }, "agentx.overflow: fail is not allowed; use one of: truncate, drop"},
	} {
		cfg := DefaultConfig()
		cfg.Load.Mode, cfg.Load.Concurrency, cfg.AgentX.Preset = LoadConcurrency, 2, AgentXRFC
		test.change(&cfg)
		_, problems := cfg.Resolve()
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v\nwant %s", err, test.want)
		}
	}
	cfg := DefaultConfig()
	cfg.Load.Mode, cfg.Load.Concurrency, cfg.AgentX.Preset = LoadConcurrency, 2, AgentXRFC
	b := workload.NewBuilder("plain", 0)
	b.Add(workload.Request{Input: 5, Output: 5})
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), cfg, w, Options{}); err == nil || !strings.Contains(err.Error(), "agentx: the scenario plays conversations of agents") {
		t.Errorf("requests without a graph give %v", err)
	}
}
