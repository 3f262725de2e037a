package router

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/workload"
)

// ids are consecutive hash ids.
func ids(from, to uint64) []uint64 {
	var out []uint64
	for id := from; id < to; id++ {
		out = append(out, id)
	}
	return out
}

// TestCost works costs out by hand: worker 0 has a prompt of 18 tokens to compute, worker 1 has half the next prompt in its
// cache and decodes another request of 2 blocks, one of them shared with it, and worker 2 is idle.
func TestCost(t *testing.T) {
	requests := []workload.Request{
		{Input: 18, Hashes: ids(100, 105)},
		{Hashes: []uint64{1, 50}},
		{Input: 10, Hashes: []uint64{1, 2, 3}}, // 2.5 blocks of tokens, 2 full ones
	}
	for _, test := range []struct {
		name   string
		change func(*Config, *Environment)
		want   [3]float64
	}{
		{"default", func(*Config, *Environment) {}, [3]float64{(18+10)/4. + 4 + 2, 2.5 - 1 + 2 + 1, 2.5 + 2}},
		{"scale and credit", func(c *Config, _ *Environment) { c.PrefillLoadScale, c.OverlapScoreCredit = 3, .5 },
			[3]float64{3*7 + 6, 3*2 + 3, 3*2.5 + 2}},
		{"old name of both", func(c *Config, _ *Environment) { c.OverlapScoreWeight = 0 }, [3]float64{6, 3, 2}},
		{"credit decays", func(c *Config, _ *Environment) { c.OverlapScoreCreditDecay = 2 },
			// Worker 1 is not ahead of anybody, worker 0 by 4.5 blocks, a credit of 0.
			[3]float64{7 + 6, 1.5 + 3, 2.5 + 2}},
		{"no blocks", func(c *Config, _ *Environment) { c.RouterTrackActiveBlocks = false }, [3]float64{7, 1.5, 2.5}},
		{"blocks of each request", func(c *Config, _ *Environment) { c.RouterAssumeKVReuse = false }, [3]float64{7 + 6, 1.5 + 4, 2.5 + 2}},
		{"no prefill", func(c *Config, _ *Environment) { c.RouterTrackPrefillTokens = false }, [3]float64{6, 3, 2}},
		{"prefill stage", func(_ *Config, e *Environment) { e.Stage = Prefill }, [3]float64{7, 1.5, 2.5}},
		{"decode stage", func(_ *Config, e *Environment) { e.Stage = Decode }, [3]float64{6, 4, 2}},
		{"caches are not known", func(_ *Config, e *Environment) { e.Index = nil }, [3]float64{7 + 6, 2.5 + 3, 2.5 + 2}},
	} {
		p := newPool(t, 3, requests...)
		c := kvConfig()
		test.change(&c, &p.Environment)
		k := New(c, p.Environment).(*kvRouter)
		// Requests 0 and 1 are forced onto workers 0 and 1.
		for w := range int32(2) {
			for arrive(t, k, 0, w) != w {
				k.Ended(0, w)
			}
		}
		k.PrefillDone(1, 1)
		p.caches(1, 2, 1)
		arrive(t, k, 2, 2)
		if got := [3]float64(k.costs); got != test.want {
			t.Errorf("%s: costs %v, want %v", test.name, got, test.want)
		}
	}
}

// twoTiers is what tiers below workers have of any prompt: blocks in host memory, then some below it.
type twoTiers map[int][2]int

func (t twoTiers) Overlap(worker int, _ float64, _ kvcache.Sequence, from, to int) (host, below int) {
	host = min(t[worker][0], to-from)
	return host, min(t[worker][1], to-from-host)
}

