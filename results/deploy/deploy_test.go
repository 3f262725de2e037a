package deploy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results/deploy"
)

var update = flag.Bool("update", false, "rewrite the files below testdata")

// cases are points that together use every setting with a counterpart and most without.
var cases = []struct{ name, spec string }{
	{"vllm", `
timing: {gpu: h200_sxm, model: llama-3.1-70b, dtype: fp8, tp: 2}
deployment: {workers: 4}
engine: {max_num_seqs: 128, block_size: 32}
router: {policy: kv_router, overlap_score_credit: 0.8, router_temperature: 0.5, router_queue_threshold: null, router_queue_policy: wspt, router_assume_kv_reuse: false}`},
	{"vllm-online", `
timing: {source: analytic, gpu: h100_sxm, model: llama-3.1-8b, dtype: fp8_block, kv_cache_dtype: bfloat16}
engine: {num_gpu_blocks: 2000, enable_prefix_caching: false, enable_chunked_prefill: false, preemption_mode: fifo, max_num_batched_tokens: null, num_speculative_tokens: 2, block_size: 24}`},
	{"vllm-experts", `
timing: {gpu: h200_sxm, model: deepseek-v3, tp: 1, dp: 16, ep: 16}
engine: {num_speculative_tokens: 1, acceptance_rates: "0.8", startup_time: 400, max_num_seqs: 256}
planner: {policy: dynamo, optimization_target: sla, enable_load_scaling: true, ttft_ms: 300, load_predictor: kalman, max_gpu_budget: 64}`},
	{"vllm-split", `
timing: {gpu: h200_sxm, model: qwen3-32b}
deployment: {mode: disaggregated, prefill_workers: 2, decode_workers: 3}
prefill: {timing: {tp: 2}, engine: {max_num_batched_tokens: 16384}}
decode: {timing: {tp: 1}, engine: {max_num_seqs: 64}}
engine: {kv_transfer_bandwidth: 25}
router: {policy: kv_router, router_prefill_load_model: aic}
tiers: {num_g2_blocks: 4096, num_g3_blocks: 8192}
planner: {policy: dynamo, optimization_target: load, prefill_scale_up_queue_tokens: 9000, prefill_scale_down_queue_tokens: 100, decode_scale_up_kv_rate: 80, decode_scale_down_kv_rate: 20, scale_interval_seconds: 2.5}`},
	{"sglang", `
engine: {type: sglang, max_num_seqs: 64, mem_fraction_static: 0.85, num_speculative_tokens: 2, sglang: {schedule_policy: lpm, page_size: 16, chunked_prefill_size: 4096, max_prefill_tokens: 8192, clip_max_new_tokens: 2048, schedule_conservativeness: 0.3}}
timing: {gpu: h200_sxm, model: deepseek-v3, tp: 4, dp: 2, ep: 8}
tiers: {num_g2_blocks: 100000, num_g3_blocks: 10, offload_policy: on_complete, onboard_policy: always}
deployment: {workers: 2}
router: {policy: session_affinity}`},
	{"sglang-split", `
engine: {type: sglang, num_gpu_blocks: 50000, enable_prefix_caching: false}
timing: {gpu: mi300x, model: llama-3.1-70b, tp: 2}
deployment: {mode: disaggregated}
router: {policy: prefix_affinity}
planner: {policy: target_tracking}`},
	{"trtllm", `
engine: {type: trtllm, free_gpu_memory_fraction: 0.8, max_num_seqs: 512}
timing: {gpu: b200_sxm, model: deepseek-v3, dp: 8, ep: 8}
router: {policy: kv_router, overlap_score_weight: 0}
tiers: {num_g2_blocks: 1000}`},
	{"trtllm-split", `
engine: {type: trtllm, enable_chunked_prefill: false}
timing: {gpu: h200_sxm, model: llama-3.1-8b, dtype: fp8}
deployment: {mode: disaggregated, prefill_workers: 1, decode_workers: 2}`},
	{"unknown", `
compat: dynamo-1.3
timing: {source: fixed, prefill_ms: 20, decode_ms: 10}
engine: {speedup_ratio: 2, max_num_seqs: null}
deployment: {workers: 3}
router: {policy: power_of_two}`},
}

// point returns the only point of a spec.
func point(t testing.TB, spec string) gridspec.Point {
	t.Helper()
	s, err := gridspec.Load(gridspec.Source{Data: []byte("workload: {preset: {name: chat, requests: 50}}\n" + spec)})
	if err != nil {
		t.Fatal(err)
	}
	points, err := s.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, spec)
	}
	return points[0]
}

func files(t testing.TB, p gridspec.Point, name string) []deploy.File {
	t.Helper()
	out, err := deploy.Files(deploy.Plan{Config: p.Config, Workload: p.Workload, Name: name, GPUPrice: p.GPUPrice})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every file of every case is as reviewed.
func TestFiles(t *testing.T) {
	for _, tc := range cases {
		var got bytes.Buffer
		for _, f := range files(t, point(t, tc.spec), tc.name) {
			fmt.Fprintf(&got, "-- %s --\n%s", f.Name, f.Content)
		}
		path := filepath.Join("testdata", tc.name+".txt")
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-update rewrites it):\n%s", path, diff)
		}
	}
}

