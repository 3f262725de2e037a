package simcore

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// onlinePlay plays the requests of a workload on an online deployment and keeps what it hears of them.
type onlinePlay struct {
	t        rapid.TB
	o        *Online
	released *released
	driver   driver
	sessions []int32
	blocks   *workload.BlockTable
	cancels  func(slot int32, readyMs float64) // called for each request that was submitted
	numbers  map[int32]int32                   // the workload's request of each slot
	tokens   map[int32][]float64
	records  []RequestRecord
	lastMs   float64
	most     int // requests at once
}

func newOnlinePlay(t rapid.TB, cfg Config, w *workload.Workload, maxRequests int, opt Options) *onlinePlay {
	p := &onlinePlay{t: t, numbers: map[int32]int32{}, tokens: map[int32][]float64{}}
	var err error
	if p.o, err = newOnline(cfg, maxRequests, p.hear, opt); err != nil {
		t.Fatal(err)
	}
	p.released = &released{cfg: cfg, workload: w, stop: math.Inf(1)}
	p.driver, p.sessions = p.released.newDriver(), p.released.sessionOfRequests()
	set, err := rules.For(cfg.Compat)
	if err != nil {
		t.Fatal(err)
	}
	stage := cfg.Stages()[0].Engine
	if p.blocks, err = w.Blocks(stage.BlockSize, stage.SharesPrefixes(set) || cfg.Router.UsesIndex() || cfg.Router.Policy == router.PolicyPrefixAffinity); err != nil {
		t.Fatal(err)
	}
	return p
}

// hear takes an event in, and what follows from an end.
func (p *onlinePlay) hear(e OnlineEvent) {
	if e.AtMs < p.lastMs {
		p.t.Fatalf("time goes back from %v to %v", p.lastMs, e.AtMs)
	}
	p.lastMs = e.AtMs
	number, ok := p.numbers[e.Request]
	if !ok {
		p.t.Fatalf("request %d was not submitted, or has ended", e.Request)
	}
	for range e.Tokens {
		p.tokens[number] = append(p.tokens[number], e.AtMs)
	}
	if int(e.Life.Tokens) != len(p.tokens[number]) && e.Life.State != engine.Cancelled {
		p.t.Fatalf("request %d has %d tokens, and %d were told", number, e.Life.Tokens, len(p.tokens[number]))
	}
	if !e.Ended {
		return
	}
	delete(p.numbers, e.Request)
	r := *e.Record
	r.Request, r.Session = int(number), int(p.sessions[number])
	r.Turn = int(number - p.released.workload.SessionStart[r.Session])
	r.Life.Number = number
	if r.Handoff != nil {
		h := *r.Handoff
		r.Handoff = &h
	}
	p.records = append(p.records, r)
	p.driver.ended(number, p.sessions[number], e.AtMs)
	p.submitBefore(e.AtMs)
}

// submitBefore submits what is to arrive by a time.
func (p *onlinePlay) submitBefore(ms float64) {
	w := p.released.workload
	for p.driver.peek() <= ms {
		number, ready := p.driver.pop()
		session := p.sessions[number]
		r := OnlineRequest{Input: int(w.Input[number]), Output: int(w.Output[number]), Session: w.SessionName(int(session)), Hints: w.Hints(int(number)), Order: session}
		for _, s := range p.blocks.Segments(int(number)) {
			for id := s.Start; id < s.Start+s.Len; id++ {
				r.Blocks = append(r.Blocks, uint64(id))
			}
		}
		slot, ok := p.o.Submit(ready, r)
		if !ok {
			p.t.Fatalf("no room for request %d", number)
		}
		if _, taken := p.numbers[slot]; taken {
			p.t.Fatalf("request %d has the number of another one", number)
		}
		p.numbers[slot] = number
		if p.cancels != nil {
			p.cancels(slot, ready)
		}
		p.most = max(p.most, len(p.numbers))
	}
}

