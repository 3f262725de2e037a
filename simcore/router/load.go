package router

import (
	"math"
	"slices"
)

// prefillLoad is the prompt tokens that a worker has not computed yet, as the router believes.
type prefillLoad struct {
	tokens int64
	// With a prefill load model, prompts lists them in order of dispatch, and anchorMs is when the first of them became
	// that: it counts less as time goes by.
	prompts  []prompt
	anchorMs float64
}

// prompt is a prompt that is being computed, and how long that takes by prediction.
type prompt struct {
	request    int32
	tokens     int64
	durationMs float64
}

// addPredicted counts a prompt with a predicted duration.
func (l *prefillLoad) addPredicted(nowMs float64, p prompt) {
	if len(l.prompts) == 0 {
		l.anchorMs = nowMs
	}
	l.tokens += p.tokens
	l.prompts = append(l.prompts, p)
}

// removePredicted takes a prompt off. The time that a later one took was not the first one's.
func (l *prefillLoad) removePredicted(nowMs float64, request int32) {
	i := slices.IndexFunc(l.prompts, func(p prompt) bool { return p.request == request })
	if i < 0 {
		return
	}
	l.tokens -= l.prompts[i].tokens
	if i == 0 {
		l.anchorMs = nowMs
	} else {
		l.anchorMs = min(nowMs, l.anchorMs+l.prompts[i].durationMs)
	}
	l.prompts = slices.Delete(l.prompts, i, i+1)
}

// at is the load at a time: the first prompt's tokens pass away with its predicted duration, and those of later ones
// when it takes longer than predicted (spec/engine.md §11.5).
func (l *prefillLoad) at(nowMs float64) int64 {
	if len(l.prompts) == 0 {
		return l.tokens
	}
	first := &l.prompts[0]
	elapsed := max(0, nowMs-l.anchorMs)
	if first.durationMs <= 0 {
		return max(0, l.tokens-first.tokens)
	}
	done := math.Floor(float64(first.tokens) * elapsed / first.durationMs)
	return max(0, l.tokens-int64(min(done, float64(l.tokens))))
}
