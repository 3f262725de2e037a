package roofline

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// deployment returns one of the catalogue's, for tests that know it is valid.
func deployment(t testing.TB, gpu, model, backend string, tp, dp, ep int) Deployment {
	t.Helper()
	g, err := catalogue.FindGPU(gpu)
	if err != nil {
		t.Fatal(err)
	}
	m, dtype, err := catalogue.FindModel(model)
	if err != nil {
		t.Fatal(err)
	}
	return Deployment{GPU: g, Model: m, Backend: backend, DType: dtype, TP: tp, DP: dp, EP: ep}
}

func mustNew(t testing.TB, d Deployment) *Roofline {
	t.Helper()
	r, problems := New(d)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return r
}

// TestAgainstCalibration compares with values of the Python model that the constants were fitted with. It knows no
// windows and prices latent attention a little differently, so those are left out.
func TestAgainstCalibration(t *testing.T) {
	for _, test := range []struct {
		gpu, model, backend    string
		tp, dp, ep             int
		prefill512, prefill4   float64 // 1 prompt of 512 tokens; 4 of 2048 new tokens after 3000
		decode1x100, decode64k float64 // 1 sequence of 100 tokens, 64 of 4000
	}{
		{"h200_sxm", "meta-llama/Meta-Llama-3.1-8B", "sglang", 1, 1, 1, 12.730570961, 204.321978866, 5.20601981713, 13.6753495495},
		{"mi300x", "meta-llama/Meta-Llama-3.1-70B", "vllm", 4, 1, 1, 33.6632392888, 477.46788694, 13.1848156624, 19.2594097217},
		{"h100_sxm", "Qwen/Qwen3-32B-FP8", "trtllm", 2, 1, 1, 26.120869178, 393.441408784, 9.96796806114, 17.1694028152},
		{"l40s", "Qwen/Qwen3-30B-A3B", "vllm", 4, 1, 4, 71.2886988382, 730.714627043, 6.99336681094, 45.8917349592},
		{"b200_sxm", "nvidia/Qwen3-235B-A22B-NVFP4", "trtllm", 1, 8, 8, 35.2155928049, 492.586560162, 10.5235475605, 17.3738829427},
		{"rtx_pro_6000_server", "Qwen/Qwen3-30B-A3B", "sglang", 2, 1, 1, 47.5872024029, 548.767330696, 5.73705174325, 39.5722395835},
	} {
		r := mustNew(t, deployment(t, test.gpu, test.model, test.backend, test.tp, test.dp, test.ep))
		for _, p := range []struct {
			name      string
			got, want float64
		}{
			{"prefill 1×512", prefillMs(r, 1, 512, 0), test.prefill512},
			{"prefill 4×2048 after 3000", prefillMs(r, 4, 2048, 3000), test.prefill4},
			{"decode 1×100", decodeMs(r, 1, 100), test.decode1x100},
			{"decode 64×4000", decodeMs(r, 64, 4000), test.decode64k},
		} {
			if e := relativeError(p.got, p.want); !(e < 1e-6) {
				t.Errorf("%s on %s: %s is %v ms, want %v", test.model, test.gpu, p.name, p.got, p.want)
			}
		}
	}
}

// TestWindow checks that layers with a window cost as the others up to it and grow linearly beyond.
func TestWindow(t *testing.T) {
	d := deployment(t, "h100_sxm", "gpt-oss-120b", "vllm", 1, 1, 1)
	one := attentionOfLayer(d.withDefaults())
	full, window := one, one
	full.window, window.window = math.Inf(1), 128
	if a, b := full.prefillMs(3, 128, 50), window.prefillMs(3, 128, 50); a != b {
		t.Errorf("inside the window %v ms without, %v with it", a, b)
	}
	if a, b := window.decodeMs(3, 128), window.decodeMs(3, 5000); a != b {
		t.Errorf("a decode step at the window takes %v ms, beyond %v", a, b)
	}
	first, second := window.prefillMs(1, 50000, 0), window.prefillMs(1, 100000, 0)
	if ratio := second / first; ratio < 1.9 || ratio > 2.1 {
		t.Errorf("twice the tokens take %v times as long", ratio)
	}
}

