package simcore

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/rules"
)

// drawPools makes the configuration of a disaggregated deployment, with pools that are often too small.
func drawPools(t *rapid.T, s shape) Config {
	c := drawConfig(t, s)
	c.Deployment.Mode = ModeDisaggregated
	c.Deployment.PrefillWorkers = rapid.IntRange(1, 3).Draw(t, "prefill workers")
	c.Deployment.DecodeWorkers = rapid.IntRange(1, 3).Draw(t, "decode workers")
	e := c.Engine
	if c.Compat != rules.Default && e.Type == engine.TypeTensorRTLLM {
		e.Type = engine.TypeVLLM
	}
	e.KVBytesPerToken = 1000
	e.KVTransferBandwidth = rapid.SampledFrom([]float64{0, .001, .01}).Draw(t, "transfer bandwidth")
	e.KVTransferTimingMode = rapid.SampledFrom(engine.TransferTimingModes()).Draw(t, "timing mode")
	c.Prefill, c.Decode = Stage{e, c.Timing}, Stage{e, c.Timing}
	d := &c.Decode.Engine
	d.NumGPUBlocks = rapid.IntRange(1, 60).Draw(t, "decode blocks") * max(1, 16/e.BlockSize)
	d.MaxNumSeqs = rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "decode sequences")
	return c
}

// TestPoolRunsEqualSinglePasses checks that in a disaggregated deployment, too, simulating runs of equal passes at once
// changes nothing.
func TestPoolRunsEqualSinglePasses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, cfg, model := drawWorkload(rt, shape{noZeroOutput: true}), drawPools(rt, shape{}), drawModel(rt)
		want := simulate(rt, cfg, w, Options{everyPass: true, model: model})
		got := simulate(rt, cfg, w, Options{model: model})
		if fmt.Sprint(want.Err) != fmt.Sprint(got.Err) {
			rt.Fatalf("every pass: %v\nruns:       %v", want.Err, got.Err)
		}
		if diff := diffOutcomes(want, got); diff != "" {
			rt.Fatalf("(-every pass +runs):\n%s", diff)
		}
	})
}

// TestRunsOfUnknownRolesEqualSinglePasses checks the same of engines that do not know what they are for (engine.worker_type).
func TestRunsOfUnknownRolesEqualSinglePasses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, cfg, model := drawWorkload(rt, shape{noZeroOutput: true}), drawPools(rt, shape{}), drawModel(rt)
		cfg.Compat, cfg.Tiers = rules.Dynamo12, tiers.DefaultConfig()
		for _, e := range []*engine.Config{&cfg.Prefill.Engine, &cfg.Decode.Engine} {
			e.Type, e.BlockSize, e.SGLang = engine.TypeVLLM, 16, engine.DefaultSGLang()
			e.WorkerType = rapid.SampledFrom([]string{"", engine.WorkerTypeAggregated}).Draw(rt, "worker type")
		}
		want := simulate(rt, cfg, w, Options{everyPass: true, model: model})
		got := simulate(rt, cfg, w, Options{model: model})
		if fmt.Sprint(want.Err) != fmt.Sprint(got.Err) {
			rt.Fatalf("every pass: %v\nruns:       %v", want.Err, got.Err)
		}
		if diff := diffOutcomes(want, got); diff != "" {
			rt.Fatalf("(-every pass +runs):\n%s", diff)
		}
	})
}

// TestPoolsLoseNothing checks that every request is over in the end, and that its hand-off happened in order.
func TestPoolsLoseNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, cfg := drawWorkload(rt, shape{noZeroOutput: true}), drawPools(rt, shape{})
		o := simulate(rt, cfg, w, Options{model: drawModel(rt)})
		if o.Err != nil {
			return
		}
		for _, r := range o.Records {
			checkHandoff(rt, cfg, r)
		}
		r := o.Report
		if over := r.CompletedRequests + r.RejectedRequests + r.UnfinishedRequests; r.NumRequests != over {
			rt.Fatalf("%d arrived, %d completed, %d rejected, %d unfinished", r.NumRequests, r.CompletedRequests, r.RejectedRequests, r.UnfinishedRequests)
		}
		if capped := cfg.Load.MaxSimTimeSeconds > 0; !capped && (int(r.NumRequests) != w.Requests() || r.UnfinishedRequests != 0) {
			rt.Fatalf("of %d requests %d arrived and %d are unfinished", w.Requests(), r.NumRequests, r.UnfinishedRequests)
		}
	})
}

// checkHandoff checks that the steps of one request are possible.
func checkHandoff(t *rapid.T, cfg Config, record RequestRecord) {
	t.Helper()
	r, h := record.Life, record.Handoff
	if int(h.PrefillWorker) >= cfg.Deployment.PrefillWorkers || int(r.Worker) >= cfg.Deployment.DecodeWorkers {
		t.Fatalf("request %d is on prefill worker %d and decode worker %d", record.Request, h.PrefillWorker, r.Worker)
	}
	steps := []float64{r.ArrivalMs, r.AdmittedMs, h.SourceHeldMs, h.DestinationReservedMs, h.ActivatedMs, h.DecodeAdmittedMs, r.FirstTokenMs, r.LastTokenMs}
	if cfg.Prefill.Engine.Type == engine.TypeSGLang { // reserves first
		steps = []float64{r.ArrivalMs, h.DestinationReservedMs, r.AdmittedMs, h.SourceHeldMs, h.ActivatedMs, h.DecodeAdmittedMs, r.FirstTokenMs, r.LastTokenMs}
	}
	for i, step := range steps {
		if i > 0 && step != engine.Never && (steps[i-1] == engine.Never || step < steps[i-1]) {
			t.Fatalf("request %d goes back in time: %v", record.Request, steps)
		}
	}
	if r.State == engine.Completed && r.Tokens != r.Output {
		t.Fatalf("request %d is completed with %d of %d tokens", record.Request, r.Tokens, r.Output)
	}
	if h.SourceReleasedMs != engine.Never && h.SourceReleasedMs < h.ActivatedMs {
		t.Fatalf("the source of request %d is released at %v, before its prompt is there", record.Request, h.SourceReleasedMs)
	}
}
