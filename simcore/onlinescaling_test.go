package simcore

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// drawScaledOnline makes a deployment of either mode and a workload for it, and when workers come and go.
func drawScaledOnline(t *rapid.T) (Config, *workload.Workload, []step) {
	cfg, w := drawAnyDeployment(t, shape{noCap: true, noZeroOutput: true}), drawWorkload(t, shape{noZeroOutput: true})
	if cfg.Compat == rules.Dynamo13 && opens(cfg, w) && rapid.IntRange(0, 2).Draw(t, "release before") == 0 {
		cfg.Compat = rules.Dynamo12 // whose clock stands still at ticks, so that much may happen, and let others come in, in one step
	}
	for _, e := range []*engine.Config{&cfg.Engine, &cfg.Prefill.Engine, &cfg.Decode.Engine} {
		e.StartupTime = rapid.SampledFrom([]float64{0, .002, .03}).Draw(t, "start-up")
	}
	return cfg, w, drawScript(t, len(cfg.Stages()))
}

// opens reports whether no request waits for the end of another one.
func opens(cfg Config, w *workload.Workload) bool {
	return w.SingleTurn() && cfg.Load.Mode != LoadConcurrency
}

// TestOnlineScalesAsRun checks that workers come and go online as in Run, that the autoscaler sees the same at each tick, and
// that requests fare the same.
func TestOnlineScalesAsRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg, w, steps := drawScaledOnline(rt)
		model := drawModel(rt)
		if cfg.Router.Policy == router.PolicyPrefixAffinity && !namesBeginnings(rt, cfg, w) {
			cfg.Router.Policy = router.PolicyRoundRobin // such prompts go to other workers than in Run
		}
		want := simulateScaled(rt, cfg, w, steps, Options{model: model})
		var got scaled
		scaler := &script{steps: steps}
		p := newOnlinePlay(rt, resolved(rt, cfg), w, w.Requests(), Options{
			model: model, Autoscaler: scaler, ScalingEvents: func(e ScalingEvent) { got.Events = append(got.Events, e) },
		})
		every := 0.0 // from event to event, because what ends may let others come in between
		if opens(cfg, w) {
			every = rapid.SampledFrom([]float64{0, .7, 13}).Draw(rt, "step")
		}
		p.run(func() float64 { return every })
		if want.Err != nil || failed(p.records) > failed(want.Records) {
			return // see TestOnlineEqualsRun
		}
		compareOnline(rt, want.Records, p)
		// Online it goes on when all requests have ended.
		ticks, events := len(want.Script.nows), len(want.Events)
		if len(scaler.nows) != len(steps) || len(got.Events) < events {
			rt.Fatalf("%d of %d ticks, and %d events where Run has %d", len(scaler.nows), len(steps), len(got.Events), events)
		}
		got.Events = got.Events[:events]
		told := 0
		if ticks > 0 {
			told = scaler.told[ticks-1]
		}
		scaler.at, scaler.states, scaler.nows, scaler.told, scaler.passes = ticks, scaler.states[:ticks], scaler.nows[:ticks], scaler.told[:ticks], scaler.passes[:told]
		got.Script, got.outcome = *scaler, want.outcome
		if diff := diffScaled(want, got); diff != "" {
			rt.Fatalf("(-run +online):\n%s", diff)
		}
	})
}

// TestScaledOnlineLeavesNothing checks with workers that come and go that requests which are given up at any time leave nothing
// behind, and that what is told of the workers adds up.
func TestScaledOnlineLeavesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg, w, steps := drawScaledOnline(rt)
		model := drawModel(rt)
		var p *onlinePlay
		var events []ScalingEvent
		p = newOnlinePlay(rt, resolved(rt, cfg), w, w.Requests(), Options{
			model: model, Autoscaler: &script{steps: steps}, ScalingEvents: func(e ScalingEvent) { events = append(events, e) },
		})
		delays := rapid.OneOf(rapid.Float64Range(0, 30), rapid.SampledFrom([]float64{-5, 0, 100, 400}))
		p.cancels = func(slot int32, readyMs float64) {
			if rapid.Bool().Draw(rt, "cancelled") {
				p.o.Cancel(readyMs+delays.Draw(rt, "cancelled after"), slot)
			}
		}
		passes := map[[2]int]int64{}
		p.run(func() float64 {
			for _, w := range p.o.Workers() {
				at := [2]int{w.Pool, w.Seat}
				if w.Passes < passes[at] {
					rt.Fatalf("seat %v had %d passes, and has %d", at, passes[at], w.Passes)
				}
				passes[at] = w.Passes
			}
			return 0
		})
		if len(p.records) != w.Requests() || len(p.numbers) > 0 {
			rt.Fatalf("%d of %d requests have ended", len(p.records), w.Requests())
		}
		checkIdle(rt, p.o)
		checkPools(rt, cfg, p.o, events)
	})
}

