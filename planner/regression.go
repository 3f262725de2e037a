package planner

import "math"

// regression is the performance model of ai-dynamo 1.2 (planner specification §5): one linear function for all passes of a
// pool.
type regression struct {
	kind   poolKind
	limits limits
	kept   *retention
	least  int
	// promptTokens, contextTokens, passTokens and decodes are means: of the tokens that a pass computes of a prompt, of the
	// length of a request that decodes, of the tokens that a pass computes, of the requests that decode.
	promptTokens, contextTokens, passTokens, decodes movingAverage
	fitted                                           plane
	ready, stale                                     bool
	buf                                              []sample
}

// newRegression makes the model of a pool.
func newRegression(kind poolKind, c *Config, l limits) *regression {
	dims := 2
	if kind == prefillPool {
		dims = 1
	}
	return &regression{
		kind: kind, limits: l, least: c.LoadMinObservations, stale: true,
		kept:         newRetention(dims, c.FPMSampleBucketSize, c.MaxNumFPMSamples),
		promptTokens: newMovingAverage(c.MaxNumFPMSamples), contextTokens: newMovingAverage(c.MaxNumFPMSamples),
		passTokens: newMovingAverage(c.MaxNumFPMSamples), decodes: newMovingAverage(c.MaxNumFPMSamples),
	}
}

func (m *regression) observe(passes []pass) {
	for i := range passes {
		p := &passes[i]
		m.average(p)
		if p.wallSeconds == 0 {
			continue
		}
		x := [2]float64{float64(p.prefillTokens), float64(p.decodeTokens)}
		switch m.kind {
		case prefillPool:
			x[1] = 0
		case decodePool:
			x[0] = float64(p.decodes)
		}
		m.kept.add(sample{x: x, y: p.wallSeconds})
		m.stale = true
	}
}

// average adds a pass to the means.
func (m *regression) average(p *pass) {
	if p.prefills > 0 {
		m.promptTokens.add(float64(p.prefillTokens) / float64(p.prefills))
	} else if m.kind == prefillPool {
		m.promptTokens.add(0)
	}
	if p.decodes > 0 {
		m.contextTokens.add(float64(p.decodeTokens) / float64(p.decodes))
	}
	m.passTokens.add(float64(p.prefillTokens))
	m.decodes.add(float64(p.decodes))
}

func (m *regression) sufficient() bool { return m.kept.count >= m.least }

// fit learns from the samples if there are new ones, and tells whether they make sense.
func (m *regression) fit() bool {
	if m.stale {
		m.stale = false
		if m.ready = m.sufficient(); m.ready {
			m.buf = m.kept.all(m.buf[:0])
			m.fitted = leastSquares(m.buf, m.kept.dims)
			m.ready = m.fitted.sensible(m.kind == decodePool)
		}
	}
	return m.ready
}

// predict returns the time of a pass in seconds, of a model that makes sense.
func (m *regression) predict(x ...float64) float64 {
	var load [2]float64
	copy(load[:], x)
	return max(m.fitted.at(load), 1e-6)
}

func (m *regression) ttftMs(w *pass, q ttftQuery) (float64, bool) {
	queued, decoding := float64(w.queuedPrefillTokens), float64(w.decodeTokens)
	if q.queue != 1 {
		queued = math.Trunc(queued * q.queue)
	}
	if q.consolidated > 0 {
		decoding = math.Trunc(float64(w.decodeTokens+w.queuedDecodeTokens) * q.consolidated)
	}
	seconds, ok := m.promptSeconds(queued, decoding, q.hitRate)
	return 1000 * seconds, ok
}

// promptSeconds estimates how long it takes until the queued tokens and an average prompt are computed, pass by pass.
func (m *regression) promptSeconds(queued, decoding, hitRate float64) (seconds float64, ok bool) {
	if !m.fit() || m.limits.batchedTokens <= 0 {
		return 0, false
	}
	left := (queued + m.promptTokens.mean()) * (1 - cachedShare(hitRate))
	for most := float64(m.limits.batchedTokens); left > 0; left -= most {
		if m.kind == prefillPool {
			seconds += m.predict(min(left, most))
		} else {
			seconds += m.predict(min(left, most), decoding)
		}
	}
	return seconds, true
}

