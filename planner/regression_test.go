package planner

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestMovingAverageBeginsWithTheFirstThatIsNotZero(t *testing.T) {
	for _, c := range []struct {
		window int
		values []float64
		want   float64
	}{
		{3, nil, 0},
		{3, []float64{0, 0}, 0},
		{3, []float64{0, 0, 4}, 4},
		{3, []float64{0, 4, 0}, 2},
		{3, []float64{0, 4, 0, 2}, 2},
		{3, []float64{0, 4, 0, 2, 7}, 3},
		{3, []float64{5, 0, 0, 0, 6}, 2}, // zeros count once it has begun, even alone in the window
		{1, []float64{3, 4}, 4},
	} {
		m := newMovingAverage(c.window)
		for _, v := range c.values {
			m.add(v)
		}
		if got := m.mean(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("mean of %v within %d is %v, want %v", c.values, c.window, got, c.want)
		}
	}
}

func TestRegressionAverages(t *testing.T) {
	passes := []pass{
		{prefills: 0, decodes: 2, decodeTokens: 30, wallSeconds: 1},
		{prefills: 2, prefillTokens: 100, decodes: 0, wallSeconds: 1},
		{prefills: 0, decodes: 1, decodeTokens: 25, wallSeconds: 0}, // without a duration: averages only
		{prefills: 1, prefillTokens: 10, decodes: 0, wallSeconds: 1},
	}
	for _, c := range []struct {
		kind                         poolKind
		prompt, context, pass, count float64
	}{
		// A pass without prompts counts as one with prompts of no length for prefill workers, once there was one.
		{prefillPool, (50 + 0 + 10) / 3.0, 20, 110 / 3.0, 3 / 4.0},
		{aggregatedPool, 30, 20, 110 / 3.0, 3 / 4.0},
		{decodePool, 30, 20, 110 / 3.0, 3 / 4.0},
	} {
		config := DefaultConfig()
		m := newRegression(c.kind, &config, testLimits)
		m.observe(passes)
		got := []float64{m.promptTokens.mean(), m.contextTokens.mean(), m.passTokens.mean(), m.decodes.mean()}
		for i, want := range []float64{c.prompt, c.context, c.pass, c.count} {
			if math.Abs(got[i]-want) > 1e-12 {
				t.Errorf("kind %d: means %v, want %v at %d", c.kind, got, want, i)
			}
		}
		if m.kept.count != 3 {
			t.Errorf("kind %d: %d samples, want 3: the pass without a duration is none", c.kind, m.kept.count)
		}
	}
}

func TestRetentionForgetsEmptiedBuckets(t *testing.T) {
	r := newRetention(1, 16, 1)
	for i, x := range []float64{0, 10, 0} {
		r.add(sample{x: [2]float64{x}, y: float64(i)})
	}
	// The second sample pushed out the first, whose bucket is made anew for the third, behind the second's: so that goes.
	if got := r.all(nil); len(got) != 1 || got[0].y != 2 || len(r.buckets) != 1 {
		t.Errorf("kept %v in %d buckets, want the last sample alone", got, len(r.buckets))
	}
}

func TestRetentionKeepsTheLatestOfEachPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims, limit := rapid.IntRange(1, 2).Draw(t, "dims"), rapid.IntRange(1, 12).Draw(t, "limit")
		r := newRetention(dims, 16, limit)
		n := rapid.IntRange(1, 60).Draw(t, "n")
		for i := range n {
			x := [2]float64{float64(rapid.IntRange(0, 40).Draw(t, "x")), 0}
			if dims == 2 {
				x[1] = float64(rapid.IntRange(0, 40).Draw(t, "y"))
			}
			r.add(sample{x: x, y: float64(i)})
		}
		total := 0
		for _, b := range r.buckets {
			if len(b.samples) == 0 {
				t.Fatalf("an empty bucket is kept")
			}
			total += len(b.samples)
		}
		if total != r.count || total != min(n, limit) {
			t.Fatalf("%d samples in buckets, %d counted, of %d with limit %d", total, r.count, n, limit)
		}
	})
}

