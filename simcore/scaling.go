package simcore

import (
	"fmt"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/router"
)

// scaling lets the workers of a deployment come and go as an [Autoscaler] says (planner specification §12). Without one it
// is nil, and nothing ever changes.
type scaling struct {
	scaler   Autoscaler
	passes   PassObserver    // nil when the autoscaler does not hear of passes
	requests RequestObserver // nil when it does not hear of requests
	events   func(ScalingEvent)
	// log collects passes; nil when nobody wants to know.
	log        *engine.PassLog
	keepsClock bool // see [rules.Set].TicksKeepClock
	tiers      *tiers.Hierarchy

	pools  []workforce
	states []PoolState
	asked  []starting // workers that start, and some that did
	starts timeHeap   // those that do, by when they are ready, then in order

	peakGPUs int64   // the most that the workers of all pools occupied at a time
	nextMs   float64 // when the next tick is due
	idle     int     // ticks since anything else was left to happen
	stood    int     // ticks in a row that did not come later than the one before
}

// starting is a worker that is not ready at once.
type starting struct{ pool, worker int32 }

// workforce is the workers of a pool. They are ready in the order of their ids.
type workforce struct {
	ready, starting, draining []int32 // ids
	made                      int32   // ids given so far
	gpus                      int64   // of a worker
	startupMs                 float64
	members                   []router.Member // of the ready and draining workers, by seat
	taken                     []bool          // seats that have a worker
	vacant                    int             // seats that have none
	tiered                    bool            // there are memory tiers below the workers' GPUs

	sinceMs                                  float64 // when the sums below were brought up to date
	readyMs, startingMs, drainingMs          float64 // worker time
	added, removed, cancelled, least, peaked int64   // workers; the least and the most that were ready
}

// staff is the side of a runtime that makes workers come and go.
type staff interface {
	// hire adds a worker that is ready, retire lets one take no more requests, dismiss takes away one that has none.
	hire(pool int, m router.Member, now float64)
	retire(pool int, worker int32)
	dismiss(pool int, m router.Member)
	// hasWork reports whether a worker has requests, or does anything.
	hasWork(pool int, worker int32) bool
}

func (s *simulation) newScaling() *scaling {
	if s.opt.Autoscaler == nil {
		return nil
	}
	c := &scaling{scaler: s.opt.Autoscaler, events: s.opt.ScalingEvents, keepsClock: s.rules.TicksKeepClock}
	c.passes, _ = c.scaler.(PassObserver)
	c.requests, _ = c.scaler.(RequestObserver)
	if c.passes != nil || c.keepsClock {
		c.log = engine.NewPassLog(!s.rules.PassesToldAtStart)
	}
	for _, p := range s.cfg.Stages() {
		w := workforce{startupMs: p.Engine.StartupTime * 1000, gpus: int64(p.GPUsPerWorker())}
		for range p.Workers {
			w.ready = append(w.ready, w.made)
			w.sit(w.made)
			w.made++
		}
		w.least, w.peaked = int64(p.Workers), int64(p.Workers)
		c.pools = append(c.pools, w)
	}
	c.countGPUs()
	c.states = make([]PoolState, len(c.pools))
	c.nextMs = c.scaler.NextTickMs()
	return c
}

// useTiers lets the pools use memory tiers below the GPUs, which so many workers have at the start: those of the first pool,
// then those of the second.
func (c *scaling) useTiers(h *tiers.Hierarchy, workers int) {
	c.tiers = h
	at := int32(0)
	for i := range c.pools {
		w := &c.pools[i]
		w.tiered = int(at) < workers
		for seat := range w.members {
			w.members[seat].Tier = at
			at++
		}
	}
}

// sit gives a worker the first free seat.
func (w *workforce) sit(worker int32) router.Member {
	seat := len(w.taken)
	if w.vacant > 0 {
		seat = slices.Index(w.taken, false)
		w.vacant--
	} else {
		w.taken, w.members = append(w.taken, false), append(w.members, router.Member{})
	}
	w.taken[seat] = true
	w.members[seat] = router.Member{Worker: worker, Seat: int32(seat), Tier: int32(seat)}
	return w.members[seat]
}

