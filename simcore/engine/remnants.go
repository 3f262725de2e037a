package engine

// remnants are the entries that admitted requests have left in a waiting queue by [rules.Set].AdmittedStayQueued. They change
// nothing but what the queue is said to hold: an entry of a request that was preempted meanwhile counts again. They go when
// they are the head of the queue.
type remnants []remnant

// remnant is an entry that was left behind.
type remnant struct {
	request int32
	ahead   int // the number of requests that wait in front of it
}

// of is how many there are of a request.
func (q remnants) of(request int32) (n int) {
	for i := range q {
		if q[i].request == request {
			n++
		}
	}
	return n
}

// move tells that so many requests more wait in front of all of them, or, if it is negative, fewer.
func (q remnants) move(requests int) {
	for i := range q {
		q[i].ahead += requests
	}
}

// drop takes those away that have become the head of the queue.
func (q *remnants) drop() {
	for n := len(*q); n > 0 && (*q)[n-1].ahead <= 0; n-- {
		*q = (*q)[:n-1]
	}
}
