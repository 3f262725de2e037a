package engine

// This file is what the vLLM-style scheduler does differently in a disaggregated deployment (engine specification
// §12.2).

// ReleaseSource gives up the KV blocks of a finished prompt. The worker must be idle.
func (v *VLLM) ReleaseSource(request int32) { v.release(request, &v.env.Requests[request]) }

// Reserve takes the blocks of a request's prompt: it shares the leading ones that are cached, and the others are empty
// slots until Activate. By [rules.Set].HandoffPaysBudget it takes none, and the worker may be busy. See [DecodeWorker].
func (v *VLLM) Reserve(request int32) (fresh int, ok, never bool) {
	r := &v.env.Requests[request]
	blocks := ceilDiv(r.Input, v.blockSize)
	if int(blocks) > v.cache.Total() {
		return 0, false, true
	}
	if v.env.Rules.HandoffPaysBudget {
		r.Worker, r.full = v.index, r.Input/v.blockSize
		cached, _ := v.cache.Match(v.env.sequence(request), int(r.full))
		return int(blocks-int32(cached)) * int(v.blockSize), true, false
	}
	if len(v.running) >= v.maxSeqs {
		return 0, false, false
	}
	r.Worker, r.full = v.index, r.Input/v.blockSize
	cached := 0
	if v.guaranteesOutput {
		if int(v.blocksToAdmit(r)) > v.roomToAdmit(request) {
			return 0, false, false
		}
	} else {
		cached, _ = v.cache.Match(v.env.sequence(request), int(r.full))
	}
	missing := int(blocks) - cached
	if missing+v.promisedToLoads(request) > v.cache.Available() || !v.cache.Hold(v.env.sequence(request), 0, cached, cached, missing) {
		if v.env.Rules.ReservationsTouch {
			v.cache.Touch(v.env.sequence(request), cached) // it took them before it saw that there is no room for the others
		}
		return 0, false, false
	}
	r.blocks, r.computed = int32(cached), int32(cached)*v.blockSize
	if v.guaranteesOutput {
		v.promised += v.outputBlocks(r)
	}
	v.reservations++
	r.joined = v.reservations
	return missing * int(v.blockSize), true, false
}

// Activate gives the blocks of a reserved prompt, whose content has arrived, their identity, and lets the request wait
// for its decode passes. See [DecodeWorker].
func (v *VLLM) Activate(request int32) (gaveBack bool) {
	v.leaveRun()
	r := &v.env.Requests[request]
	if v.env.Rules.HandoffPaysBudget {
		r.State = Waiting
		v.waiting.pushBack(request)
		v.queued.add(r)
		return false
	}
	reserved := int(ceilDiv(r.Input, v.blockSize) - r.blocks)
	for range reserved {
		v.cache.ReleaseAnonymous()
	}
	free := v.cache.Free()
	anonymous := int(ceilDiv(r.Input, v.blockSize) - r.full)
	v.cache.Hold(v.env.sequence(request), int(r.blocks), int(r.blocks), int(r.full), anonymous) // there is room for that
	r.blocks, r.partial = r.full, anonymous > 0
	r.State, r.handedOver = Waiting, true
	r.computed = r.Input
	v.enqueue(request)
	v.queued.add(r)
	if v.reserving || v.waiting.len() == 1 {
		v.blocked = false
	}
	return free-v.cache.Free() < reserved
}

// enqueue puts a request whose prompt has arrived into the waiting queue.
func (v *VLLM) enqueue(request int32) {
	v.waiting.pushBack(request)
	if v.env.Rules.DecodesInOrderOfArrival {
		return
	}
	for i := v.waiting.len() - 1; i > 0; i-- {
		before := v.waiting.at(i - 1)
		if b := &v.env.Requests[before]; b.State == Preempted || b.joined < v.env.Requests[request].joined {
			return
		}
		v.waiting.replace(i, before)
		v.waiting.replace(i-1, request)
	}
}

// Await tells that a request waits for room, or no longer does. See [DecodeWorker].
func (v *VLLM) Await(request int32, waits bool) {
	v.queued.await(&v.env.Requests[request], waits)
	if reserving := v.queued.awaited > 0; v.reserving != reserving {
		v.reserving, v.blocked = reserving, false
	}
}

// Released counts the occasions on which the worker gave up KV blocks.
func (v *VLLM) Released() int64 { return v.released }

// CutShort ends a run with the first pass that ends at the given time or later, and returns when that is.
func (v *VLLM) CutShort(at float64) float64 {
	if v.run.active {
		v.run.cut(at)
	}
	return v.run.end
}

// materialised reports whether a waiting request holds the KV blocks of its whole prompt.
func (r *Request) materialised() bool { return r.blocks > 0 || r.partial }

// nextWaiting returns the place in the waiting queue of the request that is the next to be admitted: the first one, or,
// while reservations wait for room, the first one whose prompt is there. false means that there is none.
func (v *VLLM) nextWaiting() (at int, ok bool) {
	if !v.reserving {
		return 0, v.waiting.len() > 0
	}
	for at := range v.waiting.len() {
		if v.env.Requests[v.waiting.at(at)].materialised() {
			return at, true
		}
	}
	return 0, false
}
