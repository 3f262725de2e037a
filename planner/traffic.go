package planner

import (
	"math"

	"github.com/servegrid/servegrid/simcore/engine"
)

// traffic collects what came and went since the last look at it.
type traffic struct {
	rules ruleSet
	// since is when that was, in seconds.
	since                                    float64
	arrived, completed, ttfts, itls, routed  int
	arrivedTokens, inputTokens, outputTokens int64
	reusedTokens                             int64
	ttftMs, itlMs, hitRates                  float64
	// prompts is the mean length of the last prompts that arrived.
	prompts movingAverage
}

func (w *traffic) arrive(r *engine.Request) {
	w.arrived++
	w.arrivedTokens += int64(r.Input)
	w.prompts.add(float64(r.Input))
}

func (w *traffic) complete(r *engine.Request) {
	w.completed++
	w.inputTokens += int64(r.Input)
	w.outputTokens += int64(r.Output)
	w.reusedTokens += int64(r.ReusedFirst)
	if ttft := r.FirstTokenMs - r.ArrivalMs; ttft > 0 {
		w.ttfts++
		w.ttftMs += ttft
	}
	if r.Tokens > 1 && r.LastTokenMs > r.FirstTokenMs {
		w.itls++
		w.itlMs += (r.LastTokenMs - r.FirstTokenMs) / float64(r.Tokens-1)
	}
}

func (w *traffic) route(overlap, prompt int) {
	if prompt <= 0 {
		return
	}
	w.routed++
	w.hitRates += float64(overlap) / float64(prompt)
}

// drain returns what came since the last time, and begins anew; nil if no time has passed.
func (w *traffic) drain(now float64) *Load {
	fresh := traffic{rules: w.rules, since: now, prompts: w.prompts}
	defer func() { *w = fresh }()
	if now <= w.since {
		return nil
	}
	l := &Load{
		DurationSeconds: now - w.since, Requests: float64(w.completed),
		InputTokens:  perOne(float64(w.inputTokens), w.completed),
		OutputTokens: perOne(float64(w.outputTokens), w.completed),
		TTFTMs:       math.NaN(), ITLMs: math.NaN(), KVHitRate: w.hitRate(),
	}
	if w.ttfts > 0 {
		l.TTFTMs = w.ttftMs / float64(w.ttfts)
	}
	if w.itls > 0 {
		l.ITLMs = w.itlMs / float64(w.itls)
	}
	if !w.rules.CompletionsForDemand {
		l.Requests = float64(w.arrived)
		l.InputTokens = perOne(float64(w.arrivedTokens), w.arrived)
	}
	return l
}

// hitRate is the share of prompt tokens that were cached; NaN if unknown.
func (w *traffic) hitRate() float64 {
	if w.rules.HitsOfRouterOnly {
		return perOne(w.hitRates, w.routed)
	}
	if w.inputTokens == 0 {
		return math.NaN()
	}
	return float64(w.reusedTokens) / float64(w.inputTokens)
}

// perOne divides a sum by a number, 0 by 0 being 0.
func perOne(sum float64, n int) float64 { return sum / float64(max(n, 1)) }
