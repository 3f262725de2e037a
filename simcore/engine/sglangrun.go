package engine

// arrivalsMatter reports whether a request that arrives could join the next pass, or change who does.
func (s *SGLang) arrivalsMatter() bool { return len(s.running) < s.maxSeqs || s.limits.lpm }

// mayJoin reports whether the next pass might admit a request.
func (s *SGLang) mayJoin() bool {
	switch {
	case s.handoff.arrived.len() > 0:
		return len(s.running) < s.maxSeqs
	case s.waiting.len() == 0 || s.handoffFirst() && !s.loadedWaits():
		return false
	}
	return s.arrivalsMatter()
}

// enterRun checks after a pass whether every running request got a token in it, and if so prepares for runs.
func (s *SGLang) enterRun(end float64) {
	s.run.steady, s.run.active, s.run.lastEnd = false, false, end
	if s.speculation.drafts > 0 || len(s.running) == 0 {
		return
	}
	s.run.reset()
	for _, id := range s.running {
		r := &s.env.Requests[id]
		if r.LastTokenMs != end {
			return
		}
		s.run.add(id, r, s.pass.number)
	}
	s.run.steady = true
}

// startRun plans a run at the given time, as long as possible with no pass starting at limit or later. It returns false
// when the next pass needs to be looked at request by request.
func (s *SGLang) startRun(now, limit float64) bool {
	if now != s.run.lastEnd || s.mayJoin() {
		return false
	}
	passes := s.passesWithRoom()
	if passes = min(passes, int(least(s.run.done)-s.pass.number)); passes < 1 {
		return false
	}
	s.run.active = true
	s.signals = s.signals[:0]
	s.run.plan(&s.pricer, now, limit, passes, len(s.running), s.run.lengths, 0)
	if s.env.Passes != nil {
		s.latest = s.run.load(s.env, s.running, s.pass.number, s.queued)
	}
	return true
}

// passesWithRoom returns a number of passes for which there surely is room to decode without retracting a request.
func (s *SGLang) passesWithRoom() int {
	n := len(s.running)
	room := s.available()
	if n > 1 {
		// Each request begins a page at most and has begun one.
		room -= 2 * n * int(s.page-1)
	}
	passes := max(0, room) / n
	if free := s.free - n*int(s.allocated(1)-1); s.env.Index != nil && free < passes*n {
		passes = min(passes, max(1, free/n)) // routers see at the end of a pass what it evicts
	}
	if s.tiers != nil {
		passes = s.passesWithoutEviction(passes) // what is evicted is copied down from the start of a pass on
	}
	return passes
}

// passesWithoutEviction returns how many of the next passes surely need no room but what is free.
func (s *SGLang) passesWithoutEviction(most int) int {
	n := len(s.running)
	begun := most // passes in the pages that all have begun
	for _, id := range s.running {
		r := &s.env.Requests[id]
		computed := r.computed + int32(s.pass.number-r.synced)
		begun = min(begun, int(s.allocated(computed)-computed))
	}
	return min(most, max(begun, s.free/n-int(s.page-1)))
}

// Interrupt tells the worker, before it is submitted, that a request arrives at the given time, while what Start began is
// under way. See [Worker].
func (s *SGLang) Interrupt(at float64) float64 {
	s.joinsMs = at
	if s.run.active && s.arrivalsMatter() {
		s.run.cut(at)
	}
	return s.run.end
}

// LastPassStart returns when the last pass of what Start began starts.
func (s *SGLang) LastPassStart() float64 { return s.run.lastStart() }

// Finish completes what Start began, at its end.
func (s *SGLang) Finish() []Signal {
	s.constraint.finish(s.run.end)
	if s.env.Passes != nil {
		s.env.Passes.end(s.env.Pool, s.index, s.run.passes)
	}
	if s.run.active {
		n := len(s.running)
		s.run.finish(s.env, &s.pricer, n)
		s.pass.number += int64(s.run.passes)
		s.reserve.decay(s.run.passes)
		// Nobody has looked at the tree meanwhile, so all passes may evict at once.
		growth := s.growthOfRun()
		s.evict(growth)
		s.free -= growth
		s.completeDue()
	}
	s.tree.Report()
	s.tellCached(s.run.end)
	s.tiers.offloadFinished(s.run.end)
	return s.signals
}

// growthOfRun is the room that the running requests take for the tokens of a run, which their counters do not know of yet.
func (s *SGLang) growthOfRun() int {
	passes := int32(s.run.passes)
	if s.env.Rules.TokenPool {
		return len(s.running) * int(passes)
	}
	growth := int32(0)
	for _, id := range s.running {
		r := &s.env.Requests[id]
		computed := r.computed + int32(s.pass.number-r.synced)
		growth += s.allocated(computed) - s.allocated(computed-passes)
	}
	return int(growth)
}

// completeDue completes the requests that got their last token in the last pass of a run.
func (s *SGLang) completeDue() {
	number := s.pass.number
	if least(s.run.done) > number {
		return
	}
	kept := 0
	for i, id := range s.running {
		done := s.run.done[i]
		if done == number {
			r := &s.env.Requests[id]
			s.sync(id, r)
			s.run.lengths -= int64(r.length())
			s.complete(id, r, decodeAccess(r, number))
			s.signals = append(s.signals, Signal{Request: id, Ended: true})
			continue
		}
		s.running[kept], s.run.done[kept] = id, done
		kept++
	}
	s.running, s.run.done = s.running[:kept], s.run.done[:kept]
	s.run.steady = kept > 0
}

// Sync brings the running requests' counters up to date, which lag behind during runs.
func (s *SGLang) Sync() { s.leaveRun() }

// leaveRun brings all running requests up to date.
func (s *SGLang) leaveRun() {
	if !s.run.steady {
		return
	}
	for _, id := range s.running {
		s.sync(id, &s.env.Requests[id])
	}
	s.run.steady, s.run.active = false, false
}

// sync brings one running request up to date with the latest pass.
func (s *SGLang) sync(id int32, r *Request) {
	if !s.run.catchUp(r, s.pass.number) {
		return
	}
	if r.computed/s.page > r.blocks && s.env.Rules.OutputCachedAtOnce {
		// The latest page was completed so many passes ago.
		s.cache(id, r, decodeAccess(r, s.pass.number-int64(r.computed%s.page)), true)
	}
}
