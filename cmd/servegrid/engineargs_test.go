package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// movedArgs moves the engine arguments of a JSON object and returns the spec's engine and timing sections.
func movedArgs(t *testing.T, args, timing, compat string) (engine, moved map[string]any, err error) {
	t.Helper()
	engine, err = jsonSection("--extra-engine-args", args)
	if err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{}
	if timing != "" {
		if spec["timing"], err = jsonSection("--timing", timing); err != nil {
			t.Fatal(err)
		}
	}
	if compat != "" {
		spec["compat"] = compat
	}
	_, err = moveEngineArgs("--extra-engine-args", roleAggregated, engine, spec)
	moved, _ = spec["timing"].(map[string]any)
	return engine, moved, err
}

// TestEngineArgsOfTheReference checks where each aic_* argument goes.
func TestEngineArgsOfTheReference(t *testing.T) {
	const llama = `"aic_backend": "vllm", "aic_model_path": "llama-3.1-8b"`
	const asked = `"source": "table", "backend": "vllm", "gpu": "h200_sxm", "model": "llama-3.1-8b"`
	for _, test := range []struct{ name, args, timing, compat, wantEngine, wantTiming string }{
		{"nothing", `{"block_size": 32}`, "", "", `{"block_size": 32}`, `null`},
		{"the least", `{` + llama + `}`, "", "", `{}`, `{` + asked + `}`},
		{"null is not given", `{` + llama + `, "aic_system": null, "aic_backend_version": null, "aic_tp_size": null, "aic_moe_tp_size": null, "aic_gemm_dtype": null}`, "", "", `{}`, `{` + asked + `}`},
		{"everything", `{"aic_backend": "sglang", "aic_system": "b200_sxm", "aic_model_path": "Qwen/Qwen3-30B-A3B", "aic_backend_version": "0.5.14",
			"aic_tp_size": 4, "aic_attention_dp_size": 2, "aic_moe_tp_size": 2, "aic_moe_ep_size": 4, "block_size": 16,
			"aic_gemm_dtype": "fp8", "aic_moe_dtype": "int4", "aic_fmha_dtype": "bfloat16", "aic_kv_cache_dtype": "fp8", "aic_comm_dtype": "half"}`, "", "",
			`{"block_size": 16}`, `{"source": "table", "backend": "sglang", "gpu": "b200_sxm", "model": "Qwen/Qwen3-30B-A3B", "backend_version": "0.5.14",
			"tp": 4, "dp": 2, "ep": 4, "gemm_dtype": "fp8", "moe_dtype": "int4_wo", "fmha_dtype": "bfloat16", "kv_cache_dtype": "fp8"}`},
		{"dtypes left open", `{` + llama + `, "aic_gemm_dtype": "auto", "aic_moe_dtype": "none", "aic_fmha_dtype": "", "aic_comm_dtype": "auto"}`, "", "", `{}`, `{` + asked + `}`},
		{"sizes of the experts make up the worker", `{` + llama + `, "aic_tp_size": 8, "aic_moe_tp_size": 2}`, "", "", `{}`, `{` + asked + `, "tp": 8, "ep": 4}`},
		{"with ranks", `{` + llama + `, "aic_tp_size": 2, "aic_attention_dp_size": 4, "aic_moe_tp_size": 1}`, "", "", `{}`, `{` + asked + `, "tp": 2, "dp": 4, "ep": 8}`},
		{"one of them", `{` + llama + `, "aic_tp_size": 2, "aic_moe_ep_size": 2}`, "", "", `{}`, `{` + asked + `, "tp": 2, "ep": 2}`},
		{"GPUs count without tables", `{"aic_tp_size": 4, "aic_attention_dp_size": 2}`, "", "", `{}`, `{"tp": 4, "dp": 2}`},
		{"the rest is ignored without tables", `{"aic_tp_size": 4, "aic_moe_ep_size": 4, "aic_gemm_dtype": "fp8", "aic_comm_dtype": "fp8"}`, "", "", `{}`, `{"tp": 4}`},
		{"a model without a backend changes nothing in the reference", `{"aic_system": "h200_sxm", "aic_model_path": "x", "aic_backend_version": "1"}`, "", "dynamo-1.2", `{}`, `null`},
		{"a profile", `{"planner_profile_data": "p.npz"}`, "", "", `{}`, `{"profile": "p.npz"}`},
		{"shares of a memory that is not known", `{"gpu_memory_utilization": 0.8, "mem_fraction_static": 0.8, "free_gpu_memory_fraction": 0.8}`, "", "", `{}`, `null`},
		{"shares of the memory", `{` + llama + `, "gpu_memory_utilization": 0.8}`, "", "", `{"gpu_memory_utilization": 0.8}`, `{` + asked + `}`},
		{"shares of the memory of --timing", `{"gpu_memory_utilization": 0.8}`, `{"gpu": "h200", "model": "qwen3-8b"}`, "", `{"gpu_memory_utilization": 0.8}`, `{"gpu": "h200", "model": "qwen3-8b"}`},
		{"the GPU of --timing", `{` + llama + `}`, `{"gpu": "b200"}`, "", `{}`, `{"source": "table", "backend": "vllm", "gpu": "b200", "model": "llama-3.1-8b"}`},
		{"experts beside the GPUs of --timing", `{"aic_backend": "vllm", "aic_model_path": "m", "aic_moe_tp_size": 2}`, `{"tp": 8}`, "", `{}`, `{"source": "table", "backend": "vllm", "gpu": "h200_sxm", "model": "m", "tp": 8, "ep": 4}`},
		{"beside --timing", `{` + llama + `, "aic_tp_size": 2}`, `{"mode": "fused", "tp": 2}`, "", `{}`, `{` + asked + `, "mode": "fused", "tp": 2}`},
	} {
		engine, timing, err := movedArgs(t, test.args, test.timing, test.compat)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var wantEngine, wantTiming map[string]any
		for text, into := range map[string]*map[string]any{test.wantEngine: &wantEngine, test.wantTiming: &wantTiming} {
			decoder := json.NewDecoder(strings.NewReader(text))
			decoder.UseNumber()
			if err := decoder.Decode(into); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(wantEngine, engine); diff != "" {
			t.Errorf("%s: engine (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(wantTiming, timing); diff != "" {
			t.Errorf("%s: timing (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestEngineArgsThatContradict(t *testing.T) {
	const llama = `"aic_backend": "vllm", "aic_model_path": "llama-3.1-8b"`
	for _, test := range []struct{ name, args, timing, compat, want string }{
		{"no model", `{"aic_backend": "vllm"}`, "", "", "aic_backend needs aic_model_path"},
		{"no model under a rule set of the reference", `{"aic_backend": "vllm"}`, "", "dynamo-1.2", "aic_backend needs aic_model_path"},
		{"no backend", `{"aic_system": "h200", "aic_model_path": "x"}`, "", "",
			"aic_model_path is x and aic_backend is missing, so it would change nothing; give both or none|aic_system is h200 and aic_backend is missing"},
		{"two sources", `{` + llama + `, "planner_profile_data": "p.npz"}`, "", "", "aic_backend and planner_profile_data both say how long a pass takes; give one"},
		{"another source", `{` + llama + `}`, `{"source": "analytic"}`, "", "aic_backend is table and --timing says source analytic; give one"},
		{"another GPU", `{` + llama + `, "aic_system": "h200_sxm"}`, `{"gpu": "b200_sxm"}`, "", "aic_system is h200_sxm and --timing says gpu b200_sxm; give one"},
		{"another size", `{"aic_tp_size": 2}`, `{"tp": 4}`, "", "aic_tp_size is 2 and --timing says tp 4; give one"},
		{"sizes that do not divide", `{` + llama + `, "aic_tp_size": 4, "aic_moe_tp_size": 3}`, "", "", "aic_moe_tp_size is 3, which does not divide the 4 GPUs of a worker"},
		{"sizes that do not multiply", `{` + llama + `, "aic_tp_size": 4, "aic_moe_tp_size": 2, "aic_moe_ep_size": 4}`, "", "", "aic_moe_tp_size times aic_moe_ep_size must be the 4 GPUs of a worker"},
		{"no size", `{` + llama + `, "aic_moe_tp_size": 0}`, "", "", "aic_moe_tp_size is 0; aic_moe_tp_size, aic_tp_size and aic_attention_dp_size are whole numbers of 1 or more"},
		{"half a size", `{` + llama + `, "aic_tp_size": 1.5, "aic_moe_tp_size": 1}`, "", "", "are whole numbers of 1 or more"},
		{"communication", `{` + llama + `, "aic_comm_dtype": "fp8"}`, "", "", "aic_comm_dtype is fp8; the tables have communication in half precision only"},
		{"roles", `{"dp_size": 2, "is_prefill": true}`, "", "", "dp_size is 2; a replay has one rank|worker_type is prefill; the workers of --extra-engine-args are aggregated"},
	} {
		_, _, err := movedArgs(t, test.args, test.timing, test.compat)
		want := strings.Split(test.want, "|")
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		if len(lines) != len(want) {
			t.Errorf("%s: %d problems, want %d: %v", test.name, len(lines), len(want), err)
			continue
		}
		for i, part := range want {
			if !strings.HasPrefix(lines[i], "--extra-engine-args: ") || !strings.Contains(lines[i], part) {
				t.Errorf("%s: problem %q, want %q", test.name, lines[i], part)
			}
		}
	}
}

// TestReplayOnAGPU checks what a replay with tables, or without, says of its timing and cost.
func TestReplayOnAGPU(t *testing.T) {
	work := []string{"replay", "--input-tokens", "300", "--output-tokens", "20", "--request-count", "8"}
	for _, test := range []struct {
		name         string
		args         []string
		stdout       []string // parts of what is printed
		absent       []string
		keys         map[string]any // values of the report; nil is any value that is there
		missing      []string
		wantCostInTo [2]float64 // bounds of cost_usd_per_gpu / gpu_hours
	}{
		{"tables", []string{"--timing", `{"gpu": "h200", "model": "llama-3.1-8b"}`},
			[]string{"Timing: table, vllm 0.24.0 on h200_sxm (", " % (decode) of aiconfigurator-core; ", " KV blocks a worker\n", "Cost: ", " USD per million output tokens\n"},
			[]string{"Warning"},
			map[string]any{"timing_source": "table", "timing_mode": "mocker", "timing_data": nil, "timing_digest": nil, "timing_prefill_error_pct": nil,
				"timing_decode_error_pct": nil, "num_gpu_blocks": nil, "cost_usd": nil, "cost_usd_per_mtok_output": nil, "max_energy_kwh": nil, "extrapolated_pass_ratio": 0., "passes": nil},
			[]string{"timing_anomaly"}, [2]float64{1, 10}},
		{"the reference's arguments", []string{"--extra-engine-args", `{"aic_backend": "vllm", "aic_system": "h200_sxm", "aic_model_path": "llama-3.1-8b"}`, "--compat", "dynamo-1.2"},
			[]string{"Timing: table, vllm 0.14.0 on h200_sxm (", "; 16384 KV blocks a worker\n"}, nil,
			map[string]any{"timing_source": "table", "num_gpu_blocks": 16384.}, nil, [2]float64{1, 10}},
		{"roofline", []string{"--timing", `{"gpu": "mi300x", "model": "llama-3.1-8b", "mode": "fused"}`},
			[]string{"Timing: analytic, roofline of mi300x, ±40 % in prefill, ±40 % in decode; "}, nil,
			map[string]any{"timing_source": "analytic", "timing_mode": "fused", "timing_prefill_error_pct": 40., "timing_decode_error_pct": 40.}, []string{"timing_digest", "timing_anomaly"}, [2]float64{1, 10}},
		{"own price", []string{"--timing", `{"gpu": "h200", "model": "llama-3.1-8b"}`, "--set", "prices.h200=0.25"},
			[]string{"Cost: "}, nil, map[string]any{"cost_usd": nil}, nil, [2]float64{.25, .25}},
		{"no price", []string{"--timing", `{"gpu": "gb300", "model": "llama-3.1-8b"}`},
			[]string{"Cost: no price of gb300; give one with --set prices.gb300=USD\n"}, nil, map[string]any{"max_energy_kwh": nil}, []string{"cost_usd"}, [2]float64{}},
		{"polynomial", nil, []string{"Wall Time"}, []string{"Timing: ", "Cost: ", "KV blocks"},
			map[string]any{"timing_source": "polynomial", "num_gpu_blocks": 16384.}, []string{"timing_mode", "timing_data", "cost_usd", "max_energy_kwh"}, [2]float64{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report.json")
			got := runCommand(t, append(append(work[:len(work):len(work)], test.args...), "--report-json", path)...)
			if got.code != exitOK {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			for _, part := range test.stdout {
				if !strings.Contains(got.stdout, part) {
					t.Errorf("%q is missing in\n%s", part, got.stdout)
				}
			}
			for _, part := range test.absent {
				if strings.Contains(got.stdout, part) {
					t.Errorf("%q is in\n%s", part, got.stdout)
				}
			}
			var report map[string]any
			readJSON(t, path, &report)
			for key, want := range test.keys {
				if v, ok := report[key]; !ok || want != nil && v != want {
					t.Errorf("%s is %v, want %v", key, v, want)
				}
			}
			for _, key := range test.missing {
				if v, ok := report[key]; ok {
					t.Errorf("%s is %v, want none", key, v)
				}
			}
			if cost, ok := report["cost_usd"].(float64); ok {
				hourly := cost / report["gpu_hours"].(float64)
				if hourly < test.wantCostInTo[0]*(1-1e-9) || hourly > test.wantCostInTo[1]*(1+1e-9) {
					t.Errorf("a GPU-hour costs %v USD, want %v", hourly, test.wantCostInTo)
				}
			}
		})
	}
}

// TestReplayBeyondTheData checks that passes outside of a profile are counted and reported.
func TestReplayBeyondTheData(t *testing.T) {
	dir := t.TempDir()
	profile, path := filepath.Join(dir, "p.csv"), filepath.Join(dir, "report.json")
	writeText(t, profile, "phase,new_tokens,batch,context,ms\nprefill,100,,,10\nprefill,400,,,50\ndecode,,1,100,2\ndecode,,1,310,3\ndecode,,9,100,4\ndecode,,9,310,6\n")
	got := mustRun(t, "replay", "--input-tokens", "300", "--output-tokens", "20", "--request-count", "1",
		"--timing", `{"profile": "`+filepath.ToSlash(profile)+`"}`, "--report-json", path)
	var report map[string]any
	readJSON(t, path, &report)
	passes, ratio := report["passes"].(float64), report["extrapolated_pass_ratio"].(float64)
	if outside := ratio * passes; passes != 20 || outside < 5 || outside > 15 {
		t.Errorf("%v of %v passes lie outside of the data; the context passes 310 tokens about half way", outside, passes)
	}
	if !strings.Contains(got.stdout, "Timing: profile, ") || !strings.Contains(got.stdout, "of the passes lie outside of the data behind the timing model.") {
		t.Errorf("no warning in\n%s", got.stdout)
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
