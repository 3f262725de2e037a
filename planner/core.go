package planner

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/planner/forecast"
)

// core decides what the policy dynamo does at a tick. It knows no simulation: it is fed with what was seen since the last
// tick, and answers with what is wanted.
type core struct {
	config Config
	rules  ruleSet
	pools  []*pool
	// requests, inputTokens, outputTokens and hitRates predict the load; nil without throughput scaling.
	requests, inputTokens, outputTokens, hitRates forecast.Predictor
	// lastInput and lastOutput are the mean lengths of the last requests that were seen.
	lastInput, lastOutput float64
	// hitRate is the share of prompt tokens that is reckoned to be cached, acceptLength the number of tokens that a pass
	// gives a request.
	hitRate, acceptLength float64
	// promptTokens is the mean input length of the requests that came last; 0 means unknown.
	promptTokens float64
	// why is the reason of the last decision.
	why string
}

// pool is the workers of one kind.
type pool struct {
	kind   poolKind
	limits limits
	// gpus is the number of GPUs of a worker as budgets count them.
	gpus  int
	model perfModel
	// seen is the last pass of each worker, those that came first seen first.
	seen []pass
	// ready and starting are numbers of workers now; target is what was asked for and is not reached yet, -1 if nothing.
	ready, starting, target int
	// bound is the least number of workers that throughput scaling asks for.
	bound int
}

// poolSetup is what the core must know of a pool beforehand.
type poolSetup struct {
	kind   poolKind
	limits limits
	// gpus is the number of GPUs of a worker, workers the number of workers at the start.
	gpus, workers int
	// known are passes to learn from at the start.
	known []pass
}

// tickInput is what was seen until a tick.
type tickInput struct {
	// atMs is when the tick was due, nowMs what the clock shows.
	atMs, nowMs float64
	// load and throughput tell which looks are due.
	load, throughput bool
	pools            []poolInput
	// traffic is what came since the last look at it; nil means that nobody looked.
	traffic *Load
	// promptTokens is the mean input length of the last requests that arrived; 0 means none.
	promptTokens float64
	// acceptLength is the number of tokens that a pass gives a request, as the traffic shows; 0 means that nobody looked.
	acceptLength float64
}

// poolInput is what was seen of a pool.
type poolInput struct {
	// ready are the ids of the ready workers, starting is the number of those that start.
	ready    []int32
	starting int
	// passes are those since the last tick at which load was looked at.
	passes []pass
}

