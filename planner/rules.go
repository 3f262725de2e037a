package planner

import "github.com/servegrid/servegrid/simcore/rules"

// ruleSet holds, in one place, every difference between the planners of the releases of Dynamo and ours, which repairs
// their traps (docs/planner.md, planner specification §15 and §16). Every field names what is switched on when it is true;
// the default has none of them.
type ruleSet struct {
	// DriftingTicks lets the next look at engines and at traffic each count from what the clock showed at the last one.
	// Otherwise ticks are multiples of the scale interval, and a look is due when its own interval has passed.
	DriftingTicks bool
	// PassesLostAtTraffic forgets the passes that ended since the last tick when only traffic is looked at. Otherwise the next
	// look at the engines has them.
	PassesLostAtTraffic bool
	// NewestByCount keeps the last pass of as many workers as are ready, those with the lowest ids, so that a new worker
	// can be missing and one that drains be there. Otherwise it keeps those of the ready workers, and one that has had no
	// pass yet counts as idle.
	NewestByCount bool
	// StaleNewest takes the last pass of a worker for what it does now, and learns it again, also when that was before the
	// last look. Otherwise such a worker is idle.
	StaleNewest bool
	// TrafficBeforeNewest decides by traffic before it learns the newest pass of each worker.
	TrafficBeforeNewest bool
	// OneRegression has a single regression for all passes of a pool. Otherwise passes that compute prompts, decode, or do
	// both have one each.
	OneRegression bool
	// NewestPartGivesUp lets, of several equally full parts of the range of loads that was seen, the one that was made last
	// give up a pass. Otherwise the first. In 1.3 a hash map decides, at random; with this all of its recorded runs are met.
	NewestPartGivesUp bool
	// NormalEquations fits them as 1.3 does.
	NormalEquations bool
	// NoNegativeSlopes refuses fits with a negative slope. Otherwise the best fit without one is taken.
	NoNegativeSlopes bool
	// ChunksForPrompts takes the mean number of tokens that passes compute of a prompt for the length of a prompt, and has
	// it not for what is cached. Otherwise the mean input length of the requests that arrived counts.
	ChunksForPrompts bool
	// AcceptanceFromTraffic knows how many tokens speculative decoding gives once the traffic was looked at. Otherwise from the
	// start.
	AcceptanceFromTraffic bool
	// PredictedHitRate predicts the share of prompt tokens that are cached. Otherwise it is as last seen.
	PredictedHitRate bool
	// HitsOfRouterOnly knows that share from a router that looks at the caches only, 0 without. Otherwise from what the
	// engines found cached.
	HitsOfRouterOnly bool
	// IdleHasNoShape takes the lengths of requests for 0 when there were none. Otherwise they stay as last seen.
	IdleHasNoShape bool
	// CompletionsForDemand counts the requests that completed as the load. Otherwise those that arrived.
	CompletionsForDemand bool
	// PrefillFloor multiplies the prefill workers until their share of the time to first token would be within the SLA.
	PrefillFloor bool
	// StartsIgnored decides about the pools of a disaggregated deployment while workers start.
	StartsIgnored bool
	// ReadyCounts compares what is wanted with the ready workers: what was asked for already is asked for again, and a change
	// of one pool takes the starting workers of the other back. Otherwise workers that start count.
	ReadyCounts bool
	// BoundFromOne lets load scaling remove workers before the traffic was looked at first. Otherwise the workers at the
	// start are the least until then.
	BoundFromOne bool
	// MinEndpointByLoadOnly keeps min_endpoint only when something else is decided. Otherwise it holds from the first
	// tick on.
	MinEndpointByLoadOnly bool
	// OneGPUReplicas counts one GPU a worker in budgets. Otherwise as many as it has.
	OneGPUReplicas bool
	// RelaxedFloor lets the least budget be missed by a worker when there is a greatest one as well.
	RelaxedFloor bool
	// BudgetCanEmpty lets budgets remove the last worker.
	BudgetCanEmpty bool
	// KnowsTablesOnly asks the timing model how long passes take only when that is a table, and not for passes that compute
	// prompts and decode.
	KnowsTablesOnly bool
	// PolynomialEngines lets engines that have a timing table take as long as the default model says; the planner knows the
	// table only.
	PolynomialEngines bool
	// OrderForEver lets the predictor arima keep the order that it selected first. Otherwise it selects anew as values come.
	OrderForEver bool
	// WarmupIgnored has no use for the warm-up trace.
	WarmupIgnored bool
	// UncheckedSettings takes settings out of their range, and GPUs of a worker that its engine does not have. Otherwise
	// they are refused.
	UncheckedSettings bool
}

// rulesFor returns the rules of a compat name.
func rulesFor(c rules.Compat) ruleSet {
	switch c {
	case rules.Dynamo12:
		r := dynamoRules()
		r.DriftingTicks = true
		r.PassesLostAtTraffic = true
		r.TrafficBeforeNewest = true
		r.OneRegression = true
		r.NormalEquations = false
		r.NewestPartGivesUp = false
		r.PredictedHitRate = true
		r.IdleHasNoShape = true
		r.PrefillFloor = true
		r.PolynomialEngines = true
		r.StartsIgnored = true
		return r
	case rules.Dynamo13:
		return dynamoRules()
	}
	return ruleSet{}
}

// dynamoRules is what the planners of 1.2 and 1.3 have in common, with what 1.3 does otherwise.
func dynamoRules() ruleSet {
	return ruleSet{
		NewestByCount:         true,
		StaleNewest:           true,
		NewestPartGivesUp:     true,
		NormalEquations:       true,
		NoNegativeSlopes:      true,
		ChunksForPrompts:      true,
		AcceptanceFromTraffic: true,
		HitsOfRouterOnly:      true,
		CompletionsForDemand:  true,
		ReadyCounts:           true,
		BoundFromOne:          true,
		MinEndpointByLoadOnly: true,
		OneGPUReplicas:        true,
		RelaxedFloor:          true,
		BudgetCanEmpty:        true,
		KnowsTablesOnly:       true,
		OrderForEver:          true,
		WarmupIgnored:         true,
		UncheckedSettings:     true,
	}
}
