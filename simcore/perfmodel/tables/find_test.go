package tables

import (
	"strings"
	"testing"
)

// TestFindNames finds rows by the names and defaults that users give.
func TestFindNames(t *testing.T) {
	base := Query{System: "h200_sxm", Backend: "vllm", Model: "llama-3.1-8b", TP: 1, DP: 1}
	with := func(change func(*Query)) Query {
		q := base
		change(&q)
		return q
	}
	for name, test := range map[string]struct {
		query Query
		want  string
	}{
		"short name, bf16 by default": {base, "h200_sxm vllm 0.24.0 llama-3.1-8b bf16 tp 1 dp 1 ep 1"},
		"Hugging Face name":           {with(func(q *Query) { q.Model = "meta-llama/Meta-Llama-3.1-8B" }), "h200_sxm vllm 0.24.0 llama-3.1-8b bf16 tp 1 dp 1 ep 1"},
		"any case":                    {with(func(q *Query) { q.Model = "META-LLAMA/meta-llama-3.1-8b" }), "h200_sxm vllm 0.24.0 llama-3.1-8b bf16 tp 1 dp 1 ep 1"},
		"instruction-tuned, new name": {with(func(q *Query) { q.Model = "meta-llama/Llama-3.1-8B-Instruct" }), "h200_sxm vllm 0.24.0 llama-3.1-8b bf16 tp 1 dp 1 ep 1"},
		"without the organisation":    {with(func(q *Query) { q.Model = "Qwen3-32B-FP8" }), "h200_sxm vllm 0.24.0 qwen3-32b fp8_block tp 1 dp 1 ep 1"},
		"current":                     {with(func(q *Query) { q.BackendVersion = "current" }), "h200_sxm vllm 0.24.0 llama-3.1-8b bf16 tp 1 dp 1 ep 1"},
		"newest legacy":               {with(func(q *Query) { q.BackendVersion = "legacy" }), "h200_sxm vllm 0.19.0 llama-3.1-8b bf16 tp 1 dp 1 ep 1"},
		"exact version":               {with(func(q *Query) { q.BackendVersion = "0.14.0" }), "h200_sxm vllm 0.14.0 llama-3.1-8b bf16 tp 1 dp 1 ep 1"},
		"newest legacy of sglang":     {with(func(q *Query) { q.Backend, q.BackendVersion = "sglang", "legacy" }), "h200_sxm sglang 0.5.10 llama-3.1-8b bf16 tp 1 dp 1 ep 1"},
		"dtype":                       {with(func(q *Query) { q.DType = "fp8" }), "h200_sxm vllm 0.24.0 llama-3.1-8b fp8 tp 1 dp 1 ep 1"},
		"dtype by quantisation":       {with(func(q *Query) { q.GEMM = "fp8" }), "h200_sxm vllm 0.24.0 llama-3.1-8b fp8 tp 1 dp 1 ep 1"},
		"quantisation with a checkpoint's name": {
			with(func(q *Query) { q.Model, q.GEMM = "Qwen/Qwen3-32B", "fp8" }), "h200_sxm vllm 0.24.0 qwen3-32b fp8 tp 1 dp 1 ep 1",
		},
		"dtype of the checkpoint's name": {with(func(q *Query) { q.Model = "Qwen/Qwen3-32B-FP8" }), "h200_sxm vllm 0.24.0 qwen3-32b fp8_block tp 1 dp 1 ep 1"},
		"dtype beats the name":           {with(func(q *Query) { q.Model, q.DType = "Qwen/Qwen3-32B-FP8", "bf16" }), "h200_sxm vllm 0.24.0 qwen3-32b bf16 tp 1 dp 1 ep 1"},
		"the only dtype":                 {with(func(q *Query) { q.Model, q.TP = "gpt-oss-120b", 2 }), "h200_sxm vllm 0.24.0 gpt-oss-120b mxfp4 tp 2 dp 1 ep 1"},
		"expert parallelism":             {with(func(q *Query) { q.Model, q.TP, q.EP = "gpt-oss-120b", 2, 2 }), "h200_sxm vllm 0.24.0 gpt-oss-120b mxfp4 tp 2 dp 1 ep 2"},
		"the only expert parallelism":    {with(func(q *Query) { q.Model, q.DP = "gpt-oss-120b", 4 }), "h200_sxm vllm 0.24.0 gpt-oss-120b mxfp4 tp 1 dp 4 ep 4"},
	} {
		t.Run(name, func(t *testing.T) {
			c, problems := Embedded().Find(test.query)
			if problems != nil {
				t.Fatal(problems)
			}
			if c.String() != test.want {
				t.Errorf("found %s, want %s", c, test.want)
			}
		})
	}
}

