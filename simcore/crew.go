package simcore

import (
	"cmp"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/router"
)

// crew is a number of workers on one clock: which of them are busy until when, and which may start something. Workers may
// come while time passes, and go when they are idle; a place is never used again.
type crew struct {
	workers   []engine.Worker // nil once gone
	due       dueHeap         // busy workers by the end of what they do
	touched   []int32         // idle workers that may start something at this time
	isTouched []bool
	stalled   []int32    // workers that have requests and could start nothing when they were touched last
	busyNs    []int64    // how long each worker was busy, in ns
	requests  []int32    // that each worker has
	byTier    []int32    // workers by their number in the lower memory tiers
	places    [2][]int32 // workers by pool and id there
	seats     []int32    // of each worker in its pool
	// mixed says that workers came after the beginning, so that the order of their places is not that in which they start.
	mixed bool
	order []int64           // of each worker, by pool and id
	spare [][]engine.Worker // workers that are gone, by pool: their memory serves again
	// survives says that a request which can make no progress does not end the simulation. failures are then the workers that
	// could not start because of one.
	survives bool
	failures []failure
	// former is what the workers counted that had a seat before, by pool and seat, less what the memory of the one that has it
	// had counted when it came.
	former [2][]counted
}

// counted is what a worker counts.
type counted struct{ preemptions, passes int64 }

// failure is why a worker could not start anything.
type failure struct {
	id  int32
	err error
}

// add adds a worker, which is of a pool and has an id there.
func (c *crew) add(w engine.Worker, pool int, m router.Member) (id int32) {
	id = int32(len(c.workers))
	c.workers = append(c.workers, w)
	c.isTouched, c.busyNs, c.requests = append(c.isTouched, false), append(c.busyNs, 0), append(c.requests, 0)
	c.order = append(c.order, int64(pool)<<32|int64(m.Worker))
	c.seats = append(c.seats, m.Seat)
	for int(m.Seat) >= len(c.former[pool]) {
		c.former[pool] = append(c.former[pool], counted{})
	}
	c.carry(id, -1)
	if m.Tier >= 0 {
		for int(m.Tier) >= len(c.byTier) {
			c.byTier = append(c.byTier, 0)
		}
		c.byTier[m.Tier] = id
	}
	for int(m.Worker) >= len(c.places[pool]) {
		c.places[pool] = append(c.places[pool], 0)
	}
	c.places[pool][m.Worker] = id
	c.mixed = c.mixed || id > 0 && c.order[id] < c.order[id-1]
	c.due.grow(c.workers, c.order)
	return id
}

// carry adds what a worker counts, with a sign, to what is carried over at its seat.
func (c *crew) carry(id int32, sign int64) {
	w, at := c.workers[id], &c.former[c.order[id]>>32][c.seats[id]]
	passes, _ := w.Passes()
	at.preemptions += sign * w.Preemptions()
	at.passes += sign * passes
}

// remove takes an idle worker without requests away.
func (c *crew) remove(id int32) {
	c.carry(id, 1)
	pool := int(c.order[id] >> 32)
	for pool >= len(c.spare) {
		c.spare = append(c.spare, nil)
	}
	c.spare[pool] = append(c.spare[pool], c.workers[id])
	c.workers[id] = nil
}

// newWorker returns an idle worker of a pool, in the memory of one that is gone if there is any. o hears of new memory.
func (c *crew) newWorker(env *engine.Environment, pool int, m router.Member, o *Online) engine.Worker {
	place := engine.Place{Worker: int(m.Worker), Seat: int(m.Seat), Tier: int(m.Tier)}
	if pool < len(c.spare) {
		if n := len(c.spare[pool]); n > 0 {
			w := c.spare[pool][n-1]
			c.spare[pool] = c.spare[pool][:n-1]
			w.Reset(place)
			return w
		}
	}
	w := engine.New(env, place)
	o.hold(env.Blocks, w.Holder())
	return w
}

