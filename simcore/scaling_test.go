package simcore

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// step is what a script asks for at a time.
type step struct {
	atMs    float64
	targets []int
}

// script decides what was decided beforehand, and notes what it hears.
type script struct {
	steps  []step
	at     int
	states [][]PoolState
	nows   []float64
	passes []PassMetrics
	told   []int // passes by each tick

	arrived, completed int
	input, output      int64
}

func (s *script) NextTickMs() float64 {
	if s.at == len(s.steps) {
		return math.Inf(1)
	}
	return s.steps[s.at].atMs
}

func (s *script) Tick(now float64, pools []PoolState) []int {
	var states []PoolState
	for _, p := range pools {
		p.Ready = slices.Clone(p.Ready)
		states = append(states, p)
	}
	s.states, s.nows, s.told = append(s.states, states), append(s.nows, now), append(s.told, len(s.passes))
	s.at++
	return s.steps[s.at-1].targets
}

func (s *script) Pass(p *PassMetrics) { s.passes = append(s.passes, *p) }

func (s *script) Arrived(float64, *engine.Request) { s.arrived++ }

func (s *script) Completed(_ float64, r *engine.Request) {
	s.completed++
	s.input += int64(r.Input)
	s.output += int64(r.Tokens)
}

func (s *script) Routed(float64, int, int) {}

// drawScript makes decisions at random times for so many pools; at the end there is a worker in each.
func drawScript(t *rapid.T, pools int) []step {
	var steps []step
	at := 0.0
	for range rapid.IntRange(0, 8).Draw(t, "ticks") {
		at += rapid.SampledFrom([]float64{0, 1, 3.5, 40, 120}).Draw(t, "until the tick")
		s := step{atMs: at}
		if rapid.IntRange(0, 4).Draw(t, "decides") > 0 {
			for range pools {
				s.targets = append(s.targets, rapid.IntRange(0, 5).Draw(t, "target"))
			}
		}
		steps = append(steps, s)
	}
	last := step{atMs: at + 50}
	for range pools {
		last.targets = append(last.targets, rapid.IntRange(1, 3).Draw(t, "last target"))
	}
	return append(steps, last)
}

// scaled is all that comes out of a run whose workers come and go.
type scaled struct {
	outcome
	Script script
	Events []ScalingEvent
}

func simulateScaled(t rapid.TB, cfg Config, w *workload.Workload, steps []step, opt Options) scaled {
	var o scaled
	s := &script{steps: steps}
	opt.Autoscaler = s
	opt.ScalingEvents = func(e ScalingEvent) { o.Events = append(o.Events, e) }
	o.outcome = simulate(t, cfg, w, opt)
	o.Script = *s
	return o
}

// TestScalingKeepsRequests checks with workers that come and go at random that no request is lost and none goes to a worker
// that does not take any, that workers end, and that runs of passes are told of and end as single passes do.
func TestScalingKeepsRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{noZeroOutput: true}
		checkScaled(rt, drawWorkload(rt, s), drawConfig(rt, s))
	})
}

// TestScalingPoolsKeepsRequests checks the same with a pool of prefill workers and one of decode workers.
func TestScalingPoolsKeepsRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{noZeroOutput: true}
		checkScaled(rt, drawWorkload(rt, s), drawPools(rt, s))
	})
}

// TestScalingGraphsKeepsRequests checks the same with requests that wait for others.
func TestScalingGraphsKeepsRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawGraph(rt)
		cfg := drawConfig(rt, shape{})
		if rapid.Bool().Draw(rt, "pools") {
			cfg = drawPools(rt, shape{})
		}
		cfg.Compat = rules.Default
		checkScaled(rt, w, cfg)
	})
}

