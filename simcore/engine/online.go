package engine

import (
	"slices"

	"github.com/servegrid/servegrid/simcore/workload"
)

// This file is what a worker does besides when requests come, and go, while it is simulated. Each pass is then simulated by
// itself.

// OnlineWorker is what all workers do for requests that are told of as they go on.
type OnlineWorker interface {
	// Emitted is the requests that got tokens in the pass that Finish has completed. The slice is valid until the next Start.
	Emitted() []int32
	// Occupancy says what the worker has. underWay says that a pass is; what that completes counts as running.
	Occupancy(underWay bool) Occupancy
	// Abort gives up a request that waits or runs. The worker must be idle. It is false, and nothing happens, while KV blocks
	// are on their way from lower memory tiers for the request.
	Abort(request int32) bool
	// Holder is the memory that keeps KV blocks.
	Holder() workload.BlockHolder
}

// Occupancy counts the requests of a worker that run and that wait, and its KV blocks: those that requests hold, those that
// nobody holds and that may be reused, and all.
type Occupancy struct {
	Running, Waiting                      int
	HeldBlocks, CachedBlocks, TotalBlocks int
}

// forget takes back what the environment knows of a request that is given up.
func (env *Environment) forget(r *Request) {
	if r.stalled {
		r.stalled = false
		env.stalled--
	}
}

// Idle reports whether the environment knows of no request that waits for anything.
func (env *Environment) Idle() bool {
	return env.stalled == 0 && (env.Kept == nil || env.Kept.waiting == 0)
}

// ending counts the requests that are completed by the pass under way.
func (env *Environment) ending(signals []Signal) int {
	n := 0
	for _, s := range signals {
		if s.Ended && env.Requests[s.Request].State == Completed {
			n++
		}
	}
	return n
}

// onTheirWay counts the requests whose KV blocks come from lower memory tiers.
func (t *tierAccess) onTheirWay() int {
	if t == nil {
		return 0
	}
	n := 0
	for _, id := range t.reserved {
		if !t.env.Requests[id].loaded {
			n++
		}
	}
	return n
}

// loadsFor reports whether KV blocks are on their way for a request.
func (t *tierAccess) loadsFor(id int32, r *Request) bool {
	return t != nil && !r.loaded && slices.Contains(t.reserved, id)
}

// takeOut takes a request out of a queue, and reports whether it was there.
func (q *queue) takeOut(id int32) bool {
	for i := range q.count {
		if q.at(i) == id {
			q.remove(i)
			return true
		}
	}
	return false
}

// Emitted is the requests that got tokens. See [OnlineWorker].
func (v *VLLM) Emitted() []int32 { return v.emitted }

// Holder is the memory that keeps KV blocks.
func (v *VLLM) Holder() workload.BlockHolder { return &v.cache }

// Occupancy says what the worker has. See [OnlineWorker].
func (v *VLLM) Occupancy(underWay bool) Occupancy {
	o := Occupancy{
		Running: len(v.running), Waiting: v.waiting.len() + v.tiers.onTheirWay(),
		HeldBlocks: v.cache.Held(), CachedBlocks: v.cache.Available() - v.cache.Free(), TotalBlocks: v.cache.Total(),
	}
	if underWay {
		o.Running += v.env.ending(v.signals)
	}
	return o
}

// Abort gives up a request that waits or runs. See [OnlineWorker].
func (v *VLLM) Abort(id int32) bool {
	r := &v.env.Requests[id]
	if v.tiers.loadsFor(id, r) {
		return false
	}
	v.leaveRun()
	if at := slices.Index(v.running, id); at >= 0 {
		v.running = slices.Delete(v.running, at, at+1)
	} else if v.waiting.takeOut(id) {
		v.remnants.move(-1)
		v.queued.remove(r)
		if v.guaranteesOutput && r.handedOver {
			v.promised -= v.outputBlocks(r)
		}
		if v.tiers != nil {
			v.tiers.settled(id, r)
		}
	}
	v.env.forget(r)
	v.release(id, r)
	return true
}

// Cancel gives up the blocks that Reserve took for a request that will not come. See [DecodeWorker].
func (v *VLLM) Cancel(id int32) {
	v.leaveRun()
	r := &v.env.Requests[id]
	if v.env.Rules.HandoffPaysBudget {
		return // it took none
	}
	for range ceilDiv(r.Input, v.blockSize) - r.blocks {
		v.cache.ReleaseAnonymous()
	}
	if v.guaranteesOutput {
		v.promised -= v.outputBlocks(r)
	}
	v.release(id, r)
}

// Emitted is the requests that got tokens. See [OnlineWorker].
func (s *SGLang) Emitted() []int32 { return s.emitted }

// Holder is the memory that keeps KV blocks.
func (s *SGLang) Holder() workload.BlockHolder { return &s.tree }

// Occupancy says what the worker has. See [OnlineWorker].
func (s *SGLang) Occupancy(underWay bool) Occupancy {
	cached, total := s.tree.Evictable(), s.env.Config.NumGPUBlocks
	o := Occupancy{
		Running: len(s.running), Waiting: s.waiting.len() + s.handoff.arrived.len() + s.tiers.onTheirWay(),
		HeldBlocks: total - cached - s.free/int(s.page), CachedBlocks: cached, TotalBlocks: total,
	}
	if underWay {
		o.Running += s.env.ending(s.signals)
	}
	return o
}

// Abort gives up a request that waits or runs. What is computed of it stays cached as that of a completed one does. See
// [OnlineWorker].
func (s *SGLang) Abort(id int32) bool {
	r := &s.env.Requests[id]
	if s.tiers.loadsFor(id, r) {
		return false
	}
	s.leaveRun()
	if at := slices.Index(s.running, id); at >= 0 {
		s.running = slices.Delete(s.running, at, at+1)
	} else if (s.waiting.takeOut(id) || s.handoff.arrived.takeOut(id)) && r.State != Running {
		s.queued.remove(r)
	}
	if s.tiers != nil {
		s.tiers.settled(id, r)
	}
	s.env.forget(r)
	if at := s.outsideAccess(); r.computed/s.page > r.blocks && (s.env.Role == Prefill || !s.env.Rules.OutputCachedAtOnce) {
		s.cache(id, r, at, false)
	} else {
		s.tree.Touch(r.locked, at)
	}
	s.giveUp(r)
	return true
}
