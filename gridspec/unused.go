package gridspec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
)

// use is what settings need to change anything.
type use struct {
	// of reports whether it is about a setting.
	of func(path string) bool
	// needs reports whether a configuration makes use of the setting; why says what that takes.
	needs func(*Config) bool
	why   string
}

func uses() []use {
	below := func(sections ...string) func(string) bool {
		return func(path string) bool {
			return slices.ContainsFunc(sections, func(s string) bool { return path == s || strings.HasPrefix(path, s+".") })
		}
	}
	common := func(sections ...string) func(string) bool {
		inCommon := below(sections...)
		return func(path string) bool { return inCommon(commonPath(path)) }
	}
	runs := func(engineType string) func(*Config) bool {
		return func(c *Config) bool {
			return slices.ContainsFunc(c.Stages(), func(p simcore.Pool) bool { return p.Engine.Type == engineType })
		}
	}
	routes := func(policies ...string) func(*Config) bool {
		return func(c *Config) bool { return slices.Contains(policies, c.Router.Policy) }
	}
	ofKVRouter := func(path string) bool {
		return strings.HasPrefix(path, "router.") && !below("router.policy", "router.seed", "router.prefix_affinity_tokens")(path)
	}
	return []use{
		{common("engine.sglang"), runs(engine.TypeSGLang), "only engine.type sglang has it"},
		{common("engine.trtllm"), runs(engine.TypeTensorRTLLM), "only engine.type trtllm has it"},
		{
			common("engine.kv_transfer_bandwidth", "engine.kv_transfer_timing_mode"),
			func(c *Config) bool { return c.Deployment.Mode == simcore.ModeDisaggregated },
			"only deployment.mode disaggregated transfers KV caches",
		},
		{
			common("engine.kv_bytes_per_token"),
			func(c *Config) bool {
				return c.Deployment.Mode == simcore.ModeDisaggregated || c.Tiers.Enabled()
			},
			"only deployment.mode disaggregated and memory tiers move KV caches",
		},
		{
			func(path string) bool { return strings.HasPrefix(path, "tiers.") && path != "tiers.num_g2_blocks" },
			func(c *Config) bool { return c.Tiers.Enabled() },
			"there are no memory tiers without tiers.num_g2_blocks",
		},
		{
			func(path string) bool { return strings.HasPrefix(path, "agentx.") && path != "agentx.preset" },
			func(c *Config) bool { return c.AgentX.Enabled() },
			"there is no AgentX scenario without agentx.preset",
		},
		{
			below("agentx.warm_up"),
			func(c *Config) bool { return c.AgentX.Filled().PrimersPerUser > 0 },
			"there are no further requests that warm the cache up without agentx.primers_per_user",
		},
		{
			below("workload.trace.pacing"),
			func(c *Config) bool { return !c.AgentX.Enabled() },
			"the AgentX scenario keeps the recorded pauses, not the recorded times",
		},
		{
			below("decode.engine.kv_transfer_bandwidth", "decode.engine.kv_transfer_timing_mode"),
			func(*Config) bool { return false },
			"the prefill workers decide how KV caches are transferred; write it in prefill.engine",
		},
		{ofKVRouter, routes(router.PolicyKVRouter), "only router.policy kv_router has it"},
		{
			below("router.router_queue_policy", "router.router_queue_threshold"),
			func(c *Config) bool { return c.Router.RouterPolicyConfig == "" },
			"the classes of router.router_policy_config have policies and thresholds of their own",
		},
		{below("router.prefix_affinity_tokens"), routes(router.PolicyPrefixAffinity), "only router.policy prefix_affinity has it"},
		{
			below("tiers.bandwidth_g2_to_g3_gbps", "tiers.bandwidth_g3_to_g2_gbps", "tiers.latency_g2_to_g3_ms", "tiers.latency_g3_to_g2_ms"),
			func(c *Config) bool { return c.Tiers.NumG3Blocks > 0 },
			"there are no disks without tiers.num_g3_blocks",
		},
		{
			below("tiers.bandwidth_g2_to_g4_gbps", "tiers.bandwidth_g4_to_g2_gbps", "tiers.latency_g2_to_g4_ms", "tiers.latency_g4_to_g2_ms"),
			func(c *Config) bool { return c.Tiers.EnableG4Storage },
			"there is no object store without tiers.enable_g4_storage",
		},
		{
			below("tiers.workers_per_node"),
			func(c *Config) bool { return c.Tiers.NumG3Blocks > 0 || c.Tiers.EnableG4Storage },
			"the workers of a node share disks and the way to the object store, and there are none (tiers.num_g3_blocks, tiers.enable_g4_storage)",
		},
		{
			below("tiers.decode_offload"),
			func(c *Config) bool { return c.Deployment.Mode == simcore.ModeDisaggregated },
			"only deployment.mode disaggregated has decode workers",
		},
		{
			below("router.host_cache_hit_weight", "router.disk_cache_hit_weight"),
			func(c *Config) bool { return c.Tiers.Enabled() },
			"there are no memory tiers without tiers.num_g2_blocks",
		},
		{
			below("router.seed"),
			func(c *Config) bool {
				return c.Router.Policy != router.PolicyRoundRobin && c.Router.Policy != router.PolicyPrefixAffinity
			},
			"nothing is drawn with this router.policy",
		},
		{
			below("router.prefill_timing"),
			func(c *Config) bool { return c.Router.RouterPrefillLoadModel == router.PrefillLoadAIC },
			"only router.router_prefill_load_model aic predicts prompts",
		},
		{
			below("router.model_name"),
			func(c *Config) bool { return c.Router.RouterPolicyConfig != "" },
			"it selects a profile of router.router_policy_config, which is not given",
		},
	}
}

