package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// inertArg is an argument of the reference that changes nothing in a replay, which checks it all the same.
type inertArg struct {
	// check returns what is allowed when a value is not; null never gets here unless it is refused.
	check func(any) string
	// nullable says that null stands for not given.
	nullable bool
}

func anyBool(v any) string {
	if _, ok := v.(bool); !ok {
		return "give true or false"
	}
	return ""
}

func anyText(v any) string {
	if _, ok := v.(string); !ok {
		return "give text"
	}
	return ""
}

func oneOf(choices ...string) func(any) string {
	return func(v any) string {
		if s, ok := v.(string); !ok || !slices.Contains(choices, s) {
			return "use one of: " + strings.Join(choices, ", ")
		}
		return ""
	}
}

func atLeast(least float64) func(any) string {
	return func(v any) string {
		if f, ok := jsonNumber(v); !ok || f < least {
			return fmt.Sprintf("give %v or more", least)
		}
		return ""
	}
}

func wholeAtLeast(least float64) func(any) string {
	return func(v any) string {
		if f, ok := jsonNumber(v); !ok || f < least || f != float64(int64(f)) {
			return fmt.Sprintf("give a whole number of %v or more", least)
		}
		return ""
	}
}

func port(v any) string {
	if f, ok := jsonNumber(v); wholeAtLeast(0)(v) != "" || !ok || f > math.MaxUint16 {
		return "give a port number"
	}
	return ""
}

func anything(any) string { return "" }

func unitShare(v any) string {
	if f, ok := jsonNumber(v); !ok || f < 0 || f > 1 {
		return "give 0 to 1"
	}
	return ""
}

func jsonNumber(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// inertEngineArgs belong to live serving.
var inertEngineArgs = map[string]inertArg{
	"enable_local_indexer":       {anyBool, false},
	"bootstrap_port":             {port, true},
	"handoff_session_timeout_ms": {wholeAtLeast(1), false},
	"zmq_kv_events_port":         {port, true},
	"zmq_replay_port":            {port, true},
	"response_replay_trace_path": {anyText, true},
	"has_perf_model":             {anything, true},
	"reasoning":                  {reasoning, true},
}

// inertTierArgs are about KV memory tiers, which the releases of the reference check and do not have.
var inertTierArgs = map[string]inertArg{
	"num_g2_blocks":           {wholeAtLeast(0), true},
	"num_g3_blocks":           {wholeAtLeast(0), true},
	"offload_batch_size":      {wholeAtLeast(0), true},
	"enable_g4_storage":       {anyBool, false},
	"bandwidth_g1_to_g2_gbps": {atLeast(0), true},
	"bandwidth_g2_to_g1_gbps": {atLeast(0), true},
	"bandwidth_g2_to_g3_gbps": {atLeast(0), true},
	"bandwidth_g3_to_g2_gbps": {atLeast(0), true},
	"bandwidth_g2_to_g4_gbps": {atLeast(0), true},
	"bandwidth_g4_to_g2_gbps": {atLeast(0), true},
}

// inertWithoutTables are about timing tables and change nothing where none are asked for.
var inertWithoutTables = map[string]inertArg{
	"aic_system":          {anyText, true},
	"aic_model_path":      {anyText, true},
	"aic_backend_version": {anyText, true},
	"aic_moe_tp_size":     {wholeAtLeast(0), true},
	"aic_moe_ep_size":     {wholeAtLeast(0), true},
	"aic_gemm_dtype":      {anyText, true},
	"aic_moe_dtype":       {anyText, true},
	"aic_fmha_dtype":      {anyText, true},
	"aic_kv_cache_dtype":  {anyText, true},
	"aic_comm_dtype":      {anyText, true},
}

// inertWithoutGPU share out the memory of a GPU and change nothing where none is named.
var inertWithoutGPU = map[string]inertArg{
	"gpu_memory_utilization":   {unitShare, true},
	"mem_fraction_static":      {unitShare, true},
	"free_gpu_memory_fraction": {unitShare, true},
}

// inertRouterArgs belong to live serving.
var inertRouterArgs = map[string]inertArg{
	"router_track_output_blocks": {anyBool, false},
	"shared_cache_multiplier":    {unitShare, false},
	"shared_cache_type":          {oneOf("none", "hicache"), false},
	"use_kv_events":              {anyBool, false},
	"durable_kv_events":          {anyBool, false},
	"router_replica_sync":        {anyBool, false},
	"router_snapshot_threshold":  {wholeAtLeast(1), true},
	"router_reset_states":        {anyBool, false},
	"router_ttl_secs":            {atLeast(0), false},
	"router_event_threads":       {wholeAtLeast(1), false},
	"skip_initial_worker_wait":   {anyBool, false},
	"use_remote_indexer":         {anyBool, false},
	"serve_indexer":              {anyBool, false},
	"router_predicted_ttl_secs":  {atLeast(0), true},
}

// inertTierWeights weigh what lower memory tiers have, which the releases of the reference check and do not have.
var inertTierWeights = map[string]inertArg{
	"host_cache_hit_weight": {unitShare, false},
	"disk_cache_hit_weight": {unitShare, false},
}

// reasoning checks the section of that name, which splits an output in thinking and answer.
func reasoning(v any) string {
	m, _ := v.(map[string]any)
	_, start := jsonNumber(m["start_thinking_token_id"])
	_, end := jsonNumber(m["end_thinking_token_id"])
	if !start || !end || unitShare(m["thinking_ratio"]) != "" || len(m) != 3 {
		return "give start_thinking_token_id, end_thinking_token_id and a thinking_ratio of 0 to 1"
	}
	return ""
}

// dropInert takes the inert arguments out of an object. It returns those that were given, and what is wrong with them.
func dropInert(args map[string]any, inert map[string]inertArg) (given, wrong []string) {
	for _, key := range slices.Sorted(maps.Keys(args)) {
		arg, known := inert[key]
		if !known {
			continue
		}
		v := args[key]
		delete(args, key)
		if v == nil && arg.nullable {
			continue
		}
		given = append(given, key)
		if allowed := arg.check(v); allowed != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s is not allowed; %s", key, briefly(v), allowed))
		}
	}
	return given, wrong
}
