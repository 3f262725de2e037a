package sweep

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
)

// pointsUnder returns n points whose p99 TTFT is 1000, 500, 333 … ms, under a bound on it. The bound does not count in
// their IDs.
func pointsUnder(n int, ttftMs float64) []gridspec.Point {
	points := testPoints(n)
	for i := range points {
		points[i].Config.SLA.TTFTMs = ttftMs
	}
	return points
}

// stopping simulates such points and heeds the bounds; simulated counts the calls.
func stopping(simulated *atomic.Int64) func(context.Context, Job) (*simcore.Report, error) {
	return func(ctx context.Context, job Job) (*simcore.Report, error) {
		simulated.Add(1)
		report, err := testSimulate(ctx, job)
		if err != nil {
			return nil, err
		}
		report.CompletedRequests = 1
		report.TTFT.P99 = 1000 / float64(job.Point.Config.Deployment.Workers)
		for _, b := range job.Bounds {
			if b.Metric == "p99_ttft_ms" && report.TTFT.P99 > b.Limit {
				return nil, &simcore.LostError{Bound: b, TimeMs: 12, Beyond: 3, Requests: 5}
			}
		}
		return report, nil
	}
}

// TestStoppedPoints runs sweeps with and without early stops one after another in one folder: what was stopped stands as
// long as the SLA is no looser, and runs to its end in a sweep that asks for that.
func TestStoppedPoints(t *testing.T) {
	dir := t.TempDir()
	steps := []struct {
		name      string
		ttftMs    float64
		stop      bool
		simulated int64
		counts    Counts
	}{
		{"stops", 300, true, 6, Counts{Total: 6, OK: 3, Stopped: 3, Simulated: 6}},
		{"again", 300, true, 0, Counts{Total: 6, OK: 3, Stopped: 3, Reused: 6}},
		{"tighter", 200, true, 0, Counts{Total: 6, OK: 3, Stopped: 3, Reused: 6}},
		{"looser", 400, true, 3, Counts{Total: 6, OK: 4, Stopped: 2, Simulated: 3, Reused: 3}},
		{"without a bound", 0, true, 2, Counts{Total: 6, OK: 6, Simulated: 2, Reused: 4}},
		{"whole results stand", 300, true, 0, Counts{Total: 6, OK: 6, Reused: 6}},
	}
	for _, s := range steps {
		var simulated atomic.Int64
		opt := testOptions(dir)
		opt.StopLost, opt.Simulate = s.stop, stopping(&simulated)
		points := pointsUnder(6, s.ttftMs)
		plan, err := Plan(t.Context(), points, opt)
		if err != nil {
			t.Fatal(err)
		}
		out := mustRun(t, points, opt)
		if out.Counts != s.counts || simulated.Load() != s.simulated || int64(plan.Run) != s.simulated {
			t.Errorf("%s: %d simulated, %d planned, counts %+v; want %d, %+v", s.name, simulated.Load(), plan.Run, out.Counts, s.simulated, s.counts)
		}
		if again := mustRun(t, points, opt); sameRows(out.Rows, again.Rows) != "" {
			t.Errorf("%s, run again: %s", s.name, sameRows(out.Rows, again.Rows))
		}
	}
}

// TestStoppedRowsRunToTheirEnd checks that a sweep without early stops simulates what another one stopped.
func TestStoppedRowsRunToTheirEnd(t *testing.T) {
	dir := t.TempDir()
	var simulated atomic.Int64
	opt := testOptions(dir)
	opt.StopLost, opt.Simulate = true, stopping(&simulated)
	points := pointsUnder(4, 300)
	out := mustRun(t, points, opt)
	row := out.Rows[0]
	if row.Status != results.StatusStopped || row.Reason != ReasonLost || !strings.Contains(row.Error, "p99_ttft_ms <= 300") {
		t.Errorf("row %s, %s: %s", row.Status, row.Reason, row.Error)
	}
	if out.Rows[3].Status != results.StatusOK {
		t.Errorf("a point within the bound is %s", out.Rows[3].Status)
	}
	opt.StopLost = false
	if plan, err := Plan(t.Context(), points, opt); err != nil || plan.Run != 3 || !strings.Contains(plan.Points[0].Why, "to its end") {
		t.Errorf("plan %+v, %v", plan, err)
	}
	opt.Dir = t.TempDir()
	fresh := mustRun(t, points, opt)
	opt.Dir = dir
	if diff := sameRows(fresh.Rows, mustRun(t, points, opt).Rows); diff != "" {
		t.Errorf("(-never stopped +stopped before)\n%s", diff)
	}
}
