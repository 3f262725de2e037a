package simcore

import (
	"errors"
	"math"
	"slices"

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

func (c *cluster) kept() int { return c.router.Waiting() + len(c.held) }

func (c *cluster) seatOf(request int32) int {
	return c.seat(0, &c.env.Requests[request])
}

// seat is the seat in its pool of the worker that a request went to, or -1 if it went to none.
func (c *crew) seat(pool int, r *engine.Request) int {
	if r.RoutedMs == engine.Never {
		return -1
	}
	return int(c.seats[c.places[pool][r.Worker]])
}

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
	withdrawn := takeOut(&c.held, request)
	if !withdrawn && c.router.Withdraw(request) {
		c.env.Kept.Add(-1, now)
		withdrawn = true
	}
	if withdrawn {
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

// takeOut takes a request out of some, and reports whether it was among them.
func takeOut(requests *[]int32, request int32) bool {
	at := slices.Index(*requests, request)
	if at >= 0 {
		*requests = slices.Delete(*requests, at, at+1)
	}
	return at >= 0
}

// stuck returns a request that keeps a worker from starting anything. Without loads under way, only an arrival could help.
func (c *cluster) stuck(now float64) (request int32, found bool) {
	if id, request, found := c.takeFailure(); found {
		c.finish(id, now)
		return request, true
	}
	if len(c.stalled) == 0 || !math.IsInf(min(c.tiers.NextWake(), c.driver.peek()), 1) {
		return 0, false
	}
	return c.stuckAmong(now, func(int32) bool { return true })
}

func (c *cluster) idleFor() error {
	if len(c.held) > 0 {
		return nil // the next tick may bring a worker
	}
	return c.deadEnd(c.now)
}

func (c *cluster) resume() error {
	err := c.startAll(c.now)
	c.scaling.dismiss(c.now, c)
	return err
}

func (c *cluster) latestMs() float64 { return c.now }

// takeFailure returns a request for which a worker could not start. Others may have ended at the worker before it failed, so it
// is to be finished.
func (c *crew) takeFailure() (id, request int32, found bool) {
	for n := len(c.failures); n > 0; n = len(c.failures) {
		f := c.failures[n-1]
		c.failures = c.failures[:n-1]
		var stuck *StuckError
		if errors.As(f.err, &stuck) {
			return f.id, int32(stuck.Request), true
		}
	}
	return 0, 0, false
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
			if w == nil || c.order[id] != int64(pool)<<32|int64(worker) {
				continue // it is gone, or was given up before it was ready
			}
			o, former := w.Occupancy(c.due.has(id)), c.former[pool][c.seats[id]]
			passes, _ := w.Passes()
			into = append(into, OnlineWorker{
				Pool: pool, Worker: worker, Seat: int(c.seats[id]), Running: o.Running, Waiting: o.Waiting,
				HeldBlocks: o.HeldBlocks, CachedBlocks: o.CachedBlocks, TotalBlocks: o.TotalBlocks,
				Preemptions: former.preemptions + w.Preemptions(), Passes: former.passes + passes,
			})
		}
	}
	return into
}