// recycle leaves the memory of all workers to those of other runs.
func (c *crew) recycle() {
	for _, workers := range append(c.spare, c.workers) {
		for _, w := range workers {
			if w != nil {
				w.Recycle()
			}
		}
	}
}

// occupied reports whether a worker has requests or does anything.
func (c *crew) occupied(id int32) bool {
	return c.requests[id] > 0 || c.due.has(id) || c.workers[id].HasWork()
}

// touch lets an idle worker look for something to start.
func (c *crew) touch(id int32) {
	if !c.isTouched[id] {
		c.isTouched[id] = true
		c.touched = append(c.touched, id)
	}
}

// start lets touched workers with requests begin, in the order of their ids, and none start a pass at its stop or later.
func (c *crew) start(now float64, stopOf func(id int32) float64) error {
	if c.mixed {
		slices.SortFunc(c.touched, func(a, b int32) int { return cmp.Compare(c.order[a], c.order[b]) })
	} else {
		slices.Sort(c.touched)
	}
	c.stalled = c.stalled[:0]
	for _, id := range c.touched {
		c.isTouched[id] = false
		w := c.workers[id]
		if w == nil || !w.HasWork() {
			continue
		}
		// Who gets the next arrival is not known yet; Interrupt tells.
		end, progress, err := w.Start(now, math.Inf(1), stopOf(id))
		switch {
		case err != nil && !c.survives:
			return err
		case err != nil:
			c.failures = append(c.failures, failure{id, err})
		case progress:
			c.due.set(id, end)
			c.busyNs[id] -= wholeNanoseconds(now)
		default:
			c.stalled = append(c.stalled, id)
		}
	}
	c.touched = c.touched[:0]
	return nil
}

// wake lets requests go on whose KV blocks have come from lower memory tiers.
func (c *crew) wake(loaded []tiers.Loaded, now float64) {
	for _, l := range loaded {
		id := c.byTier[l.Worker]
		end := c.workers[id].(engine.TierWorker).Loaded(l.Request, now)
		if !c.due.has(id) {
			c.touch(id)
		} else if end < c.due.end[id] {
			c.due.set(id, end)
		}
	}
}

// end takes out the worker that is done first, which may start something again.
func (c *crew) end() (id int32) {
	end := c.due.soonest()
	id = c.due.pop()
	c.busyNs[id] += wholeNanoseconds(end)
	c.touch(id)
	return id
}

// endAll completes what the workers have started, and returns when the last pass of that starts.
func (c *crew) endAll() (lastStart float64) {
	for c.due.len() > 0 {
		id := c.end()
		lastStart = max(lastStart, c.workers[id].LastPassStart())
		c.workers[id].Finish()
	}
	return lastStart
}

// deadEnd explains why a worker that has requests does nothing. It returns nil when none has any.
func (c *crew) deadEnd(now float64) error {
	for _, w := range c.workers {
		if w != nil && w.HasWork() {
			return w.Stuck(now)
		}
	}
	return nil
}

// countWorkers adds what the workers counted, and how long they were busy.
func (s *simulation) countWorkers(c *crew) {
	for id, w := range c.workers {
		s.busy[c.order[id]>>32] += c.busyNs[id]
		if w != nil {
			w.Sync()
			s.count(w)
		}
	}
	for _, pool := range c.spare {
		for _, w := range pool {
			s.count(w)
		}
	}
}

// dueHeap orders busy workers by the end of what they do. Ends at the same time come in the order in which the
// last passes were started: by their start, then by pool and worker.
type dueHeap struct {
	workers []engine.Worker
	order   []int64
	heap    []int32
	place   []int32 // of each worker in heap, or -1
	end     []float64
}

// grow takes a worker in.
func (h *dueHeap) grow(workers []engine.Worker, order []int64) {
	h.workers, h.order = workers, order
	h.place, h.end = append(h.place, -1), append(h.end, 0)
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
	return h.order[a] < h.order[b]
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
