package engine

import (
	"cmp"
	"slices"

	"github.com/servegrid/servegrid/simcore/kvcache"
)

// budget is what is left for the prompts of a pass, in tokens.
type budget struct {
	total  float64 // room in the pool
	input  int32   // prompt tokens of the batch
	chunk  int32   // those of a pass
	places int     // requests
}

// prefill forms the batch of prompts that the pass computes, from the head of the waiting queue for as long as there is
// room for them.
func (s *SGLang) prefill(now float64) {
	left := budget{places: s.maxSeqs - len(s.running), input: s.limits.maxPrefill, chunk: s.limits.chunk}
	s.pricer.setPrefill(prefillWork{})
	if s.waiting.len() == 0 || left.places <= 0 || s.handoffFirst() && !s.loadedWaits() {
		return
	}
	if s.limits.lpm {
		s.sortByPrefix()
	}
	left.total = s.roomForPrompts()
	for left.places > 0 && s.waiting.len() > 0 && s.admit(now, &left) && left.chunk > 0 {
		left.places--
	}
	if left.places > 0 && left.chunk <= 0 {
		s.pass.limit = LimitCompute
	}
	if s.env.Role != Decode { // what a decode worker computes again takes no time (§12.2)
		s.setPrefill()
	}
}

// setPrefill tells the timing model what the pass computes of prompts.
func (s *SGLang) setPrefill() {
	s.pricer.setPrefill(s.pass.prefill)
	if !s.env.Model.PerRequest() {
		return
	}
	for _, id := range s.pass.batch {
		r := &s.env.Requests[id]
		s.pricer.addChunk(r.before, r.after)
	}
}

// roomForPrompts is the part of the pool that is not needed by running requests, as far as can be expected.
func (s *SGLang) roomForPrompts() float64 {
	expected := 0.0
	for _, id := range s.running {
		r := &s.env.Requests[id]
		expected += float64(float64(min(r.Output-r.Tokens, s.limits.clip)) * s.reserve.now)
	}
	return float64(s.available()-s.slack()-s.promisedToLoads()) - expected
}

// admit adds the head of the waiting queue, or the next chunk of it, to the batch. It returns false when there is no
// room for it.
func (s *SGLang) admit(now float64, left *budget) bool {
	id := s.waiting.front()
	r := &s.env.Requests[id]
	if s.handoffFirst() && !r.loaded {
		return false
	}
	if s.neverFits(r) {
		s.waiting.popFront()
		s.queued.remove(r)
		r.State = Rejected
		s.signals = append(s.signals, Signal{Request: id, Ended: true})
		left.places++ // it takes none
		return true
	}
	c := s.nextChunk(id, r, left)
	if c.tokens == 0 {
		s.pass.limit = LimitCompute
		return false
	}
	if s.load(now, id, r, c, left) {
		left.places++ // it takes none yet
		return true
	}
	charge, output, kept := s.roundUp(c.tokens), int32(0), s.promised(r)
	more, room := s.besideLoads(id, r, c, left)
	if c.last {
		output = s.expectedOutput(r)
	}
	if float64(charge+output+more) >= room {
		return false
	}
	if charge > left.input || charge > left.chunk {
		s.pass.limit = LimitCompute
		return false
	}
	first, held := r.computed == 0 || r.loading > 0, s.roundUp(r.computed)
	prefix, ok := s.take(id, r, c)
	if !ok {
		return false
	}
	if !s.env.Rules.ChunkBeforeMatch {
		held = prefix
	}
	if first || s.env.Rules.ChunksCountAsReuse {
		s.noteAdmission(now, r, prefix)
		s.tiers.countAdmission(r, prefix)
	}
	if c.last {
		s.tiers.settled(id, r)
	}
	s.waiting.popFront()
	if r.State != Running {
		s.queued.remove(r)
		r.State = Running
	}
	s.pass.batch = append(s.pass.batch, id)
	s.pass.progress = true
	r.pass, r.before, r.after = s.pass.number, prefix, r.computed
	s.pass.prefill.add(r.before, r.after, r.length())
	left.total -= float64(s.roundUp(r.computed) - held + output + more - kept + s.promised(r))
	left.input -= charge
	left.chunk -= charge
	return true
}

// neverFits reports whether a request that has not run yet exceeds the pool or the context.
func (s *SGLang) neverFits(r *Request) bool {
	if s.env.Rules.DecodeInPrefillPass || r.State != Waiting {
		return false
	}
	return int(r.Input) > s.total || s.env.Config.ContextLength > 0 && int(r.Input) >= s.env.Config.ContextLength
}

// chunk is what a pass computes of a prompt.
type chunk struct {
	tokens int32
	last   bool // of the prompt
	// cached is the number of pages before it that are in the cache, where that is known beforehand.
	cached int
}

// nextChunk returns what is computed next of a request as far as the budget of the pass allows.
func (s *SGLang) nextChunk(id int32, r *Request, left *budget) chunk {
	need := r.length() - r.computed
	if s.env.Rules.ChunkBeforeMatch {
		c := chunk{tokens: need}
		if need > s.limits.chunk {
			c.tokens = min(need, left.chunk/s.page*s.page)
		}
		c.last = c.tokens == need
		return c
	}
	c := chunk{}
	if r.computed == 0 {
		c.cached = s.tree.Lookup(s.sequence(id), int((need-1)/s.page))
		need -= int32(c.cached) * s.page
	}
	if c.tokens = need; need > left.chunk {
		c.tokens = left.chunk / s.page * s.page
	}
	c.last = c.tokens == need
	return c
}

