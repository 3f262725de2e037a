package simcore

import (
	"errors"
	"math"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
)

// This file is how requests come to workers, and go, one by one. See [Online].

// prepare makes a slot ready for a request that has not arrived.
func (c *cluster) prepare(request int32) {
	c.env.Requests[request] = c.newRequest(request, &c.cfg.Engine)
}

func (c *cluster) life(request int32) *engine.Request { return &c.env.Requests[request] }

func (c *cluster) reused(request int32) int32 {
	r := &c.env.Requests[request]
	return min(r.Reused, r.Input)
}

// recordOf says what became of a request.
func (c *cluster) recordOf(request int32, record *RequestRecord, _ *Handoff) {
	record.Life = c.env.Requests[request]
	record.Parts = c.latencyParts(&record.Life)
}

func (c *cluster) settled(int32) bool { return true }

func (c *cluster) kept() int { return c.router.Waiting() }

func (c *cluster) forgetSession(session int32) { forgetSession(c.router, session) }

// forgetSession makes the number of a session that of another one.
func forgetSession(r router.Router, session int32) {
	if f, ok := r.(router.Forgetter); ok {
		f.Forget(session)
	}
}

// reject ends a request that goes to no worker.
func (c *cluster) reject(request int32, now float64) {
	c.open--
	c.env.Requests[request].State = engine.Rejected
	c.driver.ended(request, c.sessions[request], now)
}

// giveUp gives up a request that the router keeps or that a worker has, once that is idle.
func (c *cluster) giveUp(request int32, state engine.State, now float64) bool {
	r := &c.env.Requests[request]
	if c.router.Withdraw(request) {
		c.env.Kept.Add(-1, now)
		c.open--
		r.State = state
		c.driver.ended(request, c.sessions[request], now)
		return true
	}
	id := c.places[0][r.Worker]
	if c.due.has(id) || !c.workers[id].Abort(request) {
		return false
	}
	r.State = state
	c.requests[id]--
	c.touch(id)
	c.ended(request, now)
	return true
}

// stuck returns a request that keeps a worker from starting anything. Without loads under way, only an arrival could help.
func (c *cluster) stuck(now float64) (request int32, found bool) {
	if request, found = c.takeFailure(); found || len(c.stalled) == 0 || !math.IsInf(min(c.tiers.NextWake(), c.driver.peek()), 1) {
		return request, found
	}
	return c.stuckAmong(now, func(int32) bool { return true })
}

func (c *cluster) idleFor() error { return c.deadEnd(c.now) }

func (c *cluster) resume() error { return c.startAll(c.now) }

func (c *cluster) latestMs() float64 { return c.now }

// takeFailure returns a request for which a worker could not start.
func (c *crew) takeFailure() (request int32, found bool) {
	for n := len(c.failures); n > 0; n = len(c.failures) {
		err := c.failures[n-1].err
		c.failures = c.failures[:n-1]
		var stuck *StuckError
		if errors.As(err, &stuck) {
			return int32(stuck.Request), true
		}
	}
	return 0, false
}

// stuckAmong returns a request that keeps one of the stalled workers of some kind from starting anything.
func (c *crew) stuckAmong(now float64, kind func(id int32) bool) (request int32, found bool) {
	for i, id := range c.stalled {
		if !c.workers[id].HasWork() || !kind(id) {
			continue
		}
		var stuck *StuckError
		if errors.As(c.workers[id].Stuck(now), &stuck) {
			c.stalled = append(c.stalled[:i], c.stalled[i+1:]...)
			return int32(stuck.Request), true
		}
	}
	return 0, false
}

// occupancy says how the workers are.
func (c *crew) occupancy(into []OnlineWorker) []OnlineWorker {
	for pool, places := range c.places {
		for worker, id := range places {
			w := c.workers[id]
			o := w.Occupancy(c.due.has(id))
			passes, _ := w.Passes()
			into = append(into, OnlineWorker{
				Pool: pool, Worker: worker, Running: o.Running, Waiting: o.Waiting,
				HeldBlocks: o.HeldBlocks, CachedBlocks: o.CachedBlocks, TotalBlocks: o.TotalBlocks,
				Preemptions: w.Preemptions(), Passes: passes,
			})
		}
	}
	return into
}
