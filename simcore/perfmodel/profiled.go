package perfmodel

import "github.com/servegrid/servegrid/simcore/perfmodel/profile"

// profiled prices passes from a profile.
type profiled struct{ *profile.Profile }

func (profiled) PerRequest() bool { return false }

func (m profiled) Price(p *Pass) Price {
	var out Price
	if n := p.Prefill.newTokens(); n > 0 {
		tokens := p.Prefill.Length - p.Prefill.Prefix
		out.PrefillMs = max(0, m.PrefillMs(p.Prefill.Requests, tokens, p.Prefill.Prefix))
		out.Extrapolated = !m.MeasuredPrefill(p.Prefill.Requests, tokens, p.Prefill.Prefix)
	}
	if p.Decode.Requests > 0 {
		out.DecodeMs = max(minDecodeMs, m.DecodeMs(p.Decode.Requests, p.Decode.HeldTokens, p.Decode.Context))
		out.Extrapolated = out.Extrapolated || !m.MeasuredDecode(p.Decode.Requests, p.Decode.HeldTokens, p.Decode.Context)
	}
	return out
}
