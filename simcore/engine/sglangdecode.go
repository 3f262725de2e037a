package engine

import "github.com/servegrid/servegrid/simcore/perfmodel"

// makeRoomToDecode retracts running requests until those that are left have room for their next tokens, and evicts what
// is in the way.
func (s *SGLang) makeRoomToDecode() {
	for len(s.running) > 1 && !s.roomToDecode() {
		s.retract(s.victim())
	}
	needed := 0
	for _, id := range s.running {
		needed += int(s.mostTokens(&s.env.Requests[id]))
	}
	s.evict(needed)
}

// roomToDecode reports whether there is room for the next tokens of all running requests and for the pages that they
// begin.
func (s *SGLang) roomToDecode() bool {
	needed, growth := 0, 0
	for _, id := range s.running {
		r := &s.env.Requests[id]
		most := s.mostTokens(r)
		needed += int(most)
		growth += int(s.roundUp(r.computed+most) - s.roundUp(r.computed))
	}
	available := s.available()
	return available >= needed && max(0, available-s.slack()) >= growth
}

// mostTokens is the most that a running request may get in this pass.
func (s *SGLang) mostTokens(r *Request) int32 {
	return min(1+s.speculation.drafts, r.Output-r.Tokens)
}

// victim returns the place in running of the request that gives up its KV first: the one with the least output.
func (s *SGLang) victim() int {
	least := 0
	for i, id := range s.running {
		if s.env.Requests[id].Tokens < s.env.Requests[s.running[least]].Tokens {
			least = i
		}
	}
	return least
}

// retract takes a running request's KV. It keeps its tokens and waits again.
func (s *SGLang) retract(place int) {
	id := s.running[place]
	s.running = append(s.running[:place], s.running[place+1:]...)
	r := &s.env.Requests[id]
	if s.env.Rules.RetractionLosesDuplicates {
		s.release(r)
	} else {
		s.giveUp(r)
	}
	r.State = Preempted
	s.pass.retracted = append(s.pass.retracted, id)
	s.preemptions++
}

// release gives up what a request holds apart from duplicates: its lock and the tokens of its last, incomplete page.
func (s *SGLang) release(r *Request) {
	s.free += int(r.computed - r.blocks*s.page)
	s.tree.Unlock(r.locked)
	s.handoff.released++
	r.locked, r.blocks, r.computed, r.duplicates = 0, 0, 0, 0
}

// price returns the durations of the pass's parts, when the given requests decode in it.
func (s *SGLang) price(decoding []int32) (prefill, decode perfmodel.Nanoseconds) {
	lengths := int64(0)
	for _, id := range decoding {
		lengths += int64(s.env.Requests[id].length())
	}
	s.pricer.setDecode(len(decoding), lengths, 0)
	return s.pricer.price()
}

// decode gives every running request its next tokens.
func (s *SGLang) decode() {
	kept := s.running[:0]
	for _, id := range s.running {
		r := &s.env.Requests[id]
		s.emit(id, r)
		if r.State != Completed {
			kept = append(kept, id)
		}
	}
	s.running = kept
}

// emit gives one request its next tokens, as many as it may get and there is room for.
func (s *SGLang) emit(id int32, r *Request) {
	r.burst = s.mostTokens(r)
	if s.speculation.drafts > 0 {
		r.burst = min(1+s.speculation.draw(s.speculation.drafts), r.burst)
	}
	if r.burst = min(r.burst, int32(s.free)); r.burst <= 0 {
		return
	}
	s.free -= int(r.burst)
	s.emitted = append(s.emitted, id)
	at := decodeAccess(r, s.pass.number)
	for range r.burst {
		r.Tokens++
		r.computed++
		if r.computed%s.page == 0 && s.env.Role != Prefill {
			s.cache(id, r, at, true)
		}
	}
	if r.Tokens == r.Output {
		s.complete(r, at)
	}
}

// emitFirst gives the requests whose prompts the pass has finished the token that comes out of that.
func (s *SGLang) emitFirst() {
	kept := s.running[:0]
	for _, id := range s.running {
		r := &s.env.Requests[id]
		if r.pass == s.pass.number {
			r.burst = min(1, r.Output)
			r.Tokens += r.burst
			s.emitted = append(s.emitted, id)
			if r.Tokens == r.Output {
				s.complete(r, decodeAccess(r, s.pass.number))
				continue
			}
		}
		kept = append(kept, id)
	}
	s.running = kept
}

// complete ends a request, whose pages stay cached. On a prefill worker it goes on holding what it has.
func (s *SGLang) complete(r *Request, at uint64) {
	r.State = Completed
	if s.env.Role != Prefill {
		s.tree.Touch(r.locked, at)
		s.giveUp(r)
	}
}

// giveUp releases a request and what it holds twice.
func (s *SGLang) giveUp(r *Request) {
	s.free += int(r.duplicates)
	s.release(r)
}

// requeueRetracted puts retracted requests at the front of the waiting queue, the first one first, and lets the reserve
// follow from what happened.
func (s *SGLang) requeueRetracted() {
	for i := len(s.pass.retracted) - 1; i >= 0; i-- {
		s.waiting.pushFront(s.pass.retracted[i])
	}
	if s.pass.outOfRoom || len(s.pass.retracted) > 0 {
		s.reserve.reset()
	}
	s.reserve.decay(1)
}
