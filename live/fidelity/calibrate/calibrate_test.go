package calibrate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/live/fidelity"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
)

// truth is what a "real" server has that the model lacks.
type truth struct{ decodeScale, prefillScale, requestMs, passMs float64 }

func (r truth) apply(c simcore.Config) simcore.Config {
	return values{r.decodeScale, r.prefillScale, r.requestMs, r.passMs}.apply(c)
}

// measure simulates a workload and returns it as a run, with latencies that are off by a share, at random.
func measure(t *testing.T, cfg simcore.Config, w *workload.Workload, noise float64) *fidelity.Run {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	off := func(ms float64) float64 { return ms * math.Exp(noise*random.NormFloat64()) }
	run := &fidelity.Run{Name: "run"}
	_, err := simcore.Run(context.Background(), cfg, w, simcore.Options{Records: func(r simcore.RequestRecord) {
		q := fidelity.Request{
			ID: w.ID(r.Request), Session: w.SessionName(r.Session), Turn: r.Turn, Number: r.Request, Input: int(r.Life.Input), Output: int(r.Life.Output),
			StartMs: 5e6 + r.Life.ArrivalMs, TTFTMs: off(r.Life.FirstTokenMs - r.Life.ArrivalMs), ITLMs: math.NaN(), E2EMs: math.NaN(), LagMs: math.NaN(),
			Tokens: int(r.Life.Tokens), Cached: fidelity.Unknown, Completed: r.Life.State == engine.Completed,
		}
		if r.Life.Tokens > 1 {
			q.ITLMs = off((r.Life.LastTokenMs - r.Life.FirstTokenMs) / float64(r.Life.Tokens-1))
		}
		run.Requests = append(run.Requests, q)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// preset has prompts short enough for what a request costs to be told.
func preset(t *testing.T, name string, requests int, rate float64) *workload.Workload {
	t.Helper()
	w, err := workload.PresetSpec{Name: name, Requests: requests, Rate: rate, Scale: .1}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// h200 is a deployment whose model knows prompts and batches.
func h200(t *testing.T) simcore.Config {
	t.Helper()
	cfg := simcore.DefaultConfig()
	cfg.Deployment.Workers = 2
	cfg.Timing.Source, cfg.Timing.GPU, cfg.Timing.Model = "table", "h200_sxm", "llama-3.1-8b"
	return cfg
}

// TestRecovers fits to runs of servers whose terms are known.
func TestRecovers(t *testing.T) {
	for name, test := range map[string]struct {
		config simcore.Config
		preset string
		rate   float64
		truth  truth
		noise  float64
		// within is how near the terms must come, as a share; 0 where the run tells some of them only together, as batches of one size
		// do. held bounds what the means of requests that were held out may be off by.
		within, held float64
	}{
		"no noise":      {h200(t), workload.PresetChat, 4, truth{1.2, 1.3, 4, 1.5}, 0, .001, .001},
		"noise":         {h200(t), workload.PresetChat, 4, truth{1.2, 1.3, 4, 1.5}, .05, 0, .02},
		"polynomial":    {simcore.DefaultConfig(), workload.PresetChat, 2, truth{1.25, 1.15, 3, 1}, .03, 0, .02},
		"agents":        {h200(t), workload.PresetAgentic, 2, truth{1.2, 1.3, 4, 1.5}, .01, .05, .01},
		"disaggregated": {disaggregated(h200(t)), workload.PresetChat, 4, truth{1.2, 1.3, 4, 1.5}, 0, .03, .005},
	} {
		t.Run(name, func(t *testing.T) {
			w := preset(t, test.preset, 250, test.rate)
			run := measure(t, test.truth.apply(test.config), w, test.noise)
			r, err := Fit(context.Background(), test.config, w, run)
			if err != nil {
				t.Fatal(err)
			}
			want := values{test.truth.decodeScale, test.truth.prefillScale, test.truth.requestMs, test.truth.passMs}
			for i, term := range r.Terms {
				if test.within > 0 && math.Abs(term.After/want[i]-1) > test.within {
					t.Errorf("%s is %.4g ± %.2g, and should be %g %s", term.Key, term.After, term.StandardError, want[i], term.Left)
				}
			}
			for _, part := range []Part{r.Fitted, r.HeldOut} {
				for _, e := range []*Errors{part.TTFT, part.ITL} {
					if math.Abs(e.Before.Bias) < .1 || math.Abs(e.After.Bias) > test.held {
						t.Errorf("the mean is off by %.3f before and %.4f after", e.Before.Bias, e.After.Bias)
					}
				}
			}
		})
	}
}

func disaggregated(c simcore.Config) simcore.Config {
	c.Deployment = simcore.Deployment{Mode: simcore.ModeDisaggregated, PrefillWorkers: 2, DecodeWorkers: 2}
	c.Prefill, c.Decode = simcore.Stage{Engine: c.Engine, Timing: c.Timing}, simcore.Stage{Engine: c.Engine, Timing: c.Timing}
	return c
}

// TestLeaves fits to runs that do not tell everything.
func TestLeaves(t *testing.T) {
	synthetic := func(output int) *workload.Workload {
		spec := workload.DefaultSyntheticSpec()
		spec.InputTokens, spec.OutputTokens, spec.Requests, spec.ArrivalIntervalMs = 2000, output, 60, 500
		w, err := workload.Spec{Synthetic: &spec}.Load(context.Background(), workload.Source{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for name, test := range map[string]struct {
		output int
		truth  truth
		change func(*fidelity.Request)
		left   []string
	}{
		"nothing decodes":       {1, truth{1, 1.5, 0, 0}, nil, []string{"decode_scale", "request_overhead_ms", "pass_overhead_ms"}},
		"no TTFT":               {50, truth{1.5, 1, 0, 0}, func(q *fidelity.Request) { q.TTFTMs = math.NaN() }, []string{"prefill_scale", "request_overhead_ms", "pass_overhead_ms"}},
		"all lengths alike":     {50, truth{1.5, 1.5, 3, 1}, nil, []string{"pass_overhead_ms", "request_overhead_ms"}},
		"nothing is to be done": {50, truth{1, 1, 0, 0}, nil, []string{"decode_scale", "prefill_scale", "request_overhead_ms", "pass_overhead_ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := synthetic(test.output)
			run := measure(t, test.truth.apply(h200(t)), w, 0)
			for i := range run.Requests {
				if test.change != nil {
					test.change(&run.Requests[i])
				}
			}
			r, err := Fit(context.Background(), h200(t), w, run)
			if err != nil {
				t.Fatal(err)
			}
			for _, term := range r.Terms {
				if left := slices.Contains(test.left, term.Key); left != (term.Left != "") || left && term.After != term.Before {
					t.Errorf("%s from %g to %g, left: %q", term.Key, term.Before, term.After, term.Left)
				}
			}
			for _, e := range []*Errors{r.HeldOut.TTFT, r.HeldOut.ITL} {
				if e != nil && math.Abs(e.After.Bias) > .01 {
					t.Errorf("the means are off by %v", e.After.Bias)
				}
			}
		})
	}
}

// TestBursts fits to a run whose requests came to the one server in another order than they were sent, a moment apart; and to one
// with several servers, which does not tell that order.
func TestBursts(t *testing.T) {
	const bursts, size = 30, 8
	b := workload.NewBuilder("bursts", 64)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range bursts {
		for range size {
			b.Add(workload.Request{Input: 200 + random.IntN(6000), Output: 2 + random.IntN(60), ArrivalMs: float64(i)*4000 + .5*random.Float64()})
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	cfg := h200(t)
	cfg.Deployment.Workers, cfg.Engine.MaxNumBatchedTokens = 1, 4096
	run := measure(t, truth{1.2, 1.3, 4, 1.5}.apply(cfg), w, 0)
	for i := range run.Requests {
		q := &run.Requests[i]
		early := .5 * random.Float64()
		q.StartMs, q.TTFTMs = q.StartMs-early, q.TTFTMs+early
	}
	r, err := Fit(context.Background(), cfg, w, run)
	if err != nil {
		t.Fatal(err)
	}
	if e := r.HeldOut.TTFT; len(r.NoNearer()) > 0 || e.Before.MeanAbsolute < .1 || e.After.MeanAbsolute > .05 { // prompts that end with one pass are in any order
		t.Errorf("TTFT is off by %.3f before and %.4f after; no nearer: %v", e.Before.MeanAbsolute, e.After.MeanAbsolute, r.NoNearer())
	}
	if r.Together > 0 || r.Unordered() {
		t.Errorf("with one server %d requests are said to be in an unknown order", r.Together)
	}
	cfg.Deployment.Workers = 2
	if r, err = Fit(context.Background(), cfg, w, run); err != nil || r.Together != bursts*size || !r.Unordered() {
		t.Errorf("with two servers %d requests of %d are said to be in an unknown order, %v", r.Together, bursts*size, err)
	}
}

// TestGaps fits to a run with requests that failed, that were never sent, that have no numbers and that the workload lacks.
func TestGaps(t *testing.T) {
	w := preset(t, workload.PresetAgentic, 150, 2)
	want := truth{1.2, 1.3, 4, 1.5}
	run := measure(t, want.apply(h200(t)), w, 0)
	for i := range run.Requests {
		q := &run.Requests[i]
		q.Number = fidelity.Unknown
		switch {
		case i%20 == 3:
			q.Completed, q.TTFTMs, q.ITLMs = false, math.NaN(), math.NaN()
		case i == 100:
			q.ID, q.Session = "of another run", "of another run"
			q.StartMs = math.NaN()
		}
	}
	r, err := Fit(context.Background(), h200(t), w, run)
	if err != nil {
		t.Fatal(err)
	}
	if r.LeftOut != 9 || r.Fitted.Requests+r.HeldOut.Requests != 141 {
		t.Errorf("%d requests are left out, %d and %d are used", r.LeftOut, r.Fitted.Requests, r.HeldOut.Requests)
	}
	if bias := r.HeldOut.TTFT.After.Bias; math.Abs(bias) > .02 {
		t.Errorf("the mean is off by %v", bias)
	}
	if again, err := Fit(context.Background(), h200(t), w, run); err != nil || !cmp.Equal(r, again) {
		t.Errorf("another fit gives something else: %v", err)
	}
}

// TestNoNearer checks that terms are told of that make the requests that were held out worse.
func TestNoNearer(t *testing.T) {
	errorsOf := func(before, after float64) *Errors {
		return &Errors{Before: Error{MeanAbsolute: before}, After: Error{MeanAbsolute: after}}
	}
	for _, c := range []struct {
		of   Part
		want string
	}{
		{Part{TTFT: errorsOf(.2, .1), ITL: errorsOf(.1, .1)}, ""},
		{Part{TTFT: errorsOf(.2, .3), ITL: errorsOf(.2, .1)}, "TTFT"},
		{Part{ITL: errorsOf(.2, .3)}, "ITL"},
		{Part{TTFT: errorsOf(0, .1), ITL: errorsOf(.1, .2)}, "TTFT ITL"},
	} {
		if got := strings.Join((&Result{HeldOut: c.of}).NoNearer(), " "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	w := preset(t, workload.PresetChat, 40, 2)
	for name, test := range map[string]struct {
		change func(*fidelity.Run)
		want   string
	}{
		"another workload": {func(r *fidelity.Run) { r.Requests[3].Input++ }, "1 of 40 requests of run have other lengths"},
		"numbers beyond":   {func(r *fidelity.Run) { r.Requests[3].Number = 40 }, "has a request number 40"},
		"twice the same":   {func(r *fidelity.Run) { r.Requests[3].Number = r.Requests[4].Number }, "more than once"},
		"too few":          {func(r *fidelity.Run) { r.Requests = r.Requests[:5] }, "needs 12 completed requests or more; it has 5"},
		"no latencies": {func(r *fidelity.Run) {
			for i := range r.Requests {
				r.Requests[i].TTFTMs, r.Requests[i].ITLMs = math.NaN(), math.NaN()
			}
		}, "neither TTFT nor ITL"},
	} {
		t.Run(name, func(t *testing.T) {
			run := measure(t, simcore.DefaultConfig(), w, 0)
			test.change(run)
			if _, err := Fit(context.Background(), simcore.DefaultConfig(), w, run); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fit(ctx, simcore.DefaultConfig(), w, measure(t, simcore.DefaultConfig(), w, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after it was cancelled", err)
	}
}