// memberOf returns the seat of a worker that is ready or drains.
func (w *workforce) memberOf(worker int32) router.Member {
	return w.members[slices.IndexFunc(w.members, func(m router.Member) bool { return m.Worker == worker && w.taken[m.Seat] })]
}

// account adds up worker time until now.
func (w *workforce) account(now float64) {
	ms := now - w.sinceMs
	if ms <= 0 {
		return
	}
	w.readyMs += ms * float64(len(w.ready))
	w.startingMs += ms * float64(len(w.starting))
	w.drainingMs += ms * float64(len(w.draining))
	w.sinceMs = now
}

// nextStart returns when the next worker is ready, or infinity.
func (c *scaling) nextStart() float64 {
	if c == nil {
		return math.Inf(1)
	}
	for len(c.starts) > 0 {
		s := c.asked[c.starts[0].id]
		if slices.Contains(c.pools[s.pool].starting, s.worker) {
			break
		}
		c.starts.pop() // it was given up
	}
	return c.starts.soonest()
}

// start makes the workers ready that are due by now.
func (c *scaling) start(now float64, s staff) {
	for c.nextStart() <= now {
		due := c.asked[c.starts.pop().id]
		w := &c.pools[due.pool]
		w.account(now)
		w.starting = slices.DeleteFunc(w.starting, func(id int32) bool { return id == due.worker })
		c.ready(int(due.pool), due.worker, now, s)
	}
}

func (c *scaling) ready(pool int, worker int32, now float64, s staff) {
	w := &c.pools[pool]
	w.ready = append(w.ready, worker)
	w.peaked = max(w.peaked, int64(len(w.ready)))
	c.tell(now, pool, worker, WorkerReady)
	m := w.sit(worker)
	if m.Tier = -1; w.tiered {
		m.Tier = int32(c.tiers.Join(now))
	}
	w.members[m.Seat] = m
	s.hire(pool, m, now)
}

func (c *scaling) tell(now float64, pool int, worker int32, kind ScalingKind) {
	if c.events != nil {
		c.events(ScalingEvent{AtMs: now, Pool: pool, Worker: worker, Kind: kind})
	}
}

// tick lets the autoscaler decide at a time, when the last event was at another one, and returns when that is by its clock.
func (c *scaling) tick(at, last float64, s staff) (now float64) {
	now = at
	if c.log != nil {
		var tell func(*PassMetrics)
		if c.passes != nil {
			tell = c.passes.Pass
		}
		if latest := c.log.Tell(at, last, tell); c.keepsClock {
			now = latest
		}
	}
	for i := range c.pools {
		w := &c.pools[i]
		c.states[i] = PoolState{Ready: w.ready, Starting: len(w.starting), Draining: len(w.draining)}
	}
	for pool, target := range c.scaler.Tick(now, c.states) {
		if pool < len(c.pools) {
			c.scale(pool, min(target, maxWorkers), now, s)
		}
	}
	c.countGPUs()
	c.nextMs = c.scaler.NextTickMs()
	if c.stood++; c.nextMs > at {
		c.stood = 0
	}
	return now
}

// countGPUs notes how many GPUs the workers occupy, which grows at a tick only.
func (c *scaling) countGPUs() {
	now := int64(0)
	for i := range c.pools {
		w := &c.pools[i]
		now += w.gpus * int64(len(w.ready)+len(w.starting)+len(w.draining))
	}
	c.peakGPUs = max(c.peakGPUs, now)
}

// scale makes a pool have so many workers, those that start included. What is too much goes from the end: workers that start
// first.
func (c *scaling) scale(pool, target int, now float64, s staff) {
	w := &c.pools[pool]
	w.account(now)
	for len(w.ready)+len(w.starting) < target {
		id := w.made
		w.made++
		w.added++
		c.tell(now, pool, id, WorkerRequested)
		if w.startupMs == 0 {
			c.ready(pool, id, now, s)
			continue
		}
		w.starting = append(w.starting, id)
		if len(c.starts) == 0 {
			c.asked = c.asked[:0]
		}
		number := int32(len(c.asked))
		c.asked = append(c.asked, starting{int32(pool), id})
		c.starts.push(timed{now + w.startupMs, int64(number), number})
	}
	for len(w.ready)+len(w.starting) > max(0, target) {
		if n := len(w.starting); n > 0 {
			w.cancelled++
			c.tell(now, pool, w.starting[n-1], WorkerCancelled)
			w.starting = w.starting[:n-1]
			continue
		}
		id := w.ready[len(w.ready)-1]
		w.ready = w.ready[:len(w.ready)-1]
		w.least = min(w.least, int64(len(w.ready)))
		w.draining = append(w.draining, id)
		c.tell(now, pool, id, WorkerDraining)
		s.retire(pool, id)
	}
}

