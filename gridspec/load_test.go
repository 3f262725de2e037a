package gridspec_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
)

// chat is the shortest sound workload.
const chat = "workload: {preset: {name: chat, requests: 10}}\n"

func load(t testing.TB, text string, set ...string) *gridspec.Spec {
	t.Helper()
	s, err := gridspec.Load(gridspec.Source{Data: []byte(text), Set: set})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return s
}

func expand(t testing.TB, s *gridspec.Spec) []gridspec.Point {
	t.Helper()
	ps, err := s.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// column returns the values of a column as text.
func column(t testing.TB, ps []gridspec.Point, name string) []string {
	t.Helper()
	var out []string
	for _, p := range ps {
		found := false
		for _, a := range p.Axes {
			if a.Column == name {
				out, found = append(out, a.Value.String()), true
			}
		}
		if !found {
			t.Fatalf("no column %s in %+v", name, p.Axes)
		}
	}
	return out
}

func TestLayers(t *testing.T) {
	text := chat + "engine: {block_size: 16, num_gpu_blocks: 100, max_num_seqs: 4}\ngrid: {timing.tp: [1, 2]}\n"
	s, err := gridspec.Load(gridspec.Source{
		Data: []byte(text),
		Env: []string{
			"HOME=/nowhere",
			"SERVEGRID_ENGINE__BLOCK_SIZE=32",
			"SERVEGRID_ENGINE__NUM_GPU_BLOCKS=200",
			"SERVEGRID_WORKLOAD__PRESET__DURATION_S=1e1",
		},
		Set: []string{
			"engine.num_gpu_blocks=300",
			"engine.max_num_seqs=",
			"grid.timing.tp=[4]",
			"grid.engine.preemption_mode=[lifo, fifo]",
			"workload.preset.rate=2.5",
			"derive.x=1 < 2 ? 'a' : 'b'",
			`name="12"`,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ps := expand(t, s)
	c := ps[0].Config
	got := []any{s.Name, c.Engine.BlockSize, c.Engine.NumGPUBlocks, c.Engine.MaxNumSeqs, ps[0].Workload.Preset.Rate, ps[0].Workload.Preset.DurationSeconds}
	want := []any{"12", 32, 300, 0, 2.5, 10.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"4", "4"}, column(t, ps, "tp")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"lifo", "fifo"}, column(t, ps, "preemption_mode")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "a"}, column(t, ps, "x")); diff != "" {
		t.Error(diff)
	}
}

func TestFormatsAreEqual(t *testing.T) {
	specs := map[gridspec.Format]string{
		gridspec.YAML: `
workload: {preset: {name: chat, requests: 10}}
engine: {max_num_batched_tokens: 4096, speedup_ratio: 2}
grid: {engine: {block_size: [16, 32]}, timing.tp: {powers: [2, 0, 2]}}
exclude: [tp > 2]
`,
		gridspec.JSON: `{"workload": {"preset": {"name": "chat", "requests": 10}},
"engine": {"max_num_batched_tokens": 4096, "speedup_ratio": 2},
"grid": {"engine.block_size": [16, 32], "timing.tp": {"powers": [2, 0, 2]}}, "exclude": ["tp > 2"]}`,
		gridspec.TOML: `
exclude = ["tp > 2"]
workload.preset = {name = "chat", requests = 10}
[engine]
max_num_batched_tokens = 4096
speedup_ratio = 2.0
[grid]
engine.block_size = [16, 32]
"timing.tp" = {powers = [2, 0, 2]}
`,
	}
	var first []gridspec.Point
	for _, format := range []gridspec.Format{gridspec.YAML, gridspec.JSON, gridspec.TOML} {
		s, err := gridspec.Load(gridspec.Source{Data: []byte(specs[format]), Format: format})
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		ps := expand(t, s)
		if first == nil {
			first = ps
		}
		if diff := cmp.Diff(first, ps); diff != "" || len(ps) != 4 {
			t.Errorf("%s differs from YAML, %d points:\n%s", format, len(ps), diff)
		}
	}
}

func TestImpliedLoadMode(t *testing.T) {
	for _, tc := range []struct {
		spec string
		want []simcore.LoadMode
	}{
		{"", []simcore.LoadMode{"trace"}},
		{"load: {concurrency: 4}", []simcore.LoadMode{"concurrency"}},
		{"load: {rate: 4}", []simcore.LoadMode{"rate"}},
		{"grid: {load.concurrency: [1, 2]}", []simcore.LoadMode{"concurrency", "concurrency"}},
		{"cases: {open: {load.rate: 2}, closed: {load.concurrency: 2}, plain: {load.speedup: 2}}", []simcore.LoadMode{"rate", "concurrency", "trace"}},
		{"load: {mode: rate, rate: 2}", []simcore.LoadMode{"rate"}},
	} {
		var got []simcore.LoadMode
		for _, p := range expand(t, load(t, chat+tc.spec)) {
			got = append(got, p.Config.Load.Mode)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.spec, diff)
		}
	}
}