func (m *regression) itlMs(w *pass, q itlQuery) (float64, bool) {
	if !m.fit() {
		return 0, false
	}
	tokens := float64(w.decodeTokens + w.queuedDecodeTokens)
	if q.consolidated > 0 {
		if m.kind == aggregatedPool {
			tokens += float64(w.queuedPrefillTokens)
		}
		tokens = math.Trunc(tokens * q.consolidated)
	}
	tokens += m.contextTokens.mean()
	if m.kind == decodePool {
		return 1000 * m.predict(m.decodes.mean()+1, tokens), true
	}
	return 1000 * m.predict(m.passTokens.mean(), tokens), true
}

func (m *regression) capacity(q capacityQuery) (capacity, bool) {
	if !m.fit() || q.inputTokens <= 0 {
		return capacity{}, false
	}
	switch m.kind {
	case prefillPool:
		return m.prefillCapacity(q), true
	case decodePool:
		return m.decodeCapacity(q)
	}
	return m.aggregatedCapacity(q)
}

// prefillCapacity computes one prompt after the other, whatever the SLA.
func (m *regression) prefillCapacity(q capacityQuery) capacity {
	tokens, most := q.inputTokens*(1-cachedShare(q.hitRate)), float64(m.limits.batchedTokens)
	seconds := m.predict(tokens)
	if tokens > most {
		passes := math.Ceil(tokens / most)
		seconds = (passes-1)*m.predict(most) + m.predict(tokens-(passes-1)*most)
	}
	return capacity{requestsPerSecond: 1 / seconds, ttftMs: 1000 * seconds, itlMs: math.NaN(), eligible: 1000*seconds <= q.ttftMs}
}

// decodeCapacity looks for the greatest batch within the SLA; one request is taken to be possible.
func (m *regression) decodeCapacity(q capacityQuery) (capacity, bool) {
	context := q.inputTokens + q.outputTokens/2
	if q.outputTokens <= 0 {
		return capacity{}, false
	}
	fits := max(1, math.Trunc(float64(m.limits.kvTokens)/context))
	low, high := 1.0, fits
	if m.limits.sequences > 0 {
		high = max(1, min(fits, float64(m.limits.sequences)))
	}
	within := func(batch float64) bool { return 1000*m.predict(batch, batch*context) <= q.itlMs }
	batch := 1.0
	for low <= high && within(1) {
		if middle := math.Floor((low + high) / 2); within(middle) {
			batch, low = middle, middle+1
		} else {
			high = middle - 1
		}
	}
	seconds := m.predict(batch, batch*context)
	return capacity{
		requestsPerSecond: batch / (q.outputTokens * seconds), ttftMs: math.NaN(), itlMs: 1000 * seconds,
		eligible: 1000*seconds <= q.itlMs,
	}, true
}

// aggregatedCapacity takes greater and greater batches until one misses the SLA; one request is taken to be possible.
func (m *regression) aggregatedCapacity(q capacityQuery) (c capacity, ok bool) {
	most := float64(m.limits.batchedTokens)
	if q.outputTokens <= 0 || most <= 0 {
		return c, false
	}
	computed := q.inputTokens * (1 - cachedShare(q.hitRate))
	context := q.inputTokens + q.outputTokens/2
	fits := 1024.0
	if m.limits.kvTokens > 0 {
		fits = max(1, math.Trunc(float64(m.limits.kvTokens)/max(1, context)))
	}
	if m.limits.sequences > 0 {
		fits = min(fits, float64(m.limits.sequences))
	}
	greatest := balanced(max(1, min(fits, most-1)), most, computed, q.outputTokens)
	for batch := 1.0; batch <= greatest; batch++ {
		tokens := batch * context
		seconds := m.predict(min(batch*computed/max(1, q.outputTokens), most), tokens)
		prompts := math.Trunc(min(batch*q.inputTokens/max(1, q.outputTokens), most))
		ttft, _ := m.promptSeconds(prompts, math.Trunc(tokens), q.hitRate)
		r := capacity{
			requestsPerSecond: batch / (q.outputTokens * seconds), ttftMs: 1000 * ttft, itlMs: 1000 * seconds,
			eligible: 1000*seconds <= q.itlMs && 1000*ttft <= q.ttftMs,
		}
		if batch == 1 || r.eligible {
			c = r
		}
		if !r.eligible {
			break
		}
	}
	return c, true
}

// balanced returns the greatest batch for which prompts are computed as fast as requests end: computed tokens each, in the
// room that the batch's own tokens leave in a pass, within the time of an output.
func balanced(greatest, most, computed, output float64) float64 {
	low, high := 1.0, greatest
	for low < high {
		if middle := math.Floor((low + high + 1) / 2); most > middle && computed/(most-middle) <= output {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}
