package engine

import "math"

// Limit is what keeps a worker from admitting the next request that waits for it.
type Limit int8

// The limits.
const (
	// NoLimit holds while nothing waits but for the pass under way to end.
	NoLimit Limit = iota
	// LimitCompute is the budget of tokens of a pass.
	LimitCompute
	// LimitBatchSlots is the number of requests in a batch.
	LimitBatchSlots
	// LimitKVMemory is the room for KV blocks.
	LimitKVMemory
	// LimitTransfer are KV blocks that are still on their way: from lower memory tiers, or from a prefill worker to a decode
	// worker that has nothing else to do.
	LimitTransfer
	// LimitRouter is a router that keeps requests while the worker has admitted all that it has.
	LimitRouter
	limitCount
)

// LimitedTimes says how long each limit kept workers from admitting a request, in ns. Nothing counts for [NoLimit], and no
// time for two limits.
type LimitedTimes [limitCount]int64

// Add adds the times of other workers.
func (t *LimitedTimes) Add(others LimitedTimes) {
	for i, ns := range others {
		t[i] += ns
	}
}

// Backlog counts what waits for workers in one place, and adds up the time in which anything does.
type Backlog struct {
	waiting          int
	sinceNs, totalNs int64
}

// Add notes that so many requests more wait from now on, or fewer if it is negative. A nil backlog counts nothing.
func (b *Backlog) Add(requests int, now float64) {
	if b == nil || requests == 0 {
		return
	}
	ns := nanoseconds(now)
	b.totalNs, b.sinceNs = b.until(ns), ns
	b.waiting += requests
}

// until is the time until the given one in which anything waited.
func (b *Backlog) until(ns int64) int64 {
	switch {
	case b == nil:
		return 0
	case b.waiting > 0:
		return b.totalNs + max(0, ns-b.sinceNs)
	}
	return b.totalNs
}

// constraint adds up what limits a worker. A limit is found when a pass is formed and holds until the next one is. Times are
// whole nanoseconds, so that sums do not depend on how many passes are simulated at once.
type constraint struct {
	kept  *Backlog // in the router
	limit Limit
	full  bool // what was begun last has as many requests as a batch may have
	// What was begun last lasts from begunNs to endNs, and all is added up to sinceNs. keptNs is for how long the router had kept
	// requests then.
	begunNs, endNs, sinceNs, keptNs int64
	arriving                        int // prompts whose KV blocks are on their way from prefill workers
	times                           LimitedTimes
}

// begin notes what limits the pass, or the passes, from now to end. full says that they have as many requests as a batch may
// have.
func (c *constraint) begin(l Limit, full bool, now, end float64) {
	c.addUp(now)
	c.limit, c.full, c.begunNs, c.endNs = l, full, c.sinceNs, nanoseconds(end)
}

// finish notes that what was begun has ended.
func (c *constraint) finish(end float64) {
	c.addUp(end)
	c.endNs = c.sinceNs
}

// addUp adds up the time until now.
func (c *constraint) addUp(now float64) { c.addUpTo(nanoseconds(now)) }

func (c *constraint) addUpTo(ns int64) {
	kept := c.kept.until(ns)
	switch idle := c.sinceNs >= c.endNs; {
	case c.limit != NoLimit:
		c.times[c.limit] += ns - c.sinceNs
	case !idle:
		c.times[LimitRouter] += kept - c.keptNs
	case c.arriving > 0:
		c.times[LimitTransfer] += ns - c.sinceNs
	}
	c.sinceNs, c.keptNs = ns, kept
}

// waits notes that a request begins to wait at the given time. If that was during what was begun last, and that is full, it
// waits for a place; what was begun may have been finished before that is told.
func (c *constraint) waits(at float64) {
	ns := max(nanoseconds(at), c.begunNs)
	if c.limit != NoLimit || !c.full || ns >= c.endNs {
		return
	}
	if c.sinceNs < c.endNs {
		c.addUpTo(max(ns, c.sinceNs))
	} else {
		c.times[LimitBatchSlots] += c.endNs - ns
	}
	c.limit = LimitBatchSlots
}

// arrive notes that so many prompts more are on their way from prefill workers.
func (c *constraint) arrive(prompts int, now float64) {
	c.addUp(now)
	c.arriving += prompts
}

// restart makes another worker of this one, which goes on counting.
func (c *constraint) restart(kept *Backlog) { *c = constraint{kept: kept, times: c.times} }

// nanoseconds rounds a time in ms.
func nanoseconds(ms float64) int64 { return int64(math.Round(ms * 1e6)) }