func TestTracePathsStartAtTheSpec(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "grid.yaml")
	if err := os.WriteFile(path, []byte("workload: [{trace: {path: sub/a.jsonl}}, {trace: {path: \"-\"}}, {trace: {paths: [sub/b.jsonl, /c.jsonl]}}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := gridspec.Load(gridspec.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ps := expand(t, s)
	w := ps[0].Workload
	if want := filepath.Join(dir, "sub", "a.jsonl"); w.Trace.Path != want || w.Name != "a.jsonl" || w.Trace.BlockSize != 0 || w.Trace.Format != "auto" {
		t.Errorf("%+v %+v", w, *w.Trace)
	}
	if ps[1].Workload.Trace.Path != "-" {
		t.Errorf("standard input became %s", ps[1].Workload.Trace.Path)
	}
	if w := ps[2].Workload; w.Name != "b.jsonl c.jsonl" || !slices.Equal(w.Trace.Paths, []string{filepath.Join(dir, "sub", "b.jsonl"), "/c.jsonl"}) {
		t.Errorf("%+v %+v", w, *w.Trace)
	}
	out := filepath.Join(dir, "runs", "first")
	resolved, err := s.Resolved(out)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(resolved), dir) || !strings.Contains(string(resolved), "../../sub/a.jsonl") {
		t.Errorf("the resolved spec does not stand by itself:\n%s", resolved)
	}
	again, err := gridspec.Load(gridspec.Source{Data: resolved, Dir: out})
	if err != nil {
		t.Fatal(err)
	}
	if again.Output.Dir != "." {
		t.Errorf("the results would go to %s", again.Output.Dir)
	}
	if diff := cmp.Diff(ps, expand(t, again)); diff != "" {
		t.Error(diff)
	}
}

func TestYAMLForms(t *testing.T) {
	s := load(t, `
workload: &w {preset: {name: chat, requests: 1e1}}
engine: {block_size: 64.0, max_num_seqs: null}
cases:
  a: &base {engine.num_gpu_blocks: 0x100}
  b: {<<: *base, timing.tp: 2}
  on: {engine: {engine_type: vllm}}
`)
	ps := expand(t, s)
	if diff := cmp.Diff([]string{"a", "b", "on"}, column(t, ps, "case")); diff != "" {
		t.Error(diff)
	}
	got := []int{ps[0].Workload.Preset.Requests, ps[1].Config.Engine.NumGPUBlocks, ps[1].Config.Timing.TP, ps[2].Config.Engine.BlockSize, ps[2].Config.Engine.MaxNumSeqs}
	if diff := cmp.Diff([]int{10, 256, 2, 64, 0}, got); diff != "" {
		t.Error(diff)
	}
}