// The spec among the files simulates the point and no other.
func TestSpecFile(t *testing.T) {
	for _, tc := range cases {
		p := point(t, tc.spec)
		for _, f := range files(t, p, tc.name) {
			if f.Name != deploy.SpecFile {
				continue
			}
			s, err := gridspec.Load(gridspec.Source{Data: f.Content})
			if err != nil {
				t.Fatalf("%s: %v\n%s", tc.name, err, f.Content)
			}
			points, err := s.Expand(gridspec.ExpandOptions{})
			if err != nil || len(points) != 1 {
				t.Fatalf("%s: %d points, %v", tc.name, len(points), err)
			}
			if points[0].ContentID("w") != p.ContentID("w") {
				t.Errorf("%s: another point:\n%s", tc.name, f.Content)
			}
		}
	}
}

// Every flag and option of a server is one that its releases declare, with a value that they take; so is every field of a graph.
func TestDeclared(t *testing.T) {
	declared := readFlags(t)
	for _, tc := range cases {
		checkDeclared(t, declared, tc.name, files(t, point(t, tc.spec), tc.name))
	}
	examples, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range examples {
		s, err := gridspec.Load(gridspec.Source{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		points, err := s.Expand(gridspec.ExpandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(points); i += 1 + len(points)/2 {
			made := files(t, points[i], path) // the graph has what the scripts have
			checkDeclared(t, declared, path, slices.DeleteFunc(made, func(f deploy.File) bool { return f.Name != deploy.GraphFile }))
		}
	}
}

func checkDeclared(t *testing.T, declared map[string]map[string]declaration, name string, made []deploy.File) {
	t.Helper()
	for _, f := range made {
		switch backend, _, _ := strings.Cut(strings.TrimSuffix(f.Name, filepath.Ext(f.Name)), "-"); {
		case f.Name == deploy.GraphFile:
			checkGraph(t, declared, name, f.Content)
		case filepath.Ext(f.Name) == ".sh" && backend != "trtllm":
			words := scriptWords(t, f)
			words = words[len(command(backend)):]
			if backend == "vllm" { // the model comes first
				words = words[1:]
			}
			for _, release := range releases(declared, backend) {
				checkFlags(t, name+" "+release, words, declared[release])
			}
		case filepath.Ext(f.Name) == ".sh":
			if words := scriptWords(t, f); len(words) != 4 || words[2] != "--extra_llm_api_options" {
				t.Errorf("%s: trtllm-serve has one model and one file: %q", name, words)
			}
		case filepath.Ext(f.Name) == ".yaml" && backend == "trtllm":
			checkOptions(t, name, "", mapping(t, f.Content))
		}
	}
}

// scriptWords runs a script with programs that print their arguments instead.
func scriptWords(t *testing.T, f deploy.File) []string {
	t.Helper()
	if !f.Executable {
		t.Errorf("%s is not executable", f.Name)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here to run the scripts")
	}
	dir := t.TempDir()
	for _, program := range []string{"vllm", "python3", "trtllm-serve"} {
		text := "#!" + bash + "\nprintf '%s\\n' " + program + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, program), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, f.Name)
	if err := os.WriteFile(path, f.Content, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, path)
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", f.Name, err, out, f.Content)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// command is what starts a server.
func command(backend string) []string {
	if backend == "vllm" {
		return []string{"vllm", "serve"}
	}
	return []string{"python3", "-m", "sglang.launch_server"}
}

func mapping(t *testing.T, text []byte) map[string]any {
	t.Helper()
	m, err := gridspec.ReadMapping("file", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

// Names and values of users cannot break out of the files.
func TestHostileNames(t *testing.T) {
	p := point(t, cases[0].spec)
	p.Config.Timing.Model = ""
	for _, name := range []string{"", "x\n- y: z", "a'b\"c$(touch x)`y`\\", "Ünïcödé", "123", strings.Repeat("long-", 40), "yes", "#"} {
		plan := deploy.Plan{Config: p.Config, Workload: p.Workload, Name: name, Checkpoint: "it's $HOME\" #1"}
		made, err := deploy.Files(plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range made {
			switch filepath.Ext(f.Name) {
			case ".yaml":
				tree := mapping(t, f.Content)
				if f.Name == deploy.GraphFile {
					checkName(t, tree["metadata"].(map[string]any)["name"].(string))
				}
			case ".sh":
				if words := scriptWords(t, f); words[2] != plan.Checkpoint {
					t.Errorf("%q serves %q", name, words[2])
				}
			}
		}
	}
}

// checkName checks that Kubernetes takes a name, with room for what Dynamo appends.
func checkName(t *testing.T, name string) {
	t.Helper()
	if len(name) == 0 || len(name) > 30 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(name, "-") != name || name[0] < 'a' {
		t.Errorf("%q is no name for Kubernetes", name)
	}
}

// A configuration that no server takes is an error, not a panic.
func TestNoServer(t *testing.T) {
	p := point(t, cases[3].spec)
	p.Config.Decode.Engine.Type = "sglang"
	if _, err := deploy.Files(deploy.Plan{Config: p.Config, Workload: p.Workload}); err == nil || !strings.Contains(err.Error(), "decode.engine.type") {
		t.Errorf("two engines: %v", err)
	}
	half := gridspec.Config{}
	half.Engine.Type = "sglang"
	if _, err := deploy.Files(deploy.Plan{Config: half}); err != nil {
		t.Errorf("next to nothing: %v", err)
	}
	if _, err := deploy.Files(deploy.Plan{}); err == nil || !strings.Contains(err.Error(), "engine.type") {
		t.Errorf("nothing: %v", err)
	}
}

// readFlags reads what tools/deployflags.py found in the engines' releases.
func readFlags(t *testing.T) map[string]map[string]declaration {
	t.Helper()
	text, err := os.ReadFile("testdata/flags.json")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]declaration{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
