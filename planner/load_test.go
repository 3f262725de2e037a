package planner

import (
	"slices"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

func TestLoadScalingOfAggregatedWorkers(t *testing.T) {
	idle := [3]int64{}
	for _, c := range []struct {
		name   string
		loads  [][3]int64 // of the workers that had a pass, see [workers]
		ready  int        // when other than these
		change func(*Config)
		setup  func(*core)
		target int // -1: nothing is decided
		reason string
	}{
		{"TTFT that is just kept", [][3]int64{{1024, 0, 0}}, 0, nil, nil, -1, reasonNoChange},
		{"TTFT missed", [][3]int64{{1025, 0, 0}}, 0, nil, nil, 2, reasonUp},
		{"ITL that is just kept", [][3]int64{{0, 60000, 5536}}, 0, nil, nil, -1, reasonNoChange},
		{"ITL missed", [][3]int64{{0, 60000, 5537}}, 0, nil, nil, 2, reasonUp},
		{"both missed", [][3]int64{{2000, 70000, 0}, {2000, 70000, 0}}, 0, nil, nil, 3, reasonUp},
		{"TTFT missed by all, ITL kept by a wide margin", [][3]int64{{2000, 0, 0}, {1500, 0, 0}}, 0, nil, nil, 3, reasonUp},
		{"TTFT missed by one", [][3]int64{{2000, 0, 0}, idle}, 0, nil, nil, -1, reasonRefused},
		{"ITL missed by one", [][3]int64{{0, 70000, 0}, idle}, 0, nil, nil, -1, reasonRefused},
		{"each missed by another worker", [][3]int64{{2000, 0, 0}, {0, 70000, 0}}, 0, nil, nil, -1, reasonRefused},
		{"one idle worker", [][3]int64{idle}, 0, nil, nil, -1, reasonNoChange},
		{"two idle workers", [][3]int64{idle, idle}, 0, nil, nil, 1, reasonDown},
		// Of the time to first token, what the queue adds must fit into a share of what the prompt alone leaves: 600 tokens
		// add 73.2 ms, and 80 % of (125 - 32.2) are 74.2.
		{"queue of one worker less fits", [][3]int64{{300, 16384, 0}, {300, 0, 16384}}, 0, nil, shortPrompts, 1, reasonDown},
		{"queue of one worker less is too long", [][3]int64{{308, 16384, 0}, idle}, 0, nil, shortPrompts, -1, reasonRefused},
		{"preempted requests slow prompts when consolidated", [][3]int64{{300, 10000, 7384}, idle}, 0, nil, shortPrompts, -1, reasonRefused},
		{"queue that just does not fit", [][3]int64{{512, 0, 0}, {512, 0, 0}}, 0,
			func(c *Config) { c.LoadScalingDownSensitivity = 100 }, nil, -1, reasonRefused},
		{"nothing fits into a share of 0", [][3]int64{idle, idle}, 0,
			func(c *Config) { c.LoadScalingDownSensitivity = 0 }, nil, -1, reasonRefused},
		{"whole tokens of queue", [][3]int64{{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}, 0, // 1.5 tokens take 0.18 ms, one 0.12
			func(c *Config) { c.LoadScalingDownSensitivity, c.TTFTMs = 100, 0.15 }, nil, 2, reasonDown},
		// Of the ITL, the tokens of one worker less must fit into a share: 80 % of 62.5 ms are 52,428.8 tokens.
		{"decoding of one worker less fits", [][3]int64{{0, 26214, 0}, {0, 0, 26214}}, 0,
			func(c *Config) { c.TTFTMs = 1000 }, nil, 1, reasonDown},
		{"decoding of one worker less is too slow", [][3]int64{{0, 26215, 0}, idle}, 0,
			func(c *Config) { c.TTFTMs = 1000 }, nil, -1, reasonRefused},
		{"queued prompts decode later", [][3]int64{{215, 26000, 0}, idle}, 0,
			func(c *Config) { c.TTFTMs = 1000 }, nil, -1, reasonRefused},
		{"ITL that would just be kept", [][3]int64{{0, 32768, 0}, idle}, 0,
			func(c *Config) { c.TTFTMs, c.LoadScalingDownSensitivity = 1000, 100 }, nil, -1, reasonRefused},
		{"KV cache of one worker less is full", [][3]int64{{1, 497, 2}, idle}, 0, nil,
			func(c *core) { c.pools[0].limits.kvTokens = 1000 }, -1, reasonRefused},
		{"KV cache of one worker less has room", [][3]int64{{1, 496, 2}, idle}, 0, nil,
			func(c *core) { c.pools[0].limits.kvTokens = 1000 }, 1, reasonDown},
		{"TTFT unknown, ITL allows less", [][3]int64{idle, idle}, 0, nil,
			func(c *core) { regressionOf(c.pools[0]).limits.batchedTokens = 0 }, 1, reasonDown},
		{"a model that makes no sense", [][3]int64{idle, idle}, 0, nil,
			func(c *core) { regressionOf(c.pools[0]).ready = false }, -1, reasonNoChange},
		{"min_endpoint", [][3]int64{idle, idle}, 0, func(c *Config) { c.MinEndpoint = 2 }, nil, -1, reasonNoChange},
		{"min_endpoint above what there is", [][3]int64{idle}, 0, func(c *Config) { c.MinEndpoint = 3 }, nil, 3, reasonUp},
		{"min_endpoint above, nothing known of a worker", [][3]int64{idle}, 2,
			func(c *Config) { c.MinEndpoint = 3 }, nil, -1, reasonMismatch},
		{"budget takes an addition back", [][3]int64{{2000, 0, 0}}, 0, func(c *Config) { c.MaxGPUBudget = 1 }, nil, -1, reasonNoChange},
		{"budget that is exceeded", [][3]int64{{2000, 0, 0}, {2000, 0, 0}, {2000, 0, 0}}, 0,
			func(c *Config) { c.MaxGPUBudget = 2 }, nil, 2, reasonDown},
		{"budget that must be spent", [][3]int64{idle, idle, idle}, 0,
			func(c *Config) { c.MinGPUBudget, c.MaxGPUBudget = 3, -1 }, nil, -1, reasonNoChange},
		{"budget that must be spent lifts above", [][3]int64{idle, idle, idle}, 0,
			func(c *Config) { c.MinGPUBudget, c.MaxGPUBudget = 4, 4 }, nil, 4, reasonUp},
		{"traffic asks for more", [][3]int64{idle, idle}, 0, throughputToo, func(c *core) { c.pools[0].bound = 5 }, 5, reasonUp},
		{"traffic keeps a worker", [][3]int64{idle, idle}, 0, throughputToo, func(c *core) { c.pools[0].bound = 2 }, -1, reasonCapped},
		{"traffic asks for less than that", [][3]int64{idle, idle, idle}, 0, throughputToo,
			func(c *core) { c.pools[0].bound = 1 }, 2, reasonDown},
		{"a refusal is not capped", [][3]int64{{2000, 0, 0}, idle}, 0, throughputToo,
			func(c *core) { c.pools[0].bound = 2 }, -1, reasonRefused},
		{"switched off", [][3]int64{{2000, 0, 0}}, 0, func(c *Config) { c.EnableLoadScaling = false }, nil, -1, reasonDisabled},
		{"no passes", nil, 2, nil, nil, -1, reasonNoPasses},
		{"no passes while a worker starts", nil, 2, nil, func(c *core) { c.pools[0].target = 3 }, -1, reasonNoPasses},
		{"a worker starts, another has had no pass", [][3]int64{{2000, 0, 0}}, 2, nil,
			func(c *core) { c.pools[0].target = 3 }, -1, reasonInProgress},
		{"a worker without a pass", [][3]int64{{2000, 0, 0}}, 2, nil, nil, -1, reasonMismatch},
		{"a worker without a pass, too few observations", [][3]int64{{2000, 0, 0}}, 2, nil,
			func(c *core) { regressionOf(c.pools[0]).kept.count = 4 }, -1, reasonMismatch},
		{"too few observations", [][3]int64{{2000, 0, 0}}, 0, nil,
			func(c *core) { regressionOf(c.pools[0]).kept.count = 4 }, -1, reasonInsufficientData},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := testSLA()
			if c.change != nil {
				c.change(&config)
			}
			core := newTestCore(t, config, rules.Dynamo12, poolSetup{kind: aggregatedPool, limits: testLimits, gpus: 1, workers: 2})
			if c.setup != nil {
				c.setup(core)
			}
			tick, _ := core.tick(&tickInput{load: true, pools: []poolInput{
				{ready: ids(max(c.ready, len(c.loads))), passes: workers(c.loads...)},
			}})
			if tick.Pools[0].Target != c.target || tick.LoadReason != c.reason || tick.Pools[0].LoadReason != c.reason {
				t.Errorf("target %d because of %q (%q), want %d because of %q", tick.Pools[0].Target, tick.LoadReason,
					tick.Pools[0].LoadReason, c.target, c.reason)
			}
		})
	}
}