// TestLoadProblems lists one spec for every kind of mistake and what its error must say.
func TestLoadProblems(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{"syntax", "engine: [1", []string{"grid.yaml:1:"}},
		{"no mapping", "- 1", []string{"grid.yaml:1:1: a spec is a mapping"}},
		{"second document", "name: a\n---\nname: b", []string{"grid.yaml:3:1: a spec is one document"}},
		{"binary", "name: a\x00", []string{"grid.yaml:1:8: this is no UTF-8 text"}},
		{"invalid UTF-8", "name: \xff", []string{"grid.yaml:1:7: this is no UTF-8 text"}},
		{"tag", "name: !!str 1", []string{"grid.yaml:1:7: tags such as !!str"}},
		{"unknown alias", "name: *x", []string{"the alias *x has no anchor"}},
		{"alias inside its anchor", "name: &a [*a]", []string{"the alias *a has no anchor"}},
		{"bad merge", "engine: {<<: 3}", []string{"<< takes a mapping"}},
		{"leading zero", "engine: {block_size: 064}", []string{"grid.yaml:1:22: 064: write the number without leading zeros"}},
		{"huge integer", "execution: {seed: 99999999999999999999999}", []string{"grid.yaml:1:19: 99999999999999999999999: the number is too large"}},
		{"huge float", "load: {speedup: 1e999}", []string{"1e999: the number is too large"}},
		{"duplicate key", "engine:\n  block_size: 1\n  block_size: 2", []string{"grid.yaml:3:3: engine.block_size: this key is already at grid.yaml:2:3"}},
		{"unknown key", "engine:\n  block_sise: 1", []string{"grid.yaml:2:3: engine.block_sise: unknown key; the nearest is block_size"}},
		{"unknown top-level key", "enigne: {}", []string{"grid.yaml:1:1: enigne: unknown key; the nearest is engine"}},
		{"key of a section", "tp: 1", []string{"it belongs to timing.tp"}},
		{"dotted key", "engine.block_size: 1", []string{"write it below its section: `engine: {block_size: ...}`"}},
		{"hopeless key", "xxxxxxxxxx: 1", []string{"unknown key; use one of: name, workload"}},
		{"two names", "engine: {type: vllm, engine_type: vllm}", []string{"engine.engine_type: this is another name of engine.type"}},
		{"text for a number", `engine: {block_size: "64"}`, []string{`engine.block_size: "64" is not allowed; give a whole number`}},
		{"fraction for a whole number", "engine: {block_size: 1.5}", []string{"engine.block_size: 1.5 is not allowed; give a whole number"}},
		{"number for text", "name: 3", []string{"name: 3 is not allowed; give text"}},
		{"yes for true", "engine: {enable_prefix_caching: yes}", []string{`"yes" is not allowed; give true or false`}},
		{"infinity", "load: {speedup: .inf}", []string{"give a finite number"}},
		{"not a number", "load: {speedup: .nan}", []string{"give a finite number"}},
		{"null", "engine: {speedup_ratio: null}", []string{"engine.speedup_ratio: null is not allowed"}},
		{"zero for null", "engine: {block_size: 0}", []string{"engine.block_size: 0 is not allowed; give 1 or more, or null for the engine's default"}},
		{"scalar for a section", "engine: 3", []string{"engine: 3 is not allowed; give a mapping"}},
		{"negative seed", "execution: {seed: -1}", []string{"execution.seed: -1 is not allowed; give a whole number of 0 or more"}},
		{"duration without unit", "execution: {timeout: 5}", []string{"give a duration with its unit"}},
		{"jobs", "execution: {jobs: some}", []string{"give auto or a number"}},
		{"memory", "execution: {max_memory: lots}", []string{"give a size such as"}},
		{"on_invalid", "execution: {on_invalid: ignore}", []string{"use one of: error, skip"}},
		{"seeds", "execution: {seeds: other}", []string{"use one of: derived, shared"}},
		{"replicates", "execution: {replicates: 0}", []string{"execution.replicates: 0 is not allowed; give 1 or more"}},
		{"list for text", "exclude: tp > 1", []string{"exclude: \"tp > 1\" is not allowed; give a list"}},

		{"empty axis", "grid: {timing.tp: []}", []string{"grid.timing.tp: an axis needs at least one value"}},
		{"scalar axis", "grid: {timing.tp: 1}", []string{"grid.timing.tp: 1 is not allowed; give a list of values, or a mapping with one of: range"}},
		{"unknown axis", "grid: {deployment.wrkers: [1]}", []string{"grid.deployment.wrkers: unknown key path; the nearest is deployment.workers"}},
		{"short axis", "grid: {workers: [1]}", []string{"grid.workers: unknown key path; the nearest is deployment.workers"}},
		{"case as axis", "grid: {case: [1]}", []string{"grid.case: unknown key path"}},
		{"hopeless axis", "grid: {xxxxxxxxxxxx: [1]}", []string{"unknown key path; write one such as"}},
		{"wrong element", "grid: {timing.tp: [1, two]}", []string{`grid.yaml:1:23: grid.timing.tp[1]: "two" is not allowed; give a whole number`}},
		{"value twice", "grid: {timing.tp: [1, 2, 1]}", []string{"grid.timing.tp[2]: 1 is not allowed; give every value once; it is already at index 0"}},
		{"axis twice", "grid: {timing.tp: [1]}\nzip: {timing.tp: [1]}", []string{"this axis is already given by"}},
		{"dotted and nested", "grid: {timing.tp: [1], timing: {tp: [2]}}", []string{"grid.timing.tp: this key path is written twice"}},
		{"section and key", "grid: {timing: [{tp: 1}, {tp: 2}], timing.tp: [3]}", []string{"timing.tp is already set by grid.timing"}},
		{"case and axis", "cases: {a: {timing.tp: 1}}\ngrid: {timing.tp: [3]}", []string{"timing.tp is already set by cases"}},
		{"section value", "grid: {timing: [3]}", []string{"give a mapping of keys of timing"}},
		{"section key", "grid: {timing: [{tq: 1}]}", []string{"unknown key path; the nearest is timing.tp"}},
		{"zip lengths", "zip: {timing.tp: [1, 2], timing.dp: [1]}", []string{"zip.timing.dp: it has 1 values and timing.tp has 2"}},
		{"no cases", "cases: {}", []string{"cases: give at least one case"}},
		{"unknown case path", "cases: {a: {engine.block: 1}}", []string{"cases.a.engine.block: unknown key path"}},
		{"unknown include path", "include: [{engine.block: 1}]", []string{"include[0].engine.block: unknown key path"}},
		{"unknown generator", "grid: {timing.tp: {rang: [1, 2, 1]}}", []string{"grid.timing.tp.rang: unknown key; the nearest is range"}},
		{"two generators", "grid: {timing.tp: {range: [1, 2, 1], powers: [1, 1, 1]}}", []string{"an axis has one of"}},
		{"no generator", "grid: {timing.tp: {round: true}}", []string{"grid.timing.tp: give one of: range"}},
		{"bad round", "grid: {timing.tp: {round: 1, range: [1, 2, 1]}}", []string{"grid.timing.tp.round: 1 is not allowed"}},
		{"generator arity", "grid: {timing.tp: {range: [1, 2]}}", []string{"give a list of numbers: [start, stop, step]"}},
		{"zero step", "grid: {timing.tp: {range: [1, 2, 0]}}", []string{"the step leads from start to stop"}},
		{"wrong step", "grid: {timing.tp: {range: [1, 2, -1]}}", []string{"the step leads from start to stop"}},
		{"huge range", "grid: {timing.tp: {range: [1, 1e18, 1]}}", []string{"it makes 1000000000000000000 values; an axis has at most 100000"}},
		{"count", "grid: {load.speedup: {linspace: [1, 2, 0]}}", []string{"the number of values is a whole number"}},
		{"logspace of zero", "grid: {load.speedup: {logspace: [0, 2, 3]}}", []string{"first and last are values above 0"}},
		{"powers", "grid: {load.speedup: {powers: [2, 3, 1]}}", []string{"whole numbers in rising order"}},
		{"powers too large", "grid: {load.speedup: {powers: [10, 300, 400]}}", []string{"value 9 is too large"}},
		{"fractions", "grid: {timing.tp: {linspace: [1, 2, 3]}}", []string{"1.5 is not allowed; give a whole number"}},
		{"distribution in grid", "grid: {timing.tp: {uniform: [1, 2]}}", []string{"it belongs below random, lhs or sobol"}},
		{"samples", "lhs: {samples: 0, space: {timing.tp: [1]}}", []string{"lhs.samples: 0 is not allowed"}},
		{"no space", "sobol: {samples: 1}", []string{"sobol.space: give at least one axis"}},
		{"interval", "random: {samples: 1, space: {timing.tp: {int: [2, 1]}}}", []string{"random.space.timing.tp.int: [2,1] is not allowed; low is below high"}},
		{"loguniform", "random: {samples: 1, space: {load.speedup: {loguniform: [0, 1]}}}", []string{"low is above 0"}},
		{"int bounds", "random: {samples: 1, space: {timing.tp: {int: [0.5, 1]}}}", []string{"low and high are whole numbers"}},
		{"empty choices", "random: {samples: 1, space: {timing.tp: {choices: []}}}", []string{"an axis needs at least one value"}},
		{"workload twice", "workload: [{preset: {name: chat}}, {preset: {name: chat}}]", []string{"workload[1]: ", "give every value once; it is already at index 0"}},
		{"workload names", "workload: [{name: a, preset: {name: chat}}, {name: a, preset: {name: chat, rate: 2}}]", []string{`workload[1].name: "a" is not allowed; the workload at index 0 has this name already`}},
		{"workload key", "workload: {preset: {nam: chat}}", []string{"workload.preset.nam: unknown key; the nearest is name"}},
		{"empty workloads", "workload: []", []string{"workload: an axis needs at least one value"}},

		{"unknown name", "exclude: [wrkers > 1]", []string{`exclude[0]: "wrkers > 1" is not allowed; column 1: unknown name wrkers; the nearest is workers`}},
		{"last part of several paths", "exclude: [policy == 'kv_router']", []string{"column 1: unknown name policy; use one of: "}},
		{"unknown path", "exclude: [tp > 0 && engine.block_sise > 1]", []string{"column 11: unknown name engine.block_sise; the nearest is engine.block_size"}},
		{"no condition", "exclude: [tp]", []string{"exclude[0]: \"tp\" is not allowed; expected bool"}},
		{"mismatch", "exclude: ['tp == \"a\"']", []string{"column 4: invalid operation"}},
		{"expression syntax", "derive: {x: \"1 +\"}", []string{`derive.x: "1 +" is not allowed; column 3: unexpected token EOF`}},
		{"cycle", "derive: {a: b + 1, b: a + 1}", []string{"it depends on itself: a -> b -> a"}},
		{"derived number", "derive: {a: 3}", []string{"derive.a: 3 is not allowed; give text"}},
		{"derived name", "derive: {a-b: \"1\"}", []string{"derive.a-b: a column name has letters"}},
		{"derived metric", "derive: {mean_ttft_ms: \"1\"}", []string{"the name is taken: mean_ttft_ms is a metric"}},
		{"derived fixed", "derive: {status: \"1\"}", []string{"the name is taken: status is a column of every result"}},
		{"derived axis", "grid: {timing.tp: [1]}\nderive: {tp: \"1\"}", []string{"the name is taken: tp is the column of the axis timing.tp"}},
		{"wall clock", "derive: {a: now()}", []string{"unknown name now"}},
		{"objective", "objectives: {maximize: [mean_tfft_ms]}", []string{"objectives.maximize[0]: \"mean_tfft_ms\" is not allowed; it is no metric or column; the nearest is mean_ttft_ms"}},
		{"objective twice", "objectives: {maximize: [mean_ttft_ms], minimize: [mean_ttft_ms]}", []string{"give every objective once"}},
		{"all at once", "engine: {block_size: a}\nrouter: 3\ngrid: {x: [1]}\nexclude: [yy]", []string{"engine.block_size", "router: 3", "grid.x", "exclude[0]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(tc.spec)})
			checkProblems(t, err, tc.want)
		})
	}
}