func TestNewRefuses(t *testing.T) {
	base := deployment(t, "h200_sxm", "qwen3-30b-a3b", "vllm", 2, 1, 2)
	for name, test := range map[string]struct {
		change func(*Deployment)
		path   string
		says   string
	}{
		"backend":        {func(d *Deployment) { d.Backend = "llama.cpp" }, "backend", "vllm, sglang or trtllm"},
		"trtllm on AMD":  {func(d *Deployment) { d.GPU.Vendor, d.Backend = amd, backendTRTLLM }, "backend", "NVIDIA"},
		"dtype":          {func(d *Deployment) { d.DType = "fp6" }, "dtype", "nvfp4"},
		"KV dtype":       {func(d *Deployment) { d.KVDType = "int8" }, "kv_cache_dtype", "bf16 or fp8"},
		"heads":          {func(d *Deployment) { d.TP, d.EP = 3, 1 }, "tp", "32 attention heads"},
		"KV heads":       {func(d *Deployment) { d.Model.Heads, d.Model.KVHeads, d.TP, d.EP = 48, 4, 6, 1 }, "tp", "4 key-value heads"},
		"negative tp":    {func(d *Deployment) { d.TP = -1 }, "tp", "from 1"},
		"huge dp":        {func(d *Deployment) { d.DP = 1 << 40 }, "dp", "4096"},
		"ep beyond GPUs": {func(d *Deployment) { d.EP = 4 }, "ep", "divide tp × dp = 2"},
		"ep of dense":    {func(d *Deployment) { d.Model.Experts = 0 }, "ep", "no experts"},
		"odd experts":    {func(d *Deployment) { d.Model.Experts = 127 }, "ep", "127 experts"},
		"no GPU":         {func(d *Deployment) { d.GPU = catalogue.GPU{} }, "gpu", "memory in GiB"},
		"no model":       {func(d *Deployment) { d.Model = catalogue.Model{} }, "model", "layers is 0"},
	} {
		d := base
		test.change(&d)
		r, problems := New(d)
		if r != nil || len(problems) == 0 {
			t.Errorf("%s: accepted", name)
			continue
		}
		if p := problems[0]; p.Path != test.path || !strings.Contains(p.Error(), test.says) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// TestDefaults checks what empty settings mean.
func TestDefaults(t *testing.T) {
	d := deployment(t, "h200_sxm", "qwen3-32b-fp8", "sglang", 0, 0, 0)
	d.DType = ""
	if got := d.withDefaults(); got.TP != 1 || got.DP != 1 || got.EP != 1 || got.DType != catalogue.BF16 || got.KVDType != catalogue.BF16 {
		t.Errorf("defaults are %+v", got)
	}
	d.DType, d.KVDType = catalogue.FP8Block, "bfloat16"
	if got := d.withDefaults(); got.KVDType != catalogue.BF16 {
		t.Errorf("bfloat16 is %q", got.KVDType)
	}
	d.KVDType = ""
	if got := d.withDefaults(); got.KVDType != catalogue.FP8 {
		t.Errorf("the KV cache of fp8_block is %q", got.KVDType)
	}
}

// TestNothingToDo checks passes without tokens or requests.
func TestNothingToDo(t *testing.T) {
	r := mustNew(t, deployment(t, "h200_sxm", "gpt-oss-20b", "vllm", 1, 1, 1))
	for name, ms := range map[string]float64{
		"tokens": r.Tokens(0), "requests": r.Requests(0), "generation": r.Generation(-1),
		"prefill": r.PrefillAttention(0, 5, 0), "empty prefill": r.PrefillAttention(3, 0, 0),
		"decode": r.GenerationAttention(0, 9), "empty decode": r.GenerationAttention(9, 0),
	} {
		if ms != 0 {
			t.Errorf("%s: %v ms", name, ms)
		}
	}
	if all, launch := r.PrefillAttention(1, 500, 0), r.PrefillAttention(1, 500, 500); !(launch > 0 && launch < all) {
		t.Errorf("without new tokens %v ms of %v", launch, all)
	}
}

// anyDeployment draws a deployment that New accepts.
func anyDeployment(t *rapid.T) Deployment {
	models, gpus := catalogue.Models(), catalogue.GPUs()
	for {
		d := Deployment{
			GPU:     rapid.SampledFrom(gpus).Draw(t, "gpu"),
			Model:   rapid.SampledFrom(models).Draw(t, "model"),
			Backend: rapid.SampledFrom([]string{backendVLLM, backendSGLang, backendTRTLLM}).Draw(t, "backend"),
			DType:   rapid.SampledFrom(catalogue.DTypes()).Draw(t, "dtype"),
			KVDType: rapid.SampledFrom([]string{"", catalogue.BF16, catalogue.FP8}).Draw(t, "kv"),
			TP:      1 << rapid.IntRange(0, 3).Draw(t, "tp"),
			DP:      1 << rapid.IntRange(0, 3).Draw(t, "dp"),
			EP:      1 << rapid.IntRange(0, 3).Draw(t, "ep"),
		}
		if _, problems := New(d); len(problems) == 0 {
			return d
		}
	}
}

// TestProperties checks what holds for every deployment: costs are finite and positive, and more work takes longer.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDeployment(t)
		r, _ := New(d)
		b, more := rapid.IntRange(1, 512).Draw(t, "b"), rapid.IntRange(0, 100_000).Draw(t, "more")
		x := rapid.IntRange(1, 1<<20).Draw(t, "x")
		prefix := rapid.IntRange(0, 1<<17).Draw(t, "prefix")
		length := prefix + rapid.IntRange(1, 1<<16).Draw(t, "new")
		const tiny = 1 - 1e-12 // of rounding
		for _, p := range []struct {
			name      string
			less, not float64
		}{
			{"tokens", r.Tokens(x), r.Tokens(x + more)},
			{"requests", r.Requests(b), r.Requests(b + more)},
			{"generation", r.Generation(b), r.Generation(b + more)},
			{"prefill of more tokens", r.PrefillAttention(b, length, prefix), r.PrefillAttention(b, length+more, prefix)},
			{"prefill of more requests", r.PrefillAttention(b, length, prefix), r.PrefillAttention(b+more, length, prefix)},
			{"prefill behind a cached prefix", r.PrefillAttention(b, length, prefix), r.PrefillAttention(b, length+more, prefix+more)},
			{"prefill without the prefix", r.PrefillAttention(b, length, prefix), r.PrefillAttention(b, length, 0)},
			{"decode of longer sequences", r.GenerationAttention(b, x), r.GenerationAttention(b, x+more)},
			{"decode of more sequences", r.GenerationAttention(b, x), r.GenerationAttention(b+more, x)},
		} {
			if !(p.less > 0) || math.IsInf(p.not, 0) || !(p.not >= p.less*tiny) {
				t.Fatalf("%s: %v ms, then %v ms", p.name, p.less, p.not)
			}
		}
	})
}

