package memory

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const gibibyte = 1 << 30

// example is a deployment whose arithmetic can be done by hand: 10 GiB of an 80 GiB GPU are no KV cache.
func example(backend string) Requirements {
	return Requirements{
		WeightsBytes: 6 * gibibyte, Activations8192Bytes: 1 * gibibyte, ActivationBytesPerToken: gibibyte / 8192, MinActivationBytes: gibibyte / 2,
		CommunicationBytes: 1 * gibibyte, OtherBytes: 2 * gibibyte, GPUBytes: 80 * gibibyte, KV: LinearKV(1 << 20),
		DefaultFraction: 0.75, Backend: backend,
	}
}

func TestPlan(t *testing.T) {
	for name, test := range map[string]struct {
		backend  string
		settings Settings
		kvGiB    float64
	}{
		"vllm takes its share of the whole":       {"vllm", Settings{}, 80*0.75 - 10},
		"sglang too":                              {"sglang", Settings{}, 80*0.75 - 10},
		"trtllm takes its share of what is free":  {"trtllm", Settings{}, (80 - 10) * 0.75},
		"vllm's fraction":                         {"vllm", Settings{GPUMemoryUtilization: 0.5, MemFractionStatic: 0.9, FreeGPUMemoryFraction: 0.9}, 40 - 10},
		"sglang's fraction":                       {"sglang", Settings{GPUMemoryUtilization: 0.9, MemFractionStatic: 0.5, FreeGPUMemoryFraction: 0.9}, 40 - 10},
		"trtllm's fraction":                       {"trtllm", Settings{GPUMemoryUtilization: 0.9, MemFractionStatic: 0.9, FreeGPUMemoryFraction: 0.5}, 35},
		"larger passes need more activations":     {"vllm", Settings{MaxBatchedTokens: 3 * 8192}, 80*0.75 - 12},
		"smaller passes less, down to the floor":  {"vllm", Settings{MaxBatchedTokens: 1}, 80*0.75 - 9.5},
		"a fraction of 1 is allowed":              {"vllm", Settings{GPUMemoryUtilization: 1}, 70},
		"the default of passes is 8192, as given": {"vllm", Settings{MaxBatchedTokens: 8192}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := example(test.backend).Plan(test.settings)
			if err != nil {
				t.Fatal(err)
			}
			if want := int(test.kvGiB * 1024); p.KVTokens != want {
				t.Errorf("%d tokens, want %d:\n%s", p.KVTokens, want, p)
			}
			if math.Abs(p.KVBytes/gibibyte-test.kvGiB) > 1e-9 {
				t.Errorf("%v GiB for KV cache, want %v", p.KVBytes/gibibyte, test.kvGiB)
			}
		})
	}
}

