package simcore

import (
	"context"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// tiered makes a vLLM configuration with prefix caching for tests of memory tiers.
func tiered(t *rapid.T) Config {
	cfg := drawConfig(t, shape{noCap: true})
	cfg.Compat, cfg.SLA, cfg.Tiers = rules.Default, SLA{}, tiers.DefaultConfig()
	cfg.Engine.Type = rapid.SampledFrom(engine.Types()).Draw(t, "tiered engine")
	cfg.Engine.EnablePrefixCaching, cfg.Engine.EnableChunkedPrefill, cfg.Engine.KVBytesPerToken = true, true, 1000
	cfg.Engine.ContextLength = 0
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 10, 2
	return cfg
}

// drawRepeats makes requests whose prompts have a few beginnings in common and come again and again.
func drawRepeats(t *rapid.T) (blockSize int, requests []workload.Request) {
	const blocks = 12 // of the longest prompt
	families := rapid.Uint64Range(1, 4).Draw(t, "families")
	at := 0.0
	for i := range rapid.IntRange(10, 40).Draw(t, "requests") {
		family := rapid.Uint64Range(1, families).Draw(t, "family")
		r := workload.Request{Session: strconv.Itoa(i), Output: rapid.IntRange(1, 12).Draw(t, "output")}
		for k := range rapid.Uint64Range(1, blocks).Draw(t, "prompt") {
			r.Hashes = append(r.Hashes, family*blocks+k)
		}
		r.Input = 4*len(r.Hashes) - rapid.IntRange(0, 3).Draw(t, "cut")
		at += rapid.SampledFrom([]float64{0, 2, 30, 400}).Draw(t, "pause")
		r.ArrivalMs = at
		requests = append(requests, r)
	}
	return 4, requests
}

// underPressure makes repeating requests and a configuration whose pools hold a few of them.
func underPressure(t *rapid.T) (*workload.Workload, []workload.Request, Config) {
	blockSize, requests := drawRepeats(t)
	if rapid.IntRange(0, 2).Draw(t, "any") == 0 {
		blockSize, requests = drawRequests(t, shape{})
	}
	cfg := tiered(t)
	cfg.Deployment.Workers = rapid.IntRange(1, 2).Draw(t, "fewer workers")
	cfg.Timing.PrefillMs = rapid.SampledFrom([]float64{10, 200}).Draw(t, "prefill")
	cfg.Engine.BlockSize = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "page")
	cfg.Engine.NumGPUBlocks = blocksOf(requests, cfg.Engine.BlockSize) + rapid.IntRange(0, 80/cfg.Engine.BlockSize).Draw(t, "spare")
	cfg.Engine.SGLang = DefaultConfig().Engine.SGLang // whose limits do not keep prompts from being admitted
	cfg.Engine.SGLang.SchedulePolicy = rapid.SampledFrom(engine.SchedulePolicies()).Draw(t, "order")
	cfg.Engine.SGLang.ChunkedPrefillSize = rapid.SampledFrom([]int{0, 8, 32}).Draw(t, "chunk of sglang")
	return build(t, blockSize, requests), requests, cfg
}

// inPools makes a configuration disaggregated, sometimes.
func inPools(t *rapid.T, cfg *Config) {
	if !rapid.Bool().Draw(t, "disaggregated") {
		return
	}
	cfg.Deployment = Deployment{Mode: ModeDisaggregated,
		PrefillWorkers: rapid.IntRange(1, 2).Draw(t, "prefill workers"),
		DecodeWorkers:  rapid.IntRange(1, 2).Draw(t, "decode workers"),
	}
	cfg.Prefill = Stage{cfg.Engine, cfg.Timing}
	cfg.Decode = cfg.Prefill
	cfg.Prefill.Engine.KVTransferBandwidth = rapid.SampledFrom([]float64{0, .002}).Draw(t, "transfer")
	cfg.Engine, cfg.Timing = DefaultConfig().Engine, DefaultConfig().Timing
	cfg.Tiers.DecodeOffload = rapid.Bool().Draw(t, "decode offload")
}

