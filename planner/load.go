package planner

import "math"

// The reasons of load scaling, in the words of planner specification §9.6.
const (
	reasonDisabled         = "disabled"
	reasonNoPasses         = "no_fpm_data"
	reasonInProgress       = "scaling_in_progress"
	reasonMismatch         = "worker_count_mismatch"
	reasonInsufficientData = "insufficient_data"
	reasonUp               = "scale_up"
	reasonDown             = "scale_down"
	reasonNoChange         = "no_change"
	reasonCapped           = "scale_down_capped_by_throughput"
	reasonRefused          = "scale_down_refused_consolidation"
)

// LoadReasons lists the reasons of load scaling that [Tick.LoadReason] may give.
func LoadReasons() []string {
	return []string{
		reasonDisabled, reasonNoPasses, reasonInProgress, reasonMismatch, reasonInsufficientData, reasonNoChange, reasonUp, reasonDown, reasonCapped, reasonRefused,
	}
}

// verdict is what the load of a pool's workers says.
type verdict struct {
	// wanted is a number of workers, -1 if it says nothing; then reason tells why.
	wanted int
	reason string
	// vetoed tells that one worker less would be too few.
	vetoed bool
}

func undecided(reason string) verdict { return verdict{wanted: -1, reason: reason} }

// scaleByLoad adds or removes a worker by what the engines have to do.
func (c *core) scaleByLoad(t *Tick) proposal {
	if !c.loadScaling() {
		c.explain(t, reasonDisabled)
		return nil
	}
	if reason := c.blocked(); reason != "" {
		c.explain(t, reason)
		return nil
	}
	if c.aggregated() {
		return c.scaleAggregated(t)
	}
	return c.scalePools(t)
}

// explain gives one reason for all pools.
func (c *core) explain(t *Tick, reason string) {
	t.LoadReason = reason
	for i := range t.Pools {
		t.Pools[i].LoadReason = reason
	}
}

// blocked tells why nothing can be decided; empty if it can.
func (c *core) blocked() string {
	heard := false
	for _, p := range c.pools {
		heard = heard || len(p.seen) > 0
	}
	if !heard {
		return reasonNoPasses
	}
	for _, p := range c.pools {
		if p.scaling(c.rules) && (c.aggregated() || !c.rules.StartsIgnored) {
			return reasonInProgress
		}
	}
	for _, p := range c.pools {
		if len(p.seen) > 0 && len(p.seen) != p.ready {
			return reasonMismatch
		}
	}
	if p := c.pools[0]; c.aggregated() && p.model != nil && !p.model.sufficient() {
		return reasonInsufficientData
	}
	return ""
}

// scaleAggregated decides for workers that do everything: one of both latencies suffices to add a worker, both must allow
// to remove one.
func (c *core) scaleAggregated(t *Tick) proposal {
	p, tick := c.pools[0], &t.Pools[0]
	var v verdict
	if p.model == nil {
		v = c.byThresholds(p)
	} else {
		v = p.combine(c.byTTFT(p, tick), c.byITL(p, tick))
	}
	if v.wanted < 0 {
		t.LoadReason, tick.LoadReason = v.reason, v.reason
		return nil
	}
	wanted := max(v.wanted, c.config.MinEndpoint)
	if c.throughputScaling() {
		wanted = max(wanted, p.bound)
	}
	final := c.withinBudget(proposal{wanted})[0]
	tick.LoadReason = c.reason(p, v, final)
	t.LoadReason = tick.LoadReason
	if final == p.ready && p.model != nil {
		return nil
	}
	return proposal{final}
}

// combine puts what both latencies say together; a veto against removing a worker counts as a wish to stay.
func (p *pool) combine(ttft, itl verdict) verdict {
	vetoed := ttft.vetoed || itl.vetoed
	for _, v := range []*verdict{&ttft, &itl} {
		if v.wanted < 0 && v.vetoed {
			v.wanted = p.ready
		}
	}
	stay := verdict{wanted: p.ready, vetoed: vetoed}
	switch {
	case ttft.wanted > p.ready:
		stay.wanted = ttft.wanted
	case itl.wanted > p.ready:
		stay.wanted = itl.wanted
	case itl.wanted < 0 || itl.wanted >= p.ready:
	case ttft.wanted < 0:
		stay.wanted = itl.wanted
	case ttft.wanted < p.ready:
		stay.wanted = max(ttft.wanted, itl.wanted)
	}
	return stay
}

// scalePools decides for a disaggregated deployment, pool by pool.
func (c *core) scalePools(t *Tick) proposal {
	verdicts := make([]verdict, len(c.pools))
	wanted := make(proposal, len(c.pools))
	for i, p := range c.pools {
		verdicts[i] = c.judge(p, &t.Pools[i])
		if verdicts[i].wanted < 0 {
			verdicts[i].wanted = p.ready
		}
		wanted[i] = max(verdicts[i].wanted, c.config.MinEndpoint)
		if c.throughputScaling() {
			wanted[i] = max(wanted[i], p.bound)
		}
	}
	wanted = c.withinBudget(wanted)
	unchanged := true
	for i, p := range c.pools {
		t.Pools[i].LoadReason = c.reason(p, verdicts[i], wanted[i])
		unchanged = unchanged && wanted[i] == p.ready
	}
	t.LoadReason = foremost(t.Pools, reasonUp, reasonCapped, reasonDown, reasonRefused, reasonNoChange)
	if !unchanged {
		return wanted
	}
	for i := range verdicts {
		if r := verdicts[i].reason; r != "" && r != reasonNoChange {
			t.Pools[i].LoadReason = r
		}
	}
	t.LoadReason = foremost(t.Pools, reasonCapped, reasonRefused, t.Pools[0].LoadReason)
	if t.LoadReason == reasonNoChange {
		t.LoadReason = t.Pools[1].LoadReason
	}
	return nil
}

