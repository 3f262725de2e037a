package simcore

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// drawDeployment makes any deployment and a workload for it.
func drawDeployment(t *rapid.T) (*workload.Workload, Config) {
	s := shape{noZeroOutput: rapid.Bool().Draw(t, "all have output")}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return drawWorkload(t, s), drawConfig(t, s)
	case 1:
		s.noZeroOutput = true
		return drawWorkload(t, s), drawPools(t, s)
	case 2:
		w, _, cfg := underPressure(t)
		inPools(t, &cfg)
		return w, cfg
	case 3:
		cfg := drawConfig(t, s)
		if rapid.Bool().Draw(t, "graph in pools") {
			cfg = drawPools(t, s)
		}
		cfg.Compat = rules.Default
		return drawGraph(t), cfg
	}
	cfg := DefaultConfig()
	cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 4096
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 20, 3
	cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, rapid.IntRange(1, 5).Draw(t, "users")
	cfg.AgentX.Preset, cfg.AgentX.DurationS = AgentXRFC, rapid.Float64Range(1, 40).Draw(t, "duration")
	return conversations(t), cfg
}

// TestLatencyPartsAddUp checks in any deployment that the parts of each request's latency add up to it, that their means and
// shares do, that only requests which can be stalled are, and that limits do not take more time than there is.
func TestLatencyPartsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, cfg := drawDeployment(rt)
		o := simulate(rt, cfg, w, Options{model: drawModel(rt)})
		if o.Err != nil {
			return
		}
		for _, r := range o.Records {
			checkParts(rt, r, o.Report.Preemptions > 0)
		}
		r := o.Report
		value := func(name string) float64 {
			for _, f := range metrics.Fields() {
				if f.Name == name {
					v, _ := f.Value(r)
					return v
				}
			}
			rt.Fatalf("there is no %s", name)
			return 0
		}
		means, shares, limits := 0.0, 0.0, 0.0
		for _, part := range []string{"queue", "prefill", "transfer", "decode", "stall"} {
			means += value("mean_" + part + "_time_ms")
			shares += value(part + "_time_share")
		}
		for _, l := range metrics.LimitFields() {
			limits += value(l.Field)
		}
		if !within(means, r.E2ELatency.Mean) || r.E2ELatency.Mean > 0 && !within(shares, 1) || limits > 1+1e-9 && cfg.Load.MaxSimTimeSeconds == 0 && !cfg.AgentX.Enabled() {
			rt.Fatalf("parts sum to %v of %v ms, shares to %v, limits to %v", means, r.E2ELatency.Mean, shares, limits)
		}
	})
}

