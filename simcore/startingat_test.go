package simcore_test

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
)

// TestStartingAt simulates sessions of agents again with every request at the time at which it was released, and finds the same
// lives, for any topology; and without some of them, those are never seen.
func TestStartingAt(t *testing.T) {
	w, err := workload.PresetSpec{Name: workload.PresetAgentic, Requests: 200, Rate: 2}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, cfg simcore.Config, w *workload.Workload) []simcore.RequestRecord {
		t.Helper()
		records := make([]simcore.RequestRecord, w.Requests())
		for i := range records {
			records[i].Request = -1
		}
		if _, err := simcore.Run(context.Background(), cfg, w, simcore.Options{Records: func(r simcore.RequestRecord) { records[r.Request] = r }}); err != nil {
			t.Fatal(err)
		}
		return records
	}
	for name, change := range map[string]func(*simcore.Config){
		"alone":         func(*simcore.Config) {},
		"round robin":   func(c *simcore.Config) { c.Deployment.Workers = 3 },
		"kv router":     func(c *simcore.Config) { c.Deployment.Workers, c.Router.Policy = 2, "kv_router" },
		"disaggregated": func(c *simcore.Config) { c.Deployment.Mode = simcore.ModeDisaggregated },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := simcore.DefaultConfig()
			change(&cfg)
			first := run(t, cfg, w)
			starts := make([]float64, len(first))
			for i, r := range first {
				starts[i] = r.Life.ArrivalMs
			}
			again, err := w.StartingAt(starts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, run(t, cfg, again), cmpopts.IgnoreUnexported(engine.Request{}, simcore.Handoff{})); diff != "" {
				t.Errorf("the same starts give other lives:\n%.2000s", diff)
			}
			starts[7], starts[8] = math.Inf(1), math.Inf(1)
			without, err := w.StartingAt(starts)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range run(t, cfg, without) {
				if seen := r.Request >= 0; seen != (i != 7 && i != 8) {
					t.Errorf("request %d: seen is %v", i, seen)
				}
			}
		})
	}
	for _, bad := range [][]float64{nil, make([]float64, 7), {0: math.NaN(), 199: 0}, {0: -1, 199: 0}} {
		if _, err := w.StartingAt(bad); err == nil {
			t.Errorf("%d starts are taken", len(bad))
		}
	}
}
