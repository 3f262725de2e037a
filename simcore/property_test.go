package simcore

import (
	"context"
	"errors"
	"fmt"
	"math"
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

func asStuck(err error, stuck **StuckError) bool { return errors.As(err, stuck) }

// TestRunsEqualSinglePasses checks that simulating runs of equal passes at once changes nothing.
func TestRunsEqualSinglePasses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, cfg, model := drawWorkload(rt, shape{}), drawConfig(rt, shape{}), drawModel(rt)
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

// TestIndependentWorkersEqualOneClock checks that simulating uncoupled workers one after another changes nothing.
func TestIndependentWorkersEqualOneClock(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{singleTurn: true, openLoop: true, noZeroOutput: true, roundRobin: true}
		w, cfg, model := drawWorkload(rt, s), drawConfig(rt, s), drawModel(rt)
		want := simulate(rt, cfg, w, Options{oneClock: true, model: model})
		got := simulate(rt, cfg, w, Options{model: model})
		if cfg.Load.MaxSimTimeSeconds > 0 && (want.Err != nil || got.Err != nil) {
			return // whether a stuck worker or the cap comes first depends on the others
		}
		if (want.Err == nil) != (got.Err == nil) { // of several stuck workers either may be named
			rt.Fatalf("one clock:         %v\none after another: %v", want.Err, got.Err)
		}
		if diff := diffOutcomes(want, got); diff != "" {
			rt.Fatalf("(-one clock +one after another):\n%s", diff)
		}
	})
}

func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, cfg := drawWorkload(rt, shape{}), drawConfig(rt, shape{})
		o := simulate(rt, cfg, w, Options{model: drawModel(rt)})
		if o.Err != nil {
			return
		}
		var sum sums
		for _, r := range o.Records {
			checkLife(rt, cfg, r)
			sum.add(r.Life)
			if r.Life.State == engine.Completed && r.Life.Output == 0 { // its record does not say when its prompt was computed
				sum.LastMs = max(sum.LastMs, o.Report.DurationMs)
			}
		}
		capped := cfg.Load.MaxSimTimeSeconds > 0
		wholeOutput := cfg.Compat != "" && (capped || cfg.Engine.Type == engine.TypeTensorRTLLM) // of what was cut short
		if diff := cmp.Diff(sum, sumsOf(o.Report)); diff != "" && !wholeOutput {
			rt.Fatalf("(-records +report):\n%s", diff)
		}
		if r := o.Report; r.NumRequests != r.CompletedRequests+r.RejectedRequests+r.UnfinishedRequests {
			rt.Fatalf("%d arrived, %d completed, %d rejected, %d unfinished", r.NumRequests, r.CompletedRequests, r.RejectedRequests, r.UnfinishedRequests)
		}
		if !capped && (int(o.Report.NumRequests) != w.Requests() || o.Report.UnfinishedRequests != 0) {
			rt.Fatalf("of %d requests %d arrived and %d are unfinished", w.Requests(), o.Report.NumRequests, o.Report.UnfinishedRequests)
		}
	})
}

// sums are the figures of a report that must add up over its requests.
type sums struct {
	Arrived, Completed, Rejected, Unfinished, Truncated, Input, Output int64
	LastMs                                                             float64
}

func (s *sums) add(r engine.Request) {
	s.Arrived++
	if r.Truncated {
		s.Truncated++
	}
	switch r.State {
	case engine.Completed:
		s.Completed++
		s.Input += int64(r.Input)
		s.Output += int64(r.Tokens)
		s.LastMs = max(s.LastMs, r.LastTokenMs)
	case engine.Rejected:
		s.Rejected++
	default:
		s.Unfinished++
	}
}

func sumsOf(r *Report) sums {
	return sums{r.NumRequests, r.CompletedRequests, r.RejectedRequests, r.UnfinishedRequests, r.TruncatedRequests,
		r.TotalInputTokens, r.TotalOutputTokens, r.DurationMs}
}

