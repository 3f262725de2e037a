package simcore

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/workload"
)

// drive takes everything from a schedule. endOf says when a release ends; +Inf is never.
func drive(r *Releases, endOf func(Release) float64) []Release {
	type end struct {
		atMs   float64
		number int32
	}
	var out []Release
	var ends []end
	for {
		next := math.Inf(1)
		if len(ends) > 0 {
			next = ends[0].atMs
		}
		at := r.PeekMs()
		switch {
		case math.IsInf(at, 1) && math.IsInf(next, 1):
			return out
		case next <= at:
			ended := ends[0]
			ends = ends[1:]
			r.Ended(ended.number, ended.atMs)
		default:
			release := r.Pop()
			out = append(out, release)
			e := end{endOf(release), release.Number}
			i, _ := slices.BinarySearchFunc(ends, e.atMs, func(other end, at float64) int {
				if other.atMs <= at {
					return -1
				}
				return 1
			})
			ends = slices.Insert(ends, i, e)
		}
	}
}

// simulatedLives returns what a simulation says of each release, by its number.
func simulatedLives(t *rapid.T, cfg Config, w *workload.Workload) (*Report, map[int32]RequestRecord) {
	lives := map[int32]RequestRecord{}
	report, err := Run(context.Background(), cfg, w, Options{Records: func(r RequestRecord) { lives[r.Life.Number] = r }})
	if err != nil {
		t.Fatal(err)
	}
	return report, lives
}

// drawAnswered makes a workload of which all requests want an answer: records say of no other when it ended.
func drawAnswered(t *rapid.T) *workload.Workload {
	blockSize, requests := drawRequests(t, shape{})
	for i := range requests {
		requests[i].Output = max(1, requests[i].Output)
	}
	return build(t, blockSize, requests)
}

// Told when requests ended in a simulation, a schedule releases them when that did.
func TestReleasesAreThoseOfSimulations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawGraph(t)
		if rapid.Bool().Draw(t, "sessions") {
			w = drawAnswered(t)
		}
		cfg := DefaultConfig()
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 4096
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 10, 2
		cfg.Deployment.Workers = rapid.IntRange(1, 3).Draw(t, "workers")
		drawLoad(t, &cfg.Load, shape{noCap: true})
		_, lives := simulatedLives(t, cfg, w)
		r, err := NewReleases(context.Background(), cfg, w, Window{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests() != w.Requests() {
			t.Fatalf("it has %d requests of %d", r.Requests(), w.Requests())
		}
		releases := drive(r, func(release Release) float64 { return endOfLife(lives[release.Number]) })
		if len(releases) != w.Requests() {
			t.Fatalf("%d releases of %d", len(releases), w.Requests())
		}
		for _, release := range releases {
			life := lives[release.Number]
			if release.ReadyMs != life.Life.ArrivalMs || int(release.Request) != life.Request || int(release.Session) != life.Session || release.Turn != life.Turn {
				t.Fatalf("%+v, and the simulation has request %d, session %d, turn %d at %v", release, life.Request, life.Session, life.Turn, life.Life.ArrivalMs)
			}
			if release.Input != int(w.Input[release.Request]) || release.Output != int(w.Output[release.Request]) || release.Play != -1 || release.WarmUp || release.Salt != 0 {
				t.Fatalf("%+v of a workload without a scenario", release)
			}
		}
	})
}

// endOfLife is when a request ended; +Inf if it did not.
func endOfLife(r RequestRecord) float64 {
	if r.Life.Tokens < r.Life.Output {
		return math.Inf(1)
	}
	return r.Life.LastTokenMs
}

// The same holds for the AgentX scenario, of which a schedule adds the plays as it needs them.
func TestAgentXReleasesAreThoseOfSimulations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := conversations(t)
		cfg := DefaultConfig()
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 4096
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 20, 3
		cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, rapid.IntRange(1, 5).Draw(t, "users")
		drawAgentX(t, &cfg.AgentX)
		cfg.AgentX.DurationS, cfg.AgentX.Seed = rapid.Float64Range(1, 40).Draw(t, "duration"), rapid.Uint64().Draw(t, "seed")
		report, lives := simulatedLives(t, cfg, w)
		r, err := NewReleases(context.Background(), cfg, w, Window{})
		if err != nil {
			t.Fatal(err)
		}
		salts := map[uint64]int{}
		releases := drive(r, func(release Release) float64 {
			if end := endOfLife(lives[release.Number]); end < r.StopMs() {
				return end
			}
			return math.Inf(1) // a simulated pass goes on when the window is over, and nobody hears of its end
		})
		for _, release := range releases {
			life, ok := lives[release.Number]
			if !ok || release.ReadyMs != life.Life.ArrivalMs || int(release.Request) != life.Request || release.WarmUp != life.WarmUp || !release.WarmUp && release.Play != life.Play {
				t.Fatalf("%+v, and the simulation has request %d of play %d at %v, warm-up %v", release, life.Request, life.Play, life.Life.ArrivalMs, life.WarmUp)
			}
			if play, known := salts[release.Salt]; release.Salt == 0 || known && play != release.Play {
				t.Fatalf("plays %d and %d have the salt %d", play, release.Play, release.Salt)
			}
			salts[release.Salt] = release.Play
		}
		if len(releases) != len(lives) {
			t.Fatalf("%d releases, and the simulation has %d", len(releases), len(lives))
		}
		m := Measured{Scenario: r.Scenario()}
		for _, life := range lives {
			m.Requests = append(m.Requests, MeasuredRequest{RequestRecord: life, Number: life.Life.Number})
		}
		measured, err := Summarise(cfg, w, m)
		if err != nil || !reflect.DeepEqual(measured.AgentX, report.AgentX) {
			t.Fatalf("measured\n%+v, %v\nsimulated\n%+v", measured.AgentX, err, report.AgentX)
		}
		start, end, ok := r.WindowMs()
		if !ok || start != report.AgentX.StartMs || end != start+1000*cfg.AgentX.DurationS || r.StopMs() < end || r.Err() != nil {
			t.Fatalf("the window is from %v to %v, stops at %v, %v; the simulation's starts at %v", start, end, r.StopMs(), r.Err(), report.AgentX.StartMs)
		}
	})
}

