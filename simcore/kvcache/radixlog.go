package kvcache

// changeLog collects which pages came and went, until they are reported.
type changeLog struct {
	index   *Index
	worker  int
	changes []change
}

// change is a run of ids that came or went.
type change struct {
	start  uint32
	length int32
	came   bool
}

func (l *changeLog) add(start uint32, length int, came bool) {
	l.changes = append(l.changes, change{start, int32(length), came})
}

// Watch makes the tree report to an index, from the next [Radix.Report] on, what a worker holds.
func (r *Radix) Watch(index *Index, worker int) { r.log = &changeLog{index: index, worker: worker} }

// Announce reports pages of a sequence, from (inclusive) to (exclusive), that the worker holds without having them in the
// tree yet.
func (r *Radix) Announce(s Sequence, from, to int) {
	if r.log != nil {
		s.each(from, to, func(start uint32, length int) { r.log.add(start, length, true) })
	}
}

// Report tells the index what came and went since the last report.
func (r *Radix) Report() {
	if r.log == nil {
		return
	}
	for _, c := range r.log.changes {
		if c.came {
			r.log.index.Store(r.log.worker, c.start, int(c.length))
		} else {
			r.log.index.Remove(r.log.worker, c.start, int(c.length))
		}
	}
	r.log.changes = r.log.changes[:0]
}

// NoteChanges makes the tree note which pages it caches and evicts.
func (r *Radix) NoteChanges() { r.notes = true }

// TakeCached and TakeEvicted return what came and what went since they were last called, in order. The slices are valid
// until the tree changes.
func (r *Radix) TakeCached() []Change {
	out := r.cached
	r.cached = r.cached[:0]
	return out
}

// TakeEvicted is described at [Radix.TakeCached].
func (r *Radix) TakeEvicted() []Change {
	out := r.evicted
	r.evicted = r.evicted[:0]
	return out
}
