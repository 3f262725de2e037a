package planner

import "math"

// candidateBatches is how many batch sizes a search for the capacity tries at most.
const candidateBatches = 128

// rating is what a batch size gives: whether it is possible at all, and what it serves then.
type rating struct {
	capacity
	possible bool
}

// capacity tries batch sizes from one to what fits, and takes the one that serves most within the SLA, or most of all if
// none is within it. It knows nothing as soon as one of the passes that it asks for is unknown.
func (m *storeModel) capacity(q capacityQuery) (capacity, bool) {
	input, output := ceilTokens(q.inputTokens), max(1, ceilTokens(q.outputTokens))
	if input == 0 || m.kind != prefillPool && q.outputTokens <= 0 {
		return capacity{}, false
	}
	shape := batchShape{
		model: m, query: q, input: input, output: output,
		computed: ceilTokens(float64(input) * (1 - cachedShare(q.hitRate))),
		context:  input + output/2,
	}
	greatest := shape.greatest()
	var best capacity
	found := false
	for i := range min(greatest, int64(candidateBatches)) {
		batch := i + 1
		if greatest > candidateBatches {
			batch = 1 + i*(greatest-1)/(candidateBatches-1)
		}
		r, ok := shape.rate(batch)
		if !ok {
			return capacity{}, false
		}
		if r.possible && (!found || r.betterThan(best)) {
			best, found = r.capacity, true
		}
	}
	return best, found
}

// betterThan prefers what is within the SLA, and then what serves more.
func (c capacity) betterThan(other capacity) bool {
	if c.eligible != other.eligible {
		return c.eligible
	}
	return c.requestsPerSecond > other.requestsPerSecond
}

// batchShape is a batch of requests of one shape: computed prompt tokens are what the cache does not have of input, context
// is the length of a request half way through its output.
type batchShape struct {
	model                            *storeModel
	query                            capacityQuery
	input, output, computed, context int64
}

// greatest returns the greatest batch that fits.
func (b *batchShape) greatest() int64 {
	l := b.model.limits
	switch b.model.kind {
	case prefillPool:
		if b.computed > l.batchedTokens {
			return 1
		}
		return min(l.sequences, l.batchedTokens/max(b.computed, 1))
	case decodePool:
		return min(l.sequences, l.kvTokens/max(b.context, 1))
	}
	return min(l.sequences, l.kvTokens/max(b.context, 1), l.batchedTokens-1)
}

// rate tells what a batch size serves; ok is false when a pass is unknown.
func (b *batchShape) rate(batch int64) (r rating, ok bool) {
	switch b.model.kind {
	case prefillPool:
		return b.ratePrefill(batch)
	case decodePool:
		return b.rateDecode(batch)
	}
	return b.rateAggregated(batch)
}

func (b *batchShape) ratePrefill(batch int64) (rating, bool) {
	ms, ok := b.model.promptMs(b.computed*batch, 0, 0)
	return rating{possible: ms > 0, capacity: capacity{
		requestsPerSecond: float64(batch) / ms * 1000, ttftMs: ms, itlMs: math.NaN(), eligible: ms <= b.query.ttftMs,
	}}, ok
}

func (b *batchShape) rateDecode(batch int64) (rating, bool) {
	ms, ok := b.model.passMs(0, batch, batch*b.context)
	ms = wholeNanoseconds(ms / b.query.acceptLength)
	return rating{possible: ms > 0, capacity: capacity{
		requestsPerSecond: float64(batch) / (float64(b.output) * ms) * 1000,
		ttftMs:            math.NaN(), itlMs: ms, eligible: ms <= b.query.itlMs,
	}}, ok
}

// rateAggregated reckons with passes that decode the batch and compute as many prompt tokens as replace the requests that
// end meanwhile.
func (b *batchShape) rateAggregated(batch int64) (rating, bool) {
	refill := ceilTokens(float64(batch) * b.query.acceptLength * float64(b.computed) / float64(b.output))
	if refill > b.model.limits.batchedTokens-batch {
		return rating{}, true
	}
	itl, ok := b.model.passMs(refill, batch, batch*b.context)
	if !ok {
		return rating{}, false
	}
	ttft, ok := b.model.promptMs(refill+b.computed, batch, batch*b.context)
	itl = wholeNanoseconds(itl / b.query.acceptLength)
	return rating{possible: itl > 0, capacity: capacity{
		requestsPerSecond: float64(batch) / (float64(b.output) * itl) * 1000,
		ttftMs:            ttft, itlMs: itl, eligible: ttft <= b.query.ttftMs && itl <= b.query.itlMs,
	}}, ok
}
