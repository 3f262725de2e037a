package planner

// sample is what one pass teaches: its load and the time it took, in the unit of the model that keeps it.
type sample struct {
	x [2]float64
	y float64
}

// retention keeps the samples that a regression learns from: a limited number, spread over the range of loads that was
// seen, so that many passes of one kind do not push out the few of another (planner specification §5.2).
type retention struct {
	dims int
	// newestGivesUp takes what is too much from the bucket that was made last, of several fullest ones.
	newestGivesUp bool
	// perAxis is the number of buckets on each axis, limit the greatest number of samples.
	perAxis, limit int
	// low and high bound what was ever seen on each axis; they never come closer.
	low, high [2]float64
	// buckets are in the order in which they were made since the last time that all samples were sorted into new ones.
	buckets []bucket
	count   int
}

// bucket is the samples of one part of the range, the oldest first.
type bucket struct {
	key     int
	samples []sample
}

// newRetention makes room for limit samples of loads with dims numbers, spread over the given number of buckets, a square.
func newRetention(dims, buckets, limit int) *retention {
	perAxis := buckets
	if dims == 2 {
		for perAxis = 1; (perAxis+1)*(perAxis+1) <= buckets; perAxis++ {
		}
	}
	return &retention{dims: dims, perAxis: perAxis, limit: limit}
}

// add keeps a sample. When there are too many, the oldest one of the fullest bucket goes, of several the one that was made
// first, or last.
func (r *retention) add(s sample) {
	if r.extend(s.x) && r.count > 0 {
		r.resort()
	}
	r.put(s)
	if r.count++; r.count > r.limit {
		r.drop()
	}
}

// all appends the samples to buf, bucket by bucket.
func (r *retention) all(buf []sample) []sample {
	for i := range r.buckets {
		buf = append(buf, r.buckets[i].samples...)
	}
	return buf
}

// extend widens the range that was seen and tells whether it had to.
func (r *retention) extend(x [2]float64) (extended bool) {
	first := r.count == 0 && r.buckets == nil
	for i := range r.dims {
		if first || x[i] < r.low[i] {
			r.low[i], extended = x[i], true
		}
		if first || x[i] > r.high[i] {
			r.high[i], extended = x[i], true
		}
	}
	return extended
}

// resort sorts all samples into new buckets.
func (r *retention) resort() {
	old := r.buckets
	r.buckets = make([]bucket, 0, cap(old))
	for i := range old {
		for _, s := range old[i].samples {
			r.put(s)
		}
	}
}

// put appends a sample to its bucket.
func (r *retention) put(s sample) {
	key := 0
	for i := range r.dims {
		key = key*r.perAxis + r.place(s.x[i], i)
	}
	for i := range r.buckets {
		if b := &r.buckets[i]; b.key == key {
			b.samples = append(b.samples, s)
			return
		}
	}
	r.buckets = append(r.buckets, bucket{key: key, samples: []sample{s}})
}

// place returns the bucket of a value on an axis.
func (r *retention) place(v float64, axis int) int {
	width := r.high[axis] - r.low[axis]
	if width <= 0 {
		return 0
	}
	return min(max(int((v-r.low[axis])/width*float64(r.perAxis)), 0), r.perAxis-1)
}

// drop forgets the oldest sample of the fullest bucket.
func (r *retention) drop() {
	fullest := 0
	for i := range r.buckets {
		more := len(r.buckets[i].samples) - len(r.buckets[fullest].samples)
		if more > 0 || more == 0 && r.newestGivesUp {
			fullest = i
		}
	}
	b := &r.buckets[fullest]
	copy(b.samples, b.samples[1:])
	b.samples = b.samples[:len(b.samples)-1]
	if len(b.samples) == 0 {
		r.buckets = append(r.buckets[:fullest], r.buckets[fullest+1:]...)
	}
	r.count--
}
