package engine

// This file is what limits a worker with the vLLM-style scheduler.

// Limited says what kept the worker from admitting requests. See [Worker].
func (v *VLLM) Limited() *LimitedTimes { return v.constraint.total() }

// Arriving tells that prompts are on their way from prefill workers. See [DecodeWorker].
func (v *VLLM) Arriving(prompts int, now float64) { v.constraint.arrive(prompts, now) }

// limitOfPass notes what kept a pass from admitting more requests, after it has admitted what it could.
func (v *VLLM) limitOfPass() {
	if v.waiting.len() == 0 && !v.reserving && v.tiers == nil { // as most passes are
		v.pass.full, v.pass.limit = len(v.running) >= v.maxSeqs, NoLimit
		return
	}
	compute := v.pass.limit == LimitCompute && v.waiting.len() > 0
	if v.limitOfRun(); compute {
		v.pass.limit = LimitCompute
	}
}

// limitOfRun is the same for passes that only decode.
func (v *VLLM) limitOfRun() {
	v.pass.full, v.pass.limit = len(v.running) >= v.maxSeqs, NoLimit
	switch waits := v.waiting.len() > 0 || v.reserving; {
	case waits && v.pass.full:
		v.pass.limit = LimitBatchSlots
	case waits:
		v.pass.limit = LimitKVMemory
	case v.tiers.loads():
		v.pass.limit = LimitTransfer
	}
}