// TestScalingAgentX lets the workers of the AgentX scenario come and go, which begins anew when its plays run out.
func TestScalingAgentX(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := conversations(rt)
		cfg := DefaultConfig()
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks, cfg.Engine.StartupTime = 16, 4096, .5
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 20, 3
		cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, rapid.IntRange(1, 5).Draw(rt, "users")
		cfg.AgentX.Preset, cfg.AgentX.DurationS = AgentXRFC, rapid.Float64Range(1, 40).Draw(rt, "duration")
		var steps []step
		for i := range 20 {
			steps = append(steps, step{atMs: float64(i) * 2000, targets: []int{1 + i%3}})
		}
		run := func() (*Report, *script) {
			scaler := &script{steps: steps}
			opt := Options{Autoscaler: scaler, Restarted: func() (Autoscaler, error) {
				scaler = &script{steps: steps}
				return scaler, nil
			}}
			report, err := Run(context.Background(), cfg, w, opt)
			if err != nil {
				rt.Fatal(err)
			}
			return report, scaler
		}
		report, scaler := run()
		again, _ := run()
		if diff := cmp.Diff(report, again); diff != "" {
			rt.Fatalf("a second run differs (-first +second):\n%s", diff)
		}
		if all := int64(scaler.arrived); all != report.NumRequests+report.AgentX.WarmUpRequests {
			rt.Fatalf("the autoscaler heard of %d arrivals, want %d and %d that warm up", all, report.NumRequests, report.AgentX.WarmUpRequests)
		}
	})
}

// TestAgentXNeedsAnotherAutoscaler checks the error where the scenario begins anew and its autoscaler cannot.
func TestAgentXNeedsAnotherAutoscaler(t *testing.T) {
	if _, err := (Options{Autoscaler: &script{}}).restart(); err == nil || !strings.Contains(err.Error(), "agentx.preset") {
		t.Errorf("got %v", err)
	}
}

func checkScaled(t *rapid.T, w *workload.Workload, cfg Config) {
	if cfg.Compat == rules.Dynamo13 && rapid.IntRange(0, 2).Draw(t, "release before") == 0 {
		cfg.Compat = rules.Dynamo12
	}
	for _, e := range []*engine.Config{&cfg.Engine, &cfg.Prefill.Engine, &cfg.Decode.Engine} {
		e.StartupTime = rapid.SampledFrom([]float64{0, .002, .03}).Draw(t, "start-up")
	}
	if cfg.Tiers.Enabled() && cfg.Deployment.Mode == ModeDisaggregated {
		cfg.Tiers.DecodeOffload = rapid.Bool().Draw(t, "decode offload")
	}
	steps, model := drawScript(t, len(cfg.Stages())), drawModel(t)
	got := simulateScaled(t, cfg, w, steps, Options{model: model})
	checkScaling(t, cfg, w, got)
	if diff := diffScaled(got, simulateScaled(t, cfg, w, steps, Options{model: model})); diff != "" {
		t.Fatalf("a second run differs (-first +second):\n%s", diff)
	}
	if diff := diffScaled(simulateScaled(t, cfg, w, steps, Options{model: model, everyPass: true}), got); diff != "" {
		t.Fatalf("(-every pass +runs):\n%s", diff)
	}
}

// diffScaled compares two runs. Passes that begin at the same time may be told in another order.
func diffScaled(want, got scaled) string {
	for _, s := range []*scaled{&want, &got} {
		slices.SortStableFunc(s.Script.passes, func(a, b PassMetrics) int {
			switch {
			case a.Pool != b.Pool:
				return a.Pool - b.Pool
			}
			return int(a.Worker - b.Worker)
		})
	}
	return diffOutcomes(want.outcome, got.outcome) + cmp.Diff(want.Events, got.Events, cmpopts.EquateEmpty()) + cmp.Diff(want.Script, got.Script, cmp.AllowUnexported(script{}, step{}), cmpopts.EquateEmpty())
}

