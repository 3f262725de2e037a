package planner

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Foresight is the section `planner.foresight` of a spec: how the policy of that name looks for the fewest workers that keep
// the SLA.
type Foresight struct {
	// Attainment is the share of all requests that must keep ttft_ms and itl_ms.
	Attainment float64 `json:"attainment"`
	// Variable lets the number of workers change; otherwise the best constant number is taken.
	Variable bool `json:"variable"`
	// IntervalSeconds is the least time between two changes, 1 or more.
	IntervalSeconds float64 `json:"interval_seconds"`
	// MaxRuns is the greatest number of simulations that the search takes to improve on the best constant number.
	MaxRuns int `json:"max_runs"`
}

func defaultForesight() Foresight {
	return Foresight{Attainment: 0.9, Variable: true, IntervalSeconds: 30, MaxRuns: 400}
}

// check reports settings that make no sense.
func (f Foresight) check() problem.List {
	var l problem.List
	if !(f.Attainment > 0 && f.Attainment <= 1) {
		l.Add("attainment", f.Attainment, "give a share above 0, up to 1")
	}
	if !(f.IntervalSeconds >= 1) || math.IsInf(f.IntervalSeconds, 0) {
		l.Add("interval_seconds", f.IntervalSeconds, "give a number of seconds, 1 or more")
	}
	if f.MaxRuns < 0 {
		l.Add("max_runs", f.MaxRuns, "give a number of simulations, 0 or more")
	}
	return l
}

// staffing is how many workers each pool shall have in each interval, those that start included; the last interval has no
// end.
type staffing struct {
	intervalMs float64
	// workers of each pool, by interval.
	workers [][]int
	// kept says whether the SLA is kept with it.
	kept bool
	// gpuHours is what it takes.
	gpuHours float64
}

// with is the deployment of a configuration as a staffing begins.
func (p *staffing) with(cfg simcore.Config) simcore.Config {
	if first := p.workers[0]; len(first) == 2 {
		cfg.Deployment.PrefillWorkers, cfg.Deployment.DecodeWorkers = first[0], first[1]
	} else {
		cfg.Deployment.Workers = first[0]
	}
	return cfg
}

// changed returns a copy with so many workers more in the intervals from one (inclusive) to another (exclusive).
func (p *staffing) changed(pool, from, to, more int) *staffing {
	out := &staffing{intervalMs: p.intervalMs}
	for k, w := range p.workers {
		w = slices.Clone(w)
		if from <= k && k < to {
			w[pool] += more
		}
		out.workers = append(out.workers, w)
	}
	return out
}

// at returns the workers of an interval.
func (p *staffing) at(k int) []int { return p.workers[min(k, len(p.workers)-1)] }

// foreseer carries a staffing out.
type foreseer struct {
	plan *staffing
	next int // the interval that begins at the next tick
	// record is kept when not nil: then there is a tick at each interval.
	record  *Record
	gpus    *gpuClock
	traffic traffic
}

var (
	_ simcore.Autoscaler      = (*foreseer)(nil)
	_ simcore.RequestObserver = (*foreseer)(nil)
)

// newForeseer carries a plan out, with a record of it.
func newForeseer(cfg simcore.Config, plan *staffing, record *Record, gpus *gpuClock) *foreseer {
	for _, stage := range cfg.Stages() {
		record.KVCapacityTokens = append(record.KVCapacityTokens, limitsOf(stage.Stage).kvTokens)
	}
	return &foreseer{plan: plan, next: 1, record: record, gpus: gpus, traffic: traffic{prompts: newMovingAverage(1)}}
}

// NextTickMs implements [simcore.Autoscaler]. A search wants no ticks at which nothing changes.
func (f *foreseer) NextTickMs() float64 {
	if f.record == nil {
		for f.next < len(f.plan.workers) && slices.Equal(f.plan.at(f.next), f.plan.at(f.next-1)) {
			f.next++
		}
		if f.next >= len(f.plan.workers) {
			return math.Inf(1)
		}
	}
	return float64(f.next) * f.plan.intervalMs
}

// Arrived implements [simcore.RequestObserver].
func (f *foreseer) Arrived(_ float64, r *engine.Request) { f.traffic.arrive(r) }

// Completed implements [simcore.RequestObserver].
func (f *foreseer) Completed(_ float64, r *engine.Request) { f.traffic.complete(r) }

// Routed implements [simcore.RequestObserver].
func (f *foreseer) Routed(float64, int, int) {}

// Tick implements [simcore.Autoscaler].
func (f *foreseer) Tick(nowMs float64, pools []simcore.PoolState) []int {
	wanted := slices.Clone(f.plan.at(f.next))
	if f.record != nil {
		f.note(nowMs, pools, wanted)
	}
	f.next++
	return wanted
}

// ReasonOutOfReach is the reason of the policy foresight when no number of workers within the budget keeps the SLA.
const ReasonOutOfReach = "sla_out_of_reach"

// note records a tick.
func (f *foreseer) note(nowMs float64, pools []simcore.PoolState, wanted []int) {
	t := newPlainTick(f.NextTickMs(), nowMs, pools, &f.traffic, f.gpus)
	t.LoadReason = "foresight"
	if !f.plan.kept {
		t.LoadReason = ReasonOutOfReach
	}
	for i, n := range wanted {
		t.Pools[i].Target, t.Pools[i].LoadReason = n, t.LoadReason
		if from := len(pools[i].Ready) + pools[i].Starting; from != n {
			f.record.Decisions = append(f.record.Decisions, Decision{AtMs: nowMs, Pool: i, From: from, To: n, Reason: t.LoadReason})
		}
	}
	f.record.TickCount++
	f.record.Ticks = append(f.record.Ticks, t)
}

// newPlainTick begins the record of a tick of a policy that has no model.
func newPlainTick(atMs, nowMs float64, pools []simcore.PoolState, w *traffic, gpus *gpuClock) Tick {
	in := tickInput{atMs: atMs, nowMs: nowMs, load: true, traffic: w.drain(nowMs / 1000)}
	for _, p := range pools {
		in.pools = append(in.pools, poolInput{ready: p.Ready, starting: p.Starting})
	}
	t := newTick(&in)
	for i, p := range pools {
		t.Pools[i].Draining = p.Draining
	}
	t.GPUHours = gpus.hours(nowMs)
	return t
}
