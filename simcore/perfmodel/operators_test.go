package perfmodel

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// dyadic is a deployment whose prices are sums of powers of two, so that formulas hold to the last digit. Prefill
// attention costs a quarter of a millisecond a pass on top of what depends on the prompts.
type dyadic struct{ scale float64 }

const dyadicLaunch = .25

func (d dyadic) Tokens(x int) float64     { return d.scale * (2 + float64(x)/64) }
func (d dyadic) Requests(b int) float64   { return d.scale * (.5 + float64(b)/8) }
func (d dyadic) Generation(b int) float64 { return d.scale * (3 + float64(b)/32) }
func (d dyadic) PrefillAttention(b, length, prefix int) float64 {
	return d.scale * (dyadicLaunch + float64(b*(length*length-prefix*prefix))/(1<<20))
}
func (d dyadic) GenerationAttention(b, sequence int) float64 {
	return d.scale * float64(b*sequence) / 4096
}

// covered is what the data behind dyadic covers.
type covered struct{ tokens, batch, length, decodes, sequence int }

func (c covered) MeasuredTokens(x int) bool          { return x <= c.tokens }
func (c covered) MeasuredPrefill(b, length int) bool { return b <= c.batch && length <= c.length }
func (c covered) MeasuredDecode(b, sequence int) bool {
	return b <= c.decodes && sequence <= c.sequence
}

func newDyadic(mode string, ranks int) decomposed {
	return newDecomposed(dyadic{1}, nil, Config{Mode: mode, DP: ranks})
}

// prompts describes a pass over the chunks, as an engine does.
func prompts(chunks ...Chunk) Prefill {
	p := Prefill{Requests: len(chunks), Finishing: 1, Chunks: chunks}
	for _, c := range chunks {
		p.Length += c.Length
		p.Prefix += c.Before
		p.Tokens += c.Length - c.Before
	}
	if n := len(chunks); n > 0 {
		p.Length, p.Prefix = p.Length/n, p.Prefix/n
	}
	return p
}

