package planner

import (
	"slices"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// TestThroughputScaling predicts with the last window. With [testPlane] and one sequence at a time, requests of 1,024
// tokens and 10 of output take an aggregated worker 134.8 ms: it serves 7.42 of them a second.
func TestThroughputScaling(t *testing.T) {
	shape := func(seconds, requests float64) *Load {
		return &Load{DurationSeconds: seconds, Requests: requests, InputTokens: 1024, OutputTokens: 10}
	}
	const agg, disagg = 1, 2
	only := func(c *Config) { c.EnableThroughputScaling, c.EnableLoadScaling = true, false }
	for _, c := range []struct {
		name    string
		compat  rules.Compat
		pools   int
		change  func(*Config)
		setup   func(*core)
		windows []*Load // a tick each; the last one is checked
		bounds  []int
		targets []int // nil: nothing is decided
		reasons []string
	}{
		{"a bound for load scaling", rules.Dynamo12, agg, throughputToo, nil, []*Load{shape(300, 2.2*7.42*300)},
			[]int{3}, nil, []string{reasonBound}},
		{"a decision without it", rules.Dynamo12, agg, only, nil, []*Load{shape(300, 2.2*7.42*300)},
			[]int{1}, []int{3}, []string{reasonScale}},
		// The load is per second of the window, however long that was meant to be: 180 s here.
		{"a shorter window", rules.Dynamo12, agg, only, nil, []*Load{shape(60, 2.2*7.42*60)},
			[]int{1}, []int{3}, []string{reasonScale}},
		{"down at once", rules.Dynamo12, agg, only, func(c *core) { c.pools[0].ready = 9 }, []*Load{shape(300, 10)},
			[]int{1}, []int{1}, []string{reasonScale}},
		{"min_endpoint", rules.Dynamo12, agg, func(c *Config) { only(c); c.MinEndpoint = 4 }, nil, []*Load{shape(300, 10)},
			[]int{1}, []int{4}, []string{reasonScale}},
		{"budget", rules.Dynamo12, agg, func(c *Config) { only(c); c.MaxGPUBudget = 2 }, nil, []*Load{shape(300, 9*7.42*300)},
			[]int{1}, []int{2}, []string{reasonScale}},
		{"nothing known of traffic", rules.Dynamo12, agg, throughputToo, nil, []*Load{nil}, []int{1}, nil, []string{""}},
		{"no model", rules.Dynamo12, agg, throughputToo, func(c *core) { regressionOf(c.pools[0]).ready = false },
			[]*Load{shape(300, 10)}, []int{1}, nil, []string{reasonModelNotReady}},
		// A window without requests has requests without tokens in 1.2, which no model can serve, and the bound stays (T10).
		{"idle, 1.2", rules.Dynamo12, agg, throughputToo, nil,
			[]*Load{shape(300, 2.2*7.42*300), {DurationSeconds: 300}}, []int{3}, nil, []string{reasonModelNotReady}},
		{"idle, 1.3", rules.Dynamo13, agg, throughputToo, nil,
			[]*Load{shape(300, 2.2*7.42*300), {DurationSeconds: 300}}, []int{1}, nil, []string{reasonBound}},
		{"idle from the start, 1.2", rules.Dynamo12, agg, throughputToo, nil, []*Load{{DurationSeconds: 300}},
			[]int{1}, nil, []string{reasonModelNotReady}},
		// Prompts of 1,024 tokens take a prefill worker 125 ms, and a decode worker 1.1 ms a token.
		{"both pools", rules.Dynamo12, disagg, throughputToo, nil, []*Load{shape(100, 2000)},
			[]int{3, 1}, nil, []string{reasonBound, reasonBound}},
		{"both pools decide", rules.Dynamo12, disagg, only, nil, []*Load{shape(100, 2000)},
			[]int{1, 1}, []int{3, 1}, []string{reasonScale, reasonScale}},
		{"one pool has no model", rules.Dynamo12, disagg, throughputToo, func(c *core) { regressionOf(c.pools[1]).ready = false },
			[]*Load{shape(100, 2000)}, []int{1, 1}, nil, []string{reasonPartnerNotReady, reasonModelNotReady}},
		{"neither has one", rules.Dynamo12, disagg, throughputToo, func(c *core) {
			regressionOf(c.pools[0]).ready, regressionOf(c.pools[1]).ready = false, false
		}, []*Load{shape(100, 2000)}, []int{1, 1}, nil, []string{reasonModelNotReady, reasonModelNotReady}},
		// 1.2 has as many prefill workers as the SLA fits into the time of one prompt, as if they would share it.
		{"prompts that miss the SLA, 1.2", rules.Dynamo12, disagg, func(c *Config) { throughputToo(c); c.TTFTMs = 40 }, nil,
			[]*Load{shape(100, 10)}, []int{4, 1}, nil, []string{reasonBound, reasonBound}},
		{"prompts that miss the SLA, 1.3", rules.Dynamo13, disagg, func(c *Config) { throughputToo(c); c.TTFTMs = 40 }, nil,
			[]*Load{shape(100, 10)}, []int{1, 1}, nil, []string{reasonBound, reasonBound}},
		{"cached prompts", rules.Dynamo12, disagg, throughputToo, nil,
			[]*Load{{DurationSeconds: 100, Requests: 2000, InputTokens: 1024, OutputTokens: 10, KVHitRate: 0.5}},
			[]int{2, 1}, nil, []string{reasonBound, reasonBound}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := testSLA()
			config.MaxGPUBudget = -1
			c.change(&config)
			setups := []poolSetup{{kind: aggregatedPool, gpus: 1, workers: 1}}
			if c.pools == disagg {
				setups = []poolSetup{{kind: prefillPool, gpus: 1, workers: 1}, {kind: decodePool, gpus: 1, workers: 1}}
			}
			for i := range setups {
				setups[i].limits = limits{batchedTokens: 1 << 20, sequences: 1, kvTokens: 1 << 30}
			}
			core := newTestCore(t, config, c.compat, setups...)
			if c.setup != nil {
				c.setup(core)
			}
			var tick Tick
			for _, w := range c.windows {
				in := tickInput{throughput: true, traffic: w}
				for _, p := range core.pools {
					in.pools = append(in.pools, poolInput{ready: ids(max(1, p.ready))})
				}
				tick, _ = core.tick(&in)
			}
			for i, p := range core.pools {
				target := -1
				if c.targets != nil {
					target = c.targets[i]
				}
				if got := tick.Pools[i]; p.bound != c.bounds[i] || got.LowerBound != p.bound || got.Target != target ||
					got.ThroughputReason != c.reasons[i] {
					t.Errorf("pool %d: bound %d (%d), target %d because of %q; want bound %d, target %d because of %q", i, p.bound,
						got.LowerBound, got.Target, got.ThroughputReason, c.bounds[i], target, c.reasons[i])
				}
			}
		})
	}
}

