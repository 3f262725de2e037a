package perfmodel

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore/rules"
)

// prefillMs and decodeMs price one part of a pass by itself.
func prefillMs(m Model, p Prefill) float64 { return m.Price(&Pass{Prefill: p}).PrefillMs }
func decodeMs(m Model, d Decode) float64   { return m.Price(&Pass{Decode: d}).DecodeMs }

// fixedConfig is a valid configuration of fixed durations.
func fixedConfig(prefill, decode float64) Config {
	c := DefaultConfig()
	c.Source, c.PrefillMs, c.DecodeMs = SourceFixed, prefill, decode
	return c
}

func mustNew(t testing.TB, c Config) Model {
	t.Helper()
	resolved, problems := c.Resolve(rules.Set{}, "vllm")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	m, err := New(resolved.Config)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPolynomial holds the passes of the worked example, whole nanoseconds.
func TestPolynomial(t *testing.T) {
	m := mustNew(t, DefaultConfig())
	for _, test := range []struct {
		p    Prefill
		want Nanoseconds
	}{
		{Prefill{Requests: 1, Length: 1000}, 32_105_859},
		{Prefill{Requests: 2, Length: 1000}, 48_552_296},
		{Prefill{Requests: 2, Length: 1500, Prefix: 500}, 48_552_296},
		{Prefill{Requests: 0, Length: 1000}, 0},
		{Prefill{Requests: 3, Length: 1000, Prefix: 1000}, 0},
	} {
		if got := Quantise(prefillMs(m, test.p), 1); got != test.want {
			t.Errorf("prefill of %+v takes %d ns, want %d", test.p, got, test.want)
		}
	}
	const pool = 16384 * 64
	for _, test := range []struct {
		d    Decode
		want Nanoseconds
	}{
		{Decode{Requests: 1, HeldTokens: 16 * 64, PoolTokens: pool, Context: 1000}, 5_792_720},
		{Decode{Requests: 3, HeldTokens: 48 * 64, PoolTokens: pool, Context: 1000}, 5_898_011},
		{Decode{Requests: 2, HeldTokens: 32 * 64, PoolTokens: pool, Context: 9}, 5_845_390},
		{Decode{Requests: 500, HeldTokens: pool, PoolTokens: pool}, 34_010_000},
		{Decode{Requests: 0, HeldTokens: pool, PoolTokens: pool}, 0},
	} {
		if got := Quantise(decodeMs(m, test.d), 1); got != test.want {
			t.Errorf("decode of %+v takes %d ns, want %d", test.d, got, test.want)
		}
	}
	if !m.ContextFree() {
		t.Error("the polynomial does not depend on the context")
	}
}

func TestFixed(t *testing.T) {
	m := mustNew(t, fixedConfig(7, 3))
	got := []float64{
		prefillMs(m, Prefill{Requests: 1, Length: 1}), prefillMs(m, Prefill{Requests: 9, Length: 9000}),
		prefillMs(m, Prefill{}), prefillMs(m, Prefill{Requests: 1, Length: 5, Prefix: 5}),
		decodeMs(m, Decode{Requests: 1}), decodeMs(m, Decode{Requests: 99, Context: 1e6}), decodeMs(m, Decode{}),
	}
	if diff := cmp.Diff([]float64{7, 7, 0, 0, 3, 3, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fast := mustNew(t, fixedConfig(0, .25)); decodeMs(fast, Decode{Requests: 1}) != 1 {
		t.Error("a decode step takes less than 1 ms")
	}
}

func TestValidate(t *testing.T) {
	valid := DefaultConfig()
	for _, test := range []struct {
		name   string
		change func(*Config)
		want   []string // paths of the problems
	}{
		{"default", func(*Config) {}, nil},
		{"fixed", func(c *Config) { c.Source, c.DecodeMs = SourceFixed, 2 }, nil},
		{"fixed with free prefill", func(c *Config) { c.Source, c.DecodeMs, c.PrefillMs = SourceFixed, 2, 0 }, nil},
		{"unknown source", func(c *Config) { c.Source = "guess" }, []string{"source"}},
		{"no source", func(c *Config) { c.Source = "" }, []string{"source"}},
		{"fixed without decode", func(c *Config) { c.Source, c.PrefillMs = SourceFixed, 3 }, []string{"decode_ms"}},
		{"durations of the polynomial", func(c *Config) { c.Source, c.PrefillMs, c.DecodeMs = SourcePolynomial, 1, 1 }, []string{"prefill_ms", "decode_ms"}},
		{"negative", func(c *Config) { c.Source, c.PrefillMs, c.DecodeMs = SourceFixed, -1, -1 }, []string{"prefill_ms", "decode_ms"}},
		{"not a number", func(c *Config) { c.Source, c.PrefillMs, c.DecodeMs = SourceFixed, math.NaN(), math.Inf(1) }, []string{"prefill_ms", "decode_ms"}},
		{"no GPUs", func(c *Config) { c.TP, c.DP = 0, -2 }, []string{"tp", "dp"}},
		{"everything", func(c *Config) { *c = Config{PrefillMs: -1, EP: -1} }, []string{"source", "mode", "tp", "dp", "ep", "prefill_ms", "prefill_scale", "decode_scale"}},
		{"overheads", func(c *Config) { c.PassOverheadMs, c.RequestOverheadMs = -1, math.Inf(1) }, []string{"pass_overhead_ms", "request_overhead_ms"}},
		{"scales", func(c *Config) { c.PrefillScale, c.DecodeScale = math.NaN(), -1 }, []string{"prefill_scale", "decode_scale"}},
	} {
		c := valid
		test.change(&c)
		var paths []string
		_, problems := c.Resolve(rules.Set{}, "vllm")
		for _, p := range problems {
			paths = append(paths, p.Path)
			if p.Allowed == "" {
				t.Errorf("%s: %s does not say what is allowed", test.name, p.Path)
			}
		}
		if diff := cmp.Diff(test.want, paths); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", test.name, diff)
		}
	}
	if _, err := New(Config{Source: "guess"}); err == nil {
		t.Error("New makes a model of an unknown source")
	}
}
