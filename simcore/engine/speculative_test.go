package engine

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

func TestAcceptance(t *testing.T) {
	for _, test := range []struct {
		rates string
		want  [MaxSpeculativeTokens]float64
	}{
		{"", [MaxSpeculativeTokens]float64{.85, .3}},
		{"  ", [MaxSpeculativeTokens]float64{.85, .3}},
		{"0", [MaxSpeculativeTokens]float64{}},
		{" 0.5 , 1,1e-3", [MaxSpeculativeTokens]float64{.5, 1, .001}},
		{"1,1,1,1,1,1,0.5", [MaxSpeculativeTokens]float64{1, 1, 1, 1, 1}},
	} {
		got, err := Config{AcceptanceRates: test.rates}.acceptance()
		if err != nil || got != test.want {
			t.Errorf("%q gives %v, %v, want %v", test.rates, got, err, test.want)
		}
	}
	for _, rates := range []string{",", "0.5,", "x", "-0.1", "1.01", "Inf", "0,0,0,0,0,7"} {
		if got, err := (Config{AcceptanceRates: rates}).acceptance(); err == nil {
			t.Errorf("%q is taken for %v", rates, got)
		}
	}
}

// TestDraw checks how many drafts are accepted, and that a certain one takes no draw from the generator while an
// impossible one does, without which figures differ from the reference's.
func TestDraw(t *testing.T) {
	for _, test := range []struct {
		rates         string
		drafts        int32
		accepted      int32
		randomNumbers int
	}{
		{"1,1,1,1,1", 5, 5, 0},
		{"1,1,1,1,1", 2, 2, 0},
		{"1,1,0,1", 5, 2, 1},
		{"0,1", 2, 0, 1},
		{"1,1", 3, 2, 1},
	} {
		s := newSpeculation(Config{NumSpeculativeTokens: 5, AcceptanceRates: test.rates, SpeculationSeed: 42})
		s.start(3)
		var expected stdRNG
		expected.seed(45)
		for range test.randomNumbers {
			expected.Uint64()
		}
		if got := s.draw(test.drafts); got != test.accepted {
			t.Errorf("%s: %d of %d are accepted, want %d", test.rates, got, test.drafts, test.accepted)
		}
		if s.random.Uint64() != expected.Uint64() {
			t.Errorf("%s: not %d random numbers are used", test.rates, test.randomNumbers)
		}
	}
}

// TestAcceptanceIsMet checks the mean burst of many draws against the rates.
func TestAcceptanceIsMet(t *testing.T) {
	s := newSpeculation(Config{NumSpeculativeTokens: 3, AcceptanceRates: "0.8,0.5,0.25", SpeculationSeed: 1})
	s.start(0)
	const draws = 100_000
	sum := 0
	for range draws {
		sum += int(s.draw(3))
	}
	if got, want := float64(sum)/draws, .8+.8*.5+.8*.5*.25; math.Abs(got-want) > .01 {
		t.Errorf("%v tokens are accepted on average, want %v", got, want)
	}
}

// drain gives all requests to one worker at once and lets it work to the end; false means that it got stuck.
func drain(env *Environment) bool {
	v := NewVLLM(env, Place{})
	for i := range env.Requests {
		env.Requests[i].ArrivalMs = 0
		v.Submit(int32(i))
	}
	for now := 0.0; v.HasWork(); {
		end, progress, err := v.Start(now, math.Inf(1), math.Inf(1))
		if err != nil || !progress {
			return false
		}
		v.Finish()
		now = end
	}
	v.Sync()
	return true
}

// again is the same environment before anything happened.
func again(env *Environment) *Environment {
	next := *env
	next.Gaps = &gapCounter{}
	next.Requests = slices.Clone(env.Requests)
	return &next
}

// TestSpeculationIsDeterministic runs the same requests twice.
func TestSpeculationIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := drawEnvironment(t)
		other := again(env)
		if ended := drain(env); ended != drain(other) || !slices.Equal(env.Requests, other.Requests) {
			t.Fatalf("two runs differ:\n%+v\n%+v", env.Requests, other.Requests)
		}
	})
}

