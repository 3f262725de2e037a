package perfmodel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore/rules"
)

func mustResolve(t testing.TB, c Config) Config {
	t.Helper()
	got, problems := resolve(t, c, rules.Default, "vllm")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestProvenance(t *testing.T) {
	for _, test := range []struct {
		name     string
		config   Config
		data     string // parts of what names the data, joined by |
		digest   bool
		errors   bool
		usedMode string
	}{
		{"table", deployed("h200_sxm", "llama-3.1-8b"), "vllm 0.24.0|h200_sxm", true, true, ModeMocker},
		{"fused", with(func(c *Config) { c.GPU, c.Model, c.Mode = "h200_sxm", "llama-3.1-8b", ModeFused }), "vllm 0.24.0", true, true, ModeFused},
		{"analytic", deployed("mi300x", "llama-3.1-8b"), "roofline of mi300x", false, true, ModeMocker},
		{"config.json", deployed("mi300x", writeFile(t, "config.json", llamaJSON)), "roofline of mi300x", true, true, ModeMocker},
		{"profile", with(func(c *Config) { c.Profile = writeFile(t, "p.csv", profileCSV) }), "p.csv", true, false, ""},
		{"fixed", fixedConfig(1, 1), "", false, false, ""},
		{"polynomial", DefaultConfig(), "", false, false, ""},
	} {
		c := mustResolve(t, test.config)
		p := c.Provenance()
		for _, part := range strings.Split(test.data, "|") {
			if !strings.Contains(p.Data, part) || test.data == "" && p.Data != "" {
				t.Errorf("%s: the data are %q, want %q", test.name, p.Data, test.data)
			}
		}
		if (p.Digest != "") != test.digest || (p.PrefillErrorPct > 0) != test.errors || (p.DecodeErrorPct > 0) != test.errors {
			t.Errorf("%s: %+v", test.name, p)
		}
		if c.UsedMode() != test.usedMode {
			t.Errorf("%s: mode %q, want %q", test.name, c.UsedMode(), test.usedMode)
		}
	}
}

// TestAnomaliesAreMarked looks for a row whose source is suspect.
func TestAnomaliesAreMarked(t *testing.T) {
	data, err := tableSet("")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[bool]int{}
	for _, system := range data.Systems() {
		rows, err := data.Configs(system)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.Corrected || seen[row.Anomaly] > 3 {
				continue
			}
			c := mustResolve(t, with(func(c *Config) {
				c.GPU, c.Model, c.DType, c.Backend, c.BackendVersion, c.TP, c.DP, c.EP = system, row.Model, row.DType, row.Backend, row.BackendVersion, row.TP, row.DP, row.MoEEP
				c.GEMMDType, c.MoEDType, c.FMHADType, c.KVCacheDType, c.Corrections = row.GEMM, row.MoE, row.FMHA, row.KV, false
			}))
			if got := c.Provenance().Anomaly; got != row.Anomaly {
				t.Errorf("%s: anomaly %v", row, got)
			}
			seen[row.Anomaly]++
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("rows with and without anomaly: %v", seen)
	}
}

// TestPortable checks that a file counts by what is in it, wherever it lies.
func TestPortable(t *testing.T) {
	own := func(dir string) Config {
		return with(func(c *Config) { c.GPU, c.Model, c.Tables = "l40s", "llama-3.1-8b", dir })
	}
	profiled := func(path string) Config { return with(func(c *Config) { c.Profile = path }) }
	for _, test := range []struct {
		name        string
		here, there Config
		same        bool
	}{
		{"profile elsewhere", profiled(writeFile(t, "a.csv", profileCSV)), profiled(writeFile(t, "b.csv", profileCSV)), true},
		{"other profile", profiled(writeFile(t, "a.csv", profileCSV)), profiled(writeFile(t, "a.csv", profileCSV+"prefill,2000,,,99\n")), false},
		{"model elsewhere", deployed("h200", writeFile(t, "config.json", llamaJSON)), deployed("h200_sxm", writeFile(t, "b.json", llamaJSON)), true},
		{"other model", deployed("h200", writeFile(t, "config.json", llamaJSON)), deployed("h200", writeFile(t, "config.json", strings.Replace(llamaJSON, ": 32,", ": 16,", 1))), false},
		{"tables elsewhere", own(ownTables(t, "l40s")), own(ownTables(t, "l40s")), true},
		{"tables that the program contains", own(ownTables(t, "l40s")), deployed("l40s", "llama-3.1-8b"), true},
		{"tables of another GPU", deployed("h200", "llama-3.1-8b"), deployed("h100", "llama-3.1-8b"), false},
		{"corrections", deployed("h200", "qwen3-32b"), with(func(c *Config) { c.GPU, c.Model, c.Corrections = "h200", "qwen3-32b", false }), false},
	} {
		here, there := mustResolve(t, test.here).Portable(), mustResolve(t, test.there).Portable()
		if same := here == there; same != test.same {
			t.Errorf("%s: equal is %v\n%s", test.name, same, cmp.Diff(here, there))
		}
		for _, path := range here.Files() {
			if filepath.IsAbs(*path) {
				t.Errorf("%s: %s is the path of this machine", test.name, *path)
			}
		}
	}
	for _, c := range []Config{mustResolve(t, DefaultConfig()), fixedConfig(1, 2)} {
		if c.Portable() != c {
			t.Errorf("%+v has no files and becomes %+v", c, c.Portable())
		}
	}
}

// TestFilesAreReadOnce checks that what is simulated is what points were named after, even when a file changes meanwhile.
func TestFilesAreReadOnce(t *testing.T) {
	path := writeFile(t, "p.csv", profileCSV)
	c := mustResolve(t, with(func(c *Config) { c.Profile = path }))
	digest := c.Provenance().Digest
	if err := os.WriteFile(path, []byte(strings.Replace(profileCSV, "prefill,100,,,10", "prefill,100,,,12", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := c.Provenance().Digest; again != digest {
		t.Error("the digest is that of the new file")
	}
	if got := prefillMs(mustNew(t, c), Prefill{Requests: 1, Length: 100}); got != 10 {
		t.Errorf("a pass takes %v ms, want 10 as when the file was read", got)
	}
}

// TestProfiled checks that a profile prices passes by the means of their prompts and says where it leaves its data.
func TestProfiled(t *testing.T) {
	m := mustNew(t, with(func(c *Config) { c.Profile = writeFile(t, "p.csv", profileCSV) }))
	for _, test := range []struct {
		name string
		pass Pass
		want Price
	}{
		{"nothing", Pass{}, Price{}},
		{"prefill", Pass{Prefill: Prefill{Requests: 1, Length: 1000}}, Price{PrefillMs: 50}},
		{"cached whole", Pass{Prefill: Prefill{Requests: 1, Length: 100, Prefix: 100}}, Price{}},
		{"two prompts", Pass{Prefill: Prefill{Requests: 2, Length: 700, Prefix: 200}}, Price{PrefillMs: 50}},
		{"decode", Pass{Decode: Decode{Requests: 9, Context: 1000}}, Price{DecodeMs: 6}},
		{"mixed", Pass{Prefill: Prefill{Requests: 1, Length: 100}, Decode: Decode{Requests: 1, Context: 100}}, Price{PrefillMs: 10, DecodeMs: 2}},
		{"context beyond the data", Pass{Decode: Decode{Requests: 1, Context: 99}}, Price{DecodeMs: 2, Extrapolated: true}},
	} {
		got := m.Price(&test.pass)
		if test.want.Extrapolated {
			test.want.DecodeMs = got.DecodeMs // how far it goes on is the profile's matter
		}
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
	if m.ContextFree() || m.PerRequest() {
		t.Error("decode depends on the context, and no price on single prompts")
	}
}

// TestAnomaly checks that tables which are slower than another backend by far, or faster than the GPU, are marked.
func TestAnomaly(t *testing.T) {
	for _, test := range []struct {
		name   string
		config Config
		want   bool
	}{
		{"sound", deployed("h200_sxm", "llama-3.1-8b"), false},
		{"slower than another backend", with(func(c *Config) { c.GPU, c.Model, c.Backend = "h100_sxm", "gpt-oss-120b", "sglang" }), true},
		{"faster than the GPU", with(func(c *Config) {
			c.GPU, c.Model, c.Backend, c.BackendVersion = "b200_sxm", "llama-3.1-8b", "sglang", "legacy"
		}), true},
	} {
		if got := mustResolve(t, test.config).Provenance().Anomaly; got != test.want {
			t.Errorf("%s: anomaly %v, want %v", test.name, got, test.want)
		}
	}
}