// TestLowerTiersEarnCredit checks that a block below GPU memory counts as a part of one there, in the cost and in what the
// worker has to compute.
func TestLowerTiersEarnCredit(t *testing.T) {
	p := newPool(t, 3, workload.Request{Input: 40, Hashes: ids(0, 10)})
	p.caches(1, 0, 2)
	p.Tiers = twoTiers{1: {4, 0}, 2: {0, 8}}
	c := kvConfig()
	c.RouterTrackActiveBlocks, c.OverlapScoreCredit = false, .5
	k := New(c, p.Environment).(*kvRouter)
	if w := arrive(t, k, 0, 0); w != 1 {
		t.Errorf("worker %d, and 1 has most", w)
	}
	want := []float64{10, 10 - .5*(2+.75*4), 10 - .5*.25*8}
	if !slices.Equal(k.costs, want) {
		t.Errorf("costs %v, want %v", k.costs, want)
	}
	if load, overlap := k.load(1), k.Overlap(0); load != 40-4*(2+3) || overlap != 8 {
		t.Errorf("%d tokens to compute, %d in GPU memory; want 20, 8", load, overlap)
	}
	c.HostCacheHitWeight, c.DiskCacheHitWeight = 0, 1
	k = New(c, p.Environment).(*kvRouter)
	if w := arrive(t, k, 0, 0); w != 2 {
		t.Errorf("worker %d, and only disks count beside GPUs", w)
	}
}

// TestCreditDecay checks a credit that decays: worker 0 is ahead of worker 1 by 12 tokens, 3 blocks, of a prompt of 2.
func TestCreditDecay(t *testing.T) {
	p := newPool(t, 2, workload.Request{Hashes: ids(10, 13)}, workload.Request{Input: 7, Hashes: ids(0, 2)})
	c := kvConfig()
	c.OverlapScoreCreditDecay, c.RouterTrackActiveBlocks = 2, false
	k := New(c, p.Environment).(*kvRouter)
	for arrive(t, k, 0, 0) != 0 {
		k.Ended(0, 0)
	}
	p.caches(0, 1, 1)
	arrive(t, k, 0, 1)
	if want := (12+7)/4. - 1/(1+2*(3./2)); k.costs[0] != want {
		t.Errorf("cost %v, want %v", k.costs[0], want)
	}
}

// TestTies checks that equal costs are taken equally often, and only they, and that a seed decides.
func TestTies(t *testing.T) {
	p := newPool(t, 5, workload.Request{Hashes: ids(0, 3)})
	p.caches(4, 0, 2) // the best one
	c := kvConfig()
	counts := make([]int, 5)
	for seed := range 1000 {
		c.Seed = uint64(seed)
		p.caches(1, 0, 3)
		p.caches(3, 0, 3)
		w := arrive(t, New(c, p.Environment), 0, 0)
		counts[w]++
		if again := arrive(t, New(c, p.Environment), 0, 0); again != w {
			t.Fatalf("seed %d picks %d, then %d", seed, w, again)
		}
	}
	if counts[0]+counts[2]+counts[4] > 0 || chiSquared([]int{counts[1], counts[3]}) > 10.8 {
		t.Errorf("workers 1 and 3 are best, and picked are %v", counts)
	}
}

// TestTemperature checks the probabilities of three workers whose costs are 0, 1/2 and 1 of the way from least to highest.
func TestTemperature(t *testing.T) {
	p := newPool(t, 3, workload.Request{Hashes: ids(0, 5)})
	p.caches(0, 0, 4)
	p.caches(1, 0, 2)
	for _, temperature := range []float64{.2, 1, 5} {
		c := kvConfig()
		c.RouterTemperature = temperature
		weights := []float64{1, math.Exp(-.5 / temperature), math.Exp(-1 / temperature)}
		sum := weights[0] + weights[1] + weights[2]
		k := New(c, p.Environment)
		counts := make([]float64, 3)
		const n = 4000
		for range n {
			counts[arrive(t, k, 0, 0)]++
			k.Ended(0, 0)
		}
		x := 0.0
		for w, weight := range weights {
			x += math.Pow(counts[w]-n*weight/sum, 2) / (n * weight / sum)
		}
		if x > 13.8 { // 0.1 % with 2 degrees of freedom
			t.Errorf("temperature %v: %v, want shares %v", temperature, counts, weights)
		}
	}
}