// run plays until nothing happens any more, in steps of some length.
func (p *onlinePlay) run(step func() float64) {
	now := 0.0
	for range 1 << 20 {
		next := min(p.o.NextMs(), p.driver.peek())
		if before := (now + next) / 2; before < next || math.IsInf(next, 1) {
			if err := p.o.Advance(before); err != nil { // nothing happens before
				p.t.Fatal(err)
			}
		}
		if math.IsInf(next, 1) {
			if next = min(p.o.NextMs(), p.driver.peek()); math.IsInf(next, 1) {
				return
			} // what was at a dead end has failed, and something follows from that
		}
		to := max(next, now)
		if ms := step(); ms > 0 {
			to = now + ms
		}
		p.submitBefore(to)
		if err := p.o.Advance(to); err != nil {
			p.t.Fatal(err)
		}
		now = to
	}
	p.t.Fatal("it does not end")
}

// drawAnyDeployment makes a configuration of either mode.
func drawAnyDeployment(t *rapid.T, s shape) Config {
	if rapid.Bool().Draw(t, "disaggregated") {
		return drawPools(t, s)
	}
	return drawConfig(t, s)
}

// TestOnlineEqualsRun checks that requests which come one by one when those of a workload do fare as in Run, however time is
// cut into steps.
func TestOnlineEqualsRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{noCap: true}
		cfg, model := drawAnyDeployment(rt, s), drawModel(rt)
		w := drawWorkload(rt, shape{noZeroOutput: cfg.Deployment.Mode == ModeDisaggregated})
		if cfg.Router.Policy == router.PolicyPrefixAffinity && !namesBeginnings(rt, cfg, w) {
			cfg.Router.Policy = router.PolicyRoundRobin // such prompts go to other workers than in Run
		}
		if cfg.Load.Mode == LoadConcurrency && cfg.Compat != rules.Default {
			cfg.Deployment.Workers = max(2, cfg.Deployment.Workers) // a lone worker sees arrivals between passes only
		}
		want := simulate(rt, cfg, w, Options{model: model, oneClock: true})
		steps := 0.0 // from event to event, because what ends may let others come in between
		if w.SingleTurn() && cfg.Load.Mode != LoadConcurrency {
			steps = rapid.SampledFrom([]float64{0, .7, 13}).Draw(rt, "step")
		}
		p := newOnlinePlay(rt, resolved(rt, cfg), w, w.Requests(), Options{model: model})
		p.run(func() float64 { return steps })
		if want.Err != nil {
			return // with an error, the request that is to blame has failed online
		}
		if cfg.Deployment.Mode == ModeDisaggregated && failed(p.records) > failed(want.Records) {
			return // decode workers at a dead end, which a later request leads out of in Run
		}
		compareOnline(rt, want.Records, p)
	})
}

