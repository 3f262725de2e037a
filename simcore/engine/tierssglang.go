package engine

// This file is what the SGLang-style scheduler does with memory tiers below that of the GPU. What it loads is put into the
// tree when it is there. A request that has loaded something goes before all others until its prompt is computed.

// tellEvicted tells the tiers below what has left the tree, at the start of the pass that takes its room, and tellCached
// what has come, at the end of the pass that computed it.
func (s *SGLang) tellEvicted(now float64) {
	if s.tiers != nil {
		s.tiers.follow(now, s.tree.TakeEvicted())
	}
}

func (s *SGLang) tellCached(now float64) {
	if s.tiers != nil {
		s.tiers.follow(now, s.tree.TakeCached())
	}
}

// promisedToLoads is the room that requests still need, with their output, that hold some for what they load.
func (s *SGLang) promisedToLoads() int {
	if s.tiers == nil {
		return 0
	}
	promised := int32(0)
	for _, id := range s.tiers.reserved {
		r := &s.env.Requests[id]
		if promised += s.promised(r); !r.loaded {
			promised += s.roundUp(r.length()) - (r.blocks+r.loading)*s.page + s.expectedOutput(r)
		}
	}
	return int(promised)
}

// promised is the room that is kept for what a request still needs which has loaded something.
func (s *SGLang) promised(r *Request) int32 {
	if !r.loaded {
		return 0
	}
	return s.roundUp(r.length()) - s.roundUp(r.computed) + s.expectedOutput(r)
}

// besideLoads returns what a request needs beside a chunk, and what there is, where others hold room for what they load: its
// cached pages then count as well, which cannot be evicted any more, and so does all that others have taken.
func (s *SGLang) besideLoads(id int32, r *Request, c chunk, left *budget) (need int32, room float64) {
	if !s.tiers.holding() {
		return 0, left.total
	}
	if r.computed == 0 {
		need = int32(s.tree.Unlocked(s.sequence(id), c.cached)) * s.page
	}
	return need, min(left.total, float64(s.available()-s.promisedToLoads())) + float64(s.promised(r))
}

// expectedOutput is how many tokens of output room is looked for when a prompt is admitted.
func (s *SGLang) expectedOutput(r *Request) int32 { return min(r.Output-r.Tokens, s.limits.clip) }

// load begins to load what lower tiers have of the head of the waiting queue beyond its cached pages, if that is worth it
// and there is room for all of the request. It reports whether it did.
func (s *SGLang) load(now float64, id int32, r *Request, c chunk, left *budget) bool {
	if !s.tiers.mayLoad(r) || r.computed > 0 {
		return false
	}
	sequence := s.sequence(id)
	rest := s.roundUp(r.length()) - int32(c.cached-s.tree.Unlocked(sequence, c.cached))*s.page + s.expectedOutput(r)
	if float64(rest) >= min(left.total, float64(s.available()-s.promisedToLoads())) {
		return false
	}
	s.tellEvicted(now)
	blocks := s.tiers.find(now, sequence, c.cached, int((r.length()-1)/s.page))
	if blocks == 0 {
		return false
	}
	pages, node := s.tree.Match(sequence, c.cached, s.prefillAccess(len(s.pass.batch)))
	s.tree.Lock(node)
	r.blocks, r.locked = int32(pages), node
	atOnce := s.tiers.begin(id, r, now, blocks)
	s.evict(blocks * int(s.page))
	s.free -= blocks * int(s.page)
	left.total -= float64(rest)
	s.waiting.popFront()
	if atOnce {
		s.settleLoad(id, r)
		left.total += float64(rest)
	}
	return true
}

// Loaded lets a request go on whose pages are there. See [TierWorker].
func (s *SGLang) Loaded(request int32, now float64) (end float64) {
	r := &s.env.Requests[request]
	r.LoadWaitMs += now - r.loadBegunMs
	s.settleLoad(request, r)
	return s.CutShort(now)
}

// settleLoad puts what a request has loaded into the tree, and the request back into the queue.
func (s *SGLang) settleLoad(id int32, r *Request) {
	r.computed = (r.blocks + r.loading) * s.page
	s.cache(id, r, s.outsideAccess(), false)
	s.tiers.enqueue(&s.waiting, id, r)
}

// loadedWaits reports whether a request is at the head of the queue that has loaded something.
func (s *SGLang) loadedWaits() bool {
	return s.waiting.len() > 0 && s.env.Requests[s.waiting.front()].loaded
}