// TestMoreGPUs checks that a large prompt isn't slower on twice the GPUs when they are linked fast, and that an
// imagined GPU that is better in one respect is never slower.
func TestMoreGPUs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDeployment(t)
		r, _ := New(d)
		x := rapid.IntRange(1, 1<<16).Draw(t, "x")
		better := d
		for _, f := range []*float64{&better.GPU.MemoryGBps, &better.GPU.BF16TFLOPS, &better.GPU.FP8TFLOPS, &better.GPU.FP4TFLOPS} {
			*f *= rapid.Float64Range(1, 4).Draw(t, "better")
		}
		faster, _ := New(better)
		if a, b := prefillMs(r, 1, x, 0), prefillMs(faster, 1, x, 0); b > a*(1+1e-12) {
			t.Fatalf("%d tokens take %v ms, on a faster GPU %v", x, a, b)
		}
		d.TP *= 2
		wider, problems := New(d)
		if len(problems) > 0 || d.GPU.LinkGBps < pcieGBps || d.TP > fastGPUs {
			return
		}
		const prompt = 16384
		if a, b := prefillMs(r, 1, prompt, 0), prefillMs(wider, 1, prompt, 0); d.Model.Hidden > 4000 && b > a {
			t.Fatalf("a large prompt takes %v ms on half the GPUs and %v on all", a, b)
		}
	})
}

func BenchmarkRoofline(b *testing.B) {
	for _, model := range []string{"Qwen/Qwen3-32B-FP8", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b"} {
		r := mustNew(b, deployment(b, "h200_sxm", model, "sglang", 8, 1, 1))
		b.Run(model+"/prefill", func(b *testing.B) {
			b.ReportAllocs()
			i, sum := 0, 0.
			for b.Loop() {
				i++
				sum += prefillMs(r, 1+i&3, 1+i&8191, i&1023)
			}
		})
		b.Run(model+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			i, sum := 0, 0.
			for b.Loop() {
				i++
				sum += decodeMs(r, 1+i&255, 1+i&16383)
			}
		})
	}
}
