package simcore

import (
	"math"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
)

// cluster simulates workers that depend on each other: through the driver, when a request comes as others end, and
// through the router, when it looks at what the workers do.
type cluster struct {
	*simulation
	crew
	driver    driver
	router    router.Router
	sessions  []int32 // the session of each request
	startedMs float64 // when passes were last started
	loneLoop  bool
}

func (s *simulation) runCluster() error {
	n := s.cfg.Deployment.Workers
	s.env.Requests = make([]engine.Request, s.workload.Requests())
	for i := range s.env.Requests {
		s.env.Requests[i] = s.newRequest(int32(i), &s.cfg.Engine)
	}
	c := &cluster{
		simulation: s,
		driver:     s.newDriver(),
		sessions:   s.sessionOfRequests(),
		startedMs:  math.Inf(-1),
		loneLoop:   s.rules.SingleWorkerLoop && n == 1,
	}
	var err error
	if c.router, err = s.newRouter(&s.env, n, router.Aggregated); err != nil {
		return err
	}
	workers := make([]engine.Worker, n)
	for i := range workers {
		workers[i] = engine.New(&s.env, i)
	}
	c.crew = newCrew(workers)
	if err := c.loop(); err != nil {
		return err
	}
	s.countWorkers(0, c.workers, c.busyNs)
	s.collect(s.env.Requests)
	return nil
}

// loop moves the clock from event to event. At one time, passes end first, then requests arrive, then passes
// start; that repeats until nothing more happens at that time.
func (c *cluster) loop() error {
	now := 0.0
	for step := 0; ; step++ {
		if step%checkEvery == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		next := min(c.due.soonest(), c.driver.peek(), c.tiers.NextWake())
		if c.loneLoop {
			next = c.loneNext()
		}
		if math.IsInf(next, 1) {
			return c.deadEnd(now) // some worker has work as long as requests wait in the router
		}
		if next >= c.stop {
			if c.loneLoop && !c.driver.closed() {
				// In open loop the reference's lone worker looks at the cap only between passes, after releasing what
				// arrived.
				if c.due.len() > 0 {
					next = c.due.soonest()
				}
				c.finishDue(next)
				if err := c.release(next); err != nil {
					return err
				}
			}
			break
		}
		now = next
		c.endMs = max(c.endMs, now)
		c.finishDue(now)
		c.wake(c.tiers.TakeLoaded(now), now)
		if err := c.release(now); err != nil {
			return err
		}
		c.finishDue(now) // runs that arrivals have cut right here
		if err := c.startAll(now); err != nil {
			return err
		}
	}
	// Passes that started before the cap count whole; what follows from them would arrive after it.
	c.endMs = max(c.endMs, c.endAll())
	return nil
}

// loneNext is the next event of the reference's loop for a lone worker, which in closed loop sees arrivals only
// between passes.
func (c *cluster) loneNext() float64 {
	if c.due.len() > 0 && c.driver.closed() {
		return c.due.soonest()
	}
	return min(c.due.soonest(), c.driver.peek())
}

// finishDue ends what is due by now.
func (c *cluster) finishDue(now float64) {
	for c.due.soonest() <= now {
		c.finish(c.end(), now)
	}
}

// finish ends what a worker did, and tells the router and the driver what became of its requests, one by one: what
// waits in the router may go to any worker.
func (c *cluster) finish(id int32, now float64) {
	for _, signal := range c.workers[id].Finish() {
		if signal.First && !signal.Ended { // one token is the end, which the router hears of once
			c.dispatch(c.router.PrefillDone(now, signal.Request), now)
		}
		if signal.Ended {
			kept := c.router.Ended(now, signal.Request)
			c.driver.ended(signal.Request, c.sessions[signal.Request], now)
			c.dispatch(kept, now)
		}
	}
}

// dispatch hands requests that waited in the router to their workers.
func (c *cluster) dispatch(kept []router.Dispatch, now float64) {
	for _, d := range kept {
		c.env.Requests[d.Request].RoutedMs = now
		c.submit(d.Request, d.Worker, now)
	}
}

// release routes all requests that are ready.
func (c *cluster) release(now float64) error {
	for c.driver.peek() <= now {
		request, ready := c.driver.pop()
		if c.loneLoop && c.driver.closed() {
			ready = now
		}
		r := &c.env.Requests[request]
		r.ArrivalMs, r.State = ready, engine.Waiting
		c.arrived++
		worker, err := c.router.Arrive(now, request)
		if err != nil {
			return err
		}
		if worker != router.Queued {
			r.RoutedMs = ready
			c.submit(request, worker, now)
		}
	}
	return nil
}

// submit hands a request to a worker, whose run ends early if the request can join.
func (c *cluster) submit(request, worker int32, now float64) {
	joins := now
	if c.startedMs == now { // a pass of no time led to this, and the passes from now on have started
		joins = math.Nextafter(now, math.Inf(1))
	}
	if !c.due.has(worker) {
		c.touch(worker)
	} else if end := c.workers[worker].Interrupt(joins); end < c.due.end[worker] {
		c.due.set(worker, end)
	}
	c.env.Requests[request].RouteOverlap = c.router.Overlap(request)
	c.workers[worker].Submit(request)
}

// startAll lets idle workers with requests begin.
func (c *cluster) startAll(now float64) error {
	c.startedMs = now
	stop := c.stop
	if c.loneLoop && c.driver.closed() {
		stop = min(stop, c.driver.peek()) // the arrival is seen at the end of a pass, whatever its fate
	}
	return c.start(now, func(int32) float64 { return stop })
}
