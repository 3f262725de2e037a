package engine

// This file is what the SGLang-style scheduler does in a disaggregated deployment (engine specification §12.2).

// sglangHandoff is the state of a decode worker besides that of any worker.
type sglangHandoff struct {
	arrived   queue // requests whose prompt has arrived and that do not run yet
	reserving bool  // reservations wait for room
	released  int64
}

// ReleaseSource puts a finished prompt into the prefix cache, if it is not there yet, and gives up the rest of its KV. The
// worker must be idle.
func (s *SGLang) ReleaseSource(request int32) {
	r := &s.env.Requests[request]
	if s.env.Rules.SourceCachedAtRelease {
		s.cache(request, r, s.outsideAccess(), false)
	} else {
		s.tree.Touch(r.locked, s.outsideAccess())
	}
	s.giveUp(r)
}

// Reserve takes the pages of a request's prompt, of which it shares the leading ones that are cached. See [DecodeWorker].
func (s *SGLang) Reserve(request int32) (fresh int, ok, never bool) {
	r := &s.env.Requests[request]
	if int(r.Input) > s.total {
		return 0, false, true
	}
	s.leaveRun()
	pages, end := s.tree.Match(s.sequence(request), int(r.Input/s.page), s.outsideAccess())
	s.tree.Lock(end)
	fresh = int(s.roundUp(r.Input)) - pages*int(s.page)
	if fresh > s.available()-s.promisedToLoads() {
		s.tree.Unlock(end)
		return 0, false, false
	}
	s.evict(fresh)
	s.free -= fresh
	r.Worker = s.index
	r.blocks, r.locked, r.computed = int32(pages), end, s.roundUp(r.Input)
	return fresh, true, false
}

// Cancel gives up the room that Reserve took for a request whose prompt was rejected. The worker must be idle.
func (s *SGLang) Cancel(request int32) {
	s.leaveRun()
	s.release(&s.env.Requests[request])
}

// Activate lets a request whose reserved prompt has arrived decode. See [DecodeWorker].
func (s *SGLang) Activate(request int32) (gaveBack bool) {
	s.leaveRun()
	r := &s.env.Requests[request]
	free := s.free
	s.free += int(r.computed - s.allocated(r.Input))
	r.computed = r.Input
	if s.env.Rules.ArrivalCachedAtOnce {
		s.cache(request, r, s.outsideAccess(), false)
	}
	r.State, r.handedOver = Waiting, true
	s.queued.add(r)
	s.handoff.arrived.pushBack(request)
	return s.free > free
}

// Await tells that a request waits for room, or no longer does. See [DecodeWorker].
func (s *SGLang) Await(request int32, waits bool) {
	s.queued.await(&s.env.Requests[request], waits)
	s.handoff.reserving = s.queued.awaited > 0
}

// Released counts the occasions on which the worker gave up KV.
func (s *SGLang) Released() int64 { return s.handoff.released }

// CutShort ends a run with the first pass that ends at the given time or later, and returns when that is.
func (s *SGLang) CutShort(at float64) float64 {
	if s.run.active {
		s.run.cut(at)
	}
	return s.run.end
}

// handoffFirst reports whether prompts wait until reservations and requests that have arrived are served.
func (s *SGLang) handoffFirst() bool { return s.handoff.reserving || s.handoff.arrived.len() > 0 }

// admitArrived makes requests whose prompt has arrived decode.
func (s *SGLang) admitArrived(now float64) {
	for s.handoff.arrived.len() > 0 && len(s.running) < s.maxSeqs {
		id := s.handoff.arrived.popFront()
		r := &s.env.Requests[id]
		s.noteAdmission(now, r, 0)
		if !s.env.Rules.ArrivalCachedAtOnce {
			s.cache(id, r, s.outsideAccess(), false)
			s.handoff.released++ // what is shared from now on counts
		}
		s.queued.remove(r)
		r.State = Running
		s.join(id, r)
		s.pass.progress = true
	}
}
