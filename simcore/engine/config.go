package engine

import (
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// Config configures one worker's scheduler and KV cache. Its keys are the reference's engine arguments.
type Config struct {
	// Type is the engine whose scheduler is simulated: "vllm", "sglang" or "trtllm".
	Type string `json:"type"`
	// NumGPUBlocks is the size of a worker's KV pool, in blocks; 0 (null in a spec) means what the memory of the GPU
	// has room for, or 16384 where the timing source does not know GPU and model.
	NumGPUBlocks int `json:"num_gpu_blocks"`
	// GPUMemoryUtilization is the share of the GPU's memory that vLLM uses for everything; 0 means 0.9.
	GPUMemoryUtilization float64 `json:"gpu_memory_utilization"`
	// MemFractionStatic is the share of the GPU's memory that SGLang uses for weights and KV cache; 0 means 0.88.
	MemFractionStatic float64 `json:"mem_fraction_static"`
	// FreeGPUMemoryFraction is the share of the memory left by the weights that TensorRT-LLM uses for the KV cache;
	// 0 means 0.9.
	FreeGPUMemoryFraction float64 `json:"free_gpu_memory_fraction"`
	// BlockSize is the number of tokens in a KV block; 0 (null in a spec) means 64 for vLLM, 32 for TensorRT-LLM, and
	// for SGLang its page size, or 1.
	BlockSize int `json:"block_size"`
	// MaxNumSeqs limits the running requests of a worker; 0 (null in a spec) means no limit.
	MaxNumSeqs int `json:"max_num_seqs"`
	// MaxNumBatchedTokens is the token budget of a pass; 0 (null in a spec) means no limit.
	MaxNumBatchedTokens int `json:"max_num_batched_tokens"`
	// EnablePrefixCaching shares KV blocks between requests with equal leading tokens.
	EnablePrefixCaching bool `json:"enable_prefix_caching"`
	// EnableChunkedPrefill lets a prompt be computed over several passes.
	EnableChunkedPrefill bool `json:"enable_chunked_prefill"`
	// SpeedupRatio divides every pass duration; 0 leaves them as they are.
	SpeedupRatio float64 `json:"speedup_ratio"`
	// DecodeSpeedupRatio divides decode durations on top of SpeedupRatio; 0 leaves them as they are.
	DecodeSpeedupRatio float64 `json:"decode_speedup_ratio"`
	// NumSpeculativeTokens is the number of tokens that are proposed with each decode step of a request and verified by
	// it (speculative decoding), 1 to 5; 0 means none.
	NumSpeculativeTokens int `json:"num_speculative_tokens"`
	// AcceptanceRates are the probabilities that each speculative token is accepted once those before it were, separated
	// by commas; missing ones are 0. Empty means 0.85,0.3.
	AcceptanceRates string `json:"acceptance_rates"`
	// SpeculationSeed selects the sequence of accepted tokens; worker i uses the i-th seed from here on.
	SpeculationSeed uint64 `json:"speculation_seed"`
	// PreemptionMode says which running request gives up its KV blocks first: "lifo" (youngest) or "fifo" (oldest).
	PreemptionMode string `json:"preemption_mode"`
	// ContextLength is the context limit in tokens: longer inputs are rejected, longer outputs cut; 0 means that of the
	// model where it is known, or what the KV pool holds if that is less, and no limit elsewhere.
	ContextLength int `json:"context_length"`
	// KVBytesPerToken is the size of one token's KV cache on one GPU, which says how long its transfer takes; 0 (null in a
	// spec) means that of the model where it is known, and no transfer time elsewhere.
	KVBytesPerToken int `json:"kv_bytes_per_token"`
	// KVTransferBandwidth is the bandwidth at which a prefill worker hands a prompt's KV cache to a decode worker, in GB/s
	// (1e9 bytes a second) for each GPU; 0 means that it takes no time.
	KVTransferBandwidth float64 `json:"kv_transfer_bandwidth"`
	// KVTransferTimingMode says what is transferred: "full_prompt", or "destination_missing", what the decode worker does
	// not have in its cache; empty means the latter, with compat dynamo-1.3 and 1.2 the former.
	KVTransferTimingMode string `json:"kv_transfer_timing_mode"`
	// StartupTime is how long a worker takes until it serves requests, in s, when it is added while the simulation runs: it
	// occupies its GPUs from the start. Workers that are there at the beginning are ready at once.
	StartupTime float64 `json:"startup_time"`
	// WorkerType is what an engine of a prefill or decode pool takes itself for, where that is not what it is for: "aggregated",
	// with compat dynamo-1.2 and vLLM only. Prefill workers then take the time of a decode step for the first token too, and
	// decode workers that of prompts.
	WorkerType string `json:"worker_type"`
	// SGLang holds what only the SGLang-style scheduler has.
	SGLang SGLangConfig `json:"sglang"`
	// TensorRTLLM holds what only the TensorRT-LLM-style scheduler has.
	TensorRTLLM TensorRTLLMConfig `json:"trtllm"`
}

// WorkerTypeAggregated is the value of Config.WorkerType.
const WorkerTypeAggregated = "aggregated"

// TypeVLLM is the vLLM-style scheduler.
const TypeVLLM = "vllm"

// The preemption modes.
const (
	PreemptLIFO = "lifo"
	PreemptFIFO = "fifo"
)

// Types lists the accepted values of Config.Type.
func Types() []string { return []string{TypeVLLM, TypeSGLang, TypeTensorRTLLM} }

// The KV transfer timing modes.
const (
	TransferFullPrompt         = "full_prompt"
	TransferDestinationMissing = "destination_missing"
)

// TransferTimingModes lists the accepted values of Config.KVTransferTimingMode.
func TransferTimingModes() []string {
	return []string{TransferFullPrompt, TransferDestinationMissing}
}

// PreemptionModes lists the accepted values of Config.PreemptionMode.
func PreemptionModes() []string { return []string{PreemptLIFO, PreemptFIFO} }

// Limits of the settings; beyond them sizes overflow long before a real deployment would.
const (
	maxBlockSize = 1 << 20

	// MaxBlocks bounds Config.NumGPUBlocks.
	MaxBlocks = 1 << 30
)

// DefaultNumGPUBlocks is the size of the KV pool where nothing tells how much memory there is.
const DefaultNumGPUBlocks = 16384

// DefaultConfig holds the reference's default engine arguments for vLLM.
func DefaultConfig() Config {
	return Config{
		Type:                 TypeVLLM,
		MaxNumSeqs:           256,
		MaxNumBatchedTokens:  8192,
		EnablePrefixCaching:  true,
		EnableChunkedPrefill: true,
		SpeedupRatio:         1,
		DecodeSpeedupRatio:   1,
		SpeculationSeed:      42,
		PreemptionMode:       PreemptLIFO,
		SGLang:               DefaultSGLang(),
		TensorRTLLM:          TensorRTLLMConfig{CapacitySchedulerPolicy: PolicyGuaranteedNoEvict},
	}
}

// Validate returns all problems of the configuration under a rule set.
func (c Config) Validate(r rules.Set) problem.List {
	var l problem.List
	if !slices.Contains(Types(), c.Type) {
		l.Add("type", c.Type, "use one of: %s", strings.Join(Types(), ", "))
	}
	if c.NumGPUBlocks < 0 || c.NumGPUBlocks > MaxBlocks {
		l.Add("num_gpu_blocks", c.NumGPUBlocks, "give 1 to %d blocks, or null for what fits", MaxBlocks)
	}
	for _, f := range []struct {
		key   string
		value float64
	}{{"gpu_memory_utilization", c.GPUMemoryUtilization}, {"mem_fraction_static", c.MemFractionStatic}, {"free_gpu_memory_fraction", c.FreeGPUMemoryFraction}} {
		if !(f.value >= 0 && f.value <= 1) {
			l.Add(f.key, f.value, "give a share above 0 and up to 1, or leave it out for the engine's default")
		}
	}
	size, problems := c.ResolvedBlockSize()
	l = append(l, problems...)
	if size < 1 || size > maxBlockSize {
		l.Add("block_size", c.BlockSize, "give 1 to %d tokens, or null for the engine's default", maxBlockSize)
	} else if r.PowerOfTwoBlocks && c.Type != TypeSGLang && (size < 2 || size > 1024 || size&(size-1) != 0) {
		l.Add("block_size", c.BlockSize, "with compat dynamo-1.3 give a power of two from 2 to 1024")
	}
	if c.MaxNumSeqs < 0 {
		l.Add("max_num_seqs", c.MaxNumSeqs, "give 1 or more requests, or null for no limit")
	}
	if c.MaxNumBatchedTokens < 0 {
		l.Add("max_num_batched_tokens", c.MaxNumBatchedTokens, "give 1 or more tokens, or null for no limit")
	}
	for _, s := range []struct {
		key   string
		value float64
	}{{"speedup_ratio", c.SpeedupRatio}, {"decode_speedup_ratio", c.DecodeSpeedupRatio}} {
		if !(s.value >= 0) || math.IsInf(s.value, 0) {
			l.Add(s.key, s.value, "give a ratio of 0 or more; 0 means unscaled")
		}
	}
	l = append(l, c.validateSpeculation()...)
	l = append(l, c.validateSGLang(r)...)
	if p := c.TensorRTLLM.CapacitySchedulerPolicy; p != "" && p != PolicyGuaranteedNoEvict {
		l.Add("trtllm.capacity_scheduler_policy", p, "use %s", PolicyGuaranteedNoEvict)
	}
	if !slices.Contains(PreemptionModes(), c.PreemptionMode) {
		l.Add("preemption_mode", c.PreemptionMode, "use one of: %s", strings.Join(PreemptionModes(), ", "))
	}
	if c.KVBytesPerToken < 0 {
		l.Add("kv_bytes_per_token", c.KVBytesPerToken, "give 1 or more bytes, or null for what is known of the model")
	}
	if !(c.KVTransferBandwidth >= 0) || math.IsInf(c.KVTransferBandwidth, 0) {
		l.Add("kv_transfer_bandwidth", c.KVTransferBandwidth, "give GB/s above 0, or leave it out for transfers of no time")
	}
	if m := c.KVTransferTimingMode; m != "" && !slices.Contains(TransferTimingModes(), m) {
		l.Add("kv_transfer_timing_mode", m, "use one of: %s", strings.Join(TransferTimingModes(), ", "))
	}
	if !(c.StartupTime >= 0) || math.IsInf(c.StartupTime, 0) {
		l.Add("startup_time", c.StartupTime, "give a number of seconds, or 0 for workers that are ready at once")
	}
	switch {
	case c.WorkerType != "" && c.WorkerType != WorkerTypeAggregated:
		l.Add("worker_type", c.WorkerType, "the pool tells what workers are for; leave it out")
	case c.WorkerType != "" && !(r.RolesMayBeUnknown && c.Type == TypeVLLM):
		l.Add("worker_type", c.WorkerType, "only vLLM in pools with compat dynamo-1.2 can be mistaken in what it is for; leave it out")
	}
	if c.ContextLength < 0 {
		l.Add("context_length", c.ContextLength, "give a number of tokens, or 0 for no limit")
	}
	return l
}
