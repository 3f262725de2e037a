package engine

import "github.com/servegrid/servegrid/simcore/perfmodel"

// pricer asks the timing model how long the passes of a worker take, and counts them.
type pricer struct {
	env *Environment
	// chargesContext prices decode steps by the known tokens of the requests instead of the blocks that they hold.
	chargesContext bool

	pass perfmodel.Pass // the pass as the timing model sees it; kept for its memory

	passes       int64 // passes priced, and those of them that the timing model had to extrapolate
	extrapolated int64
}

// prefillWork is what a pass computes of prompts.
type prefillWork struct {
	prompts       int64 // prompts computed, and the sums of their lengths before and after the pass
	before, after int64
	finishing     int64 // prompts that the pass completes
}

// add adds what is computed of one prompt of the given length; remove takes it back.
func (w *prefillWork) add(before, after, input int32)    { w.count(before, after, input, 1) }
func (w *prefillWork) remove(before, after, input int32) { w.count(before, after, input, -1) }

func (w *prefillWork) count(before, after, input int32, n int64) {
	w.prompts += n
	w.before += n * int64(before)
	w.after += n * int64(after)
	if after == input {
		w.finishing += n
	}
}

// setPrefill tells the timing model what the pass computes of prompts, all chunks of which the caller adds if the
// model wants to know them.
func (p *pricer) setPrefill(w prefillWork) {
	f := &p.pass.Prefill
	*f = perfmodel.Prefill{Chunks: f.Chunks[:0]}
	if n := w.prompts; n > 0 {
		f.Requests, f.Length, f.Prefix = int(n), int(w.after/n), int(w.before/n)
		f.Tokens, f.Finishing = int(w.after-w.before), int(w.finishing)
	}
}

// addChunk tells the timing model what the pass computes of one prompt.
func (p *pricer) addChunk(before, after int32) {
	p.pass.Prefill.Chunks = append(p.pass.Prefill.Chunks, perfmodel.Chunk{Before: int(before), Length: int(after)})
}

// setDecode tells the timing model that the pass has a decode step of requests with the given total length, while
// blocks of held tokens are held.
func (p *pricer) setDecode(requests int, lengths int64, held int) {
	d := &p.pass.Decode
	c := &p.env.Config
	*d = perfmodel.Decode{Requests: requests, PoolTokens: c.NumGPUBlocks * c.BlockSize, Drafts: c.NumSpeculativeTokens}
	if requests > 0 {
		d.HeldTokens = held
		if p.chargesContext {
			d.HeldTokens = int(min(lengths, int64(d.PoolTokens)))
		}
		d.Context = int(lengths / int64(requests))
	}
}

// equalPasses reports that successive decode steps of the same requests take equally long while no block is taken.
func (p *pricer) equalPasses() bool { return p.env.Model.ContextFree() && !p.chargesContext }

// price returns the duration of the pass and counts it.
func (p *pricer) price() (prefill, decode perfmodel.Nanoseconds) {
	price := p.env.Model.Price(&p.pass)
	if p.pass.Prefill.Requests+p.pass.Decode.Requests > 0 {
		p.passes++
		if price.Extrapolated {
			p.extrapolated++
		}
	}
	return p.quantise(price)
}

func (p *pricer) quantise(price perfmodel.Price) (prefill, decode perfmodel.Nanoseconds) {
	speedup := p.env.Config.SpeedupRatio
	return perfmodel.Quantise(price.PrefillMs, speedup), perfmodel.Quantise(price.DecodeMs, speedup*p.env.Config.DecodeSpeedupRatio)
}