func checkProblems(t *testing.T, err error, want []string) {
	t.Helper()
	var problems gridspec.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v, want problems", err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got\n%v\nwant it to contain\n%s", err, w)
		}
	}
}

func TestFormatProblems(t *testing.T) {
	for _, tc := range []struct {
		format gridspec.Format
		spec   string
		want   string
	}{
		{gridspec.JSON, "", "grid:1:1: the file ends in the middle of a value"},
		{gridspec.JSON, "[1]", "grid:1:1: a spec is an object"},
		{gridspec.JSON, "{} {}", "grid:1:4: a spec is one document"},
		{gridspec.JSON, "{\"engine\":\n {\"block_size\": 1, \"block_size\": 2}}", "grid:2:20: engine.block_size: this key is already at grid:2:3"},
		{gridspec.JSON, "{\"engine\":\n {\"block_sise\": 1}}", "grid:2:3: engine.block_sise: unknown key; the nearest is block_size"},
		{gridspec.JSON, "{\"engine\": {\"block_size\": 1e999}}", "grid:1:27: engine.block_size: 1e999: the number is too large"},
		{gridspec.JSON, "{\"grid\": {\"timing.tp\": [1,\n true]}}", "grid:2:2: grid.timing.tp[1]: true is not allowed"},
		{gridspec.TOML, "[engine", "grid:1:"},
		{gridspec.TOML, "[engine]\nblock_size = 1\nblock_size = 2", "grid:3:1: engine.block_size: this key is already at grid:2:1"},
		{gridspec.TOML, "[engine]\n[load]\n[engine]", "grid:3:2: engine: this key is already at grid:1:2"},
		{gridspec.TOML, "[engine]\nblock_sise = 2", "grid:2:1: engine.block_sise: unknown key"},
		{gridspec.TOML, "[engine]\nblock_size = 2020-01-01", "grid:2:1: engine.block_size: \"2020-01-01\" is not allowed"},
		{gridspec.TOML, "[[workload]]\npreset = {name = 'chat'}\n[[workload]]\npreset = {nam = 'chat'}", "grid:4:11: workload[1].preset.nam: unknown key"},
	} {
		_, err := gridspec.Load(gridspec.Source{Path: "grid", Data: []byte(tc.spec), Format: tc.format})
		if tc.spec == "" {
			_, err = gridspec.Load(gridspec.Source{Path: "grid", Data: []byte{}, Format: tc.format})
		}
		checkProblems(t, err, []string{tc.want})
	}
}