// dismiss takes away the draining workers that have nothing left to do.
func (c *scaling) dismiss(now float64, s staff) {
	if c == nil {
		return
	}
	for pool := range c.pools {
		w := &c.pools[pool]
		w.draining = slices.DeleteFunc(w.draining, func(id int32) bool {
			if s.hasWork(pool, id) {
				return false
			}
			w.account(now)
			m := w.memberOf(id)
			w.taken[m.Seat] = false
			w.vacant++
			w.removed++
			c.tell(now, pool, id, WorkerRemoved)
			s.dismiss(pool, m)
			if w.tiered {
				c.tiers.Leave(int(m.Tier), now)
			}
			return true
		})
	}
}

// none reports whether a pool has no worker that takes requests.
func (c *scaling) none(pool int) bool { return c != nil && len(c.pools[pool].ready) == 0 }

// How many ticks there may be while nothing else is left to happen, and in a row at the same time.
const (
	maxIdleTicks     = 10_000
	maxStandingTicks = 1000
)

// goesOn counts a tick that comes while other events are left to happen, or not, and explains why a simulation of which
// only ticks are left would not end; waiting finds a request that has not ended.
func (c *scaling) goesOn(eventsLeft bool, waiting func() int32, now float64) error {
	c.idle++
	if eventsLeft {
		c.idle = 0
	}
	if c.stood >= maxStandingTicks {
		return &StuckError{Request: int(waiting()), TimeMs: now, Why: fmt.Sprintf("the autoscaler has decided %d times in a row without time going by", c.stood)}
	}
	if c.idle > maxIdleTicks {
		return c.noWorker(waiting(), now)
	}
	return nil
}

// noWorker explains that a request waits although no worker will ever take it.
func (c *scaling) noWorker(request int32, now float64) error {
	return &StuckError{Request: int(request), TimeMs: now, Why: "no worker takes requests, and the autoscaler asks for none"}
}

// arrived, completed and routed tell the autoscaler of requests.
func (c *scaling) arrived(now float64, r *engine.Request) {
	if c != nil && c.requests != nil {
		c.requests.Arrived(now, r)
	}
}

func (c *scaling) completed(now float64, r *engine.Request) {
	if c != nil && c.requests != nil && r.State == engine.Completed {
		c.requests.Completed(now, r)
	}
}

func (c *scaling) routed(now float64, overlapTokens, inputTokens int32, blockSize int) {
	if c != nil && c.requests != nil {
		c.requests.Routed(now, int(overlapTokens)/blockSize, (int(inputTokens)+blockSize-1)/blockSize)
	}
}

// latestMs is when a worker came or went last, which may be after all that the workload led to by the time cap.
func (c *scaling) latestMs() float64 {
	latest := 0.0
	for i := range c.pools {
		latest = max(latest, c.pools[i].sinceMs)
	}
	return latest
}

// changed reports whether workers ever came or went.
func (c *scaling) changed() bool {
	return slices.ContainsFunc(c.pools, func(w workforce) bool { return w.added+w.removed > 0 || len(w.draining) > 0 })
}

// end brings worker time up to date and sums up what became of the workers.
func (c *scaling) end(endMs float64) *metrics.Scaling {
	out := &metrics.Scaling{}
	for i := range c.pools {
		w := &c.pools[i]
		w.account(endMs)
		p := metrics.PoolScaling{
			WorkersAdded: w.added, WorkersRemoved: w.removed, WorkersCancelled: w.cancelled,
			PeakReady: w.peaked, LeastReady: w.least,
			ReadySeconds: w.readyMs / 1000, StartingSeconds: w.startingMs / 1000, DrainingSeconds: w.drainingMs / 1000,
		}
		if endMs > 0 {
			p.MeanReady = w.readyMs / endMs
		}
		if out.Decode = p; len(c.pools) == 2 && i == 0 {
			out.Prefill = p
		}
	}
	return out
}
