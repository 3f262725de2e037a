package sweep

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Of two lines of one point in one journal the later counts, unless it says less of the point; whoever reads the journal agrees.
func TestBetterLineOfAJournal(t *testing.T) {
	p := testPoint(0, 1, 5)
	w, err := testLoad(t.Context(), p.Workload, workload.Source{})
	if err != nil {
		t.Fatal(err)
	}
	row := func(status results.Status, reason string, wall float64) results.Row {
		r := results.Row{ID: testID(p, w.Digest()), WorkloadDigest: w.Digest(), Status: status, Reason: reason, WallSeconds: wall, Metrics: noMetrics()}
		if status == results.StatusOK {
			r.Metrics = figures(1)
		}
		if status == results.StatusStopped {
			r.Lost = simcore.Bound{Metric: "p99_ttft_ms", Limit: 5}
		}
		return r
	}
	ok, again := row(results.StatusOK, "", 1), row(results.StatusOK, "", 2)
	timeout, lost := row(results.StatusFailed, ReasonTimeout, 3), row(results.StatusFailed, ReasonWorkerLost, 4)
	stopped, deadEnd := row(results.StatusStopped, ReasonLost, 5), row(results.StatusFailed, "dead_end", 6)
	for name, tt := range map[string]struct{ first, second, want results.Row }{
		"figures, then a timeout":     {ok, timeout, ok},
		"a timeout, then figures":     {timeout, ok, ok},
		"figures twice":               {ok, again, again},
		"two failures":                {timeout, lost, lost},
		"stopped, then lost":          {stopped, lost, stopped},
		"figures, then stopped":       {ok, stopped, ok},
		"stopped, then figures":       {stopped, ok, ok},
		"a dead end, then a timeout":  {deadEnd, timeout, deadEnd},
		"a timeout, then a dead end":  {timeout, deadEnd, deadEnd},
		"a failure, then a dead end":  {lost, deadEnd, deadEnd},
		"a dead end, then figures":    {deadEnd, ok, ok},
		"figures, then figures again": {again, ok, ok},
	} {
		dir := writeJournal(t, filepath.Join(t.TempDir(), "a"), tt.first, tt.second)
		merged, err := Merge(t.Context(), []string{dir}, []gridspec.Point{p}, testOptions(filepath.Join(t.TempDir(), "merged")))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		opt := testOptions(dir)
		j, err := loadJournal(&opt)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kept := j.results[tt.want.ID]
		for reader, rows := range map[string][]results.Row{"a sweep": {kept.row(&p)}, "a merge": merged.Rows} {
			if len(rows) != 1 || rows[0].WallSeconds != tt.want.WallSeconds || rows[0].Reason != tt.want.Reason {
				t.Errorf("%s: %s reads %+v", name, reader, rows)
			}
		}
	}
}

// A result of another simulator version gives way to whatever this one says.
func TestOtherVersionsLineGivesWay(t *testing.T) {
	names := metricNames()
	ok := results.Row{ID: "x", Status: results.StatusOK, Metrics: figures(1)}
	text := append(journalText(t, "0", names, ok), journalText(t, "1", names, failedRow(results.Row{ID: "x"}, ReasonTimeout, ""))...)
	j, err := readJournal(bytes.NewReader(text), names)
	if err != nil || j.results["x"].Reason != ReasonTimeout {
		t.Errorf("%+v, %v", j, err)
	}
}

// A point that runs again and fails for want of time keeps its figures, in this sweep as in the next.
func TestRetryKeepsFigures(t *testing.T) {
	points := testPoints(3)
	opt := testOptions(t.TempDir())
	if _, err := Run(t.Context(), points, opt); err != nil {
		t.Fatal(err)
	}
	opt.Retry = RetryAll
	opt.Simulate = func(context.Context, Job) (*simcore.Report, error) { panic("out of order") }
	for _, retry := range []Retry{RetryAll, RetryNone} {
		opt.Retry = retry
		out, err := Run(t.Context(), points, opt)
		if err != nil || out.Counts.OK != 3 {
			t.Errorf("retry %s: %+v, %v", retry, out.Counts, err)
		}
	}
}

// Rows of points that nobody knows are bounded, and do not keep those that are asked for from coming.
func TestUnaskedRows(t *testing.T) {
	opt := testOptions(t.TempDir())
	l := newLedger(map[string]stored{}, &opt, startNotifier(nil), func() {})
	l.mostUnasked = 5
	defer l.notify.close()
	l.extend(testPoints(2), true)
	taken := 0
	for i := range 100 {
		row := results.Row{ID: fmt.Sprint("stranger ", i), Status: results.StatusFailed, Reason: ReasonTimeout}
		if l.wants(&row) {
			taken++
		}
	}
	if taken != 5 {
		t.Errorf("%d rows of strangers are taken", taken)
	}
	l.claim(0, "ours")
	if !l.wants(&results.Row{ID: "ours", Status: results.StatusOK, Metrics: noMetrics()}) {
		t.Error("a row that is asked for is not taken")
	}
}
