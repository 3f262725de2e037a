package simcore

import (
	"math"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// maxWorkers bounds a deployment.
const maxWorkers = 1 << 20

// validate returns the problems of the configuration apart from its timing, by key path.
func (c Config) validate() problem.List {
	var l problem.List
	set, err := rules.For(c.Compat)
	if err != nil {
		l.Add("compat", c.Compat, "leave it out, or use one of: %s", strings.Join(rules.Names(), ", "))
	}
	l = append(l, c.Load.validate().Under("load")...)
	if c.Deployment.Mode != ModeAggregated {
		l.Add("deployment.mode", c.Deployment.Mode, "use %s", ModeAggregated)
	}
	if c.Deployment.Workers < 1 || c.Deployment.Workers > maxWorkers {
		l.Add("deployment.workers", c.Deployment.Workers, "give 1 to %d workers", maxWorkers)
	}
	l = append(l, c.Engine.Validate(set).Under("engine")...)
	l = append(l, c.Router.Validate().Under("router")...)
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

func (l Load) validate() problem.List {
	var p problem.List
	if !(l.Speedup > 0) || math.IsInf(l.Speedup, 0) {
		p.Add("speedup", l.Speedup, "give a finite ratio above 0")
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
	if l.Mode == LoadRate && (!(l.Rate > 0) || math.IsInf(l.Rate, 0)) {
		p.Add("rate", l.Rate, "mode rate needs a number of sessions per second above 0")
	} else if l.Mode != LoadRate && l.Rate != 0 {
		p.Add("rate", l.Rate, "only mode rate takes it")
	}
	return p
}
