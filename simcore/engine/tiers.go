package engine

import (
	"slices"

	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// This file is what the vLLM-style scheduler does with memory tiers below that of the GPU. A waiting request whose turn it
// is may find a longer part of its prompt there. If that is worth loading it takes the blocks that it shares and room for
// those that come, and waits outside of the queue; when they are there it goes back, to the head of the queue. What it
// still needs is kept for it, so that requests that hold blocks without running cannot keep each other from running.

// TierWorker is a worker that loads KV blocks from lower memory tiers.
type TierWorker interface {
	Worker
	// Loaded tells that the KV blocks that a request waits for are there, while what Start began may be under way. It
	// returns when that now ends: a run is cut at the first pass end from then on.
	Loaded(request int32, now float64) (end float64)
}

// tierAccess is what a worker does with the tiers below it.
type tierAccess struct {
	*tiers.Hierarchy
	worker  int // as the hierarchy numbers it
	onEvict bool
	onboard string
	// reserved are the requests that hold blocks for what they load, until they are admitted.
	reserved []int32
	begun    int64    // counts loads
	finished []uint32 // blocks of requests that the pass has completed, to be copied at its end
	pass     perfmodel.Pass
}

// newTierAccess returns what a worker does with the tiers of its environment; nil when there are none.
func newTierAccess(env *Environment) *tierAccess {
	if env.Tiers == nil || !env.Config.EnablePrefixCaching {
		return nil
	}
	return &tierAccess{
		Hierarchy: env.Tiers,
		onEvict:   env.TierConfig.OffloadPolicy == tiers.OffloadOnEvict,
		onboard:   env.TierConfig.OnboardPolicy,
	}
}

// resetTiers connects a worker with an empty cache to the tiers below it.
func (v *VLLM) resetTiers() {
	if v.tiers == nil {
		return
	}
	v.tiers.worker = v.env.FirstTierWorker + int(v.index)
	v.tiers.reserved = v.tiers.reserved[:0]
	if v.tiers.onEvict {
		v.cache.NoteChanges()
	}
}

// tellTiers tells the tiers below what has come to the GPU's memory, and what has left it and is copied down.
func (v *VLLM) tellTiers(now float64) {
	if v.tiers == nil {
		return
	}
	if changes := v.cache.TakeChanges(); len(changes) > 0 {
		v.tiers.Follow(v.tiers.worker, now, changes)
	}
}

// noteFinished notes the blocks of a completed request, the last one first, which is used least again.
func (v *VLLM) noteFinished(id int32, r *Request) {
	if v.tiers == nil || v.tiers.onEvict {
		return
	}
	s := v.env.sequence(id)
	for i := int(r.blocks) - 1; i >= 0; i-- {
		v.tiers.finished = append(v.tiers.finished, s.At(i))
	}
}

// offloadFinished copies the blocks of requests down that are completed at the end of a pass.
func (v *VLLM) offloadFinished(now float64) {
	if v.tiers != nil && len(v.tiers.finished) > 0 {
		v.tiers.Offload(v.tiers.worker, now, v.tiers.finished)
		v.tiers.finished = v.tiers.finished[:0]
	}
}

// holdsForLoads reports whether requests that do not run hold blocks for what they load.
func (v *VLLM) holdsForLoads() bool { return v.tiers != nil && len(v.tiers.reserved) > 0 }

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
	if v.tiers == nil || r.loaded || r.materialised() || v.pass.budget == 0 || v.tiers.onboard == tiers.OnboardNever {
		return false
	}
	v.tellTiers(now)
	t, s := v.tiers, v.env.sequence(id)
	most := int(v.shareable(r))
	resident, _ := v.cache.Match(s, most)
	blocks := v.worthLoading(resident, t.Find(t.worker, now, s, resident, most))
	if blocks == 0 {
		return false
	}
	t.begun++
	r.blocks, r.loading, r.loadTurn, r.loadBegunMs = int32(resident), int32(blocks), t.begun, now
	t.reserved = append(t.reserved, id)
	atOnce := t.Load(t.worker, id, now, blocks)
	v.cache.Hold(s, 0, resident, resident, blocks) // there is room for that
	v.waiting.remove(at)
	if atOnce {
		v.settleLoad(id, r)
	}
	return true
}

// worthLoading returns how many of the blocks that lower tiers have after some that are cached are to be loaded.
func (v *VLLM) worthLoading(cached int, choices []tiers.Choice) int {
	for i := len(choices) - 1; i >= 0; i-- {
		c := choices[i]
		if v.tiers.onboard == tiers.OnboardAlways || c.PredictedMs < v.predictedPrefillMs(cached, cached+c.Blocks) {
			return c.Blocks
		}
	}
	return 0
}

// predictedPrefillMs predicts how long computing the blocks of one prompt from one (inclusive) to another (exclusive)
// takes in a pass of its own.
func (v *VLLM) predictedPrefillMs(from, to int) float64 {
	before, after := from*int(v.blockSize), to*int(v.blockSize)
	pass := &v.tiers.pass
	pass.Prefill = perfmodel.Prefill{
		Requests: 1, Length: after, Prefix: before, Tokens: after - before,
		Chunks: append(pass.Prefill.Chunks[:0], perfmodel.Chunk{Before: before, Length: after}),
	}
	return perfmodel.Quantise(v.env.Model.Price(pass).PrefillMs, v.env.Config.SpeedupRatio).Ms()
}

// Loaded lets a request go on whose blocks are there. See [TierWorker].
func (v *VLLM) Loaded(request int32, now float64) (end float64) {
	r := &v.env.Requests[request]
	r.LoadWaitMs += now - r.loadBegunMs
	v.settleLoad(request, r)
	if v.run.active {
		v.run.cut(now)
	}
	return v.run.end
}

// settleLoad gives the blocks that a request has loaded their identity, and puts it at the head of the queue, after others
// that have loaded theirs and whose turn was before.
func (v *VLLM) settleLoad(id int32, r *Request) {
	for range r.loading {
		v.cache.ReleaseAnonymous()
	}
	v.cache.Hold(v.env.sequence(id), int(r.blocks), int(r.blocks), int(r.blocks+r.loading), 0) // there is room for that
	r.LoadedTokens += r.loading * v.blockSize
	r.blocks, r.loaded = r.blocks+r.loading, true
	at := 0
	for at < v.waiting.len() && v.env.Requests[v.waiting.at(at)].loaded && v.env.Requests[v.waiting.at(at)].loadTurn < r.loadTurn {
		at++
	}
	v.waiting.insert(at, id)
	v.blocked = false
}

// afterLoaded is the place in the waiting queue after the requests that have loaded what they need.
func (v *VLLM) afterLoaded() int {
	at := 0
	if v.holdsForLoads() {
		for at < v.waiting.len() && v.env.Requests[v.waiting.at(at)].loaded {
			at++
		}
	}
	return at
}

// countTierHits notes where an admitted request found its cached tokens.
func (v *VLLM) countTierHits(id int32, r *Request, cached int32) {
	if v.tiers == nil {
		return
	}
	v.tiers.CountAdmission(r.length(), max(0, cached-r.loading*v.blockSize))
	if r.loaded {
		v.tiers.reserved = slices.DeleteFunc(v.tiers.reserved, func(other int32) bool { return other == id })
		r.loaded, r.loading = false, 0
	}
}
