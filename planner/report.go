package planner

import (
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// Outcome is what a simulation with a planner gives.
type Outcome struct {
	// Report is the simulation's.
	Report *simcore.Report
	// Record is what the planner did; nil with the policy static.
	Record *Record
}

// Record is what a planner saw and did.
type Record struct {
	// Pools names the pools, in the order of [simcore.Config.Stages]: "agg", or "prefill" and "decode".
	Pools []string
	// InitialWorkers is the number of workers of each pool at the start.
	InitialWorkers []int
	// Config is the configuration, resolved.
	Config Config
	// KVCapacityTokens is the KV cache of a worker of each pool, in tokens; 0 means unknown.
	KVCapacityTokens []int64
	// Ticks are all ticks at which something was due, Decisions all changes that were asked for, Events what became of the
	// workers.
	Ticks     []Tick
	Decisions []Decision
	Events    []simcore.ScalingEvent
	// TickCount is the number of ticks, those included at which nothing was due.
	TickCount int
}

// planning counts what the planner did.
func (r *Record) planning() *metrics.Planning {
	p := &metrics.Planning{Ticks: int64(r.TickCount)}
	for _, d := range r.Decisions {
		if d.To > d.From {
			p.ScaleUps++
		} else {
			p.ScaleDowns++
		}
	}
	for i := 1; i < len(r.Ticks); i++ {
		for pool := range r.Ticks[i].Pools {
			if r.Ticks[i].Pools[pool].Ready != r.Ticks[i-1].Pools[pool].Ready {
				p.Transitions++
			}
		}
	}
	return p
}

// Tick is what the planner saw, reckoned and decided at one time. A number that there is not is NaN.
type Tick struct {
	// AtMs is when the tick was due, NowMs what the clock showed, in simulated ms.
	AtMs, NowMs float64
	// LoadScaling and ThroughputScaling say which looks were due.
	LoadScaling, ThroughputScaling bool
	// Observed is the load since the last look at it, Predicted what is expected of the next interval.
	Observed, Predicted Load
	// Pools says what it was like and what was decided, pool by pool.
	Pools []PoolTick
	// LoadReason and ThroughputReason say why for the deployment as a whole, in the words of planner specification §9.6.
	LoadReason, ThroughputReason string
	// KVHitRate is the share of prompt tokens that the planner expects to be cached.
	KVHitRate float64
	// GPUHours is what the workers took until now, those that start or drain included.
	GPUHours float64
}

// Load is traffic in a window of time. A number that there is not is NaN.
type Load struct {
	// DurationSeconds is the length of the window.
	DurationSeconds float64
	// Requests is their number; InputTokens and OutputTokens are their mean lengths.
	Requests, InputTokens, OutputTokens float64
	// TTFTMs and ITLMs are mean latencies in ms.
	TTFTMs, ITLMs float64
	// KVHitRate is the share of prompt blocks that were cached.
	KVHitRate float64
}

// PoolTick is what one pool was like at a tick, and what was decided for it.
type PoolTick struct {
	// Ready, Starting and Draining are numbers of workers.
	Ready, Starting, Draining int
	// Target is the number of workers that was asked for; -1 means that it was left as it was.
	Target int
	// LowerBound is the least number of workers that throughput scaling asks for.
	LowerBound int
	// LoadReason and ThroughputReason say why.
	LoadReason, ThroughputReason string
	// EstimatedTTFTMs and EstimatedITLMs are the greatest estimate of any worker, in ms.
	EstimatedTTFTMs, EstimatedITLMs float64
	// RequestsPerSecond is what a worker is reckoned to serve within the SLA.
	RequestsPerSecond float64
	// Workers is what the planner knows of each worker.
	Workers []WorkerTick
}

// WorkerTick is the last that the planner heard of a worker.
type WorkerTick struct {
	// Worker is its id in the pool.
	Worker int32
	// QueuedPrefillTokens, QueuedDecodeKVTokens and DecodeKVTokens are those of its last pass.
	QueuedPrefillTokens, QueuedDecodeKVTokens, DecodeKVTokens int64
}

// Decision is a change of the number of workers of a pool that was asked for.
type Decision struct {
	// AtMs is when, in simulated ms.
	AtMs float64
	// Pool is the place of the pool in [Record.Pools].
	Pool int
	// From is the number of workers that To, the number asked for, was compared with: those that were ready, and but for compat
	// those that started.
	From, To int
	// Reason says why.
	Reason string
}
