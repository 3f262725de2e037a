package engine

// queue is a double-ended queue of request numbers in a ring.
type queue struct {
	ring  []int32
	first int
	count int
}

func (q *queue) len() int     { return q.count }
func (q *queue) front() int32 { return q.ring[q.first] }

func (q *queue) popFront() int32 {
	r := q.ring[q.first]
	if q.first++; q.first == len(q.ring) {
		q.first = 0
	}
	q.count--
	return r
}

func (q *queue) pushBack(r int32) {
	q.grow()
	at := q.first + q.count
	if at >= len(q.ring) {
		at -= len(q.ring)
	}
	q.ring[at] = r
	q.count++
}

func (q *queue) pushFront(r int32) {
	q.grow()
	if q.first--; q.first < 0 {
		q.first = len(q.ring) - 1
	}
	q.ring[q.first] = r
	q.count++
}

func (q *queue) grow() {
	if q.count < len(q.ring) {
		return
	}
	ring := make([]int32, max(16, 2*len(q.ring)))
	n := copy(ring, q.ring[q.first:])
	copy(ring[n:], q.ring[:q.first])
	q.ring, q.first = ring, 0
}

// at returns the i-th request from the front, replace puts another one in its place.
func (q *queue) at(i int) int32 { return q.ring[q.place(i)] }

func (q *queue) replace(i int, r int32) { q.ring[q.place(i)] = r }

func (q *queue) place(i int) int {
	if i += q.first; i >= len(q.ring) {
		i -= len(q.ring)
	}
	return i
}

// insert puts a request before the i-th one from the front.
func (q *queue) insert(i int, r int32) {
	q.pushFront(r)
	for k := range i {
		q.replace(k, q.at(k+1))
	}
	q.replace(i, r)
}

// remove takes the i-th request from the front out.
func (q *queue) remove(i int) {
	for ; i > 0; i-- {
		q.replace(i, q.at(i-1))
	}
	q.popFront()
}