// namesBeginnings reports whether all blocks are known which a router looks at that goes by the beginning of prompts.
func namesBeginnings(t rapid.TB, cfg Config, w *workload.Workload) bool {
	size := resolved(t, cfg).BlockSize()
	table, err := w.Blocks(size, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Requests() {
		if n := min((cfg.Router.PrefixAffinityTokens+size-1)/size, int(w.Input[i])/size); n == 0 || table.Known(i) < n {
			return false
		}
	}
	return true
}

func failed(records []RequestRecord) (n int) {
	for _, r := range records {
		if r.Life.State == engine.Failed {
			n++
		}
	}
	return n
}

func resolved(t rapid.TB, cfg Config) Config {
	cfg, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// compareOnline compares records of a run with those of an online deployment.
func compareOnline(t rapid.TB, want []RequestRecord, p *onlinePlay) {
	t.Helper()
	for i := range p.records {
		if h := p.records[i].Handoff; h != nil && h.SourceReleasedMs == engine.Never {
			// It may be released after the request has ended.
			at := slices.IndexFunc(want, func(r RequestRecord) bool { return r.Request == p.records[i].Request })
			h.SourceReleasedMs = want[at].Handoff.SourceReleasedMs
		}
	}
	if diff := cmp.Diff(want, p.records, lives, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-run +online):\n%s", diff)
	}
	for _, r := range want {
		if times := p.tokens[int32(r.Request)]; len(times) != int(r.Life.Tokens) ||
			len(times) > 0 && (times[0] != r.Life.FirstTokenMs || times[len(times)-1] != r.Life.LastTokenMs) {
			t.Fatalf("request %d has tokens at %v\n%+v", r.Request, times, r.Life)
		}
	}
}

// TestCancelledRequestsLeaveNothing checks that after requests were given up at any time nothing is held and nothing waits, that
// each has one end, and that a request which comes then fares as on a fresh deployment.
func TestCancelledRequestsLeaveNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{noCap: true}
		cfg, model := drawAnyDeployment(rt, s), drawModel(rt)
		w := drawWorkload(rt, shape{noZeroOutput: true})
		p := newOnlinePlay(rt, resolved(rt, cfg), w, w.Requests(), Options{model: model})
		delays := rapid.OneOf(rapid.Float64Range(0, 30), rapid.SampledFrom([]float64{-5, 0, 100, 400}))
		given := 0
		p.cancels = func(slot int32, readyMs float64) {
			if rapid.IntRange(0, 2).Draw(rt, "cancelled") == 0 {
				return
			}
			given++
			for range rapid.IntRange(1, 2).Draw(rt, "times") {
				p.o.Cancel(readyMs+delays.Draw(rt, "cancelled after"), slot)
			}
		}
		p.run(func() float64 { return 0 })
		cancelled := 0
		for _, r := range p.records {
			if r.Life.State == engine.Cancelled {
				cancelled++
			}
			switch r.Life.State {
			case engine.Completed, engine.Rejected, engine.Cancelled, engine.Failed:
			default:
				rt.Fatalf("request %d has ended in state %d", r.Request, r.Life.State)
			}
		}
		if len(p.records) != w.Requests() || len(p.numbers) > 0 || cancelled > given {
			rt.Fatalf("%d of %d requests have ended, %d were cancelled of %d", len(p.records), w.Requests(), cancelled, given)
		}
		checkIdle(rt, p.o)
		for _, w := range p.o.Workers() {
			if w.HeldBlocks > 0 {
				return // the pool is smaller than a fresh one
			}
		}
		checkProbe(rt, cfg, p.o, model)
	})
}

// checkIdle checks that a deployment holds nothing for any request.
func checkIdle(t rapid.TB, o *Online) {
	t.Helper()
	if len(o.free) != len(o.slots) || len(o.arrivals)+len(o.cancels)+len(o.cancelling) > 0 || o.Kept() > 0 {
		t.Fatalf("%d of %d slots are free; %d arrivals, %d and %d cancels, %d kept", len(o.free), len(o.slots), len(o.arrivals), len(o.cancels), len(o.cancelling), o.Kept())
	}
	for _, w := range o.Workers() {
		lost := o.rules.RetractionLosesDuplicates && w.Preemptions > 0 // for good
		if w.Running+w.Waiting > 0 || w.HeldBlocks > 0 && !lost || w.CachedBlocks > w.TotalBlocks {
			t.Fatalf("a worker is not idle: %+v", w)
		}
	}
	var crew *crew
	switch d := o.deployment.(type) {
	case *cluster:
		crew = &d.crew
		if d.open > 0 || !d.env.Idle() {
			t.Fatalf("%d requests are open", d.open)
		}
	case *disaggregated:
		crew = &d.crew
		if d.open > 0 || len(d.transfers) > 0 || d.actions.len() > 0 || !d.prefill.Idle() || !d.decode.Idle() {
			t.Fatalf("%d requests are open, %d transfers, %d actions", d.open, len(d.transfers), d.actions.len())
		}
		for i := range d.reservations {
			if len(d.reservations[i].waiting) > 0 {
				t.Fatalf("%v wait for room on decode worker %d", d.reservations[i].waiting, i)
			}
		}
		for id := range d.deferred {
			if len(d.deferred[id]) > 0 {
				t.Fatalf("worker %d has yet to do %v", id, d.deferred[id])
			}
		}
	}
	for id, n := range crew.requests {
		if n != 0 || crew.workers[id] != nil && crew.workers[id].HasWork() {
			t.Fatalf("worker %d has %d requests", id, n)
		}
	}
}

