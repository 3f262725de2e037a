package engine

import "github.com/servegrid/servegrid/simcore/exact"

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

// LimitedTimes says how long each limit kept workers from admitting a request, in ms. Nothing counts for [NoLimit], and no
// time for two limits.
type LimitedTimes [limitCount]exact.Sum

// Add adds the times of other workers.
func (t *LimitedTimes) Add(others *LimitedTimes) {
	for i := range others {
		t[i].AddSum(&others[i], 1)
	}
}

// Backlog counts what waits for workers in one place, and adds up the time in which anything does.
type Backlog struct {
	waiting int
	sinceMs float64
	past    exact.Sum // until sinceMs
	changes int       // how often it began or ceased to hold anything
}

// Add notes that so many requests more wait from now on, or fewer if it is negative. A nil backlog counts nothing.
func (b *Backlog) Add(requests int, now float64) {
	if b == nil || requests == 0 {
		return
	}
	had := b.waiting > 0
	b.waiting += requests
	if has := b.waiting > 0; has != had {
		if had {
			b.past.AddTime(b.sinceMs, now)
		}
		b.sinceMs = now
		b.changes++
	}
}

// backlogView is what a worker knows of a backlog.
type backlogView struct {
	of      *Backlog
	changes int
	past    exact.Sum // the time in which anything waited, until it looked last
}

// look adds the time since it looked last in which anything waited to a sum, or to none if that is nil.
func (v *backlogView) look(since, now float64, sum *exact.Sum) {
	b := v.of
	if b.changes == v.changes {
		if b.waiting > 0 {
			v.past.AddTime(since, now)
			if sum != nil {
				sum.AddTime(since, now)
			}
		}
		return
	}
	before := v.past
	v.past = b.past
	if b.waiting > 0 {
		v.past.AddTime(b.sinceMs, now)
	}
	if v.changes = b.changes; sum != nil {
		sum.AddSum(&v.past, 1)
		sum.AddSum(&before, -1)
	}
}

// constraint adds up what limits a worker. A limit is found when a pass is formed and holds until the next one is. Times are
// added exactly, so that sums do not depend on how many passes are simulated at once.
type constraint struct {
	kept    backlogView // in the router
	limit   Limit
	full    bool // what was begun last has as many requests as a batch may have
	watches bool // there is something to add up besides a limit: the router keeps requests, or prompts are on their way
	// What was begun last lasts from begunMs to endMs, and all is added up to sinceMs.
	begunMs, endMs, sinceMs float64
	arriving                int // prompts whose KV blocks are on their way from prefill workers
	times                   LimitedTimes
}

// begin notes what limits the pass, or the passes, from now to end. full says that they have as many requests as a batch may
// have.
func (c *constraint) begin(l Limit, full bool, now, end float64) {
	if c.limit != NoLimit || c.watches {
		c.addUp(now)
	}
	c.limit, c.full, c.begunMs, c.sinceMs, c.endMs = l, full, now, now, end
}

// finish notes that what was begun has ended.
func (c *constraint) finish(end float64) {
	if c.watches {
		c.addUp(end)
	}
	c.endMs = end
}

// addUp adds up the time until now.
func (c *constraint) addUp(now float64) {
	idle := c.sinceMs >= c.endMs
	if c.kept.of != nil {
		var sum *exact.Sum
		if c.limit == NoLimit && !idle {
			sum = &c.times[LimitRouter]
		}
		c.kept.look(c.sinceMs, now, sum)
	}
	switch {
	case c.limit != NoLimit:
		c.times[c.limit].AddTime(c.sinceMs, now)
	case idle && c.arriving > 0:
		c.times[LimitTransfer].AddTime(c.sinceMs, now)
	}
	c.sinceMs = now
}

// waits notes that a request begins to wait at the given time. If that was during what was begun last, and that is full, it
// waits for a place; it may be told when that has ended.
func (c *constraint) waits(at float64) {
	if c.limit != NoLimit || !c.full || at >= c.endMs {
		return
	}
	c.addUp(max(at, c.sinceMs))
	c.limit = LimitBatchSlots
}

// arrive notes that so many prompts more are on their way from prefill workers.
func (c *constraint) arrive(prompts int, now float64) {
	c.addUp(now)
	c.arriving += prompts
	c.watches = true
}

// total is what limited the worker until what it began last ends.
func (c *constraint) total() *LimitedTimes {
	if c.limit != NoLimit && c.sinceMs < c.endMs {
		c.addUp(c.endMs)
	}
	return &c.times
}

// restart makes another worker of this one, which goes on counting.
func (c *constraint) restart(kept *Backlog) {
	*c = constraint{kept: backlogView{of: kept}, watches: kept != nil, times: *c.total()}
}
