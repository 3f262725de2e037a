package simcore

import (
	"math"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/rules"
)

// TestResolveMemory checks what follows from the memory of a GPU, and that shares of it which change nothing are refused.
func TestResolveMemory(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*Config)
		blocks  int
		context int
		problem string
	}{
		{"nothing known", func(*Config) {}, 16384, 0, ""},
		{"GPU and model", func(c *Config) { c.Timing.GPU, c.Timing.Model = "h200", "qwen3-32b" }, 3904, 40960, ""},
		{"given blocks", func(c *Config) { c.Timing.GPU, c.Timing.Model, c.Engine.NumGPUBlocks = "h200", "qwen3-32b", 100 }, 100, 6400, ""},
		{"given context", func(c *Config) { c.Timing.GPU, c.Timing.Model, c.Engine.ContextLength = "h200", "qwen3-32b", 50000 }, 3904, 50000, ""},
		{"reference 1.2", func(c *Config) {
			c.Compat, c.Timing.GPU, c.Timing.Model = rules.Dynamo12, "h200", "llama-3.1-8b"
		}, 16384, 0, ""},
		{"does not fit", func(c *Config) { c.Timing.GPU, c.Timing.Model = "h100", "llama-3.1-70b" }, 0, 0, "timing.model: llama-3.1-70b is not allowed; does not fit"},
		{"share of what is not known", func(c *Config) { c.Engine.GPUMemoryUtilization = .5 }, 0, 0, "engine.gpu_memory_utilization: 0.5 is not allowed; source polynomial does not know GPU and model"},
		{"share of another backend", func(c *Config) { c.Timing.GPU, c.Timing.Model, c.Engine.MemFractionStatic = "h200", "qwen3-32b", .5 }, 0, 0,
			"engine.mem_fraction_static: 0.5 is not allowed; only backend sglang takes it"},
	} {
		cfg := DefaultConfig()
		test.change(&cfg)
		got, problems := cfg.Resolve()
		if test.problem != "" {
			if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), test.problem) {
				t.Errorf("%s: %v, want %s", test.name, problems, test.problem)
			}
			continue
		}
		if len(problems) > 0 {
			t.Errorf("%s: %v", test.name, problems)
			continue
		}
		if blocks := got.Engine.NumGPUBlocks; blocks != test.blocks {
			t.Errorf("%s: %d blocks, want %d", test.name, blocks, test.blocks)
		}
		if got.Engine.ContextLength != test.context {
			t.Errorf("%s: context length %d, want %d", test.name, got.Engine.ContextLength, test.context)
		}
		if again, problems := got.Resolve(); again != got || len(problems) > 0 {
			t.Errorf("%s: resolved twice it is %+v %v", test.name, again, problems)
		}
	}
}

// TestResolveTransfer checks when the size of a token's KV cache, which says how long its transfer takes, follows from the
// model.
func TestResolveTransfer(t *testing.T) {
	const ofModel = 131072 // 32 layers, keys and values of 8 heads of 128 two-byte numbers
	for _, test := range []struct {
		name   string
		change func(c *Config, e *engine.Config)
		want   int
	}{
		{"estimated", func(*Config, *engine.Config) {}, ofModel},
		{"given", func(_ *Config, e *engine.Config) { e.KVBytesPerToken = 7 }, 7},
		{"half on each of two GPUs", func(c *Config, _ *engine.Config) { c.Prefill.Timing.TP = 2 }, ofModel / 2},
		{"instant transfer", func(_ *Config, e *engine.Config) { e.KVTransferBandwidth = 0 }, 0},
		{"unknown model", func(c *Config, _ *engine.Config) { c.Prefill.Timing = DefaultConfig().Timing }, 0},
		{"reference", func(c *Config, _ *engine.Config) { c.Compat = rules.Dynamo13 }, 0},
	} {
		cfg := DefaultConfig()
		cfg.Deployment = Deployment{Mode: ModeDisaggregated, PrefillWorkers: 1, DecodeWorkers: 1}
		cfg.Engine.KVTransferBandwidth = 64
		cfg.Timing.GPU, cfg.Timing.Model = "h200", "llama-3.1-8b"
		cfg.Prefill, cfg.Decode = Stage{cfg.Engine, cfg.Timing}, Stage{cfg.Engine, cfg.Timing}
		test.change(&cfg, &cfg.Prefill.Engine)
		got, problems := cfg.Resolve()
		if len(problems) > 0 {
			t.Errorf("%s: %v", test.name, problems)
		} else if tokens := got.Prefill.Engine.KVBytesPerToken; tokens != test.want {
			t.Errorf("%s: %d bytes a token, want %d", test.name, tokens, test.want)
		}
	}
}

// TestLoadBounds checks what loads may be: beyond the bounds, times lose their fractions or run out.
func TestLoadBounds(t *testing.T) {
	for _, test := range []struct {
		load    Load
		problem string
	}{
		{Load{Mode: LoadTrace, Speedup: 1e-6}, ""},
		{Load{Mode: LoadTrace, Speedup: 1e9}, ""},
		{Load{Mode: LoadTrace, Speedup: 1e-320}, "load.speedup: 1e-320 is not allowed; give a ratio from 1e-06 to 1e+09"},
		{Load{Mode: LoadTrace, Speedup: math.NaN()}, "load.speedup: NaN is not allowed"},
		{Load{Mode: LoadTrace, Speedup: math.Inf(1)}, "load.speedup: +Inf is not allowed"},
		{Load{Mode: LoadTrace}, "load.speedup: 0 is not allowed"},
		{Load{Mode: LoadRate, Speedup: 1, Rate: 2}, ""},
		{Load{Mode: LoadRate, Speedup: 1, Rate: 1e-300}, "load.rate: 1e-300 is not allowed; mode rate needs a number of sessions per second from 1e-06 to 1e+09"},
		{Load{Mode: LoadRate, Speedup: 1}, "load.rate: 0 is not allowed"},
		{Load{Mode: LoadTrace, Speedup: 1, Rate: 2}, "load.rate: 2 is not allowed; only mode rate takes it"},
		{Load{Mode: LoadConcurrency, Speedup: 1}, "load.concurrency: 0 is not allowed; mode concurrency needs 1 or more"},
		{Load{Mode: LoadTrace, Speedup: 1, MaxSimTimeSeconds: -1}, "load.max_sim_time_seconds: -1 is not allowed"},
		{Load{Mode: "burst", Speedup: 1}, "load.mode: burst is not allowed"},
	} {
		cfg := DefaultConfig()
		cfg.Load = test.load
		_, problems := cfg.Resolve()
		if len(problems) > 1 || (len(problems) == 0) != (test.problem == "") || len(problems) == 1 && !strings.HasPrefix(problems[0].Error(), test.problem) {
			t.Errorf("%+v: %v, want %q", test.load, problems, test.problem)
		}
	}
}
