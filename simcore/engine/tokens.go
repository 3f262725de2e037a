package engine

import (
	"math"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// recordTokens stamps the tokens of a pass that begins at now with its end, and appends to signals which requests they
// begin or complete.
func (env *Environment) recordTokens(emitted []int32, now, end float64, duration perfmodel.Nanoseconds, signals []Signal) []Signal {
	together := int64(0) // requests whose last token came out at the start of this pass
	for _, id := range emitted {
		r := &env.Requests[id]
		first, ended := r.FirstTokenMs == Never, r.State == Completed
		if first || ended {
			signals = append(signals, Signal{Request: id, First: first, Ended: ended})
		}
		if env.stalled > 0 && r.stalled {
			env.endStall(r, now, end)
		}
		switch {
		case r.Output == 0:
			env.PromptsEndMs = max(env.PromptsEndMs, end)
			continue
		case r.FirstTokenMs == Never:
			r.FirstTokenMs = end
		default:
			if r.LastTokenMs == now {
				together++
			} else {
				env.Gaps.RecordGaps(perfmodel.Nanoseconds(math.Round((end-r.LastTokenMs)*1e6)), 1)
			}
		}
		if r.burst > 1 {
			env.Gaps.RecordGaps(0, int64(r.burst-1))
		}
		if r.SecondTokenMs == Never && r.Tokens > 1 {
			r.SecondTokenMs = end
		}
		r.LastTokenMs = end
	}
	if together > 0 {
		env.Gaps.RecordGaps(duration, together)
	}
	return signals
}