// checkLife checks that one request's times and counts are possible.
func checkLife(t *rapid.T, cfg Config, record RequestRecord) {
	r := record.Life
	bad := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("request %d: %s\n%+v", record.Request, fmt.Sprintf(format, args...), r)
	}
	if r.ArrivalMs < 0 {
		bad("has arrived at no time")
	}
	if r.State == engine.Rejected && (r.AdmittedMs != engine.Never || r.Tokens != 0) {
		bad("is rejected and has run")
	}
	if r.State == engine.Completed && (r.Tokens != r.Output || r.AdmittedMs == engine.Never) {
		bad("is completed without all its output")
	}
	if r.AdmittedMs != engine.Never && (r.AdmittedMs < r.RoutedMs || r.RoutedMs < r.ArrivalMs) {
		bad("was admitted before it was routed, or routed before it arrived")
	}
	if r.Tokens > r.Output || r.ReusedFirst > r.Reused || r.ReusedFirst > r.Input || r.Reused > r.Input+r.Tokens {
		bad("counts are impossible")
	}
	if set, _ := rules.For(cfg.Compat); !cfg.Engine.SharesPrefixes(set) && r.Reused > 0 {
		bad("reuses blocks though caching is off")
	}
	times := []float64{r.AdmittedMs, r.FirstTokenMs, r.SecondTokenMs, r.LastTokenMs}
	happened := []bool{r.AdmittedMs != engine.Never, r.Tokens > 0, r.Tokens > 1, r.Tokens > 0}
	at := r.ArrivalMs
	for i, is := range happened {
		if (times[i] != engine.Never) != is {
			bad("with %d tokens, admission, first, second and last token are at %v", r.Tokens, times)
		}
		if is && times[i] < at {
			bad("times go back: %v", times)
		}
		at = max(at, times[i])
	}
	if r.Tokens == 1 && r.FirstTokenMs != r.LastTokenMs {
		bad("has one token at two times")
	}
	if int(r.Worker) >= cfg.Deployment.Workers {
		bad("is on worker %d", r.Worker)
	}
}

// TestRelabelledPrefixes checks that only the equality of hash ids matters.
func TestRelabelledPrefixes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		blockSize, requests := drawRequests(rt, shape{})
		for i := range requests {
			requests[i].PlannedOutput = nil // planned tokens are compared with hash ids
		}
		cfg := drawConfig(rt, shape{})
		want := simulate(rt, cfg, build(rt, blockSize, requests), Options{})
		got := simulate(rt, cfg, build(rt, blockSize, relabelled(requests)), Options{})
		if want.Err == nil && got.Err == nil {
			got.Report.WorkloadDigest = want.Report.WorkloadDigest
		}
		if diff := diffOutcomes(want, got); diff != "" {
			rt.Fatalf("(-ids +other ids):\n%s", diff)
		}
	})
}

// TestMoreWorkersLoseNothing checks that the number of workers does not decide whether a request is served.
func TestMoreWorkersLoseNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{noCap: true}
		w, cfg := drawWorkload(rt, s), drawConfig(rt, s)
		few := simulate(rt, cfg, w, Options{})
		cfg.Deployment.Workers += rapid.IntRange(1, 4).Draw(rt, "more workers")
		more := simulate(rt, cfg, w, Options{})
		if few.Err != nil || more.Err != nil {
			return // a request that gets stuck alone may be overtaken by another
		}
		a, b := sumsOf(few.Report), sumsOf(more.Report)
		a.LastMs, b.LastMs = 0, 0
		if diff := cmp.Diff(a, b); diff != "" {
			rt.Fatalf("(-workers +more workers):\n%s", diff)
		}
	})
}

