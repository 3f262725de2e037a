package engine

// TypeTensorRTLLM is the TensorRT-LLM-style scheduler.
const TypeTensorRTLLM = "trtllm"

// TensorRTLLMConfig holds the settings that only the TensorRT-LLM-style scheduler has.
type TensorRTLLMConfig struct {
	// CapacitySchedulerPolicy says when a request is admitted: "guaranteed_no_evict" (or empty, the same), once there
	// is room for its whole output.
	CapacitySchedulerPolicy string `json:"capacity_scheduler_policy"`
}

// PolicyGuaranteedNoEvict admits a request once there is room for its whole output.
const PolicyGuaranteedNoEvict = "guaranteed_no_evict"

// NewTensorRTLLM returns an idle worker with the TensorRT-LLM-style scheduler (engine specification §7): the passes are
// those of vLLM, but a request is admitted only when the KV blocks of its prompt and of its whole output are
// guaranteed beside those promised to the running ones, so that none is ever preempted.
func NewTensorRTLLM(env *Environment, p Place) *VLLM {
	v := NewVLLM(env, p)
	v.guaranteesOutput = true
	return v
}

// OutputRoom returns how many output tokens a worker has room for beside a prompt of the given length, and false when
// it does not promise any.
func (c Config) OutputRoom(input int) (tokens int, limited bool) {
	if c.Type != TypeTensorRTLLM {
		return 0, false
	}
	return max(0, c.NumGPUBlocks*c.BlockSize-input), true
}

// blocksToAdmit is the number of KV blocks for which a waiting request needs room.
func (v *VLLM) blocksToAdmit(r *Request) int32 {
	if v.guaranteesOutput {
		return ceilDiv(r.Input+r.Output, v.blockSize)
	}
	return ceilDiv(r.length(), v.blockSize)
}

// outputBlocks is the number of KV blocks that the output of a request takes beside those of its prompt.
func (v *VLLM) outputBlocks(r *Request) int32 {
	return v.blocksToAdmit(r) - ceilDiv(r.Input, v.blockSize)
}

// roomToAdmit is the number of block slots that are free or can be made so for a request, less those that are promised to
// others.
func (v *VLLM) roomToAdmit(request int32) int {
	room := v.cache.Available() - v.promisedToLoads(request)
	if !v.guaranteesOutput {
		return room
	}
	room -= int(v.promised)
	for _, id := range v.running {
		r := &v.env.Requests[id]
		room -= int(ceilDiv(r.Input+r.Output, v.blockSize) - r.blocks)
		if r.partial {
			room++
		}
	}
	return room
}
