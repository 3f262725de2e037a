package engine

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// auditor is a timing model that checks what it is told about a pass. Every third context lies outside of its data.
type auditor struct {
	t      *rapid.T
	worker *VLLM
	priced int64
}

func (*auditor) ContextFree() bool { return false }
func (*auditor) PerRequest() bool  { return true }

func (a *auditor) Price(p *perfmodel.Pass) perfmodel.Price {
	f, d := p.Prefill, p.Decode
	var tokens, before, after, finishing int
	for _, c := range f.Chunks {
		if c.Length <= c.Before || c.Before < 0 {
			a.t.Fatalf("a prompt goes from %d to %d tokens", c.Before, c.Length)
		}
		tokens, before, after = tokens+c.Length-c.Before, before+c.Before, after+c.Length
	}
	if n := len(f.Chunks); n != f.Requests || tokens != f.Tokens || n > 0 && (f.Length != after/n || f.Prefix != before/n) {
		a.t.Fatalf("%+v are not the means and sums of its prompts", f)
	}
	for _, id := range a.worker.running {
		if r := &a.worker.env.Requests[id]; r.pass == a.worker.pass.number && r.before < r.Input && r.after == r.Input {
			finishing++
		}
	}
	// Speculative decoding may preempt a request whose prompt the pass computes.
	if f.Requests > 0 && finishing != f.Finishing && a.worker.speculation.drafts == 0 {
		a.t.Fatalf("%d prompts are completed, it says %d", finishing, f.Finishing)
	}
	if limit := a.worker.env.Config.MaxNumBatchedTokens; limit > 0 && tokens > limit {
		a.t.Fatalf("%d tokens in a pass of at most %d", tokens, limit)
	}
	if d.Requests > 0 && (d.Context < 1 || d.HeldTokens < 1 || d.HeldTokens > d.PoolTokens) {
		a.t.Fatalf("a decode step of %+v", d)
	}
	if f.Requests+d.Requests == 0 {
		return perfmodel.Price{}
	}
	a.priced++
	out := perfmodel.Price{PrefillMs: float64(tokens) * .01, Extrapolated: d.Context%3 == 1}
	if d.Requests > 0 {
		out.DecodeMs = 1 + float64(d.Context)*.01
	}
	return out
}

// TestPassesAreDescribed checks that the timing model is told what a pass consists of, and that passes are counted.
func TestPassesAreDescribed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := drawEnvironment(t)
		a := &auditor{t: t}
		env.Model = a
		v := NewVLLM(env, Place{})
		a.worker = v
		for i := range env.Requests {
			env.Requests[i].ArrivalMs = 0
			v.Submit(int32(i))
		}
		now := 0.0
		for step := 0; v.HasWork(); step++ {
			end, progress, err := v.Start(now, math.Inf(1), math.Inf(1))
			var stuck *StuckError
			if errors.As(err, &stuck) || !progress {
				return
			}
			if err != nil || step > 10_000_000 { // 300 tokens, up to maxFutilePasses before each
				t.Fatal("no end:", err)
			}
			v.Finish()
			now = end
		}
		passes, extrapolated := v.Passes()
		if extrapolated < 0 || extrapolated > passes || passes > a.priced {
			t.Fatalf("%d of %d passes are extrapolated, and %d were priced", extrapolated, passes, a.priced)
		}
		if env.EveryPass && passes != a.priced {
			t.Fatalf("%d passes, %d were priced", passes, a.priced)
		}
	})
}

// TestRunsCountTheirPasses checks that passes which are simulated at once count as many as they are.
func TestRunsCountTheirPasses(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		var counts [][2]int64
		for _, every := range []bool{false, true} {
			env := rapid.Custom(drawEnvironment).Example(int(seed >> 33))
			if env.Blocks.KnownOutputs {
				return
			}
			env.EveryPass = every
			v := NewVLLM(env, Place{})
			env.Model = &auditor{t: t, worker: v}
			for i := range env.Requests {
				env.Requests[i].ArrivalMs = 0
				v.Submit(int32(i))
			}
			for now := 0.0; v.HasWork(); {
				end, progress, err := v.Start(now, math.Inf(1), math.Inf(1))
				if err != nil || !progress {
					return
				}
				v.Finish()
				now = end
			}
			passes, extrapolated := v.Passes()
			counts = append(counts, [2]int64{passes, extrapolated})
		}
		if !slices.Equal(counts[:1], counts[1:]) {
			t.Fatalf("passes and extrapolated ones: %v in runs, %v one by one", counts[0], counts[1])
		}
		if counts[0][0] > 5 {
			compared++
		}
	})
	if compared < 10 {
		t.Errorf("only %d cases had some passes", compared)
	}
}
