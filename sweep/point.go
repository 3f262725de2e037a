package sweep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/problem"
)

// simulatePoint runs one point and returns its row. It returns false when the point was cancelled: an error after
// the sweep was told to stop says nothing about the point, nor does an EnvironmentError, which it returns.
func simulatePoint(ctx context.Context, job Job, simulate func(context.Context, Job) (*simcore.Report, error)) (results.Row, bool, error) {
	pointCtx := ctx
	if job.Timeout > 0 {
		var stop context.CancelFunc
		pointCtx, stop = context.WithTimeout(ctx, job.Timeout)
		defer stop()
	}
	start := time.Now()
	report, err := simulateSafely(pointCtx, job, simulate)
	row := results.Row{ID: job.ID, WallSeconds: time.Since(start).Seconds(), WorkloadDigest: job.Workload.Digest()}
	if err == nil {
		row.Status, row.Metrics = results.StatusOK, metrics.Figures(report)
		return row, true, nil
	}
	if environment := new(EnvironmentError); errors.As(err, &environment) {
		return results.Row{}, false, environment
	}
	if ctx.Err() != nil {
		return results.Row{}, false, nil
	}
	reason, message := classify(err, job.Timeout)
	if lost := new(simcore.LostError); errors.As(err, &lost) {
		row.Status, row.Reason, row.Error, row.Metrics, row.Lost = results.StatusStopped, reason, message, noMetrics(), lost.Bound
		return row, true, nil
	}
	return failedRow(row, reason, message), true, nil
}

func simulateSafely(ctx context.Context, job Job, simulate func(context.Context, Job) (*simcore.Report, error)) (report *simcore.Report, err error) {
	defer func() {
		if v := recover(); v != nil {
			report, err = nil, panicError(describePanic(v))
		}
	}()
	report, err = simulate(ctx, job)
	if err == nil && report == nil {
		err = errors.New("the simulator returned no report")
	}
	return report, err
}

// classify gives an error its stable reason and its message.
func classify(err error, timeout time.Duration) (reason, message string) {
	var (
		panicked panicError
		problems problem.List
		reasoned interface{ Reason() string }
	)
	switch {
	case errors.As(err, &panicked):
		return ReasonPanic, err.Error()
	case timeout > 0 && errors.Is(err, context.DeadlineExceeded):
		return ReasonTimeout, fmt.Sprintf("the simulation did not finish within the timeout of %s; raise it, or make the point smaller", timeout)
	case errors.As(err, &problems):
		for _, p := range problems {
			if p.Reason != "" {
				return p.Reason, err.Error()
			}
		}
		return ReasonInvalidConfig, err.Error()
	case errors.As(err, &reasoned) && reasoned.Reason() != "":
		return reasoned.Reason(), err.Error()
	}
	return ReasonSimulation, err.Error()
}

// failedRow completes a row as a failure. Messages become valid UTF-8, so that they read the same before and
// after the journal.
func failedRow(row results.Row, reason, message string) results.Row {
	row.Status, row.Reason, row.Metrics = results.StatusFailed, reason, noMetrics()
	row.Error = strings.ToValidUTF8(message, "\uFFFD")
	return row
}

// panicError is a recovered panic.
type panicError string

func (e panicError) Error() string { return string(e) }

// describePanic names a recovered value and the function that panicked. It must be called by the deferred function
// that recovered. The file has no folder, so that the message is the same on all machines.
func describePanic(value any) string {
	message := fmt.Sprintf("panic: %v", value)
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if panicking && !inRuntime {
			return fmt.Sprintf("%s (in %s, %s:%d)", message, f.Function, filepath.Base(f.File), f.Line)
		}
		panicking = panicking || f.Function == "runtime.gopanic"
		if !more {
			return message
		}
	}
}
