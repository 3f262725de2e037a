package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/rules"
)

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
	// flag gives them, role is the worker type of the workers that they are for.
	flag, role string
	// engine holds those that are left, stage the section around it: the spec, or one of its stages.
	engine, stage, spec map[string]any
	problems            []string
	// notes says what changes nothing.
	notes []string
}

// The roles of workers, by the reference's names.
const (
	roleAggregated = "aggregated"
	rolePrefill    = "prefill"
	roleDecode     = "decode"
)

// moveEngineArgs moves the engine arguments that a flag gives for the workers of a role into a spec, and returns what
// changes nothing.
func moveEngineArgs(flag, role string, engine, spec map[string]any) (notes []string, err error) {
	a := engineArgs{flag: flag, role: role, engine: engine, stage: spec, spec: spec}
	if role != roleAggregated {
		a.stage = map[string]any{}
		spec[role] = a.stage
	}
	a.stage["engine"] = engine
	a.dropInert(inertEngineArgs, "it is for live serving")
	a.checkRole()
	a.moveTiers()
	a.moveTiming()
	a.moveSpeculation()
	a.moveQueuePolicy()
	a.tidy()
	return a.notes, a.err()
}

// err holds all that was refused.
func (a *engineArgs) err() error {
	if len(a.problems) == 0 {
		return nil
	}
	slices.Sort(a.problems)
	return errors.New(strings.Join(a.problems, "\n"))
}

func (a *engineArgs) refuse(key, format string, args ...any) {
	a.problems = append(a.problems, a.flag+": "+key+" "+fmt.Sprintf(format, args...))
}

// compat reports whether the rules of the reference apply.
func (a *engineArgs) compat() bool { return a.spec["compat"] != nil }

// dropInert checks and drops arguments that change nothing, and says why.
func (a *engineArgs) dropInert(inert map[string]inertArg, why string) {
	given, wrong := dropInert(a.engine, inert)
	for _, w := range wrong {
		a.problems = append(a.problems, a.flag+": "+w)
	}
	for _, key := range given {
		a.notes = append(a.notes, fmt.Sprintf("%s: %s changes nothing here: %s", a.flag, key, why))
	}
}

// checkRole takes what says which role the workers have, and refuses another one.
func (a *engineArgs) checkRole() {
	if v, ok := a.take("dp_size"); ok && v != any(json.Number("1")) {
		a.refuse("dp_size", "is %s; a replay has one rank of each kind, leave it out", briefly(v))
	}
	role, typeGiven := a.take("worker_type")
	given := typeGiven
	for key, means := range map[string]string{"is_prefill": rolePrefill, "is_decode": roleDecode} {
		switch v, ok := a.take(key); {
		case !ok:
		case typeGiven:
			a.refuse(key, "and worker_type are both given; give one")
		case v == true && given && role != any(means):
			a.refuse(key, "is true, and so is the other role; give one")
		case v == true:
			role, given = means, true
		case v != false:
			a.refuse(key, "is %s; give true or false", briefly(v))
		}
	}
	switch {
	case a.role != roleAggregated && a.takesAnyRole() && (!given || role == any(roleAggregated)):
		a.engine["worker_type"] = engine.WorkerTypeAggregated
	case !given && a.role != roleAggregated && a.compat():
		a.refuse("worker_type", "is missing; write %q", a.role)
	case given && role != any(a.role):
		a.refuse("worker_type", "is %s; the workers of %s are %s", briefly(role), a.flag, a.role)
	}
}

// takesAnyRole reports whether the reference leaves unchecked what workers are for: its release 1.2 with a planner, and vLLM.
func (a *engineArgs) takesAnyRole() bool {
	engineType, given := a.engine["engine_type"]
	return a.spec["compat"] == any(string(rules.Dynamo12)) && a.spec["planner"] != nil && (!given || engineType == any(engine.TypeVLLM))
}

// moveTiers moves what is about memory tiers to the section of that name. The reference checks it and has none.
func (a *engineArgs) moveTiers() {
	if !a.compat() {
		if a.role == roleDecode && !a.decodeTiers() {
			a.dropInert(inertTierArgs, "there are no memory tiers without num_g2_blocks")
			return
		}
		for _, key := range slices.Sorted(maps.Keys(inertTierArgs)) {
			if v, ok := a.take(key); ok {
				a.move(key, "tiers", key, v)
			}
		}
		return
	}
	blocks, _ := jsonNumber(a.engine["num_g2_blocks"])
	for _, key := range []string{"num_g3_blocks", "enable_g4_storage"} {
		if v := a.engine[key]; v != nil && v != false && v != any(json.Number("0")) && blocks == 0 {
			a.refuse(key, "is %s and there is no num_g2_blocks; the lower tiers are filled from host memory", briefly(v))
		}
	}
	a.dropInert(inertTierArgs, "the reference has no memory tiers")
}

// decodeTiers says that decode workers have memory tiers, too, if their arguments do: the same as prefill workers. It reports
// whether they have.
func (a *engineArgs) decodeTiers() bool {
	if blocks, _ := jsonNumber(a.engine["num_g2_blocks"]); blocks == 0 {
		a.take("num_g2_blocks")
		return false
	}
	tiers := section(a.spec, "tiers")
	if tiers["num_g2_blocks"] == nil {
		a.refuse("num_g2_blocks", "is %s and prefill workers have none; give it to both", briefly(a.engine["num_g2_blocks"]))
	}
	tiers["decode_offload"] = true
	return true
}

