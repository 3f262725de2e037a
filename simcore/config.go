package simcore

import (
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
)

// Config is everything that decides the outcome of one simulation besides its workload. It is plain data: two
// equal values give equal reports. The `json` names are the key paths of a grid spec.
type Config struct {
	// Compat selects the rule set; empty follows the newest engines, "dynamo-1.3" and "dynamo-1.2" the DynoSim
	// reference.
	Compat rules.Compat `json:"compat,omitempty"`
	// Load says how requests are released.
	Load Load `json:"load"`
	// Deployment says how many workers serve them.
	Deployment Deployment `json:"deployment"`
	// Engine configures the scheduler and KV cache of each worker.
	Engine engine.Config `json:"engine"`
	// Timing says how long a pass takes.
	Timing perfmodel.Config `json:"timing"`
	// Prefill is the workers of a disaggregated deployment that compute prompts; in a spec what it leaves out is as in Engine
	// and Timing.
	Prefill Stage `json:"prefill"`
	// Decode is the workers of a disaggregated deployment that decode; in a spec what it leaves out is as in Engine and
	// Timing.
	Decode Stage `json:"decode"`
	// Router says which worker gets a request.
	Router router.Config `json:"router"`
	// Tiers says which memory tiers for KV blocks lie below the GPUs' own.
	Tiers tiers.Config `json:"tiers"`
	// AgentX says whether the workload is played as that benchmark, and how.
	AgentX AgentX `json:"agentx"`
	// SLA states the latency bounds for goodput and attainment; without bounds neither is reported.
	SLA SLA `json:"sla"`
}

// LoadMode says what releases the next request.
type LoadMode string

// The load modes.
const (
	// LoadTrace releases requests at the times that the workload states.
	LoadTrace LoadMode = "trace"
	// LoadConcurrency keeps a number of sessions in flight and ignores the workload's arrival times.
	LoadConcurrency LoadMode = "concurrency"
	// LoadRate replaces the workload's arrival times by evenly spaced ones.
	LoadRate LoadMode = "rate"
)

// Load says how requests are released to the deployment.
type Load struct {
	// Mode is trace, concurrency or rate.
	Mode LoadMode `json:"mode"`
	// Speedup divides arrival times and, in open loop, the delays between turns. It must be positive.
	Speedup float64 `json:"speedup"`
	// Concurrency is the number of sessions in flight in mode concurrency.
	Concurrency int `json:"concurrency"`
	// Rate is the number of sessions that start per second in mode rate.
	Rate float64 `json:"rate"`
	// MaxSimTimeSeconds stops the simulation before the clock passes this many seconds; 0 means no limit.
	// Started passes still count whole.
	MaxSimTimeSeconds float64 `json:"max_sim_time_seconds"`
}

// Deployment says how many workers serve the workload.
type Deployment struct {
	// Mode is "aggregated", every worker does prefill and decode, or "disaggregated", one pool of workers computes
	// prompts and another one decodes.
	Mode string `json:"mode"`
	// Workers is the number of engine replicas of an aggregated deployment.
	Workers int `json:"workers"`
	// PrefillWorkers is the number of workers of a disaggregated deployment that compute prompts.
	PrefillWorkers int `json:"prefill_workers"`
	// DecodeWorkers is the number of workers of a disaggregated deployment that decode.
	DecodeWorkers int `json:"decode_workers"`
}

// Stage is the engine and timing of the workers of one pool.
type Stage struct {
	// Engine configures the scheduler and KV cache of each worker.
	Engine engine.Config `json:"engine"`
	// Timing says how long a pass takes.
	Timing perfmodel.Config `json:"timing"`
}

// SLA holds the latency bounds in ms that a request must keep to be good; 0 leaves a bound out.
type SLA struct {
	// TTFTMs bounds the time to first token.
	TTFTMs float64 `json:"ttft_ms"`
	// ITLMs bounds a request's mean inter-token latency, (e2e - ttft) / (output - 1); one-token requests pass.
	ITLMs float64 `json:"itl_ms"`
	// E2EMs bounds the request latency.
	E2EMs float64 `json:"e2e_ms"`
}

// Set reports whether any bound is given.
func (s SLA) Set() bool { return s.TTFTMs > 0 || s.ITLMs > 0 || s.E2EMs > 0 }

// KeptBy reports whether a request that has all its output kept every bound.
func (s SLA) KeptBy(q *engine.Request) bool {
	ttft := max(0, q.FirstTokenMs-q.ArrivalMs)
	e2e := max(0, q.LastTokenMs-q.ArrivalMs)
	switch {
	case s.TTFTMs > 0 && ttft > s.TTFTMs,
		s.E2EMs > 0 && e2e > s.E2EMs,
		s.ITLMs > 0 && q.Output > 1 && (e2e-ttft)/float64(q.Output-1) > s.ITLMs:
		return false
	}
	return true
}

// The deployment modes.
const (
	// ModeAggregated lets every worker do prefill and decode.
	ModeAggregated = "aggregated"
	// ModeDisaggregated gives prefill and decode workers of their own.
	ModeDisaggregated = "disaggregated"
)

// DefaultConfig returns the configuration that an empty spec means: one vLLM-style worker with the reference's
// default engine arguments, polynomial timing, round robin, the workload's own arrival times.
func DefaultConfig() Config {
	return Config{
		Load:       Load{Mode: LoadTrace, Speedup: 1},
		Deployment: Deployment{Mode: ModeAggregated, Workers: 1, PrefillWorkers: 1, DecodeWorkers: 1},
		Engine:     engine.DefaultConfig(),
		Timing:     perfmodel.DefaultConfig(),
		Prefill:    Stage{engine.DefaultConfig(), perfmodel.DefaultConfig()},
		Decode:     Stage{engine.DefaultConfig(), perfmodel.DefaultConfig()},
		Router:     router.DefaultConfig(),
		Tiers:      tiers.DefaultConfig(),
		AgentX:     DefaultAgentX(),
	}
}

// Stages returns the pools of workers that the deployment has: those of an aggregated one, or the prefill and the decode
// workers.
func (c Config) Stages() []Pool {
	if c.Deployment.Mode == ModeDisaggregated {
		return []Pool{{c.Prefill, c.Deployment.PrefillWorkers}, {c.Decode, c.Deployment.DecodeWorkers}}
	}
	return []Pool{{Stage{c.Engine, c.Timing}, c.Deployment.Workers}}
}

// Pool is a number of equal workers.
type Pool struct {
	Stage
	Workers int
}

// BlockSize is the number of tokens in a KV block of a resolved configuration: all pools have the same.
func (c Config) BlockSize() int { return c.Stages()[0].Engine.BlockSize }

// GPUsPerWorker is the number of GPUs one worker occupies: tensor-parallel size times data-parallel ranks.
func (s Stage) GPUsPerWorker() int { return s.Timing.TP * s.Timing.DP }

// GPUs is the number of GPUs the whole deployment occupies.
func (c Config) GPUs() int {
	gpus := 0
	for _, p := range c.Stages() {
		gpus += p.Workers * p.GPUsPerWorker()
	}
	return gpus
}
