package planner

import "math"

// The reasons of throughput scaling besides [reasonDisabled].
const (
	reasonScale           = "scale"
	reasonBound           = "set_lower_bound"
	reasonNoTraffic       = "no_traffic_data"
	reasonPredictFailed   = "predict_failed"
	reasonModelNotReady   = "model_not_ready"
	reasonPartnerNotReady = "partner_not_ready"
)

// ThroughputReasons lists the reasons of throughput scaling that [Tick.ThroughputReason] may give.
func ThroughputReasons() []string {
	return []string{reasonDisabled, reasonNoTraffic, reasonPredictFailed, reasonModelNotReady, reasonPartnerNotReady, reasonBound, reasonScale}
}

// scaleByThroughput sizes the pools for the predicted load: as a bound for load scaling, or, without that, as a decision.
func (c *core) scaleByThroughput(traffic *Load, t *Tick) proposal {
	if traffic == nil {
		t.ThroughputReason = reasonNoTraffic
		return nil
	}
	c.observe(traffic)
	predicted := c.predict(traffic)
	t.Predicted = predicted
	if math.IsNaN(predicted.Requests + predicted.InputTokens + predicted.OutputTokens) {
		t.ThroughputReason = reasonPredictFailed
		return nil
	}
	c.hitRate = predicted.KVHitRate
	needed, ready := make(proposal, len(c.pools)), true
	for i := range c.pools {
		needed[i] = c.needed(i, predicted, &t.Pools[i])
		ready = ready && needed[i] > 0
	}
	return c.conclude(needed, ready, t)
}

// observe lets the predictors learn from a window.
func (c *core) observe(w *Load) {
	input, output := w.InputTokens, w.OutputTokens
	if !c.rules.IdleHasNoShape {
		if w.Requests > 0 {
			c.lastInput = input
		}
		// Those that arrived in the window need not have ended in it.
		if w.Requests > 0 && (output > 0 || c.rules.CompletionsForDemand) {
			c.lastOutput = output
		}
		input, output = c.lastInput, c.lastOutput
	}
	c.requests.Add(w.Requests)
	c.inputTokens.Add(input)
	c.outputTokens.Add(output)
	if c.rules.PredictedHitRate {
		c.hitRates.Add(w.KVHitRate)
	}
}

// predict says what the next window will be like.
func (c *core) predict(w *Load) Load {
	p := Load{
		DurationSeconds: w.DurationSeconds,
		Requests:        c.requests.Forecast(), InputTokens: c.inputTokens.Forecast(), OutputTokens: c.outputTokens.Forecast(),
		TTFTMs: math.NaN(), ITLMs: math.NaN(), KVHitRate: c.hitRate,
	}
	switch {
	case c.rules.PredictedHitRate:
		p.KVHitRate = c.hitRates.Forecast()
	case !math.IsNaN(w.KVHitRate):
		p.KVHitRate = w.KVHitRate
	}
	return p
}

// needed is the number of workers of a pool that serve a load; 0 when that is unknown.
func (c *core) needed(i int, load Load, t *PoolTick) int {
	p := c.pools[i]
	rate, ok := p.model.capacity(capacityQuery{
		inputTokens: load.InputTokens, outputTokens: load.OutputTokens, ttftMs: c.config.TTFTMs, itlMs: c.config.ITLMs,
		hitRate: load.KVHitRate, acceptLength: c.acceptLength,
	})
	if !ok || rate.requestsPerSecond <= 0 {
		return 0
	}
	t.RequestsPerSecond = rate.requestsPerSecond
	n := max(math.Ceil(load.Requests/load.DurationSeconds/rate.requestsPerSecond), float64(c.config.MinEndpoint), 1)
	if c.rules.PrefillFloor && p.kind == prefillPool && rate.ttftMs > c.config.TTFTMs {
		n = max(n, math.Ceil(rate.ttftMs/c.config.TTFTMs))
	}
	return int(min(n, math.MaxInt32))
}

// conclude makes a bound or a decision of what is needed, unless that is unknown of one pool.
func (c *core) conclude(needed proposal, ready bool, t *Tick) proposal {
	reason := reasonScale
	if c.loadScaling() {
		reason = reasonBound
	}
	if !ready {
		reason = reasonModelNotReady
	}
	t.ThroughputReason = reason
	for i, p := range c.pools {
		t.Pools[i].ThroughputReason = reason
		if !ready && needed[i] > 0 {
			t.Pools[i].ThroughputReason = reasonPartnerNotReady
		}
		if reason == reasonBound {
			p.bound = needed[i]
		}
	}
	if reason != reasonScale {
		return nil
	}
	return c.withinBudget(needed)
}
