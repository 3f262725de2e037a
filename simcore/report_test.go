package simcore

import (
	"context"
	"math"
	"testing"

	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/workload"
)

// classesWorkload has four requests a second apart, of two priorities and two policy classes; every second prompt is long.
func classesWorkload(t *testing.T) *workload.Workload {
	t.Helper()
	b := workload.NewBuilder("classes", 512)
	for i, hints := range []workload.Hints{{}, {Priority: 5}, {PolicyClass: "batch"}, {Priority: 5, PolicyClass: "batch"}} {
		r := workload.Request{ArrivalMs: float64(1000 * i), Input: 100, Output: 5, Hashes: []uint64{uint64(i)}, Hints: hints}
		if i%2 == 1 {
			r.Input, r.Hashes = 1000, []uint64{uint64(i), uint64(100 + i)}
		}
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestGoodputByClass gives long prompts more time than the SLA allows, and works the rest out by hand.
func TestGoodputByClass(t *testing.T) {
	cfg := DefaultConfig()
	cfg.SLA.TTFTMs = 20 // the polynomial takes 18 ms for 100 tokens and 32 ms for 1000
	report, err := Run(context.Background(), cfg, classesWorkload(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, got []metrics.ClassGoodput, want map[string][2]int64) {
		t.Helper()
		if len(got) != len(want) {
			t.Errorf("%s: %d classes, want %d", what, len(got), len(want))
		}
		for _, c := range got {
			w := want[c.Class]
			if c.Requests != w[0] || c.CompletedRequests != w[1] || c.SLAAttainment != float64(w[1])/float64(w[0]) ||
				math.Abs(c.OutputThroughputTokS*report.DurationMs/1000-5*float64(w[1])) > 1e-9 {
				t.Errorf("%s %q: %+v, want %d of %d good", what, c.Class, c, w[1], w[0])
			}
		}
	}
	check("priority", report.GoodputByPriority, map[string][2]int64{"0": {2, 2}, "5": {2, 0}})
	check("policy class", report.GoodputByPolicyClass, map[string][2]int64{"": {2, 1}, "batch": {2, 1}})
	if report.Goodput.CompletedRequests != 2 {
		t.Errorf("%d good requests, want 2", report.Goodput.CompletedRequests)
	}
}

// TestUtilisation works out how long workers are busy with passes of fixed time: 30 ms of prefill and 4 steps of 10 ms a
// request, a second apart.
func TestUtilisation(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Timing = perfmodel.DefaultConfig()
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 30, 10
	cfg.Deployment.Workers = 2
	together, err := Run(context.Background(), cfg, classesWorkload(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 * .07 / together.DecodeWorkerSeconds; math.Abs(together.DecodeUtilisation-want) > 1e-9 || together.PrefillUtilisation != 0 {
		t.Errorf("utilisation %v and %v, want 0 and %v", together.PrefillUtilisation, together.DecodeUtilisation, want)
	}
	cfg.Deployment = Deployment{Mode: ModeDisaggregated, PrefillWorkers: 1, DecodeWorkers: 2}
	cfg.Prefill, cfg.Decode = Stage{cfg.Engine, cfg.Timing}, Stage{cfg.Engine, cfg.Timing}
	split, err := Run(context.Background(), cfg, classesWorkload(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 * .03 / split.PrefillWorkerSeconds; math.Abs(split.PrefillUtilisation-want) > 1e-9 {
		t.Errorf("utilisation of prefill workers %v, want %v", split.PrefillUtilisation, want)
	}
	if split.DecodeUtilisation <= 0 || split.DecodeUtilisation > .1 || split.Handoff == nil || split.RouterQueue != nil {
		t.Errorf("utilisation of decode workers %v, hand-off %v, router queue %v", split.DecodeUtilisation, split.Handoff, split.RouterQueue)
	}
}