// take makes room for the next chunk of a request and gives it to it. It returns the number of tokens before the chunk
// whose KV exists already, in the cache when it is the first one.
func (s *SGLang) take(id int32, r *Request, c chunk) (prefix int32, ok bool) {
	if s.env.Rules.ChunkBeforeMatch {
		s.evict(int(c.tokens)) // whatever part of it is cached
	}
	end := r.computed + int32(c.cached)*s.page + c.tokens
	prefix = r.computed
	pages, node := int(r.blocks), r.locked
	if r.computed == 0 {
		most := int(end / s.page)
		if !s.env.Rules.ChunkBeforeMatch {
			most = c.cached
		}
		pages, node = s.tree.Match(s.sequence(id), most, s.prefillAccess(len(s.pass.batch)))
		s.tree.Lock(node)
		prefix = int32(pages) * s.page
	}
	needed := int(s.allocated(end) - prefix)
	if !s.env.Rules.ChunkBeforeMatch && needed <= s.available() {
		s.evict(needed)
	}
	if needed > s.free {
		if r.computed == 0 {
			s.tree.Unlock(node)
		}
		s.pass.outOfRoom = true
		return 0, false
	}
	s.free -= needed
	r.blocks, r.locked, r.computed = int32(pages), node, end
	return prefix, true
}

func (s *SGLang) noteAdmission(now float64, r *Request, prefix int32) {
	if r.AdmittedMs == Never {
		r.admitFirst(now, prefix)
	}
	s.env.noteReuse(r, prefix)
}

// cachePrompts puts what was computed of prompts into the tree, unfinished ones first, which go back to the front of the
// waiting queue. Finished ones decode from now on.
func (s *SGLang) cachePrompts(now float64) error {
	access := s.prefillAccess(len(s.pass.batch) + 1)
	for _, id := range s.pass.batch {
		if r := &s.env.Requests[id]; r.computed < r.length() {
			s.cache(id, r, access, false)
			access++
			s.waiting.pushFront(id)
		}
	}
	for _, id := range s.pass.batch {
		r := &s.env.Requests[id]
		if r.computed < r.length() {
			continue
		}
		if r.Output == 0 && s.env.Rules.OutputZeroNeverEnds && !s.env.Capped {
			return r.neverEnds(now)
		}
		if s.env.Role == Prefill && s.env.Rules.SourceCachedAtRelease {
			s.tree.Announce(s.sequence(id), int(r.blocks), int(r.computed/s.page))
		} else {
			s.cache(id, r, access, false)
			access++
		}
		s.join(id, r)
	}
	return nil
}

// join makes a request whose prompt is computed decode.
func (s *SGLang) join(id int32, r *Request) {
	s.joined++
	r.joined = s.joined
	s.running = append(s.running, id)
}

// cache puts the full pages of a request into the tree and locks them. What was there already, because another request
// computed the same, is given back, or with a pool of tokens stays with the request as well until it ends.
func (s *SGLang) cache(id int32, r *Request, at uint64, single bool) {
	pages := r.computed / s.page
	if pages == r.blocks && s.tree.PageWise || !s.caching {
		return
	}
	var added int
	r.locked, added = s.tree.Insert(s.sequence(id), r.locked, int(pages), at, single)
	duplicates := (pages - r.blocks - int32(added)) * s.page
	if s.env.Rules.TokenPool {
		r.duplicates += duplicates
	} else {
		s.free += int(duplicates)
	}
	r.blocks = pages
}

// lpmOrder is the memory of sortByPrefix.
type lpmOrder struct {
	keys    []lpmKey
	leaders []int32
}

type lpmKey struct {
	request  int32
	deferred bool // another request with the same beginning goes first
	cached   int32
}

// The longest-prefix-match policy (engine specification §8.2, step 2).
const (
	maxSorted      = 128 // longer queues stay as they are
	fewCached      = 32  // requests with so few cached tokens may wait for one with the same beginning
	sharedDeferred = 32  // which is that many tokens
)

// sortByPrefix sorts the waiting queue by the length of the cached prefix, longest first. Of requests with next to
// nothing cached that begin alike all but the first go last, so that they find the beginning cached.
func (s *SGLang) sortByPrefix() {
	n := s.waiting.len()
	if n > maxSorted {
		return
	}
	o := &s.order
	o.keys, o.leaders = o.keys[:0], o.leaders[:0]
	for i := range n {
		id := s.waiting.at(i)
		key := lpmKey{request: id, cached: s.cachedPrefix(id)}
		if s.env.Requests[id].loaded {
			key.cached = unlimited
		}
		if key.cached <= fewCached {
			if key.deferred = s.sharesBeginning(id, o.leaders); !key.deferred {
				o.leaders = append(o.leaders, id)
			}
		}
		o.keys = append(o.keys, key)
	}
	slices.SortStableFunc(o.keys, func(a, b lpmKey) int {
		if a.deferred != b.deferred {
			if b.deferred {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.cached, a.cached)
	})
	for i, key := range o.keys {
		s.waiting.replace(i, key.request)
	}
}

func (s *SGLang) cachedPrefix(id int32) int32 {
	pages := s.env.Requests[id].length() / s.page
	return int32(s.tree.Lookup(s.sequence(id), int(pages))) * s.page
}

func (s *SGLang) sharesBeginning(id int32, leaders []int32) bool {
	for _, leader := range leaders {
		pages := min(s.env.Requests[id].length(), s.env.Requests[leader].length()) / s.page
		if int32(kvcache.Common(s.sequence(id), s.sequence(leader), int(pages)))*s.page >= sharedDeferred {
			return true
		}
	}
	return false
}
