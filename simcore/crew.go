package simcore

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
)

// crew is a number of workers on one clock: which of them are busy until when, and which may start something.
type crew struct {
	workers   []engine.Worker
	due       dueHeap // busy workers by the end of what they do
	touched   []int32 // idle workers that may start something at this time
	isTouched []bool
	stalled   []int32 // workers that have requests and could start nothing when they were touched last
	busyNs    []int64 // how long each worker was busy, in ns
}

func newCrew(workers []engine.Worker) crew {
	c := crew{workers: workers, isTouched: make([]bool, len(workers)), busyNs: make([]int64, len(workers))}
	c.due.init(workers)
	return c
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
	slices.Sort(c.touched)
	c.stalled = c.stalled[:0]
	for _, id := range c.touched {
		c.isTouched[id] = false
		w := c.workers[id]
		if !w.HasWork() {
			continue
		}
		// Who gets the next arrival is not known yet; Interrupt tells.
		end, progress, err := w.Start(now, math.Inf(1), stopOf(id))
		if err != nil {
			return err
		}
		if progress {
			c.due.set(id, end)
			c.busyNs[id] -= wholeNanoseconds(now)
		} else {
			c.stalled = append(c.stalled, id)
		}
	}
	c.touched = c.touched[:0]
	return nil
}

// wake lets requests go on whose KV blocks have come from lower memory tiers.
func (c *crew) wake(loaded []tiers.Loaded, now float64) {
	for _, l := range loaded {
		id := int32(l.Worker)
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
		if w.HasWork() {
			return w.Stuck(now)
		}
	}
	return nil
}

// countWorkers adds what the workers of a pool counted, and how long they were busy.
func (s *simulation) countWorkers(pool int, workers []engine.Worker, busyNs []int64) {
	for i, w := range workers {
		w.Sync()
		s.count(w)
		s.busy[pool] += busyNs[i]
	}
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
