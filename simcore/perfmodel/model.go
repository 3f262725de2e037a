// Package perfmodel says how long a pass of the engine takes.
//
// A model prices the prefill part and the decode part of a pass; the engine quantises and adds them. Read
// model.go for the interface, config.go for how users choose a model and resolve.go for what they may leave open,
// operators.go for models that know GPU and model, adjusted.go for what is fitted to a measured run, clock.go for the
// quantisation. The data lives below: tables
// (measured), roofline (analytic), profile (the user's own), memory (KV capacity), catalogue (GPUs and models).
package perfmodel

import (
	"cmp"
	"fmt"
)

// Pass describes the work of one pass.
type Pass struct {
	Prefill Prefill
	Decode  Decode
}

// Prefill describes the prompts computed in one pass.
type Prefill struct {
	// Requests is the number of prompts that are computed in the pass.
	Requests int
	// Length is the mean number of prompt tokens that exist after the pass, Prefix of those that existed before;
	// both in tokens, truncated.
	Length, Prefix int
	// Tokens is the number of prompt tokens that the pass computes, and Finishing the number of prompts that it
	// completes.
	Tokens, Finishing int
	// Chunks lists what is computed of each prompt, for models that say so with PerRequest.
	Chunks []Chunk
}

// Chunk is the part of one prompt that a pass computes: from token Before, exclusive of those that exist, to Length.
type Chunk struct{ Before, Length int }

// Decode describes the decode step of one pass.
type Decode struct {
	// Requests is the number of requests that get a token.
	Requests int
	// HeldTokens is the size of the KV blocks that requests hold, in tokens; PoolTokens of all blocks.
	HeldTokens, PoolTokens int
	// Context is the mean sequence length, in tokens, truncated.
	Context int
	// Drafts is the number of speculative tokens that are verified with each request's next one.
	Drafts int
}

// Price is the duration of a pass.
type Price struct {
	// PrefillMs and DecodeMs are the parts of the pass in ms, 0 or more.
	PrefillMs, DecodeMs float64
	// Extrapolated says that the pass lies outside of what the data behind the model covers.
	Extrapolated bool
}

// Model prices passes. Implementations are immutable and safe for concurrent use.
type Model interface {
	// Price returns the duration of a pass. A part without requests takes 0 ms.
	Price(p *Pass) Price
	// ContextFree reports that the price does not depend on Decode.Context, so that successive decode steps of
	// one batch take equally long while no block is taken.
	ContextFree() bool
	// PerRequest reports that Prefill.Chunks is needed.
	PerRequest() bool
}

// minDecodeMs is the least duration of a decode step, before speed ratios.
const minDecodeMs = 1.0

// New returns the model that a resolved configuration selects, with its scales and overhead.
func New(c Config) (Model, error) {
	m, err := newModel(c)
	if err != nil || !c.adjusts() {
		return m, err
	}
	return adjusted{m, cmp.Or(c.PrefillScale, 1), cmp.Or(c.DecodeScale, 1), c.PassOverheadMs}, nil
}

// newModel returns the model as it is.
func newModel(c Config) (Model, error) {
	switch c.Source {
	case SourcePolynomial:
		return polynomial{}, nil
	case SourceFixed:
		return fixed{prefillMs: c.PrefillMs, decodeMs: max(minDecodeMs, c.DecodeMs)}, nil
	case SourceProfile:
		p, err := readProfile(c.Profile)
		if err != nil {
			return nil, err
		}
		return profiled{p}, nil
	case SourceTable:
		return newTableModel(c)
	case SourceAnalytic:
		return newAnalyticModel(c)
	}
	return nil, fmt.Errorf("timing.source: %q is not a timing source", c.Source)
}

// contextFree is embedded by models that look at nothing but numbers of requests, new tokens and held tokens.
type contextFree struct{}

func (contextFree) ContextFree() bool { return true }
func (contextFree) PerRequest() bool  { return false }

// polynomial is the reference's default model: prefill is a polynomial in the new tokens of the pass, decode one
// in the share of the KV pool that is held. Batch size does not matter.
type polynomial struct{ contextFree }

func (polynomial) Price(p *Pass) Price {
	var out Price
	if n := p.Prefill.newTokens(); n > 0 {
		// Explicit conversions keep the compiler from fusing the products on some architectures.
		tokens := float64(n)
		square := float64(tokens * tokens)
		out.PrefillMs = max(0, float64(4.209989e-07*square)+float64(1.518344e-02*tokens)+1.650142e+01)
	}
	if p.Decode.Requests > 0 {
		share := float64(p.Decode.HeldTokens) / float64(p.Decode.PoolTokens)
		square := float64(share * share)
		out.DecodeMs = max(minDecodeMs, float64(-25.74*square)+float64(54.01*share)+5.74)
	}
	return out
}

// newTokens is the number of new tokens as the reference counts them: by the truncated means.
func (p *Prefill) newTokens() int {
	if p.Length <= p.Prefix {
		return 0
	}
	return p.Requests * (p.Length - p.Prefix)
}

// fixed gives every pass part a constant duration.
type fixed struct {
	contextFree
	prefillMs, decodeMs float64
}

func (f fixed) Price(p *Pass) Price {
	var out Price
	if p.Prefill.newTokens() > 0 {
		out.PrefillMs = f.prefillMs
	}
	if p.Decode.Requests > 0 {
		out.DecodeMs = f.decodeMs
	}
	return out
}
