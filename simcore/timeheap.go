package simcore

import "math"

// timed is something that happens at a time, in ms; what happens at the same time comes in order.
type timed struct {
	atMs      float64
	order, id int32
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
	heap := *h
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !heap[i].before(heap[parent]) {
			return
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
}

func (h *timeHeap) pop() timed {
	heap := *h
	first, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	heap = heap[:last]
	*h = heap
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && heap[child+1].before(heap[child]) {
			child++
		}
		if !heap[child].before(heap[i]) {
			return first
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
