package planner

import (
	"context"
	"math"
	"sync"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Online is a policy that plans a deployment to which requests come one by one: the autoscaler of a [simcore.Online]. It decides
// as in [Run], and keeps no more of what it did than [Online.State] tells.
type Online struct {
	policy
	run *runner

	mu    sync.Mutex // guards state
	state OnlineState
}

// policy is what a policy that does not know the future is to a simulation.
type policy interface {
	simcore.Autoscaler
	simcore.PassObserver
	simcore.RequestObserver
}

// OnlineState is what a policy knew and wanted at its latest tick, and what it did since the start.
type OnlineState struct {
	// Ticks counts the ticks; before the first one there is nothing else.
	Ticks int64
	// Latest is the latest tick at which something was due. Observed and Predicted are what it looked at last, which may have
	// been at an earlier one: what there is not yet is NaN.
	Latest              Tick
	Observed, Predicted Load
	// LoadReason and ThroughputReason are those of the latest look at the engines and at the traffic; empty before it.
	LoadReason, ThroughputReason string
	// Pools are in the order of [simcore.Config.Stages].
	Pools []OnlinePool
}

// OnlinePool is what a policy did with a pool.
type OnlinePool struct {
	// Name is "agg", "prefill" or "decode".
	Name string
	// Wanted is how many workers the pool shall have, those that start included.
	Wanted int
	// EstimatedTTFTMs and EstimatedITLMs are the greatest estimate of any worker at the latest look at the engines, in ms, and
	// RequestsPerSecond is what a worker was reckoned to serve at the latest look at the traffic; NaN before there are any.
	EstimatedTTFTMs, EstimatedITLMs, RequestsPerSecond float64
	// ScaleUps and ScaleDowns count decisions, Added and Removed workers that were asked for and that are gone, or were given up
	// before they were ready.
	ScaleUps, ScaleDowns, Added, Removed int64
}

// NewOnline returns a policy for a deployment and the configuration of that, which by the rules of old releases differs from the
// given one. Of what the load predictors learn from beforehand, ctx ends the reading. An invalid configuration is a
// [problem.List] as in [Run]; so is a policy that decides nothing, or that has to know the requests beforehand.
func NewOnline(ctx context.Context, cfg simcore.Config, p Config) (*Online, simcore.Config, error) {
	r, cfg, err := newRunner(cfg, p)
	if err != nil {
		return nil, cfg, err
	}
	var l problem.List
	switch r.config.Policy {
	case PolicyStatic:
		l.Add("planner.policy", string(PolicyStatic), "it decides nothing; use %s or %s", PolicyDynamo, PolicyTargetTracking)
	case PolicyForesight:
		l.Add("planner.policy", string(PolicyForesight), "it knows all requests beforehand, and here they come from outside; use %s or %s", PolicyDynamo, PolicyTargetTracking)
	}
	if err := l.Err(); err != nil {
		return nil, cfg, err
	}
	scaler, err := r.begin(ctx)
	if err != nil {
		return nil, cfg, err
	}
	o := &Online{policy: scaler.(policy), run: r}
	unknown := newTick(&tickInput{})
	o.state = OnlineState{Observed: unknown.Observed, Predicted: unknown.Predicted}
	for i, name := range r.record.Pools {
		o.state.Pools = append(o.state.Pools, OnlinePool{
			Name: name, Wanted: r.record.InitialWorkers[i], EstimatedTTFTMs: math.NaN(), EstimatedITLMs: math.NaN(), RequestsPerSecond: math.NaN(),
		})
	}
	return o, cfg, nil
}

// Tick implements [simcore.Autoscaler].
func (o *Online) Tick(nowMs float64, pools []simcore.PoolState) []int {
	targets := o.policy.Tick(nowMs, pools)
	o.mu.Lock()
	defer o.mu.Unlock()
	s, record := &o.state, o.run.record
	s.Ticks++
	for i := range s.Pools {
		if s.Pools[i].Wanted = len(pools[i].Ready) + pools[i].Starting; targets != nil {
			s.Pools[i].Wanted = targets[i]
		}
	}
	for _, d := range record.Decisions {
		if p := &s.Pools[d.Pool]; d.To > d.From {
			p.ScaleUps++
		} else {
			p.ScaleDowns++
		}
	}
	for i := range record.Ticks {
		s.see(&record.Ticks[i])
	}
	record.Ticks, record.Decisions = record.Ticks[:0], record.Decisions[:0]
	return targets
}

// see takes in a tick.
func (s *OnlineState) see(t *Tick) {
	s.Latest = *t
	if !math.IsNaN(t.Observed.DurationSeconds) {
		s.Observed = t.Observed
	}
	if !math.IsNaN(t.Predicted.DurationSeconds) {
		s.Predicted = t.Predicted
	}
	for i := range s.Pools {
		p, now := &s.Pools[i], &t.Pools[i]
		keepLatest(&p.EstimatedTTFTMs, now.EstimatedTTFTMs)
		keepLatest(&p.EstimatedITLMs, now.EstimatedITLMs)
		keepLatest(&p.RequestsPerSecond, now.RequestsPerSecond)
	}
	if t.LoadReason != "" {
		s.LoadReason = t.LoadReason
	}
	if t.ThroughputReason != "" {
		s.ThroughputReason = t.ThroughputReason
	}
}

func keepLatest(kept *float64, now float64) {
	if !math.IsNaN(now) {
		*kept = now
	}
}

// ScalingEvent takes in that a worker comes or goes. It is for [simcore.OnlineOptions].
func (o *Online) ScalingEvent(e simcore.ScalingEvent) {
	o.run.gpus.note(e)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch p := &o.state.Pools[e.Pool]; e.Kind {
	case simcore.WorkerRequested:
		p.Added++
	case simcore.WorkerCancelled, simcore.WorkerRemoved:
		p.Removed++
	}
}

// Policy is what decides.
func (o *Online) Policy() Policy { return o.run.config.Policy }

// State is what it knew and wanted at the latest tick. It may be called while a simulation goes on.
func (o *Online) State() OnlineState {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.state
	s.Pools = append([]OnlinePool(nil), s.Pools...)
	return s
}
