package engine

import (
	"slices"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// This file is what schedulers have in common that use memory tiers below that of the GPU; tiersvllm.go and tierssglang.go
// have the rest. A waiting request whose turn it is may find a longer part of its prompt there. If that is worth loading it
// takes the blocks that it shares and room for those that come, and waits outside of the queue; when they are there it goes
// back, to the head of the queue. What it still needs is kept for it, so that requests that hold blocks without running
// cannot keep each other from running.

// TierWorker is a worker that loads KV blocks from lower memory tiers.
type TierWorker interface {
	Worker
	// Loaded tells that the KV blocks that a request waits for are there, while what Start began may be under way. It
	// returns when that now ends: a run is cut at the first pass end from then on.
	Loaded(request int32, now float64) (end float64)
}

// tierAccess is what a worker does with the tiers below it; nil without any.
type tierAccess struct {
	*tiers.Hierarchy
	env     *Environment
	worker  int // as the hierarchy numbers it
	onEvict bool
	onboard string
	// reserved are the requests that hold blocks for what they load, until they have what they still need.
	reserved []int32
	begun    int64    // counts loads
	finished []uint32 // blocks of requests that the pass has completed, to be copied at its end
	pass     perfmodel.Pass
}

// newTierAccess returns what a worker does with the tiers of its environment.
func newTierAccess(env *Environment) *tierAccess {
	if env.Tiers == nil {
		return nil
	}
	return &tierAccess{
		Hierarchy: env.Tiers,
		env:       env,
		onEvict:   env.TierConfig.OffloadPolicy == tiers.OffloadOnEvict,
		onboard:   env.TierConfig.OnboardPolicy,
	}
}

// reset connects the worker with the given number in the tiers, whose cache is empty. It reports whether that has to note
// what it evicts.
func (t *tierAccess) reset(worker int) (notes bool) {
	if t == nil {
		return false
	}
	t.worker = worker
	t.reserved, t.finished = t.reserved[:0], t.finished[:0]
	return t.onEvict
}

// follow tells the tiers what has come to the GPU's memory, and what has left it and is copied down.
func (t *tierAccess) follow(now float64, changes []kvcache.Change) {
	if len(changes) > 0 {
		t.Follow(t.worker, now, changes)
	}
}

// noteFinished notes the first blocks of a completed request, the last one first, which is used least again.
func (t *tierAccess) noteFinished(s kvcache.Sequence, blocks int) {
	if t == nil || t.onEvict {
		return
	}
	first := len(t.finished)
	for id := range s.IDs(0, blocks) {
		t.finished = append(t.finished, id)
	}
	slices.Reverse(t.finished[first:])
}

// offloadFinished copies the blocks of requests down that are completed at the end of a pass.
func (t *tierAccess) offloadFinished(now float64) {
	if t != nil && len(t.finished) > 0 {
		t.Offload(t.worker, now, t.finished)
		t.finished = t.finished[:0]
	}
}

// holding reports whether requests that do not run hold blocks for what they load.
func (t *tierAccess) holding() bool { return t != nil && len(t.reserved) > 0 }

// loads reports whether a request waits for blocks that it loads.
func (t *tierAccess) loads() bool {
	return t.holding() && slices.ContainsFunc(t.reserved, func(id int32) bool { return !t.env.Requests[id].loaded })
}

// mayLoad reports whether a waiting request may load anything now.
func (t *tierAccess) mayLoad(r *Request) bool {
	return t != nil && !r.loaded && t.onboard != tiers.OnboardNever
}

// find looks for the blocks of a sequence that follow cached ones, up to the given number of blocks, and returns how many of
// them are to be loaded.
func (t *tierAccess) find(now float64, s kvcache.Sequence, cached, most int) (blocks int) {
	choices := t.Find(t.worker, now, s, cached, most)
	for i := len(choices) - 1; i >= 0; i-- {
		c := choices[i]
		if t.onboard == tiers.OnboardAlways || c.PredictedMs < t.predictedPrefillMs(cached, cached+c.Blocks) {
			return c.Blocks
		}
	}
	return 0
}

// predictedPrefillMs predicts how long computing the blocks of one prompt from one (inclusive) to another (exclusive)
// takes in a pass of its own.
func (t *tierAccess) predictedPrefillMs(from, to int) float64 {
	before, after := from*t.env.Config.BlockSize, to*t.env.Config.BlockSize
	t.pass.Prefill = perfmodel.Prefill{
		Requests: 1, Length: after, Prefix: before, Tokens: after - before,
		Chunks: append(t.pass.Prefill.Chunks[:0], perfmodel.Chunk{Before: before, Length: after}),
	}
	return perfmodel.Quantise(t.env.Model.Price(&t.pass).PrefillMs, t.env.Config.SpeedupRatio).Ms()
}

// begin begins to load blocks that find has found, for which the request has room. It reports whether they are there at
// once.
func (t *tierAccess) begin(id int32, r *Request, now float64, blocks int) (atOnce bool) {
	t.begun++
	r.loading, r.loadTurn, r.loadBegunMs = int32(blocks), t.begun, now
	t.reserved = append(t.reserved, id)
	return t.Load(t.worker, id, now, blocks)
}

// enqueue puts a request whose blocks are there at the head of a queue, after others that have loaded theirs and whose turn
// was before.
func (t *tierAccess) enqueue(q *queue, id int32, r *Request) {
	r.loaded = true
	r.LoadedTokens += r.loading * int32(t.env.Config.BlockSize)
	at := 0
	for at < q.len() && t.env.Requests[q.at(at)].loaded && t.env.Requests[q.at(at)].loadTurn < r.loadTurn {
		at++
	}
	q.insert(at, id)
}

// afterLoaded is the place in a queue after the requests that have loaded what they need.
func (t *tierAccess) afterLoaded(q *queue) int {
	at := 0
	if t.holding() {
		for at < q.len() && t.env.Requests[q.at(at)].loaded {
			at++
		}
	}
	return at
}

// countAdmission notes where a request found its cached tokens.
func (t *tierAccess) countAdmission(r *Request, cached int32) {
	if t != nil {
		t.CountAdmission(r.length(), max(0, cached-r.loading*int32(t.env.Config.BlockSize)))
		r.loading = 0
	}
}

// settled takes a request from those for which something is kept.
func (t *tierAccess) settled(id int32, r *Request) {
	if r.loaded {
		t.reserved = slices.DeleteFunc(t.reserved, func(other int32) bool { return other == id })
		r.loaded = false
	}
}
