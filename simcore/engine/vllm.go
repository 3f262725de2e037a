package engine

import (
	"fmt"
	"slices"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// VLLM is a worker with the vLLM-style scheduler: running requests first, then waiting ones in order as long as
// they fit, with chunked prefill, prefix caching and preemption by recomputation.
type VLLM struct {
	env       *Environment
	index     int32
	blockSize int32
	maxSeqs   int
	maxTokens int
	// guaranteesOutput admits requests only with room for their whole output; see NewTensorRTLLM.
	guaranteesOutput bool
	promised         int32 // blocks for the output of requests that are handed over and do not run yet

	cache   kvcache.Cache
	running []int32
	waiting queue
	blocked bool // the head of waiting cannot be admitted before blocks are released
	// reserving says, on a decode worker, that reservations wait for room; released counts what may give them some.
	reserving    bool
	released     int64
	reservations int64       // that were granted
	tiers        *tierAccess // nil without lower memory tiers

	pass        passState
	speculation speculation
	pricer      pricer
	run         run
	signals     []Signal
	emitted     []int32
	queued      queued
	constraint  constraint
	remnants    remnants
	latest      PassLoad // of the latest pass that was begun, while passes are collected
	joinsMs     float64  // when the next request comes that is submitted
	futile      int      // passes that preempted a request since one got a token

	preemptions int64
}

// passState is what one pass accumulates.
type passState struct {
	number    int64 // counts passes, those of runs included
	budget    int32
	preempted bool
	progress  bool
	limit     Limit // of what could be admitted
	full      bool  // it has as many requests as a pass may have
	prefill   prefillWork
}

// outcome is what scheduling one request led to.
type outcome int8

const (
	scheduled outcome = iota
	overBudget
	notScheduled
	selfPreempted
)

// NewVLLM returns an idle worker.
func NewVLLM(env *Environment, p Place) *VLLM {
	v := &VLLM{
		env:         env,
		blockSize:   int32(env.Config.BlockSize),
		maxSeqs:     limitOr(env.Config.MaxNumSeqs),
		maxTokens:   limitOr(env.Config.MaxNumBatchedTokens),
		speculation: newSpeculation(env.Config),
		pricer:      pricer{env: env},
		tiers:       newTierAccess(env),
	}
	v.Reset(p)
	return v
}

// Reset makes the worker idle with an empty cache, as another worker. Its memory is kept, and it goes on counting
// preemptions.
func (v *VLLM) Reset(p Place) {
	v.index = int32(p.Worker)
	v.cache.KeepsCopies = !v.env.Rules.SharesComputedBlocks
	v.cache.Reset(v.env.Config.NumGPUBlocks, v.env.Blocks.IDs)
	v.cache.Watch(v.env.Index, p.Seat)
	v.running, v.waiting, v.blocked, v.reserving = v.running[:0], queue{ring: v.waiting.ring}, false, false
	v.promised, v.queued, v.remnants = 0, queued{}, v.remnants[:0]
	v.pass = passState{}
	v.run.active, v.run.steady = false, false
	v.constraint.restart(v.env.Kept)
	v.speculation.start(v.index)
	if v.tiers.reset(p.Tier) {
		v.cache.NoteChanges()
	}
}

// Recycle leaves the memory of the cache to later workers.
func (v *VLLM) Recycle() { v.cache.Recycle() }

// Preemptions counts how often a request lost its blocks since the worker was made.
func (v *VLLM) Preemptions() int64 { return v.preemptions }

// Passes counts the passes since the worker was made, and those of them that lie outside of the data behind the
// timing model.
func (v *VLLM) Passes() (all, extrapolated int64) { return v.pricer.passes, v.pricer.extrapolated }

// HasWork reports whether any request waits or runs.
func (v *VLLM) HasWork() bool {
	return len(v.running) > 0 || v.waiting.len() > 0 || v.tiers.holding()
}

// Submit adds a request to the waiting queue.
func (v *VLLM) Submit(request int32) {
	r := &v.env.Requests[request]
	r.Worker, r.State = v.index, Waiting
	r.full = r.Input / v.blockSize
	v.waiting.pushBack(request)
	v.queued.add(r)
	v.constraint.waits(r.RoutedMs)
	if v.env.Passes != nil && v.run.active {
		v.env.Passes.queueChanged(v.env.Pool, v.index, v.joinsMs, v.queued)
	}
}

// mayAdmit reports whether a request that waits, or would, could be admitted by the next pass as far as is known
// without looking at it.
func (v *VLLM) mayAdmit() bool { return !v.blocked && len(v.running) < v.maxSeqs }

// Start begins what comes next at the given time: a pass, or a run of equal passes none of which starts at stop or
// later, nor at arrival or later if the request that arrives then could join. It returns when that ends. progress
// is false when there was nothing that the worker could do; it then waits for another request.
func (v *VLLM) Start(now, arrival, stop float64) (end float64, progress bool, err error) {
	if v.mayAdmit() {
		stop = min(stop, arrival)
	}
	if v.run.steady && !v.env.EveryPass && v.startRun(now, stop) {
		end, progress = v.run.end, true
		v.limitOfRun()
	} else {
		end, progress, err = v.onePass(now)
	}
	v.constraint.begin(v.pass.limit, v.pass.full, now, end)
	v.tellTiers(now)
	if progress && v.env.Passes != nil {
		v.env.Passes.begin(v.env.Pool, v.index, v.latest, &v.run.timeline)
	}
	return end, progress, err
}

// onePass computes a whole pass at its start; its tokens carry its end.
func (v *VLLM) onePass(now float64) (end float64, progress bool, err error) {
	v.leaveRun()
	v.signals = v.signals[:0]
	v.pass = passState{number: v.pass.number + 1, budget: int32(min(v.maxTokens, unlimited))}
	if err := v.scheduleRunning(now); err != nil {
		return now, false, err
	}
	if err := v.admit(now); err != nil {
		return now, false, err
	}
	v.limitOfPass()
	if v.env.Passes != nil {
		v.latest = v.passLoad()
	}
	prefill, decode, err := v.emit(now)
	if err != nil {
		return now, false, err
	}
	end = now + prefill.Ms() + decode.Ms()
	v.signals = v.env.recordTokens(v.emitted, now, end, prefill+decode, v.signals)
	v.enterRun(end)
	v.run.single(now, end)
	if len(v.emitted) > 0 || len(v.signals) > 0 {
		v.futile = 0
		return end, true, nil
	}
	return v.noToken(now, end)
}

// noToken judges a pass that gave no request anything. Passes that compute come to an end; those that take each other's
// blocks may go on for ever.
func (v *VLLM) noToken(now, end float64) (_ float64, progress bool, err error) {
	if v.pass.preempted {
		v.futile++
	}
	switch pool := v.env.Role != Aggregated; {
	case end == now && !v.pass.progress:
		return end, false, nil
	case !pool && v.futile > maxFutilePasses:
		return now, false, v.Stuck(now)
	case pool && v.futile > len(v.running)+v.waiting.len():
		v.futile = 0
		return end, false, nil // each has given up its blocks in vain; hand-offs will make room
	}
	return end, true, nil
}

// maxFutilePasses is how many passes may preempt a request while none gets a token. Requests that take turns in giving
// way to each other would do so for ever.
const maxFutilePasses = 1 << 14

// Stuck explains, when the worker has requests but nothing will ever happen, which one is to blame and why. It
// returns nil for a worker without requests.
func (v *VLLM) Stuck(now float64) error {
	for _, id := range v.running {
		if r := &v.env.Requests[id]; r.Output == 0 {
			return r.neverEnds(now)
		}
	}
	if v.waiting.len() > 0 {
		id := v.waiting.front()
		r := &v.env.Requests[id]
		needed := int(ceilDiv(r.length(), v.blockSize))
		why := fmt.Sprintf("it waits for %d KV blocks of %d tokens, and the pool has %d (engine.num_gpu_blocks)", needed, v.blockSize, v.cache.Total())
		if needed <= v.cache.Total() { // prompts that arrived from prefill workers have their blocks already
			why += fmt.Sprintf(", of which %d are free: requests behind it hold the rest, and none of them can run before it", v.cache.Free())
		}
		if !v.env.Config.EnableChunkedPrefill && int(r.Input) > v.maxTokens {
			why = fmt.Sprintf("its %d input tokens exceed the budget of a pass, %d (engine.max_num_batched_tokens), and chunked prefill is off",
				r.Input, v.maxTokens)
		}
		return &StuckError{int(r.Number), now, why}
	}
	if len(v.running) > 0 {
		return &StuckError{int(v.env.Requests[v.running[0]].Number), now, "its passes take no time and produce no token"}
	}
	return nil
}

// scheduleRunning gives running requests their next tokens, oldest first, while the budget lasts.
func (v *VLLM) scheduleRunning(now float64) error {
	// The index moves on even when an older request was preempted meanwhile: in FIFO mode one request is then
	// passed over, as in the reference.
	for i := 0; i < len(v.running) && v.pass.budget > 0; {
		got, err := v.schedule(now, v.running[i], 0)
		switch {
		case err != nil:
			return err
		case got == notScheduled, got == overBudget:
			return nil
		case got == scheduled:
			i++
		}
	}
	return nil
}

// admit moves waiting requests to running, in order, while they fit.
func (v *VLLM) admit(now float64) error {
	for !v.pass.preempted && len(v.running) < v.maxSeqs {
		v.remnants.drop()
		at, ok := v.nextWaiting()
		if !ok {
			v.blocked = v.waiting.len() > 0
			return nil
		}
		id := v.waiting.at(at)
		r := &v.env.Requests[id]
		if r.State == Waiting && v.neverFits(r) {
			v.waiting.remove(at)
			v.remnants.move(-1)
			v.queued.remove(r)
			r.State = Rejected
			v.signals = append(v.signals, Signal{Request: id, Ended: true})
			continue
		}
		cached, missing := v.lookUp(id, r)
		if missing > v.roomToAdmit(id) && (v.guaranteesOutput || !v.env.Rules.AdmitsByPreempting) {
			v.blocked = true
			return nil
		}
		if v.load(now, at, id, r) {
			continue
		}
		v.waiting.remove(at)
		v.remnants.move(-1)
		held, preemptions := r.materialised(), v.preemptions
		got, err := v.schedule(now, id, cached)
		if err != nil {
			return err
		}
		if got != scheduled {
			v.waiting.pushFront(id)
			v.remnants.move(1)
			if !held && r.materialised() {
				v.release(id, r)
			}
			if got == overBudget {
				v.pass.limit = LimitCompute
			}
			return nil
		}
		v.running = append(v.running, id)
		if v.guaranteesOutput && v.env.Role == Decode {
			v.promised -= v.outputBlocks(r)
		}
		if r.AdmittedMs == Never {
			r.admitFirst(now, cached)
		}
		v.env.noteReuse(r, cached)
		v.countTierHits(id, r, cached)
		v.queued.count(r, -1-v.remnants.of(id))
		if v.env.Rules.AdmittedStayQueued && v.preemptions > preemptions {
			v.remnants = append(v.remnants, remnant{request: id, ahead: int(v.preemptions - preemptions)})
		}
		r.State = Running
		v.pass.progress = true
		if r.used == 0 && v.pass.budget == 0 {
			v.pass.limit = LimitCompute
			return nil
		}
	}
	return nil
}

// neverFits reports whether a request that has not run yet exceeds the pool or the context.
func (v *VLLM) neverFits(r *Request) bool {
	if v.blocksToAdmit(r) > int32(v.cache.Total()) {
		return true
	}
	return v.env.Config.ContextLength > 0 && int(r.Input) >= v.env.Config.ContextLength
}

// lookUp returns the number of cached tokens of a waiting request, and how many slots it needs besides the blocks that
// other requests hold.
func (v *VLLM) lookUp(id int32, r *Request) (cached int32, missing int) {
	if r.materialised() && !r.loaded {
		return 0, 0
	}
	blocks := v.blocksToAdmit(r)
	if !v.env.Config.EnablePrefixCaching {
		return 0, int(blocks)
	}
	resident, heldBlocks := v.cache.Match(v.env.sequence(id), int(v.shareable(r)))
	if v.speculation.drafts > 0 && !v.env.Rules.FullPromptHit && resident > 0 {
		resident-- // the drafting model needs the hidden states of the last block, so that it is computed again
		heldBlocks = min(heldBlocks, resident)
	}
	cached = int32(resident) * v.blockSize
	if v.env.Rules.FullPromptHit {
		cached = min(cached, r.Input)
		heldBlocks = min(heldBlocks, int(r.Input/v.blockSize))
	}
	return cached, int(blocks) - max(heldBlocks, int(r.blocks))
}

// shareable is how many blocks of a waiting request may come from a cache.
func (v *VLLM) shareable(r *Request) int32 {
	if v.env.Rules.FullPromptHit || v.guaranteesOutput {
		return r.full
	}
	return (r.length() - 1) / v.blockSize // the last token is always computed
}

// schedule gives one request as many tokens as the budget allows and the blocks for them. cached tokens count as
// computed. When blocks run out, running requests are preempted, the request itself perhaps.
func (v *VLLM) schedule(now float64, id, cached int32) (outcome, error) {
	r := &v.env.Requests[id]
	before := r.computed + cached
	remaining := r.length() - before
	if !v.env.Config.EnableChunkedPrefill && r.Input-before > v.pass.budget {
		return overBudget, nil
	}
	want := min(remaining+r.drafts, v.pass.budget)
	if want == 0 && remaining > 0 {
		return overBudget, nil
	}
	target := before + min(want, remaining)
	for !v.hold(id, r, max(r.blocks, cached/v.blockSize), target) {
		victim, ok := v.victim()
		if !ok {
			return notScheduled, nil
		}
		if victim == id && v.isAlone() {
			return notScheduled, v.stuck(now, id, 1, ceilDiv(target, v.blockSize))
		}
		if v.env.Rules.BlocksOneByOne {
			v.holdMost(id, r, target)
		}
		v.preempt(now, victim)
		if victim == id {
			return selfPreempted, nil
		}
	}
	r.computed = target
	r.drafts = want - (target - before)
	r.pass, r.used = v.pass.number, want
	r.before, r.after = min(before, r.Input), min(target, r.Input)
	if v.env.Role == Decode && !v.env.RoleUnknown {
		r.before = r.after // it charges nothing for prompts
	}
	if r.after > r.before {
		v.pass.prefill.add(r.before, r.after, r.Input)
	}
	v.pass.budget -= want
	v.pass.progress = v.pass.progress || want > 0
	return scheduled, nil
}

// hold makes a request hold the blocks of its first target tokens, of which the first hits blocks are cached, or nothing
// more than before.
func (v *VLLM) hold(id int32, r *Request, hits, target int32) bool {
	full, want := r.full, ceilDiv(target, v.blockSize)
	if !v.env.Rules.BlocksAtEmission {
		full = target / v.blockSize // a block gets its identity with its last token
	}
	full = max(r.blocks, min(want, full))
	if full == r.blocks && (want == full || r.partial) {
		return true
	}
	// A partial block becomes the first of the full ones, or stays.
	if r.partial {
		v.cache.ReleaseAnonymous()
	}
	anonymous := 0
	if want > full {
		anonymous = 1
	}
	if !v.cache.Hold(v.env.sequence(id), int(r.blocks), int(hits), int(full), anonymous) {
		if r.partial {
			v.cache.Hold(kvcache.Sequence{}, 0, 0, 0, 1)
		}
		return false
	}
	r.blocks, r.partial = full, anonymous > 0
	return true
}

// holdMost makes a request hold as many of the blocks of its first target tokens as there are.
func (v *VLLM) holdMost(id int32, r *Request, target int32) {
	if r.partial {
		v.cache.ReleaseAnonymous()
		r.partial = false
	}
	full := max(r.blocks, min(ceilDiv(target, v.blockSize), r.full))
	r.blocks = int32(v.cache.HoldMost(v.env.sequence(id), int(r.blocks), int(full)))
}

// settle gives the partial block an identity once all its tokens are computed.
func (v *VLLM) settle(id int32, r *Request, computed int32) {
	if r.partial && computed/v.blockSize > r.blocks {
		v.promote(id, r)
	}
}

func (v *VLLM) promote(id int32, r *Request) {
	v.cache.Promote(v.env.sequence(id), int(r.blocks))
	r.blocks++
	r.full = max(r.full, r.blocks)
	r.partial = false
}

// isAlone reports that a running request is the only one that holds blocks, so that none will become free. On a worker
// of a pool, prompts on their way hold some too, and so do requests that load blocks from lower memory tiers.
func (v *VLLM) isAlone() bool {
	return len(v.running) == 1 && v.env.Role == Aggregated && !v.tiers.holding()
}

// victim returns the running request that has to give up its blocks first.
func (v *VLLM) victim() (int32, bool) {
	if len(v.running) == 0 {
		return 0, false
	}
	if v.env.Config.PreemptionMode == PreemptFIFO {
		return v.running[0], true
	}
	return v.running[len(v.running)-1], true
}

// preempt takes a running request's blocks and puts it at the head of the waiting queue. It keeps its tokens.
func (v *VLLM) preempt(now float64, id int32) {
	r := &v.env.Requests[id]
	v.env.stall(r, now)
	v.release(id, r)
	if r.pass == v.pass.number {
		v.pass.budget += r.used
		if r.after > r.before {
			v.pass.prefill.remove(r.before, r.after, r.Input)
		}
		r.pass = 0
	}
	r.computed, r.drafts, r.State = 0, 0, Preempted
	at := slices.Index(v.running, id)
	v.running = slices.Delete(v.running, at, at+1)
	v.queued.count(r, 1+v.remnants.of(id))
	v.remnants.move(1)
	v.waiting.insert(v.tiers.afterLoaded(&v.waiting), id)
	v.pass.preempted = true
	v.pass.progress = v.pass.progress || v.tiers.holding() // those that hold blocks may go on now
	v.preemptions++
}

// release gives up all blocks of a request, the last one first.
func (v *VLLM) release(id int32, r *Request) {
	if r.partial {
		v.cache.ReleaseAnonymous()
		r.partial = false
	}
	if r.blocks > 0 {
		v.cache.Release(v.env.sequence(id), int(r.blocks))
		r.blocks = 0
	}
	v.blocked = false
	v.released++
}

// emit lets every request whose known tokens are all computed produce a token, and returns the duration of the
// pass's parts.
func (v *VLLM) emit(now float64) (prefill, decode perfmodel.Nanoseconds, err error) {
	v.setPrefill() // what is preempted from here on has been computed
	decoding, lengths, err := v.ready(now)
	if err == nil && v.speculation.drafts > 0 {
		decoding, lengths, err = v.readyWithRoom(now, decoding, lengths)
	}
	if err != nil {
		return 0, 0, err
	}
	v.pricer.setDecode(decoding, lengths, v.heldTokens())
	prefill, decode = v.pricer.price()
	emitted := v.emitted[:0]
	for _, id := range v.emitted {
		ok, err := v.emitOne(now, id)
		if err != nil {
			return 0, 0, err
		}
		if ok {
			emitted = append(emitted, id)
		}
	}
	v.emitted = emitted
	if len(emitted) == 0 {
		decode = 0
	}
	v.running = slices.DeleteFunc(v.running, func(id int32) bool { return v.env.Requests[id].State == Completed })
	return prefill, decode, nil
}

// passLoad is what the pass does that is being scheduled.
func (v *VLLM) passLoad() PassLoad {
	var c loadCounter
	for _, id := range v.running {
		r := &v.env.Requests[id]
		if r.pass != v.pass.number {
			continue
		}
		before := r.computed - (r.used - r.drafts)
		if before < min(r.computed, r.Input) {
			c.prompt(r, before, r.computed)
		} else {
			c.decode(r.length())
		}
	}
	return c.load(v.queued)
}

// setPrefill tells the timing model what has been scheduled of prompts.
func (v *VLLM) setPrefill() {
	v.pricer.setPrefill(v.pass.prefill)
	if v.pass.prefill.prompts == 0 || !v.env.Model.PerRequest() {
		return
	}
	for _, id := range v.running {
		if r := &v.env.Requests[id]; r.pass == v.pass.number && r.after > r.before {
			v.pricer.addChunk(r.before, r.after)
		}
	}
}

// heldTokens is the size of the blocks that requests hold.
func (v *VLLM) heldTokens() int { return v.cache.Held() * int(v.blockSize) }

// ready collects in emitted the running requests whose known tokens are all computed, and returns how many of them
// decode and their total length.
func (v *VLLM) ready(now float64) (decoding int, lengths int64, err error) {
	v.emitted = v.emitted[:0]
	for _, id := range v.running {
		r := &v.env.Requests[id]
		if r.computed < r.length() || r.Tokens >= r.Output && r.Output > 0 {
			continue
		}
		if r.Output == 0 {
			if !v.env.Rules.OutputZeroNeverEnds {
				v.emitted = append(v.emitted, id)
			} else if !v.env.Capped {
				return 0, 0, r.neverEnds(now)
			}
			continue
		}
		v.emitted = append(v.emitted, id)
		if v.decodes(r) {
			decoding++
			lengths += int64(r.length())
		}
	}
	return decoding, lengths, nil
}

// decodes reports whether the token that a request gets in this pass takes a decode step: any but the one that comes out
// of computing its prompt. Decode workers have not computed it, and TensorRT-LLM does not when all of it is cached.
func (v *VLLM) decodes(r *Request) bool {
	switch {
	case v.env.Role == Prefill && !v.env.RoleUnknown:
		return false
	case v.env.Role == Decode || v.env.Rules.DecodeInPrefillPass || r.Tokens > 0:
		return true
	}
	return v.guaranteesOutput && r.used == 0
}

// emitOne adds a token to a request and completes it if it was the last; false means that there was no block for
// it.
func (v *VLLM) emitOne(now float64, id int32) (bool, error) {
	r := &v.env.Requests[id]
	if r.State != Running {
		return false, nil // preempted by an earlier request of this pass
	}
	r.burst = min(1, r.Output)
	if v.speculation.drafts > 0 {
		r.burst = v.burst(r)
	}
	for range r.burst {
		if v.env.Rules.BlocksAtEmission {
			if ok, err := v.openBlock(now, id, r); !ok {
				return false, err
			}
		}
		r.Tokens++
	}
	if r.burst > 1 {
		r.computed = r.length() - 1         // accepted tokens were verified by computing them
		v.hold(id, r, r.blocks, r.computed) // there is room for that
	}
	if r.Tokens == r.Output {
		v.complete(id, r)
	}
	return true, nil
}

// openBlock makes room for the next token of a request, preempting others as needed; false means that the request
// itself was preempted. A filled partial block keeps the identity that it gets here even then.
func (v *VLLM) openBlock(now float64, id int32, r *Request) (bool, error) {
	if r.length()%v.blockSize != 0 {
		return true, nil
	}
	if r.partial {
		v.promote(id, r)
	}
	for !v.cache.Hold(kvcache.Sequence{}, 0, 0, 0, 1) {
		victim, _ := v.victim()
		if victim == id && v.isAlone() {
			return false, v.stuck(now, id, 1, r.blocks+1)
		}
		v.preempt(now, victim)
		if victim == id {
			return false, nil
		}
	}
	r.partial = true
	return true, nil
}

func (v *VLLM) complete(id int32, r *Request) {
	if !v.env.Rules.BlocksAtEmission {
		v.settle(id, r, r.computed)
	}
	v.tiers.noteFinished(v.env.sequence(id), int(r.blocks))
	if v.env.Role != Prefill { // which holds the prompt as the source of a transfer
		v.release(id, r)
	}
	r.State = Completed
}

// neverEnds explains that a request without output runs for ever. Those that run beside it might get their tokens or
// be preempted without end, so it is reported as soon as its prompt is computed.
func (r *Request) neverEnds(now float64) error {
	return &StuckError{Request: int(r.Number), TimeMs: now, Why: "it asks for 0 output tokens, so it never completes"}
}

// stuck explains that the pool has not the blocks that a request needs for its next tokens.
func (v *VLLM) stuck(now float64, id, tokens, blocks int32) error {
	r := &v.env.Requests[id]
	return &StuckError{Request: int(r.Number), TimeMs: now, Why: fmt.Sprintf(
		"its %d input tokens and %d of %d output tokens need %d KV blocks of %d tokens, and the pool has %d (engine.num_gpu_blocks)",
		r.Input, r.Tokens+tokens, r.Output, blocks, v.blockSize, v.cache.Total())}
}

func ceilDiv(a, b int32) int32 { return (a + b - 1) / b }
