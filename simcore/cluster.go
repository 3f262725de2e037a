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
	// looksAtCaches says that the router knows what workers have of a prompt.
	looksAtCaches bool

	now  float64 // when the latest event was
	step int
	open int     // requests that have arrived and not ended
	held []int32 // those that wait because no worker takes requests
}

func (s *simulation) runCluster() error {
	c, err := s.newCluster(s.newDriver(), s.sessionOfRequests())
	if err != nil {
		return err
	}
	if err := c.advance(math.Inf(1)); err != nil {
		return err
	}
	s.countWorkers(&c.crew)
	c.recycle()
	s.collect(&s.env)
	return nil
}

// newCluster returns idle workers whose requests a driver releases, which are of the given sessions.
func (s *simulation) newCluster(d driver, sessions []int32) (*cluster, error) {
	n := s.cfg.Deployment.Workers
	s.env.Requests = make([]engine.Request, s.workload.Requests())
	for i := range s.env.Requests {
		s.env.Requests[i] = s.newRequest(int32(i), &s.cfg.Engine)
	}
	c := &cluster{
		simulation:    s,
		driver:        s.afterOverhead(d),
		sessions:      sessions,
		startedMs:     math.Inf(-1),
		loneLoop:      s.rules.SingleWorkerLoop && n == 1 && s.scaling == nil && s.online == nil,
		looksAtCaches: s.cfg.Router.UsesIndex(),
	}
	var err error
	if c.router, err = s.newRouter(&s.env, n, router.Aggregated, sessions); err != nil {
		return nil, err
	}
	for i := range int32(n) {
		c.addWorker(router.Member{Worker: i, Seat: i, Tier: i})
	}
	return c, nil
}

// addWorker adds a worker that is ready.
func (c *cluster) addWorker(m router.Member) {
	c.crew.add(c.newWorker(&c.env, 0, m, c.online), 0, m)
}

// hire, retire and dismiss let workers come and go. See [staff].
func (c *cluster) hire(_ int, m router.Member, now float64) {
	if c.env.Index != nil {
		c.env.Index.Grow(int(m.Seat) + 1)
	}
	c.addWorker(m)
	c.dispatch(c.router.Join(now, m), now)
}

func (c *cluster) retire(_ int, worker int32) { c.router.Leave(worker) }

func (c *cluster) hasWork(_ int, worker int32) bool { return c.occupied(c.places[0][worker]) }

func (c *cluster) dismiss(_ int, m router.Member) {
	c.remove(c.places[0][m.Worker])
	if c.env.Index != nil {
		c.env.Index.Clear(int(m.Seat))
	}
}

// nextMs is when something happens next, but for what an autoscaler does.
func (c *cluster) nextMs() float64 {
	if c.loneLoop {
		return c.loneNext()
	}
	return min(c.due.soonest(), c.driver.peek(), c.tiers.NextWake(), c.scaling.nextStart(), c.online.nextCancel())
}

// advance moves the clock from event to event, up to the given time and including it; infinity is until nothing happens any
// more. At one time, passes end first, then requests arrive, then passes start; that repeats until nothing more happens at that
// time.
func (c *cluster) advance(until float64) error {
	for ; ; c.step++ {
		if c.step%checkEvery == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		if c.watch.due(c.step) {
			if err := c.watch.look(c.env.Requests, c.now); err != nil {
				return err
			}
		}
		next := c.nextMs()
		if c.scaling != nil {
			if c.done() && !c.online.goesOnAfter(until) {
				return nil
			}
			if at := c.scaling.nextMs; at < min(next, c.stop) && at <= until {
				if c.online != nil && math.IsInf(next, 1) && c.idleFor() != nil {
					return nil // which comes before the tick
				}
				if err := c.tick(next, until); err != nil {
					return err
				}
				continue
			}
		}
		switch {
		case next > until || math.IsInf(next, 1) && c.online != nil:
			return nil
		case math.IsInf(next, 1) && len(c.held) > 0:
			return c.scaling.noWorker(c.waiting(), c.now)
		case math.IsInf(next, 1):
			return c.deadEnd(c.now) // some worker has work as long as requests wait in the router
		case next >= c.stop:
			return c.atStop(next)
		}
		if err := c.happen(next); err != nil {
			return err
		}
	}
}

// happen does what happens at a time.
func (c *cluster) happen(now float64) error {
	c.now = now
	c.endMs = max(c.endMs, now)
	c.finishDue(now)
	c.scaling.start(now, c)
	if err := c.routeHeld(now); err != nil {
		return err
	}
	c.wake(c.tiers.TakeLoaded(now), now)
	c.online.cancelDue(now)
	if err := c.release(now); err != nil {
		return err
	}
	c.finishDue(now) // runs that arrivals have cut right here
	if err := c.startAll(now); err != nil {
		return err
	}
	c.scaling.dismiss(now, c)
	return nil
}

// atStop ends the simulation at its time cap, after which something would happen.
func (c *cluster) atStop(next float64) error {
	if c.loneLoop && !c.driver.closed() {
		// In open loop the reference's lone worker looks at the cap only between passes, after releasing what arrived.
		if c.due.len() > 0 {
			next = c.due.soonest()
		}
		c.finishDue(next)
		if err := c.release(next); err != nil {
			return err
		}
	}
	// Passes that started before the cap count whole; what follows from them would arrive after it.
	c.endMs = max(c.endMs, c.endAll())
	return nil
}

