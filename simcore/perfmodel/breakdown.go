package perfmodel

import "github.com/servegrid/servegrid/simcore/perfmodel/tables"

// The kinds of work that a pass consists of (perfmodel specification §1.2).
const (
	// PartTokens is what depends on the number of prompt tokens: matrix products, experts, norms, communication.
	PartTokens = "tokens"
	// PartLogits is the projection to logits.
	PartLogits = "logits"
	// PartPrefillAttention is the attention of the prompts.
	PartPrefillAttention = "prefill_attention"
	// PartGeneration is a decode step without its attention.
	PartGeneration = "generation"
	// PartGenerationAttention is the attention of a decode step.
	PartGenerationAttention = "generation_attention"
	// PartCorrection is what corrections add to a decode step of the source.
	PartCorrection = "correction"
	// PartLeast fills a decode step up to the least duration that the engine counts.
	PartLeast = "least_duration"
)

// Part is what one kind of work takes in a pass of one attention data-parallel rank.
type Part struct {
	// Kind is one of the constants above.
	Kind string `json:"part"`
	// Decode says that the part belongs to Price.DecodeMs rather than to Price.PrefillMs.
	Decode bool `json:"-"`
	// Tokens is the number of tokens that the part computes; Requests of prompts or of sequences; Length and Prefix
	// are the tokens of one of them after and before the pass. What the part does not depend on is 0.
	Tokens   int `json:"tokens,omitempty"`
	Requests int `json:"requests,omitempty"`
	Length   int `json:"length,omitempty"`
	Prefix   int `json:"prefix,omitempty"`
	// Ms is the time of the part.
	Ms float64 `json:"ms"`
	// Extrapolated says that the part lies outside of what the data behind the model covers.
	Extrapolated bool `json:"extrapolated"`
}

// Explainer is a model that tells what its prices consist of. The models of the sources table and analytic do.
type Explainer interface {
	Model
	// Parts returns the parts of a pass's price, which add up to it: first those of prefill, then those of decode.
	Parts(p *Pass) []Part
}

var _ Explainer = decomposed{}

// Parts implements [Explainer].
func (m decomposed) Parts(p *Pass) []Part {
	var parts []Part
	if p.Prefill.newTokens() > 0 {
		parts = m.prefillParts(p)
	}
	if p.Decode.Requests > 0 {
		parts = append(parts, m.decodeParts(p)...)
	}
	return parts
}

func (m decomposed) prefillParts(p *Pass) []Part {
	f := &p.Prefill
	b := m.perRank(f.Requests)
	tokens, logits := b*(f.Length-f.Prefix), b
	attention := Part{Kind: PartPrefillAttention, Requests: b, Length: f.Length, Prefix: f.Prefix, Ms: m.PrefillAttention(b, f.Length, f.Prefix)}
	switch m.mode {
	case ModeFused:
		decodes := m.decodeBatch(&p.Decode)
		tokens, logits = m.perRank(f.Tokens)+decodes, m.perRank(f.Finishing)+decodes
	case ModeSerialExact:
		tokens = m.perRank(f.Tokens)
		attention.Ms = m.attentionOfEach(f)
	}
	if m.covers != nil {
		attention.Extrapolated = !m.covers.MeasuredPrefill(b, f.Length)
	}
	rest := Part{Kind: PartTokens, Tokens: tokens, Ms: m.Tokens(tokens), Extrapolated: m.covers != nil && !m.covers.MeasuredTokens(m.perRank(f.Tokens))}
	if ms := m.Requests(logits); ms < 0 {
		rest.Ms += ms // of legacy tables it is just what the other parts leave to the whole
	} else {
		return []Part{rest, {Kind: PartLogits, Requests: logits, Ms: ms}, attention}
	}
	return []Part{rest, attention}
}

func (m decomposed) decodeParts(p *Pass) []Part {
	b, sequence := m.decodeBatch(&p.Decode), p.Decode.Context+1
	attention := m.GenerationAttention(b, sequence)
	correction := 0.0
	if t, ok := m.operators.(*tables.Table); ok {
		correction = t.CorrectionMs()
	}
	var parts []Part
	total := attention
	// A fused pass has the rest of the decode step among its tokens and logits.
	if m.mode != ModeFused || p.Prefill.newTokens() == 0 {
		generation := m.Generation(b)
		total += generation
		parts = append(parts, Part{Kind: PartGeneration, Decode: true, Requests: b, Ms: generation})
	}
	parts = append(parts, Part{
		Kind: PartGenerationAttention, Decode: true, Requests: b, Length: sequence, Ms: attention - correction,
		Extrapolated: m.decodeLeaves(b, &p.Decode),
	})
	if correction > 0 {
		parts = append(parts, Part{Kind: PartCorrection, Decode: true, Ms: correction})
	}
	if least := m.Price(p).DecodeMs; least > total {
		parts = append(parts, Part{Kind: PartLeast, Decode: true, Ms: least - total})
	}
	return parts
}