func TestRegressionRefusesNegativeSlopes(t *testing.T) {
	for _, c := range []struct {
		name        string
		kind        poolKind
		given, want plane
		sensible    bool
	}{
		{"aggregated", aggregatedPool, plane{[2]float64{1e-4, 1e-6}, 0.01}, plane{[2]float64{1e-4, 1e-6}, 0.01}, true},
		{"aggregated, first", aggregatedPool, plane{[2]float64{-1e-4, 1e-6}, 0.9}, plane{}, false},
		{"aggregated, second", aggregatedPool, plane{[2]float64{1e-4, -1e-6}, 0.9}, plane{}, false},
		{"prefill", prefillPool, plane{[2]float64{-1e-4, 0}, 0.9}, plane{}, false},
		{"decode, context", decodePool, plane{[2]float64{1e-4, -1e-6}, 0.9}, plane{}, false},
		{"decode, batch is taken for zero, the rest stays", decodePool,
			plane{[2]float64{-1e-4, 1e-6}, 0.9}, plane{[2]float64{0, 1e-6}, 0.9}, true},
		{"decode, rounding of batch stays", decodePool,
			plane{[2]float64{-5e-7, 1e-6}, 0.9}, plane{[2]float64{-5e-7, 1e-6}, 0.9}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := DefaultConfig()
			m := newRegression(c.kind, &config, testLimits)
			for i := range 9 {
				p := pass{prefills: 1, prefillTokens: int64(i%3) * 500, decodes: int64(i%3) * 500, decodeTokens: int64(i/3) * 1000}
				x := [2]float64{float64(p.prefillTokens), float64(p.decodeTokens)}
				if c.kind == prefillPool {
					x[1] = 0
				}
				p.wallSeconds = c.given.at(x)
				m.observe([]pass{p})
			}
			if got := m.fit(); got != c.sensible || !m.sufficient() {
				t.Fatalf("fit %v with %d samples, want %v: %+v", got, m.kept.count, c.sensible, m.fitted)
			}
			if _, ok := m.ttftMs(&pass{}, ttftQuery{queue: 1}); ok != c.sensible {
				t.Errorf("it answers: %v, want %v", ok, c.sensible)
			}
			if c.sensible && !nearPlane(m.fitted, c.want) {
				t.Errorf("fitted %+v, want %+v", m.fitted, c.want)
			}
		})
	}
	for first, want := range map[float64]bool{-1e-18: false, 0: true} {
		p := plane{slope: [2]float64{first, 1}}
		if got := p.sensible(false); got != want {
			t.Errorf("slope %g is sensible: %v, want %v", first, got, want)
		}
	}
	edge := plane{slope: [2]float64{-1e-6, 1}}
	if !edge.sensible(true) || edge.slope[0] != -1e-6 {
		t.Errorf("a decode slope of -1e-6 became %g, want it left", edge.slope[0])
	}
}

func nearPlane(a, b plane) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(math.Abs(b)+1e-3) }
	return near(a.slope[0], b.slope[0]) && near(a.slope[1], b.slope[1]) && near(a.intercept, b.intercept)
}

func TestRegressionNeedsObservations(t *testing.T) {
	config := DefaultConfig()
	m := newRegression(prefillPool, &config, testLimits)
	for i := range 5 {
		if _, ok := m.ttftMs(&pass{}, ttftQuery{queue: 1}); ok || m.sufficient() {
			t.Fatalf("it answers after %d passes, want 5", i)
		}
		m.observe([]pass{{prefills: 1, prefillTokens: int64(100 * (i + 1)), wallSeconds: 0.1 * float64(i+1)}})
	}
	if _, ok := m.ttftMs(&pass{}, ttftQuery{queue: 1}); !ok || !m.sufficient() {
		t.Errorf("it does not answer after 5 passes")
	}
}

