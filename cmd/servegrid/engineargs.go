package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/engine"
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

// timingArgs maps engine arguments of the reference to the spec's timing section.
var timingArgs = map[string]string{
	"aic_tp_size": "tp", "aic_attention_dp_size": "dp", "aic_moe_ep_size": "ep",
	"aic_backend": "backend", "aic_system": "gpu", "aic_model_path": "model", "aic_backend_version": "backend_version",
	"aic_gemm_dtype": "gemm_dtype", "aic_moe_dtype": "moe_dtype", "aic_fmha_dtype": "fmha_dtype", "aic_kv_cache_dtype": "kv_cache_dtype",
	"planner_profile_data": "profile",
}

// speculationArgs maps engine arguments of the reference to keys of the spec's engine section.
var speculationArgs = map[string]string{
	"aic_nextn": "num_speculative_tokens", "aic_nextn_accept_rates": "acceptance_rates", "aic_mtp_seed": "speculation_seed",
}

// engineArgs moves the reference's engine arguments to where they live in a spec.
type engineArgs struct {
	engine, spec map[string]any
	problems     []string
}

// moveEngineArgs moves the reference's engine arguments that live elsewhere in a spec to their place, and drops
// those that change nothing.
func moveEngineArgs(engine, spec map[string]any) error {
	a := engineArgs{engine: engine, spec: spec}
	a.dropInert()
	a.moveTiming()
	a.moveSpeculation()
	for _, key := range []string{"dp_size", "worker_type", "is_prefill", "is_decode"} {
		if v, ok := engine[key]; ok {
			a.refuse(key, "is %s; an aggregated replay has ranks and roles of one kind only, leave it out", briefly(v))
		}
	}
	if len(a.problems) > 0 {
		slices.Sort(a.problems)
		return fmt.Errorf("%s", strings.Join(a.problems, "\n"))
	}
	return nil
}

func (a *engineArgs) refuse(key, format string, args ...any) {
	a.problems = append(a.problems, "--extra-engine-args: "+key+" "+fmt.Sprintf(format, args...))
}

func (a *engineArgs) dropInert() {
	for key := range a.engine {
		if slices.Contains(inertEngineArgs, key) {
			delete(a.engine, key)
		}
	}
	for key, only := range map[string]any{"dp_size": json.Number("1"), "worker_type": "aggregated", "is_prefill": false, "is_decode": false, "block_size": json.Number("0")} {
		if v, ok := a.engine[key]; ok && (v == nil || v == only) {
			delete(a.engine, key)
		}
	}
}

// take removes an argument and returns its value; null means that it is not given.
func (a *engineArgs) take(key string) (any, bool) {
	v, ok := a.engine[key]
	delete(a.engine, key)
	return v, ok && v != nil
}

// set stores a value in the timing section, unless another one is there.
func (a *engineArgs) set(key, to string, v any) {
	timing, _ := a.spec["timing"].(map[string]any)
	if timing == nil {
		timing = map[string]any{}
		a.spec["timing"] = timing
	}
	if old, ok := timing[to]; ok && !reflect.DeepEqual(old, v) {
		a.refuse(key, "is %s and --timing says %s %s; give one", briefly(v), to, briefly(old))
	}
	timing[to] = v
}

// moveTiming moves what says how long a pass takes.
func (a *engineArgs) moveTiming() {
	tables := a.asksForTables()
	a.dropMemoryShares(tables)
	a.expertParallel()
	for _, key := range slices.Sorted(maps.Keys(timingArgs)) {
		v, ok := a.take(key)
		if strings.HasSuffix(key, "_dtype") {
			v, ok = referenceDType(v), ok && referenceDType(v) != ""
		}
		// The reference counts GPUs by these even without tables, and ignores the others then.
		if ok && (tables || slices.Contains([]string{"aic_tp_size", "aic_attention_dp_size", "planner_profile_data"}, key)) {
			a.set(key, timingArgs[key], v)
		}
	}
	if v, ok := a.take("aic_comm_dtype"); ok && tables && !slices.Contains([]any{"", "half"}, referenceDType(v)) {
		a.refuse("aic_comm_dtype", "is %s; the tables have communication in half precision only, leave it out", briefly(v))
	}
}

