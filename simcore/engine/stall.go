package engine

// This file adds up how long requests are stalled: from the pass in which one loses its KV blocks until its next token, so
// that waiting again and computing again both count.

// stall notes that a request loses its KV blocks in the pass that begins at now.
func (env *Environment) stall(r *Request, now float64) {
	if !r.stalled {
		r.stalled, r.stalledSinceMs = true, now
		env.stalled++
	}
}

// endStall ends the stall of a request that gets a token in the pass from now to end. If the pass took its KV blocks all the
// same, after the token was computed, the next stall begins with the token.
func (env *Environment) endStall(r *Request, now, end float64) {
	stillAway := r.State == Preempted
	if r.stalledSinceMs < now || !stillAway {
		r.StallMs += end - r.stalledSinceMs
		if r.FirstTokenMs == Never {
			r.FirstStallMs = r.StallMs
		}
		r.StallLoadMs = r.LoadWaitMs - r.AdmitLoadMs
	}
	if r.stalled, r.stalledSinceMs = stillAway, end; !stillAway {
		env.stalled--
	}
}

// admitFirst notes the first admission of a request, and how many tokens of it were cached.
func (r *Request) admitFirst(now float64, cached int32) {
	r.AdmittedMs, r.ReusedFirst, r.AdmitLoadMs = now, cached, r.LoadWaitMs
}