// knownRegression is a model that has learned a plane.
func knownRegression(kind poolKind, l limits, p plane) *regression {
	config := DefaultConfig()
	m := newRegression(kind, &config, l)
	m.fitted, m.ready, m.stale, m.kept.count = p, true, false, 5
	return m
}

func TestRegressionTTFT(t *testing.T) {
	p := plane{slope: [2]float64{0x1p-10, 0x1p-20}, intercept: 0.5}
	for _, c := range []struct {
		name           string
		kind           poolKind
		batched        int64
		queued, decode int64
		hitRate        float64
		want           float64
	}{
		{"one pass", prefillPool, 4096, 924, 0, 0, 1500},
		{"nothing of decoding in a prefill worker", prefillPool, 4096, 924, 1 << 20, 0, 1500},
		{"decoding in every pass", aggregatedPool, 4096, 924, 1 << 20, 0, 2500},
		{"a full pass is one", prefillPool, 1024, 924, 0, 0, 1500},
		{"two passes", prefillPool, 512, 924, 0, 0, 2000},
		{"a rest of one token", prefillPool, 1023, 924, 0, 0, 2000},
		{"hits take from queue and prompt", prefillPool, 4096, 924, 0, 0.5, 1000},
		{"unknown hits are none", prefillPool, 4096, 924, 0, math.NaN(), 1500},
		{"less than none are none", prefillPool, 4096, 924, 0, -0.5, 1500},
		{"at most 95 % hits", prefillPool, 4096, 924, 0, 0.99, 500 + 1000*0.05},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := knownRegression(c.kind, limits{batchedTokens: c.batched}, p)
			m.promptTokens = always(100)
			got, ok := m.ttftMs(&pass{queuedPrefillTokens: c.queued, decodeTokens: c.decode}, ttftQuery{queue: 1, hitRate: c.hitRate})
			if !ok || math.Abs(got-c.want) > 1e-9 {
				t.Errorf("TTFT %v (%v), want %v", got, ok, c.want)
			}
		})
	}
	m := knownRegression(prefillPool, limits{batchedTokens: 4096}, plane{intercept: -1})
	if got, _ := m.ttftMs(&pass{queuedPrefillTokens: 10}, ttftQuery{queue: 1}); got != 1e-3 {
		t.Errorf("a pass takes %v ms, want no less than 1 µs", got)
	}
	if got, ok := m.ttftMs(&pass{}, ttftQuery{queue: 1}); !ok || got != 0 {
		t.Errorf("nothing to compute takes %v (%v), want 0", got, ok)
	}
	m.limits.batchedTokens = 0
	if _, ok := m.ttftMs(&pass{queuedPrefillTokens: 10}, ttftQuery{queue: 1}); ok {
		t.Errorf("it answers without knowing how much a pass computes")
	}
}

func TestRegressionITL(t *testing.T) {
	p := plane{slope: [2]float64{0x1p-10, 0x1p-20}}
	w := &pass{decodes: 7, decodeTokens: 1000, queuedDecodeTokens: 24, queuedPrefillTokens: 5}
	for _, c := range []struct {
		name         string
		kind         poolKind
		consolidated float64
		want         float64
	}{
		// Passes of an aggregated worker compute as many prompt tokens as they did on average, those of a decode worker
		// have a request more than they had on average, whatever this one has now.
		{"aggregated", aggregatedPool, 0, 1000 * (64*0x1p-10 + (1024+100)*0x1p-20)},
		{"decode", decodePool, 0, 1000 * ((3+1)*0x1p-10 + (1024+100)*0x1p-20)},
		{"aggregated, one worker less takes queued prompts too", aggregatedPool, 1.5, 1000 * (64*0x1p-10 + (1543+100)*0x1p-20)},
		{"decode, one worker less", decodePool, 1.5, 1000 * (4*0x1p-10 + (1536+100)*0x1p-20)},
	} {
		m := knownRegression(c.kind, testLimits, p)
		m.passTokens, m.contextTokens, m.decodes = always(64), always(100), always(3)
		got, ok := m.itlMs(w, itlQuery{consolidated: c.consolidated, acceptLength: 1})
		if !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: ITL %v (%v), want %v", c.name, got, ok, c.want)
		}
	}
}