// TestFindEveryRow finds each row by what is written in it.
func TestFindEveryRow(t *testing.T) {
	for _, system := range Embedded().Systems() {
		configs, err := Embedded().Configs(system)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range configs {
			q := Query{System: system, Backend: c.Backend, BackendVersion: c.BackendVersion, Model: c.Model, DType: c.DType, TP: c.TP, DP: c.DP, EP: c.MoEEP, Corrections: c.Corrected}
			found, problems := Embedded().Find(q)
			if found != c {
				t.Errorf("%s: found %v, %v", c, found, problems)
			}
			q.Model, q.GEMM, q.MoE, q.FMHA, q.KV = c.HFPath, c.GEMM, c.MoE, c.FMHA, c.KV
			if found, problems = Embedded().Find(q); found != c {
				t.Errorf("%s by its Hugging Face name: found %v, %v", c, found, problems)
			}
		}
	}
}

// TestFindExplains checks what users are told.
func TestFindExplains(t *testing.T) {
	base := Query{System: "h200_sxm", Backend: "vllm", Model: "llama-3.1-8b", TP: 1, DP: 1}
	with := func(change func(*Query)) Query {
		q := base
		change(&q)
		return q
	}
	for name, test := range map[string]struct {
		query Query
		want  string // parts joined by |, each of which one problem must contain, in order
	}{
		"gpu":                {with(func(q *Query) { q.System = "h20_sxm" }), "gpu: h20_sxm is not allowed; did you mean h200_sxm? there are tables for a100_sxm, "},
		"backend":            {with(func(q *Query) { q.Backend = "tgi" }), "backend: tgi is not allowed; h200_sxm was measured with sglang, trtllm, vllm"},
		"version":            {with(func(q *Query) { q.BackendVersion = "0.23.0" }), "backend_version: 0.23.0 is not allowed; vllm was measured on h200_sxm in the versions 0.14.0, 0.19.0, 0.24.0"},
		"model":              {with(func(q *Query) { q.Model = "llama-3.2-8b" }), "model: llama-3.2-8b is not allowed; not measured on h200_sxm; did you mean llama-3.1-8b? there are tables for "},
		"backend and model":  {with(func(q *Query) { q.Backend, q.Model = "tgi", "lama" }), "backend: tgi|model: lama"},
		"backend only":       {with(func(q *Query) { q.Backend = "" }), "backend: h200_sxm was measured with"},
		"dtype":              {with(func(q *Query) { q.DType = "nvfp4" }), "dtype: nvfp4 is not allowed; llama-3.1-8b was measured on h200_sxm with vllm 0.24.0 for dtype bf16, fp8"},
		"tp":                 {with(func(q *Query) { q.TP = 3 }), "tp: 3 is not allowed; llama-3.1-8b bf16 was measured on h200_sxm with vllm 0.24.0 for tp 1, 2, 4, 8"},
		"dp":                 {with(func(q *Query) { q.DP = 2 }), "dp: 2 is not allowed; llama-3.1-8b bf16 was measured on h200_sxm with vllm 0.24.0 and tp 1 for dp 1"},
		"ep":                 {with(func(q *Query) { q.EP = 2 }), "ep: 2 is not allowed; llama-3.1-8b bf16 was measured on h200_sxm with vllm 0.24.0 and tp 1 and dp 1 for ep 1"},
		"quantisation":       {with(func(q *Query) { q.KV = "fp8" }), "kv_cache_dtype: fp8 is not allowed; llama-3.1-8b was measured on h200_sxm with vllm 0.24.0 for kv_cache_dtype bfloat16"},
		"no dtype to prefer": {with(func(q *Query) { q.System, q.Model, q.TP = "b200_sxm", "kimi-k2.5", 8 }), "dtype: give one: kimi-k2.5 was measured on b200_sxm with vllm 0.24.0 for dtype int4_wo, nvfp4"},
		"refused by the source": {
			with(func(q *Query) {
				q.System, q.Model, q.DType, q.TP, q.EP = "h100_sxm", "qwen3-30b-a3b", "fp8_block", 4, 1
			}),
			"ep: 1 is not allowed; qwen3-30b-a3b fp8_block was measured on h100_sxm with vllm 0.24.0 and tp 4 and dp 1 for ep 4; " +
				"the source refused this one: Invalid quantized MoE configuration: (moe_intermediate_size=768 / moe_tp_size=4)",
		},
		"a checkpoint that is not there": {
			with(func(q *Query) { q.System, q.BackendVersion, q.Model = "a100_sxm", "", "Qwen/Qwen3-32B-FP8" }),
			"model: Qwen/Qwen3-32B-FP8 is not allowed; not measured on a100_sxm; qwen3-32b was, with dtype bf16",
		},
		"a model of another backend": {
			with(func(q *Query) { q.System, q.Backend, q.Model = "h200_sxm", "trtllm", "kimi-k2.5" }),
			"model: kimi-k2.5 is not allowed; not measured on h200_sxm with trtllm 1.3.0rc20; it was with sglang 0.5.14, vllm 0.24.0",
		},
		"no expert parallelism to prefer": {
			with(func(q *Query) { q.Model, q.DType, q.TP, q.DP, q.EP = "gpt-oss-120b", "", 3, 1, 0 }),
			"tp: 3 is not allowed; gpt-oss-120b mxfp4 was measured on h200_sxm with vllm 0.24.0 for tp 1, 2, 4, 8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, problems := Embedded().Find(test.query)
			if c != nil {
				t.Fatalf("found %s", c)
			}
			want := strings.Split(test.want, "|")
			if len(problems) != len(want) {
				t.Fatalf("%d problems, want %d:\n%v", len(problems), len(want), problems)
			}
			for i, part := range want {
				if !strings.Contains(problems[i].Error(), part) {
					t.Errorf("problem is\n%s\nit must contain\n%s", problems[i], part)
				}
			}
		})
	}
}

