package engine

import (
	"cmp"
	"slices"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// makeRoomToDecode retracts running requests until those that are left have room for their next tokens, and evicts what
// is in the way.
func (s *SGLang) makeRoomToDecode(now float64) {
	for s.mayRetract() && !s.roomToDecode() {
		s.retract(now, s.victim())
		if !s.env.Rules.RetractedGoFirst {
			s.evict(int(s.roundUp(int32(len(s.running) * passesAhead))))
		}
	}
	if len(s.pass.retracted) > 0 && len(s.running) > 0 && !s.env.Rules.RetractedGoFirst {
		s.reserveByProgress()
	}
	needed := 0
	for _, id := range s.running {
		r := &s.env.Requests[id]
		needed += int(s.growth(r, s.mostTokens(r)))
	}
	s.evict(needed)
}

// mayRetract reports whether others get on when a running request gives up its KV: those that run, or that wait with room
// for what they have loaded from lower memory tiers.
func (s *SGLang) mayRetract() bool {
	return len(s.running) > 1 || len(s.running) == 1 && s.tiers.holding()
}

// reserveByProgress lets the reserve for output follow from how far the running requests are.
func (s *SGLang) reserveByProgress() {
	tokens, output := 0, 0
	for _, id := range s.running {
		r := &s.env.Requests[id]
		tokens += int(r.Tokens)
		output += int(r.Output)
	}
	s.reserve.follow(tokens+passesAhead*len(s.running), output)
}

// passesAhead is for how many tokens of each remaining request a retraction makes room.
const passesAhead = 20

// roomToDecode reports whether there is room for the next tokens of all running requests and for the pages that they
// begin.
func (s *SGLang) roomToDecode() bool {
	needed, growth := 0, 0
	for _, id := range s.running {
		r := &s.env.Requests[id]
		most := s.mostTokens(r)
		needed += int(s.growth(r, most))
		growth += int(s.roundUp(r.computed+most) - s.roundUp(r.computed))
	}
	available := s.available()
	return available >= needed && max(0, available-s.slack()) >= growth
}

// mostTokens is the most that a running request may get in this pass.
func (s *SGLang) mostTokens(r *Request) int32 {
	return min(1+s.speculation.drafts, r.Output-r.Tokens)
}

// victim returns the place in running of the request that gives up its KV first: one with the least output.
func (s *SGLang) victim() int {
	if !s.env.Rules.RetractedGoFirst {
		if len(s.pass.retracted) == 0 {
			s.sortByProgress()
		}
		return len(s.running) - 1
	}
	least := 0
	for i, id := range s.running {
		if s.env.Requests[id].Tokens < s.env.Requests[s.running[least]].Tokens {
			least = i
		}
	}
	return least
}

// sortByProgress sorts running requests by their output, most first, those that have equally much by their prompts,
// shortest first.
func (s *SGLang) sortByProgress() {
	slices.SortStableFunc(s.running, func(a, b int32) int {
		p, q := &s.env.Requests[a], &s.env.Requests[b]
		return cmp.Or(cmp.Compare(q.Tokens, p.Tokens), cmp.Compare(p.Input, q.Input))
	})
	for _, id := range s.running {
		s.joined++
		s.env.Requests[id].joined = s.joined
	}
}

// retract takes a running request's KV. It keeps its tokens and waits again.
func (s *SGLang) retract(now float64, place int) {
	id := s.running[place]
	s.running = append(s.running[:place], s.running[place+1:]...)
	r := &s.env.Requests[id]
	if s.env.Rules.RetractionLosesDuplicates {
		s.release(r)
	} else {
		s.giveUp(r)
	}
	s.env.stall(r, now)
	r.State = Preempted
	s.queued.add(r)
	s.pass.retracted = append(s.pass.retracted, id)
	s.pass.progress = s.pass.progress || s.tiers.holding() // those may go on now
	s.preemptions++
}

// release gives up what a request holds apart from duplicates: its lock and what is not in the tree.
func (s *SGLang) release(r *Request) {
	s.free += int(s.allocated(r.computed) - r.blocks*s.page)
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
	for r.burst > 0 && int(s.growth(r, r.burst)) > s.free {
		r.burst--
	}
	if r.burst <= 0 {
		return
	}
	s.free -= int(s.growth(r, r.burst))
	s.emitted = append(s.emitted, id)
	at := decodeAccess(r, s.pass.number)
	for range r.burst {
		r.Tokens++
		r.computed++
		if r.computed%s.page == 0 && s.env.Role != Prefill && s.env.Rules.OutputCachedAtOnce {
			s.cache(id, r, at, true)
		}
	}
	if r.Tokens == r.Output {
		s.complete(id, r, at)
	}
}

// growthOfFirst is the room that the KV of the first tokens takes which come out of this pass's prompts. The last token of
// a request needs none then.
func (s *SGLang) growthOfFirst() int {
	growth := 0
	for _, id := range s.pass.batch {
		if r := &s.env.Requests[id]; r.computed == r.length() && r.Tokens+1 < r.Output {
			growth += int(s.growth(r, 1))
		}
	}
	return growth
}

// makeRoomForFirst evicts what is in the way of the tokens that come out of this pass's prompts.
func (s *SGLang) makeRoomForFirst() {
	if !s.env.Rules.DecodeInPrefillPass {
		s.evict(s.growthOfFirst())
	}
}

// emitFirst gives the requests whose prompts the pass has finished the token that comes out of that. If there is no room
// for all, those that go on get it when they decode.
func (s *SGLang) emitFirst() {
	growth := s.growthOfFirst()
	s.evict(growth)
	room := growth <= s.free
	kept := s.running[:0]
	for _, id := range s.running {
		r := &s.env.Requests[id]
		if r.pass != s.pass.number {
			kept = append(kept, id)
			continue
		}
		if last := r.Tokens+1 >= r.Output; last || room {
			s.emitOne(id, r, last)
		}
		if r.State != Completed {
			kept = append(kept, id)
		}
	}
	s.running = kept
}

// emitOne gives a request the token that comes out of its prompt.
func (s *SGLang) emitOne(id int32, r *Request, last bool) {
	r.burst = min(1, r.Output)
	s.emitted = append(s.emitted, id)
	r.Tokens += r.burst
	if last {
		s.complete(id, r, decodeAccess(r, s.pass.number))
		return
	}
	s.free -= int(s.growth(r, 1))
	r.computed++
}

// complete ends a request, whose pages stay cached. On a prefill worker it goes on holding what it has.
func (s *SGLang) complete(id int32, r *Request, at uint64) {
	r.State = Completed
	s.tiers.noteFinished(s.sequence(id), int(r.computed/s.page))
	if s.env.Role == Prefill {
		return
	}
	if !s.env.Rules.OutputCachedAtOnce && r.computed/s.page > r.blocks {
		s.cache(id, r, at, false)
	} else {
		s.tree.Touch(r.locked, at)
	}
	s.giveUp(r)
}

// giveUp releases a request and what it holds twice.
func (s *SGLang) giveUp(r *Request) {
	s.free += int(r.duplicates)
	s.release(r)
}

// requeueRetracted puts retracted requests back into the waiting queue, the first one first, and lets the reserve follow
// from what happened.
func (s *SGLang) requeueRetracted() {
	if !s.env.Rules.RetractedGoFirst {
		for _, id := range s.pass.retracted {
			s.waiting.pushBack(id)
		}
		if len(s.pass.retracted) == 0 {
			s.reserve.decay(1)
		}
		return
	}
	for i := len(s.pass.retracted) - 1; i >= 0; i-- {
		s.waiting.pushFront(s.pass.retracted[i])
	}
	if s.pass.outOfRoom || len(s.pass.retracted) > 0 {
		s.reserve.reset()
	}
	s.reserve.decay(1)
}