func TestAggregatedCapacity(t *testing.T) {
	const unlimited = 1e9
	linear := plane{slope: [2]float64{1e-5, 1e-8}, intercept: 0.01}
	ample := limits{batchedTokens: 8192, sequences: 256, kvTokens: 1 << 30}
	exactly := func(batch, prompts, tokens float64) float64 {
		return 1000 * max(linear.at([2]float64{prompts, tokens}), 1e-6)
	}
	for _, c := range []struct {
		name               string
		plane              plane
		limits             limits
		input, output      float64
		hitRate, average   float64
		ttft, itl          float64
		batch, prompts, kv float64 // of the pass that is expected
	}{
		{"ITL", linear, ample, 1000, 100, 0, 0, unlimited, 20, 90, 900, 90 * 1050},
		{"ITL that is just kept", linear, ample, 1000, 100, 0, 0, unlimited, exactly(10, 100, 10*1050), 10, 100, 10 * 1050},
		{"TTFT", linear, ample, 1000, 100, 0, 500, 20, unlimited, 45, 450, 45 * 1050},
		{"TTFT that is just kept", linear, ample, 1000, 100, 0, 0, exactly(10, 100, 10*1050), unlimited, 10, 100, 10 * 1050},
		{"an SLA that one request misses", linear, ample, 1000, 100, 0, 0, 1, 1, 1, 10, 1050},
		{"sequences", linear, limits{8192, 5, 1 << 30}, 1000, 100, 0, 0, unlimited, unlimited, 5, 50, 5 * 1050},
		{"KV cache", linear, limits{8192, 256, 10500}, 1000, 100, 0, 0, unlimited, unlimited, 10, 100, 10500},
		{"KV cache, a token less", linear, limits{8192, 256, 10499}, 1000, 100, 0, 0, unlimited, unlimited, 9, 90, 9 * 1050},
		{"KV cache of less than a request", linear, limits{8192, 256, 100}, 1000, 100, 0, 0, unlimited, unlimited, 1, 10, 1050},
		{"room for prompts in a pass", linear, limits{8, 256, 1 << 30}, 100, 100, 0, 0, unlimited, unlimited, 7, 7, 7 * 150},
		{"prompts keep up with outputs", linear, limits{200, 256, 1 << 30}, 1000, 10, 0, 0, unlimited, unlimited, 100, 200, 100 * 1005},
		{"less prompt is computed with hits", linear, limits{200, 256, 1 << 30}, 1000, 10, 0.5, 0, unlimited, unlimited, 150, 200, 150 * 1005},
		{"outputs of less than a token", linear, limits{8192, 2, 1 << 30}, 1000, 0.5, 0, 0, unlimited, unlimited, 2, 2000, 2 * 1000.25},
		// The time to first token reckons with the whole prompt of a batch and takes hits off once, …
		{"hits count once", plane{slope: [2]float64{1e-3, 0}}, ample, 1000, 100, 0.5, 0, 26, unlimited, 5, 25, 5 * 1050},
		// … and with whole tokens.
		{"whole prompt tokens", plane{slope: [2]float64{1e-3, 0}}, ample, 333, 100, 0, 0, 6.3, unlimited, 2, 6.66, 2 * 383},
		{"whole tokens of context", plane{slope: [2]float64{0, 1e-3}}, ample, 10, 5, 0, 1, 37.2, unlimited, 3, 6, 37.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := knownRegression(aggregatedPool, c.limits, c.plane)
			m.promptTokens = always(c.average)
			got, ok := m.capacity(capacityQuery{
				inputTokens: c.input, outputTokens: c.output, ttftMs: c.ttft, itlMs: c.itl, hitRate: c.hitRate, acceptLength: 1,
			})
			seconds := c.plane.at([2]float64{c.prompts, c.kv})
			want := c.batch / (c.output * seconds)
			if !ok || math.Abs(got.requestsPerSecond-want) > 1e-9*want || math.Abs(got.itlMs-1000*seconds) > 1e-6*seconds {
				t.Errorf("%v requests/s with %v ms a pass (%v), want %v with %v ms", got.requestsPerSecond, got.itlMs, ok,
					want, 1000*seconds)
			}
		})
	}
	for _, shape := range [][2]float64{{0, 100}, {100, 0}} {
		m := knownRegression(aggregatedPool, ample, linear)
		if _, ok := m.capacity(capacityQuery{inputTokens: shape[0], outputTokens: shape[1], ttftMs: 1e9, itlMs: 1e9}); ok {
			t.Errorf("requests of %v tokens have a capacity", shape)
		}
	}
}

