package gridspec

import (
	"reflect"
	"strings"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/problem"
)

// A disaggregated deployment has two stages, each with an engine and a timing of its own. What a stage leaves out is as
// in the sections engine and timing, leaf by leaf, and so are axes of those sections; what a stage or one of its axes
// says wins. Settings that belong to one deployment mode would change nothing in the other one, and are refused there.

// stages lists the sections of the stages.
func stages() []string { return []string{"prefill", "decode"} }

// commonPath is the key path that a setting of a stage has in an aggregated deployment; others stay.
func commonPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "prefill."); ok {
		return rest
	}
	return strings.TrimPrefix(path, "decode.")
}

// likeSection is the key path whose meaning and values a setting has: that of an aggregated deployment, or that of the
// timing section where another section says how long a pass takes.
func likeSection(path string) string {
	const estimate = "router.prefill_timing"
	if rest, ok := strings.CutPrefix(path, estimate); ok && (rest == "" || rest[0] == '.') {
		return "timing" + rest
	}
	return commonPath(path)
}

// deploymentModeOf returns the deployment mode that a setting belongs to; empty when both have it.
func deploymentModeOf(path string) string {
	switch {
	case path == "deployment.workers":
		return simcore.ModeAggregated
	case path == "deployment.prefill_workers", path == "deployment.decode_workers", commonPath(path) != path:
		return simcore.ModeDisaggregated
	}
	return ""
}

// isCommon reports whether a setting is one that both stages of a disaggregated deployment take over.
func isCommon(path string) bool {
	return strings.HasPrefix(path, "engine.") || strings.HasPrefix(path, "timing.")
}

// Concerns reports whether a setting can change the outcome of a configuration, as far as its deployment mode and its
// planner say.
func Concerns(path string, c *Config) bool {
	if !c.plans(path) {
		return false
	}
	if mode := deploymentModeOf(path); mode != "" {
		return mode == c.Deployment.Mode
	}
	return c.Deployment.Mode != simcore.ModeDisaggregated || !isCommon(path)
}

// stageLeaf is one setting of both stages, with the one that they take over.
type stageLeaf struct{ prefill, decode, common []int }

// stageLeaves lists the settings of the stages.
var stageLeaves = func() []stageLeaf {
	var out []stageLeaf
	for _, k := range configKeys.leaves {
		if isCommon(k.path) {
			out = append(out, stageLeaf{configKeys.byPath["prefill."+k.path].index, configKeys.byPath["decode."+k.path].index, k.index})
		}
	}
	return out
}()

// boundSettings returns what a tree writes of the settings that belong to one deployment mode.
func boundSettings(tree map[string]any, config *Config) []assignment {
	var out []assignment
	for _, k := range configKeys.leaves {
		if k.mode != "" && writes(tree, k.path) {
			out = append(out, assignment{key: k, value: reflect.ValueOf(config).Elem().FieldByIndex(k.index), at: k.path})
		}
	}
	return out
}

// writes reports whether a tree holds a key path, be it with null.
func writes(tree map[string]any, path string) bool {
	section, rest, below := strings.Cut(path, ".")
	v, ok := tree[section]
	if !below || !ok {
		return ok
	}
	inner, _ := v.(map[string]any)
	return writes(inner, rest)
}

// settle gives the stages of a disaggregated deployment what they leave out, and takes away what the deployment mode
// does not have.
func (s *settings) settle() {
	c := &s.config
	if c.Deployment.Mode != simcore.ModeDisaggregated {
		c.Prefill, c.Decode = defaultConfig.Prefill, defaultConfig.Decode
		c.Deployment.PrefillWorkers, c.Deployment.DecodeWorkers = defaultConfig.Deployment.PrefillWorkers, defaultConfig.Deployment.DecodeWorkers
		return
	}
	c.Deployment.Workers = defaultConfig.Deployment.Workers
	c.Prefill = simcore.Stage{Engine: c.Engine, Timing: c.Timing}
	c.Decode = c.Prefill
	for _, a := range s.bound {
		if commonPath(a.key.path) != a.key.path {
			reflect.ValueOf(c).Elem().FieldByIndex(a.key.index).Set(a.value)
		}
	}
}

