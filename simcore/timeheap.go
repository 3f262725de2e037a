package simcore

import "math"

// timed is something that happens at a time, in ms; what happens at the same time comes in order.
type timed struct {
	atMs  float64
	order int64
	id    int32
}

func (t timed) before(o timed) bool {
	return t.atMs < o.atMs || t.atMs == o.atMs && t.order < o.order
}

// timeHeap holds what is to happen, the earliest first. Its zero value is empty, and a sorted slice is a heap.
type timeHeap []timed

// soonest returns when the next thing happens, or infinity.
func (h timeHeap) soonest() float64 {
	if len(h) == 0 {
		return math.Inf(1)
	}
	return h[0].atMs
}

func (h *timeHeap) push(t timed) {
	*h = append(*h, t)
	h.up(len(*h) - 1)
}

func (h *timeHeap) pop() timed {
	first := (*h)[0]
	h.remove(0)
	return first
}

// remove takes out what is at a place of the heap.
func (h *timeHeap) remove(at int) {
	heap := *h
	last := len(heap) - 1
	heap[at] = heap[last]
	*h = heap[:last]
	if at < last {
		h.down(at)
		h.up(at)
	}
}

func (h timeHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (h timeHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