func TestOverrideProblems(t *testing.T) {
	for _, tc := range []struct {
		env, set, want string
	}{
		{set: "engine.block_size", want: "--set engine.block_size: write key.path=value"},
		{set: "engine..x=1", want: "--set engine..x=1: the key path has an empty part"},
		{set: "engine.block_sise=1", want: "--set engine.block_sise=1: engine.block_sise: unknown key; the nearest is block_size"},
		{set: "engine.block_size=big", want: `--set engine.block_size=big: engine.block_size: "big" is not allowed`},
		{set: "engine.block_size.x=1", want: "engine.block_size: this is no mapping with keys of its own; set it whole"},
		{set: "grid.timing.dp=[1", want: "--set grid.timing.dp=[1: column"},
		{set: "grid.timing.dp=[1, x]", want: `grid.timing.dp[1]: "x" is not allowed`},
		{set: "timing.tp=4", want: "--set timing.tp=4: timing.tp: this is an axis, so its base value has no effect; set grid.timing.tp"},
		{env: "SERVEGRID_ENGINE__BLOCK_SISE=1", want: "SERVEGRID_ENGINE__BLOCK_SISE: engine.block_sise: unknown key"},
		{env: "SERVEGRID___X=1", want: "SERVEGRID___X: the key path has an empty part"},
		{env: "SERVEGRID_ENGINE_BLOCK_SIZE=1", want: "SERVEGRID_ENGINE_BLOCK_SIZE: this variable changes nothing; for engine.block_size write SERVEGRID_ENGINE__BLOCK_SIZE"},
		{env: "SERVEGRID_OUTPUT_DIR=x", want: "for output.dir write SERVEGRID_OUTPUT__DIR"},
		{env: "SERVEGRID_ENGINE__BLOCK_SIZE=x", want: `SERVEGRID_ENGINE__BLOCK_SIZE: engine.block_size: "x" is not allowed`},
	} {
		src := gridspec.Source{Path: "grid.yaml", Data: []byte(chat + "engine: {block_size: 64}\ngrid: {timing.tp: [1, 2]}")}
		if tc.set != "" {
			src.Set = []string{tc.set}
		}
		if tc.env != "" {
			src.Env = []string{tc.env}
		}
		_, err := gridspec.Load(src)
		checkProblems(t, err, []string{tc.want})
	}
}