// checkPools checks the numbers of workers of an idle deployment.
func checkPools(t rapid.TB, cfg Config, o *Online, events []ScalingEvent) {
	t.Helper()
	var want []OnlinePool
	for _, p := range cfg.Stages() {
		want = append(want, OnlinePool{Ready: p.Workers})
	}
	for _, e := range events {
		switch p := &want[e.Pool]; e.Kind {
		case WorkerRequested:
			p.Starting++
		case WorkerReady:
			p.Starting--
			p.Ready++
		case WorkerCancelled:
			p.Starting--
		case WorkerDraining:
			p.Ready--
			p.Draining++
		case WorkerRemoved:
			p.Draining--
		}
	}
	if diff := cmp.Diff(want, o.Pools()); diff != "" {
		t.Fatalf("(-events +pools):\n%s", diff)
	}
	there := make([]int, len(want))
	seats := map[[2]int]bool{}
	for _, w := range o.Workers() {
		there[w.Pool]++
		seats[[2]int{w.Pool, w.Seat}] = true
	}
	for pool, n := range want {
		if there[pool] != n.Ready+n.Draining || n.Draining > 0 {
			t.Fatalf("%d workers of pool %d, %+v", there[pool], pool, n)
		}
	}
	if len(seats) != len(o.Workers()) {
		t.Fatalf("workers share seats: %+v", o.Workers())
	}
}

// TestOnlineWithoutWorkers lets requests wait while no worker is ready: until one is, or their clients go.
func TestOnlineWithoutWorkers(t *testing.T) {
	for name, mode := range map[string]string{"aggregated": ModeAggregated, "disaggregated": ModeDisaggregated} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Deployment.Mode = mode
			cfg.Engine.BlockSize, cfg.Engine.StartupTime = 16, 2
			cfg.Prefill.Engine, cfg.Decode.Engine = cfg.Engine, cfg.Engine
			zero, one := make([]int, len(cfg.Stages())), slices.Repeat([]int{1}, len(cfg.Stages()))
			var ends []RequestRecord
			o, err := NewOnline(cfg, 8, func(e OnlineEvent) {
				if e.Ended {
					ends = append(ends, *e.Record)
				}
			}, OnlineOptions{Autoscaler: &script{steps: []step{{100, zero}, {5000, nil}, {8000, one}}}})
			if err != nil {
				t.Fatal(err)
			}
			waits, _ := o.Submit(200, OnlineRequest{Input: 40, Output: 3})
			goes, _ := o.Submit(300, OnlineRequest{Input: 40, Output: 3})
			o.Cancel(1000, goes)
			if err := o.Advance(4000); err != nil {
				t.Fatal(err)
			}
			if len(ends) != 1 || ends[0].Life.State != engine.Cancelled || o.Kept() != 1 || len(o.Workers()) != 0 {
				t.Fatalf("%d requests have ended, %d wait, %+v", len(ends), o.Kept(), o.Workers())
			}
			if err := o.Advance(11000); err != nil {
				t.Fatal(err)
			}
			if len(ends) != 2 || ends[1].Life.State != engine.Completed || ends[1].Life.RoutedMs < 10000 || o.Kept() != 0 {
				t.Fatalf("request %d: %+v", waits, ends)
			}
			if !math.IsInf(o.NextMs(), 1) {
				t.Errorf("something happens at %v", o.NextMs())
			}
			checkIdle(t, o)
		})
	}
}

// TestIdleOnlineGoesOn checks that an autoscaler decides on for as long as it likes while nothing happens, and that time without
// end ends once all requests have.
func TestIdleOnlineGoesOn(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Engine.StartupTime = 1
	every := &metronome{}
	ended := 0
	o, err := NewOnline(cfg, 8, func(e OnlineEvent) {
		if e.Ended {
			ended++
		}
	}, OnlineOptions{Autoscaler: every})
	if err != nil {
		t.Fatal(err)
	}
	const ticks = 3 * maxIdleTicks
	if err := o.Advance(ticks * 1000); err != nil || every.ticks != ticks {
		t.Fatalf("%d ticks, %v", every.ticks, err)
	}
	o.Submit(ticks*1000, OnlineRequest{Input: 100, Output: 2})
	if err := o.Advance(math.Inf(1)); err != nil || ended != 1 {
		t.Fatalf("%d requests have ended: %v", ended, err)
	}
	if crew := &o.deployment.(*cluster).crew; len(o.scaling.asked) > 4 || len(crew.spare[0]) > 4 {
		t.Errorf("%d workers are remembered that started, and %d that are gone", len(o.scaling.asked), len(crew.spare[0]))
	}
}

