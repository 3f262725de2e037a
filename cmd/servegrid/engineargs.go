package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// inertEngineArgs are arguments of the reference that change nothing in an aggregated replay: they belong to live
// serving, to planners or to features that its release does not contain.
var inertEngineArgs = []string{
	"startup_time", "enable_local_indexer", "bootstrap_port", "handoff_session_timeout_ms", "zmq_kv_events_port",
	"zmq_replay_port", "response_replay_trace_path", "has_perf_model", "reasoning",
	"kv_bytes_per_token", "kv_transfer_bandwidth", "kv_transfer_timing_mode",
	"num_g2_blocks", "num_g3_blocks", "offload_batch_size", "enable_g4_storage",
	"bandwidth_g1_to_g2_gbps", "bandwidth_g2_to_g1_gbps", "bandwidth_g2_to_g3_gbps", "bandwidth_g3_to_g2_gbps",
	"bandwidth_g2_to_g4_gbps", "bandwidth_g4_to_g2_gbps",
}

// moveEngineArgs moves the reference's engine arguments that live elsewhere in a spec to their place, and drops
// those that change nothing.
func moveEngineArgs(engine, spec map[string]any) error {
	for key := range engine {
		if slices.Contains(inertEngineArgs, key) {
			delete(engine, key)
		}
	}
	for key, only := range map[string]any{"dp_size": json.Number("1"), "worker_type": "aggregated", "is_prefill": false, "is_decode": false, "block_size": json.Number("0")} {
		if v, ok := engine[key]; ok && (v == nil || v == only) {
			delete(engine, key)
		}
	}
	moved := map[string]string{"aic_tp_size": "tp", "aic_attention_dp_size": "dp"}
	var problems []string
	for key, to := range moved {
		v, ok := engine[key]
		if !ok {
			continue
		}
		delete(engine, key)
		timing, _ := spec["timing"].(map[string]any)
		if timing == nil {
			timing = map[string]any{}
			spec["timing"] = timing
		}
		if old, ok := timing[to]; ok && !reflect.DeepEqual(old, v) {
			problems = append(problems, fmt.Sprintf("--extra-engine-args: %s is %s and --timing says %s %s; give one", key, briefly(v), to, briefly(old)))
		}
		timing[to] = v
	}
	for _, key := range []string{"dp_size", "worker_type", "is_prefill", "is_decode"} {
		if v, ok := engine[key]; ok {
			problems = append(problems, fmt.Sprintf("--extra-engine-args: %s is %s; an aggregated replay has ranks and roles of one kind only, leave it out", key, briefly(v)))
		}
	}
	if len(problems) > 0 {
		sort.Strings(problems)
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

// briefly is a value as an error repeats it.
func briefly(v any) string { return gridspec.Excerpt(fmt.Sprint(v)) }