func checkScaling(t rapid.TB, cfg Config, w *workload.Workload, got scaled) {
	t.Helper()
	if got.Err != nil {
		return
	}
	r := got.Report
	if r.CompletedRequests+r.RejectedRequests+r.UnfinishedRequests != r.NumRequests {
		t.Fatalf("%d requests arrived, %d completed, %d rejected, %d are unfinished", r.NumRequests, r.CompletedRequests, r.RejectedRequests, r.UnfinishedRequests)
	}
	if cfg.Load.MaxSimTimeSeconds > 0 {
		return
	}
	if int(r.NumRequests) != w.Requests() || r.UnfinishedRequests > 0 {
		t.Fatalf("%d of %d requests arrived, %d are unfinished", r.NumRequests, w.Requests(), r.UnfinishedRequests)
	}
	if got.Script.arrived != w.Requests() || int64(got.Script.completed) != r.CompletedRequests || got.Script.input != r.TotalInputTokens {
		t.Fatalf("the autoscaler heard of %d arrivals and %d completions with %d input tokens, want %d, %d, %d", got.Script.arrived, got.Script.completed, got.Script.input,
			w.Requests(), r.CompletedRequests, r.TotalInputTokens)
	}
	checkWorkers(t, cfg, got)
}

// checkWorkers checks that each worker lives as it should, and that requests are routed to ready workers only.
func checkWorkers(t rapid.TB, cfg Config, got scaled) {
	t.Helper()
	type key struct {
		pool   int
		worker int32
	}
	type life struct{ requested, ready, cancelled, draining, removed float64 }
	never := math.Inf(1)
	lives := map[key]*life{}
	for pool, p := range cfg.Stages() {
		for i := range p.Workers {
			lives[key{pool, int32(i)}] = &life{0, 0, never, never, never}
		}
	}
	for _, e := range got.Events {
		k := key{e.Pool, e.Worker}
		if e.Kind == WorkerRequested {
			if lives[k] != nil {
				t.Fatalf("worker %v was there before", k)
			}
			lives[k] = &life{e.AtMs, never, never, never, never}
		}
		l := lives[k]
		switch e.Kind {
		case WorkerReady:
			l.ready = e.AtMs
			if want := l.requested + cfg.Stages()[e.Pool].Engine.StartupTime*1000; math.Abs(l.ready-want) > 1e-9 {
				t.Fatalf("worker %v is ready at %v ms, want %v", k, l.ready, want)
			}
		case WorkerCancelled:
			l.cancelled = e.AtMs
		case WorkerDraining:
			l.draining = e.AtMs
		case WorkerRemoved:
			l.removed = e.AtMs
		}
	}
	for k, l := range lives {
		if l.draining < never && l.removed == never {
			t.Fatalf("worker %v drains for ever", k)
		}
	}
	for _, q := range got.Records {
		if q.Life.RoutedMs == engine.Never {
			continue
		}
		worker, ends := key{0, q.Life.Worker}, q.Life.LastTokenMs
		if q.Handoff != nil {
			worker.worker, ends = q.Handoff.PrefillWorker, q.Handoff.SourceReleasedMs
			if l := lives[key{1, q.Life.Worker}]; q.Handoff.DestinationReservedMs != engine.Never && (q.Handoff.DestinationReservedMs < l.ready || q.Life.LastTokenMs > l.removed) {
				t.Fatalf("request %d had room at %v ms on decode worker %d, which took requests from %v on, and got its last token at %v, when that was there until %v",
					q.Request, q.Handoff.DestinationReservedMs, q.Life.Worker, l.ready, q.Life.LastTokenMs, l.removed)
			}
		}
		if l := lives[worker]; q.Life.RoutedMs < l.ready || q.Life.RoutedMs > l.draining || ends > l.removed {
			t.Fatalf("request %d was routed at %v ms to worker %v, which took requests from %v to %v, and was over there at %v, when that was there until %v",
				q.Request, q.Life.RoutedMs, worker, l.ready, l.draining, ends, l.removed)
		}
	}
}

