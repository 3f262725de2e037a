package engine

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/kvcache"
)

// drawSGLang makes the surroundings of a worker with the SGLang-style scheduler.
func drawSGLang(t *rapid.T, role Role) *Environment {
	env := drawEnvironment(t)
	env.Role = role
	c := &env.Config
	c.Type = TypeSGLang
	c.SGLang = SGLangConfig{
		SchedulePolicy:           rapid.SampledFrom([]string{PolicyFIFO, PolicyLPM}).Draw(t, "policy"),
		ChunkedPrefillSize:       c.BlockSize * rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "chunk"),
		MaxPrefillTokens:         rapid.SampledFrom([]int{0, 0, 8, 24}).Draw(t, "prefill"),
		ClipMaxNewTokens:         rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "clip"),
		ScheduleConservativeness: rapid.SampledFrom([]float64{0, .1, 1}).Draw(t, "conservativeness"),
	}
	if role == Prefill {
		for i := range env.Requests {
			env.Requests[i].Output = 1
		}
	}
	return env
}

// sglangBooks checks what must hold between two passes: all tokens of the pool are free, cached, or held by a request.
type sglangBooks struct {
	lost        int
	preemptions int64
}

func (b *sglangBooks) check(t *rapid.T, s *SGLang) {
	if s.run.steady {
		return // the requests' own counters lag behind
	}
	locked, own := map[uint32]bool{}, 0
	for i := range s.env.Requests {
		r := &s.env.Requests[i]
		if r.State == Waiting && r.blocks > 0 && s.env.Role != Decode {
			t.Fatalf("request %d holds %d pages and has not been admitted", i, r.blocks)
		}
		if (r.State == Preempted || r.State == Rejected || r.State == Completed && s.env.Role != Prefill) && (r.computed != 0 || r.duplicates != 0 || r.blocks != 0 || r.locked != kvcache.Root) {
			t.Fatalf("request %d holds something in state %d: %+v", i, r.State, r.schedule)
		}
		if r.computed < r.blocks*s.page || r.duplicates < 0 || r.duplicates > r.blocks*s.page {
			t.Fatalf("request %d holds %d tokens, %d pages and %d duplicates", i, r.computed, r.blocks, r.duplicates)
		}
		own += int(s.allocated(r.computed)-r.blocks*s.page) + int(r.duplicates)
		for k := range int(r.blocks) {
			locked[blockID(s.env.Blocks, i, k)] = true
		}
	}
	if got := s.tree.Locked(); got != len(locked) {
		t.Fatalf("%d pages are locked, requests hold %d", got, len(locked))
	}
	lost := s.total - s.free - own - (s.tree.Locked()+s.tree.Evictable())*int(s.page)
	if lost < b.lost || lost > b.lost && (s.preemptions == b.preemptions || !s.env.Rules.RetractionLosesDuplicates) {
		t.Fatalf("%d tokens of %d are lost, %d before: %d free, %d held, %d and %d pages cached", lost, s.total, b.lost, s.free, own, s.tree.Locked(), s.tree.Evictable())
	}
	b.lost, b.preemptions = lost, s.preemptions
	if s.free < 0 || len(s.running) > s.maxSeqs {
		t.Fatalf("%d tokens are free and %d of at most %d requests run", s.free, len(s.running), s.maxSeqs)
	}
}

// step lets the worker do what comes next. ok is false when it is stuck.
func (b *sglangBooks) step(t *rapid.T, s *SGLang, now float64) (end float64, signals []Signal, ok bool) {
	end, progress, err := s.Start(now, math.Inf(1), math.Inf(1))
	var stuck *StuckError
	if errors.As(err, &stuck) || err == nil && !progress {
		return now, nil, false
	}
	if err != nil || end < now {
		t.Fatalf("a pass at %v ends at %v: %v", now, end, err)
	}
	signals = s.Finish()
	for _, signal := range signals {
		if state := s.env.Requests[signal.Request].State; signal.Ended != (state == Completed || state == Rejected) {
			t.Fatalf("request %d is in state %d at %+v", signal.Request, state, signal)
		}
	}
	b.check(t, s)
	return end, signals, true
}