// moveQueuePolicy moves the router's queue policy, which wins over that of the router's own arguments.
func (a *engineArgs) moveQueuePolicy() {
	if v, ok := a.take("router_queue_policy"); ok {
		section(a.spec, "router")["router_queue_policy"] = v
	}
}

// move stores an argument in a section of the spec, unless another one is there.
func (a *engineArgs) move(key, into, to string, v any) {
	m := section(a.spec, into)
	if old, ok := m[to]; ok && !reflect.DeepEqual(old, v) {
		a.refuse(key, "is %s and %s.%s is %s; give one", briefly(v), into, to, briefly(old))
	}
	m[to] = v
}

// tidy writes what the reference takes and a spec does not as the spec has it: names in capitals, null and 0 for the
// default.
func (a *engineArgs) tidy() {
	for _, key := range []string{"engine_type", "type"} {
		if name, ok := a.engine[key].(string); ok {
			a.engine[key] = strings.ToLower(name)
		}
	}
	if a.engine["block_size"] == any(json.Number("0")) {
		delete(a.engine, "block_size")
	}
	dropNulls(a.engine, "startup_time", "kv_transfer_bandwidth", "gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction", "sglang", "trtllm")
	if sglang, ok := a.engine["sglang"].(map[string]any); ok {
		dropNulls(sglang, "schedule_policy", "schedule_conservativeness")
	}
	if trtllm, ok := a.engine["trtllm"].(map[string]any); ok {
		dropNulls(trtllm, "capacity_scheduler_policy")
	}
	if a.compat() && a.role == rolePrefill && a.engine["kv_transfer_bandwidth"] == any(json.Number("0")) {
		a.refuse("kv_transfer_bandwidth", "is 0, with which the reference gives up; leave it out for transfers of no time")
	}
}

// section returns a section of a spec or stage, which is made if there is none.
func section(of map[string]any, name string) map[string]any {
	m, _ := of[name].(map[string]any)
	if m == nil {
		m = map[string]any{}
		of[name] = m
	}
	return m
}

func dropNulls(m map[string]any, keys ...string) {
	for _, key := range keys {
		if v, ok := m[key]; ok && v == nil {
			delete(m, key)
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
	timing := section(a.stage, "timing")
	if old, ok := timing[to]; ok && !reflect.DeepEqual(old, v) {
		a.refuse(key, "is %s and --timing says %s %s; give one", briefly(v), to, briefly(old))
	}
	timing[to] = v
}

// timing returns what is said about timing for these workers or for all.
func (a *engineArgs) timing(key string) any {
	for _, section := range []map[string]any{a.stage, a.spec} {
		timing, _ := section["timing"].(map[string]any)
		if v := timing[key]; v != nil {
			return v
		}
	}
	return nil
}

// moveTiming moves what says how long a pass takes.
func (a *engineArgs) moveTiming() {
	tables := a.asksForTables()
	a.dropUnpriced(tables)
	a.expertParallel()
	for _, key := range slices.Sorted(maps.Keys(timingArgs)) {
		v, ok := a.take(key)
		if strings.HasSuffix(key, "_dtype") {
			v, ok = referenceDType(v), ok && referenceDType(v) != ""
		}
		if ok {
			a.set(key, timingArgs[key], v)
		}
	}
	if v, ok := a.take("aic_comm_dtype"); ok && !slices.Contains([]any{"", "half"}, referenceDType(v)) {
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

// dropUnpriced drops what the reference ignores where no tables are asked for. It counts GPUs all the same, so their
// numbers stay.
func (a *engineArgs) dropUnpriced(tables bool) {
	if tables {
		return
	}
	for key := range inertWithoutTables {
		if strings.HasSuffix(key, "_dtype") && referenceDType(a.engine[key]) == "" {
			delete(a.engine, key)
		}
	}
	a.dropInert(inertWithoutTables, "it is about the tables that aic_backend asks for")
	if a.timing("gpu") == nil && a.timing("model") == nil {
		a.dropInert(inertWithoutGPU, "neither GPU nor model is named")
	}
}

// asksForTables reports whether the arguments ask for timing tables.
func (a *engineArgs) asksForTables() bool {
	backend, ok := a.engine["aic_backend"]
	if !ok || backend == nil {
		for _, key := range []string{"aic_system", "aic_model_path", "aic_backend_version"} {
			if v, ok := a.engine[key]; ok && v != nil && !a.compat() {
				a.refuse(key, "is %s and aic_backend is missing, so it would change nothing; give both or none", briefly(v))
			}
		}
		return false
	}
	if model, ok := a.engine["aic_model_path"]; !ok || model == nil {
		a.refuse("aic_backend", "needs aic_model_path, the model whose passes are priced")
	}
	if system, ok := a.engine["aic_system"]; (!ok || system == nil) && a.timing("gpu") == nil {
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
	for _, key := range []string{"aic_tp_size", "aic_attention_dp_size"} {
		size := a.engine[key]
		if size == nil {
			size = a.timing(timingArgs[key])
		}
		if size != nil {
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

// briefly is a value of a JSON object as an error repeats it.
func briefly(v any) string {
	if text, ok := v.(string); ok {
		return gridspec.Excerpt(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return gridspec.Excerpt(fmt.Sprint(v))
	}
	return gridspec.Excerpt(string(text))
}