// TestPricingModes works out passes by hand, from the formulas of the specification (§1.1, §1.3).
func TestPricingModes(t *testing.T) {
	two := prompts(Chunk{0, 100}, Chunk{100, 300})
	three := prompts(Chunk{0, 512}, Chunk{0, 256}, Chunk{256, 512})
	const k = 1 << 20
	for _, test := range []struct {
		name, mode string
		ranks      int
		pass       Pass
		want       Price
	}{
		{"nothing", ModeMocker, 1, Pass{}, Price{}},
		{"decode", ModeMocker, 1, Pass{Decode: Decode{Requests: 4, Context: 99}}, Price{DecodeMs: 3 + 4./32 + 4*100./4096}},
		{"decode, fused", ModeFused, 1, Pass{Decode: Decode{Requests: 4, Context: 99}}, Price{DecodeMs: 3 + 4./32 + 4*100./4096}},
		{"decode, exact", ModeSerialExact, 1, Pass{Decode: Decode{Requests: 4, Context: 99}}, Price{DecodeMs: 3 + 4./32 + 4*100./4096}},
		{"drafts multiply the batch", ModeMocker, 1, Pass{Decode: Decode{Requests: 4, Context: 99, Drafts: 2}}, Price{DecodeMs: 3 + 12./32 + 12*100./4096}},
		{"ranks share the batch, the busiest counts", ModeMocker, 4, Pass{Decode: Decode{Requests: 5, Context: 99}}, Price{DecodeMs: 3 + 2./32 + 2*100./4096}},
		{"drafts come after sharing", ModeMocker, 4, Pass{Decode: Decode{Requests: 5, Context: 99, Drafts: 1}}, Price{DecodeMs: 3 + 4./32 + 4*100./4096}},
		{"prompts by their mean", ModeMocker, 1, Pass{Prefill: two},
			Price{PrefillMs: 2 + 300./64 + .5 + 2./8 + .25 + 2*(200*200-50*50)/float64(k)}},
		{"prompts by themselves", ModeSerialExact, 1, Pass{Prefill: two},
			Price{PrefillMs: 2 + 300./64 + .5 + 2./8 + .25 + (100*100+300*300-100*100)/float64(k)}},
		{"only finished prompts have logits in a fused pass", ModeFused, 1, Pass{Prefill: two},
			Price{PrefillMs: 2 + 300./64 + .5 + 1./8 + .25 + 2*(200*200-50*50)/float64(k)}},
		{"mixed", ModeMocker, 1, Pass{Prefill: two, Decode: Decode{Requests: 4, Context: 99}},
			Price{PrefillMs: 2 + 300./64 + .5 + 2./8 + .25 + 2*(200*200-50*50)/float64(k), DecodeMs: 3 + 4./32 + 4*100./4096}},
		{"mixed, exact", ModeSerialExact, 1, Pass{Prefill: two, Decode: Decode{Requests: 4, Context: 99}},
			Price{PrefillMs: 2 + 300./64 + .5 + 2./8 + .25 + (100*100+300*300-100*100)/float64(k), DecodeMs: 3 + 4./32 + 4*100./4096}},
		{"mixed, fused: decodes are tokens of the pass, with drafts", ModeFused, 1, Pass{Prefill: two, Decode: Decode{Requests: 4, Context: 99, Drafts: 1}},
			Price{PrefillMs: 2 + 308./64 + .5 + 9./8 + .25 + 2*(200*200-50*50)/float64(k), DecodeMs: 8 * 100. / 4096}},
		{"mean of truncated means", ModeMocker, 1, Pass{Prefill: prompts(Chunk{0, 10}, Chunk{1, 11})},
			Price{PrefillMs: 2 + 20./64 + .5 + 2./8 + .25 + 2*10*10/float64(k)}},
		{"ranks share prompts", ModeMocker, 2, Pass{Prefill: three},
			Price{PrefillMs: 2 + 2*(426-85)/64. + .5 + 2./8 + .25 + 2*(426*426-85*85)/float64(k)}},
		{"ranks share tokens and attention", ModeSerialExact, 2, Pass{Prefill: three},
			Price{PrefillMs: 2 + 512./64 + .5 + 2./8 + .25 + (512*512+256*256+512*512-256*256)/float64(2*k)}},
		{"ranks share all of a fused pass", ModeFused, 2, Pass{Prefill: three, Decode: Decode{Requests: 3, Context: 99}},
			Price{PrefillMs: 2 + 514./64 + .5 + 3./8 + .25 + 2*(426*426-85*85)/float64(k), DecodeMs: 2 * 100. / 4096}},
		{"more ranks than prompts", ModeSerialExact, 8, Pass{Prefill: prompts(Chunk{0, 512})},
			Price{PrefillMs: 2 + 64./64 + .5 + 1./8 + .25 + 512*512/float64(k)}},
		{"a prompt that is cached whole", ModeMocker, 1, Pass{Prefill: Prefill{Requests: 1, Length: 64, Prefix: 64}}, Price{}},
	} {
		if diff := cmp.Diff(test.want, newDyadic(test.mode, test.ranks).Price(&test.pass)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestLeastDecode checks the least duration of a decode step, which counts before the speed ratios.
func TestLeastDecode(t *testing.T) {
	for _, mode := range Modes() {
		m := newDecomposed(dyadic{1. / 1024}, nil, Config{Mode: mode, DP: 1})
		for _, pass := range []Pass{{Decode: Decode{Requests: 1, Context: 9}}, {Prefill: prompts(Chunk{0, 64}), Decode: Decode{Requests: 1, Context: 9}}} {
			if mode == ModeFused && pass.Prefill.Requests > 0 {
				continue // its decodes are a part of one pass
			}
			got := m.Price(&pass)
			if got.DecodeMs != 1 || Quantise(got.DecodeMs, 4) != 250_000 {
				t.Errorf("%s: a decode step of %+v takes %v ms, and with four times the speed %d ns", mode, pass, got.DecodeMs, Quantise(got.DecodeMs, 4))
			}
		}
	}
	if got := newDecomposed(dyadic{-1}, nil, Config{Mode: ModeMocker, DP: 1}).Price(&Pass{Prefill: prompts(Chunk{0, 64})}); got.PrefillMs != 0 {
		t.Errorf("a prefill takes %v ms", got.PrefillMs)
	}
}

func TestExtrapolated(t *testing.T) {
	data := covered{tokens: 1000, batch: 2, length: 800, decodes: 8, sequence: 500}
	for _, test := range []struct {
		name  string
		ranks int
		pass  Pass
		want  bool
	}{
		{"nothing", 1, Pass{}, false},
		{"inside", 1, Pass{Prefill: prompts(Chunk{0, 800}, Chunk{700, 800}), Decode: Decode{Requests: 8, Context: 499}}, false},
		{"decodes", 1, Pass{Decode: Decode{Requests: 9, Context: 1}}, true},
		{"decodes of two ranks", 2, Pass{Decode: Decode{Requests: 16, Context: 1}}, false},
		{"drafts", 1, Pass{Decode: Decode{Requests: 5, Context: 1, Drafts: 1}}, true},
		{"context", 1, Pass{Decode: Decode{Requests: 1, Context: 500}}, true},
		{"tokens", 1, Pass{Prefill: prompts(Chunk{0, 501}, Chunk{0, 500})}, true},
		{"tokens of two ranks", 2, Pass{Prefill: prompts(Chunk{0, 501}, Chunk{0, 500})}, false},
		{"prompts", 1, Pass{Prefill: prompts(Chunk{0, 1}, Chunk{0, 1}, Chunk{0, 1})}, true},
		{"length", 1, Pass{Prefill: prompts(Chunk{800, 801})}, true},
		{"decodes of a mixed pass", 1, Pass{Prefill: prompts(Chunk{0, 8}), Decode: Decode{Requests: 9, Context: 1}}, true},
	} {
		for _, mode := range Modes() {
			m := newDecomposed(dyadic{1}, data, Config{Mode: mode, DP: test.ranks})
			if got := m.Price(&test.pass).Extrapolated; got != test.want {
				t.Errorf("%s, %s: extrapolated is %v", test.name, mode, got)
			}
		}
		if newDyadic(ModeMocker, test.ranks).Price(&test.pass).Extrapolated {
			t.Errorf("%s: a model without data extrapolates", test.name)
		}
	}
}

func TestWhatModelsNeed(t *testing.T) {
	for _, mode := range Modes() {
		m := newDyadic(mode, 1)
		if m.ContextFree() || m.PerRequest() != (mode == ModeSerialExact) {
			t.Errorf("%s: context-free %v, per request %v", mode, m.ContextFree(), m.PerRequest())
		}
	}
}

// drawPrompts makes a pass of up to eight prompts and some decodes.
func drawPrompts(t *rapid.T) Pass {
	var chunks []Chunk
	for range rapid.IntRange(0, 8).Draw(t, "prompts") {
		before := rapid.IntRange(0, 4000).Draw(t, "before")
		chunks = append(chunks, Chunk{before, before + rapid.IntRange(1, 4000).Draw(t, "new")})
	}
	p := Pass{Prefill: prompts(chunks...)}
	p.Prefill.Finishing = rapid.IntRange(0, len(chunks)).Draw(t, "finishing")
	if n := rapid.IntRange(0, 64).Draw(t, "decodes"); n > 0 {
		p.Decode = Decode{Requests: n, Context: rapid.IntRange(1, 9000).Draw(t, "context"), Drafts: rapid.IntRange(0, 3).Draw(t, "drafts")}
	}
	return p
}

// TestModesAgree checks what holds for any pass: prices are finite and grow with the work, and the modes agree where
// they must.
func TestModesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pass, ranks := drawPrompts(t), rapid.SampledFrom([]int{1, 1, 2, 8}).Draw(t, "ranks")
		prices := map[string]Price{}
		for _, mode := range Modes() {
			m := newDyadic(mode, ranks)
			price := m.Price(&pass)
			prices[mode] = price
			if pass.Prefill.Requests > 0 != (price.PrefillMs > 0) || pass.Decode.Requests > 0 != (price.DecodeMs > 0) || math.IsInf(price.PrefillMs+price.DecodeMs, 0) {
				t.Fatalf("%s: %+v costs %+v", mode, pass, price)
			}
			more := pass
			more.Decode.Requests, more.Decode.Context = more.Decode.Requests+ranks, more.Decode.Context+1
			if again := m.Price(&more); again.PrefillMs+again.DecodeMs <= price.PrefillMs+price.DecodeMs {
				t.Fatalf("%s: %+v and one decode more cost %+v", mode, pass, again)
			}
		}
		if prices[ModeMocker].DecodeMs != prices[ModeSerialExact].DecodeMs {
			t.Fatalf("decodes cost %+v", prices)
		}
	})
}

