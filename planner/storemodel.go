package planner

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// poolKind says what the workers of a pool do.
type poolKind int8

const (
	aggregatedPool poolKind = iota
	prefillPool
	decodePool
)

// storeModel is the performance model of ai-dynamo 1.3 and later (planner specification §15): passes that only compute
// prompts, passes that only decode and passes that do both are learned apart, each with a regression of its own.
type storeModel struct {
	kind   poolKind
	rules  ruleSet
	limits limits
	// stores are one for each kind of pass.
	stores [3]passStore
	// passTokens is the mean number of prompt tokens of a pass, promptTokens that of a prompt in a pass, contextTokens the
	// mean length of a request that decodes.
	passTokens, promptTokens, contextTokens movingAverage
}

// The kinds of passes.
const (
	prefillsOnly = iota
	decodesOnly
	mixedPass
)

// newStoreModel makes the model of a pool.
func newStoreModel(kind poolKind, c *Config, r ruleSet, l limits) *storeModel {
	m := &storeModel{
		kind: kind, rules: r, limits: l,
		passTokens:    newMovingAverage(c.MaxNumFPMSamples),
		promptTokens:  newMovingAverage(c.MaxNumFPMSamples),
		contextTokens: newMovingAverage(c.MaxNumFPMSamples),
	}
	for i := range m.stores {
		dims := 2
		if i == prefillsOnly {
			dims = 1
		}
		m.stores[i] = passStore{
			kept:  newRetention(dims, c.FPMSampleBucketSize, c.MaxNumFPMSamples),
			least: c.LoadMinObservations, clampFirst: i == decodesOnly, rules: r, stale: true,
		}
		m.stores[i].kept.newestGivesUp = r.NewestPartGivesUp
	}
	return m
}

// observe learns the passes in the order of their workers' ids as text, as the reference does.
func (m *storeModel) observe(passes []pass) {
	for i := range passes {
		p := &passes[i]
		prompt := 0.0
		if p.prefills > 0 {
			prompt = float64(p.prefillTokens) / float64(p.prefills)
		}
		m.promptTokens.add(prompt)
		if p.decodes > 0 {
			m.contextTokens.add(float64(p.decodeTokens) / float64(p.decodes))
		}
	}
	if len(passes) > 1 {
		passes = slices.SortedStableFunc(slices.Values(passes), func(a, b pass) int {
			return strings.Compare(strconv.Itoa(int(a.worker)), strconv.Itoa(int(b.worker)))
		})
	}
	for i := range passes {
		m.learn(&passes[i])
	}
}

// learn adds a pass to the samples of its kind.
func (m *storeModel) learn(p *pass) {
	m.passTokens.add(float64(p.prefillTokens))
	kind, x := classify(p.prefillTokens, p.decodes, p.decodeTokens)
	if x != ([2]float64{}) && p.wallSeconds > 0 {
		s := &m.stores[kind]
		s.kept.add(sample{x: x, y: p.wallSeconds * 1000})
		s.stale = true
	}
}

// classify returns the kind of a pass and its load as that kind's regression sees it; a zero load of a pass that does
// nothing.
func classify(prefillTokens, decodes, decodeTokens int64) (kind int, x [2]float64) {
	switch {
	case decodes == 0:
		return prefillsOnly, [2]float64{float64(prefillTokens)}
	case prefillTokens == 0:
		return decodesOnly, [2]float64{float64(decodes), float64(decodeTokens)}
	}
	return mixedPass, [2]float64{float64(prefillTokens), float64(decodeTokens)}
}

func (m *storeModel) sufficient() bool {
	for i := range m.stores {
		if m.stores[i].fit() {
			return true
		}
	}
	return false
}

// passMs estimates the time of a pass in ms; one that does nothing takes none.
func (m *storeModel) passMs(prefillTokens, decodes, decodeTokens int64) (float64, bool) {
	kind, x := classify(prefillTokens, decodes, decodeTokens)
	if x == ([2]float64{}) {
		return 0, true
	}
	ms, ok := m.stores[kind].at(x)
	if kind == mixedPass && !m.rules.NoNegativeSlopes {
		// A pass that does both takes no less than one that does either.
		for _, part := range []struct{ prefillTokens, decodes, decodeTokens int64 }{{prefillTokens, 0, 0}, {0, decodes, decodeTokens}} {
			if alone, known := m.passMs(part.prefillTokens, part.decodes, part.decodeTokens); known {
				ms, ok = max(ms, alone), true
			}
		}
	}
	return ms, ok
}