// shortPrompts are of 8 tokens: 1 ms.
func shortPrompts(c *core) { regressionOf(c.pools[0]).promptTokens = always(8) }

func throughputToo(c *Config) { c.EnableThroughputScaling = true }

func TestCombineOfBothLatencies(t *testing.T) {
	up, down, nothing := verdict{wanted: 4}, verdict{wanted: 2}, undecided(reasonNoChange)
	stay, veto := verdict{wanted: 3}, verdict{wanted: -1, vetoed: true}
	for _, c := range []struct {
		name      string
		ttft, itl verdict
		want      int
		vetoed    bool
	}{
		{"both up", up, up, 4, false},
		{"TTFT up", up, down, 4, false},
		{"ITL up", down, up, 4, false},
		{"ITL up against a veto", veto, up, 4, true},
		{"both down", down, down, 2, false},
		{"only ITL down, TTFT unknown", nothing, down, 2, false},
		{"only ITL down, TTFT vetoes", veto, down, 3, true},
		{"only ITL down, TTFT to stay", stay, down, 3, false},
		{"only TTFT down, ITL unknown", down, nothing, 3, false},
		{"only TTFT down, ITL vetoes", down, veto, 3, true},
		{"neither", nothing, nothing, 3, false},
		{"not as far down", verdict{wanted: 1}, down, 2, false},
	} {
		p := &pool{ready: 3}
		if got := p.combine(c.ttft, c.itl); got.wanted != c.want || got.vetoed != c.vetoed {
			t.Errorf("%s: %d (veto %v), want %d (%v)", c.name, got.wanted, got.vetoed, c.want, c.vetoed)
		}
	}
}

