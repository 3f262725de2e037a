package router

import "fmt"

// LimitError reports a class of requests whose queue is full, which ends a simulation.
type LimitError struct {
	// Request is the number of the request that found no room.
	Request int
	// Class names the class, Key the setting of the policy file that was reached.
	Class, Key string
	// Limit is the setting times the number of workers, Current what was waiting.
	Limit, Current int64
	// TimeMs is the simulated time.
	TimeMs float64
}

// Error says which limit was reached.
func (e *LimitError) Error() string {
	return fmt.Sprintf("request %d finds the queue of policy class %s full after %.3f simulated ms: %d are waiting, and %s allows %d for all workers",
		e.Request, e.Class, e.TimeMs, e.Current, e.Key, e.Limit)
}

// Reason is the stable category of the error in results.
func (e *LimitError) Reason() string { return "router_queue_limit" }

// queue keeps requests in classes, which take turns by deficit round robin (Shreedhar, Varghese, "Efficient Fair
// Queuing Using Deficit Round Robin", 1995; spec/engine.md §11.4): a class earns its quantum of credit each round and
// pays for the uncached tokens of what it sends.
type queue struct {
	classes []classQueue
	turn    int // the class that is looked at first
	waiting int
	number  int64 // of the next request
	open    []bool
}

// classQueue is a class with its requests, the one that goes first at the front of a heap.
type classQueue struct {
	Class
	heap   []kept
	credit int64
	// What is waiting: raw tokens of prompts, and those of them that are cached.
	raw, cached int64
}

// kept is a request that waits in the router.
type kept struct {
	request int32
	strict  uint32
	score   float64
	number  int64
	raw     int64
	cached  int64
	held    holdings // as they were when it arrived
}

// cost is what a class pays for sending the request: uncached tokens, at least 1.
func (k *kept) cost() int64 { return max(1, k.raw-k.cached) }

func (k *kept) before(o *kept) bool {
	switch {
	case k.strict != o.strict:
		return k.strict > o.strict
	case k.score != o.score:
		return k.score > o.score
	}
	return k.number < o.number
}

func newQueue(classes []Class) queue {
	q := queue{classes: make([]classQueue, len(classes)), open: make([]bool, len(classes))}
	for i, class := range classes {
		q.classes[i].Class = class
	}
	return q
}

// full returns the limit of a class that its queue has reached, if any.
func (c *classQueue) full(workers int) *LimitError {
	for _, l := range []struct {
		key            string
		current, limit int64
	}{
		{"request_queue_limit_per_worker", int64(len(c.heap)), c.RequestQueueLimit},
		{"raw_isl_token_queue_limit_per_worker", c.raw, c.RawTokenQueueLimit},
		{"cached_token_queue_limit_per_worker", c.cached, c.CachedTokenQueueLimit},
	} {
		if l.limit != Unset && l.current >= l.limit*int64(workers) {
			return &LimitError{Class: c.Name, Key: l.key, Limit: l.limit * int64(workers), Current: l.current}
		}
	}
	return nil
}

// push adds a request to a class at a time, in seconds.
func (q *queue) push(class int, k kept, priority int32, seconds float64) {
	c := &q.classes[class]
	jump := max(0, float64(priority))
	switch c.QueuePolicy {
	case QueueLCFS:
		k.score = jump + seconds
	case QueueWSPT:
		k.score = (1 + jump) / float64(k.cost())
	default:
		k.score = jump - seconds
	}
	k.number = q.number
	q.number++
	q.waiting++
	c.raw += k.raw
	c.cached += k.cached
	c.heap = append(c.heap, k)
	c.up(len(c.heap) - 1)
}

// pop takes the request that goes next among the classes that may send one; false means that none may.
func (q *queue) pop(maySend func(*Class) bool) (kept, bool) {
	some := false
	for i := range q.classes {
		c := &q.classes[i]
		q.open[i] = len(c.heap) > 0 && maySend(&c.Class)
		some = some || q.open[i]
		if len(c.heap) == 0 {
			c.credit = 0
		}
	}
	if !some {
		return kept{}, false
	}
	if i := q.affordable(true); i >= 0 {
		return q.send(i), true
	}
	// No class could after one more round, so skip those in which none can.
	rounds := int64(-1)
	for i, open := range q.open {
		if c := &q.classes[i]; open {
			if n := (c.heap[0].cost() - c.credit + c.Quantum - 1) / c.Quantum; rounds < 0 || n < rounds {
				rounds = n
			}
		}
	}
	for i, open := range q.open {
		if open {
			q.classes[i].credit += rounds * q.classes[i].Quantum
		}
	}
	return q.send(q.affordable(false)), true
}

// affordable returns the first open class, from the one whose turn it is, that can pay for its next request, or -1.
// With earning, each class that cannot gets its quantum first.
func (q *queue) affordable(earning bool) int {
	for offset := range q.classes {
		i := (q.turn + offset) % len(q.classes)
		if !q.open[i] {
			continue
		}
		c := &q.classes[i]
		if earning && c.heap[0].cost() > c.credit {
			c.credit += c.Quantum
		}
		if c.heap[0].cost() <= c.credit {
			return i
		}
	}
	return -1
}

// send takes the first request of a class. The class keeps its turn while it can pay for more.
func (q *queue) send(i int) kept {
	c := &q.classes[i]
	first := q.remove(c, 0)
	c.credit -= first.cost()
	if len(c.heap) == 0 {
		c.credit = 0
	}
	q.turn = i
	if len(c.heap) == 0 || c.heap[0].cost() > c.credit {
		q.turn = (i + 1) % len(q.classes)
	}
	return first
}

// withdraw takes out a request that waits, if it does.
func (q *queue) withdraw(request int32) (kept, bool) {
	for i := range q.classes {
		c := &q.classes[i]
		for at := range c.heap {
			if c.heap[at].request == request {
				return q.remove(c, at), true
			}
		}
	}
	return kept{}, false
}

// remove takes out the request at a place in the heap of a class.
func (q *queue) remove(c *classQueue, at int) kept {
	out, last := c.heap[at], len(c.heap)-1
	c.heap[at] = c.heap[last]
	c.heap[last] = kept{}
	c.heap = c.heap[:last]
	if at < last {
		c.down(at)
		c.up(at)
	}
	q.waiting--
	c.raw -= out.raw
	c.cached -= out.cached
	return out
}

func (c *classQueue) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !c.heap[i].before(&c.heap[parent]) {
			return
		}
		c.heap[i], c.heap[parent] = c.heap[parent], c.heap[i]
		i = parent
	}
}

func (c *classQueue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(c.heap) {
			return
		}
		if child+1 < len(c.heap) && c.heap[child+1].before(&c.heap[child]) {
			child++
		}
		if !c.heap[child].before(&c.heap[i]) {
			return
		}
		c.heap[i], c.heap[child] = c.heap[child], c.heap[i]
		i = child
	}
}
