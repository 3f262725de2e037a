package planner

import "slices"

// thresholds are shares of a capacity, or numbers of tokens, at which a worker is added or removed.
type thresholds struct {
	up, down float64
	// reached adds a worker when the value is up, otherwise when it is above; below removes one when it is less than down,
	// otherwise also when it is down.
	reached, below bool
}

// thresholdsOf returns those of a pool: of queued prompts against the KV cache for prefill workers, of the KV cache in use
// for others (planner specification §10).
func (c *core) thresholdsOf(p *pool) (t thresholds) {
	prefill := p.kind == prefillPool
	switch {
	case c.config.OptimizationTarget == "load" && prefill:
		return thresholds{
			up: float64(c.config.PrefillScaleUpQueueTokens), down: float64(c.config.PrefillScaleDownQueueTokens), reached: true,
		}
	case c.config.OptimizationTarget == "load":
		return thresholds{up: c.config.DecodeScaleUpKVRate / 100, down: c.config.DecodeScaleDownKVRate / 100, reached: true}
	case c.config.OptimizationTarget == "latency" && prefill:
		return thresholds{up: 0.1, down: 0, reached: true}
	case c.config.OptimizationTarget == "latency":
		return thresholds{up: 0.4, down: 0.1, below: true}
	case prefill:
		return thresholds{up: 1, down: 0.1, reached: true, below: true}
	}
	return thresholds{up: 1, down: 0.6, below: true}
}

// byThresholds wants a worker more when one is above its threshold, one less when all are below theirs.
func (c *core) byThresholds(p *pool) verdict {
	capacity := float64(p.limits.kvTokens)
	if c.config.OptimizationTarget == "load" && p.kind == prefillPool {
		capacity = 1
	}
	if p.ready == 0 || capacity <= 0 {
		return undecided(reasonInsufficientData)
	}
	limit := c.thresholdsOf(p)
	value := func(w pass) float64 { return float64(p.occupied(&w)) / capacity }
	if slices.ContainsFunc(p.seen, func(w pass) bool {
		v := value(w)
		return v > limit.up || limit.reached && v == limit.up
	}) {
		return verdict{wanted: p.ready + 1}
	}
	if p.ready > 1 && !slices.ContainsFunc(p.seen, func(w pass) bool {
		v := value(w)
		return v > limit.down || limit.below && v == limit.down
	}) {
		return verdict{wanted: max(p.ready-1, c.config.MinEndpoint)}
	}
	return undecided(reasonNoChange)
}

// occupied returns the tokens that a worker has or will have: queued prompts of prefill workers, what decodes and waits of
// others, with queued prompts if they compute them.
func (p *pool) occupied(w *pass) int64 {
	switch p.kind {
	case prefillPool:
		return w.queuedPrefillTokens
	case decodePool:
		return w.decodeTokens + w.queuedDecodeTokens
	}
	return w.decodeTokens + w.queuedDecodeTokens + w.queuedPrefillTokens
}