// TestThreshold checks when requests are kept and when they go.
func TestThreshold(t *testing.T) {
	p := newPool(t, 2, prompts(6)...)
	c := kvConfig()
	c.RouterQueueThreshold = .04 // of 100 tokens, so that one prompt of 4 is not too many and two are
	k := New(c, p.Environment)
	for request := range int32(4) {
		if w := arrive(t, k, 0, request); w == Queued {
			t.Fatalf("request %d is kept", request)
		}
	}
	for request := int32(4); request < 6; request++ {
		if w := arrive(t, k, 0, request); w != Queued {
			t.Fatalf("request %d goes to worker %d", request, w)
		}
	}
	worker := k.(*kvRouter).routes[2].seat
	got := k.PrefillDone(1, 2)
	if !slices.Equal(got, []Dispatch{{4, worker}}) || k.Waiting() != 1 {
		t.Fatalf("request 2's prompt is done on worker %d, then go %v", worker, got)
	}
	if got := k.Ended(2, 2); len(got) != 0 {
		t.Fatalf("the end of request 2, whose prompt was done, sends %v", got)
	}
	if got := k.Ended(3, 4); !slices.Equal(got, []Dispatch{{5, worker}}) { // rejected
		t.Fatalf("request 4 is over, then go %v", got)
	}
	if got := k.Overlap(5); got != 0 {
		t.Errorf("request 5 finds %d tokens", got)
	}
	c.RouterQueueThreshold = Unset
	never := New(c, p.Environment)
	for request := range int32(6) {
		if w := arrive(t, never, 0, request); w == Queued {
			t.Fatalf("without a threshold request %d is kept", request)
		}
	}
}

// TestLoadsReturn replays random lives of requests. Loads are what is under way, nothing waits while a worker has room, and
// at the end there is nothing left.
func TestLoadsReturn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(1, 4).Draw(rt, "workers")
		var requests []workload.Request
		for range rapid.IntRange(1, 25).Draw(rt, "requests") {
			r := workload.Request{Hashes: rapid.SliceOfN(rapid.Uint64Range(0, 2), 1, 6).Draw(rt, "prompt")}
			r.Input = len(r.Hashes)*blockSize - rapid.IntRange(0, blockSize-1).Draw(rt, "partial")
			r.Hints.Priority = rapid.Int32Range(0, 2).Draw(rt, "priority")
			requests = append(requests, r)
		}
		p := newPool(t, workers, requests...)
		p.Stage = rapid.SampledFrom([]Stage{Aggregated, Prefill, Decode}).Draw(rt, "stage")
		p.PrefillMs = func(uncached, cached int) float64 { return float64(uncached) + .1*float64(cached) }
		c := kvConfig()
		c.RouterQueueThreshold = rapid.SampledFrom([]float64{0, .05, .2, Unset}).Draw(rt, "threshold")
		c.RouterAssumeKVReuse = rapid.Bool().Draw(rt, "assumes reuse")
		if rapid.Bool().Draw(rt, "predicts") {
			c.RouterPrefillLoadModel = PrefillLoadAIC
		}
		k := New(c, p.Environment).(*kvRouter)
		m := &traffic{k: k, workerOf: map[int32]int32{}, computing: map[int32]bool{}}
		for arrived := int32(0); int(arrived) < len(requests) || len(m.workerOf) > 0; {
			m.now += rapid.Float64Range(0, 5).Draw(rt, "wait")
			if int(arrived) < len(requests) && (len(m.workerOf) == 0 || rapid.Bool().Draw(rt, "arrives")) {
				if w := arrive(t, k, m.now, arrived); w != Queued {
					m.started(Dispatch{arrived, w})
					p.caches(int(w), arrived, rapid.IntRange(0, 3).Draw(rt, "cached"))
				}
				arrived++
			} else {
				m.progress(rapid.SampledFrom(m.underWay()).Draw(rt, "which"), rapid.Bool().Draw(rt, "rejected"))
			}
			m.check(rt)
		}
		if k.Waiting() > 0 {
			rt.Fatalf("%d requests wait for ever", k.Waiting())
		}
		for w := range workers {
			if k.prefills[w].tokens != 0 || len(k.prefills[w].prompts) != 0 || k.blocks.total[w] != 0 {
				rt.Fatalf("worker %d has %+v and %d blocks at the end", w, k.prefills[w], k.blocks.total[w])
			}
		}
	})
}

// traffic plays the workers behind a router.
type traffic struct {
	k         *kvRouter
	now       float64
	workerOf  map[int32]int32 // of requests under way
	computing map[int32]bool  // whose prompt is not done
}