func TestDecodeCapacity(t *testing.T) {
	p := plane{slope: [2]float64{1e-4, 1e-8}, intercept: 0.01}
	kept := 1000 * p.at([2]float64{12, 12 * 1050})
	for _, c := range []struct {
		name   string
		limits limits
		itl    float64
		batch  float64
	}{
		{"ITL", limits{8192, 256, 1 << 30}, 20, 90},
		{"ITL that is just kept", limits{8192, 256, 1 << 30}, kept, 12},
		{"an ITL that one request misses", limits{8192, 256, 1 << 30}, 1, 1},
		{"sequences", limits{8192, 7, 1 << 30}, 1e9, 7},
		{"sequences unknown", limits{8192, 0, 10500}, 1e9, 10},
		{"KV cache", limits{8192, 256, 10500}, 1e9, 10},
		{"KV cache, a token less", limits{8192, 256, 10499}, 1e9, 9},
		{"KV cache of less than a request", limits{8192, 256, 100}, 1e9, 1},
	} {
		m := knownRegression(decodePool, c.limits, p)
		got, ok := m.capacity(capacityQuery{inputTokens: 1000, outputTokens: 100, itlMs: c.itl, acceptLength: 1})
		want := c.batch / (100 * p.at([2]float64{c.batch, c.batch * 1050}))
		if !ok || math.Abs(got.requestsPerSecond-want) > 1e-9*want {
			t.Errorf("%s: %v requests/s (%v), want %v", c.name, got.requestsPerSecond, ok, want)
		}
	}
}

func TestPrefillCapacityIgnoresTheSLA(t *testing.T) {
	p := plane{slope: [2]float64{1e-4, 0}, intercept: 0.01}
	for _, c := range []struct {
		input, hitRate, seconds float64
	}{
		{1000, 0, 0.11},
		{8192, 0, 0.01 + 0.8192},
		{8193, 0, 0.01 + 0.8192 + 0.01 + 0.0001},
		{20000, 0, 3*0.01 + 2.0},
		{20000, 0.75, 0.51},
		{20000, 0.99, 0.11},
	} {
		m := knownRegression(prefillPool, limits{batchedTokens: 8192}, p)
		got, ok := m.capacity(capacityQuery{inputTokens: c.input, outputTokens: 10, ttftMs: 1, hitRate: c.hitRate})
		if !ok || math.Abs(1/got.requestsPerSecond-c.seconds) > 1e-9 || math.Abs(got.ttftMs-1000*c.seconds) > 1e-6 {
			t.Errorf("%v tokens, %v cached: a prompt takes %v s (%v), want %v", c.input, c.hitRate, 1/got.requestsPerSecond, ok, c.seconds)
		}
	}
}
