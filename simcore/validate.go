package simcore

import (
	"math"
	"strings"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// maxWorkers bounds a deployment.
const maxWorkers = 1 << 20

// Speedups and rates beyond these stretch or press a run so much that its times in ms lose their fractions.
const (
	minRatio = 1e-6
	maxRatio = 1e9
)

// validate returns the problems of the configuration apart from its timing, by key path.
func (c Config) validate() problem.List {
	var l problem.List
	set, err := rules.For(c.Compat)
	if err != nil {
		l.Add("compat", c.Compat, "leave it out, or use one of: %s", strings.Join(rules.Names(), ", "))
	}
	l = append(l, c.Load.validate().Under("load")...)
	l = append(l, c.Deployment.validate().Under("deployment")...)
	if c.Deployment.Mode == ModeDisaggregated {
		l = append(l, c.Prefill.Engine.Validate(set).Under("prefill.engine")...)
		l = append(l, c.Decode.Engine.Validate(set).Under("decode.engine")...)
	} else {
		l = append(l, c.Engine.Validate(set).Under("engine")...)
		if set.RolesMayBeUnknown && c.Engine.WorkerType == engine.WorkerTypeAggregated {
			l.Add("engine.worker_type", c.Engine.WorkerType, "all workers of deployment.mode %s are; leave it out", ModeAggregated)
		}
	}
	l = append(l, c.Router.Validate().Under("router")...)
	l = append(l, c.validateTiers(set)...)
	l = append(l, c.validateAgentX(set)...)
	for _, s := range []struct {
		key   string
		value float64
	}{{"ttft_ms", c.SLA.TTFTMs}, {"itl_ms", c.SLA.ITLMs}, {"e2e_ms", c.SLA.E2EMs}} {
		if !(s.value >= 0) || math.IsInf(s.value, 0) {
			l.Add("sla."+s.key, s.value, "give a bound above 0 ms, or leave it out")
		}
	}
	return l
}

func (d Deployment) validate() problem.List {
	var l problem.List
	sizes := []struct {
		key   string
		value int
		used  bool
	}{
		{"workers", d.Workers, d.Mode == ModeAggregated},
		{"prefill_workers", d.PrefillWorkers, d.Mode == ModeDisaggregated},
		{"decode_workers", d.DecodeWorkers, d.Mode == ModeDisaggregated},
	}
	switch d.Mode {
	case ModeAggregated, ModeDisaggregated:
	default:
		l.Add("mode", d.Mode, "use %s or %s", ModeAggregated, ModeDisaggregated)
		return l
	}
	for _, s := range sizes {
		if s.used && (s.value < 1 || s.value > maxWorkers) {
			l.Add(s.key, s.value, "give 1 to %d workers", maxWorkers)
		}
	}
	return l
}

// validatePools returns the problems of the two pools of a disaggregated deployment with each other.
func (c Config) validatePools(set rules.Set) problem.List {
	var l problem.List
	p, d := c.Prefill.Engine, c.Decode.Engine
	if p.Type != d.Type {
		l.Add("decode.engine.type", d.Type, "both pools run the same engine, and the prefill workers run %s", p.Type)
	}
	if set.NoTensorRTLLMPools && (p.Type == engine.TypeTensorRTLLM || d.Type == engine.TypeTensorRTLLM) {
		l.Add("prefill.engine.type", p.Type, "with compat %s disaggregated deployments run %s or %s", c.Compat, engine.TypeVLLM, engine.TypeSGLang)
	}
	if p.BlockSize != d.BlockSize {
		l.Add("decode.engine.block_size", d.BlockSize, "both pools have the same block size, and that of the prefill workers is %d", p.BlockSize)
	}
	return l
}

func (l Load) validate() problem.List {
	var p problem.List
	if !(l.Speedup >= minRatio && l.Speedup <= maxRatio) {
		p.Add("speedup", l.Speedup, "give a ratio from %g to %g", minRatio, maxRatio)
	}
	if !(l.MaxSimTimeSeconds >= 0) || math.IsInf(l.MaxSimTimeSeconds, 0) {
		p.Add("max_sim_time_seconds", l.MaxSimTimeSeconds, "give a number of seconds, or 0 for no limit")
	}
	switch l.Mode {
	case LoadTrace, LoadConcurrency, LoadRate:
	default:
		p.Add("mode", l.Mode, "use one of: %s, %s, %s", LoadTrace, LoadConcurrency, LoadRate)
	}
	if l.Mode == LoadConcurrency && l.Concurrency < 1 {
		p.Add("concurrency", l.Concurrency, "mode concurrency needs 1 or more sessions in flight")
	} else if l.Mode != LoadConcurrency && l.Concurrency != 0 {
		p.Add("concurrency", l.Concurrency, "only mode concurrency takes it")
	}
	if l.Mode == LoadRate && !(l.Rate >= minRatio && l.Rate <= maxRatio) {
		p.Add("rate", l.Rate, "mode rate needs a number of sessions per second from %g to %g", minRatio, maxRatio)
	} else if l.Mode != LoadRate && l.Rate != 0 {
		p.Add("rate", l.Rate, "only mode rate takes it")
	}
	return p
}