// blocksOf is the most KV blocks that one of the requests needs, with one to spare, as SGLang wants more room than it takes.
func blocksOf(requests []workload.Request, blockSize int) int {
	most := 0
	for _, r := range requests {
		most = max(most, (r.Input+r.Output)/blockSize+2)
	}
	return most
}

// TestInstantHostMemoryIsLikeGPUMemory checks that host memory whose links take no time does what as many more blocks of
// GPU memory do, as long as what runs fits into the GPU's own: every request reuses as much, at the same times. The
// vLLM-style scheduler keeps copies of blocks on the GPU, and host memory has none of them, so that requests one after
// another reuse at least as much there.
func TestInstantHostMemoryIsLikeGPUMemory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, requests, cfg := underPressure(rt)
		for i := range requests {
			requests[i].PlannedOutput = nil // a token may take a slot before its block is known to be cached
		}
		w = build(rt, w.BlockSize, requests)
		copies := cfg.Engine.Type == engine.TypeVLLM
		if copies {
			cfg.Deployment.Workers = 1
			cfg.Load = Load{Mode: LoadConcurrency, Speedup: 1, Concurrency: 1}
		}
		if cfg.Router.UsesIndex() {
			cfg.Router = router.DefaultConfig() // that one sees what is in GPU memory
		}
		cfg.Engine.MaxNumSeqs = rapid.IntRange(1, 3).Draw(rt, "running")
		cfg.Engine.MaxNumBatchedTokens = 0 // nothing is loaded while a pass has no budget left, and cached prompts need none
		fits := cfg.Engine.MaxNumSeqs * blocksOf(requests, cfg.Engine.BlockSize)
		cfg.Engine.NumGPUBlocks = fits + rapid.IntRange(0, 5).Draw(rt, "spare")
		host := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 100)).Draw(rt, "host blocks")
		if cfg.Engine.Type == engine.TypeSGLang {
			host = 10_000                                        // what goes first depends on what is beside it in the tree
			cfg.Engine.SGLang.SchedulePolicy = engine.PolicyFIFO // the other one looks at GPU memory
		}

		larger := cfg
		larger.Engine.NumGPUBlocks += host
		want := simulate(rt, larger, w, Options{})
		cfg.Tiers.NumG2Blocks = host
		cfg.Tiers.OnboardPolicy = rapid.SampledFrom([]string{tiers.OnboardAlways, tiers.OnboardCheaper}).Draw(rt, "onboard")
		got := simulate(rt, cfg, w, Options{})
		if want.Err != nil || got.Err != nil {
			rt.Fatal(want.Err, got.Err)
		}
		if copies {
			reusesNoLess(rt, want.Records, got.Records)
			return
		}
		same := cmp.Options{lives, cmpopts.IgnoreFields(engine.Request{}, "LoadedTokens", "RouteOverlap", "Worker")}
		if diff := cmp.Diff(want.Records, got.Records, same); diff != "" {
			rt.Fatalf("(-larger GPU memory +host memory):\n%s", diff)
		}
		hits := got.Report.Tiers.HitTokens
		if hits[0]+hits[1] < int64(reused(want)) {
			rt.Fatalf("%v tokens hit, want %v", hits, reused(want))
		}
	})
}

// reusesNoLess checks that no request reuses less than before.
func reusesNoLess(rt *rapid.T, before, now []RequestRecord) {
	rt.Helper()
	for i, r := range before {
		if n := now[i].Life.Reused; n < r.Life.Reused {
			rt.Fatalf("request %d reuses %d tokens, and %d before", r.Request, n, r.Life.Reused)
		}
	}
}