// TestEqualPromptsHaveOnePrice checks that summing over prompts changes nothing when they are equal.
func TestEqualPromptsHaveOnePrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.IntRange(0, 4000).Draw(t, "before")
		chunk := Chunk{before, before + rapid.IntRange(1, 4000).Draw(t, "new")}
		chunks := make([]Chunk, rapid.IntRange(1, 8).Draw(t, "prompts"))
		for i := range chunks {
			chunks[i] = chunk
		}
		pass := Pass{Prefill: prompts(chunks...)}
		pass.Prefill.Finishing = len(chunks)
		mean := newDyadic(ModeMocker, 1).Price(&pass)
		for _, mode := range []string{ModeSerialExact, ModeFused} {
			if got := newDyadic(mode, 1).Price(&pass); math.Abs(got.PrefillMs-mean.PrefillMs) > 1e-9 {
				t.Fatalf("%s: %v ms, by their mean %v ms", mode, got.PrefillMs, mean.PrefillMs)
			}
		}
	})
}

// BenchmarkPrice prices a mixed pass with the tables of a GPU.
func BenchmarkPrice(b *testing.B) {
	pass := Pass{Prefill: prompts(Chunk{0, 700}, Chunk{512, 3000}), Decode: Decode{Requests: 64, Context: 2000}}
	for _, mode := range Modes() {
		c := DefaultConfig()
		c.GPU, c.Model, c.Mode = "h200_sxm", "llama-3.1-8b", mode
		m := mustNew(b, c)
		b.Run(mode, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Price(&pass)
			}
		})
	}
}

// TestDraftLayers holds aiconfigurator's price of multi-token prediction: of L layers, a step with n drafts takes as long as
// one of (1+n) times the batch in a model of L+n layers.
func TestDraftLayers(t *testing.T) {
	m := newDyadic(ModeMocker, 1)
	plain := decodeMs(m, Decode{Requests: 12, Context: 511})
	if got := decodeMs(m, Decode{Requests: 4, Context: 511, Drafts: 2}); got != plain {
		t.Errorf("4 requests with 2 drafts each take %v ms, 12 without %v", got, plain)
	}
	m.draftLayers = 32
	if got, want := decodeMs(m, Decode{Requests: 4, Context: 511, Drafts: 2}), plain*34/32; got != want {
		t.Errorf("with draft layers they take %v ms, want %v", got, want)
	}
	if got := decodeMs(m, Decode{Requests: 12, Context: 511}); got != plain {
		t.Errorf("without drafts a step takes %v ms, want %v", got, plain)
	}
}
