package simcore

import (
	"cmp"
	"math"
	"slices"
)

// sessionStarts returns when each session's first turn is released in open loop, in ms from 0.
func (s *released) sessionStarts() []float64 {
	w := s.workload
	starts := make([]float64, w.Sessions())
	if s.cfg.Load.Mode == LoadRate {
		for i := range starts {
			starts[i] = float64(i) * 1000 / s.cfg.Load.Rate
		}
		return starts
	}
	first := math.Inf(1)
	for i := range starts {
		starts[i] = w.ArrivalMs[w.SessionStart[i]]
		first = min(first, starts[i])
	}
	for i := range starts {
		starts[i] = (starts[i] - first) / s.cfg.Load.Speedup
	}
	return starts
}

// byStart returns the session numbers in order of their start, file order among equals.
func byStart(starts []float64) []int32 {
	order := make([]int32, len(starts))
	sorted := true
	for i := range order {
		order[i] = int32(i)
		sorted = sorted && (i == 0 || starts[i-1] <= starts[i])
	}
	if !sorted {
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(starts[a], starts[b]) })
	}
	return order
}

// sessionOfRequests returns the session of each request.
func (s *released) sessionOfRequests() []int32 {
	w := s.workload
	sessions := make([]int32, w.Requests())
	for session := range w.Sessions() {
		for r := w.SessionStart[session]; r < w.SessionStart[session+1]; r++ {
			sessions[r] = int32(session)
		}
	}
	return sessions
}

// driver says when requests are released.
type driver interface {
	// peek returns when the next request is ready, or infinity.
	peek() float64
	// pop releases the next request and returns when it became ready.
	pop() (request int32, readyMs float64)
	// ended tells that a request of a session completed, was rejected or failed.
	ended(request, session int32, now float64)
	// closed reports whether something starts when something else ends.
	closed() bool
}

func (s *released) newDriver() driver {
	if s.scenario != nil {
		return newAgentXDriver(s)
	}
	if s.workload.Graph != nil {
		return newGraphDriver(s)
	}
	return newSessionDriver(s)
}

// sessionDriver releases the turns of sessions: a turn when the one before has ended and its delay has passed, a
// session at its start (open loop) or when another one ends (closed loop).
type sessionDriver struct {
	s       *released
	ready   timeHeap // sessions by when their next turn is ready, then by number
	next    []int32
	waiting int32 // closed loop: the next session to be admitted
	speedup float64
	loop    bool
}

func newSessionDriver(s *released) *sessionDriver {
	w := s.workload
	d := &sessionDriver{s: s, next: slices.Clone(w.SessionStart[:w.Sessions()]), speedup: s.cfg.Load.Speedup}
	if s.cfg.Load.Mode == LoadConcurrency {
		d.loop, d.speedup = true, 1
		for range min(s.cfg.Load.Concurrency, w.Sessions()) {
			d.admit(0)
		}
		return d
	}
	starts := s.sessionStarts()
	d.ready = make(timeHeap, 0, len(starts))
	for _, session := range byStart(starts) {
		d.ready = append(d.ready, timed{starts[session], int64(session), session}) // sorted, so it is a heap
	}
	return d
}

// admit makes the next session of a closed loop ready.
func (d *sessionDriver) admit(now float64) {
	if int(d.waiting) < d.s.workload.Sessions() {
		d.ready.push(timed{now, int64(d.waiting), d.waiting})
		d.waiting++
	}
}

func (d *sessionDriver) peek() float64 { return d.ready.soonest() }

func (d *sessionDriver) pop() (request int32, readyMs float64) {
	turn := d.ready.pop()
	request = d.next[turn.id]
	d.next[turn.id]++
	return request, turn.atMs
}

func (d *sessionDriver) closed() bool { return d.loop }

func (d *sessionDriver) ended(_, session int32, now float64) {
	if turnAfter := d.next[session]; turnAfter < d.s.workload.SessionStart[session+1] {
		d.ready.push(timed{now + d.s.workload.DelayMs[turnAfter]/d.speedup, int64(session), session})
		return
	}
	if d.loop {
		d.admit(now)
	}
}
