package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results/deploy"
)

// settings are, for every key of a section, a value that is not the default and what else a spec has to say with it. An empty value
// marks what only decides how a simulation draws or prices, so that there is nothing to deploy.
var settings = map[string]map[string][2]string{
	"engine": {
		"type": {"sglang", ""}, "num_gpu_blocks": {"1000", ""}, "block_size": {"32", ""}, "max_num_seqs": {"7", ""},
		"gpu_memory_utilization": {"0.5", ""}, "mem_fraction_static": {"0.5", "engine.type: sglang"}, "free_gpu_memory_fraction": {"0.5", "engine.type: trtllm"},
		"max_num_batched_tokens": {"999", ""}, "enable_prefix_caching": {"false", ""}, "enable_chunked_prefill": {"false", ""},
		"speedup_ratio": {"2", ""}, "decode_speedup_ratio": {"2", ""}, "num_speculative_tokens": {"1", ""},
		"acceptance_rates": {`"0.5"`, "engine.num_speculative_tokens: 1, timing.model: deepseek-v3, timing.tp: 8"}, "speculation_seed": {},
		"preemption_mode": {"fifo", ""}, "context_length": {"5000", ""}, "kv_bytes_per_token": {},
		"kv_transfer_bandwidth": {"5", "deployment.mode: disaggregated"}, "kv_transfer_timing_mode": {"full_prompt", "deployment.mode: disaggregated"},
		"startup_time": {"5", "planner.policy: dynamo"}, "worker_type": {}, // servers of a pool know what they are for
		"sglang": {}, "trtllm": {}, // sections of their own
	},
	"engine.sglang": {
		"schedule_policy": {"lpm", "engine.type: sglang"}, "page_size": {}, "max_prefill_tokens": {"999", "engine.type: sglang"},
		"chunked_prefill_size": {"512", "engine.type: sglang"}, "clip_max_new_tokens": {"99", "engine.type: sglang"}, "schedule_conservativeness": {"0.5", "engine.type: sglang"},
	},
	"engine.trtllm": {"capacity_scheduler_policy": {"guaranteed_no_evict", "engine.type: trtllm"}},
	"timing": {
		"gpu": {"h200_sxm", ""}, "model": {"qwen3-8b", ""}, "dtype": {"fp8", "timing.model: llama-3.1-8b"}, "backend": {"trtllm", ""}, "backend_version": {},
		"tp": {"2", ""}, "dp": {"2", "timing.source: analytic"}, "ep": {"8", "timing.model: deepseek-v3, timing.tp: 8"},
		"gemm_dtype": {}, "moe_dtype": {}, "fmha_dtype": {}, "kv_cache_dtype": {"fp8", "timing.source: analytic"},
		"source": {}, "mode": {}, "corrections": {}, "tables": {}, "profile": {}, "prefill_ms": {}, "decode_ms": {},
		"prefill_scale": {}, "decode_scale": {}, "pass_overhead_ms": {}, "request_overhead_ms": {},
	},
	"router": {
		"policy": {"least_loaded", ""}, "seed": {}, "prefix_affinity_tokens": {}, "prefill_timing": {}, "model_name": {}, "router_policy_config": {},
		"overlap_score_credit": {"0.5", kv}, "overlap_score_credit_decay": {"1", kv}, "prefill_load_scale": {"2", kv}, "overlap_score_weight": {},
		"host_cache_hit_weight": {"0.5", kv + ", tiers.num_g2_blocks: 9"}, "disk_cache_hit_weight": {"0.5", kv + ", tiers.num_g2_blocks: 9"},
		"router_temperature": {"1", kv}, "router_track_active_blocks": {"false", kv}, "router_assume_kv_reuse": {"false", kv}, "router_track_prefill_tokens": {"false", kv},
		"router_prefill_load_model": {"aic", kv}, "router_queue_threshold": {"2", kv}, "router_queue_policy": {"lcfs", kv},
	},
	"tiers": {
		"num_g2_blocks": {"99", ""}, "num_g3_blocks": {"99", tiered}, "enable_g4_storage": {"true", tiered}, "num_g4_blocks": {"9", tiered + ", tiers.enable_g4_storage: true"},
		"workers_per_node": {"2", tiered + ", tiers.num_g3_blocks: 9"}, "offload_policy": {"on_complete", tiered}, "offload_batch_size": {"3", tiered}, "onboard_policy": {"never", tiered},
		"decode_offload":          {},
		"bandwidth_g1_to_g2_gbps": {"3", tiered}, "bandwidth_g2_to_g1_gbps": {"3", tiered}, "bandwidth_g2_to_g3_gbps": {"3", tiered}, "bandwidth_g3_to_g2_gbps": {"3", tiered},
		"bandwidth_g2_to_g4_gbps": {"3", tiered}, "bandwidth_g4_to_g2_gbps": {"3", tiered}, "latency_g1_to_g2_ms": {"3", tiered}, "latency_g2_to_g1_ms": {"3", tiered},
		"latency_g2_to_g3_ms": {"3", tiered}, "latency_g3_to_g2_ms": {"3", tiered}, "latency_g2_to_g4_ms": {"3", tiered}, "latency_g4_to_g2_ms": {"3", tiered},
	},
}

const (
	kv     = "router.policy: kv_router"
	tiered = "tiers.num_g2_blocks: 9"
)

// No setting is dropped in silence: what is not the default stands in one of the files beside the spec, as an argument or a note. A
// new setting fails here until somebody has decided what it becomes.
func TestNothingIsDropped(t *testing.T) {
	for section, keys := range settings {
		for _, key := range gridspec.SectionKeys(section) {
			path := section + "." + key
			value, ok := keys[key]
			if !ok {
				t.Errorf("%s: decide what servers make of it", path)
				continue
			}
			if value[0] == "" {
				continue
			}
			without, with := texts(t, value[1]), texts(t, value[1]+fmt.Sprintf(", %s: %s", path, value[0]))
			if !strings.Contains(with, path) && path != "timing.gpu" && path != "engine.type" {
				t.Errorf("%s: %s stands in no file:\n%s", path, value[0], with)
			}
			if with == without && path != "engine.trtllm.capacity_scheduler_policy" && path != "timing.gpu" {
				t.Errorf("%s: %s changes nothing", path, value[0])
			}
		}
	}
}

// texts are the files beside the spec of a point whose base has some settings.
func texts(t *testing.T, set string) string {
	t.Helper()
	given := map[string]string{"timing.gpu": "h200_sxm", "timing.model": "llama-3.1-8b"}
	for _, setting := range strings.Split(set, ", ") {
		if key, value, ok := strings.Cut(setting, ": "); ok {
			given[key] = value
		}
	}
	var base []string
	for key, value := range given {
		base = append(base, key+": "+value)
	}
	var out strings.Builder
	for _, f := range files(t, point(t, "include: [{"+strings.Join(base, ", ")+"}]"), "x") {
		if f.Name != deploy.SpecFile {
			out.Write(f.Content)
		}
	}
	return out.String()
}
