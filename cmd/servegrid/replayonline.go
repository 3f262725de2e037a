package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live/online"
	livereport "github.com/servegrid/servegrid/live/report"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// The modes of a replay.
const (
	modeOffline = "offline"
	modeOnline  = "online"
)

// checkMode returns what is wrong with the mode, and with flags that it does not go with.
func (f *replayFlags) checkMode(given func(flag string) bool) error {
	var problems []error
	switch f.mode {
	case modeOffline:
		if given("online-speedup") {
			problems = append(problems, errors.New("--online-speedup is for --replay-mode online; simulated time is as fast as it can be"))
		}
	case modeOnline:
		if !(f.onlineSpeedup >= 1e-3 && f.onlineSpeedup <= 1e4) {
			problems = append(problems, fmt.Errorf("--online-speedup: %v is not allowed; give 0.001 to 10000", f.onlineSpeedup))
		}
		if given(plannerFlag) {
			problems = append(problems, fmt.Errorf("--%s: --replay-mode online has a fixed number of workers; leave one of them out", plannerFlag))
		}
	default:
		problems = append(problems, fmt.Errorf("--replay-mode: %q is not allowed; use %s, which is simulated time, or %s, which is real time", f.mode, modeOffline, modeOnline))
	}
	return errors.Join(problems...)
}

// simulate runs the point in its mode. An outcome beside an error is that of a run that was interrupted.
func (f *replayFlags) simulate(ctx context.Context, st *state, point *gridspec.Point, w *workload.Workload, opt simcore.Options) (*planner.Outcome, error) {
	if f.mode == modeOffline {
		out, err := planner.Run(ctx, point.Config.Config, point.Config.Planner, w, opt)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	if err := onlineSuits(point, w); err != nil {
		return nil, err
	}
	progress := newLiveProgress(st, false, plannedRequests(point, w))
	progress.begin()
	out, err := online.Run(ctx, point.Config.Config, w, online.Options{Speedup: f.onlineSpeedup, Sent: progress.sent, Ended: progress.ended})
	progress.close()
	if out == nil {
		return nil, err
	}
	if opt.Records != nil {
		for _, record := range out.Records {
			opt.Records(record)
		}
	}
	if out.Interrupted {
		err = errors.Join(err, &exitError{exitInterrupted, errors.New("interrupted; what was measured is written")})
	}
	return &planner.Outcome{Report: out.Report}, err
}

// onlineSuits returns what real time does not have, and under the rules of the reference what that does not have.
func onlineSuits(point *gridspec.Point, w *workload.Workload) error {
	var problems []error
	if point.Config.Planned() {
		problems = append(problems, errors.New("--replay-mode online has a fixed number of workers; leave the planner out"))
	}
	if compat := point.Config.Compat; compat != rules.Default {
		if w.Graph != nil {
			problems = append(problems, fmt.Errorf("--replay-mode online: %s does not replay traces of agents in real time; leave --compat out", compat))
		}
		if point.Config.Deployment.Mode == simcore.ModeDisaggregated {
			problems = append(problems, fmt.Errorf("--replay-mode online: %s has aggregated workers only; leave --compat out", compat))
		}
	}
	return errors.Join(problems...)
}

// onlineText says how well the schedule was kept; empty for a simulation.
func onlineText(report *simcore.Report) string {
	if report.Live == nil {
		return ""
	}
	return (&livereport.Summary{Report: report}).Text()
}
