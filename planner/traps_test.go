package planner

import (
	"math"
	"slices"
	"testing"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// The tests in this file are named after the traps of docs/planner.md: each shows what the default rules do, and what the rules of
// the reference's releases do. T1, T4 and T18 are about command lines and have theirs in cmd/servegrid/testdata/script/planner.txtar,
// T19 is TestWarmUp, and the plots of T17 have TestT17EachTickHasItsOwnWindow of results/plannerreport too.

// allCompat are the rule sets.
var allCompat = []rules.Compat{rules.Default, rules.Dynamo13, rules.Dynamo12}

// trapConfig is a configuration with a target.
func trapConfig(target string) Config {
	c := DefaultConfig()
	c.Policy, c.OptimizationTarget, c.LoadPredictor = PolicyDynamo, target, "constant"
	c.EnableLoadScaling = true
	return c
}

// trapCore makes a planner for one pool, or for two. Its model knows passes of 5 ms and 0.02 ms a prompt token.
func trapCore(t *testing.T, c Config, compat rules.Compat, pools ...poolSetup) *core {
	t.Helper()
	for i := range pools {
		pools[i].limits = limits{batchedTokens: 1000, sequences: 64, kvTokens: 10_000}
		pools[i].gpus = max(pools[i].gpus, 1)
		for n := range int64(20) {
			pools[i].known = append(pools[i].known,
				pass{prefills: 1, prefillTokens: 50 * n, wallSeconds: 0.005 + 0.001*float64(n)},
				pass{decodes: 1 + n%3, decodeTokens: 100 * n, wallSeconds: 0.005 + 0.0001*float64(n)},
				pass{prefills: 1, prefillTokens: 50 * n, decodes: 1, decodeTokens: 100 * (n % 7), wallSeconds: 0.005 + 0.001*float64(n) + 0.0001*float64(n%7)})
		}
	}
	core, err := newCore(c, rulesFor(compat), pools)
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// look is a look at the engines of pools whose ready workers have just reported, with the given decoding tokens each.
func look(decoding ...[]int64) *tickInput {
	in := &tickInput{atMs: 10_000, nowMs: 10_000, load: true}
	for _, tokens := range decoding {
		var p poolInput
		for id, n := range tokens {
			p.ready = append(p.ready, int32(id))
			p.passes = append(p.passes, pass{worker: int32(id), decodes: min(n, 1), decodeTokens: n, queuedPrefillTokens: n, wallSeconds: 0.01})
		}
		in.pools = append(in.pools, p)
	}
	return in
}

func wantTargets(t *testing.T, compat rules.Compat, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("compat %q: targets %v, want %v", compat, got, want)
	}
}

func TestT2MissingGPUsFollowFromTheEngine(t *testing.T) {
	cfg := simcore.DefaultConfig()
	cfg.Timing.TP, cfg.Timing.DP = 4, 2
	c := trapConfig("sla")
	if n := c.gpusPerWorker(0, cfg); n != 8 {
		t.Errorf("%d GPUs a worker, want 8", n)
	}
	if c.DecodeEngineNumGPU = 2; c.gpusPerWorker(0, cfg) != 2 {
		t.Error("the configured number does not count")
	}
}

func TestT3BudgetCountsGPUs(t *testing.T) {
	for compat, want := range map[rules.Compat][]int{rules.Default: nil, rules.Dynamo13: {3}} {
		c := trapCore(t, trapConfig("throughput"), compat, poolSetup{gpus: 4, workers: 2})
		_, got := c.tick(look([]int64{9000, 9000}))
		wantTargets(t, compat, got, want...)
	}
}

func TestT5GPUHoursCountStartsAndDrains(t *testing.T) {
	cfg := simcore.DefaultConfig()
	cfg.Deployment.Workers = 1
	c := trapConfig("sla")
	c.DecodeEngineNumGPU = 2
	clock := newGPUClock(cfg, &c)
	const hour = 3.6e6
	clock.note(simcore.ScalingEvent{AtMs: hour, Worker: 1, Kind: simcore.WorkerRequested})
	clock.note(simcore.ScalingEvent{AtMs: 2 * hour, Worker: 1, Kind: simcore.WorkerReady})
	clock.note(simcore.ScalingEvent{AtMs: 3 * hour, Worker: 1, Kind: simcore.WorkerDraining})
	clock.note(simcore.ScalingEvent{AtMs: 4 * hour, Worker: 1, Kind: simcore.WorkerRemoved})
	if got := clock.hours(5 * hour); math.Abs(got-2*(5+3)) > 1e-12 {
		t.Errorf("%v GPU hours, want 16", got)
	}
}

// TestT6ThreeCountsOfChanges counts what was asked for, what changed from tick to tick, and what became of workers apart: here
// workers are asked for that never start.
func TestT6ThreeCountsOfChanges(t *testing.T) {
	for _, compat := range allCompat {
		cfg := simcore.DefaultConfig()
		cfg.Compat, cfg.Timing.Source = compat, perfmodel.SourcePolynomial
		cfg.Engine.StartupTime, cfg.Engine.NumGPUBlocks = 1e6, 512
		p := trapConfig("latency")
		s := workload.DefaultSyntheticSpec()
		s.Requests, s.InputTokens, s.OutputTokens, s.ArrivalIntervalMs = 200, 3000, 200, 100
		out := simulate(t, cfg, p, workload.Spec{Synthetic: &s})
		asked, became := out.Report.Planning, out.Report.Scaling.Decode
		if asked.ScaleUps == 0 || asked.ScaleUps+asked.ScaleDowns != int64(len(out.Record.Decisions)) {
			t.Errorf("compat %q: %d times more and %d times fewer workers of %d decisions", compat, asked.ScaleUps, asked.ScaleDowns, len(out.Record.Decisions))
		}
		if asked.Transitions != 0 || became.PeakReady != 1 {
			t.Errorf("compat %q: the ready workers changed %d times, to %d; none was ever ready", compat, asked.Transitions, became.PeakReady)
		}
		requested := 0
		for _, e := range out.Record.Events {
			if e.Kind == simcore.WorkerRequested {
				requested++
			}
		}
		if became.WorkersAdded == 0 || int(became.WorkersAdded) != requested || became.WorkersRemoved != 0 {
			t.Errorf("compat %q: %+v after %d requested workers", compat, became, requested)
		}
	}
	r := &Record{
		Decisions: []Decision{{From: 1, To: 2}, {From: 2, To: 4}, {From: 2, To: 1}},
		Ticks:     []Tick{readyTick(1), readyTick(1), readyTick(2), readyTick(2), readyTick(4), readyTick(1)},
	}
	if got := *r.planning(); got.ScaleUps != 2 || got.ScaleDowns != 1 || got.Transitions != 3 {
		t.Errorf("%+v, want 2 up, 1 down, 3 changes between ticks", got)
	}
}

// readyTick is a tick with so many ready workers.
func readyTick(n int) Tick { return Tick{Pools: []PoolTick{{Ready: n}}} }

func TestT7StartingWorkersAreLeft(t *testing.T) {
	for compat, want := range map[rules.Compat][]int{rules.Default: nil, rules.Dynamo13: nil, rules.Dynamo12: {1, 2}} {
		c := trapCore(t, trapConfig("latency"), compat, poolSetup{kind: prefillPool, workers: 1}, poolSetup{kind: decodePool, workers: 1})
		if _, got := c.tick(look([]int64{9000}, []int64{100})); !slices.Equal(got, []int{2, 1}) {
			t.Fatalf("compat %q: targets %v, want [2 1]", compat, got)
		}
		in := look([]int64{500}, []int64{9000})
		in.pools[0].starting = 1
		_, got := c.tick(in)
		wantTargets(t, compat, got, want...)
	}
}

func TestT8NewestPassesAreOfReadyWorkers(t *testing.T) {
	for compat, want := range map[rules.Compat][]int32{rules.Default: {0, 2}, rules.Dynamo13: {0, 1}} {
		c := trapCore(t, trapConfig("throughput"), compat, poolSetup{workers: 2})
		in := look([]int64{100, 100, 100})
		in.pools[0].ready = []int32{0, 2} // worker 1 drains
		c.tick(in)
		var got []int32
		for _, w := range c.pools[0].seen {
			got = append(got, w.worker)
		}
		if !slices.Equal(got, want) {
			t.Errorf("compat %q: newest passes of %v, want %v", compat, got, want)
		}
	}
}

func TestT8bWorkerWithoutPassIsIdle(t *testing.T) {
	for compat, want := range map[rules.Compat]string{rules.Default: reasonDown, rules.Dynamo13: reasonMismatch} {
		c := trapCore(t, trapConfig("throughput"), compat, poolSetup{workers: 2})
		in := look([]int64{100})
		in.pools[0].ready = []int32{0, 1}
		if tick, _ := c.tick(in); tick.LoadReason != want {
			t.Errorf("compat %q: %s, want %s", compat, tick.LoadReason, want)
		}
	}
}

// trapDynamo makes a planner that looks at the engines every 10 s and at the traffic every 15 s.
func trapDynamo(t *testing.T, compat rules.Compat) *dynamo {
	t.Helper()
	cfg := simcore.DefaultConfig()
	cfg.Compat = compat
	cfg.Timing.Source = perfmodel.SourcePolynomial
	cfg, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	c := trapConfig("sla")
	c.LoadAdjustmentIntervalSeconds, c.ThroughputAdjustmentIntervalSeconds = 10, 15
	d, err := newDynamo(cfg, c, &Record{}, newGPUClock(cfg, &c))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestT9PassesOutliveALookAtTraffic(t *testing.T) {
	for compat, want := range map[rules.Compat]int{rules.Default: 1, rules.Dynamo13: 1, rules.Dynamo12: 0} {
		d := trapDynamo(t, compat)
		for d.NextTickMs() < 15_000 {
			d.Tick(d.NextTickMs(), []simcore.PoolState{{Ready: []int32{0}}})
		}
		d.Pass(&simcore.PassMetrics{WallSeconds: 1})
		d.Tick(15_000, []simcore.PoolState{{Ready: []int32{0}}})
		if got := len(d.passes[0]); got != want {
			t.Errorf("compat %q: %d passes are left for the next look at the engines, want %d", compat, got, want)
		}
	}
}

func TestT10IdleWindowKeepsLengths(t *testing.T) {
	for compat, want := range map[rules.Compat]float64{rules.Default: 1000, rules.Dynamo13: 1000, rules.Dynamo12: 0} {
		c := trapCore(t, trapConfig("sla"), compat, poolSetup{workers: 1})
		c.observe(&Load{DurationSeconds: 60, Requests: 10, InputTokens: 1000, OutputTokens: 100})
		c.observe(&Load{DurationSeconds: 60})
		if got := c.predict(&Load{DurationSeconds: 60}).InputTokens; got != want {
			t.Errorf("compat %q: %v input tokens expected, want %v", compat, got, want)
		}
	}
}

func TestT11DemandIsWhatArrives(t *testing.T) {
	for compat, want := range map[rules.Compat]float64{rules.Default: 3, rules.Dynamo13: 1} {
		w := traffic{rules: rulesFor(compat), prompts: newMovingAverage(4)}
		for range 3 {
			w.arrive(&engine.Request{Input: 100})
		}
		w.complete(&engine.Request{Input: 100, Output: 10, Tokens: 10})
		if got := w.drain(10).Requests; got != want {
			t.Errorf("compat %q: %v requests, want %v", compat, got, want)
		}
	}
}

func TestT12NoShrinkingBeforeTheFirstLookAtTraffic(t *testing.T) {
	for compat, want := range map[rules.Compat]string{rules.Default: reasonCapped, rules.Dynamo13: reasonDown} {
		c := trapCore(t, trapConfig("sla"), compat, poolSetup{workers: 3})
		if tick, _ := c.tick(look([]int64{0, 0, 0})); tick.LoadReason != want {
			t.Errorf("compat %q: %s, want %s", compat, tick.LoadReason, want)
		}
	}
}

func TestT13EstimateIsOfAWholePrompt(t *testing.T) {
	for compat, whole := range map[rules.Compat]bool{rules.Default: true, rules.Dynamo13: false} {
		c := trapCore(t, trapConfig("sla"), compat, poolSetup{workers: 1})
		in := look([]int64{0})
		in.promptTokens = 10_000 // ten passes of 25 ms
		tick, _ := c.tick(in)
		if got := tick.Pools[0].EstimatedTTFTMs; (got > 200) != whole {
			t.Errorf("compat %q: TTFT is estimated as %v ms", compat, got)
		}
	}
}

// TestT14QueuedPromptsCountInFull takes hits off once, of the queue and the prompt together, with the share that each dialect
// knows (T15).
func TestT14QueuedPromptsCountInFull(t *testing.T) {
	for _, compat := range allCompat {
		config := trapConfig("sla")
		config.EnableThroughputScaling = false // so that the share is as last seen
		estimate := func(queued int64, hitRate float64) float64 {
			c := trapCore(t, config, compat, poolSetup{workers: 1})
			switch m := c.pools[0].model.(type) {
			case *storeModel:
				m.promptTokens = always(200)
			case *regression:
				m.promptTokens = always(200)
			}
			in := look([]int64{0})
			// Prompts are of the same length as ever, and without a duration nothing else is learned.
			in.pools[0].passes[0] = pass{prefills: 1, prefillTokens: 200, queuedPrefillTokens: queued}
			in.promptTokens, in.traffic = 200, &Load{DurationSeconds: 10, KVHitRate: hitRate}
			tick, _ := c.tick(in)
			return tick.Pools[0].EstimatedTTFTMs
		}
		// Half of 600 queued tokens and of a prompt of 200 is what 200 queued ones and such a prompt are without hits.
		if got, want := estimate(600, 0.5), estimate(200, 0); !(math.Abs(got/want-1) < 1e-6) {
			t.Errorf("compat %q: TTFT %v ms with hits, want %v", compat, got, want)
		}
		if all, half := estimate(600, 0), estimate(600, 0.5); !(all > half) {
			t.Errorf("compat %q: hits make no difference: %v ms", compat, all)
		}
	}
}

func TestT15HitsAreSeenWithoutARouterThatLooks(t *testing.T) {
	for compat, want := range map[rules.Compat]float64{rules.Default: 0.25, rules.Dynamo13: 0} {
		w := traffic{rules: rulesFor(compat), prompts: newMovingAverage(4)}
		w.complete(&engine.Request{Input: 100, ReusedFirst: 25, Output: 10, Tokens: 10})
		if got := w.drain(10).KVHitRate; got != want {
			t.Errorf("compat %q: hit rate %v, want %v", compat, got, want)
		}
	}
}

func TestT16TicksDoNotDrift(t *testing.T) {
	for compat, want := range map[rules.Compat]float64{rules.Default: 20_000, rules.Dynamo13: 20_000, rules.Dynamo12: 19_500} {
		c := trapConfig("throughput")
		c.LoadAdjustmentIntervalSeconds = 10
		s := newSchedule(&c, rulesFor(compat))
		now := s.at
		if rulesFor(compat).DriftingTicks {
			now = 9.5 // the time of the last event
		}
		if s.advance(now); s.at*1000 != want {
			t.Errorf("compat %q: the second tick is at %v s", compat, s.at)
		}
	}
}

// TestT17EachTickHasItsOwnWindow divides by the time since the last look at the traffic, whatever the interval is meant to be, and
// has nothing where nobody looked.
func TestT17EachTickHasItsOwnWindow(t *testing.T) {
	for compat, want := range map[rules.Compat][]float64{rules.Default: {15, 15}, rules.Dynamo13: {15, 15}, rules.Dynamo12: {14.2, 14.2}} {
		d := trapDynamo(t, compat)
		for d.NextTickMs() < 40_000 {
			now := d.NextTickMs()
			if compat == rules.Dynamo12 {
				now -= 800 // when the last event was
			}
			d.Arrived(now, &engine.Request{Input: 10})
			d.Tick(now, []simcore.PoolState{{Ready: []int32{0}}})
		}
		var got []float64
		for _, tick := range d.record.Ticks {
			if known := !math.IsNaN(tick.Observed.DurationSeconds); known != tick.ThroughputScaling || known == math.IsNaN(tick.Observed.Requests) {
				t.Errorf("compat %q: at %v ms, where traffic was looked at: %v, there are %v requests in %v s", compat, tick.AtMs, tick.ThroughputScaling, tick.Observed.Requests, tick.Observed.DurationSeconds)
			} else if known {
				got = append(got, tick.Observed.DurationSeconds)
			}
		}
		if len(got) < 2 || math.Abs(got[0]-want[0]) > 1e-9 || math.Abs(got[1]-want[1]) > 1e-9 {
			t.Errorf("compat %q: windows of %v s, want %v first", compat, got, want)
		}
	}
}

// TestT20PredictorsAreBuiltIn has all predictors at hand, with nothing installed.
func TestT20PredictorsAreBuiltIn(t *testing.T) {
	for _, compat := range allCompat {
		for _, predictor := range LoadPredictors() {
			config := trapConfig("sla")
			config.LoadPredictor = predictor
			c := trapCore(t, config, compat, poolSetup{workers: 1})
			for i := range 8 {
				c.observe(&Load{DurationSeconds: 60, Requests: float64(10 + i%3), InputTokens: 1000, OutputTokens: 100})
			}
			if got := c.predict(&Load{DurationSeconds: 60}); !(got.Requests > 5 && got.Requests < 20 && got.InputTokens > 900 && got.InputTokens < 1100) {
				t.Errorf("compat %q, %s: it expects %v requests of %v tokens", compat, predictor, got.Requests, got.InputTokens)
			}
		}
	}
}

func TestT21BudgetLeavesMinEndpoint(t *testing.T) {
	for compat, want := range map[rules.Compat][]int{rules.Default: nil, rules.Dynamo13: {0, 0}} {
		config := trapConfig("throughput")
		config.MaxGPUBudget = 1
		c := trapCore(t, config, compat, poolSetup{kind: prefillPool, workers: 1}, poolSetup{kind: decodePool, workers: 1})
		_, got := c.tick(look([]int64{100}, []int64{100}))
		wantTargets(t, compat, got, want...)
	}
}

func TestT22And23NegativeSlopesDoNotBlind(t *testing.T) {
	for compat, want := range map[rules.Compat]bool{rules.Default: true, rules.Dynamo13: false} {
		config := trapConfig("sla")
		m := newStoreModel(decodePool, &config, rulesFor(compat), limits{batchedTokens: 1000, sequences: 64, kvTokens: 10_000})
		for i := range int64(10) {
			m.observe([]pass{{decodes: 1 + i%4, decodeTokens: 100 * i, wallSeconds: 0.01 - 1e-5*float64(i)}})
		}
		if _, ok := m.itlMs(&pass{decodes: 1, decodeTokens: 500}, itlQuery{acceptLength: 1}); ok != want {
			t.Errorf("compat %q: the model knows an estimate: %v", compat, ok)
		}
	}
}

func TestT24MinEndpointHoldsFromTheStart(t *testing.T) {
	for compat, want := range map[rules.Compat][]int{rules.Default: {3}, rules.Dynamo13: nil} {
		config := trapConfig("sla")
		config.MinEndpoint = 3
		c := trapCore(t, config, compat, poolSetup{workers: 1})
		_, got := c.tick(&tickInput{load: true, pools: []poolInput{{ready: []int32{0}}}})
		wantTargets(t, compat, got, want...)
	}
}

// TestBudgetHoldsWithoutADecision brings workers within the budget although no look asks for a change.
func TestBudgetHoldsWithoutADecision(t *testing.T) {
	for _, test := range []struct {
		most, least, ready int
		want               []int
	}{{8, -1, 12, []int{8}}, {8, 6, 2, []int{6}}, {8, 6, 7, nil}} {
		config := trapConfig("sla")
		config.MaxGPUBudget, config.MinGPUBudget = test.most, test.least
		c := trapCore(t, config, rules.Default, poolSetup{workers: test.ready})
		_, got := c.tick(&tickInput{load: true, pools: []poolInput{{ready: ids(test.ready)}}})
		wantTargets(t, rules.Default, got, test.want...)
	}
}

// TestOutputsOfALoadingWindow keeps the lengths of outputs in mind while requests arrive and none has ended.
func TestOutputsOfALoadingWindow(t *testing.T) {
	config := testSLA()
	config.EnableThroughputScaling = true
	c := newTestCore(t, config, rules.Default, poolSetup{kind: aggregatedPool, limits: testLimits, gpus: 1, workers: 1})
	c.observe(&Load{Requests: 3, InputTokens: 100, OutputTokens: 20})
	c.observe(&Load{Requests: 5, InputTokens: 300})
	if input, output := c.inputTokens.Forecast(), c.outputTokens.Forecast(); input != 300 || output != 20 {
		t.Errorf("%v input and %v output tokens are expected, want 300 and 20", input, output)
	}
}

// TestT25QueuedRequestsStay leaves what a worker that drains has queued where it is, though the other one has nothing to do.
func TestT25QueuedRequestsStay(t *testing.T) {
	for _, compat := range allCompat {
		cfg := simcore.DefaultConfig()
		cfg.Compat, cfg.Deployment.Workers = compat, 2
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 1000, 100
		cfg.Engine.MaxNumSeqs = 1
		b := workload.NewBuilder("queued", 64)
		for i := range 8 { // the even ones go to worker 0 and ask for little
			b.Add(workload.Request{ArrivalMs: float64(i), Input: 64, Output: 1 + 99*(i%2)})
		}
		w, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var records []simcore.RequestRecord
		_, err = simcore.Run(t.Context(), cfg, w, simcore.Options{
			Autoscaler: &onlyOnce{atMs: 500, workers: 1},
			Records:    func(r simcore.RequestRecord) { records = append(records, r) },
		})
		if err != nil {
			t.Fatal(err)
		}
		var idle, last float64
		for i, r := range records {
			if int(r.Life.Worker) != i%2 || r.Life.State != engine.Completed || r.Life.Tokens != r.Life.Output {
				t.Errorf("compat %q: request %d ended on worker %d in state %d", compat, i, r.Life.Worker, r.Life.State)
			}
			if i%2 == 0 {
				idle = max(idle, r.Life.LastTokenMs)
			} else {
				last = max(last, r.Life.AdmittedMs)
			}
		}
		if len(records) != 8 || last < 2*idle {
			t.Errorf("compat %q: %d requests; the last begins at %v ms, when the other worker is idle since %v", compat, len(records), last, idle)
		}
	}
}

// onlyOnce asks for a number of workers at one time.
type onlyOnce struct {
	atMs    float64
	workers int
}

func (o *onlyOnce) NextTickMs() float64 { return o.atMs }

func (o *onlyOnce) Tick(float64, []simcore.PoolState) []int {
	o.atMs = math.Inf(1)
	return []int{o.workers}
}

func TestT26WhatStartsIsNotAskedForAgain(t *testing.T) {
	for compat, again := range map[rules.Compat]bool{rules.Default: false, rules.Dynamo13: true} {
		config := trapConfig("sla")
		config.EnableLoadScaling = false
		c := trapCore(t, config, compat, poolSetup{workers: 1})
		in := &tickInput{throughput: true, pools: []poolInput{{ready: []int32{0}}}, traffic: &Load{
			DurationSeconds: 1, Requests: 150, InputTokens: 500, OutputTokens: 2, KVHitRate: 0,
		}}
		_, first := c.tick(in)
		if len(first) != 1 || first[0] < 2 {
			t.Fatalf("compat %q: targets %v, want more than one worker", compat, first)
		}
		in.pools[0].starting = first[0] - 1
		if _, second := c.tick(in); (second != nil) != again {
			t.Errorf("compat %q: targets %v while %d workers start", compat, second, first[0]-1)
		}
	}
}

func TestT28EqualBudgetsPin(t *testing.T) {
	for compat, want := range map[rules.Compat][]int{rules.Default: nil, rules.Dynamo13: {2}} {
		config := trapConfig("throughput")
		config.MinGPUBudget, config.MaxGPUBudget = 3, 3
		c := trapCore(t, config, compat, poolSetup{workers: 3})
		_, got := c.tick(look([]int64{100, 100, 100}))
		wantTargets(t, compat, got, want...)
	}
}

func TestT27ARIMAFollowsARamp(t *testing.T) {
	missed := func(compat rules.Compat) (sum float64) {
		config := trapConfig("sla")
		config.LoadPredictor = "arima"
		c := trapCore(t, config, compat, poolSetup{workers: 1})
		for i, requests := range []float64{24, 31, 37, 29, 62, 70, 79, 88, 97, 106, 115, 124, 133, 142} {
			if i > 5 {
				sum += math.Abs(c.predict(&Load{DurationSeconds: 60}).Requests - requests)
			}
			c.observe(&Load{DurationSeconds: 60, Requests: requests, InputTokens: 1000, OutputTokens: 100})
		}
		return sum
	}
	if ours, reference := missed(rules.Default), missed(rules.Dynamo13); ours > reference/2 {
		t.Errorf("misses add up to %v, with dynamo-1.3 to %v", ours, reference)
	}
}

// TestT29RolesFollowFromThePool has engines of pools that know what they are for, but for those of 1.2 that are told otherwise.
func TestT29RolesFollowFromThePool(t *testing.T) {
	for compat, known := range map[rules.Compat]bool{rules.Default: true, rules.Dynamo13: true, rules.Dynamo12: false} {
		cfg := simcore.DefaultConfig()
		cfg.Compat = compat
		cfg.Deployment = simcore.Deployment{Mode: simcore.ModeDisaggregated, PrefillWorkers: 1, DecodeWorkers: 1}
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 1000, 100
		cfg.Prefill = simcore.Stage{Engine: cfg.Engine, Timing: cfg.Timing}
		cfg.Decode = cfg.Prefill
		s := workload.DefaultSyntheticSpec()
		s.Requests, s.InputTokens, s.OutputTokens, s.ArrivalIntervalMs = 1, 640, 2, 1
		told := simulate(t, cfg, trapConfig("latency"), workload.Spec{Synthetic: &s}).Report
		cfg.Prefill.Engine.WorkerType = engine.WorkerTypeAggregated
		cfg.Decode.Engine.WorkerType = engine.WorkerTypeAggregated
		if _, problems := cfg.Resolve(); (problems.Err() != nil) != known {
			t.Errorf("compat %q: %v", compat, problems)
		}
		alone := simcore.DefaultConfig()
		alone.Compat, alone.Engine.WorkerType = compat, engine.WorkerTypeAggregated
		if _, problems := alone.Resolve(); len(problems) != 1 || problems[0].Path != "engine.worker_type" {
			t.Errorf("compat %q, without pools: %v", compat, problems)
		}
		if known {
			continue
		}
		// The prompt takes a decode step more, and is computed twice.
		untold := simulate(t, cfg, trapConfig("latency"), workload.Spec{Synthetic: &s}).Report
		if got := untold.TTFT.Mean - told.TTFT.Mean; math.Abs(got-1100) > 1e-6 {
			t.Errorf("compat %q: the first token comes %v ms later, want 1100", compat, got)
		}
	}
}

// TestAcceptanceIsKnown is about speculative decoding: what a decode step gives counts from the start.
func TestAcceptanceIsKnown(t *testing.T) {
	for compat, want := range map[rules.Compat]float64{rules.Default: 2.2, rules.Dynamo13: 1} {
		cfg := simcore.DefaultConfig()
		cfg.Compat = compat
		cfg.Timing.Source = perfmodel.SourcePolynomial
		cfg.Engine.NumSpeculativeTokens, cfg.Engine.AcceptanceRates = 2, "0.8,0.5"
		cfg, problems := cfg.Resolve()
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		c := trapConfig("sla")
		c.EnableThroughputScaling = false
		d, err := newDynamo(cfg, c, &Record{}, newGPUClock(cfg, &c))
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(d.core.acceptLength-want) > 1e-12 {
			t.Errorf("compat %q: %v tokens a step at the start, want %v", compat, d.core.acceptLength, want)
		}
		d.Tick(d.NextTickMs(), []simcore.PoolState{{Ready: []int32{0}}})
		if math.Abs(d.core.acceptLength-2.2) > 1e-12 {
			t.Errorf("compat %q: %v tokens a step after a look at the traffic, want 2.2", compat, d.core.acceptLength)
		}
	}
}