// unusedSettings finds settings that are written, in the base or for points, and that no point makes use of.
func (s *Spec) unusedSettings(tree map[string]any) Problems {
	configs, planners := s.possible(), s.possiblePlanners()
	var out Problems
	warned := map[string]bool{}
	warn := func(at, why string) {
		warned[at] = true
		p := Problem{Where: s.layers.parser.origins.where(at)}
		p.Path, p.Allowed = at, "it changes nothing: "+why
		out = append(out, p)
	}
	check := func(path, at string) {
		if !warned[at] && !slices.ContainsFunc(planners, func(c *Config) bool { return c.plans(path) }) {
			warn(at, whyUnplanned(path, planners))
		}
		for _, u := range conditions {
			if u.of(path) && !warned[at] && !slices.ContainsFunc(configs, func(c *Config) bool { return u.needs(c) }) {
				warn(at, u.why)
			}
		}
	}
	for _, k := range configKeys.leaves {
		if writes(tree, k.path) {
			check(k.path, k.path)
		}
	}
	s.eachRow(func(o option) {
		for _, a := range o.set {
			check(a.key.path, strings.TrimSuffix(a.at, lastIndex(a.at)))
		}
	})
	return out
}

// whyUnplanned says why no planner looks at a setting.
func whyUnplanned(path string, planners []*Config) string {
	planned := func(c *Config) bool { return c.Planned() }
	switch {
	case slices.ContainsFunc(planners, planned):
		return "nothing looks at it with this planner.policy and what else the planner is told"
	case strings.HasPrefix(path, plannerPrefix):
		return "there is no planner without planner.policy"
	}
	return "no worker starts without planner.policy"
}

// possiblePlanners returns configurations that have, between them, every combination of the planner's settings that are
// choices: these decide about the use of its other ones.
func (s *Spec) possiblePlanners() []*Config {
	decides := func(k *key) bool {
		return strings.HasPrefix(k.path, plannerPrefix) && (k.typ.Kind() == reflect.String || k.typ.Kind() == reflect.Bool)
	}
	base := s.base.config
	possible := []*Config{&base}
	multiply := func(f factor, configs []*Config) []*Config {
		var out []*Config
		seen := map[planner.Config]bool{}
		for _, c := range configs {
			for _, o := range f.rows {
				with := c
				for _, a := range o.set {
					if !decides(a.key) {
						continue
					}
					if with == c { // most rows decide nothing and need no copy
						copied := *c
						with = &copied
					}
					reflect.ValueOf(with).Elem().FieldByIndex(a.key.index).Set(a.value)
				}
				if !seen[with.Planner] {
					seen[with.Planner] = true
					out = append(out, with)
				}
			}
		}
		return out
	}
	for _, f := range s.factors {
		possible = multiply(f, possible)
	}
	for _, f := range s.include {
		possible = append(possible, multiply(f, []*Config{&base})...)
	}
	return possible
}

// possible returns configurations of the base and of the base with one row of a factor: between them they have every
// value of the settings that decide about the use of others.
func (s *Spec) possible() []*Config {
	type decisive struct {
		mode, types, policy, load, file string
		tiers, disk, object             bool
		scenario, primers               bool
	}
	var out []*Config
	seen := map[decisive]bool{}
	add := func(o option) {
		point := s.with(o)
		c := &point.config
		d := decisive{mode: c.Deployment.Mode, policy: c.Router.Policy, load: c.Router.RouterPrefillLoadModel, file: c.Router.RouterPolicyConfig, tiers: c.Tiers.Enabled(), disk: c.Tiers.NumG3Blocks > 0, object: c.Tiers.EnableG4Storage, scenario: c.AgentX.Enabled(), primers: c.AgentX.Filled().PrimersPerUser > 0}
		for _, p := range c.Stages() {
			d.types += p.Engine.Type + " "
		}
		if !seen[d] {
			seen[d] = true
			out = append(out, c)
		}
	}
	add(option{})
	rows := map[string]bool{}
	s.eachRow(func(o option) {
		if d := o.decisive(); !rows[d] {
			rows[d] = true
			add(o)
		}
	})
	return out
}

// decisive is what an option sets, as far as it can decide about the use of other settings: of numbers that is their sign, so
// that an axis of 100,000 rates counts once.
func (o *option) decisive() string {
	var b strings.Builder
	for _, a := range o.set {
		b.WriteString(a.key.path)
		b.WriteByte('=')
		switch v := a.value; {
		case v.CanInt():
			fmt.Fprint(&b, cmp.Compare(v.Int(), 0))
		case v.CanUint():
			fmt.Fprint(&b, cmp.Compare(v.Uint(), 0))
		case v.CanFloat():
			fmt.Fprint(&b, cmp.Compare(v.Float(), 0))
		default:
			fmt.Fprintf(&b, "%q", fmt.Sprint(v))
		}
	}
	if o.workload != nil {
		fmt.Fprintf(&b, "workload %s", o.workloadAt)
	}
	return b.String()
}

func (s *Spec) eachRow(visit func(option)) {
	for _, factors := range [][]factor{s.factors, s.include} {
		for _, f := range factors {
			for _, o := range f.rows {
				visit(o)
			}
		}
	}
}