func TestNoTrafficIsSaid(t *testing.T) {
	config := testSLA()
	config.EnableThroughputScaling = true
	core := newTestCore(t, config, rules.Dynamo12, poolSetup{kind: aggregatedPool, limits: testLimits, gpus: 1})
	tick, _ := core.tick(&tickInput{throughput: true, pools: []poolInput{{ready: ids(1)}}})
	if tick.ThroughputReason != reasonNoTraffic {
		t.Errorf("reason %q, want %q", tick.ThroughputReason, reasonNoTraffic)
	}
}

// TestDecisionsAreRepeatedWhileWorkersStart checks trap T26: what was asked for is asked for again in 1.2 and 1.3, and not by
// our rules.
func TestDecisionsAreRepeatedWhileWorkersStart(t *testing.T) {
	for compat, want := range map[rules.Compat][]int{rules.Dynamo12: {3}, rules.Dynamo13: {3}, "": nil} {
		config := testSLA()
		config.EnableThroughputScaling, config.EnableLoadScaling = true, false
		core := newTestCore(t, config, compat,
			poolSetup{kind: aggregatedPool, limits: limits{batchedTokens: 1 << 20, sequences: 1, kvTokens: 1 << 30}, gpus: 1})
		for i := range 2 {
			in := tickInput{throughput: true, pools: []poolInput{{ready: ids(1), starting: 2 * i}},
				traffic: &Load{DurationSeconds: 300, Requests: 2.2 * 7.42 * 300, InputTokens: 1024, OutputTokens: 10}}
			_, targets := core.tick(&in)
			if i == 0 {
				if !slices.Equal(targets, []int{3}) {
					t.Errorf("%q: asked for %v, want 3", compat, targets)
				}
			} else if !slices.Equal(targets, want) {
				t.Errorf("%q: with two starting, asked for %v, want %v", compat, targets, want)
			}
		}
	}
}

// TestHitRateOfLoadScaling checks where the share of cached tokens comes from: without throughput scaling it is as last
// seen, with it it is as predicted, and in 1.3 as last seen then.
func TestHitRateOfLoadScaling(t *testing.T) {
	window := func(rate float64) *Load {
		return &Load{DurationSeconds: 60, Requests: 10, InputTokens: 1024, OutputTokens: 10, KVHitRate: rate}
	}
	for _, c := range []struct {
		name       string
		compat     rules.Compat
		throughput bool
		predicted  bool
	}{
		{"load only", rules.Dynamo12, false, false},
		{"both, 1.2", rules.Dynamo12, true, true},
		{"both, 1.3", rules.Dynamo13, true, false},
	} {
		config := testSLA()
		config.EnableThroughputScaling, config.LoadPredictor = c.throughput, "kalman"
		core := newTestCore(t, config, c.compat, poolSetup{kind: aggregatedPool, limits: testLimits, gpus: 1})
		for _, rate := range []float64{0.25, 0.5} {
			core.tick(&tickInput{load: true, throughput: c.throughput, traffic: window(rate), pools: []poolInput{{ready: ids(1)}}})
		}
		if c.predicted == (core.hitRate == 0.5) || core.hitRate <= 0.25 || core.hitRate >= 1 {
			t.Errorf("%s: hit rate %v after 0.25 and 0.5; predicted: %v", c.name, core.hitRate, c.predicted)
		}
	}
}