// done reports whether all requests have come and ended, and no pass is under way.
func (c *cluster) done() bool {
	return c.open == 0 && c.due.len() == 0 && math.IsInf(c.driver.peek(), 1)
}

// tick lets the autoscaler decide, after the last event and before the next one, which is at a time. until is how far time
// goes for now.
func (c *cluster) tick(next, until float64) error {
	if math.IsInf(next, 1) && len(c.held) == 0 {
		if err := c.deadEnd(c.now); err != nil {
			return err
		}
	}
	now := c.scaling.tick(c.scaling.nextMs, c.now, c)
	c.now = now
	c.startedMs = now // passes that begin then have begun
	if err := c.scaling.goesOn(!math.IsInf(next, 1) || c.online.goesOnAfter(until), c.waiting, now); err != nil {
		return err
	}
	if err := c.routeHeld(now); err != nil {
		return err
	}
	if err := c.startAll(now); err != nil {
		return err
	}
	c.scaling.dismiss(now, c)
	return nil
}

// waiting returns the number of a request that has not ended, for explanations.
func (c *cluster) waiting() int32 {
	if len(c.held) > 0 {
		return c.env.Requests[c.held[0]].Number
	}
	for i := range c.env.Requests {
		if r := &c.env.Requests[i]; r.State != engine.Pending && r.State != engine.Completed && r.State != engine.Rejected {
			return r.Number
		}
	}
	return 0
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
	signals := c.workers[id].Finish()
	c.online.tokens(now, c.workers[id], c.env.Requests)
	for _, signal := range signals {
		if signal.First && !signal.Ended { // one token is the end, which the router hears of once
			c.dispatch(c.router.PrefillDone(now, signal.Request), now)
		}
		if signal.Ended {
			c.requests[id]--
			c.scaling.completed(now, &c.env.Requests[signal.Request])
			c.ended(signal.Request, now)
		}
	}
}

// ended tells the router and the driver that a request has ended which a worker had.
func (c *cluster) ended(request int32, now float64) {
	c.open--
	kept := c.router.Ended(now, request)
	c.driver.ended(request, c.sessions[request], now)
	c.dispatch(kept, now)
}

// dispatch hands requests that waited in the router to their workers.
func (c *cluster) dispatch(kept []router.Dispatch, now float64) {
	c.env.Kept.Add(-len(kept), now)
	for _, d := range kept {
		c.submit(d.Request, d.Worker, now, now)
	}
}

// release routes all requests that are ready.
func (c *cluster) release(now float64) error {
	for c.driver.peek() <= now {
		request, ready := c.driver.pop()
		if c.loneLoop && c.driver.closed() {
			ready = now - c.overheadMs
		}
		r := &c.env.Requests[request]
		r.ArrivalMs, r.State = ready, engine.Waiting
		c.arrived++
		c.open++
		c.scaling.arrived(now, r)
		if c.online.refuses(r) {
			c.reject(request, now)
		} else if c.scaling.none(0) {
			c.held = append(c.held, request)
		} else if err := c.route(request, ready+c.overheadMs, now); err != nil {
			return err
		}
	}
	return nil
}

// route hands a request to a worker, unless the router keeps it.
func (c *cluster) route(request int32, routed, now float64) error {
	worker, err := c.router.Arrive(now, request)
	switch {
	case err != nil && c.online != nil:
		c.reject(request, now)
		return nil
	case err != nil:
		return err
	case worker == router.Queued:
		c.env.Kept.Add(1, now)
		return nil
	}
	c.submit(request, worker, routed, now)
	return nil
}

// routeHeld hands on the requests that came when there was no worker to take them, once there is one.
func (c *cluster) routeHeld(now float64) error {
	if len(c.held) == 0 || c.scaling.none(0) {
		return nil
	}
	for _, request := range c.held {
		if err := c.route(request, now, now); err != nil {
			return err
		}
	}
	c.held = c.held[:0]
	return nil
}

// submit hands a request to a worker, whose run ends early if the request can join.
func (c *cluster) submit(request, worker int32, routed, now float64) {
	joins := now
	if c.startedMs == now { // a pass of no time led to this, and the passes from now on have started
		joins = math.Nextafter(now, math.Inf(1))
	}
	id := c.places[0][worker]
	if !c.due.has(id) {
		c.touch(id)
	} else if end := c.workers[id].Interrupt(joins); end < c.due.end[id] {
		c.due.set(id, end)
	}
	r := &c.env.Requests[request]
	r.RoutedMs, r.RouteOverlap = routed, c.router.Overlap(request)
	if c.looksAtCaches {
		c.scaling.routed(now, r.RouteOverlap, r.Input, c.env.Config.BlockSize)
	}
	c.requests[id]++
	c.workers[id].Submit(request)
}

// startAll lets idle workers with requests begin.
func (c *cluster) startAll(now float64) error {
	c.startedMs = now
	stop := c.stop
	if c.loneLoop && c.driver.closed() {
		stop = min(stop, c.driver.peek()) // the arrival is seen at the end of a pass, whatever its fate
	}
	for again := true; again; again = c.online.dropStuck(now) {
		if err := c.start(now, func(int32) float64 { return stop }); err != nil {
			return err
		}
	}
	return nil
}