func TestPlanString(t *testing.T) {
	p, err := example("trtllm").Plan(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	want := `     80.00 GiB  memory of the GPU
     -6.00 GiB  weights
     -1.00 GiB  activations of 8192 tokens
     -1.00 GiB  communication buffers
     -2.00 GiB  runtime
     70.00 GiB  free, of which free_gpu_memory_fraction 0.75
     52.50 GiB  for KV cache: 53760 tokens
`
	if got := p.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if p, err = example("vllm").Plan(Settings{}); err != nil || !strings.Contains(p.String(), "     60.00 GiB  of which gpu_memory_utilization 0.75\n") {
		t.Errorf("%v\n%s", err, p)
	}
}

// TestDoesNotFit checks that the error shows the arithmetic and helps.
func TestDoesNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Requirements)
		parts  []string
		absent string
	}{
		"a larger fraction would do": {
			func(r *Requirements) { r.WeightsBytes = 64 * gibibyte },
			[]string{"80.00 GiB × gpu_memory_utilization 0.75 = 60.00 GiB less 68.00 GiB", "weights 64.00", "leaves -8.00 GiB", "a gpu_memory_utilization over 0.850", "larger tp"}, "max_num",
		},
		"no fraction helps": {
			func(r *Requirements) { r.WeightsBytes = 140 * gibibyte },
			[]string{"less 144.00 GiB", "leaves -84.00 GiB", "a smaller dtype"}, "utilization over",
		},
		"trtllm": {
			func(r *Requirements) { r.WeightsBytes, r.Backend = 140*gibibyte, "trtllm" },
			[]string{"into the GPU: 80.00 GiB less 144.00 GiB"}, "free_gpu_memory_fraction",
		},
		"activations are the cause": {
			func(r *Requirements) { r.Activations8192Bytes = 60 * gibibyte },
			[]string{"activations of 8192 tokens 60.00", "a smaller max_num_batched_tokens"}, "trtllm",
		},
		"less than a token": {
			func(r *Requirements) { r.WeightsBytes = 56*gibibyte - 100 },
			[]string{"leaves 0.00 GiB"}, "trtllm",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := example("vllm")
			test.change(&r)
			_, err := r.Plan(Settings{})
			var full *DoesNotFit
			if !errors.As(err, &full) {
				t.Fatalf("error is %v", err)
			}
			for _, part := range test.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if strings.Contains(err.Error(), test.absent) {
				t.Errorf("%q has %q", err, test.absent)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	for want, test := range map[string]struct {
		change   func(*Requirements)
		settings Settings
	}{
		`backend "tgi" has no rule`:              {change: func(r *Requirements) { r.Backend = "tgi" }},
		"gpu_memory_utilization is 1.5":          {settings: Settings{GPUMemoryUtilization: 1.5}},
		"gpu_memory_utilization is -1":           {settings: Settings{GPUMemoryUtilization: -1}},
		"gpu_memory_utilization is NaN":          {settings: Settings{GPUMemoryUtilization: math.NaN()}},
		"max_num_batched_tokens is -1":           {settings: Settings{MaxBatchedTokens: -1}},
		"weights is NaN bytes":                   {change: func(r *Requirements) { r.WeightsBytes = math.NaN() }},
		"GPU memory is +Inf bytes":               {change: func(r *Requirements) { r.GPUBytes = math.Inf(1) }},
		"it must be over 0 and grow":             {change: func(r *Requirements) { r.KV = KVCurve{} }},
		"it cannot grow faster later":            {change: func(r *Requirements) { r.KV.Bytes131072 *= 2 }},
		"at 64, 4096 and 131072 tokens; it must": {change: func(r *Requirements) { r.KV.Bytes131072 = math.Inf(1) }},
	} {
		r := example("vllm")
		if test.change != nil {
			test.change(&r)
		}
		if _, err := r.Plan(test.settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v; it must contain %q", err, want)
		}
	}
}

// TestWindow checks the curve of a model half of whose layers stop at 128 tokens.
func TestWindow(t *testing.T) {
	bytes := func(tokens float64) float64 { return tokens*100 + min(tokens, 128)*100 }
	k := KVCurve{Bytes64: bytes(64), Bytes4096: bytes(4096), Bytes131072: bytes(131072)}
	for _, tokens := range []float64{0, 1, 64, 127, 128, 129, 1000, 4096, 131072, 1e7} {
		if got := k.Bytes(tokens); math.Abs(got-bytes(tokens)) > 1e-6*bytes(tokens) {
			t.Errorf("%v tokens take %v bytes, want %v", tokens, got, bytes(tokens))
		}
	}
	for budget, want := range map[float64]int{-1: 0, 0: 0, 199: 0, 200: 1, 128 * 200: 128, 128*200 + 99: 128, 128*200 + 100: 129, math.Inf(1): math.MaxInt32} {
		if got := k.Tokens(budget); got != want {
			t.Errorf("%v bytes hold %d tokens, want %d", budget, got, want)
		}
	}
}

// TestTokensInvertBytes checks that Tokens is the most that fits.
func TestTokensInvertBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perToken := float64(rapid.IntRange(1, 1<<21).Draw(t, "bytes per token"))
		share := rapid.Float64Range(0, 1).Draw(t, "share of layers with a window")
		window := float64(rapid.IntRange(64, 4096).Draw(t, "window"))
		curve := func(n float64) float64 { return perToken * (n*(1-share*0.9) + min(n, window)*share*0.9) }
		k := KVCurve{Bytes64: curve(64), Bytes4096: curve(4096), Bytes131072: curve(131072)}
		budget := rapid.Float64Range(0, 1e12).Draw(t, "budget")
		tokens := k.Tokens(budget)
		if fit := k.Bytes(float64(tokens)); fit > budget*(1+1e-6) {
			t.Errorf("%d tokens take %v of %v bytes", tokens, fit, budget)
		}
		if tokens < math.MaxInt32 && k.Bytes(float64(tokens)+1) < budget*(1-1e-6) {
			t.Errorf("%d tokens are not the most in %v bytes", tokens, budget)
		}
	})
}
