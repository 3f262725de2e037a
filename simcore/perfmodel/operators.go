package perfmodel

// operators is a deployment's cost by kind of operator, in ms for one pass of one attention data-parallel rank
// (perfmodel specification §1.2). A pass costs their sum.
type operators interface {
	// Tokens is what depends on the number of prompt tokens only: matrix multiplications, experts, norms,
	// communication.
	Tokens(x int) float64
	// Requests is the projection to logits of that many requests.
	Requests(b int) float64
	// PrefillAttention is the attention of b prompts with that many tokens, of which prefix exist already.
	PrefillAttention(b, length, prefix int) float64
	// Generation is a decode step without its attention.
	Generation(b int) float64
	// GenerationAttention is the attention of a decode step of b sequences with that many tokens, the new one
	// included.
	GenerationAttention(b, sequence int) float64
}

// coverage tells what the data behind operators covers.
type coverage interface {
	MeasuredTokens(x int) bool
	MeasuredPrefill(b, length int) bool
	MeasuredDecode(b, sequence int) bool
}

// decomposed prices passes from operators.
type decomposed struct {
	operators
	// covers is nil when nothing is measured.
	covers coverage
	mode   string
	// ranks is the number of data-parallel ranks that share a pass.
	ranks int
	// launch is what prefill attention costs once a pass, in ms.
	launch float64
	// draftLayers is the number of layers of the model where each draft costs one layer more, as aiconfigurator prices
	// multi-token prediction; 0 where drafts cost nothing beyond being verified.
	draftLayers int
}

func newDecomposed(o operators, covers coverage, c Config) decomposed {
	// With half a prompt cached, three quarters of the attention are left, and all of what does not depend on it.
	const length = 1024
	launch := max(0, 4*o.PrefillAttention(1, length, length/2)-3*o.PrefillAttention(1, length, 0))
	return decomposed{operators: o, covers: covers, mode: c.Mode, ranks: c.DP, launch: launch}
}

func (decomposed) ContextFree() bool  { return false }
func (m decomposed) PerRequest() bool { return m.mode == ModeSerialExact }

func (m decomposed) Price(p *Pass) Price {
	// Few passes have prompts, so those that have none come first.
	if p.Prefill.newTokens() == 0 {
		if p.Decode.Requests == 0 {
			return Price{}
		}
		return Price{DecodeMs: m.decode(&p.Decode), Extrapolated: m.decodeLeaves(m.decodeBatch(&p.Decode), &p.Decode)}
	}
	var out Price
	switch m.mode {
	case ModeFused:
		out = m.fused(p)
	case ModeSerialExact:
		out = m.serialExact(p)
	default:
		out = m.mocker(p)
	}
	out.PrefillMs = max(0, out.PrefillMs)
	out.Extrapolated = m.prefillLeaves(&p.Prefill) || p.Decode.Requests > 0 && m.decodeLeaves(m.decodeBatch(&p.Decode), &p.Decode)
	return out
}

// mocker prices prefill and decode apart and unequal prompts by their mean, as the reference does (§1.1).
func (m decomposed) mocker(p *Pass) Price {
	b := m.perRank(p.Prefill.Requests)
	return Price{
		PrefillMs: m.Tokens(b*(p.Prefill.Length-p.Prefill.Prefix)) + m.Requests(b) + m.PrefillAttention(b, p.Prefill.Length, p.Prefill.Prefix),
		DecodeMs:  m.decode(&p.Decode),
	}
}

// serialExact prices prefill and decode apart, with the true number of tokens and the attention of each prompt by
// itself.
func (m decomposed) serialExact(p *Pass) Price {
	return Price{
		PrefillMs: m.Tokens(m.perRank(p.Prefill.Tokens)) + m.Requests(m.perRank(p.Prefill.Requests)) + m.attentionOfEach(&p.Prefill),
		DecodeMs:  m.decode(&p.Decode),
	}
}

// fused prices one forward pass over all tokens, as aiconfigurator's mixed step does (§1.3). The decode part is
// what the attention of the decoding requests adds.
func (m decomposed) fused(p *Pass) Price {
	b, decodes := m.perRank(p.Prefill.Requests), m.decodeBatch(&p.Decode)
	out := Price{
		PrefillMs: m.Tokens(m.perRank(p.Prefill.Tokens)+decodes) + m.Requests(m.perRank(p.Prefill.Finishing)+decodes) +
			m.PrefillAttention(b, p.Prefill.Length, p.Prefill.Prefix),
	}
	if decodes > 0 {
		out.DecodeMs = m.GenerationAttention(decodes, p.Decode.Context+1)
	}
	return out
}

func (m decomposed) decode(d *Decode) float64 {
	if d.Requests == 0 {
		return 0
	}
	b := m.decodeBatch(d)
	ms := m.Generation(b) + m.GenerationAttention(b, d.Context+1)
	if m.draftLayers > 0 {
		ms *= 1 + float64(d.Drafts)/float64(m.draftLayers)
	}
	return max(minDecodeMs, ms)
}

// attentionOfEach sums the attention of the prompts of a pass, which the ranks share.
func (m decomposed) attentionOfEach(p *Prefill) float64 {
	sum := 0.0
	for _, c := range p.Chunks {
		sum += m.PrefillAttention(1, c.Length, c.Before) - m.launch
	}
	return m.launch + sum/float64(min(m.ranks, len(p.Chunks)))
}

// perRank is the share of the busiest rank.
func (m decomposed) perRank(n int) int {
	if m.ranks == 1 {
		return n
	}
	return (n + m.ranks - 1) / m.ranks
}

// decodeBatch is the number of tokens that a rank decodes at once: of each request the next one and its drafts.
func (m decomposed) decodeBatch(d *Decode) int { return m.perRank(d.Requests) * (1 + d.Drafts) }

func (m decomposed) prefillLeaves(p *Prefill) bool {
	if m.covers == nil {
		return false
	}
	b := m.perRank(p.Requests)
	return !m.covers.MeasuredTokens(m.perRank(p.Tokens)) || !m.covers.MeasuredPrefill(b, p.Length)
}

func (m decomposed) decodeLeaves(b int, d *Decode) bool {
	return m.covers != nil && !m.covers.MeasuredDecode(b, d.Context+1)
}