func (m *traffic) started(d Dispatch) {
	m.workerOf[d.Request], m.computing[d.Request] = d.Worker, true
}

func (m *traffic) underWay() []int32 {
	var out []int32
	for request := range int32(len(m.k.routes)) {
		if _, ok := m.workerOf[request]; ok {
			out = append(out, request)
		}
	}
	return out
}

// progress ends a request's prompt, or the request.
func (m *traffic) progress(request int32, rejected bool) {
	var kept []Dispatch
	if m.computing[request] && !rejected {
		delete(m.computing, request)
		kept = m.k.PrefillDone(m.now, request)
	} else {
		delete(m.computing, request)
		delete(m.workerOf, request)
		kept = m.k.Ended(m.now, request)
	}
	for _, d := range kept {
		m.started(d)
	}
}

func (m *traffic) check(t *rapid.T) {
	k := m.k
	tokens := make([]int64, k.env.Workers)
	for request := range m.computing {
		if k.tracksPrefill {
			tokens[m.workerOf[request]] += int64(k.env.input(request) - int(k.Overlap(request)))
		}
	}
	for w, want := range tokens {
		if got := k.prefills[w].tokens; got != want {
			t.Fatalf("worker %d has %d prompt tokens, want %d", w, got, want)
		}
	}
	k.now = m.now
	if class := &k.classes.classes[0]; k.Waiting() > 0 && !k.predicts && !k.allBusy(class) {
		t.Fatalf("%d requests wait though a worker has room", k.Waiting())
	}
}

// TestQueuedOverlaps checks that a kept request is routed by the caches as they were when it arrived.
func TestQueuedOverlaps(t *testing.T) {
	p := newPool(t, 2, append(prompts(2), workload.Request{Hashes: ids(50, 53)})...)
	c := kvConfig()
	c.RouterQueueThreshold = 0
	k := New(c, p.Environment).(*kvRouter)
	a, b := arrive(t, k, 0, 0), arrive(t, k, 0, 1)
	p.caches(int(a), 2, 2)
	if arrive(t, k, 0, 2) != Queued {
		t.Fatal("it is not kept")
	}
	p.caches(int(b), 2, 3)
	got := slices.Clone(k.PrefillDone(1, 1))
	if !slices.Equal(got, []Dispatch{{2, a}}) || k.Overlap(2) != 2*blockSize {
		t.Errorf("sent are %v with %d tokens known to be cached, want worker %d with %d", got, k.Overlap(2), a, 2*blockSize)
	}
}

// BenchmarkKVRouter measures the whole life of a request of 200 blocks in the router, a third of it in some caches.
func BenchmarkKVRouter(b *testing.B) {
	for _, workers := range []int{8, 64, 256} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			var requests []workload.Request
			for i := range uint64(64) {
				requests = append(requests, workload.Request{Hashes: append(ids(0, 70), ids(1000*(i+1), 1000*(i+1)+130)...)})
			}
			p := newPool(b, workers, requests...)
			for w := 0; w < workers; w += 3 {
				p.caches(w, int32(w)%64, 70+w%130)
			}
			k := New(kvConfig(), p.Environment)
			life := func(i int) {
				request := int32(i % 64)
				if i >= 64 {
					k.Ended(0, request)
				}
				arrive(b, k, 0, request)
				k.PrefillDone(0, request)
			}
			for i := range 128 {
				life(i)
			}
			i := 128
			b.ReportAllocs()
			for b.Loop() {
				life(i)
				i++
			}
		})
	}
}

// TestRoutingAllocatesNothing checks that routing needs no memory once the loads have been this high.
func TestRoutingAllocatesNothing(t *testing.T) {
	p := newPool(t, 70, prompts(40)...)
	c := kvConfig()
	c.RouterQueueThreshold = 0
	k := New(c, p.Environment)
	all := func() {
		for request := range int32(40) {
			arrive(t, k, 0, request)
		}
		for request := range int32(40) {
			k.PrefillDone(0, request)
			k.Ended(0, request)
		}
	}
	if n := testing.AllocsPerRun(10, all); n > 0 {
		t.Errorf("%v allocations for 40 requests", n)
	}
}
