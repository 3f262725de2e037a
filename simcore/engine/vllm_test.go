package engine

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// gapCounter counts gaps instead of keeping them.
type gapCounter struct{ gaps int64 }

func (g *gapCounter) RecordGaps(gap perfmodel.Nanoseconds, count int64) {
	if gap < 0 || count <= 0 {
		panic("a gap of negative length or number")
	}
	g.gaps += count
}

// drawEnvironment makes a worker's surroundings with pools that are often too small.
func drawEnvironment(t *rapid.T) *Environment {
	compat := rapid.SampledFrom([]rules.Compat{rules.Default, rules.Dynamo13, rules.Dynamo12}).Draw(t, "compat")
	set, err := rules.For(compat)
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.BlockSize = rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "block size")
	cfg.NumGPUBlocks = rapid.IntRange(1, 60).Draw(t, "blocks")
	cfg.MaxNumSeqs = rapid.IntRange(0, 4).Draw(t, "sequences")
	cfg.MaxNumBatchedTokens = rapid.SampledFrom([]int{0, 3, 20, 100}).Draw(t, "budget")
	cfg.EnableChunkedPrefill, cfg.EnablePrefixCaching = rapid.Bool().Draw(t, "chunked"), rapid.Bool().Draw(t, "caching")
	cfg.NumSpeculativeTokens = rapid.SampledFrom([]int{0, 0, 1, 3, 5}).Draw(t, "speculative tokens")
	cfg.AcceptanceRates = rapid.SampledFrom([]string{"", "0", "1,1,1,1,1", "0.5,1,0.5"}).Draw(t, "acceptance")
	cfg.PreemptionMode = rapid.SampledFrom(PreemptionModes()).Draw(t, "preemption")
	b := workload.NewBuilder("test", 4)
	planned := rapid.IntRange(0, 3).Draw(t, "planned") == 0
	for range rapid.IntRange(1, 10).Draw(t, "requests") {
		r := workload.Request{Output: rapid.IntRange(1, 30).Draw(t, "output"), Hashes: rapid.SliceOfN(rapid.Uint64Range(0, 3), 1, 9).Draw(t, "hashes")}
		r.Input = 4*len(r.Hashes) - rapid.IntRange(0, 3).Draw(t, "cut")
		if planned {
			r.PlannedOutput = rapid.SliceOfN(rapid.Uint32Range(0, 3), r.Output, r.Output).Draw(t, "planned output")
		}
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := w.Blocks(cfg.BlockSize, cfg.EnablePrefixCaching)
	if err != nil {
		t.Fatal(err)
	}
	model, err := perfmodel.New(perfmodel.Config{Source: perfmodel.SourcePolynomial})
	if err != nil {
		t.Fatal(err)
	}
	env := &Environment{Config: cfg, Rules: set, Model: model, Blocks: blocks, Gaps: &gapCounter{},
		EveryPass: blocks.KnownOutputs || rapid.Bool().Draw(t, "every pass")}
	for i := range w.Requests() {
		env.Requests = append(env.Requests, Request{Number: int32(i), Input: w.Input[i], Output: w.Output[i],
			ArrivalMs: Never, AdmittedMs: Never, FirstTokenMs: Never, SecondTokenMs: Never, LastTokenMs: Never})
	}
	return env
}

// checkWorker checks what must hold between two passes: the pool is as full as the requests say.
func checkWorker(t *rapid.T, v *VLLM) {
	distinct, blocks, partial := map[uint32]bool{}, 0, 0
	for i := range v.env.Requests {
		r := &v.env.Requests[i]
		if r.State != Running && (r.blocks > 0 || r.partial) {
			t.Fatalf("request %d holds %d blocks in state %d", i, r.blocks, r.State)
		}
		if r.State != Running && r.State != Completed && r.computed != 0 {
			t.Fatalf("request %d has %d computed tokens and no block", i, r.computed)
		}
		room := r.blocks
		if r.partial {
			room++
		}
		if need := ceilDiv(r.computed, v.blockSize); r.State == Running && room < need {
			t.Fatalf("request %d has %d computed tokens in %d blocks", i, r.computed, room)
		}
		for k := range int(r.blocks) {
			distinct[blockID(v.env.Blocks, int(r.Number), k)] = true
		}
		blocks += int(r.blocks)
		if r.partial {
			partial++
		}
	}
	if v.env.Rules.SharesComputedBlocks {
		blocks = len(distinct)
	}
	if held := v.cache.Held() - partial; held < len(distinct) || held > blocks {
		t.Fatalf("the pool says that %d slots are held, requests hold %d blocks and %d partial ones", held+partial, len(distinct), partial)
	}
	if v.cache.Available() < 0 || v.cache.Held() > v.cache.Total() {
		t.Fatalf("%d of %d blocks are held", v.cache.Held(), v.cache.Total())
	}
	if limit := v.env.Config.MaxNumSeqs; limit > 0 && len(v.running) > limit {
		t.Fatalf("%d requests run, at most %d may", len(v.running), limit)
	}
}

