package planner

import "math"

// perfModel learns from passes how long the workers of a pool take, and tells what that means for requests (planner
// specification §5 and §15).
type perfModel interface {
	// observe learns from passes that ended together.
	observe(passes []pass)
	// sufficient tells whether the passes that it keeps suffice for load scaling.
	sufficient() bool
	// ttftMs estimates how many ms it takes until an average prompt that comes next has its first token. ok tells whether
	// that is known.
	ttftMs(w *pass, q ttftQuery) (ms float64, ok bool)
	// itlMs estimates the inter-token latency with an average request more.
	itlMs(w *pass, q itlQuery) (ms float64, ok bool)
	// capacity finds how many requests per second a worker serves within the SLA.
	capacity(q capacityQuery) (c capacity, ok bool)
}

// pass is what the planner knows of a pass of a worker: what it computed, what waited, and how long it took.
type pass struct {
	worker int32
	// prefills is the number of prompts, prefillTokens that of their tokens which were computed.
	prefills, prefillTokens int64
	// decodes is the number of requests that decoded, decodeTokens the sum of their lengths.
	decodes, decodeTokens int64
	// queuedPrefills and queuedPrefillTokens are of prompts that were never scheduled, queuedDecodes and
	// queuedDecodeTokens of preempted requests.
	queuedPrefills, queuedPrefillTokens int64
	queuedDecodes, queuedDecodeTokens   int64
	wallSeconds                         float64
}

// ttftQuery is what to reckon with besides what a worker reported.
type ttftQuery struct {
	// queue is what to multiply the queued prompts with: 0 for the prompt alone, 1 for now, more when the prompts of another
	// worker come too.
	queue float64
	// consolidated multiplies what decodes with the same, preempted requests included; 0 leaves it as it is.
	consolidated float64
	// hitRate is the share of prompt tokens that are cached.
	hitRate float64
	// promptTokens is the length of the prompt; 0 means the mean of what passes computed of one.
	promptTokens float64
}

// itlQuery is the same for the inter-token latency.
type itlQuery struct {
	// consolidated multiplies what decodes and waits, as if another worker's requests came too; 0 leaves it as it is.
	consolidated float64
	// acceptLength is the number of tokens that a pass gives a request on average, with speculative decoding.
	acceptLength float64
}

// capacityQuery asks for the capacity for requests of one shape.
type capacityQuery struct {
	inputTokens, outputTokens float64
	ttftMs, itlMs             float64
	hitRate, acceptLength     float64
}

// capacity is what a worker serves.
type capacity struct {
	requestsPerSecond float64
	// ttftMs and itlMs are the latencies at that rate; eligible tells whether they are within the SLA.
	ttftMs, itlMs float64
	eligible      bool
}

// newPerfModel makes the performance model of a pool.
func newPerfModel(kind poolKind, c *Config, r ruleSet, l limits) perfModel {
	if r.OneRegression {
		return newRegression(kind, c, l)
	}
	return newStoreModel(kind, c, r, l)
}

// limits are those of an engine. Zero means unknown.
type limits struct {
	batchedTokens, sequences, kvTokens int64
}

// movingAverage is the mean of the last values of a series that begins with the first one that is not zero.
type movingAverage struct {
	ring []float64
	// kept is the number of values, oldest the place of the first one once the ring is full.
	kept, oldest int
	sum          float64
}

func newMovingAverage(window int) movingAverage {
	return movingAverage{ring: make([]float64, max(window, 1))}
}

// add appends a value.
func (m *movingAverage) add(v float64) {
	if v == 0 && m.kept == 0 {
		return
	}
	m.sum += v
	if m.kept < len(m.ring) {
		m.ring[m.kept] = v
		m.kept++
		return
	}
	m.sum -= m.ring[m.oldest]
	m.ring[m.oldest] = v
	m.oldest = (m.oldest + 1) % len(m.ring)
}

// mean returns the mean, 0 of no values.
func (m *movingAverage) mean() float64 {
	if m.kept == 0 {
		return 0
	}
	return m.sum / float64(m.kept)
}

// ceilTokens rounds a number of tokens or requests up; there are no fewer than none.
func ceilTokens(v float64) int64 { return int64(math.Ceil(math.Max(v, 0))) }
