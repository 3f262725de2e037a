package perfmodel

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/rules"
)

// TestPartsAddUp prices random passes in every mode: the parts are the price, and leave the data where it does.
func TestPartsAddUp(t *testing.T) {
	configs := []Config{}
	for _, change := range []func(*Config){
		func(c *Config) { c.GPU, c.Model = "h200_sxm", "llama-3.1-8b" },
		func(c *Config) { c.GPU, c.Model = "a100_sxm", "qwen3-0.6b" }, // has a correction, and passes below 1 ms
		func(c *Config) { c.GPU, c.Model, c.DP, c.EP = "h200_sxm", "deepseek-v3", 8, 8 },
		func(c *Config) { c.GPU, c.Model, c.TP = "mi300x", "llama-3.1-70b", 4 },
	} {
		c := DefaultConfig()
		change(&c)
		configs = append(configs, c)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(configs).Draw(t, "config")
		c.Mode = rapid.SampledFrom(Modes()).Draw(t, "mode")
		resolved, problems := c.Resolve(rules.Set{}, "vllm")
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		m, err := New(resolved.Config)
		if err != nil {
			t.Fatal(err)
		}
		p := drawPass(t)
		price := m.Price(&p)
		var prefill, decode float64
		extrapolated := false
		for _, part := range m.(Explainer).Parts(&p) {
			if part.Decode {
				decode += part.Ms
			} else {
				prefill += part.Ms
			}
			extrapolated = extrapolated || part.Extrapolated
		}
		if !same(prefill, price.PrefillMs) || !same(decode, price.DecodeMs) || extrapolated != price.Extrapolated {
			t.Fatalf("parts of %+v are %v and %v ms, extrapolated %v; the price is %+v", p, prefill, decode, extrapolated, price)
		}
	})
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

// drawPass draws a pass as an engine makes them: with prompts, decodes, or both.
func drawPass(t *rapid.T) Pass {
	var p Pass
	length, before := 0, 0
	for range rapid.IntRange(0, 5).Draw(t, "prompts") {
		c := Chunk{Before: rapid.IntRange(0, 200_000).Draw(t, "before")}
		c.Length = c.Before + rapid.IntRange(1, 40_000).Draw(t, "new")
		p.Prefill.Chunks = append(p.Prefill.Chunks, c)
		length, before = length+c.Length, before+c.Before
	}
	if n := len(p.Prefill.Chunks); n > 0 {
		p.Prefill.Requests, p.Prefill.Length, p.Prefill.Prefix, p.Prefill.Tokens = n, length/n, before/n, length-before
		p.Prefill.Finishing = rapid.IntRange(0, n).Draw(t, "finishing")
	}
	p.Decode = Decode{Requests: rapid.IntRange(0, 3000).Draw(t, "decodes"), Context: rapid.IntRange(0, 300_000).Draw(t, "context")}
	return p
}

func TestRow(t *testing.T) {
	c := DefaultConfig()
	c.GPU, c.Model = "h200_sxm", "llama-3.1-8b"
	resolved, problems := c.Resolve(rules.Set{}, "vllm")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	row, err := resolved.Config.Row()
	if err != nil || row.System != "h200_sxm" || row.Model != "llama-3.1-8b" || row.Backend != "vllm" {
		t.Errorf("row is %v, %v", row, err)
	}
	if row, err := fixedConfig(1, 1).Row(); err == nil {
		t.Errorf("source fixed has the row %v", row)
	}
}