// TestSpeedupEqualsEarlierArrivals checks that load.speedup does what dividing the workload's times would.
func TestSpeedupEqualsEarlierArrivals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{openLoop: true}
		blockSize, requests := drawRequests(rt, s)
		cfg := drawConfig(rt, s)
		cfg.Load.Mode, cfg.Load.Rate, cfg.Load.Speedup = LoadTrace, 0, 4
		want := simulate(rt, cfg, build(rt, blockSize, requests), Options{})
		for i := range requests {
			requests[i].ArrivalMs = requests[i].ArrivalMs/4 + 77
			requests[i].DelayMs /= 4
		}
		cfg.Load.Speedup = 1
		got := simulate(rt, cfg, build(rt, blockSize, requests), Options{})
		if want.Err == nil && got.Err == nil {
			got.Report.WorkloadDigest = want.Report.WorkloadDigest
		}
		if diff := diffOutcomes(want, got); diff != "" {
			rt.Fatalf("(-speedup 4 +times divided by 4):\n%s", diff)
		}
	})
}

// TestTwiceAsSlow checks that when every given time doubles, so does every time of the report, to the last bit.
func TestTwiceAsSlow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		blockSize, requests := drawRequests(rt, shape{})
		cfg := drawConfig(rt, shape{})
		cfg.SLA = SLA{}
		cfg.Router.RouterQueuePolicy = router.QueueWSPT // the others weigh priorities against seconds
		cfg.Engine.SpeedupRatio, cfg.Engine.DecodeSpeedupRatio = 1, 1
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 10, 3
		once := simulate(rt, cfg, build(rt, blockSize, requests), Options{})
		for i := range requests {
			requests[i].ArrivalMs *= 2
			requests[i].DelayMs *= 2
		}
		cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = 20, 6
		cfg.Load.Rate /= 2
		cfg.Load.MaxSimTimeSeconds *= 2
		bandwidths, latencies := tierSpeeds(&cfg.Tiers)
		for i := range bandwidths {
			*bandwidths[i] /= 2
			*latencies[i] *= 2
		}
		twice := simulate(rt, cfg, build(rt, blockSize, requests), Options{})
		if (once.Err == nil) != (twice.Err == nil) {
			rt.Fatalf("once: %v; twice: %v", once.Err, twice.Err)
		}
		if once.Err != nil || once.Report.DurationMs == 0 {
			return
		}
		for _, f := range metrics.Fields() {
			a, _ := f.Value(once.Report)
			b, _ := f.Value(twice.Report)
			switch f.Unit {
			case "ms", "s", "GPU-hours":
				a *= 2
			case "tokens/s", "requests/s", "tokens/s/GPU":
				a /= 2
			}
			if a != b && !(f.Name == "gpu_hours" && math.Abs(a-b) <= 1e-15*a) {
				rt.Errorf("%s is %v, want %v", f.Name, b, a)
			}
		}
	})
}

func TestCancelledRunsStop(t *testing.T) {
	w, err := workload.Spec{Synthetic: &workload.SyntheticSpec{
		InputTokens: 3000, OutputTokens: 100, Requests: 20_000, TurnsPerSession: 1, ArrivalIntervalMs: 1,
	}}.Load(context.Background(), workload.Source{})
	if err != nil {
		t.Fatal(err)
	}
	for _, opt := range []Options{{everyPass: true}, {everyPass: true, oneClock: true}} {
		whole := &cancelledAfter{Context: context.Background(), looks: math.MaxInt}
		if _, err := Run(whole, DefaultConfig(), w, opt); err != nil || whole.looked < 6 {
			t.Errorf("the run looked %d times for %d requests, error %v", whole.looked, w.Requests(), err)
		}
		early := &cancelledAfter{Context: context.Background(), looks: 3}
		if r, err := Run(early, DefaultConfig(), w, opt); !errors.Is(err, context.Canceled) || r != nil || early.looked > 5 {
			t.Errorf("got %v, %v after %d looks; want no report and %v after 4", r, err, early.looked, context.Canceled)
		}
	}
}

// cancelledAfter is cancelled once it was looked at so often.
type cancelledAfter struct {
	context.Context
	looks, looked int
}

func (c *cancelledAfter) Err() error {
	if c.looked++; c.looked > c.looks {
		return context.Canceled
	}
	return nil
}
