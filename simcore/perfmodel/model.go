// Package perfmodel says how long a pass of the engine takes.
//
// A model prices the prefill part and the decode part of a pass; the engine quantises and adds them. Read
// model.go for the interface, config.go for how users choose a model, clock.go for the quantisation.
package perfmodel

import "fmt"

// Prefill describes the prompts computed in one pass.
type Prefill struct {
	// Requests is the number of prompts that are computed in the pass.
	Requests int
	// Length is the mean number of prompt tokens that exist after the pass, Prefix of those that existed before;
	// both in tokens, truncated.
	Length, Prefix int
}

// Decode describes the decode step of one pass.
type Decode struct {
	// Requests is the number of requests that get a token.
	Requests int
	// HeldTokens is the size of the KV blocks that requests hold, in tokens; PoolTokens of all blocks.
	HeldTokens, PoolTokens int
	// Context is the mean sequence length, in tokens, truncated.
	Context int
}

// Model prices passes. Implementations are immutable and safe for concurrent use.
type Model interface {
	// PrefillMs is the duration of a prefill in ms, 0 or more.
	PrefillMs(p Prefill) float64
	// DecodeMs is the duration of a decode step in ms.
	DecodeMs(d Decode) float64
	// ContextFree reports that DecodeMs does not depend on Decode.Context, so that successive decode steps of
	// one batch take equally long while no block is taken.
	ContextFree() bool
}

// minDecodeMs is the least duration of a decode step, before speed ratios.
const minDecodeMs = 1.0

// New returns the model that a valid configuration selects.
func New(c Config) (Model, error) {
	switch c.Source {
	case SourcePolynomial:
		return polynomial{}, nil
	case SourceFixed:
		return fixed{prefillMs: c.PrefillMs, decodeMs: max(minDecodeMs, c.DecodeMs)}, nil
	}
	return nil, fmt.Errorf("timing.source: %q is not a timing source", c.Source)
}

// polynomial is the reference's default model: prefill is a polynomial in the new tokens of the pass, decode one
// in the share of the KV pool that is held. Batch size does not matter.
type polynomial struct{}

func (polynomial) PrefillMs(p Prefill) float64 {
	if p.Requests == 0 || p.Length <= p.Prefix {
		return 0
	}
	// Explicit conversions keep the compiler from fusing the products on some architectures.
	tokens := float64(p.Requests) * float64(p.Length-p.Prefix)
	square := float64(tokens * tokens)
	return max(0, float64(4.209989e-07*square)+float64(1.518344e-02*tokens)+1.650142e+01)
}

func (polynomial) DecodeMs(d Decode) float64 {
	if d.Requests == 0 {
		return 0
	}
	share := float64(d.HeldTokens) / float64(d.PoolTokens)
	square := float64(share * share)
	return max(minDecodeMs, float64(-25.74*square)+float64(54.01*share)+5.74)
}

func (polynomial) ContextFree() bool { return true }

// fixed gives every pass part a constant duration.
type fixed struct{ prefillMs, decodeMs float64 }

func (f fixed) PrefillMs(p Prefill) float64 {
	if p.Requests == 0 || p.Length <= p.Prefix {
		return 0
	}
	return f.prefillMs
}

func (f fixed) DecodeMs(d Decode) float64 {
	if d.Requests == 0 {
		return 0
	}
	return f.decodeMs
}

func (fixed) ContextFree() bool { return true }