// checkProbe checks that a request fares as on a fresh deployment.
func checkProbe(t rapid.TB, cfg Config, used *Online, model perfmodel.Model) {
	t.Helper()
	var ends []RequestRecord
	hear := func(e OnlineEvent) {
		if e.Ended {
			r := *e.Record
			r.Request, r.Life.Number, r.Life.Worker, r.Handoff = 0, 0, 0, nil
			ends = append(ends, r)
		}
	}
	fresh, err := newOnline(cfg, 1, hear, Options{model: model})
	if err != nil {
		t.Fatal(err)
	}
	used.events = hear
	at := math.Ceil(used.deployment.latestMs()) + 1
	for _, o := range []*Online{fresh, used} {
		if _, ok := o.Submit(at, OnlineRequest{Input: 37, Output: 5}); !ok {
			t.Fatal("no room")
		}
		if err := o.Advance(at + 1e6); err != nil {
			t.Fatal(err)
		}
	}
	if len(ends) != 2 {
		t.Fatalf("%d of 2 requests have ended", len(ends))
	}
	if diff := cmp.Diff(ends[0], ends[1], lives); diff != "" {
		t.Fatalf("(-fresh +used):\n%s", diff)
	}
	checkIdle(t, used)
}

// TestOnlineMemoryIsFlat checks that memory does not grow with the requests that have come and gone.
func TestOnlineMemoryIsFlat(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"kv router": func(c *Config) { c.Deployment.Workers, c.Router.Policy = 3, router.PolicyKVRouter },
		"sessions":  func(c *Config) { c.Router.Policy = router.PolicySessionAffinity },
		"no cache":  func(c *Config) { c.Engine.EnablePrefixCaching = false },
		"sglang":    func(c *Config) { c.Engine.Type = engine.TypeSGLang },
		"pools": func(c *Config) {
			c.Deployment.Mode, c.Router.Policy = ModeDisaggregated, router.PolicyKVRouter
			c.Prefill.Engine, c.Decode.Engine = c.Engine, c.Engine
		},
		"tiers": func(c *Config) {
			c.Engine.KVBytesPerToken = 1000
			c.Tiers.NumG2Blocks, c.Tiers.NumG3Blocks, c.Tiers.BandwidthG1ToG2 = 500, 1000, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 2000 // so that ids are used again early
			change(&cfg)
			ended := 0
			o, err := NewOnline(cfg, 64, func(e OnlineEvent) {
				if e.Ended {
					ended++
				}
			}, OnlineOptions{})
			if err != nil {
				t.Fatal(err)
			}
			const chunk = 1000
			now := 0.0
			var most [2]int64 // in either half: between two times at which ids are freed, memory grows and falls
			for i := range 10 {
				most[i/5] = max(most[i/5], heapAfter(t, o, &now, i*chunk, (i+1)*chunk))
			}
			if grown := most[1] - most[0]; grown > 200_000 {
				t.Errorf("the second half of the requests takes %d bytes more than the first, which takes %d", grown, most[0])
			}
			if ended != 10*chunk {
				t.Errorf("%d requests have ended", ended)
			}
			checkIdle(t, o)
		})
	}
}

// heapAfter serves some requests, of which some are given up, lets time go on and returns how much memory is in use then.
func heapAfter(t *testing.T, o *Online, now *float64, from, to int) int64 {
	t.Helper()
	for i := from; i < to; i++ {
		at := *now
		r := OnlineRequest{Input: 200 + i*37%2000, Output: 1 + i%30, Session: fmt.Sprint(i / 3 % 200)}
		for b := range r.Input / 16 {
			r.Blocks = append(r.Blocks, uint64(max(i%50, i*b/3))) // half of them share a beginning
		}
		slot, ok := o.Submit(at, r)
		if !ok {
			t.Fatalf("no room for request %d at %v: %d slots are free; %+v", i, at, len(o.free), o.Workers())
		}
		if i%7 == 0 {
			o.Cancel(at+float64(i%90), slot)
		}
		*now += 1000
		if err := o.Advance(*now); err != nil {
			t.Fatal(err)
		}
	}
	*now += 1e6
	if err := o.Advance(*now); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
