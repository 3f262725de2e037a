package simcore

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
)

// cluster simulates workers that depend on each other: through the driver, when a request comes as others end, and
// through the router, when it looks at what the workers do.
type cluster struct {
	*simulation
	driver    *driver
	router    router.Router
	workers   []engine.Worker
	due       dueHeap // busy workers by the end of what they do
	touched   []int32 // idle workers that may start something at this time
	isTouched []bool
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
		driver:     newDriver(s),
		workers:    make([]engine.Worker, n),
		isTouched:  make([]bool, n),
		sessions:   s.sessionOfRequests(),
		startedMs:  math.Inf(-1),
		loneLoop:   s.rules.SingleWorkerLoop && n == 1,
	}
	var err error
	if c.router, err = s.newRouter(&s.env, n, router.Aggregated); err != nil {
		return err
	}
	for i := range c.workers {
		c.workers[i] = engine.New(&s.env, i)
	}
	c.due.init(c.workers)
	if err := c.loop(); err != nil {
		return err
	}
	for _, w := range c.workers {
		w.Sync()
		s.count(w)
	}
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
		next := min(c.due.soonest(), c.driver.peek())
		if c.loneLoop {
			next = c.loneNext()
		}
		if math.IsInf(next, 1) {
			return c.checkDone(now)
		}
		if next >= c.stop {
			if c.loneLoop && !c.driver.closed {
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
		if err := c.release(now); err != nil {
			return err
		}
		c.finishDue(now) // runs that arrivals have cut right here
		if err := c.start(now); err != nil {
			return err
		}
	}
	// Passes that started before the cap count whole.
	for c.due.len() > 0 {
		end := c.due.soonest()
		id := c.due.pop()
		c.endMs = max(c.endMs, c.workers[id].LastPassStart())
		c.busy[0] += wholeNanoseconds(end)
		c.workers[id].Finish() // what follows from it would arrive after the cap
	}
	return nil
}

// loneNext is the next event of the reference's loop for a lone worker, which in closed loop sees arrivals only
// between passes.
func (c *cluster) loneNext() float64 {
	if c.due.len() > 0 && c.driver.closed {
		return c.due.soonest()
	}
	return min(c.due.soonest(), c.driver.peek())
}

// finishDue ends what is due by now.
func (c *cluster) finishDue(now float64) {
	for c.due.soonest() <= now {
		c.finish(c.due.pop(), now)
	}
}

// finish ends what a worker did, and tells the router and the driver what became of its requests, one by one: what
// waits in the router may go to any worker.
func (c *cluster) finish(id int32, now float64) {
	c.touch(id)
	c.busy[0] += wholeNanoseconds(now)
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

func (c *cluster) touch(id int32) {
	if !c.isTouched[id] {
		c.isTouched[id] = true
		c.touched = append(c.touched, id)
	}
}

// release routes all requests that are ready.
func (c *cluster) release(now float64) error {
	for c.driver.peek() <= now {
		request, ready := c.driver.pop()
		if c.loneLoop && c.driver.closed {
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

// start lets idle workers with requests begin, in the order of their ids.
func (c *cluster) start(now float64) error {
	c.startedMs = now
	slices.Sort(c.touched)
	for _, id := range c.touched {
		c.isTouched[id] = false
		w := c.workers[id]
		if !w.HasWork() {
			continue
		}
		arrival, stop := math.Inf(1), c.stop // who gets the next arrival is not known yet; Interrupt tells
		if c.loneLoop && c.driver.closed {
			stop = min(stop, c.driver.peek()) // the arrival is seen at the end of a pass, whatever its fate
		}
		end, progress, err := w.Start(now, arrival, stop)
		if err != nil {
			return err
		}
		if progress {
			c.due.set(id, end)
			c.busy[0] -= wholeNanoseconds(now)
		}
	}
	c.touched = c.touched[:0]
	return nil
}

// checkDone reports a dead end when requests are left. Some worker has work as long as requests wait in the router.
func (c *cluster) checkDone(now float64) error {
	for _, w := range c.workers {
		if w.HasWork() {
			return w.Stuck(now)
		}
	}
	return nil
}

// dueHeap orders busy workers by the end of what they do. Ends at the same time come in the order in which the
// last passes were started: by their start, then by worker.
type dueHeap struct {
	workers []engine.Worker
	heap    []int32
	place   []int32 // of each worker in heap, or -1
	end     []float64
}

func (h *dueHeap) init(workers []engine.Worker) {
	h.workers = workers
	h.place = make([]int32, len(workers))
	for i := range h.place {
		h.place[i] = -1
	}
	h.end = make([]float64, len(workers))
}

func (h *dueHeap) len() int          { return len(h.heap) }
func (h *dueHeap) has(id int32) bool { return h.place[id] >= 0 }

func (h *dueHeap) soonest() float64 {
	if len(h.heap) == 0 {
		return math.Inf(1)
	}
	return h.end[h.heap[0]]
}

func (h *dueHeap) before(a, b int32) bool {
	if h.end[a] != h.end[b] {
		return h.end[a] < h.end[b]
	}
	if x, y := h.workers[a].LastPassStart(), h.workers[b].LastPassStart(); x != y {
		return x < y
	}
	return a < b
}

// set gives a worker a new end; it may only move an end forward in time when the worker is new to the heap.
func (h *dueHeap) set(id int32, end float64) {
	h.end[id] = end
	if h.place[id] < 0 {
		h.place[id] = int32(len(h.heap))
		h.heap = append(h.heap, id)
	}
	for i := int(h.place[id]); i > 0; {
		parent := (i - 1) / 2
		if !h.before(h.heap[i], h.heap[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *dueHeap) pop() int32 {
	id := h.heap[0]
	last := len(h.heap) - 1
	h.swap(0, last)
	h.heap = h.heap[:last]
	h.place[id] = -1
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return id
		}
		if child+1 < last && h.before(h.heap[child+1], h.heap[child]) {
			child++
		}
		if !h.before(h.heap[child], h.heap[i]) {
			return id
		}
		h.swap(i, child)
		i = child
	}
}

func (h *dueHeap) swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.place[h.heap[i]], h.place[h.heap[j]] = int32(i), int32(j)
}
