// Package online replays a workload through a simulated deployment in real time, in this process: requests are sent when the clock
// says so, and what they wait for is told when it has come. It is what an endpoint would do, without HTTP in between, and without
// what a busy machine does to the times: simulated time stands still until what is due has been sent, so that the requests fare as
// in a simulation without a clock.
//
// Read run.go for a run and its report, target.go for what a request is to the deployment.
package online

import (
	"context"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/live/replay"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Options say how time passes, and who hears of it.
type Options struct {
	// Speedup is how many simulated ms pass in a real one; 0 means 1.
	Speedup float64
	// Began hears when the clock starts; Sent and Ended of each request, from one goroutine. The record is valid during the call.
	Began       func(time.Time)
	Sent, Ended func(*live.Record)
}

// Outcome is what a run came to.
type Outcome struct {
	// Report has the figures that a simulation's has, but for those of what the engine does inside.
	Report *simcore.Report
	// Records are the simulated lives of all requests that were sent, in the order in which they were to be sent, with times in
	// simulated ms since the run began.
	Records []simcore.RequestRecord
	// Lateness is how long after their time events were told, in real time.
	Lateness realtime.Lateness
	// Interrupted says that the run was ended before its time.
	Interrupted bool
}

// mostRequests bounds how many requests the deployment holds at once.
const mostRequests = 1 << 18

// Run replays a workload under the load of a resolved configuration. When ctx is done what is under way is given up, and the run
// so far is returned. Errors: a configuration that real time does not suit, or that is invalid, is a [problem.List]; the load
// does not suit the workload.
func Run(ctx context.Context, cfg simcore.Config, w *workload.Workload, opt Options) (*Outcome, error) {
	if err := check(cfg); err != nil {
		return nil, err
	}
	if opt.Speedup == 0 {
		opt.Speedup = 1
	}
	served := cfg
	served.AgentX = simcore.DefaultAgentX() // the scenario is about who sends requests
	deployment, err := realtime.Prepare(served, realtime.Options{
		Speedup: opt.Speedup, MaxRequests: max(1, min(2*w.Requests(), mostRequests)), Led: true,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = deployment.Close() }()
	to := newTarget(deployment, w)
	run, err := replay.Run(ctx, replay.Options{
		Target: to, Config: cfg, Workload: w, Blocks: true, ClockRate: opt.Speedup, Sent: opt.Sent, Ended: opt.Ended,
		Began: func(started time.Time) {
			deployment.Start(started)
			if opt.Began != nil {
				opt.Began(started)
			}
		},
	})
	if run == nil {
		return nil, err
	}
	out, sumErr := summarise(cfg, w, run, to)
	if sumErr != nil {
		return nil, sumErr
	}
	return out, err
}

// check refuses what has no meaning in real time.
func check(cfg simcore.Config) error {
	var l problem.List
	if cfg.Load.MaxSimTimeSeconds > 0 {
		l.Add("load.max_sim_time_seconds", cfg.Load.MaxSimTimeSeconds, "in real time Ctrl-C ends the run, which reports what it measured; leave it out")
	}
	return l.Err()
}

// summarise describes the requests by their simulated lives, and sums them up.
func summarise(cfg simcore.Config, w *workload.Workload, run *live.Run, to *target) (*Outcome, error) {
	snapshot := to.deployment.Snapshot()
	m := simcore.Measured{
		Gaps: run.Gaps, Scenario: run.Scenario,
		Live: metrics.Live{PlannedRequests: int64(run.Planned), KnowsDeployment: true, KnowsReuse: true, KnowsGaps: run.Gaps != nil, KnowsPreemptions: true},
	}
	out := &Outcome{Lateness: snapshot.Lateness, Interrupted: run.Interrupted}
	for i := range run.Records {
		q := measured(w, &run.Records[i], to.records[run.Records[i].Call.Number])
		q.Play = run.Play(&run.Records[i])
		m.Requests, out.Records = append(m.Requests, q), append(out.Records, q.RequestRecord)
		m.EndMs = max(m.EndMs, run.Records[i].EndMs)
	}
	var err error
	if out.Report, err = simcore.Summarise(cfg, w, m); err != nil {
		return nil, err
	}
	for i := range snapshot.Workers {
		out.Report.Preemptions += snapshot.Workers[i].Preemptions
	}
	out.Report.SimulatorVersion = simcore.SemanticVersion
	return out, nil
}

// measured is a request with its simulated life, which is nil when it never came to the deployment.
func measured(w *workload.Workload, r *live.Record, life *simcore.RequestRecord) simcore.MeasuredRequest {
	q := simcore.MeasuredRequest{Number: r.Call.Number, Cancelled: r.Cancelled}
	if life == nil {
		q.Life = engine.Request{
			Input: int32(r.Call.Input), Output: int32(r.Call.Output), Worker: -1, State: engine.Failed, ArrivalMs: r.SentMs, RoutedMs: engine.Never,
			AdmittedMs: engine.Never, FirstTokenMs: engine.Never, SecondTokenMs: engine.Never, LastTokenMs: engine.Never,
		}
	} else {
		q.RequestRecord = *life
	}
	q.LagMs = max(0, r.SentMs-r.ScheduledMs)
	q.Request, q.Turn, q.WarmUp = r.Call.Request, r.Call.Turn, r.Phase == live.PhaseWarmUp
	q.Session = w.SessionOf(r.Call.Request)
	q.Life.Number = int32(r.Call.Request)
	return q
}
