package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
)

// addRouter says how requests get to workers.
func (f *deploymentFlags) addRouter(b *specBuilder) {
	notes, err := f.routerArgs(b.flags, b.spec)
	b.refuse(err)
	b.notes = append(b.notes, notes...)
}

// routerArgs fills in the router section of a spec from the flags that are about the router, and returns what changes
// nothing.
func (f *deploymentFlags) routerArgs(flags *pflag.FlagSet, spec map[string]any) (notes []string, err error) {
	const flag = "--router-config"
	config := map[string]any{}
	if flags.Changed("router-config") {
		if config, err = jsonSection(flag, f.routerConfig); err != nil {
			return nil, err
		}
	}
	given, wrong := checkRouterArgs(config)
	for _, key := range given {
		notes = append(notes, fmt.Sprintf("%s: %s changes nothing here: it is for live serving", flag, key))
	}
	if spec["compat"] != nil {
		given, more := dropInert(config, inertTierWeights)
		for _, key := range given {
			notes = append(notes, fmt.Sprintf("%s: %s changes nothing here: the reference has no memory tiers", flag, key))
		}
		wrong = append(wrong, more...)
	}
	var problems []error
	for _, w := range wrong {
		problems = append(problems, fmt.Errorf("%s: %s", flag, w))
	}
	if flags.Changed("router-mode") || config["policy"] == nil {
		config["policy"] = f.router
	}
	for key, v := range map[string]string{"router_policy_config": f.routerPolicyConfig, "model_name": f.modelName} {
		if v != "" {
			config[key] = v
		}
	}
	dropNulls(config, "router_policy_config")
	if engine, ok := spec["router"].(map[string]any); ok { // from the engine arguments, which win
		maps.Copy(config, engine)
	}
	if _, given := config["router_queue_threshold"]; !given && config["policy"] == any(router.PolicyKVRouter) && spec["compat"] == any(string(rules.Dynamo12)) {
		config["router_queue_threshold"] = queueThreshold12
	}
	spec["router"] = config
	problems = append(problems, f.prefillEstimate(flags, config, spec))
	return notes, errors.Join(problems...)
}

// queueThreshold12 is the router_queue_threshold of the reference's release 1.2 when none is given.
const queueThreshold12 = 4

// checkRouterArgs takes out the arguments that change nothing. It returns them, and what is wrong with them.
func checkRouterArgs(config map[string]any) (given, wrong []string) {
	events := config["use_kv_events"] != any(false)
	for _, rule := range []struct {
		key     string
		broken  bool
		message string
	}{
		{"durable_kv_events", config["durable_kv_events"] == any(true) && !events, "needs use_kv_events"},
		{"router_predicted_ttl_secs", config["router_predicted_ttl_secs"] != nil && !events, "needs use_kv_events"},
		{"router_track_output_blocks", config["router_track_output_blocks"] == any(true) && config["router_track_active_blocks"] == any(false), "needs router_track_active_blocks"},
		{"serve_indexer", config["serve_indexer"] == any(true) && config["use_remote_indexer"] == any(true), "excludes use_remote_indexer"},
		{"serve_indexer", config["serve_indexer"] == any(true) && config["overlap_score_credit"] == any(json.Number("0")), "needs an overlap_score_credit above 0"},
	} {
		if rule.broken {
			wrong = append(wrong, rule.key+" "+rule.message)
		}
	}
	given, more := dropInert(config, inertRouterArgs)
	wrong = append(wrong, more...)
	slices.Sort(wrong)
	return given, wrong
}

// prefillEstimate adds what the KV router knows of the duration of prompts: the flags --aic-* describe it, and it has to
// be asked for.
func (f *deploymentFlags) prefillEstimate(flags *pflag.FlagSet, config, spec map[string]any) error {
	given := firstChanged(flags, effectiveAICFlags(flags)...)
	model := config["router_prefill_load_model"]
	if given == "" {
		if model == any(router.PrefillLoadAIC) && spec["compat"] != nil {
			return errors.New("--router-config: router_prefill_load_model aic needs --aic-backend, --aic-system and --aic-model-path")
		}
		return nil
	}
	var problems []error
	for _, needed := range []string{"aic-backend", "aic-system", "aic-model-path"} {
		if !flags.Changed(needed) {
			problems = append(problems, fmt.Errorf("%s needs --%s: give --aic-backend, --aic-system and --aic-model-path together", given, needed))
			break
		}
	}
	switch {
	case config["policy"] != any(router.PolicyKVRouter):
		problems = append(problems, fmt.Errorf("%s describes how the KV router estimates prefill load, and --router-mode is %v; what the workers take is said by --timing or by aic_* keys of --extra-engine-args",
			given, config["policy"]))
	case model != any(router.PrefillLoadAIC):
		problems = append(problems, fmt.Errorf("%s describes how the KV router estimates prefill load; ask for that with --router-config '{\"router_prefill_load_model\": \"aic\"}'", given))
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	timing, err := aicTiming(flags)
	config["prefill_timing"] = timing
	return err
}
