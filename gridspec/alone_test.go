package gridspec_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
)

// aloneSpec has settings of every type, both deployment modes, all kinds of workloads and both sides of every default.
const aloneSpec = `
name: "it's \"here\" & <there>: #1"
workload:
  - preset: {name: chat, requests: 30, seed: 9007199254740993, scale: 0.5}
  - synthetic: {input_tokens: 100, output_tokens: 5, requests: 10, shared_prefix_ratio: 0.5, prefix_groups: 3, turns_per_session: 2, inter_turn_delay_ms: 1.5}
  - {name: "a: b", share: 0.5, trace: {paths: ["a #1.jsonl", b.jsonl], block_size: 256}}
sla: {ttft_ms: 1500, itl_ms: 12.5}
cases:
  plain: {}
  closed: {load.concurrency: 3, engine.max_num_seqs: null}
  rate: {load.rate: 2.5, engine.enable_prefix_caching: false}
  fast: {timing: {source: fixed, prefill_ms: 0.0000001, decode_ms: 1e-7}, load.speedup: 1000000}
  reference: {compat: dynamo-1.3, engine.enable_chunked_prefill: false, load.max_sim_time_seconds: 3}
  older: {compat: dynamo-1.2, deployment: {mode: disaggregated}}
  small: {engine.num_gpu_blocks: 40, engine.preemption_mode: fifo, engine.block_size: 16, timing.tp: 2}
  priced: {timing: {gpu: h200, model: Qwen/Qwen3-32B, tp: 2}, engine.gpu_memory_utilization: 0.8}
  usual blocks: {timing: {gpu: h200, model: llama-3.1-8b}, engine.num_gpu_blocks: 16384}
  roofline: {timing: {gpu: mi300x, model: llama-3.1-8b}, engine.num_speculative_tokens: 2, engine.acceptance_rates: "0.7"}
  split: {deployment: {mode: disaggregated, prefill_workers: 2, decode_workers: 3}, engine.block_size: 32, prefill.engine: {kv_transfer_bandwidth: 10, kv_bytes_per_token: 1000},
    decode.engine.max_num_seqs: null, router: {policy: kv_router, router_queue_threshold: null, router_temperature: 0.5}}
  two gpus: {deployment.mode: disaggregated, timing.model: llama-3.1-70b, prefill.timing: {gpu: h100_sxm, tp: 4}, decode.timing: {gpu: h200_sxm, tp: 2}, engine.kv_transfer_bandwidth: 25}
  sglang: {engine.type: sglang, engine.sglang: {schedule_policy: lpm, page_size: 8}, router: {policy: power_of_two, seed: 7}}
  trtllm: {engine.type: trtllm, timing: {gpu: h200_sxm, model: llama-3.1-8b, dtype: fp8}}
  tiers: {tiers: {num_g2_blocks: 5000, bandwidth_g1_to_g2_gbps: 10}, engine.kv_bytes_per_token: 1000}
  estimate: {timing: {gpu: h200_sxm, model: llama-3.1-8b}, router: {policy: kv_router, router_prefill_load_model: aic}}
  planned: {planner: {policy: dynamo, optimization_target: load, load_adjustment_interval_seconds: 1, decode_scale_up_kv_rate: 50.5, decode_scale_down_kv_rate: 10, max_gpu_budget: -1},
    timing: {source: fixed, prefill_ms: 5, decode_ms: 1}, engine.num_gpu_blocks: 400, engine.startup_time: 2.5}
  tracked: {planner: {policy: target_tracking}, timing: {source: fixed, prefill_ms: 5, decode_ms: 1}, deployment: {mode: disaggregated, prefill_workers: 2}, decode.engine.startup_time: 4}
prices: {h200: 10}
`

// A point written as a spec of its own is that point and no other, without a warning, wherever the file is.
func TestAlone(t *testing.T) {
	texts := map[string]string{"": aloneSpec}
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		texts[file] = ""
	}
	for file, text := range texts {
		src := gridspec.Source{Path: file}
		if text != "" {
			src = gridspec.Source{Data: []byte(text)}
		}
		s, err := gridspec.Load(src)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i, p := range expand(t, s) {
			if i%max(1, len(file)) == 0 { // of an example a part suffices
				checkAlone(t, p, text != "")
			}
		}
	}
}

func checkAlone(t *testing.T, p gridspec.Point, quiet bool) {
	t.Helper()
	const name = "x: #1"
	text := p.Alone(name)
	s, err := gridspec.Load(gridspec.Source{Data: text, Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	points := expand(t, s)
	if len(points) != 1 || s.Name != name {
		t.Fatalf("%d points of %q:\n%s", len(points), s.Name, text)
	}
	if got, want := points[0].ContentID("digest"), (gridspec.Point{Config: p.Config}).ContentID("digest"); got != want {
		t.Errorf("another point than %+v:\n%s", p.Config, text)
	}
	if diff := cmp.Diff(p.Workload, points[0].Workload); diff != "" {
		t.Errorf("another workload:\n%s\n%s", diff, text)
	}
	if points[0].GPUPrice != p.GPUPrice {
		t.Errorf("GPU price %v instead of %v:\n%s", points[0].GPUPrice, p.GPUPrice, text)
	}
	// Points of a grid may have settings that change nothing for them and count in their ID all the same.
	if w := s.Warnings(); quiet && len(w) > 0 {
		t.Errorf("warning: %v\n%s", w, text)
	}
	if again := points[0].Alone(name); string(again) != string(text) {
		t.Errorf("written again:\n%s\nfirst:\n%s", again, text)
	}
}