// TestNothingAccepted checks that drafts that are never accepted change no time where there is room for them: with a
// timing model that does not charge for them, without a token budget and with nothing to find in the cache.
func TestNothingAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := drawEnvironment(t)
		env.Config.NumGPUBlocks, env.Config.MaxNumBatchedTokens = 10_000, 0
		env.Config.EnablePrefixCaching = false
		env.Config.NumSpeculativeTokens = 0
		env.EveryPass = true
		other := again(env)
		other.Config.NumSpeculativeTokens, other.Config.AcceptanceRates = 5, "0"
		if !drain(env) || !drain(other) {
			t.Fatal("got stuck")
		}
		for i := range env.Requests {
			a, b := &env.Requests[i], &other.Requests[i]
			if a.Tokens != b.Tokens || a.FirstTokenMs != b.FirstTokenMs || a.SecondTokenMs != b.SecondTokenMs || a.LastTokenMs != b.LastTokenMs {
				t.Fatalf("request %d is %+v, with drafts %+v", i, a, b)
			}
		}
	})
}

// speculatingWorker is a worker in the middle of long outputs.
func speculatingWorker(t testing.TB, requests int) *VLLM {
	cfg := DefaultConfig()
	cfg.BlockSize = 64
	cfg.NumSpeculativeTokens, cfg.AcceptanceRates = 3, "0.8,0.6,0.4"
	cfg.NumGPUBlocks = 1 << 24
	b := workload.NewBuilder("test", 64)
	for i := range requests {
		b.Add(workload.Request{Input: 64, Output: 1 << 24, Hashes: []uint64{uint64(i)}})
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := w.Blocks(cfg.BlockSize, true)
	if err != nil {
		t.Fatal(err)
	}
	model, err := perfmodel.New(perfmodel.Config{Source: perfmodel.SourcePolynomial})
	if err != nil {
		t.Fatal(err)
	}
	env := &Environment{Config: cfg, Rules: rules.Set{}, Model: model, Blocks: blocks, Gaps: &gapCounter{}}
	for i := range requests {
		env.Requests = append(env.Requests, Request{Number: int32(i), Input: 64, Output: 1 << 24,
			ArrivalMs: Never, AdmittedMs: Never, FirstTokenMs: Never, SecondTokenMs: Never, LastTokenMs: Never})
	}
	v := NewVLLM(env, Place{})
	for i := range requests {
		v.Submit(int32(i))
	}
	return v
}

// onePass lets a worker do its next pass.
func onePass(t testing.TB, v *VLLM, now float64) float64 {
	end, progress, err := v.Start(now, math.Inf(1), math.Inf(1))
	if err != nil || !progress {
		t.Fatalf("a pass at %v: progress %t, %v", now, progress, err)
	}
	v.Finish()
	return end
}

func TestSpeculativePassAllocatesNothing(t *testing.T) {
	v := speculatingWorker(t, 8)
	now := 0.0
	for range 10 {
		now = onePass(t, v, now)
	}
	// The cache's directory of pages grows with the blocks, now and then.
	if n := testing.AllocsPerRun(1000, func() { now = onePass(t, v, now) }); n >= 1 {
		t.Errorf("a pass allocates %v times", n)
	}
}

func BenchmarkSpeculativePass(b *testing.B) {
	v := speculatingWorker(b, 64)
	now := 0.0
	b.ReportAllocs()
	for b.Loop() {
		now = onePass(b, v, now)
	}
}

func TestTokensPerStep(t *testing.T) {
	for _, test := range []struct {
		drafts int
		rates  string
		want   float64
	}{{0, "", 1}, {1, "", 1.85}, {2, "0.8,0.5", 2.2}, {3, "1", 2}} {
		c := DefaultConfig()
		c.NumSpeculativeTokens, c.AcceptanceRates = test.drafts, test.rates
		if got := c.TokensPerStep(); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%d tokens accepted at %q: %v a step, want %v", test.drafts, test.rates, got, test.want)
		}
	}
}