// within allows for rounding.
func within(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func checkParts(t *rapid.T, record RequestRecord, preemptions bool) {
	r, p := record.Life, record.Parts
	if r.Tokens == 0 {
		if p != (LatencyParts{}) {
			t.Fatalf("request %d has no token, and %+v", record.Request, p)
		}
		return
	}
	for _, part := range []float64{p.QueueMs, p.PrefillMs, p.TransferMs, p.DecodeMs, p.StallMs} {
		if !(part >= 0) {
			t.Fatalf("request %d has a part below 0: %+v", record.Request, p)
		}
	}
	if !within(p.TotalMs(), r.LastTokenMs-r.ArrivalMs) {
		t.Fatalf("request %d: %+v sum to %v, and the latency is %v", record.Request, p, p.TotalMs(), r.LastTokenMs-r.ArrivalMs)
	}
	if p.TransferMs > 0 && record.Handoff == nil && r.LoadWaitMs == 0 {
		t.Fatalf("request %d waited for no transfer, and has %+v", record.Request, p)
	}
	if preemptions || r.LoadWaitMs > 0 {
		return
	}
	want := LatencyParts{QueueMs: r.AdmittedMs - r.ArrivalMs, PrefillMs: r.FirstTokenMs - r.AdmittedMs, DecodeMs: r.LastTokenMs - r.FirstTokenMs}
	if h := record.Handoff; h != nil {
		want = LatencyParts{QueueMs: r.AdmittedMs - r.ArrivalMs, PrefillMs: h.SourceHeldMs - r.AdmittedMs, TransferMs: h.ActivatedMs - h.SourceHeldMs,
			DecodeMs: r.LastTokenMs - h.DecodeAdmittedMs, StallMs: h.DecodeAdmittedMs - h.ActivatedMs}
	}
	if diff := cmp.Diff(want, p, closeTo); diff != "" {
		t.Fatalf("request %d was never preempted (-want +got):\n%s", record.Request, diff)
	}
}

// fixedTimes makes prompts take 10 ms a pass and decode steps 1 ms, with blocks of 4 tokens.
func fixedTimes() Config {
	cfg := DefaultConfig()
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 10, 1
	cfg.Engine.BlockSize, cfg.Engine.EnablePrefixCaching = 4, false
	return cfg
}

// atOnce makes requests that arrive together.
func atOnce(t testing.TB, lengths ...[2]int) *workload.Workload {
	var requests []workload.Request
	for i, l := range lengths {
		requests = append(requests, workload.Request{Session: string(rune('a' + i)), Input: l[0], Output: l[1], Hashes: []uint64{uint64(i)}})
	}
	return build(t, 512, requests)
}

// TestLatencyPartsByHand follows requests through what can happen to them.
func TestLatencyPartsByHand(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*Config)
		lengths [][2]int
		want    []LatencyParts
	}{
		{
			// The pass of both prompts takes 10 ms, then come four decode steps. The next one needs a fourth block for each
			// request where seven are left for both, so that the second one loses its three at 14 ms. The first one goes on for
			// another three steps. At 17 ms all 13 tokens of the second one are computed again, which with a step for its sixth
			// token takes 11 ms, and two more steps give the rest.
			"preempted",
			func(c *Config) { c.Engine.NumGPUBlocks = 7 },
			[][2]int{{8, 8}, {8, 8}},
			[]LatencyParts{{PrefillMs: 10, DecodeMs: 7}, {PrefillMs: 10, DecodeMs: 6, StallMs: 14}},
		},
		{
			"batch of one",
			func(c *Config) { c.Engine.MaxNumSeqs = 1 },
			[][2]int{{8, 3}, {8, 2}},
			[]LatencyParts{{PrefillMs: 10, DecodeMs: 2}, {QueueMs: 12, PrefillMs: 10, DecodeMs: 1}},
		},
		{
			// A prompt of 16 tokens takes two passes of 8; the next one comes after it.
			"chunks",
			func(c *Config) { c.Engine.MaxNumBatchedTokens = 8 },
			[][2]int{{16, 1}, {8, 1}},
			[]LatencyParts{{PrefillMs: 20}, {QueueMs: 20, PrefillMs: 10}},
		},
		{
			// 8 tokens of 1000 bytes at 1e6 bytes/s take 8 ms, and a token of the decode worker a step each. Both requests arrive
			// there together; one decodes at a time.
			"pools",
			func(c *Config) {
				c.Deployment = Deployment{Mode: ModeDisaggregated, PrefillWorkers: 1, DecodeWorkers: 1}
				c.Engine.KVBytesPerToken, c.Engine.KVTransferBandwidth = 1000, .001
				c.Prefill, c.Decode = Stage{c.Engine, c.Timing}, Stage{c.Engine, c.Timing}
				c.Decode.Engine.MaxNumSeqs = 1
			},
			[][2]int{{8, 3}, {8, 2}},
			[]LatencyParts{{PrefillMs: 10, TransferMs: 8, DecodeMs: 3}, {PrefillMs: 10, TransferMs: 8, DecodeMs: 2, StallMs: 3}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := fixedTimes()
			test.change(&cfg)
			_, records := mustRun(t, cfg, atOnce(t, test.lengths...))
			var got []LatencyParts
			for _, r := range records {
				got = append(got, r.Parts)
			}
			if diff := cmp.Diff(test.want, got, closeTo); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLimitsByHand makes each limit hold.
func TestLimitsByHand(t *testing.T) {
	many := slices.Repeat([][2]int{{8, 3}}, 4)
	for _, test := range []struct {
		name    string
		change  func(*Config)
		lengths [][2]int
		want    metrics.Limited
	}{
		{"nothing", func(*Config) {}, many, metrics.Limited{}},
		// The first pass, 10 ms, computes the first prompt and begins the second one; the next one, 11 ms with a decode step, ends
		// that and begins the third one. The fourth one begins in the third pass. Three more end all.
		{"compute", func(c *Config) { c.Engine.MaxNumBatchedTokens = 10 }, many, metrics.Limited{Compute: 21. / 45}},
		// Each request takes 12 ms by itself, and the last one has nobody behind it.
		{"batch slots", func(c *Config) { c.Engine.MaxNumSeqs = 1 }, many, metrics.Limited{BatchSlots: 36. / 48}},
		{"KV memory", func(c *Config) { c.Engine.NumGPUBlocks = 3 }, many, metrics.Limited{KVMemory: 36. / 48}},
		// The two workers of the pools exist for 10 + 8 + 3 ms; the decode worker has nothing else to do for 8 ms.
		{"transfer", func(c *Config) {
			c.Deployment = Deployment{Mode: ModeDisaggregated, PrefillWorkers: 1, DecodeWorkers: 1}
			c.Engine.KVBytesPerToken, c.Engine.KVTransferBandwidth = 1000, .001
			c.Prefill, c.Decode = Stage{c.Engine, c.Timing}, Stage{c.Engine, c.Timing}
		}, many, metrics.Limited{Transfer: 8. / 42}},
		// The router lets the next prompt go when the one before is computed, at 10, 21 and 32 ms.
		{"router", func(c *Config) {
			c.Router.Policy, c.Router.RouterQueueThreshold = router.PolicyKVRouter, 0
		}, many, metrics.Limited{Router: 32. / 45}},
	} {
		for _, kind := range engine.Types() {
			for _, opt := range []Options{{}, {everyPass: true}, {oneClock: true}} {
				if kind == engine.TypeSGLang && test.name != "nothing" && test.name != "batch slots" {
					continue // its passes are others
				}
				cfg := fixedTimes()
				cfg.Engine.Type = kind
				test.change(&cfg)
				r, err := Run(context.Background(), cfg, atOnce(t, test.lengths...), opt)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, r.Limited, closeTo); diff != "" {
					t.Errorf("%s, %s, %+v (-want +got):\n%s", test.name, kind, opt, diff)
				}
			}
		}
	}
}

// TestLimitingResource makes each limit the largest one with every scheduler.
func TestLimitingResource(t *testing.T) {
	many := slices.Repeat([][2]int{{16, 12}}, 20)
	for want, change := range map[string]func(*engine.Config){
		metrics.LimitNone: func(*engine.Config) {},
		"compute":         func(e *engine.Config) { e.MaxNumBatchedTokens, e.SGLang.ChunkedPrefillSize = 24, 16 },
		"batch_slots":     func(e *engine.Config) { e.MaxNumSeqs = 2 },
		"kv_memory":       func(e *engine.Config) { e.NumGPUBlocks = 20 },
	} {
		for _, kind := range engine.Types() {
			cfg := fixedTimes()
			cfg.Engine.Type = kind
			change(&cfg.Engine)
			r, _ := mustRun(t, cfg, atOnce(t, many...))
			var shares []float64
			for _, l := range metrics.LimitFields() {
				for name, v := range figures(t, r, map[string]float64{l.Field: 0}) {
					if name == l.Field {
						shares = append(shares, v)
					}
				}
			}
			if got := metrics.LimitingResource(shares); got != want {
				t.Errorf("%s is limited by %s, want %s: %+v", kind, got, want, r.Limited)
			}
		}
	}
}