func (m *storeModel) ttftMs(w *pass, q ttftQuery) (float64, bool) {
	prompt := q.promptTokens
	if prompt == 0 {
		prompt = m.promptTokens.mean()
	}
	tokens := ceilTokens((float64(w.queuedPrefillTokens)*q.queue + prompt) * (1 - cachedShare(q.hitRate)))
	if m.kind == prefillPool {
		return m.promptMs(tokens, 0, 0)
	}
	decodes, decodeTokens := float64(w.decodes), float64(w.decodeTokens)
	if q.consolidated > 0 {
		decodes = (decodes + float64(w.queuedDecodes)) * q.consolidated
		decodeTokens = (decodeTokens + float64(w.queuedDecodeTokens)) * q.consolidated
	}
	return m.promptMs(tokens, ceilTokens(decodes), ceilTokens(decodeTokens))
}

// promptMs estimates how long it takes to compute prompts while requests decode, in as many passes as it needs.
func (m *storeModel) promptMs(tokens, decodes, decodeTokens int64) (ms float64, ok bool) {
	if whole := tokens / m.limits.batchedTokens; whole > 0 {
		one, ok := m.passMs(m.limits.batchedTokens, decodes, decodeTokens)
		if !ok {
			return 0, false
		}
		ms = float64(whole) * one
	}
	if rest := tokens % m.limits.batchedTokens; rest > 0 {
		last, ok := m.passMs(rest, decodes, decodeTokens)
		if !ok {
			return 0, false
		}
		ms += last
	}
	return ms, true
}

func (m *storeModel) itlMs(w *pass, q itlQuery) (float64, bool) {
	decodes := float64(w.decodes + w.queuedDecodes)
	decodeTokens := float64(w.decodeTokens + w.queuedDecodeTokens)
	if q.consolidated > 0 {
		if m.kind == aggregatedPool {
			decodes += float64(w.queuedPrefills)
			decodeTokens += float64(w.queuedPrefillTokens)
		}
		decodes *= q.consolidated
		decodeTokens *= q.consolidated
	}
	if context := m.contextTokens.mean(); context > 0 {
		decodes++
		decodeTokens += context
	}
	prefillTokens := int64(0)
	if m.kind == aggregatedPool {
		prefillTokens = ceilTokens(m.passTokens.mean())
	}
	ms, ok := m.passMs(prefillTokens, ceilTokens(decodes), ceilTokens(decodeTokens))
	return ms / q.acceptLength, ok
}

// cachedShare limits a hit rate to what the planner believes.
func cachedShare(hitRate float64) float64 {
	if math.IsNaN(hitRate) {
		return 0
	}
	return min(max(hitRate, 0), 0.95)
}

// passStore learns how long passes of one kind take.
type passStore struct {
	kept  *retention
	rules ruleSet
	// least is the number of samples that it needs; clampFirst takes a negative slope of the first number of a load, beyond
	// rounding, for zero instead of for nonsense.
	least      int
	clampFirst bool
	fitted     plane
	ready      bool
	stale      bool
	buf        []sample
}

// fit learns from the samples if there are new ones, and tells whether they make sense.
func (s *passStore) fit() bool {
	if !s.stale {
		return s.ready
	}
	s.stale = false
	if s.ready = s.kept.count >= s.least; !s.ready {
		return false
	}
	s.buf = s.kept.all(s.buf[:0])
	switch {
	case !s.rules.NoNegativeSlopes:
		s.fitted = nonNegative(s.buf, s.kept.dims)
	case s.rules.NormalEquations:
		s.fitted = normalEquations(s.buf, s.kept.dims)
	default:
		s.fitted = leastSquares(s.buf, s.kept.dims)
	}
	s.ready = s.fitted.sensible(s.clampFirst)
	return s.ready
}

// at returns the time of a pass in ms.
func (s *passStore) at(x [2]float64) (float64, bool) {
	if !s.fit() {
		return 0, false
	}
	return max(wholeNanoseconds(s.fitted.at(x)), 1e-6), true
}

// wholeNanoseconds rounds ms.
func wholeNanoseconds(ms float64) float64 { return math.Round(ms*1e6) / 1e6 }