// showCommon writes what both stages have in common into the sections engine and timing, where expressions and columns
// look for it.
func showCommon(c *Config) {
	if c.Deployment.Mode != simcore.ModeDisaggregated {
		return
	}
	v := reflect.ValueOf(c).Elem()
	for _, leaf := range stageLeaves {
		if p := v.FieldByIndex(leaf.prefill); p.Equal(v.FieldByIndex(leaf.decode)) {
			v.FieldByIndex(leaf.common).Set(p)
		}
	}
}

// idle returns the problems of settings that the deployment mode does not have. What the base of a spec says is none
// where the mode varies: other points may have it.
func (s *settings) idle(modeVaries bool) problem.List {
	var l problem.List
	for i, a := range s.bound {
		if a.key.mode != s.config.Deployment.Mode && !(modeVaries && i < s.boundByBase) {
			l.Add(a.key.path, valueOf(a.value), "it would change nothing: only mode %s has it, and this is mode %s", a.key.mode, s.config.Deployment.Mode)
		}
	}
	return l
}

// givenKeys says which keys are given that imply a mode, and which modes.
type givenKeys struct {
	loadMode, concurrency, rate    bool
	deploymentMode, workers, pools bool
}

func givenIn(tree map[string]any) givenKeys {
	section := func(name string) func(string) bool {
		m, _ := tree[name].(map[string]any)
		return func(k string) bool { return m[k] != nil }
	}
	load, deployment := section("load"), section("deployment")
	return givenKeys{
		loadMode: load("mode"), concurrency: load("concurrency"), rate: load("rate"),
		deploymentMode: deployment("mode"), workers: deployment("workers"),
		pools: deployment("prefill_workers") || deployment("decode_workers"),
	}
}

func givenBy(set []assignment) givenKeys {
	var g givenKeys
	for _, a := range set {
		switch a.key.path {
		case "load.mode":
			g.loadMode = true
		case "load.concurrency":
			g.concurrency = true
		case "load.rate":
			g.rate = true
		case "deployment.mode":
			g.deploymentMode = true
		case "deployment.workers":
			g.workers = true
		case "deployment.prefill_workers", "deployment.decode_workers":
			g.pools = true
		}
	}
	return g
}

func (g givenKeys) or(other givenKeys) givenKeys {
	return givenKeys{
		g.loadMode || other.loadMode, g.concurrency || other.concurrency, g.rate || other.rate,
		g.deploymentMode || other.deploymentMode, g.workers || other.workers, g.pools || other.pools,
	}
}

// implyModes sets the modes of load and deployment that the given keys imply, and returns how they contradict each
// other.
func (s *settings) implyModes() problem.List {
	var l problem.List
	switch g := s.given; {
	case g.loadMode:
	case g.concurrency && g.rate:
		l.Add("load.mode", s.config.Load.Mode, "both load.concurrency and load.rate are given; set load.mode to concurrency or rate")
	case g.concurrency:
		s.config.Load.Mode = simcore.LoadConcurrency
	case g.rate:
		s.config.Load.Mode = simcore.LoadRate
	}
	switch g := s.given; {
	case g.deploymentMode:
	case g.workers && g.pools:
		l.Add("deployment.mode", s.config.Deployment.Mode, "both deployment.workers and the sizes of prefill and decode pools are given; set deployment.mode to %s or %s",
			simcore.ModeAggregated, simcore.ModeDisaggregated)
	case g.pools:
		s.config.Deployment.Mode = simcore.ModeDisaggregated
	}
	return l
}

// deploymentVaries reports whether rows of factors decide about the deployment mode.
func (s *Spec) deploymentVaries() bool {
	decides := func(g givenKeys) bool {
		return g.deploymentMode || !s.base.given.deploymentMode && (g.workers || g.pools)
	}
	varies := false
	s.eachRow(func(o option) { varies = varies || decides(o.given) })
	return varies
}
