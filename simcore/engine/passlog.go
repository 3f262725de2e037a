package engine

import "github.com/servegrid/servegrid/simcore/perfmodel"

// PassLog collects what the workers of a deployment do, pass by pass, until it is told on. Workers enter what they begin,
// which may be a run of many passes; passes of different workers are put in order of time when they are told.
type PassLog struct {
	// atEnd tells passes in the order in which they end, otherwise in that in which they begin.
	atEnd   bool
	entries []passEntry
	// ends holds the ends of the passes of entries whose durations differ.
	ends, spare []float64
	open        [][]int32 // by pool and worker: its latest entry + 1, or 0
	heap        []int32   // entries that are being told, the one with the next pass first

	metrics PassMetrics
}

// passEntry is some passes of a worker in a row, which differ in nothing but time and the lengths of the requests that
// decode.
type passEntry struct {
	load    PassLoad // of the next pass
	pool    int32
	worker  int32
	passes  int // that are not told yet
	told    int // passes of the same run that were told or are in earlier entries
	noted   float64
	startMs float64 // of the next pass
	endMs   float64 // of it
	// step is how long each pass takes; without equal, ends says when.
	equal bool
	step  perfmodel.Nanoseconds
	at    int // place in the log's ends of that of the pass after the next one
}

// NewPassLog returns an empty log that tells passes when they have ended, or when they have begun.
func NewPassLog(atEnd bool) *PassLog { return &PassLog{atEnd: atEnd} }

// begin enters what a worker begins.
func (l *PassLog) begin(pool int, worker int32, load PassLoad, t *timeline) {
	e := passEntry{load: load, pool: int32(pool), worker: worker, passes: t.passes, noted: t.start, startMs: t.start, endMs: t.end, equal: true, step: t.step, at: len(l.ends)}
	if t.passes > 1 {
		e.endMs = t.firstEnd()
		if e.equal = t.equal; !t.equal {
			l.ends = append(l.ends, t.ends[1:t.passes]...)
		}
	}
	*l.openOf(pool, worker) = int32(len(l.entries)) + 1
	l.entries = append(l.entries, e)
}

func (l *PassLog) openOf(pool int, worker int32) *int32 {
	for pool >= len(l.open) {
		l.open = append(l.open, nil)
	}
	for int(worker) >= len(l.open[pool]) {
		l.open[pool] = append(l.open[pool], 0)
	}
	return &l.open[pool][worker]
}

// queueChanged enters that other requests wait from the given time on, while what a worker began goes on.
func (l *PassLog) queueChanged(pool int, worker int32, at float64, q queued) {
	open := l.openOf(pool, worker)
	if *open == 0 {
		return
	}
	e := &l.entries[*open-1]
	rest := *e
	for rest.passes > 0 && rest.startMs < at {
		l.next(&rest)
	}
	if rest.passes == 0 {
		return
	}
	rest.load.setQueue(q)
	if rest.passes == e.passes {
		*e = rest
		return
	}
	e.passes -= rest.passes
	*open = int32(len(l.entries)) + 1
	l.entries = append(l.entries, rest)
}

// end enters how many passes a worker's run had in the end.
func (l *PassLog) end(pool int, worker int32, passes int) {
	open := l.openOf(pool, worker)
	if *open == 0 {
		return
	}
	e := &l.entries[*open-1]
	e.passes = max(0, min(e.passes, passes-e.told))
	*open = 0
}

// next moves an entry on to its next pass.
func (l *PassLog) next(e *passEntry) {
	e.told++
	e.passes--
	e.startMs = e.endMs
	e.load.DecodeKVTokens += int64(e.load.DecodeRequests)
	switch {
	case e.passes == 0:
	case e.equal:
		e.endMs += e.step.Ms()
	default:
		e.endMs = l.ends[e.at]
		e.at++
	}
}

// Tell tells all passes that have ended, or begun, by the given time. The pointer is valid during the call. It returns the
// time of the last one, or the given earlier time if none is later.
func (l *PassLog) Tell(until, earlier float64, tell func(*PassMetrics)) (latest float64) {
	latest = earlier
	l.heap = l.heap[:0]
	seen := 0
	for {
		for seen < len(l.entries) && (len(l.heap) == 0 || l.entries[seen].noted <= l.time(l.heap[0])) {
			if e := &l.entries[seen]; e.passes > 0 && l.time(int32(seen)) <= until {
				l.push(int32(seen))
			}
			seen++
		}
		if len(l.heap) == 0 {
			break
		}
		e := &l.entries[l.heap[0]]
		latest = max(latest, l.time(l.heap[0]))
		if tell != nil {
			l.metrics = PassMetrics{Pool: int(e.pool), Worker: e.worker, PassLoad: e.load, StartMs: e.startMs, EndMs: e.endMs, WallSeconds: (e.endMs - e.startMs) / 1000}
			tell(&l.metrics)
		}
		l.next(e)
		if e.passes == 0 || l.time(l.heap[0]) > until {
			last := len(l.heap) - 1
			l.heap[0] = l.heap[last]
			l.heap = l.heap[:last]
		}
		l.down()
	}
	l.forget()
	return latest
}

// forget drops what has been told and will not go on.
func (l *PassLog) forget() {
	kept, ends := 0, l.spare[:0]
	for i := range l.entries {
		e := l.entries[i]
		open := l.openOf(int(e.pool), e.worker)
		if current := *open == int32(i)+1; !current && e.passes == 0 {
			continue
		} else if current {
			*open = int32(kept) + 1
		}
		if !e.equal && e.passes > 1 {
			from := l.ends[e.at : e.at+e.passes-1]
			e.at = len(ends)
			ends = append(ends, from...)
		}
		l.entries[kept] = e
		kept++
	}
	l.entries, l.ends, l.spare = l.entries[:kept], ends, l.ends
}

// time is when the next pass of an entry is told.
func (l *PassLog) time(entry int32) float64 {
	if l.atEnd {
		return l.entries[entry].endMs
	}
	return l.entries[entry].startMs
}

func (l *PassLog) before(a, b int32) bool {
	if s, t := l.time(a), l.time(b); s != t {
		return s < t
	}
	x, y := &l.entries[a], &l.entries[b]
	switch {
	case x.startMs != y.startMs:
		return x.startMs < y.startMs
	case x.pool != y.pool:
		return x.pool < y.pool
	case x.worker != y.worker:
		return x.worker < y.worker
	}
	return a < b
}

func (l *PassLog) push(entry int32) {
	l.heap = append(l.heap, entry)
	for i := len(l.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !l.before(l.heap[i], l.heap[parent]) {
			return
		}
		l.heap[i], l.heap[parent] = l.heap[parent], l.heap[i]
		i = parent
	}
}

// down puts the first entry of the heap into its place.
func (l *PassLog) down() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(l.heap) {
			return
		}
		if child+1 < len(l.heap) && l.before(l.heap[child+1], l.heap[child]) {
			child++
		}
		if !l.before(l.heap[child], l.heap[i]) {
			return
		}
		l.heap[i], l.heap[child] = l.heap[child], l.heap[i]
		i = child
	}
}