// TestLoadsBlockNobody checks that requests which hold room for what they load never keep others, or each other, from
// being served.
func TestLoadsBlockNobody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, _, cfg := underPressure(rt)
		cfg.Engine.EnableChunkedPrefill = rapid.Bool().Draw(rt, "chunks")
		cfg.Engine.SGLang.ChunkedPrefillSize = 0 // half a prompt can keep a running request waiting without tiers, too
		model := drawModel(rt)
		inPools(rt, &cfg)
		if !cfg.Tiers.DecodeOffload {
			cfg.Decode.Engine.NumGPUBlocks *= 40 // requests of a small decode pool can keep each other waiting, too
		}
		without := simulate(rt, cfg, w, Options{model: model})
		drawTiers(rt, &cfg.Tiers)
		with := simulate(rt, cfg, w, Options{model: model})
		if without.Err == nil && with.Err != nil && !cfg.Tiers.DecodeOffload {
			rt.Fatalf("only with tiers: %v", with.Err)
		}
		if with.Err == nil && with.Report.UnfinishedRequests > 0 {
			rt.Fatalf("%d requests are unfinished", with.Report.UnfinishedRequests)
		}
	})
}

func reused(o outcome) float64 {
	return o.Report.PrefixCacheReusedRatio * float64(o.Report.TotalInputTokens)
}

// TestTiersNeverLowerReuse checks that each tier that is added, however slow to load from, leaves the reuse of each request
// at least what it was, when requests come one after another and what is copied down is there at once. (Other times can
// make another order of requests that overlap, and shorter ones leave less time to copies.)
func TestTiersNeverLowerReuse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, _, cfg := underPressure(rt)
		cfg.Deployment.Workers = 1
		cfg.Load = Load{Mode: LoadConcurrency, Speedup: 1, Concurrency: 1}
		drawTiers(rt, &cfg.Tiers)
		cfg.Tiers.OnboardPolicy = tiers.OnboardCheaper
		bandwidths, latencies := tierSpeeds(&cfg.Tiers)
		for _, down := range []int{0, 2, 4} {
			*bandwidths[down], *latencies[down] = 0, 0
		}
		full := cfg.Tiers
		var before []RequestRecord
		for _, add := range []func(*tiers.Config){
			func(c *tiers.Config) { *c = tiers.DefaultConfig() },
			func(c *tiers.Config) { c.NumG3Blocks, c.EnableG4Storage = 0, false },
			func(c *tiers.Config) { c.EnableG4Storage = false },
			func(*tiers.Config) {},
		} {
			cfg.Tiers = full
			add(&cfg.Tiers)
			o := simulate(rt, cfg, w, Options{})
			if o.Err != nil {
				rt.Fatal(o.Err)
			}
			reusesNoLess(rt, before, o.Records)
			before = o.Records
		}
	})
}

// TestTierFigures checks that what the report says about tiers adds up.
func TestTierFigures(t *testing.T) {
	loads := 0
	rapid.Check(t, func(rt *rapid.T) {
		w, _, cfg := underPressure(rt)
		if rapid.IntRange(0, 3).Draw(rt, "capped") == 0 {
			cfg.Load.MaxSimTimeSeconds = rapid.Float64Range(.05, 2).Draw(rt, "cap")
		}
		inPools(rt, &cfg)
		drawTiers(rt, &cfg.Tiers)
		o := simulate(rt, cfg, w, Options{})
		if o.Err != nil {
			return
		}
		figures := o.Report.Tiers
		var waitMs float64
		var loaded int64
		for _, r := range o.Records {
			loaded += int64(r.Life.LoadedTokens)
			waitMs += r.Life.LoadWaitMs
		}
		below := figures.HitTokens[1] + figures.HitTokens[2] + figures.HitTokens[3]
		ended := cfg.Load.MaxSimTimeSeconds == 0 // otherwise some may be on their way
		if bytes := figures.Links[1].Bytes; ended && (bytes != 1000*float64(below) || below != loaded) {
			rt.Fatalf("%v bytes loaded for %d hits, and requests loaded %d tokens", bytes, below, loaded)
		}
		if sum := figures.Waits.Mean * float64(figures.WaitCount); ended && math.Abs(sum-waitMs) > 1e-9*(1+sum) {
			rt.Fatalf("requests waited %v ms, the report says %v", waitMs, sum)
		}
		if below+figures.HitTokens[0] > figures.LookedUpTokens {
			rt.Fatalf("hits %v of %d tokens", figures.HitTokens, figures.LookedUpTokens)
		}
		for i, capacity := range []int{cfg.Tiers.NumG2Blocks, cfg.Tiers.NumG3Blocks} {
			if u := figures.Stores[i]; u.PeakBlocks > int64(capacity) || u.MeanBlocks > float64(u.PeakBlocks)*(1+1e-12) {
				rt.Fatalf("tier %d: %+v of %d blocks", i+2, u, capacity)
			}
		}
		for _, l := range figures.Links {
			if !(l.BusyRatio >= 0 && l.BusyRatio <= 1) {
				rt.Fatalf("busy %v", l.BusyRatio)
			}
		}
		if below > 0 {
			loads++
		}
	})
	if loads == 0 && !testing.Short() { // a few cases may have none
		t.Error("no case has loaded anything")
	}
}

