package engine

// This file is what the vLLM-style scheduler does with memory tiers below that of the GPU.

// tellTiers tells the tiers below what has come to the GPU's memory and left it.
func (v *VLLM) tellTiers(now float64) {
	if v.tiers != nil {
		v.tiers.follow(now, v.cache.TakeChanges())
	}
}

// promisedToLoads is how many blocks requests still need that hold some for what they load, apart from one of them.
func (v *VLLM) promisedToLoads(except int32) int {
	if v.tiers == nil {
		return 0
	}
	promised := 0
	for _, id := range v.tiers.reserved {
		if r := &v.env.Requests[id]; id != except {
			held := r.blocks
			if !r.loaded {
				held += r.loading
			}
			promised += max(0, int(v.blocksToAdmit(r)-held))
		}
	}
	return promised
}

// load begins to load what lower tiers have of a waiting request beyond its cached blocks, if that is worth it, given
// that there is room for all of the request. It reports whether it did: what the request needs has to be looked at again
// then, or it is no longer in the queue.
func (v *VLLM) load(now float64, at int, id int32, r *Request) bool {
	if !v.tiers.mayLoad(r) || r.materialised() || v.pass.budget == 0 {
		return false
	}
	v.tellTiers(now)
	s, most := v.env.sequence(id), int(v.shareable(r))
	resident, _ := v.cache.Match(s, most)
	blocks := v.tiers.find(now, s, resident, most)
	if blocks == 0 {
		return false
	}
	r.blocks = int32(resident)
	atOnce := v.tiers.begin(id, r, now, blocks)
	v.cache.Hold(s, 0, resident, resident, blocks) // there is room for that
	v.waiting.remove(at)
	if atOnce {
		v.settleLoad(id, r)
	}
	return true
}

// Loaded lets a request go on whose blocks are there. See [TierWorker].
func (v *VLLM) Loaded(request int32, now float64) (end float64) {
	r := &v.env.Requests[request]
	r.LoadWaitMs += now - r.loadBegunMs
	v.settleLoad(request, r)
	return v.CutShort(now)
}

// settleLoad gives the blocks that a request has loaded their identity, and puts it back into the queue.
func (v *VLLM) settleLoad(id int32, r *Request) {
	for range r.loading {
		v.cache.ReleaseAnonymous()
	}
	v.cache.Hold(v.env.sequence(id), int(r.blocks), int(r.blocks), int(r.blocks+r.loading), 0) // there is room for that
	r.blocks += r.loading
	v.tiers.enqueue(&v.waiting, id, r)
	v.blocked = false
}

// countTierHits notes where an admitted request found its cached tokens. What was handed over was not looked for.
func (v *VLLM) countTierHits(id int32, r *Request, cached int32) {
	if v.tiers == nil || v.env.Role == Decode && r.State == Waiting {
		return
	}
	v.tiers.countAdmission(r, cached)
	v.tiers.settled(id, r)
}