// blockID names the k-th block of a request.
func blockID(b *workload.BlockTable, request, k int) uint32 {
	if known := b.Known(request); k >= known {
		return b.Private(request, k-known)
	}
	for _, s := range b.Segments(request) {
		if k < int(s.Len) {
			return s.Start + uint32(k)
		}
		k -= int(s.Len)
	}
	panic("a known block without a segment")
}

// TestWorkerKeepsItsBooks drives one worker through random requests and checks its pool after every step, and that
// it ends empty.
func TestWorkerKeepsItsBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := drawEnvironment(t)
		v := NewVLLM(env, Place{})
		now, next, waits := 0.0, 0, false
		for step := 0; next < len(env.Requests) || v.HasWork(); step++ {
			if step > 100*maxFutilePasses { // requests that take each other's blocks may do so for that long
				t.Fatal("no end")
			}
			for next < len(env.Requests) && (!v.HasWork() || waits || rapid.Bool().Draw(t, "arrives")) {
				waits = false
				env.Requests[next].ArrivalMs = now
				v.Submit(int32(next))
				next++
			}
			end, progress, err := v.Start(now, math.Inf(1), math.Inf(1))
			var stuck *StuckError
			if errors.As(err, &stuck) || err == nil && !progress && next == len(env.Requests) {
				return
			}
			if err != nil || end < now {
				t.Fatalf("a pass at %v ends at %v: %v", now, end, err)
			}
			if waits = !progress; waits {
				continue
			}
			for _, signal := range v.Finish() {
				if s := env.Requests[signal.Request].State; signal.Ended != (s == Completed || s == Rejected) {
					t.Fatalf("request %d is in state %d at %+v", signal.Request, s, signal)
				}
			}
			if !v.run.steady { // else the requests' own counters lag behind
				checkWorker(t, v)
			}
			now = end
		}
		checkWorker(t, v)
		if held := v.cache.Held(); held != 0 {
			t.Fatalf("%d blocks are held in the end", held)
		}
		gaps := int64(0)
		for i := range env.Requests {
			gaps += int64(max(0, env.Requests[i].Tokens-1))
		}
		if got := env.Gaps.(*gapCounter).gaps; got != gaps {
			t.Fatalf("%d gaps between tokens are recorded, there are %d", got, gaps)
		}
	})
}

func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []int32
		for i := range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch n := int32(i); rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				q.pushFront(n)
				want = append([]int32{n}, want...)
			case 1, 2:
				q.pushBack(n)
				want = append(want, n)
			case 3:
				if len(want) == 0 {
					continue
				}
				if front, got := q.front(), q.popFront(); front != want[0] || got != want[0] {
					t.Fatalf("front is %d, popFront gives %d, want %d", front, got, want[0])
				}
				want = want[1:]
			}
			if q.len() != len(want) {
				t.Fatalf("%d requests wait, want %d", q.len(), len(want))
			}
		}
	})
}

// TestAdmissionWithoutRoom has a second prompt come when the first request holds most of the pool. It waits, but under
// dynamo-1.2 the two take each other's place, and what waits counts again for each entry that an admission left behind.
func TestAdmissionWithoutRoom(t *testing.T) {
	for compat, want := range map[rules.Compat][]queued{
		rules.Dynamo13: {{}, {prefills: 1, prefillTokens: 16}, {prefills: 1, prefillTokens: 16}, {prefills: 1, prefillTokens: 16}},
		rules.Dynamo12: {{}, {decodes: 1, decodeKVTokens: 17}, {decodes: 2, decodeKVTokens: 2 * 17}, {decodes: 2, decodeKVTokens: 2 * 18}},
	} {
		set, err := rules.For(compat)
		if err != nil {
			t.Fatal(err)
		}
		b := workload.NewBuilder("test", 4)
		for range 2 {
			b.Add(workload.Request{Input: 16, Output: 9})
		}
		w, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		env := &Environment{Config: DefaultConfig(), Rules: set, Gaps: &gapCounter{}, EveryPass: true}
		env.Config.BlockSize, env.Config.NumGPUBlocks = 4, 8
		if env.Blocks, err = w.Blocks(4, true); err != nil {
			t.Fatal(err)
		}
		if env.Model, err = perfmodel.New(perfmodel.Config{Source: perfmodel.SourcePolynomial}); err != nil {
			t.Fatal(err)
		}
		for i := range w.Requests() {
			env.Requests = append(env.Requests, Request{Number: int32(i), Input: w.Input[i], Output: w.Output[i],
				ArrivalMs: Never, AdmittedMs: Never, FirstTokenMs: Never, SecondTokenMs: Never, LastTokenMs: Never})
		}
		v, now := NewVLLM(env, Place{}), 0.0
		v.Submit(0)
		for i := range want {
			end, _, err := v.Start(now, math.Inf(1), math.Inf(1))
			if err != nil {
				t.Fatal(err)
			}
			if v.queued != want[i] {
				t.Errorf("%s: during pass %d wait %+v, want %+v", compat, i, v.queued, want[i])
			}
			v.Finish()
			if i == 0 {
				v.Submit(1)
			}
			now = end
		}
	}
}
