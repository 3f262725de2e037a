package engine

import "github.com/servegrid/servegrid/simcore/perfmodel"

// price asks the timing model for the duration of this pass, whose prefill is set, with a decode step of requests of
// the given total length at the blocks held now.
func (v *VLLM) price(decoding int, lengths int64) (prefill, decode perfmodel.Nanoseconds) {
	v.setDecode(decoding, lengths)
	price := v.env.Model.Price(&v.priced)
	v.count(price)
	return v.quantise(price)
}

// priceDecode prices a decode step by itself, as those of a run are. It does not count as a pass.
func (v *VLLM) priceDecode(decoding int, lengths int64) perfmodel.Price {
	v.setDecode(decoding, lengths)
	return v.env.Model.Price(&v.priced)
}

// setPrefill tells the timing model what has been scheduled of prompts.
func (v *VLLM) setPrefill() {
	p := &v.priced.Prefill
	*p = perfmodel.Prefill{Chunks: p.Chunks[:0]}
	if n := v.pass.prefills; n > 0 {
		p.Requests, p.Length, p.Prefix = int(n), int(v.pass.after/n), int(v.pass.before/n)
		p.Tokens, p.Finishing = int(v.pass.after-v.pass.before), int(v.pass.finishing)
		if v.env.Model.PerRequest() {
			v.listChunks()
		}
	}
}

func (v *VLLM) setDecode(decoding int, lengths int64) {
	d := &v.priced.Decode
	*d = perfmodel.Decode{Requests: decoding, PoolTokens: v.cache.Total() * int(v.blockSize), Drafts: int(v.speculation.drafts)}
	if decoding > 0 {
		d.HeldTokens = v.cache.Held() * int(v.blockSize)
		d.Context = int(lengths / int64(decoding))
	}
}

// listChunks tells the timing model what the pass computes of each prompt.
func (v *VLLM) listChunks() {
	for _, id := range v.running {
		if r := &v.env.Requests[id]; r.pass == v.pass.number && r.after > r.before {
			v.priced.Prefill.Chunks = append(v.priced.Prefill.Chunks, perfmodel.Chunk{Before: int(r.before), Length: int(r.after)})
		}
	}
}

// count counts a pass with work in it.
func (v *VLLM) count(price perfmodel.Price) {
	if v.priced.Prefill.Requests+v.priced.Decode.Requests == 0 {
		return
	}
	v.passes++
	if price.Extrapolated {
		v.extrapolated++
	}
}

func (v *VLLM) quantise(price perfmodel.Price) (prefill, decode perfmodel.Nanoseconds) {
	speedup := v.env.Config.SpeedupRatio
	return perfmodel.Quantise(price.PrefillMs, speedup), perfmodel.Quantise(price.DecodeMs, speedup*v.env.Config.DecodeSpeedupRatio)
}