// judge asks the load of one pool of a disaggregated deployment.
func (c *core) judge(p *pool, t *PoolTick) verdict {
	switch {
	case len(p.seen) == 0:
		return undecided("")
	case p.model == nil:
		return c.byThresholds(p)
	case p.kind == prefillPool:
		return c.byTTFT(p, t)
	}
	return c.byITL(p, t)
}

// foremost returns the first of some reasons that a pool has.
func foremost(pools []PoolTick, order ...string) string {
	for _, reason := range order {
		for i := range pools {
			if pools[i].LoadReason == reason {
				return reason
			}
		}
	}
	return pools[0].LoadReason
}

// reason explains a final number of workers. It says nothing of what the load alone would have had, but where the traffic
// keeps a worker that it would have removed.
func (c *core) reason(p *pool, v verdict, final int) string {
	switch {
	case final > p.ready:
		return reasonUp
	case final < p.ready:
		return reasonDown
	case v.wanted < p.ready && c.throughputScaling() && p.bound >= p.ready:
		return reasonCapped
	case v.vetoed:
		return reasonRefused
	}
	return reasonNoChange
}

// byTTFT judges by how long an average prompt would take now, and with the prompts of a worker less.
func (c *core) byTTFT(p *pool, t *PoolTick) verdict {
	if p.ready == 0 || !p.model.sufficient() {
		return undecided(reasonInsufficientData)
	}
	sla, share := c.config.TTFTMs, float64(c.config.LoadScalingDownSensitivity)/100
	query := ttftQuery{queue: 1, hitRate: c.hitRate}
	if !c.rules.ChunksForPrompts {
		query.promptTokens = c.promptTokens
	}
	estimate := func(w *pass) (float64, bool) { return p.model.ttftMs(w, query) }
	safe := func(w *pass) (safe, veto bool) {
		fewer := query
		if p.kind == aggregatedPool {
			fewer.consolidated = p.consolidation()
		}
		fewer.queue = 0
		own, ok := p.model.ttftMs(w, fewer)
		fewer.queue = p.consolidation()
		after, known := p.model.ttftMs(w, fewer)
		room := (sla - own) * share
		if !ok || room > 0 && !known {
			return false, false
		}
		safe = room > 0 && after-own < room
		return safe, !safe
	}
	return c.judgeWorkers(p, sla, &t.EstimatedTTFTMs, estimate, safe)
}

// byITL judges by how long a pass would take with an average request more, now and with the requests of a worker less.
func (c *core) byITL(p *pool, t *PoolTick) verdict {
	if p.ready == 0 || !p.model.sufficient() {
		return undecided(reasonInsufficientData)
	}
	sla, share := c.config.ITLMs, float64(c.config.LoadScalingDownSensitivity)/100
	query := itlQuery{acceptLength: c.acceptLength}
	estimate := func(w *pass) (float64, bool) { return p.model.itlMs(w, query) }
	safe := func(w *pass) (safe, veto bool) {
		tokens := w.decodeTokens + w.queuedDecodeTokens
		if p.kind == aggregatedPool {
			tokens += w.queuedPrefillTokens
		}
		if p.limits.kvTokens > 0 && int64(float64(tokens)*p.consolidation()) >= p.limits.kvTokens {
			return false, true
		}
		fewer := query
		fewer.consolidated = p.consolidation()
		after, ok := p.model.itlMs(w, fewer)
		return ok && after < sla*share, ok && after >= sla*share
	}
	return c.judgeWorkers(p, sla, &t.EstimatedITLMs, estimate, safe)
}

// consolidation is how much more each worker has to do with one less.
func (p *pool) consolidation() float64 { return float64(p.ready) / float64(p.ready-1) }

// judgeWorkers wants a worker more when all miss the SLA, and one less when that is safe for all. It leaves the greatest
// estimate in worst.
func (c *core) judgeWorkers(p *pool, sla float64, worst *float64, estimate func(*pass) (float64, bool),
	safe func(*pass) (safe, veto bool)) verdict {
	all := true
	for i := range p.seen {
		ms, ok := estimate(&p.seen[i])
		if !ok {
			continue
		}
		if math.IsNaN(*worst) || ms > *worst {
			*worst = ms
		}
		all = all && ms > sla
	}
	if math.IsNaN(*worst) {
		return undecided(reasonInsufficientData)
	}
	if all {
		return verdict{wanted: p.ready + 1}
	}
	if p.ready < 2 {
		return undecided(reasonNoChange)
	}
	for i := range p.seen {
		if fine, veto := safe(&p.seen[i]); veto {
			return verdict{wanted: -1, reason: reasonRefused, vetoed: true}
		} else if !fine {
			return undecided(reasonNoChange)
		}
	}
	return verdict{wanted: max(p.ready-1, c.config.MinEndpoint)}
}