func TestHostileSpecs(t *testing.T) {
	bomb := "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
	for c := 'b'; c < 'm'; c++ {
		prev := "*" + string(c-1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat(prev+",", 9) + prev + "]\n"
	}
	var deep strings.Builder
	for i := range 500 {
		deep.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for name, spec := range map[string]string{
		"brackets": strings.Repeat("[", 1<<20), "braces": strings.Repeat("{a: ", 1<<18), "dashes": strings.Repeat("- ", 1<<20),
		"questions": strings.Repeat("? ", 1<<20), "aliases": bomb, "blocks": deep.String(),
	} {
		for _, format := range []gridspec.Format{gridspec.YAML, gridspec.JSON, gridspec.TOML} {
			_, err := gridspec.Load(gridspec.Source{Data: []byte(spec), Format: format})
			if err == nil {
				t.Errorf("%s as %s: no error", name, format)
			} else if len(err.Error()) > 10_000 {
				t.Errorf("%s as %s: the error has %d bytes", name, format, len(err.Error()))
			}
		}
	}
	_, err := gridspec.Load(gridspec.Source{Data: make([]byte, 5<<20)})
	checkProblems(t, err, []string{"the file has 5242880 bytes; a spec has at most 4194304"})
}

func TestFileProblems(t *testing.T) {
	if _, err := gridspec.Load(gridspec.Source{Path: filepath.Join(t.TempDir(), "none.yaml")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := gridspec.Load(gridspec.Source{Path: "grid.txt", Data: []byte("name: a")}); err == nil || !strings.Contains(err.Error(), "ends in .yaml") {
		t.Errorf("got %v", err)
	}
	if _, err := gridspec.Load(gridspec.Source{Data: []byte("name: a"), Format: "ini"}); err == nil || !strings.Contains(err.Error(), "use yaml, toml or json") {
		t.Errorf("got %v", err)
	}
}
