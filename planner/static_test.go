package planner

import (
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// TestThresholds checks the targets that look at queues and KV caches: of engines with a cache of 1,000 tokens.
func TestThresholds(t *testing.T) {
	idle := [3]int64{}
	for _, c := range []struct {
		target string
		kind   poolKind
		loads  [][3]int64
		wanted int // -1: as it is
	}{
		// One worker above suffices to add one; all must be below to remove one.
		{"throughput", prefillPool, [][3]int64{{999, 0, 0}}, -1},
		{"throughput", prefillPool, [][3]int64{{1000, 0, 0}}, 2},
		{"throughput", prefillPool, [][3]int64{idle, {1000, 0, 0}}, 3},
		{"throughput", prefillPool, [][3]int64{{99, 0, 0}, {99, 0, 0}}, 1},
		{"throughput", prefillPool, [][3]int64{{99, 0, 0}, {100, 0, 0}}, -1},
		{"throughput", prefillPool, [][3]int64{{0, 5000, 5000}, idle}, 1},
		{"throughput", decodePool, [][3]int64{{0, 600, 400}}, -1},
		{"throughput", decodePool, [][3]int64{{0, 601, 400}}, 2},
		{"throughput", decodePool, [][3]int64{idle, {0, 0, 1001}}, 3},
		{"throughput", decodePool, [][3]int64{{0, 300, 299}, {0, 599, 0}}, 1},
		{"throughput", decodePool, [][3]int64{{0, 300, 300}, idle}, -1},
		{"throughput", decodePool, [][3]int64{{5000, 0, 0}, idle}, 1},
		{"throughput", aggregatedPool, [][3]int64{{400, 300, 300}}, -1},
		{"throughput", aggregatedPool, [][3]int64{{401, 300, 300}}, 2},
		{"throughput", aggregatedPool, [][3]int64{{200, 200, 199}, idle}, 1},
		{"throughput", aggregatedPool, [][3]int64{{200, 200, 200}, idle}, -1},
		{"latency", prefillPool, [][3]int64{{99, 0, 0}}, -1},
		{"latency", prefillPool, [][3]int64{{100, 0, 0}}, 2},
		{"latency", prefillPool, [][3]int64{idle, idle}, 1},
		{"latency", prefillPool, [][3]int64{{1, 0, 0}, idle}, -1},
		{"latency", decodePool, [][3]int64{{0, 400, 0}}, -1},
		{"latency", decodePool, [][3]int64{{0, 400, 1}}, 2},
		{"latency", decodePool, [][3]int64{{0, 99, 0}, idle}, 1},
		{"latency", decodePool, [][3]int64{{0, 100, 0}, idle}, -1},
		{"load", prefillPool, [][3]int64{{1999, 0, 0}}, -1},
		{"load", prefillPool, [][3]int64{{2000, 0, 0}}, 2},
		{"load", prefillPool, [][3]int64{{300, 0, 0}, idle}, 1},
		{"load", prefillPool, [][3]int64{{301, 0, 0}, idle}, -1},
		{"load", decodePool, [][3]int64{{0, 749, 0}}, -1},
		{"load", decodePool, [][3]int64{{0, 750, 0}}, 2},
		{"load", decodePool, [][3]int64{{0, 200, 50}, idle}, 1},
		{"load", decodePool, [][3]int64{{0, 200, 51}, idle}, -1},
		{"load", aggregatedPool, [][3]int64{{700, 25, 25}}, 2},
		{"throughput", decodePool, [][3]int64{idle}, -1}, // the last one stays
	} {
		config := testSLA()
		config.OptimizationTarget = c.target
		config.PrefillScaleUpQueueTokens, config.PrefillScaleDownQueueTokens = 2000, 300
		config.DecodeScaleUpKVRate, config.DecodeScaleDownKVRate = 75, 25
		p := poolSetup{kind: c.kind, limits: limits{batchedTokens: 8192, sequences: 256, kvTokens: 1000}, gpus: 1}
		core := newTestCore(t, config, rules.Dynamo13, p)
		core.pools[0].ready, core.pools[0].seen = len(c.loads), workers(c.loads...)
		if got := core.byThresholds(core.pools[0]); got.wanted != c.wanted || got.wanted < 0 && got.reason != reasonNoChange {
			t.Errorf("%s, kind %d, %v: %d (%s), want %d", c.target, c.kind, c.loads, got.wanted, got.reason, c.wanted)
		}
	}
}

// TestThresholdsOfUnknownCapacity decides nothing where there is nothing to compare with.
func TestThresholdsOfUnknownCapacity(t *testing.T) {
	config := testSLA()
	config.OptimizationTarget = "throughput"
	core := newTestCore(t, config, rules.Dynamo12, poolSetup{kind: decodePool})
	p := core.pools[0]
	p.ready, p.seen = 1, workers([3]int64{0, 5000, 0})
	if got := core.byThresholds(p); got.wanted >= 0 || got.reason != reasonInsufficientData {
		t.Errorf("without a capacity: %+v", got)
	}
	p.limits.kvTokens, p.ready = 1000, 0
	if got := core.byThresholds(p); got.wanted >= 0 || got.reason != reasonInsufficientData {
		t.Errorf("without a worker: %+v", got)
	}
}

// TestThresholdsKeepFloorsAndBudget checks what else holds for these targets: a step back that changes nothing is a
// decision with 1.2 all the same.
func TestThresholdsKeepFloorsAndBudget(t *testing.T) {
	for _, c := range []struct {
		name     string
		load     int64
		ready    int
		least    int
		most     int
		target   int
		reason   string
		sendings bool // whether the simulation is asked for anything
	}{
		{"up", 1001, 1, 1, 8, 2, reasonUp, true},
		{"up against the budget", 1001, 2, 1, 2, 2, reasonNoChange, false},
		{"down", 0, 2, 1, 8, 1, reasonDown, true},
		{"down to min_endpoint", 0, 2, 2, 8, 2, reasonNoChange, false},
		{"down to below min_endpoint", 0, 2, 3, 8, 3, reasonUp, true},
		{"neither", 700, 2, 1, 8, -1, reasonNoChange, false},
		{"neither, below min_endpoint", 700, 2, 3, 8, -1, reasonNoChange, false},
	} {
		config := testSLA()
		config.OptimizationTarget, config.MinEndpoint, config.MaxGPUBudget = "throughput", c.least, c.most
		core := newTestCore(t, config, rules.Dynamo12,
			poolSetup{kind: aggregatedPool, limits: limits{kvTokens: 1000}, gpus: 1})
		var loads [][3]int64
		for range c.ready {
			loads = append(loads, [3]int64{0, c.load, 0})
		}
		tick, targets := core.tick(&tickInput{load: true, pools: []poolInput{{ready: ids(c.ready), passes: workers(loads...)}}})
		if tick.Pools[0].Target != c.target || tick.LoadReason != c.reason || (targets != nil) != c.sendings {
			t.Errorf("%s: target %d because of %q, asked for %v; want %d because of %q", c.name, tick.Pools[0].Target,
				tick.LoadReason, targets, c.target, c.reason)
		}
	}
}
