package engine

import (
	"math"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

func TestValidate(t *testing.T) {
	reference, err := rules.For(rules.Dynamo13)
	if err != nil {
		t.Fatal(err)
	}
	before, err := rules.For(rules.Dynamo12)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*Config)
		rules  rules.Set
		want   string // paths of the problems
	}{
		{name: "default", change: func(*Config) {}},
		{name: "no limits", change: func(c *Config) { c.MaxNumSeqs, c.MaxNumBatchedTokens, c.ContextLength = 0, 0, 0 }},
		{name: "unscaled", change: func(c *Config) { c.SpeedupRatio, c.DecodeSpeedupRatio = 0, 0 }},
		{name: "unknown words", change: func(c *Config) { c.Type, c.PreemptionMode = "tgi", "random" }, want: "type preemption_mode"},
		{name: "pool of what fits", change: func(c *Config) { c.NumGPUBlocks = 0 }},
		{name: "negative pool", change: func(c *Config) { c.NumGPUBlocks = -1 }, want: "num_gpu_blocks"},
		{name: "no shares", change: func(c *Config) {
			c.GPUMemoryUtilization, c.MemFractionStatic, c.FreeGPUMemoryFraction = -.1, 1.1, math.NaN()
		},
			want: "gpu_memory_utilization mem_fraction_static free_gpu_memory_fraction"},
		{name: "all the memory", change: func(c *Config) { c.GPUMemoryUtilization, c.MemFractionStatic, c.FreeGPUMemoryFraction = 1, 1, 1 }},
		{name: "huge pool", change: func(c *Config) { c.NumGPUBlocks = MaxBlocks + 1 }, want: "num_gpu_blocks"},
		{name: "any block size", change: func(c *Config) { c.BlockSize = 48 }},
		{name: "block size of the engine", change: func(c *Config) { c.BlockSize = 0 }},
		{name: "negative block", change: func(c *Config) { c.BlockSize = -1 }, want: "block_size"},
		{name: "huge block", change: func(c *Config) { c.BlockSize = maxBlockSize + 1 }, want: "block_size"},
		{name: "reference, no power of two", change: func(c *Config) { c.BlockSize = 48 }, rules: reference, want: "block_size"},
		{name: "reference, one token", change: func(c *Config) { c.BlockSize = 1 }, rules: reference, want: "block_size"},
		{name: "reference, two tokens", change: func(c *Config) { c.BlockSize = 2 }, rules: reference},
		{name: "negative limits", change: func(c *Config) { c.MaxNumSeqs, c.MaxNumBatchedTokens, c.ContextLength = -1, -1, -1 },
			want: "max_num_seqs max_num_batched_tokens context_length"},
		{name: "no ratios", change: func(c *Config) { c.SpeedupRatio, c.DecodeSpeedupRatio = math.NaN(), math.Inf(1) },
			want: "speedup_ratio decode_speedup_ratio"},
		{name: "negative ratios", change: func(c *Config) { c.SpeedupRatio, c.DecodeSpeedupRatio = -1, -.5 },
			want: "speedup_ratio decode_speedup_ratio"},
		{name: "speculative", change: func(c *Config) { c.NumSpeculativeTokens, c.AcceptanceRates = 5, " 1, 0.5 ,0" }},
		{name: "rates for nothing", change: func(c *Config) { c.AcceptanceRates = "0.5" }},
		{name: "negative speculation", change: func(c *Config) { c.NumSpeculativeTokens = -1 }, want: "num_speculative_tokens"},
		{name: "too much speculation", change: func(c *Config) { c.NumSpeculativeTokens = MaxSpeculativeTokens + 1 }, want: "num_speculative_tokens"},
		{name: "an impossible rate", change: func(c *Config) { c.NumSpeculativeTokens, c.AcceptanceRates = 1, "0.5,1.5" }, want: "acceptance_rates"},
		{name: "no rate", change: func(c *Config) { c.NumSpeculativeTokens, c.AcceptanceRates = 1, "0.5," }, want: "acceptance_rates"},
		{name: "not a rate", change: func(c *Config) { c.NumSpeculativeTokens, c.AcceptanceRates = 1, "NaN" }, want: "acceptance_rates"},
		{name: "faster decoding twice", change: func(c *Config) { c.NumSpeculativeTokens, c.DecodeSpeedupRatio = 1, 2 }, want: "decode_speedup_ratio"},
		{name: "what it is for, mistaken, 1.2", change: func(c *Config) { c.WorkerType = WorkerTypeAggregated }, rules: before},
		{name: "what it is for, mistaken, 1.3", change: func(c *Config) { c.WorkerType = WorkerTypeAggregated }, rules: reference, want: "worker_type"},
		{name: "what it is for, mistaken", change: func(c *Config) { c.WorkerType = WorkerTypeAggregated }, want: "worker_type"},
		{name: "what it is for, mistaken, SGLang", change: func(c *Config) { c.Type, c.WorkerType = TypeSGLang, WorkerTypeAggregated }, rules: before, want: "worker_type"},
		{name: "what it is for", change: func(c *Config) { c.WorkerType = "decode" }, rules: before, want: "worker_type"},
		{name: "everything at once", change: func(c *Config) { *c = Config{} }, want: "type preemption_mode"},
	} {
		c := DefaultConfig()
		test.change(&c)
		var paths []string
		for _, p := range c.Validate(test.rules) {
			paths = append(paths, p.Path)
			if p.Allowed == "" || p.Value == "" && p.Path != "type" && p.Path != "preemption_mode" {
				t.Errorf("%s: %+v does not say the value and what is allowed", test.name, p)
			}
		}
		if got := strings.Join(paths, " "); got != test.want {
			t.Errorf("%s: problems with %q, want %q", test.name, got, test.want)
		}
	}
}
