// Package memory plans the memory of one GPU: what the weights, the activations and the runtime take, and how many
// tokens of KV cache fit into the rest.
//
// The formulas are those of aiconfigurator's estimate (spec perfmodel.md §1.4), which states a tolerance of about
// 2 %. All figures are of one GPU of one rank, already sharded: they are never multiplied by tp or dp. Read memory.go
// for the plan, fit.go for how it is shown and refused.
package memory

import (
	"fmt"
	"math"
)

// DefaultBatchedTokens is the size of a pass, in tokens, that activations are sized for when nothing else is given.
const DefaultBatchedTokens = 8192

// Requirements is what a deployment needs of one GPU, in bytes.
type Requirements struct {
	// WeightsBytes are the parameters on this GPU.
	WeightsBytes float64
	// Activations8192Bytes are the activations of a pass of 8192 tokens; ActivationBytesPerToken what a token more or
	// less changes; MinActivationBytes their least value.
	Activations8192Bytes, ActivationBytesPerToken, MinActivationBytes float64
	// CommunicationBytes are the buffers of collective operations.
	CommunicationBytes float64
	// OtherBytes are taken by the runtime: CUDA context, workspaces, captured graphs.
	OtherBytes float64
	// GPUBytes is the memory of the GPU.
	GPUBytes float64
	// KV says how the KV cache of a sequence grows.
	KV KVCurve
	// DefaultFraction is the share of the memory that the backend takes unless told otherwise, over 0 to 1.
	DefaultFraction float64
	// Backend is "vllm", "sglang" or "trtllm"; it decides what the fraction is a fraction of.
	Backend string
}

// Settings are the user's choices. Only the fraction that the backend knows counts.
type Settings struct {
	// GPUMemoryUtilization is vLLM's share of the GPU's memory for everything; 0 is the default, 0.90.
	GPUMemoryUtilization float64
	// MemFractionStatic is SGLang's share of the GPU's memory for everything; 0 is the default, 0.88.
	MemFractionStatic float64
	// FreeGPUMemoryFraction is TensorRT-LLM's share, for KV cache, of the memory that is free once the model is loaded;
	// 0 is the default, 0.90.
	FreeGPUMemoryFraction float64
	// MaxBatchedTokens is the most tokens of one pass; 0 is [DefaultBatchedTokens].
	MaxBatchedTokens int
}

// Plan is the arithmetic from a GPU's memory to the tokens of KV cache, in bytes except KVTokens.
type Plan struct {
	// Backend is the serving engine whose rule was applied.
	Backend string
	// GPUBytes is the memory of the GPU, Fraction the share of it (vLLM, SGLang) or of what is free (TensorRT-LLM).
	GPUBytes, Fraction float64
	// WeightsBytes, ActivationBytes, CommunicationBytes and OtherBytes are what is no KV cache.
	WeightsBytes, ActivationBytes, CommunicationBytes, OtherBytes float64
	// MaxBatchedTokens is the size of a pass that ActivationBytes are for, in tokens.
	MaxBatchedTokens int
	// KVBytes is what is left for the KV cache; 0 or less when the model doesn't fit.
	KVBytes float64
	// KVTokens is the number of tokens whose keys and values fit into KVBytes.
	KVTokens int
	// maxKVBytes is what a fraction of 1 would leave.
	maxKVBytes float64
}

// NonKVBytes is the sum of all parts that are no KV cache.
func (p Plan) NonKVBytes() float64 {
	return p.WeightsBytes + p.ActivationBytes + p.CommunicationBytes + p.OtherBytes
}

// Plan divides the memory of the GPU. It fails with a [*DoesNotFit] when not one token of KV cache fits, and with
// another error when a setting or a requirement is out of range.
func (r Requirements) Plan(s Settings) (Plan, error) {
	fraction, err := r.fraction(s)
	if err != nil {
		return Plan{}, err
	}
	if err := r.valid(); err != nil {
		return Plan{}, err
	}
	tokens := s.MaxBatchedTokens
	if tokens == 0 {
		tokens = DefaultBatchedTokens
	}
	if tokens < 0 {
		return Plan{}, fmt.Errorf("max_num_batched_tokens is %d; give the tokens of a pass, 1 or more", tokens)
	}
	p := Plan{
		Backend: r.Backend, GPUBytes: r.GPUBytes, Fraction: fraction,
		WeightsBytes: r.WeightsBytes, CommunicationBytes: r.CommunicationBytes, OtherBytes: r.OtherBytes,
		ActivationBytes: r.activations(tokens), MaxBatchedTokens: tokens,
	}
	p.maxKVBytes = r.GPUBytes - p.NonKVBytes()
	if r.Backend == backendTRTLLM {
		p.KVBytes = p.maxKVBytes * fraction
	} else {
		p.KVBytes = float64(r.GPUBytes*fraction) - p.NonKVBytes()
	}
	p.KVTokens = r.KV.Tokens(p.KVBytes)
	if p.KVTokens < 1 {
		return p, &DoesNotFit{Plan: p}
	}
	return p, nil
}

// The backends that have a rule.
const (
	backendVLLM   = "vllm"
	backendSGLang = "sglang"
	backendTRTLLM = "trtllm"
)

// fractionName is the engine argument that holds a backend's fraction.
func fractionName(backend string) string {
	switch backend {
	case backendSGLang:
		return "mem_fraction_static"
	case backendTRTLLM:
		return "free_gpu_memory_fraction"
	}
	return "gpu_memory_utilization"
}

// fraction is the share that holds for the backend.
func (r Requirements) fraction(s Settings) (float64, error) {
	var f float64
	switch r.Backend {
	case backendVLLM:
		f = s.GPUMemoryUtilization
	case backendSGLang:
		f = s.MemFractionStatic
	case backendTRTLLM:
		f = s.FreeGPUMemoryFraction
	default:
		return 0, fmt.Errorf("memory: backend %q has no rule; use vllm, sglang or trtllm", r.Backend)
	}
	if f == 0 {
		f = r.DefaultFraction
	}
	if !(f > 0 && f <= 1) {
		return 0, fmt.Errorf("%s is %v; give a share of the GPU's memory, over 0 and at most 1", fractionName(r.Backend), f)
	}
	return f, nil
}

// valid reports the first figure that no GPU or model can have.
func (r Requirements) valid() error {
	for _, part := range []struct {
		name  string
		bytes float64
	}{
		{"weights", r.WeightsBytes}, {"activations at 8192 tokens", r.Activations8192Bytes},
		{"activations per token", r.ActivationBytesPerToken}, {"least activations", r.MinActivationBytes},
		{"communication", r.CommunicationBytes}, {"runtime", r.OtherBytes}, {"GPU memory", r.GPUBytes},
	} {
		if !(part.bytes >= 0) || math.IsInf(part.bytes, 0) {
			return fmt.Errorf("memory: %s is %v bytes; it must be finite and 0 or more", part.name, part.bytes)
		}
	}
	return r.KV.valid()
}

// activations are the bytes that a pass of so many tokens needs beside the weights.
func (r Requirements) activations(tokens int) float64 {
	return max(r.MinActivationBytes, r.Activations8192Bytes+float64(r.ActivationBytesPerToken*float64(tokens-DefaultBatchedTokens)))
}
