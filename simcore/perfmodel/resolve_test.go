package perfmodel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// llamaJSON is the config.json of an 8B Llama.
const llamaJSON = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": 4096,
"intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256,
"max_position_embeddings": 131072}`

const profileCSV = "phase,new_tokens,batch,context,ms\nprefill,100,,,10\nprefill,1000,,,50\n" +
	"decode,,1,100,2\ndecode,,1,1000,3\ndecode,,9,100,4\ndecode,,9,1000,6\n"

// writeFile writes a file into a folder of the test and returns its path.
func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ownTables is a folder with the tables of one GPU, as a user may have it.
func ownTables(t testing.TB, system string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, system), os.DirFS(filepath.Join("tables", "data", system))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// with is the default configuration after a change.
func with(change func(*Config)) Config {
	c := DefaultConfig()
	change(&c)
	return c
}

// deployed is the default configuration of a model on a GPU.
func deployed(gpu, model string) Config { return with(func(c *Config) { c.GPU, c.Model = gpu, model }) }

func resolve(t testing.TB, c Config, compat rules.Compat, engine string) (Config, problem.List) {
	t.Helper()
	set, err := rules.For(compat)
	if err != nil {
		t.Fatal(err)
	}
	r, l := c.Resolve(set, engine)
	return r.Config, l
}

func TestAutomaticSource(t *testing.T) {
	profile, model, own := writeFile(t, "p.csv", profileCSV), writeFile(t, "config.json", llamaJSON), ownTables(t, "l40s")
	for _, test := range []struct {
		name   string
		config Config
		want   string
	}{
		{"nothing given", DefaultConfig(), SourcePolynomial},
		{"GPU and model with tables", deployed("h200_sxm", "llama-3.1-8b"), SourceTable},
		{"other names of both", deployed("H200", "meta-llama/Llama-3.1-8B-Instruct"), SourceTable},
		{"a GPU without tables", deployed("mi300x", "llama-3.1-8b"), SourceAnalytic},
		{"a model without tables", deployed("h200_sxm", "qwen3-14b"), SourceAnalytic},
		{"a config.json", deployed("h200_sxm", model), SourceAnalytic},
		{"a profile", with(func(c *Config) { c.Profile = profile }), SourceProfile},
		{"a profile and the GPU that has a price", with(func(c *Config) { c.Profile, c.GPU = profile, "h200" }), SourceProfile},
		{"tables of the user", with(func(c *Config) { c.GPU, c.Model, c.Tables = "l40s", "llama-3.1-8b", own }), SourceTable},
		{"roofline although there are tables", with(func(c *Config) { c.Source, c.GPU, c.Model = SourceAnalytic, "h200_sxm", "llama-3.1-8b" }), SourceAnalytic},
	} {
		got, problems := resolve(t, test.config, rules.Default, "vllm")
		if len(problems) > 0 || got.Source != test.want {
			t.Errorf("%s: source %s, want %s; %v", test.name, got.Source, test.want, problems)
		}
		if _, err := New(got); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestCanonicalNames checks that a configuration has one form, however it is written.
func TestCanonicalNames(t *testing.T) {
	llama := with(func(c *Config) {
		c.Source, c.GPU, c.Model, c.DType, c.Backend, c.BackendVersion, c.EP = SourceTable, "h200_sxm", "llama-3.1-8b", "bf16", "vllm", "0.24.0", 1
		c.KVCacheDType = "bfloat16"
	})
	changed := func(c Config, change func(*Config)) Config {
		change(&c)
		return c
	}
	for _, test := range []struct {
		name   string
		config Config
		compat rules.Compat
		engine string
		want   Config
	}{
		{"short names", deployed("h200_sxm", "llama-3.1-8b"), rules.Default, "vllm", llama},
		{"alias and Hugging Face name", deployed("H200", "meta-llama/Meta-Llama-3.1-8B-Instruct"), rules.Default, "vllm", llama},
		{"everything spelt out", llama, rules.Default, "sglang", llama},
		{"current", changed(llama, func(c *Config) { c.BackendVersion = "current" }), rules.Default, "vllm", llama},
		{"backend of the engine", deployed("h200", "llama-3.1-8b"), rules.Default, "sglang",
			changed(llama, func(c *Config) { c.Backend, c.BackendVersion = "sglang", "0.5.14" })},
		{"newest legacy release", changed(deployed("h200", "llama-3.1-8b"), func(c *Config) { c.BackendVersion = "legacy" }), rules.Default, "vllm",
			changed(llama, func(c *Config) { c.BackendVersion = "0.19.0" })},
		{"releases of dynamo 1.3", deployed("h200", "llama-3.1-8b"), rules.Dynamo13, "vllm",
			changed(llama, func(c *Config) { c.BackendVersion, c.Corrections = "0.19.0", false })},
		{"releases of dynamo 1.2", deployed("h200", "llama-3.1-8b"), rules.Dynamo12, "vllm",
			changed(llama, func(c *Config) { c.BackendVersion, c.Corrections = "0.14.0", false })},
		{"SGLang of dynamo 1.2", deployed("h200", "llama-3.1-8b"), rules.Dynamo12, "sglang",
			changed(llama, func(c *Config) { c.Backend, c.BackendVersion, c.Corrections = "sglang", "0.5.6.post2", false })},
		{"a named release has precedence", changed(deployed("h200", "llama-3.1-8b"), func(c *Config) { c.BackendVersion = "0.24.0" }), rules.Dynamo12, "vllm",
			changed(llama, func(c *Config) { c.Corrections = false })},
		{"dtype of the checkpoint", deployed("h200", "Qwen/Qwen3-32B-FP8"), rules.Default, "sglang",
			changed(llama, func(c *Config) {
				c.Model, c.DType, c.Backend, c.BackendVersion = "qwen3-32b", "fp8_block", "sglang", "0.5.14"
				c.KVCacheDType = "fp8"
			})},
		{"bf16 where the name says nothing", deployed("h200", "qwen3-32b"), rules.Default, "vllm", changed(llama, func(c *Config) { c.Model = "qwen3-32b" })},
		{"dtypes that the variant has anyway", changed(deployed("h200", "llama-3.1-8b"), func(c *Config) { c.GEMMDType, c.KVCacheDType = "bfloat16", "bfloat16" }),
			rules.Default, "vllm", llama},
		{"expert parallelism of 1 where it was measured", changed(deployed("h200", "qwen3-30b-a3b"), func(c *Config) { c.TP = 2 }), rules.Default, "sglang",
			changed(llama, func(c *Config) { c.Model, c.Backend, c.BackendVersion, c.TP = "qwen3-30b-a3b", "sglang", "0.5.14", 2 })},
		{"analytic", deployed("MI300", "meta-llama/Llama-3.1-8B"), rules.Default, "vllm",
			with(func(c *Config) {
				c.Source, c.GPU, c.Model, c.DType, c.Backend, c.EP = SourceAnalytic, "mi300x", "llama-3.1-8b", "bf16", "vllm", 1
				c.KVCacheDType = "bfloat16"
			})},
		{"analytic with the dtype of the checkpoint", deployed("mi300x", "Qwen/Qwen3-14B-FP8"), rules.Default, "vllm",
			with(func(c *Config) {
				c.Source, c.GPU, c.Model, c.DType, c.Backend, c.EP = SourceAnalytic, "mi300x", "qwen3-14b", "fp8_block", "vllm", 1
				c.KVCacheDType = "fp8"
			})},
		{"polynomial", DefaultConfig(), rules.Default, "vllm", with(func(c *Config) { c.Source = SourcePolynomial })},
		{"polynomial on a GPU that has a price", with(func(c *Config) { c.Source, c.GPU = SourcePolynomial, "H200" }), rules.Default, "vllm",
			with(func(c *Config) { c.Source, c.GPU = SourcePolynomial, "h200_sxm" })},
	} {
		got, problems := resolve(t, test.config, test.compat, test.engine)
		if diff := cmp.Diff(test.want, got); diff != "" || len(problems) > 0 {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, problems, diff)
		}
		again, problems := resolve(t, got, test.compat, test.engine)
		if diff := cmp.Diff(got, again); diff != "" || len(problems) > 0 {
			t.Errorf("%s: resolved twice: %v (-once +twice):\n%s", test.name, problems, diff)
		}
	}
}

// TestEveryRowResolvesToItself goes through all tables: the row that a resolved configuration names is the one it was
// resolved to.
func TestEveryRowResolvesToItself(t *testing.T) {
	for _, system := range tables.Embedded().Systems() {
		rows, err := tables.Embedded().Configs(system)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			c := with(func(c *Config) {
				c.GPU, c.Model, c.DType, c.Backend, c.BackendVersion = row.System, row.Model, row.DType, row.Backend, row.BackendVersion
				c.GEMMDType, c.MoEDType, c.FMHADType, c.KVCacheDType = row.GEMM, row.MoE, row.FMHA, row.KV
				c.TP, c.DP, c.EP, c.Corrections = row.TP, row.DP, row.MoEEP, row.Corrected
			})
			once, problems := resolve(t, c, rules.Default, "vllm")
			if len(problems) > 0 {
				t.Fatalf("%s: %v", row, problems)
			}
			found, err := once.Row()
			if err != nil || found != row {
				t.Fatalf("%s resolves to %+v, which is the row %s: %v", row, once, found, err)
			}
			if twice, problems := resolve(t, once, rules.Default, "vllm"); twice != once || len(problems) > 0 {
				t.Fatalf("%s: %+v and resolved again %+v: %v", row, once, twice, problems)
			}
		}
	}
}

// TestRefused checks which key is blamed and what users are told.
func TestRefused(t *testing.T) {
	profile, model := writeFile(t, "p.csv", profileCSV), writeFile(t, "config.json", llamaJSON)
	llama := func(change func(*Config)) Config {
		c := deployed("h200_sxm", "llama-3.1-8b")
		change(&c)
		return c
	}
	fixed := func(change func(*Config)) Config {
		c := fixedConfig(1, 1)
		change(&c)
		return c
	}
	for _, test := range []struct {
		name   string
		config Config
		want   []string // each problem's beginning
	}{
		{"no model", with(func(c *Config) { c.GPU = "h200" }), []string{"model: source table needs a model, such as llama-3.1-8b; `servegrid perf list` shows them"}},
		{"no GPU", with(func(c *Config) { c.Model = "llama-3.1-8b" }), []string{"gpu: source "}},
		{"neither", with(func(c *Config) { c.Source = SourceTable }), []string{"gpu: source table needs a GPU", "model: source table needs a model"}},
		{"neither, analytic", with(func(c *Config) { c.Source = SourceAnalytic }), []string{"gpu: source analytic needs a GPU", "model: source analytic needs a model"}},
		{"unknown GPU", deployed("h20_sxm", "llama-3.1-8b"), []string{"gpu: h20_sxm is not allowed; "}},
		{"unknown model", deployed("h200", "llama-3.1-9b"), []string{"model: llama-3.1-9b is not allowed; "}},
		{"unknown model on a GPU without tables", deployed("mi300x", "llama-3.1-9b"), []string{"model: llama-3.1-9b is not allowed; "}},
		{"tables that are not there", with(func(c *Config) { c.Source, c.GPU, c.Model = SourceTable, "mi300x", "llama-3.1-8b" }), []string{"gpu: mi300x is not allowed; "}},
		{"unknown dtype", llama(func(c *Config) { c.DType = "fp7" }), []string{"dtype: fp7 is not allowed; llama-3.1-8b was measured on h200_sxm with vllm 0.24.0 for dtype bf16, fp8"}},
		{"unknown version", llama(func(c *Config) { c.BackendVersion = "0.1" }), []string{"backend_version: 0.1 is not allowed; vllm was measured on h200_sxm in the versions 0.14.0, 0.19.0, 0.24.0"}},
		{"unknown backend", llama(func(c *Config) { c.Backend = "tgi" }), []string{"backend: tgi is not allowed; use one of: vllm, sglang, trtllm"}},
		{"tp that was not measured", llama(func(c *Config) { c.TP = 3 }), []string{"tp: 3 is not allowed; llama-3.1-8b bf16 was measured on h200_sxm with vllm 0.24.0 for tp 1, 2, 4, 8"}},
		{"dp that was not measured", llama(func(c *Config) { c.DP = 2 }), []string{"dp: 2 is not allowed; "}},
		{"ep that was not measured", llama(func(c *Config) { c.EP = 2 }), []string{"ep: 2 is not allowed; "}},
		{"analytic heads that cannot be divided", with(func(c *Config) { c.GPU, c.Model, c.TP = "mi300x", "llama-3.1-8b", 3 }), []string{"tp: 3 is not allowed; "}},
		{"analytic dtype that does not exist", with(func(c *Config) { c.GPU, c.Model, c.DType = "mi300x", "llama-3.1-8b", "fp7" }), []string{"dtype: fp7 is not allowed; "}},
		{"mode", llama(func(c *Config) { c.Mode = "exact" }), []string{"mode: exact is not allowed; use one of: mocker, fused, serial-exact"}},
		{"mode of a model that knows no passes", fixed(func(c *Config) { c.Mode = ModeFused }), []string{"mode: fused is not allowed; only sources table and analytic"}},
		{"settings of tables", fixed(func(c *Config) {
			c.Model, c.DType, c.Backend, c.BackendVersion, c.GEMMDType, c.MoEDType, c.FMHADType, c.KVCacheDType = "llama-3.1-8b", "fp8", "vllm", "current", "a", "b", "c", "d"
		}), []string{
			"model: llama-3.1-8b is not allowed; only source table, analytic, profile takes it; this is source fixed", "dtype: ", "backend: ", "backend_version: ",
			"gemm_dtype: ", "moe_dtype: ", "fmha_dtype: ", "kv_cache_dtype: ",
		}},
		{"settings of tables for the roofline", with(func(c *Config) {
			c.GPU, c.Model, c.BackendVersion, c.GEMMDType = "mi300x", "llama-3.1-8b", "legacy", "fp8"
		}),
			[]string{"backend_version: legacy is not allowed; only source table, profile takes it; this is source analytic", "gemm_dtype: "}},
		{"profile of another source", llama(func(c *Config) { c.Source, c.Profile = SourceTable, profile }), []string{"profile: " + profile + " is not allowed; only source profile takes it"}},
		{"corrections of the roofline", with(func(c *Config) { c.GPU, c.Model, c.Corrections = "mi300x", "llama-3.1-8b", false }), []string{"corrections: false is not allowed; only source table has any"}},
		{"a device for a profile", with(func(c *Config) { c.Profile = deviceLink(t, "p.csv") }), []string{"profile: "}},
		{"a device for a model", deployed("h200", deviceLink(t, "config.json")), []string{"model: "}},
		{"unknown model beside a profile", with(func(c *Config) { c.Profile, c.GPU, c.Model = profile, "h200", "llama-9-8b" }), []string{"model: llama-9-8b is not allowed; "}},
		{"unknown model beside a profile without a GPU", with(func(c *Config) { c.Profile, c.Model = profile, "llama-9-8b" }), []string{"model: llama-9-8b is not allowed; "}},
		{"everything that is wrong", llama(func(c *Config) { c.PrefillMs, c.DType, c.Mode = 3, "fp9", "exact" }), []string{"mode: exact", "prefill_ms: 3", "dtype: fp9"}},
		{"what the roofline can", llama(func(c *Config) { c.TP = 16 }), []string{"tp: 16 is not allowed; llama-3.1-8b bf16 was measured on h200_sxm with vllm 0.24.0 for tp 1, 2, 4, 8"}},
		{"tables of another source", fixed(func(c *Config) { c.Tables = "x" }), []string{"tables: x is not allowed; only source table, profile takes it"}},
		{"durations beside tables", llama(func(c *Config) { c.PrefillMs, c.DecodeMs = 1, 2 }), []string{"prefill_ms: 1 is not allowed; only source fixed", "decode_ms: 2 is not allowed; only source fixed"}},
		{"no profile", with(func(c *Config) { c.Source = SourceProfile }), []string{"profile: source profile needs the file of a profile"}},
		{"several at once", with(func(c *Config) { c.Source, c.GPU, c.Mode, c.TP = "guess", "h20", "exact", 0 }), []string{"source: guess", "mode: exact", "tp: 0", "gpu: h20"}},
		{"config.json in tables", with(func(c *Config) { c.Source, c.GPU, c.Model = SourceTable, "h200", model }), []string{"model: " + model + " is not allowed; "}},
	} {
		got, problems := resolve(t, test.config, rules.Default, "vllm")
		var lines []string
		for _, p := range problems {
			lines = append(lines, p.Error())
		}
		if len(lines) != len(test.want) {
			t.Errorf("%s: source %s, %d problems, want %d:\n%s", test.name, got.Source, len(lines), len(test.want), strings.Join(lines, "\n"))
			continue
		}
		for i, want := range test.want {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%s: problem %d is\n%s\nwant\n%s", test.name, i, lines[i], want)
			}
		}
	}
}

// TestNearestIsNamed checks that a slip of the pen is answered with what was meant.
func TestNearestIsNamed(t *testing.T) {
	for want, c := range map[string]Config{
		"h200_sxm":     deployed("h2000_sxm", "llama-3.1-8b"),
		"mi300x":       deployed("mi300xx", "llama-3.1-8b"),
		"llama-3.1-8b": deployed("h200_sxm", "lama-3.1-8b"),
		"qwen3-14b":    deployed("mi300x", "qwen3-14"),
	} {
		if _, problems := resolve(t, c, rules.Default, "vllm"); len(problems) != 1 || !strings.Contains(problems[0].Allowed, want) {
			t.Errorf("%s is not named: %v", want, problems)
		}
	}
}

// TestDamagedFiles checks that a file that cannot be used is a problem of its setting and never another timing model.
func TestDamagedFiles(t *testing.T) {
	damaged := ownTables(t, "l40s")
	grids := filepath.Join(damaged, "l40s", "grids.csv.gz")
	if err := os.WriteFile(filepath.Join(damaged, "l40s", "configs.csv.gz"), []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := ownTables(t, "l40s")
	text, err := os.ReadFile(filepath.Join(cut, "l40s", "grids.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cut, "l40s", "grids.csv.gz"), text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	tablesIn := func(dir string) Config {
		return with(func(c *Config) { c.GPU, c.Model, c.Tables = "l40s", "llama-3.1-8b", dir })
	}
	for _, test := range []struct {
		name, path, want string
		config           Config
	}{
		{"damaged profile", "profile", "p.csv", with(func(c *Config) { c.Profile = writeFile(t, "p.csv", "phase,new_tokens,ms\nprefill,ten,1\n") })},
		{"missing profile", "profile", "no such file", with(func(c *Config) { c.Profile = filepath.Join(t.TempDir(), "p.npz") })},
		{"unknown kind of profile", "profile", "p.txt", with(func(c *Config) { c.Profile = writeFile(t, "p.txt", "x") })},
		{"missing tables", "tables", "", tablesIn(filepath.Join(t.TempDir(), "gone"))},
		{"empty tables", "tables", "", tablesIn(t.TempDir())},
		{"damaged configs", "", "configs.csv.gz", tablesIn(damaged)},
		{"missing model", "model", "no such file", deployed("h200_sxm", filepath.Join(t.TempDir(), "config.json"))},
		{"damaged model", "model", "config.json", deployed("h200_sxm", writeFile(t, "config.json", "{"))},
	} {
		got, problems := resolve(t, test.config, rules.Default, "vllm")
		if len(problems) != 1 || test.path != "" && problems[0].Path != test.path || !strings.Contains(problems[0].Error(), test.want) {
			t.Errorf("%s: source %s, problems %v", test.name, got.Source, problems)
		}
		if _, err := New(got); err == nil {
			t.Errorf("%s: there is a model all the same", test.name)
		}
	}
	got, problems := resolve(t, tablesIn(cut), rules.Default, "vllm")
	if len(problems) == 0 {
		if _, err := New(got); err == nil || !strings.Contains(err.Error(), filepath.Base(grids)) {
			t.Errorf("tables that are cut off: %v, %v", problems, err)
		}
	}
}

func TestMemoryAndContext(t *testing.T) {
	for _, test := range []struct {
		config  Config
		memory  bool
		context int
	}{
		{deployed("h200_sxm", "llama-3.1-8b"), true, 131072},
		{deployed("mi300x", "llama-3.1-8b"), true, 131072},
		{deployed("h200_sxm", "meta-llama/Meta-Llama-3-8B"), true, 8192},
		{deployed("h200_sxm", writeFile(t, "config.json", llamaJSON)), true, 131072},
		{DefaultConfig(), false, 0},
		{with(func(c *Config) { c.Profile = writeFile(t, "p.csv", profileCSV) }), false, 0},
	} {
		got, problems := test.config.Resolve(rules.Set{}, "vllm")
		if len(problems) > 0 || (got.Memory != nil) != test.memory || got.ContextLength != test.context {
			t.Errorf("%s on %q: memory %v, context %d, want %d; %v", got.Config.Model, got.Config.GPU, got.Memory, got.ContextLength, test.context, problems)
		}
	}
}

// BenchmarkResolve resolves what a point of a sweep says.
func BenchmarkResolve(b *testing.B) {
	for _, gpu := range []string{"h200_sxm", "mi300x"} {
		c := deployed(gpu, "meta-llama/Llama-3.1-8B-Instruct")
		b.Run(gpu, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, problems := c.Resolve(rules.Set{}, "vllm"); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}

// TestProfiledDeployment checks that a profile on a named GPU and model has the memory and the context length that tables
// give, and that it still prices the passes.
func TestProfiledDeployment(t *testing.T) {
	c := deployed("h200", "Qwen/Qwen3-32B")
	c.Profile = writeFile(t, "p.csv", profileCSV)
	got, problems := c.Resolve(rules.Set{}, "vllm")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tabled, problems := deployed("h200", "Qwen/Qwen3-32B").Resolve(rules.Set{}, "vllm")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(tabled.Memory, got.Memory); diff != "" || got.ContextLength != 40960 {
		t.Errorf("context %d, memory (-want +got):\n%s", got.ContextLength, diff)
	}
	if got.Config.Source != SourceProfile || got.Config.Model != "qwen3-32b" || got.Config.GPU != "h200_sxm" {
		t.Errorf("resolved to %+v", got.Config)
	}
	again, problems := got.Config.Resolve(rules.Set{}, "sglang")
	if diff := cmp.Diff(got, again); diff != "" || len(problems) > 0 {
		t.Errorf("resolved twice: %v (-want +got):\n%s", problems, diff)
	}
	m, err := New(got.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.(profiled); !ok {
		t.Errorf("passes are priced by %T", m)
	}
	c.GPU = ""
	if got, problems = c.Resolve(rules.Set{}, "vllm"); len(problems) > 0 || got.Memory != nil || got.ContextLength != 40960 {
		t.Errorf("without a GPU: %+v %v", got, problems)
	}
}

// deviceLink returns a file that is none: reading such a one may never end.
func deviceLink(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(os.DevNull, path); err != nil {
		t.Skip("there are no links here: ", err)
	}
	return path
}
