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
	// Type is the engine whose scheduler is simulated: "vllm".
	Type string `json:"type"`
	// NumGPUBlocks is the size of the KV pool, in blocks.
	NumGPUBlocks int `json:"num_gpu_blocks"`
	// BlockSize is the number of tokens in a KV block.
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
	// PreemptionMode says which running request gives up its KV blocks first: "lifo" (youngest) or "fifo" (oldest).
	PreemptionMode string `json:"preemption_mode"`
	// ContextLength is the model's context limit in tokens: longer inputs are rejected, longer outputs cut;
	// 0 means no limit.
	ContextLength int `json:"context_length"`
}

// TypeVLLM is the vLLM-style scheduler.
const TypeVLLM = "vllm"

// The preemption modes.
const (
	PreemptLIFO = "lifo"
	PreemptFIFO = "fifo"
)

// Types lists the accepted values of Config.Type.
func Types() []string { return []string{TypeVLLM} }

// PreemptionModes lists the accepted values of Config.PreemptionMode.
func PreemptionModes() []string { return []string{PreemptLIFO, PreemptFIFO} }

// Limits of the settings; beyond them sizes overflow long before a real deployment would.
const (
	maxBlocks    = 1 << 30
	maxBlockSize = 1 << 20
)

// DefaultConfig holds the reference's default engine arguments for vLLM.
func DefaultConfig() Config {
	return Config{
		Type:                 TypeVLLM,
		NumGPUBlocks:         16384,
		BlockSize:            64,
		MaxNumSeqs:           256,
		MaxNumBatchedTokens:  8192,
		EnablePrefixCaching:  true,
		EnableChunkedPrefill: true,
		SpeedupRatio:         1,
		DecodeSpeedupRatio:   1,
		PreemptionMode:       PreemptLIFO,
	}
}

// Validate returns all problems of the configuration under a rule set.
func (c Config) Validate(r rules.Set) problem.List {
	var l problem.List
	if !slices.Contains(Types(), c.Type) {
		l.Add("type", c.Type, "use one of: %s", strings.Join(Types(), ", "))
	}
	if c.NumGPUBlocks < 1 || c.NumGPUBlocks > maxBlocks {
		l.Add("num_gpu_blocks", c.NumGPUBlocks, "give 1 to %d blocks", maxBlocks)
	}
	if c.BlockSize < 1 || c.BlockSize > maxBlockSize {
		l.Add("block_size", c.BlockSize, "give 1 to %d tokens", maxBlockSize)
	} else if r.PowerOfTwoBlocks && (c.BlockSize < 2 || c.BlockSize > 1024 || c.BlockSize&(c.BlockSize-1) != 0) {
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
	if !slices.Contains(PreemptionModes(), c.PreemptionMode) {
		l.Add("preemption_mode", c.PreemptionMode, "use one of: %s", strings.Join(PreemptionModes(), ", "))
	}
	if c.ContextLength < 0 {
		l.Add("context_length", c.ContextLength, "give a number of tokens, or 0 for no limit")
	}
	return l
}