// metronome decides every second, for one worker and two in turn.
type metronome struct{ ticks int }

func (m *metronome) NextTickMs() float64 { return float64(m.ticks+1) * 1000 }

func (m *metronome) Tick(float64, []PoolState) []int {
	m.ticks++
	return []int{1 + m.ticks%2}
}

// TestFailureTellsOthers lets a request end in the pass in which another one cannot go on.
func TestFailureTellsOthers(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Compat, cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = rules.Dynamo13, 2, 8
	var states []engine.State
	o, err := NewOnline(cfg, 8, func(e OnlineEvent) {
		if e.Ended {
			states = append(states, e.Life.State)
		}
	}, OnlineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.Submit(0, OnlineRequest{Input: 1, Output: 1})
	o.Submit(1, OnlineRequest{Input: 16, Output: 1}) // whose token has no room
	o.Submit(1, OnlineRequest{Input: 17, Output: 1}) // which never has room
	if err := o.Advance(1000); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]engine.State{engine.Completed, engine.Rejected, engine.Failed}, states); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkIdle(t, o)
}

// TestDeadEndsComeBeforeTicks checks that a request which can make no progress fails when nothing else happens, and not at the
// next tick.
func TestDeadEndsComeBeforeTicks(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Deployment.Mode = ModeDisaggregated
	cfg.Engine.Type, cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = engine.TypeSGLang, 1, 16
	cfg.Prefill.Engine, cfg.Decode.Engine = cfg.Engine, cfg.Engine
	var failed []float64
	o, err := NewOnline(cfg, 8, func(e OnlineEvent) {
		if e.Ended && e.Life.State == engine.Failed {
			failed = append(failed, e.AtMs)
		}
	}, OnlineOptions{Autoscaler: &script{steps: []step{{1e6, nil}, {1.1e6, nil}}}})
	if err != nil {
		t.Fatal(err)
	}
	o.Submit(0, OnlineRequest{Input: 5, Output: 12}) // its last token has no room
	if err := o.Advance(2e6); err != nil {
		t.Fatal(err)
	}
	if len(failed) != 1 || failed[0] >= 1e6 {
		t.Errorf("failures at %v", failed)
	}
	checkIdle(t, o)
}

// TestPromptForGoneWorker lets the decode worker go for which a prompt is computed whose client has gone.
func TestPromptForGoneWorker(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Deployment.Mode = ModeDisaggregated
	cfg.Engine.Type, cfg.Engine.KVBytesPerToken, cfg.Engine.KVTransferBandwidth = engine.TypeSGLang, 1000, .001
	cfg.Prefill.Engine, cfg.Decode.Engine = cfg.Engine, cfg.Engine
	var events []ScalingEvent
	var end float64
	o, err := NewOnline(cfg, 8, func(e OnlineEvent) { end = e.AtMs }, OnlineOptions{
		Autoscaler: &script{steps: []step{{.5, []int{1, 0}}, {100, []int{1, 1}}}}, ScalingEvents: func(e ScalingEvent) { events = append(events, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	request, _ := o.Submit(0, OnlineRequest{Input: 400, Output: 5})
	o.Cancel(1, request)
	if err := o.Advance(1000); err != nil {
		t.Fatal(err)
	}
	if len(events) < 2 || events[1].Kind != WorkerRemoved || events[1].AtMs != 1 || end <= 1 {
		t.Errorf("the request ends at %v; %+v", end, events)
	}
	checkIdle(t, o)
}

// TestNewWorkersKnowAllBlocks lets so many blocks come after a worker has been added that their numbers grow.
func TestNewWorkersKnowAllBlocks(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 60_000
	ended := 0
	o, err := NewOnline(cfg, 64, func(e OnlineEvent) {
		if e.Ended {
			ended++
		}
	}, OnlineOptions{Autoscaler: &script{steps: []step{{0, []int{2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	const requests, blocks = 800, 100
	for i := range requests {
		r := OnlineRequest{Input: 16 * blocks, Output: 1}
		for b := range blocks {
			r.Blocks = append(r.Blocks, uint64(i*blocks+b))
		}
		if _, ok := o.Submit(float64(i)*1000, r); !ok {
			t.Fatalf("no room for request %d", i)
		}
		if err := o.Advance(float64(i+1) * 1000); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range o.Workers() {
		if ended != requests || w.CachedBlocks < requests*blocks/2 {
			t.Errorf("%d requests have ended; %+v", ended, w)
		}
	}
}
