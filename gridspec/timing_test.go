package gridspec_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// llama serves a model on a GPU.
const llama = chat + "timing: {gpu: h200_sxm, model: llama-3.1-8b}\n"

// TestTimingAxes checks the columns of axes of the timing section and that their values are canonical.
func TestTimingAxes(t *testing.T) {
	for _, tc := range []struct {
		axis, values, column string
		want                 []string
	}{
		{"timing.gpu", "[h200_sxm, B200, mi300]", "gpu", []string{"h200_sxm", "b200_sxm", "mi300x"}},
		{"timing.gpu", "[h200, h200_sxm, H200, h100]", "gpu", []string{"h200_sxm", "h100_sxm"}},
		{"timing.model", "[llama-3.1-8b, Qwen/Qwen3-32B]", "model", []string{"llama-3.1-8b", "qwen3-32b"}},
		{"timing.model", "[llama-3.1-8b, meta-llama/Llama-3.1-8B-Instruct]", "model", []string{"llama-3.1-8b"}},
		{"timing.dtype", "[bf16, fp8]", "dtype", []string{"bf16", "fp8"}},
		{"timing.dtype", "['', bf16, fp8]", "dtype", []string{"bf16", "fp8"}},
		{"timing.backend", "[vllm, sglang, trtllm]", "backend", []string{"vllm", "sglang", "trtllm"}},
		{"timing.backend_version", "[current, legacy, 0.24.0]", "backend_version", []string{"0.24.0", "0.19.0"}},
		{"timing.tp", "[1, 2, 4]", "tp", []string{"1", "2", "4"}},
		{"timing.ep", "[0, 1]", "ep", []string{"1"}},
		{"timing.mode", "[mocker, fused, serial-exact]", "timing_mode", []string{"mocker", "fused", "serial-exact"}},
		{"timing.corrections", "[true, false]", "corrections", []string{"true", "false"}},
		{"timing.source", "[auto, table, analytic]", "timing_source", []string{"table", "analytic"}},
		{"engine.num_gpu_blocks", "[null, 1000]", "num_gpu_blocks", []string{"*", "1000"}},
	} {
		name := tc.axis + ": " + tc.values
		ps := expand(t, load(t, llama+"grid: {"+name+"}"))
		got := column(t, ps, tc.column)
		if i := slices.Index(tc.want, "*"); i >= 0 && got[i] == fmt.Sprint(ps[i].Config.Engine.NumGPUBlocks) && len(got[i]) > 3 {
			got[i] = "*" // what fits
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// Data parallelism was measured for mixtures of experts.
	moe := expand(t, load(t, chat+"timing: {gpu: h200, model: gpt-oss-120b}\nzip: {timing.dp: [1, 4, 8], timing.ep: [1, 4, 8]}"))
	if diff := cmp.Diff([]string{"1", "4", "8"}, column(t, moe, "dp")); diff != "" {
		t.Error(diff)
	}
}

// TestCanonicalNamesInExpressions checks that expressions and derived values see the resolved configuration.
func TestCanonicalNamesInExpressions(t *testing.T) {
	s := load(t, chat+`
timing: {model: meta-llama/Llama-3.1-8B-Instruct}
grid: {timing.gpu: [H200, b200, mi300x], timing.tp: [1, 2]}
exclude: ["timing.gpu == 'h200_sxm' && timing.tp == 1", "engine.num_gpu_blocks > 30000"]
derive: {million_kv_tokens: "engine.num_gpu_blocks * engine.block_size / 1e6", priced_by: "timing.source + ' ' + timing.dtype"}
`)
	ps := expand(t, s)
	for _, p := range ps {
		if p.Config.Timing.GPU == "h200_sxm" && p.Config.Timing.TP == 1 || p.Config.Engine.NumGPUBlocks > 30000 || p.Config.Engine.NumGPUBlocks < 1000 {
			t.Errorf("%s with TP %d and %d blocks is there", p.Config.Timing.GPU, p.Config.Timing.TP, p.Config.Engine.NumGPUBlocks)
		}
	}
	if got := column(t, ps, "priced_by"); !slices.Contains(got, "table bf16") {
		t.Errorf("sources %v", got)
	}
	if n := len(ps); n == 0 || n >= 5 {
		t.Errorf("%d points; the pool's size excludes some of 5", n)
	}
}

// TestDerivedPool checks which points have as many KV blocks as fit.
func TestDerivedPool(t *testing.T) {
	for _, tc := range []struct {
		spec   string
		blocks func(int) bool
	}{
		{"", func(n int) bool { return n == 16384 }},
		{"timing: {gpu: h200, model: llama-3.1-8b}", func(n int) bool { return n > 10000 && n != 16384 }},
		{"timing: {gpu: h200, model: llama-3.1-8b}\nengine: {num_gpu_blocks: 77}", func(n int) bool { return n == 77 }},
		{"timing: {gpu: h200, model: llama-3.1-8b}\ncompat: dynamo-1.2", func(n int) bool { return n == 16384 }},
		{"timing: {gpu: h200, model: llama-3.1-8b}\ncompat: dynamo-1.3", func(n int) bool { return n > 10000 && n != 16384 }},
		{"timing: {source: fixed, decode_ms: 1}", func(n int) bool { return n == 16384 }},
	} {
		if n := expand(t, load(t, chat+tc.spec))[0].Config.Engine.NumGPUBlocks; !tc.blocks(n) {
			t.Errorf("%q has %d blocks", tc.spec, n)
		}
	}
	blocks := func(spec string) int {
		return expand(t, load(t, llama+spec))[0].Config.Engine.NumGPUBlocks
	}
	if half, all := blocks("engine: {block_size: 128}"), blocks(""); half != all/2 {
		t.Errorf("%d blocks of 64 tokens and %d of 128", all, half)
	}
	if less, all := blocks("engine: {gpu_memory_utilization: 0.5}"), blocks(""); less >= all {
		t.Errorf("%d blocks in half of the memory, %d in most of it", less, all)
	}
}

// TestModelsThatDoNotFit checks that the arithmetic is shown, and that such points are skipped when the spec says so.
func TestModelsThatDoNotFit(t *testing.T) {
	text := chat + "timing: {model: llama-3.1-70b, dtype: bf16}\ngrid:\n  timing.gpu: [h100_sxm]\n  timing.tp: [1, 4]\n"
	_, err := load(t, text).Expand(gridspec.ExpandOptions{})
	checkProblems(t, err, []string{"timing.model: llama-3.1-70b is not allowed; "})
	for _, part := range []string{"weights", "GiB", "(at gpu=h100_sxm, tp=1)"} {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
	ps := expand(t, load(t, text+"execution: {on_invalid: skip}"))
	if len(ps) != 2 || ps[0].SkipReason != gridspec.SkipInvalid || !strings.Contains(ps[0].SkipMessage, "weights") || ps[1].SkipReason != "" {
		t.Errorf("points %+v", ps)
	}
}

// TestTimingProblems checks where problems with the timing model are reported.
func TestTimingProblems(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bad.csv"), []byte("phase,new_tokens,ms\nprefill,x,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, spec, want string }{
		{"base", "timing: {gpu: h2000, model: llama-3.1-8b}", `grid.yaml:2:10: timing.gpu: h2000 is not allowed; `},
		{"axis", "timing: {gpu: h200}\ngrid: {timing.model: [llama-3.1-8b, lama]}", "grid.yaml:3:8: timing.model: lama is not allowed; "},
		{"case", "timing: {gpu: h200, model: llama-3.1-8b}\ncases: {a: {}, b: {timing.tp: 3}}", "grid.yaml:3:20: timing.tp: 3 is not allowed; llama-3.1-8b bf16 was measured on h200_sxm"},
		{"no model", "timing: {gpu: h200}", "timing.model: source table needs a model"},
		{"missing profile", "timing: {profile: gone.npz}", "grid.yaml:2:10: timing.profile: " + filepath.Join(dir, "gone.npz") + " is not allowed; "},
		{"damaged profile", "timing: {profile: bad.csv}", "grid.yaml:2:10: timing.profile: " + filepath.Join(dir, "bad.csv") + " is not allowed; "},
		{"missing tables", "timing: {gpu: h200, model: llama-3.1-8b, tables: gone}", "timing.tables: " + filepath.Join(dir, "gone") + " is not allowed; "},
		{"missing config.json", "timing: {gpu: h200, model: gone.json}", "timing.model: " + filepath.Join(dir, "gone.json") + " is not allowed; "},
		{"what the source does not know", "timing: {source: fixed, decode_ms: 1, dtype: fp8}", "timing.dtype: fp8 is not allowed; only source table, analytic, profile takes it"},
		{"share of another backend", "timing: {gpu: h200, model: llama-3.1-8b}\nengine: {mem_fraction_static: 0.8}", "engine.mem_fraction_static: 0.8 is not allowed; only backend sglang takes it"},
	} {
		s, err := gridspec.Load(gridspec.Source{Path: filepath.Join(dir, "grid.yaml"), Data: []byte(chat + tc.spec)})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		_, err = s.Expand(gridspec.ExpandOptions{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: %v\nwant one problem with %s", tc.name, err, tc.want)
		}
	}
}

const profileCSV = "phase,new_tokens,batch,context,ms\nprefill,100,,,10\nprefill,1000,,,50\ndecode,,1,100,2\ndecode,,9,1000,6\ndecode,,1,1000,3\ndecode,,9,100,4\n"

const modelJSON = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": 4096,
"intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256}`

// measuredFolder is a folder with a profile, a model and tables that a spec names by relative paths.
func measuredFolder(t testing.TB, profile string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "tables", "l40s"), os.DirFS("../simcore/perfmodel/tables/data/l40s")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"p.csv": profile, "config.json": modelJSON} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// measured uses every kind of file that says how long passes take.
const measured = chat + `
cases:
  base: {timing: {profile: p.csv}}
  tables: {timing: {gpu: l40s, model: llama-3.1-8b, tables: tables}}
include:
  - {timing: {gpu: h200, model: config.json}}
  - {timing.gpu: h100, timing.model: ./config.json}
`

func loadIn(t testing.TB, dir, text string) *gridspec.Spec {
	t.Helper()
	s, err := gridspec.Load(gridspec.Source{Path: filepath.Join(dir, "grid.yaml"), Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func contentIDs(ps []gridspec.Point) []string {
	var ids []string
	for _, p := range ps {
		ids = append(ids, p.ContentID("digest"))
	}
	return ids
}

// TestTimingFilesStartAtTheSpec checks relative paths, and that they keep their meaning in a resolved spec.
func TestTimingFilesStartAtTheSpec(t *testing.T) {
	dir := measuredFolder(t, profileCSV)
	s := loadIn(t, dir, measured)
	ps := expand(t, s)
	var files, want []string
	for i := range ps {
		for _, path := range ps[i].Config.Timing.Files() {
			if *path != "" {
				files = append(files, *path)
			}
		}
	}
	for _, name := range []string{"p.csv", "tables", "config.json", "config.json"} {
		want = append(want, filepath.Join(dir, name))
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	runs := filepath.Join(dir, "runs", "a")
	text, err := s.Resolved(runs)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../../p.csv", "../../tables", "../../config.json"} {
		if !strings.Contains(string(text), path) {
			t.Errorf("%s is not in the resolved spec:\n%s", path, text)
		}
	}
	again := expand(t, loadIn(t, runs, string(text)))
	if diff := cmp.Diff(contentIDs(ps), contentIDs(again)); diff != "" {
		t.Errorf("the resolved spec has other points:\n%s", diff)
	}
}

// TestFileAxisKeepsItsValues checks that an axis of files shows them as the spec writes them.
func TestFileAxisKeepsItsValues(t *testing.T) {
	dir := measuredFolder(t, profileCSV)
	if err := os.WriteFile(filepath.Join(dir, "q.csv"), []byte(profileCSV+"prefill,4000,,,300\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ps := expand(t, loadIn(t, dir, chat+"grid: {timing.profile: [p.csv, q.csv]}"))
	if diff := cmp.Diff([]string{"p.csv", "q.csv"}, column(t, ps, "profile")); diff != "" {
		t.Error(diff)
	}
	ps = expand(t, loadIn(t, dir, chat+"timing: {gpu: h200}\ngrid: {timing.model: [config.json, meta-llama/Llama-3.1-8B]}"))
	if diff := cmp.Diff([]string{"config.json", "llama-3.1-8b"}, column(t, ps, "model")); diff != "" {
		t.Error(diff)
	}
}

// TestContentIDFollowsFiles checks that the same files elsewhere give the same points, and other content others.
func TestContentIDFollowsFiles(t *testing.T) {
	here := contentIDs(expand(t, loadIn(t, measuredFolder(t, profileCSV), measured)))
	there := contentIDs(expand(t, loadIn(t, measuredFolder(t, profileCSV), measured)))
	if diff := cmp.Diff(here, there); diff != "" {
		t.Errorf("the same files in another folder:\n%s", diff)
	}
	changed := contentIDs(expand(t, loadIn(t, measuredFolder(t, strings.Replace(profileCSV, ",50", ",60", 1)), measured)))
	if changed[0] == here[0] {
		t.Error("another profile gives the same ID")
	}
	if diff := cmp.Diff(here[1:], changed[1:]); diff != "" {
		t.Errorf("points without the profile:\n%s", diff)
	}
}

func TestPrices(t *testing.T) {
	point := func(spec string) metrics.GPUPrice { return expand(t, load(t, chat+spec))[0].GPUPrice }
	list := point("timing: {gpu: h200, model: llama-3.1-8b}")
	if !(list.USDPerHour > 0 && list.TDPWatts == 700) {
		t.Errorf("an H200 costs and draws %+v", list)
	}
	for _, tc := range []struct {
		spec string
		want metrics.GPUPrice
	}{
		{"timing: {gpu: h200, model: llama-3.1-8b}\nprices: {h200_sxm: 1.25}", metrics.GPUPrice{USDPerHour: 1.25, TDPWatts: list.TDPWatts}},
		{"timing: {gpu: h200, model: llama-3.1-8b}\nprices: {H200: 2}", metrics.GPUPrice{USDPerHour: 2, TDPWatts: list.TDPWatts}},
		{"timing: {gpu: h200, model: llama-3.1-8b}\nprices: {b200: 2}", list},
		{"timing: {source: fixed, decode_ms: 3, gpu: h200}", list},
		{"", metrics.GPUPrice{}},
	} {
		if got := point(tc.spec); got != tc.want {
			t.Errorf("%q: %+v, want %+v", tc.spec, got, tc.want)
		}
	}
	dir := measuredFolder(t, profileCSV)
	renameSystem(t, filepath.Join(dir, "tables"), "l40s", "homemade")
	own := chat + "timing: {gpu: homemade, model: llama-3.1-8b, tables: tables}\n"
	for prices, want := range map[string]metrics.GPUPrice{"prices: {homemade: 0.5}": {USDPerHour: .5}, "prices: {h200: 1}": {}} {
		if got := expand(t, loadIn(t, dir, own+prices))[0].GPUPrice; got != want {
			t.Errorf("a GPU that only the user's tables know, %s: %+v, want %+v", prices, got, want)
		}
	}
}

// renameSystem gives the tables of a GPU another name.
func renameSystem(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, to, "configs.csv.gz")
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(bytes.ReplaceAll(text, []byte(","+from+","), []byte(","+to+","))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPriceProblems(t *testing.T) {
	_, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(chat + `
prices:
  h200: 3
  h200_sxm: 4
  b200: -1
  h2000_sxm: 5
  gb200: cheap
`)})
	checkProblems(t, err, []string{
		"grid.yaml:5:3: prices.h200_sxm: this is the same GPU as h200, which has a price too",
		"grid.yaml:6:3: prices.b200: -1 is not allowed; give USD per GPU-hour, above 0",
		"grid.yaml:7:3: prices.h2000_sxm: ",
		`grid.yaml:8:3: prices.gb200: "cheap" is not allowed; give a finite number`,
	})
	if !strings.Contains(fmt.Sprint(err), "h200_sxm") {
		t.Errorf("the nearest GPU is not named: %v", err)
	}
}

// TestCostObjectives checks that costs can be objectives and constraints of a spec.
func TestCostObjectives(t *testing.T) {
	s := load(t, llama+"objectives: {maximize: [mean_output_token_throughput_per_user], minimize: [cost_usd_per_mtok_output, max_energy_j_per_output_token]}")
	if diff := cmp.Diff([]string{"cost_usd_per_mtok_output", "max_energy_j_per_output_token"}, s.Objectives.Minimize); diff != "" {
		t.Error(diff)
	}
	_, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(llama + "objectives: {minimize: [cost_usd_per_mtok]}")})
	checkProblems(t, err, []string{`objectives.minimize[0]: "cost_usd_per_mtok" is not allowed; it is no metric or column; the nearest is cost_usd_per_`})
}

// BenchmarkExpandGPUs expands a sweep over GPUs, models and their parallelism.
func BenchmarkExpandGPUs(b *testing.B) {
	s := load(b, chat+"grid: {timing.gpu: [h100, h200, b200, mi300x], timing.model: [llama-3.1-8b, qwen3-32b], timing.tp: [1, 2, 4, 8], deployment.workers: {range: [1, 16, 1]}}\nexecution: {on_invalid: skip}")
	b.ReportAllocs()
	for b.Loop() {
		if n := len(expand(b, s)); n != 512 {
			b.Fatal(n)
		}
	}
}
