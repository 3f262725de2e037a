package planner

import (
	"math"
	"reflect"
	"testing"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
	"pgregory.net/rapid"
)

// drawRun draws a small simulation with the policy dynamo.
func drawRun(t *rapid.T) (simcore.Config, Config, workload.Spec) {
	cfg := simcore.DefaultConfig()
	cfg.Compat = rapid.SampledFrom([]rules.Compat{rules.Default, rules.Dynamo13, rules.Dynamo12}).Draw(t, "compat")
	cfg.Timing.Source = perfmodel.SourcePolynomial
	cfg.Engine.StartupTime = rapid.SampledFrom([]float64{0, 3, 20}).Draw(t, "startup")
	cfg.Engine.NumGPUBlocks = rapid.SampledFrom([]int{512, 16384}).Draw(t, "blocks")
	cfg.Deployment.Workers = rapid.IntRange(1, 3).Draw(t, "workers")
	if rapid.Bool().Draw(t, "disaggregated") {
		cfg.Deployment = simcore.Deployment{
			Mode: simcore.ModeDisaggregated, PrefillWorkers: cfg.Deployment.Workers, DecodeWorkers: rapid.IntRange(1, 3).Draw(t, "decode workers"),
		}
		cfg.Prefill = simcore.Stage{Engine: cfg.Engine, Timing: cfg.Timing}
		cfg.Decode = cfg.Prefill
	}
	p := trapConfig(rapid.SampledFrom([]string{"sla", "sla", "throughput", "latency", "load"}).Draw(t, "target"))
	p.TTFTMs = rapid.SampledFrom([]float64{100, 1000}).Draw(t, "ttft")
	p.ITLMs = rapid.SampledFrom([]float64{8, 50}).Draw(t, "itl")
	p.EnableThroughputScaling = rapid.Bool().Draw(t, "throughput scaling")
	p.EnableLoadScaling = !p.EnableThroughputScaling || rapid.Bool().Draw(t, "load scaling")
	p.LoadAdjustmentIntervalSeconds = rapid.IntRange(1, 5).Draw(t, "load interval")
	p.ThroughputAdjustmentIntervalSeconds = rapid.IntRange(6, 20).Draw(t, "throughput interval")
	p.LoadPredictor = rapid.SampledFrom(LoadPredictors()[:3]).Draw(t, "predictor")
	p.MinEndpoint = rapid.IntRange(1, 2).Draw(t, "min_endpoint")
	p.MaxGPUBudget = rapid.SampledFrom([]int{-1, 4, 8}).Draw(t, "max_gpu_budget")
	p.MinGPUBudget = rapid.SampledFrom([]int{-1, 4}).Draw(t, "min_gpu_budget")
	p.PrefillScaleUpQueueTokens, p.PrefillScaleDownQueueTokens = 4000, 100
	p.DecodeScaleUpKVRate, p.DecodeScaleDownKVRate = 50, 10
	s := workload.DefaultSyntheticSpec()
	s.Requests = rapid.IntRange(1, 150).Draw(t, "requests")
	s.InputTokens = rapid.IntRange(1, 6000).Draw(t, "input")
	s.OutputTokens = rapid.IntRange(1, 200).Draw(t, "output")
	s.ArrivalIntervalMs = float64(rapid.IntRange(1, 1000).Draw(t, "interval"))
	return cfg, p, workload.Spec{Synthetic: &s}
}

// TestAnyRun checks of random runs that all requests are served, that the planner keeps within its bounds, and that nothing
// depends on chance.
func TestAnyRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, p, spec := drawRun(t)
		run := func() *Outcome { return simulate(t, cfg, p, spec) }
		out := run()
		if got, want := int(out.Report.CompletedRequests), spec.Synthetic.Requests; got != want {
			t.Errorf("%d requests completed, want %d", got, want)
		}
		checkBounds(t, cfg, out.Record)
		if again := run(); !reflect.DeepEqual(out.Record.Decisions, again.Record.Decisions) ||
			!reflect.DeepEqual(out.Record.Events, again.Record.Events) {
			t.Error("a second run decides otherwise")
		}
	})
}

func checkBounds(t *rapid.T, cfg simcore.Config, r *Record) {
	before := 0.0
	for _, k := range r.Ticks {
		if k.AtMs < before || k.NowMs > k.AtMs+1e-6 || math.IsNaN(k.GPUHours) {
			t.Errorf("tick at %v ms, now %v, after %v, GPU hours %v", k.AtMs, k.NowMs, before, k.GPUHours)
		}
		before = k.AtMs
	}
	for _, d := range r.Decisions {
		if d.To < r.Config.MinEndpoint || d.From == d.To {
			t.Errorf("%+v with min_endpoint %d", d, r.Config.MinEndpoint)
		}
		if top := r.Config.MaxGPUBudget; top >= 0 && d.To > top {
			t.Errorf("%+v with max_gpu_budget %d", d, top)
		}
	}
	if cfg.Compat == rules.Default {
		asked := map[int]int{}
		for _, d := range r.Decisions {
			if last, ok := asked[d.Pool]; ok && last == d.To {
				t.Errorf("%+v is asked for again", d)
			}
			asked[d.Pool] = d.To
		}
	}
}