func TestCompareVersions(t *testing.T) {
	ordered := []string{"", "0.5.6rc1", "0.5.6", "0.5.6.post2", "0.5.10", "0.14.0", "0.24.0", "1.3.0rc9", "1.3.0rc10", "1.3.0", "1.3.0.1"}
	for i, a := range ordered {
		for j, b := range ordered {
			got := compareVersions(a, b)
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("compareVersions(%q, %q) = %d", a, b, got)
			}
		}
	}
}

// TestFindCorrected checks when a corrected row takes the place of the one it corrects.
func TestFindCorrected(t *testing.T) {
	f := exampleFolder()
	rows := strings.SplitAfter(f["gpu1/configs.csv.gz"], "\n")
	fields := strings.Split(strings.Replace(rows[2], "hand", "machine", 1), ",")
	for i, column := range configColumns {
		if column == "corrected" {
			fields[i] = "1"
		}
	}
	f["gpu1/configs.csv.gz"] += strings.Join(fields, ",")
	set, _, err := Check(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dtype       string
		corrections bool
		want        string
	}{{"fp8", false, "hand"}, {"fp8", true, "machine"}, {"bf16", false, "hand"}, {"bf16", true, "hand"}} {
		c, problems := set.Find(Query{System: "gpu1", Backend: "vllm", Model: "tiny", DType: test.dtype, TP: 1, DP: 1, Corrections: test.corrections})
		if problems != nil {
			t.Fatal(problems)
		}
		if c.Generator != test.want || c.Corrected != (test.want == "machine") {
			t.Errorf("%s with corrections %v is by %s, want %s", test.dtype, test.corrections, c.Generator, test.want)
		}
	}
}

