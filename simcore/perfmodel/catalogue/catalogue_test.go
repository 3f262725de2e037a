package catalogue

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestFindGPU(t *testing.T) {
	for name, want := range map[string]string{
		"h200_sxm": "h200_sxm", "h200": "h200_sxm", "H200 SXM": "h200_sxm", "NVIDIA H200": "h200_sxm", "H200-SXM5": "h200_sxm",
		"rtx pro 6000": "rtx_pro_6000_server", "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx_pro_6000_server",
		"mi300x": "mi300x", "AMD Instinct MI300X": "mi300x", "A100": "a100_sxm", "a100 pcie": "a100_pcie", "GB200 NVL72": "gb200",
	} {
		if g, err := FindGPU(name); err != nil || g.ID != want {
			t.Errorf("FindGPU(%q) = %q, %v; want %q", name, g.ID, err, want)
		}
	}
	for name, want := range map[string]string{"h20_sxm": "h200_sxm", "mi350x": "mi355x", "b2000": "b200_sxm"} {
		_, err := FindGPU(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !slices.Contains(unknown.Nearest, want) || !strings.Contains(err.Error(), want) {
			t.Errorf("FindGPU(%q): %v; want %s among the nearest", name, err, want)
		}
	}
	for _, name := range []string{"", "nvidia", "—"} {
		if g, err := FindGPU(name); err == nil {
			t.Errorf("FindGPU(%q) = %q", name, g.ID)
		}
	}
}

// TestGPUs checks that the catalogue is complete and plausible: every name finds its own GPU, smaller formats are not
// slower, and every figure that pricing needs is there.
func TestGPUs(t *testing.T) {
	all := GPUs()
	if len(all) < 15 {
		t.Fatalf("%d GPUs", len(all))
	}
	for _, g := range all {
		for _, name := range g.names() {
			if found, err := FindGPU(name); err != nil || found.ID != g.ID {
				t.Errorf("%q finds %q, not %q (%v)", name, found.ID, g.ID, err)
			}
		}
		for _, v := range []float64{g.MemoryGiB, g.MemoryGBps, g.BF16TFLOPS, g.LinkGBps, g.PCIeGBps, g.NICGBps, g.TDPWatts, float64(g.GPUsPerNode)} {
			if !(v > 0) {
				t.Errorf("%s lacks a figure: %+v", g.ID, g)
			}
		}
		if g.FP8TFLOPS != 0 && g.FP8TFLOPS < g.BF16TFLOPS || g.FP4TFLOPS != 0 && g.FP4TFLOPS < g.FP8TFLOPS {
			t.Errorf("%s is slower with smaller formats", g.ID)
		}
		if (g.USDPerHour > 0) != (g.PriceNote != "" && g.PriceSource != "") {
			t.Errorf("%s: a price needs a note and a source, and the other way round", g.ID)
		}
		if g.Vendor != "nvidia" && g.Vendor != "amd" || g.SpecSource == "" {
			t.Errorf("%s: vendor %q, source %q", g.ID, g.Vendor, g.SpecSource)
		}
	}
	all[0].ID = "changed"
	if GPUs()[0].ID == "changed" {
		t.Error("callers can change the catalogue")
	}
}

func TestParseGPUsRefuses(t *testing.T) {
	header := strings.Join(gpuColumns, ",") + "\n"
	for text, says := range map[string]string{
		"id,name\n": "columns",
		header + "x,nvidia,X,,0,1,1,,,1,1,1,8,1,,,,s\n":     `memory_gib is "0"`,
		header + "x,nvidia,X,,80,fast,1,,,1,1,1,8,1,,,,s\n": `row 2: memory_gbps is "fast"`,
		header + "x,nvidia,X,,80,1,+Inf,,,1,1,1,8,1,,,,s\n": "bf16_tflops",
		header + "x,nvidia,X\n":                             "wrong number of fields",
	} {
		if _, err := parseGPUs(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v; want %q", text, err, says)
		}
	}
}

func TestFindModel(t *testing.T) {
	for name, want := range map[string][2]string{
		"llama-3.1-8b":                                     {"llama-3.1-8b", BF16},
		"meta-llama/Meta-Llama-3.1-8B":                     {"llama-3.1-8b", BF16},
		"META-LLAMA/Llama-3.1-8B-Instruct":                 {"llama-3.1-8b", BF16},
		"nvidia/Llama-3.1-8B-Instruct-FP8":                 {"llama-3.1-8b", FP8},
		"nvidia/Llama-3.1-70B-Instruct-FP8":                {"llama-3.1-70b", FP8},
		"RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic": {"llama-3.1-70b", FP8},
		"Qwen/Qwen3-32B":                                   {"qwen3-32b", BF16},
		"Qwen/Qwen3-32B-FP8":                               {"qwen3-32b", FP8Block},
		"Qwen3-32B-FP8":                                    {"qwen3-32b", FP8Block},
		"Qwen/Qwen3-32B-FP8-Static-PerTensor":              {"qwen3-32b", FP8},
		"Qwen/Qwen3-32B-AWQ":                               {"qwen3-32b", INT4},
		"Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8":            {"qwen3-30b-a3b", FP8Block},
		"nvidia/Qwen3-235B-A22B-NVFP4":                     {"qwen3-235b-a22b", NVFP4},
		"nvidia/Qwen3-14B-FP4":                             {"qwen3-14b", NVFP4},
		"openai/gpt-oss-120b":                              {"gpt-oss-120b", MXFP4},
		"gpt-oss-20b":                                      {"gpt-oss-20b", MXFP4},
		"deepseek-ai/DeepSeek-V3":                          {"deepseek-v3", FP8Block},
		"DeepSeek-R1":                                      {"deepseek-v3", FP8Block},
		"nvidia/DeepSeek-V3.1-NVFP4":                       {"deepseek-v3.1", NVFP4},
		"moonshotai/Kimi-K2.5":                             {"kimi-k2.5", INT4},
		"nvidia/Kimi-K2.5-NVFP4":                           {"kimi-k2.5", NVFP4},
		" kimi-k2.5 ":                                      {"kimi-k2.5", INT4},
	} {
		if m, dtype, err := FindModel(name); err != nil || m.ID != want[0] || dtype != want[1] {
			t.Errorf("FindModel(%q) = %q, %q, %v; want %v", name, m.ID, dtype, err, want)
		}
	}
	for name, want := range map[string]string{"qwen3-33b": "qwen3-32b", "meta-llama/Llama-3.1-7B": "llama-3.1-8b", "deepsek-v3": "deepseek-v3"} {
		_, _, err := FindModel(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !slices.Contains(unknown.Nearest, want) || !strings.Contains(err.Error(), "config.json") {
			t.Errorf("FindModel(%q): %v; want %s among the nearest", name, err, want)
		}
	}
	for _, name := range []string{"", "/", "-FP8", "Qwen/"} {
		if m, _, err := FindModel(name); err == nil {
			t.Errorf("FindModel(%q) = %q", name, m.ID)
		}
	}
}

// TestModels checks that every model is valid and every name of it finds it with its dtype, and its size in billions
// of parameters where the name states it.
func TestModels(t *testing.T) {
	seen := map[string]string{}
	for _, m := range Models() {
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", m.ID, err)
		}
		if len(m.HuggingFace) == 0 || m.ID != strings.ToLower(m.ID) {
			t.Errorf("%s: %d checkpoints", m.ID, len(m.HuggingFace))
		}
		if found, dtype, err := FindModel(m.ID); err != nil || found.ID != m.ID || dtype != m.DType() {
			t.Errorf("%s finds %s, %s, %v", m.ID, found.ID, dtype, err)
		}
		for _, h := range m.HuggingFace {
			key := strings.ToLower(h.Path)
			if seen[key] != "" {
				t.Errorf("%s is both %s and %s", h.Path, seen[key], m.ID)
			}
			seen[key] = m.ID
			if found, dtype, err := FindModel(h.Path); err != nil || found.ID != m.ID || dtype != h.DType {
				t.Errorf("%s finds %s, %s, %v", h.Path, found.ID, dtype, err)
			}
			if !slices.Contains(DTypes(), h.DType) {
				t.Errorf("%s: dtype %q", h.Path, h.DType)
			}
		}
	}
	for id, want := range map[string]float64{ // as their publishers state them, in 10⁹; experts' layers count all alike
		"llama-3.1-8b": 8.03, "llama-3.1-70b": 70.6, "llama-3.1-405b": 405.9, "llama-3.2-1b": 1.24 + .26, "llama-3.2-3b": 3.21 + .39,
		"qwen2.5-7b": 7.62, "qwen2.5-14b": 14.8, "qwen2.5-32b": 32.8, "qwen2.5-72b": 72.7,
		"qwen3-0.6b": .6 + .15, "qwen3-1.7b": 1.7 + .31, "qwen3-4b": 4.02 + .39, "qwen3-8b": 8.19, "qwen3-14b": 14.8, "qwen3-32b": 32.8,
		"qwen3-30b-a3b": 30.5, "qwen3-235b-a22b": 235, "qwen3-coder-480b-a35b": 480,
		"mistral-7b": 7.25, "mistral-nemo-12b": 12.2, "mistral-small-24b": 23.6, "mixtral-8x7b": 46.7, "mixtral-8x22b": 141,
		"gpt-oss-20b": 20.9, "gpt-oss-120b": 116.8, "minimax-m2.5": 229,
		"deepseek-v3": 704, "deepseek-v3.1": 704, "kimi-k2": 1043, "kimi-k2.5": 1043,
	} {
		m, _, err := FindModel(id)
		if err != nil {
			t.Fatal(err)
		}
		if got := parameters(m) / 1e9; got < .98*want || got > 1.02*want {
			t.Errorf("%s has %.2f·10⁹ parameters, want %v", id, got, want)
		}
	}
}

// parameters counts the weights of a shape, tied embeddings twice and every layer of a mixture as one with experts.
func parameters(m Model) float64 {
	h := m.Hidden
	layer := h*m.HeadDim*(m.Heads+2*m.KVHeads) + m.Heads*m.HeadDim*h
	if m.IsMLA() {
		layer = h*m.QLoRARank + m.QLoRARank*m.Heads*(m.NopeHeadDim+m.RopeHeadDim) + h*(m.KVLoRARank+m.RopeHeadDim) +
			m.KVLoRARank*m.Heads*(m.NopeHeadDim+m.ValueHeadDim) + m.Heads*m.ValueHeadDim*h
	}
	if m.IsMoE() {
		layer += 3*h*(m.Experts*m.ExpertIntermediate+m.SharedIntermediate) + h*m.Experts
	} else {
		layer += 3 * h * m.Intermediate
	}
	return float64(m.Layers)*float64(layer) + 2*float64(h)*float64(m.Vocabulary)
}

// TestDTypes checks the number formats that go with a dtype.
func TestDTypes(t *testing.T) {
	for _, test := range []struct{ model, dtype, kv, attention string }{
		{"llama-3.1-8b", BF16, BF16, BF16}, {"llama-3.1-8b", FP8, BF16, FP8}, {"llama-3.1-70b", FP8, FP8, FP8},
		{"qwen3-32b", FP8, BF16, FP8}, {"qwen3-32b", FP8Block, FP8, FP8Block}, {"gpt-oss-120b", MXFP4, BF16, MXFP4},
		{"deepseek-v3.1", NVFP4, FP8, NVFP4}, {"kimi-k2.5", NVFP4, FP8, BF16}, {"kimi-k2.5", INT4, BF16, INT4},
	} {
		m, _, err := FindModel(test.model)
		if err != nil {
			t.Fatal(err)
		}
		if kv, attention := m.KVDType(test.dtype), m.AttentionDType(test.dtype); kv != test.kv || attention != test.attention {
			t.Errorf("%s in %s: KV %s, attention %s; want %s, %s", test.model, test.dtype, kv, attention, test.kv, test.attention)
		}
	}
	if (Model{}).DType() != BF16 {
		t.Error("a model without checkpoints isn't bf16")
	}
}

func BenchmarkFind(b *testing.B) {
	b.Run("model", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := FindModel("Qwen/Qwen3-32B-FP8"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gpu", func(b *testing.B) {
		for b.Loop() {
			if _, err := FindGPU("h200"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