// newCore makes a planner for pools of an aggregated deployment (one) or of a disaggregated one (prefill, decode).
func newCore(config Config, r ruleSet, setups []poolSetup) (*core, error) {
	c := &core{config: config, rules: r, hitRate: math.NaN(), acceptLength: 1}
	for _, s := range setups {
		p := &pool{kind: s.kind, limits: s.limits, gpus: s.gpus, target: -1, bound: 1}
		if r.OneGPUReplicas {
			p.gpus = 1
		}
		if !r.BoundFromOne && c.throughputScaling() {
			p.bound = s.workers
		}
		if config.OptimizationTarget == "sla" {
			p.model = newPerfModel(s.kind, &config, r, s.limits)
			p.model.observe(s.known)
		}
		c.pools = append(c.pools, p)
	}
	if !c.throughputScaling() {
		return c, nil
	}
	for _, p := range []*forecast.Predictor{&c.requests, &c.inputTokens, &c.outputTokens, &c.hitRates} {
		var err error
		if *p, err = forecast.New(forecast.Config{
			Kind: forecast.Kind(config.LoadPredictor), Log1p: config.LoadPredictorLog1p,
			IntervalSeconds: float64(config.ThroughputAdjustmentIntervalSeconds), ProphetWindow: config.ProphetWindowSize,
			KalmanQLevel: config.KalmanQLevel, KalmanQTrend: config.KalmanQTrend, KalmanR: config.KalmanR,
			Reselect: !r.OrderForEver,
		}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// throughputScaling and loadScaling tell what is in use; targets other than sla look at the engines only.
func (c *core) throughputScaling() bool {
	return c.config.OptimizationTarget == "sla" && c.config.EnableThroughputScaling
}

func (c *core) loadScaling() bool {
	return c.config.OptimizationTarget != "sla" || c.config.EnableLoadScaling
}

// aggregated tells whether one pool does everything.
func (c *core) aggregated() bool { return len(c.pools) == 1 }

// proposal is a number of workers wanted of each pool; nil of none.
type proposal []int

// tick decides. The answer says what is wanted of each pool, the workers that start included; nil leaves them.
func (c *core) tick(in *tickInput) (t Tick, targets []int) {
	t = newTick(in)
	for i, p := range c.pools {
		p.ready, p.starting = len(in.pools[i].ready), in.pools[i].starting
	}
	if in.load {
		for i, p := range c.pools {
			c.see(p, &in.pools[i])
		}
	}
	if in.load && !c.rules.TrafficBeforeNewest {
		c.learnNewest()
	}
	if in.promptTokens > 0 {
		c.promptTokens = in.promptTokens
	}
	if in.acceptLength > 0 {
		c.accept(in.acceptLength)
	}
	var byThroughput, byLoad proposal
	if in.throughput {
		byThroughput = c.scaleByThroughput(in.traffic, &t)
	}
	if in.load {
		if !in.throughput && in.traffic != nil && !c.throughputScaling() && !math.IsNaN(in.traffic.KVHitRate) {
			c.hitRate = in.traffic.KVHitRate
		}
		if c.rules.TrafficBeforeNewest {
			c.learnNewest()
		}
		byLoad = c.scaleByLoad(&t)
	}
	c.why = t.LoadReason
	if byLoad == nil {
		byLoad, c.why = byThroughput, t.ThroughputReason
	}
	targets = c.apply(byLoad, &t)
	t.KVHitRate = c.hitRate
	return t, targets
}

// accept takes the number of tokens that a pass gives a request for as many as there can be.
func (c *core) accept(length float64) {
	c.acceptLength = min(max(length, 1), float64(c.config.SpeculativeNextN+1))
}

// newTick makes a record in which nothing is known yet.
func newTick(in *tickInput) Tick {
	unknown := Load{
		DurationSeconds: math.NaN(), Requests: math.NaN(), InputTokens: math.NaN(), OutputTokens: math.NaN(),
		TTFTMs: math.NaN(), ITLMs: math.NaN(), KVHitRate: math.NaN(),
	}
	t := Tick{
		AtMs: in.atMs, NowMs: in.nowMs, LoadScaling: in.load, ThroughputScaling: in.throughput,
		Observed: unknown, Predicted: unknown,
	}
	if in.traffic != nil {
		t.Observed = *in.traffic
	}
	for _, p := range in.pools {
		t.Pools = append(t.Pools, PoolTick{
			Ready: len(p.ready), Starting: p.starting, Target: -1,
			EstimatedTTFTMs: math.NaN(), EstimatedITLMs: math.NaN(), RequestsPerSecond: math.NaN(),
		})
	}
	return t
}

// apply turns what is wanted into what to ask for, and notes it.
func (c *core) apply(wanted proposal, t *Tick) (targets []int) {
	for i, p := range c.pools {
		if p.target == p.ready {
			p.target = -1
		}
		t.Pools[i].LowerBound = p.bound
		if wanted != nil {
			t.Pools[i].Target = wanted[i]
		}
	}
	if wanted == nil && !c.rules.MinEndpointByLoadOnly {
		wanted, c.why = c.required()
	}
	if wanted == nil {
		return nil
	}
	changed := false
	for i, p := range c.pools {
		if wanted[i] != p.current(c.rules) {
			t.Pools[i].Target, changed = wanted[i], true
			p.target = wanted[i]
		}
	}
	if !changed {
		return nil
	}
	return slices.Clone(wanted)
}

// required is what min_endpoint and the budget ask for whatever else there is, and which of them does; nil if that is there.
func (c *core) required() (wanted proposal, why string) {
	there, least := make(proposal, len(c.pools)), make(proposal, len(c.pools))
	for i, p := range c.pools {
		there[i] = p.ready + p.starting
		least[i] = max(there[i], c.config.MinEndpoint)
	}
	wanted = c.withinBudget(least)
	switch {
	case slices.Equal(wanted, there):
		return nil, ""
	case slices.Equal(wanted, least):
		return wanted, reasonMinEndpoint
	}
	return wanted, reasonBudget
}

// Why workers come or go that no look at load or traffic asked for.
const (
	reasonMinEndpoint = "min_endpoint"
	reasonBudget      = "gpu_budget"
)

// current is the number of workers that a target is compared with.
func (p *pool) current(r ruleSet) int {
	if r.ReadyCounts {
		return p.ready
	}
	return p.ready + p.starting
}

// scaling tells whether what was asked for is not there yet.
func (p *pool) scaling(r ruleSet) bool {
	if r.ReadyCounts {
		return p.target >= 0 && p.target != p.ready
	}
	return p.starting > 0
}