// TestSGLangKeepsItsBooks drives one worker through random requests and checks its pool after every step, and that it
// ends with nothing held.
func TestSGLangKeepsItsBooks(t *testing.T) {
	retractions := int64(0) // of all cases
	rapid.Check(t, func(t *rapid.T) {
		env := drawSGLang(t, Aggregated)
		if rapid.Bool().Draw(t, "crowded") { // room for any request alone, and all are let in
			longest := 0
			for _, r := range env.Requests {
				longest = max(longest, int(r.Input+r.Output))
			}
			env.Config.NumGPUBlocks, env.Config.MaxNumSeqs = longest/env.Config.BlockSize+2, 0
			env.Config.SGLang.ClipMaxNewTokens, env.Config.SGLang.ScheduleConservativeness = 1, 0
		}
		s := NewSGLang(env, Place{})
		defer func() { retractions += s.Preemptions() }()
		var books sglangBooks
		now, next := 0.0, 0
		for next < len(env.Requests) || s.HasWork() {
			for next < len(env.Requests) && (!s.HasWork() || rapid.Bool().Draw(t, "arrives")) {
				env.Requests[next].ArrivalMs = now
				s.Submit(int32(next))
				next++
			}
			end, _, ok := books.step(t, s, now)
			if !ok && next == len(env.Requests) {
				return
			}
			now = end
		}
		books.check(t, s)
		if s.tree.Locked() != 0 {
			t.Fatalf("%d pages are locked in the end", s.tree.Locked())
		}
		gaps := int64(0)
		for i := range env.Requests {
			gaps += int64(max(0, env.Requests[i].Tokens-1))
		}
		if got := env.Gaps.(*gapCounter).gaps; got != gaps {
			t.Fatalf("%d gaps between tokens are recorded, there are %d", got, gaps)
		}
	})
	if retractions == 0 && !testing.Short() { // a fifth of the draws may miss
		t.Error("no request was ever retracted, so the test shows little")
	}
}

// TestSGLangSourcesKeepTheBooks lets a prefill worker hold finished prompts for a while.
func TestSGLangSourcesKeepTheBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := drawSGLang(t, Prefill)
		s := NewSGLang(env, Place{})
		var books sglangBooks
		for i := range env.Requests {
			s.Submit(int32(i))
		}
		now := 0.0
		var held []int32
		for s.HasWork() || len(held) > 0 {
			for len(held) > 0 && rapid.Bool().Draw(t, "release") {
				s.ReleaseSource(held[0])
				env.Requests[held[0]].State = Pending // it is over
				held = held[1:]
				books.check(t, s)
			}
			if !s.HasWork() {
				continue
			}
			end, signals, ok := books.step(t, s, now)
			if !ok && len(held) == 0 {
				return
			}
			for _, signal := range signals {
				if env.Requests[signal.Request].State == Completed {
					held = append(held, signal.Request)
				}
			}
			now = end
		}
		if s.tree.Locked() != 0 {
			t.Fatalf("%d pages are locked in the end", s.tree.Locked())
		}
	})
}

// TestSGLangDestinationsKeepTheBooks reserves and activates prompts on a decode worker in random order.
func TestSGLangDestinationsKeepTheBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := drawSGLang(t, Decode)
		s := NewSGLang(env, Place{})
		var books sglangBooks
		var reserved []int32
		now, next, failed := 0.0, 0, 0
		for s.HasWork() || next < len(env.Requests) || len(reserved) > 0 {
			if next < len(env.Requests) && rapid.Bool().Draw(t, "reserve") {
				fresh, ok, never := s.Reserve(int32(next))
				r := &env.Requests[next]
				if ok && (fresh < 0 || fresh > int(s.roundUp(r.Input))) || never != (int(r.Input) > s.total) || ok && never {
					t.Fatalf("reserving %d tokens of %d: %d, %v, %v", r.Input, s.total, fresh, ok, never)
				}
				if ok {
					reserved = append(reserved, int32(next))
				}
				if ok || never {
					next++
				}
				if awaits := !ok && !never; awaits != s.handoff.reserving {
					s.Await(r.Number, awaits)
				}
				books.check(t, s)
			}
			if len(reserved) > 0 && rapid.Bool().Draw(t, "activate") {
				at := rapid.IntRange(0, len(reserved)-1).Draw(t, "which")
				free := s.free
				if gaveBack := s.Activate(reserved[at]); gaveBack != (s.free > free) {
					t.Fatalf("activating gives back %d tokens and says %v", s.free-free, gaveBack)
				}
				reserved = append(reserved[:at], reserved[at+1:]...)
				books.check(t, s)
			}
			if !s.HasWork() {
				if failed++; failed > 1000 {
					t.Fatal("no end")
				}
				continue
			}
			end, _, ok := books.step(t, s, now)
			if !ok && len(reserved) == 0 {
				return
			}
			now = end
		}
		if s.tree.Locked() != 0 {
			t.Fatalf("%d pages are locked in the end", s.tree.Locked())
		}
	})
}