// TestScalingByHand works an example out: prompts take 10 ms, tokens 5 ms each, and a request of 1 + 20 tokens 110 ms.
func TestScalingByHand(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 10, 5
	cfg.Engine.StartupTime = .05
	w := build(t, 16, []workload.Request{
		{Session: "a", Input: 16, Output: 21, Hashes: []uint64{1}, ArrivalMs: 0},
		{Session: "b", Input: 16, Output: 21, Hashes: []uint64{2}, ArrivalMs: 70},
		{Session: "c", Input: 16, Output: 21, Hashes: []uint64{3}, ArrivalMs: 400},
	})
	got := simulateScaled(t, cfg, w, []step{
		{10, []int{2}},  // worker 1 is ready at 60 ms, and takes request b
		{100, []int{1}}, // worker 1 drains until 180 ms
		{200, []int{3}}, // workers 2 and 3 start
		{220, []int{2}}, // and 3 is given up
		{230, []int{0}}, // 2 is given up, and 0 goes at once
		{500, []int{1}}, // worker 4 is ready at 550 ms, for request c
	}, Options{})
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	want := []ScalingEvent{
		{10, 0, 1, WorkerRequested}, {60, 0, 1, WorkerReady}, {100, 0, 1, WorkerDraining}, {180, 0, 1, WorkerRemoved},
		{200, 0, 2, WorkerRequested}, {200, 0, 3, WorkerRequested}, {220, 0, 3, WorkerCancelled},
		{230, 0, 2, WorkerCancelled}, {230, 0, 0, WorkerDraining}, {230, 0, 0, WorkerRemoved},
		{500, 0, 4, WorkerRequested}, {550, 0, 4, WorkerReady},
	}
	if diff := cmp.Diff(want, got.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	scaling := metrics.Scaling{Decode: metrics.PoolScaling{
		WorkersAdded: 4, WorkersCancelled: 2, WorkersRemoved: 2, PeakReady: 2, LeastReady: 0,
		ReadySeconds: .23 + .04 + .11, MeanReady: .38 / .66, StartingSeconds: .05 + .03 + .02 + .05, DrainingSeconds: .08,
	}}
	about := cmpopts.EquateApprox(1e-12, 0)
	if diff := cmp.Diff(&scaling, got.Report.Scaling, about); diff != "" {
		t.Errorf("scaling (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{.61, .61 / 3600, .61 / .66, 63 / .61}, []float64{got.Report.DecodeWorkerSeconds, got.Report.GPUHours, got.Report.MeanGPUs, got.Report.OutputThroughputTokSPerGPU}, about); diff != "" {
		t.Errorf("worker seconds, GPU-hours, output per GPU-second (-want +got):\n%s", diff)
	}
	if got.Report.PeakGPUs != 3 { // workers 0, 2 and 3 from 200 to 220 ms
		t.Errorf("at most %d GPUs are occupied; want 3", got.Report.PeakGPUs)
	}
	var routed, last []float64
	for _, r := range got.Records {
		routed, last = append(routed, r.Life.RoutedMs), append(last, r.Life.LastTokenMs)
	}
	if diff := cmp.Diff([][]float64{{0, 70, 550}, {110, 180, 660}}, [][]float64{routed, last}, about); diff != "" {
		t.Errorf("when requests were routed and had their last token (-want +got):\n%s", diff)
	}
}

// TestScalingDeadEnds checks what is said of autoscalers that let requests wait for ever.
func TestScalingDeadEnds(t *testing.T) {
	for _, test := range []struct {
		name, why string
		scaler    func() Autoscaler
	}{
		{"no worker and no more ticks", "no worker takes requests", func() Autoscaler { return &script{steps: []step{{0, []int{0}}}} }},
		{"no worker for ever", "no worker takes requests", func() Autoscaler { return &endless{everyMs: 10} }},
		{"ticks that stand still", "without time going by", func() Autoscaler { return &endless{} }},
	} {
		for _, mode := range []string{ModeAggregated, ModeDisaggregated} {
			cfg := DefaultConfig()
			cfg.Deployment.Mode = mode
			_, err := Run(context.Background(), cfg, requestsOf(t, 3, 5, 3), Options{Autoscaler: test.scaler()})
			var stuck *StuckError
			if !asStuck(err, &stuck) || !strings.Contains(stuck.Why, test.why) {
				t.Errorf("%s, %s: got %v", test.name, mode, err)
			}
		}
	}
}

// endless asks for no workers at regular times.
type endless struct{ everyMs, nextMs float64 }

func (e *endless) NextTickMs() float64 { return e.nextMs }

func (e *endless) Tick(now float64, pools []PoolState) []int {
	e.nextMs += e.everyMs
	return make([]int, len(pools))
}
