package workload

import "math"

// Measured is what a capture says of how a request was served, for comparisons; it does not change a simulation. Times are NaN
// and counts -1 where the capture does not say.
type Measured struct {
	// ClientID is the X-Request-ID that the request came with; "" when the capture does not say.
	ClientID string
	// Model is what served it.
	Model string
	// StartMs is when it came, in ms since 1970, and DurationMs how long it took.
	StartMs, DurationMs float64
	// TTFTMs is the time to the first token, ITLMs the mean time between two tokens.
	TTFTMs, ITLMs float64
	// CachedTokens are those of the prompt that were in the prefix cache.
	CachedTokens int
}

// Measured returns what the source says of how a request was served, and whether it says anything.
func (w *Workload) Measured(request int) (Measured, bool) {
	if w.measured == nil || w.measured[request] == nil {
		return Measured{}, false
	}
	return *w.measured[request], true
}

// measured is what the record of a request says.
func (c *dynamoCapture) measured(r *dynamoRecord) *Measured {
	m := &Measured{
		ClientID: string(r.clientID), Model: c.models.same(r.model),
		StartMs: float64(r.receivedMs), DurationMs: float64(r.requestEndMs() - r.receivedMs), TTFTMs: math.NaN(), ITLMs: math.NaN(), CachedTokens: -1,
	}
	if r.has(hasTotalTime) {
		m.DurationMs = r.totalMs
	}
	if r.has(hasTTFT) {
		m.TTFTMs = r.ttftMs
	}
	if r.has(hasITL) {
		m.ITLMs = r.itlMs
	}
	if r.has(hasCached) && r.cached <= MaxTokens && r.cached == math.Trunc(r.cached) {
		m.CachedTokens = int(r.cached)
	}
	return m
}
