package simcore

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
)

// cluster simulates workers that depend on each other through the driver: which request comes next, and when, is
// known only as others end.
type cluster struct {
	*simulation
	driver    *driver
	router    *router.RoundRobin
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
		s.env.Requests[i] = s.newRequest(int32(i))
	}
	c := &cluster{
		simulation: s,
		driver:     newDriver(s),
		router:     router.NewRoundRobin(n),
		workers:    make([]engine.Worker, n),
		isTouched:  make([]bool, n),
		sessions:   make([]int32, s.workload.Requests()),
		startedMs:  math.Inf(-1),
		loneLoop:   s.rules.SingleWorkerLoop && n == 1,
	}
	for i := range c.workers {
		c.workers[i] = engine.New(&s.env, i)
	}
	c.due.init(c.workers)
	for session := range s.workload.Sessions() {
		for r := s.workload.SessionStart[session]; r < s.workload.SessionStart[session+1]; r++ {
			c.sessions[r] = int32(session)
		}
	}
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
				c.release(next)
			}
			break
		}
		now = next
		c.endMs = max(c.endMs, now)
		c.finishDue(now)
		c.release(now)
		if err := c.start(now); err != nil {
			return err
		}
	}
	// Passes that started before the cap count whole.
	for c.due.len() > 0 {
		id := c.due.pop()
		c.endMs = max(c.endMs, c.workers[id].LastPassStart())
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

// finish ends what a worker did and tells the driver which requests are over.
func (c *cluster) finish(id int32, now float64) {
	for _, signal := range c.workers[id].Finish() {
		if signal.Ended {
			c.driver.ended(signal.Request, c.sessions[signal.Request], now)
		}
	}
	c.touch(id)
}

func (c *cluster) touch(id int32) {
	if !c.isTouched[id] {
		c.isTouched[id] = true
		c.touched = append(c.touched, id)
	}
}

// release hands all requests that are ready to their workers.
func (c *cluster) release(now float64) {
	joins := now
	if c.startedMs == now { // a pass of no time led to this arrival, and the passes from now on have started
		joins = math.Nextafter(now, math.Inf(1))
	}
	for c.driver.peek() <= now {
		request, ready := c.driver.pop()
		if c.loneLoop && c.driver.closed {
			ready = now
		}
		c.env.Requests[request].ArrivalMs = ready
		c.arrived++
		id := int32(c.router.Pick())
		if c.due.has(id) {
			if end := c.workers[id].Interrupt(joins); end < c.due.end[id] {
				c.due.set(id, end)
			}
		} else {
			c.touch(id)
		}
		c.workers[id].Submit(request)
	}
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
		}
	}
	c.touched = c.touched[:0]
	return nil
}

// checkDone reports a dead end when requests are left.
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