// moveSpeculation renames what says how tokens are predicted ahead.
func (a *engineArgs) moveSpeculation() {
	if v, given := a.engine["aic_mtp_seed"]; given && v == nil {
		a.refuse("aic_mtp_seed", "is null; give a whole number, or leave it out")
	}
	tokens, speculates := a.engine["aic_nextn"]
	if speculates = speculates && tokens != nil; speculates {
		if n, ok := wholeNumber(tokens); !ok || n > engine.MaxSpeculativeTokens {
			a.refuse("aic_nextn", "is %s; give 1 to %d tokens, or leave it out", briefly(tokens), engine.MaxSpeculativeTokens)
		}
	}
	if rates, given := a.engine["aic_nextn_accept_rates"]; given && rates != nil && !speculates {
		a.refuse("aic_nextn_accept_rates", "is %s and aic_nextn is missing; give both or none", briefly(rates))
	}
	for _, key := range slices.Sorted(maps.Keys(speculationArgs)) {
		v, ok := a.take(key)
		if to := speculationArgs[key]; ok {
			if old, given := a.engine[to]; given && !reflect.DeepEqual(old, v) {
				a.refuse(key, "is %s and %s is %s; give one", briefly(v), to, briefly(old))
			}
			a.engine[to] = v
		}
	}
}

// dropMemoryShares drops the shares of the GPU's memory where neither GPU nor model is named: the reference ignores them
// then.
func (a *engineArgs) dropMemoryShares(tables bool) {
	timing, _ := a.spec["timing"].(map[string]any)
	if tables || timing["gpu"] != nil || timing["model"] != nil {
		return
	}
	for _, key := range []string{"gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"} {
		delete(a.engine, key)
	}
}

// asksForTables reports whether the arguments ask for timing tables.
func (a *engineArgs) asksForTables() bool {
	backend, ok := a.engine["aic_backend"]
	if !ok || backend == nil {
		for _, key := range []string{"aic_system", "aic_model_path", "aic_backend_version"} {
			if v, ok := a.engine[key]; ok && v != nil && a.spec["compat"] == nil {
				a.refuse(key, "is %s and aic_backend is missing, so it would change nothing; give both or none", briefly(v))
			}
		}
		return false
	}
	if model, ok := a.engine["aic_model_path"]; !ok || model == nil {
		a.refuse("aic_backend", "needs aic_model_path, the model whose passes are priced")
	}
	timing, _ := a.spec["timing"].(map[string]any)
	if system, ok := a.engine["aic_system"]; (!ok || system == nil) && timing["gpu"] == nil {
		a.engine["aic_system"] = "h200_sxm" // the reference's default
	}
	if profile, ok := a.engine["planner_profile_data"]; ok && profile != nil {
		a.refuse("aic_backend", "and planner_profile_data both say how long a pass takes; give one")
	}
	a.set("aic_backend", "source", "table")
	return true
}

// expertParallel turns the tensor-parallel size of experts into the expert-parallel one: together they make up the GPUs
// of a worker.
func (a *engineArgs) expertParallel() {
	v, ok := a.take("aic_moe_tp_size")
	if !ok {
		return
	}
	moe, valid := wholeNumber(v)
	gpus := 1
	timing, _ := a.spec["timing"].(map[string]any)
	for _, key := range []string{"aic_tp_size", "aic_attention_dp_size"} {
		size, given := a.engine[key]
		if !given || size == nil {
			size, given = timing[timingArgs[key]]
		}
		if given {
			n, isWhole := wholeNumber(size)
			if valid = valid && isWhole; valid {
				gpus *= n
			}
		}
	}
	switch {
	case !valid:
		a.refuse("aic_moe_tp_size", "is %s; aic_moe_tp_size, aic_tp_size and aic_attention_dp_size are whole numbers of 1 or more", briefly(v))
	case gpus%moe != 0:
		a.refuse("aic_moe_tp_size", "is %d, which does not divide the %d GPUs of a worker", moe, gpus)
	default:
		ep := json.Number(strconv.Itoa(gpus / moe))
		if given, ok := a.engine["aic_moe_ep_size"]; ok && given != nil && given != any(ep) {
			a.refuse("aic_moe_tp_size", "times aic_moe_ep_size must be the %d GPUs of a worker", gpus)
		}
		a.engine["aic_moe_ep_size"] = ep
	}
}

func wholeNumber(v any) (int, bool) {
	text, _ := v.(json.Number)
	n, err := strconv.Atoi(string(text))
	return n, err == nil && n >= 1 && n <= math.MaxInt16
}

// referenceDType is a dtype as the tables name it; the reference has several ways to leave one open.
func referenceDType(v any) any {
	text, isText := v.(string)
	switch {
	case !isText && v != nil:
		return v
	case text == "auto", text == "none":
		return ""
	case text == "int4":
		return "int4_wo"
	}
	return text
}

// briefly is a value as an error repeats it.
func briefly(v any) string { return gridspec.Excerpt(fmt.Sprint(v)) }