func TestLoadScalingOfDisaggregatedPools(t *testing.T) {
	idle := [3]int64{}
	two := [][3]int64{idle, idle}
	for _, c := range []struct {
		name            string
		prefill, decode [][3]int64
		change          func(*Config)
		setup           func(*core)
		compat          rules.Compat
		targets         [2]int // both -1: nothing is decided
		reason          string
		reasons         [2]string
	}{
		{"prefill missed, decode stays", [][3]int64{{1025, 0, 0}}, [][3]int64{idle}, nil, nil, rules.Dynamo12,
			[2]int{2, 1}, reasonUp, [2]string{reasonUp, reasonNoChange}},
		{"prefill that is just kept", [][3]int64{{1024, 0, 0}}, [][3]int64{idle}, nil, nil, rules.Dynamo12,
			[2]int{-1, -1}, reasonNoChange, [2]string{reasonNoChange, reasonNoChange}},
		{"both down", two, two, nil, nil, rules.Dynamo12, [2]int{1, 1}, reasonDown, [2]string{reasonDown, reasonDown}},
		// 80 % of 125 ms are 819.2 tokens of queue, …
		{"prefill queue fits", [][3]int64{{409, 0, 0}, idle}, [][3]int64{idle}, nil, nil, rules.Dynamo12,
			[2]int{1, 1}, reasonDown, [2]string{reasonDown, reasonNoChange}},
		{"prefill queue too long", [][3]int64{{410, 0, 0}, idle}, [][3]int64{idle}, nil, nil, rules.Dynamo12,
			[2]int{-1, -1}, reasonRefused, [2]string{reasonRefused, reasonNoChange}},
		{"a lower share", [][3]int64{{205, 0, 0}, idle}, [][3]int64{idle},
			func(c *Config) { c.LoadScalingDownSensitivity = 40 }, nil, rules.Dynamo12,
			[2]int{-1, -1}, reasonRefused, [2]string{reasonRefused, reasonNoChange}},
		{"what a prefill worker decodes does not count", [][3]int64{{409, 60000, 60000}, idle}, [][3]int64{idle}, nil, nil, rules.Dynamo12,
			[2]int{1, 1}, reasonDown, [2]string{reasonDown, reasonNoChange}},
		// … and 80 % of 62.5 ms are 52,300.8 tokens that decode with the 0.12 ms of a request; queued prompts of decode
		// workers do not count.
		{"decoding fits", [][3]int64{idle}, [][3]int64{{9999, 20000, 6150}, idle}, nil, nil, rules.Dynamo12,
			[2]int{1, 1}, reasonDown, [2]string{reasonNoChange, reasonDown}},
		{"decoding too slow", [][3]int64{idle}, [][3]int64{{0, 20000, 6151}, idle}, nil, nil, rules.Dynamo12,
			[2]int{-1, -1}, reasonRefused, [2]string{reasonNoChange, reasonRefused}},
		{"KV cache full", [][3]int64{idle}, [][3]int64{{0, 250, 250}, idle}, nil,
			func(c *core) { c.pools[1].limits.kvTokens = 1000 }, rules.Dynamo12,
			[2]int{-1, -1}, reasonRefused, [2]string{reasonNoChange, reasonRefused}},
		{"up before down", [][3]int64{{1025, 0, 0}}, two, nil, nil, rules.Dynamo12,
			[2]int{2, 1}, reasonUp, [2]string{reasonUp, reasonDown}},
		{"capped before down", two, two, throughputToo, func(c *core) { c.pools[1].bound = 2 }, rules.Dynamo12,
			[2]int{1, 2}, reasonCapped, [2]string{reasonDown, reasonCapped}},
		{"down before refused", two, [][3]int64{{0, 26215, 0}, idle}, nil, nil, rules.Dynamo12,
			[2]int{1, 2}, reasonDown, [2]string{reasonDown, reasonRefused}},
		{"capped before refused", two, [][3]int64{{0, 26215, 0}, idle}, throughputToo,
			func(c *core) { c.pools[0].bound = 2 }, rules.Dynamo12,
			[2]int{-1, -1}, reasonCapped, [2]string{reasonCapped, reasonRefused}},
		{"one pool has had no pass", nil, [][3]int64{{0, 70000, 0}}, nil,
			nil, rules.Dynamo12, [2]int{1, 2}, reasonUp, [2]string{reasonNoChange, reasonUp}},
		{"neither has had one", nil, nil, nil, nil, rules.Dynamo12,
			[2]int{-1, -1}, reasonNoPasses, [2]string{reasonNoPasses, reasonNoPasses}},
		{"one pool misses a worker", [][3]int64{{2000, 0, 0}}, [][3]int64{{0, 70000, 0}}, nil,
			func(c *core) { c.pools[1].seen = workers(idle, idle) }, rules.Dynamo12, [2]int{2, 2}, reasonUp, [2]string{reasonUp, reasonUp}},
		// What starts holds no decision up in 1.2, and the target of the other pool takes its starts back (T7).
		{"prefill starts, 1.2", [][3]int64{{1025, 0, 0}}, two, nil, func(c *core) { c.pools[1].target = 4 }, rules.Dynamo12,
			[2]int{2, 1}, reasonUp, [2]string{reasonUp, reasonDown}},
		{"prefill starts, 1.3", [][3]int64{{1025, 0, 0}}, two, nil, func(c *core) { c.pools[1].target = 4 }, rules.Dynamo13,
			[2]int{-1, -1}, reasonInProgress, [2]string{reasonInProgress, reasonInProgress}},
		{"budget takes back in proportion", [][3]int64{{1025, 0, 0}}, [][3]int64{idle},
			func(c *Config) { c.MaxGPUBudget = 2 }, nil, rules.Dynamo12,
			[2]int{-1, -1}, reasonNoChange, [2]string{reasonNoChange, reasonNoChange}},
		{"budget for less than a pair", [][3]int64{{1025, 0, 0}}, [][3]int64{idle},
			func(c *Config) { c.MaxGPUBudget = 1 }, nil, rules.Dynamo12,
			[2]int{0, 0}, reasonDown, [2]string{reasonDown, reasonDown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := testSLA()
			if c.change != nil {
				c.change(&config)
			}
			core := newTestCore(t, config, c.compat,
				poolSetup{kind: prefillPool, limits: testLimits, gpus: 1, workers: 1},
				poolSetup{kind: decodePool, limits: testLimits, gpus: 1, workers: 1})
			if c.setup != nil {
				c.setup(core)
			}
			tick, targets := core.tick(&tickInput{load: true, pools: []poolInput{
				{ready: ids(max(1, len(c.prefill))), passes: workers(c.prefill...)},
				{ready: ids(max(1, len(c.decode))), passes: workers(c.decode...)},
			}})
			got := [2]int{tick.Pools[0].Target, tick.Pools[1].Target}
			reasons := [2]string{tick.Pools[0].LoadReason, tick.Pools[1].LoadReason}
			if got != c.targets || tick.LoadReason != c.reason || reasons != c.reasons {
				t.Errorf("targets %v because of %q %q, want %v because of %q %q", got, tick.LoadReason, reasons, c.targets, c.reason, c.reasons)
			}
			if (targets != nil) != (c.targets != [2]int{-1, -1}) || targets != nil && !slices.Equal(targets, c.targets[:]) {
				t.Errorf("asked for %v, want %v", targets, c.targets)
			}
		})
	}
}
