package simcore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// figure returns a figure of a report by its name.
func figure(t rapid.TB, r *Report, name string) float64 {
	t.Helper()
	for _, f := range metrics.Fields() {
		if f.Name == name {
			v, _ := f.Value(r)
			return v
		}
	}
	t.Fatalf("no figure %s", name)
	return 0
}

func boundMetrics() []string {
	var names []string
	for _, statistic := range []string{"mean", "median", "p75", "p90", "p95", "p99", "max"} {
		for _, of := range []string{"ttft_ms", "tpot_ms", "e2e_latency_ms"} {
			names = append(names, statistic+"_"+of)
		}
	}
	return names
}

// drawBounds draws bounds near what a run without them gives.
func drawBounds(t *rapid.T, full outcome) []Bound {
	var out []Bound
	for range rapid.IntRange(1, 3).Draw(t, "bounds") {
		b := Bound{Metric: rapid.SampledFrom(boundMetrics()).Draw(t, "metric")}
		b.Limit = rapid.Float64Range(0, 100).Draw(t, "limit")
		if full.Err == nil && rapid.IntRange(0, 3).Draw(t, "near") > 0 {
			b.Limit = figure(t, full.Report, b.Metric) * rapid.SampledFrom([]float64{0, .5, .9, .999, 1, 1.001, 2}).Draw(t, "share of the figure")
		}
		out = append(out, b)
	}
	return out
}

// checkBounds compares a run that bounds may end with the whole run.
func checkBounds(t *rapid.T, cfg Config, w *workload.Workload, opt Options) {
	full := simulate(t, cfg, w, opt)
	opt.Bounds = drawBounds(t, full)
	report, err := Run(context.Background(), cfg, w, opt)
	var lost *LostError
	switch {
	case errors.As(err, &lost):
		if full.Err == nil && !(figure(t, full.Report, lost.Bound.Metric) > lost.Bound.Limit) {
			t.Fatalf("%v, but the whole run has %v", lost, figure(t, full.Report, lost.Bound.Metric))
		}
	case fmt.Sprint(err) != fmt.Sprint(full.Err):
		t.Fatalf("with bounds: %v\nwithout:     %v", err, full.Err)
	default:
		if diff := diffOutcomes(full, outcome{Report: report, Records: full.Records}); err == nil && diff != "" {
			t.Fatalf("(-without +with bounds):\n%s", diff)
		}
	}
}

// TestLostBoundsAreLost checks that a run which a bound ends would have been beyond that bound in the end, or would have
// failed, and that bounds change nothing about a run that they do not end.
func TestLostBoundsAreLost(t *testing.T) {
	t.Run("aggregated", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			checkBounds(rt, drawConfig(rt, shape{}), drawWorkload(rt, shape{}), Options{model: drawModel(rt)})
		})
	})
	t.Run("uncoupled workers", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s := shape{singleTurn: true, openLoop: true, roundRobin: true}
			checkBounds(rt, drawConfig(rt, s), drawWorkload(rt, s), Options{model: drawModel(rt)})
		})
	})
	t.Run("disaggregated", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s := shape{noZeroOutput: true}
			checkBounds(rt, drawPools(rt, s), drawWorkload(rt, s), Options{model: drawModel(rt)})
		})
	})
}

// overloaded is a chat at many times the speed that one worker can serve.
func overloaded(t testing.TB) (Config, *workload.Workload) {
	w, err := workload.PresetSpec{Name: workload.PresetChat, Requests: 2000, Seed: 1}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Load.Speedup = 40
	return cfg, w
}

// TestHopelessRunsEndEarly checks that a bound far out of reach ends a run after a small part of it.
func TestHopelessRunsEndEarly(t *testing.T) {
	cfg, w := overloaded(t)
	for _, mode := range []string{ModeAggregated, ModeDisaggregated} {
		cfg.Deployment.Mode = mode
		full, err := Run(context.Background(), cfg, w, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range []string{"p99_ttft_ms", "p90_ttft_ms", "p99_e2e_latency_ms", "p99_tpot_ms", "mean_ttft_ms"} {
			bound := Bound{metric, figure(t, full, metric) / 20}
			_, err := Run(context.Background(), cfg, w, Options{Bounds: []Bound{bound}})
			var lost *LostError
			if !errors.As(err, &lost) {
				t.Errorf("%s, %s: error %v; want a *LostError", mode, bound, err)
				continue
			}
			t.Logf("%s: %v, of %.0f s", mode, err, full.DurationMs/1000)
			if lost.Bound != bound || lost.TimeMs > full.DurationMs/2 {
				t.Errorf("%s: %v; want it before half of the %.0f ms", mode, err, full.DurationMs)
			}
		}
	}
}

// TestOtherBoundsEndNothing checks that what a part of a run cannot show ends none.
func TestOtherBoundsEndNothing(t *testing.T) {
	cfg, w := overloaded(t)
	bounds := []Bound{{"min_ttft_ms", 0}, {"std_ttft_ms", 0}, {"p99_itl_ms", 0}, {"preemptions", 0}, {"", 0}, {"p99_ttft_ms", math.Inf(1)}}
	if _, err := Run(context.Background(), cfg, w, Options{Bounds: bounds}); err != nil {
		t.Error(err)
	}
}

// BenchmarkBounds compares a run without bounds, one that keeps them, so that watching them is all cost, and one that
// they end.
func BenchmarkBounds(b *testing.B) {
	w, err := workload.PresetSpec{Name: workload.PresetChat, Seed: 1}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		speedup float64
		bounds  []Bound
	}{
		{"none", 1, nil},
		{"kept", 1, []Bound{{"p99_ttft_ms", 1e9}, {"p99_tpot_ms", 1e9}}},
		{"overloaded", 20, nil},
		{"lost", 20, []Bound{{"p99_ttft_ms", 2000}, {"p99_tpot_ms", 100}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Deployment.Workers, cfg.Engine.BlockSize, cfg.Load.Speedup = 8, 64, c.speedup
			b.ReportAllocs()
			for b.Loop() {
				var lost *LostError
				if _, err := Run(context.Background(), cfg, w, Options{Bounds: c.bounds}); err != nil && !errors.As(err, &lost) {
					b.Fatal(err)
				}
			}
		})
	}
}

// Results files keep the bound of a stopped point in its message.
func TestLostBoundInAMessage(t *testing.T) {
	want := Bound{Metric: "p99_ttft_ms", Limit: 1500.25}
	got, ok := LostBound((&LostError{Bound: want, TimeMs: 1e6, Beyond: 3, Requests: 20}).Error())
	if !ok || got != want {
		t.Errorf("%v, %v; want %v", got, ok, want)
	}
	for _, message := range []string{"", "p99_ttft_ms <= 5", "p99_ttft_ms < 5 can no longer hold", "p99_ttft_ms <= x can no longer hold", " can no longer hold"} {
		if b, ok := LostBound(message); ok {
			t.Errorf("%q names %v", message, b)
		}
	}
}