// A window has what starts in it, moved to its beginning.
func TestReleasesOfAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawGraph(t)
		if rapid.Bool().Draw(t, "sessions") {
			w = drawWorkload(t, shape{})
		}
		cfg := DefaultConfig()
		cfg.Load.Speedup = rapid.SampledFrom([]float64{1, 2, .5}).Draw(t, "speedup")
		at := func(r *Releases, err error) map[int32]float64 {
			if err != nil && strings.Contains(err.Error(), "nothing of") {
				return map[int32]float64{}
			}
			if err != nil {
				t.Fatal(err)
			}
			out := map[int32]float64{}
			for _, release := range drive(r, func(release Release) float64 { return release.ReadyMs + 5 }) {
				out[release.Request] = release.ReadyMs
			}
			return out
		}
		ctx := context.Background()
		all := at(NewReleases(ctx, cfg, w, Window{}))
		whole := at(NewReleases(ctx, cfg, w, Window{ToMs: math.MaxFloat64}))
		if len(all) != w.Requests() || fmt.Sprint(all) != fmt.Sprint(whole) {
			t.Fatalf("the whole is %v, a window of all of it %v", all, whole)
		}
		cut := rapid.Float64Range(1, 500).Draw(t, "cut")
		first := at(NewReleases(ctx, cfg, w, Window{ToMs: cut}))
		second := at(NewReleases(ctx, cfg, w, Window{FromMs: math.Nextafter(cut, math.Inf(1)), ToMs: math.MaxFloat64}))
		if len(first)+len(second) != len(all) {
			t.Fatalf("%d and %d requests start until %v ms and after, of %d", len(first), len(second), cut, len(all))
		}
		for request, ms := range second {
			if _, both := first[request]; both || math.Abs(ms-(all[request]-cut/cfg.Load.Speedup)) > 1e-6 {
				t.Fatalf("request %d is released at %v in the window from %v ms on, and at %v in the whole", request, ms, cut, all[request])
			}
		}
	})
}

func TestReleasesAreRefused(t *testing.T) {
	b := workload.NewBuilder("made", 16)
	b.Add(workload.Request{Input: 16, Output: 1})
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Config)
		window Window
		want   string
	}{
		{"closed loop", func(c *Config) { c.Load.Mode, c.Load.Concurrency = LoadConcurrency, 1 }, Window{ToMs: 1}, "window: only a workload that is replayed at its own times has one"},
		{"empty", func(*Config) {}, Window{FromMs: 1000, ToMs: 2000}, "window: nothing of made starts between 1 and 2 s"},
		{"scenario", func(c *Config) {
			c.AgentX.Preset, c.Load.Mode, c.Load.Concurrency = AgentXRFC, LoadConcurrency, 1
		}, Window{}, "the scenario plays conversations"},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		if _, err := NewReleases(context.Background(), cfg, w, c.window); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// Blocks are equal as far as prompts are.
func TestBlocksOfReleases(t *testing.T) {
	b := workload.NewBuilder("made", 16)
	for _, hashes := range [][]uint64{{1, 2, 3}, {1, 2, 4}, {9, 2, 3}} {
		b.Add(workload.Request{Input: 48, Output: 1, Hashes: hashes})
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Engine.BlockSize = 16
	r, err := NewReleases(context.Background(), cfg, w, Window{})
	if err != nil {
		t.Fatal(err)
	}
	var blocks [3][]uint64
	for i := range blocks {
		if blocks[i], err = r.AppendBlocks(nil, int32(i)); err != nil || len(blocks[i]) < 3 {
			t.Fatalf("blocks %v, %v", blocks[i], err)
		}
	}
	if !slices.Equal(blocks[0][:2], blocks[1][:2]) || blocks[0][2] == blocks[1][2] || blocks[0][0] == blocks[2][0] || blocks[0][1] == blocks[2][1] {
		t.Errorf("blocks are %v, and the first two prompts share two of them", blocks)
	}
}