// tierWorkload is three prompts of four blocks, of which the last one is the first one again.
func tierWorkload(t *testing.T) *workload.Workload {
	t.Helper()
	b := workload.NewBuilder("tiers", 10)
	for i, hashes := range [][]uint64{{1, 2, 3, 4}, {5, 6, 7, 8}, {1, 2, 3, 9}} {
		b.Add(workload.Request{Session: string(rune('a' + i)), ArrivalMs: float64(i) * 1000, Input: 40, Output: 1, Hashes: hashes})
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestOnboardingByHand follows one prompt to host memory and back.
func TestOnboardingByHand(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks, cfg.Engine.KVBytesPerToken = 10, 5, 100_000 // a block has 1e6 bytes
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 100, 1
	cfg.Tiers.NumG2Blocks = 10
	cfg.Tiers.BandwidthG1ToG2, cfg.Tiers.BandwidthG2ToG1 = 1, .1
	for _, test := range []struct {
		name   string
		change func(*Config)
		reused int32
		ttftMs float64
	}{
		// The second prompt leaves one block of the first one on the GPU. Two come at 10 ms each, and the fourth is computed.
		{"cheaper", func(*Config) {}, 30, 20 + 100},
		{"too slow", func(c *Config) { c.Tiers.BandwidthG2ToG1 = .02 }, 10, 100},
		{"too slow, but always", func(c *Config) { c.Tiers.BandwidthG2ToG1, c.Tiers.OnboardPolicy = .02, tiers.OnboardAlways }, 30, 100 + 100},
		{"never", func(c *Config) { c.Tiers.OnboardPolicy = tiers.OnboardNever }, 10, 100},
		{"no tiers", func(c *Config) { c.Tiers.NumG2Blocks = 0 }, 10, 100},
		{"on complete", func(c *Config) { c.Tiers.OffloadPolicy = tiers.OffloadOnComplete }, 30, 120},
		{"instant", func(c *Config) { c.Tiers.BandwidthG2ToG1 = 0 }, 30, 100},
		{"latency", func(c *Config) { c.Tiers.LatencyG2ToG1 = 7.5 }, 30, 27.5 + 100},
		{"copied late", func(c *Config) { c.Tiers.LatencyG1ToG2 = 1000 }, 10, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := cfg
			test.change(&cfg)
			var last RequestRecord
			if _, err := Run(context.Background(), cfg, tierWorkload(t), Options{Records: func(r RequestRecord) { last = r }}); err != nil {
				t.Fatal(err)
			}
			if ttft := last.Life.FirstTokenMs - last.Life.ArrivalMs; last.Life.Reused != test.reused || math.Abs(ttft-test.ttftMs) > 1e-9 {
				t.Errorf("%d tokens reused, first token after %v ms; want %d, %v", last.Life.Reused, ttft, test.reused, test.ttftMs)
			}
		})
	}
}