// TestFindAmbiguous has two rows that differ in the KV cache only.
func TestFindAmbiguous(t *testing.T) {
	f := exampleFolder()
	rows := strings.SplitAfter(f["gpu1/configs.csv.gz"], "\n")
	f["gpu1/configs.csv.gz"] += strings.Replace(rows[1], "bfloat16,bfloat16,1,", "fp8,bfloat16,1,", 1)
	set, err := Open(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	q := Query{System: "gpu1", Backend: "vllm", Model: "tiny", TP: 1, DP: 1}
	if _, problems := set.Find(q); !strings.Contains(problems.Error(), "kv_cache_dtype: give one: tiny was measured on gpu1 with vllm 1.0 for kv_cache_dtype bfloat16, fp8") {
		t.Error(problems)
	}
	for _, kv := range []string{"bfloat16", "fp8"} {
		q.KV = kv
		if c, problems := set.Find(q); problems != nil || c.KV != kv {
			t.Errorf("%v, %v", c, problems)
		}
	}
}

// TestFindDamaged has rows that cannot be read.
func TestFindDamaged(t *testing.T) {
	f := exampleFolder()
	f["gpu1/configs.csv.gz"] = "slot\n"
	set, err := Open(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := set.Find(Query{System: "gpu1"}); !strings.Contains(problems.Error(), "gpu: gpu1 is not allowed; its tables are damaged: gpu1/configs.csv.gz:1: lacks the columns system") {
		t.Error(problems)
	}
	if _, err := set.Configs("gpu1"); err == nil {
		t.Error("rows of a damaged file")
	}
	if set.HasModel("gpu1", "tiny") || set.HasModel("gpu2", "tiny") {
		t.Error("models of a damaged file")
	}
	if _, err := set.Configs("gpu2"); err == nil || !strings.Contains(err.Error(), `no system "gpu2"; there are gpu1`) {
		t.Error(err)
	}
}

func TestHasModel(t *testing.T) {
	for name, want := range map[string]bool{"llama-3.1-8b": true, "Qwen/Qwen3-32B": true, "gpt-2": false, "": false} {
		if got := Embedded().HasModel("h100_sxm", name); got != want {
			t.Errorf("HasModel of %q is %v", name, got)
		}
	}
}

// TestDigest checks that rows that price differently have different digests.
func TestDigest(t *testing.T) {
	configs, err := Embedded().Configs("h200_sxm")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*Config{}
	for _, c := range configs {
		d := c.Digest()
		if len(d) != 16 || d != c.Digest() {
			t.Fatalf("digest is %q", d)
		}
		if o := known[d]; o != nil && (o.tokensCurve != c.tokensCurve || o.Memory() != c.Memory() || o.QKNormUs != c.QKNormUs || o.Layers != c.Layers) {
			t.Errorf("%s and %s have one digest", o, c)
		}
		known[d] = c
	}
	if len(known) < len(configs)/2 {
		t.Errorf("%d digests of %d rows", len(known), len(configs))
	}
	for name, change := range map[string]func(*Config){
		"the corrections":                       func(c *Config) { c.QKNormUs++ },
		"the layers of which each is corrected": func(c *Config) { c.Layers++ },
	} {
		changed := *configs[0]
		change(&changed)
		if changed.Digest() == configs[0].Digest() {
			t.Errorf("the digest leaves out %s", name)
		}
	}
}

func TestShorten(t *testing.T) {
	if got := shorten("  two\n lines "); got != "two lines" {
		t.Errorf("%q", got)
	}
	if got := shorten(strings.Repeat("é", maxReason)); len(got) > maxReason+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("%q", got)
	}
}
