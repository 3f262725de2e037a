package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/workload"
)

// stuck is an error with a reason of its own, like the simulator's.
type stuck struct{}

func (stuck) Error() string  { return "request 7 can never fit" }
func (stuck) Reason() string { return "dead_end" }

func explode() { panic("boom") }

func TestRunFailures(t *testing.T) {
	boom := func(err error) func(context.Context) (*simcore.Report, error) {
		return func(context.Context) (*simcore.Report, error) { return nil, err }
	}
	var named problem.List
	named.Add("engine.block_size", 3, "give a power of two")
	tests := []struct {
		name     string
		simulate func(context.Context) (*simcore.Report, error)
		reason   string
		message  string // a part of it
	}{
		{"panic", func(context.Context) (*simcore.Report, error) { explode(); return nil, nil }, ReasonPanic, "panic: boom (in github.com/servegrid/servegrid/sweep.explode, run_test.go:"},
		{"nil pointer", func(context.Context) (*simcore.Report, error) { var r *simcore.Report; r.NumRequests++; return r, nil }, ReasonPanic, "sweep.TestRunFailures"},
		{"timeout", func(ctx context.Context) (*simcore.Report, error) { <-ctx.Done(); return nil, ctx.Err() }, ReasonTimeout, "timeout of 30ms"},
		{"invalid", boom(fmt.Errorf("config: %w", named)), ReasonInvalidConfig, "engine.block_size: 3 is not allowed"},
		{"invalid with reason", boom(problem.List{{Path: "a", Allowed: "b", Reason: "model_too_large"}}), "model_too_large", "a: b"},
		{"dead end", boom(fmt.Errorf("worker 0: %w", stuck{})), "dead_end", "request 7 can never fit"},
		{"other", boom(errors.New("odd \xff bytes")), ReasonSimulation, "odd \uFFFD bytes"},
		{"nothing", boom(nil), ReasonSimulation, "no report"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := testOptions(t.TempDir())
			opt.Timeout = 30 * time.Millisecond
			opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
				if job.Point.Config.Deployment.Workers == 2 {
					return tt.simulate(ctx)
				}
				return testSimulate(ctx, job)
			}
			out := mustRun(t, testPoints(3), opt)
			row := out.Rows[1]
			if row.Status != results.StatusFailed || row.Reason != tt.reason || !strings.Contains(row.Error, tt.message) {
				t.Errorf("row = %s %q %q; want failed %q with %q", row.Status, row.Reason, row.Error, tt.reason, tt.message)
			}
			if len(row.Metrics) != len(metricNames()) || !math.IsNaN(row.Metrics[0]) {
				t.Errorf("metrics of a failed row: %v", row.Metrics)
			}
			if want := (Counts{Total: 3, OK: 2, Failed: 1, Simulated: 3}); out.Counts != want {
				t.Errorf("counts = %+v, want %+v", out.Counts, want)
			}
			again := mustRun(t, testPoints(3), opt)
			if diff := sameRows(out.Rows, again.Rows); diff != "" {
				t.Errorf("rows read from the journal differ:\n%s", diff)
			}
			if want := (Counts{Total: 3, OK: 2, Failed: 1, Reused: 3, KeptFailed: 1}); again.Counts != want {
				t.Errorf("counts again = %+v, want %+v", again.Counts, want)
			}
		})
	}
}

func TestRunSkippedAndUnloadable(t *testing.T) {
	points := []gridspec.Point{testPoint(0, 1, 5), testPoint(1, 2, 13), testPoint(2, 3, 5), testPoint(3, 4, 13), testPoint(4, 5, 5)}
	points[2].SkipReason, points[2].SkipMessage = "too_many_gpus", "16 GPUs are not enough"
	points[4].Config.Compat = "dynamo-0.1"
	opt := testOptions(t.TempDir())
	opt.Load = func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
		if s.Synthetic.Requests == 13 {
			return nil, errors.New("trace.jsonl:3: input_length is negative")
		}
		return testLoad(ctx, s, src)
	}
	got := mustRun(t, points, opt)
	type outcome struct{ Status, Reason, Error string }
	var outcomes []outcome
	for _, r := range got.Rows {
		outcomes = append(outcomes, outcome{string(r.Status), r.Reason, r.Error})
	}
	want := []outcome{
		{"ok", "", ""},
		{"failed", ReasonWorkload, "trace.jsonl:3: input_length is negative"},
		{"skipped", "too_many_gpus", "16 GPUs are not enough"},
		{"failed", ReasonWorkload, "trace.jsonl:3: input_length is negative"},
		{"failed", ReasonInvalidConfig, `compat: "dynamo-0.1" is not a rule set; leave it out, or use one of: dynamo-1.3, dynamo-1.2`},
	}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if n := len(mustReadJournal(t, opt.Dir).results); n != 1 {
		t.Errorf("the journal has %d points, want only the simulated one", n)
	}
}

func TestRunNothingLoads(t *testing.T) {
	missing := errors.New("trace.jsonl: no such file")
	opt := testOptions(t.TempDir())
	opt.Load = func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error) { return nil, missing }
	heard := &recorder{}
	opt.Observer = heard
	out, err := Run(t.Context(), []gridspec.Point{testPoint(0, 1, 5), testPoint(1, 1, 6)}, opt)
	if !errors.Is(err, missing) || strings.Count(err.Error(), "no such file") != 1 {
		t.Errorf("err = %v, want the loader's error once", err)
	}
	if len(out.Rows) != 0 || len(heard.finished) != 0 {
		t.Errorf("there are rows: %v, %v", out.Rows, heard.finished)
	}
	if _, err := os.Stat(filepath.Join(opt.Dir, ResultsFile)); err == nil {
		t.Error("a results file was written")
	}
}

func TestLoaderPanic(t *testing.T) {
	opt := testOptions(t.TempDir())
	opt.Load = func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error) { panic("bad trace") }
	_, err := Run(t.Context(), testPoints(1), opt)
	if err == nil || !strings.Contains(err.Error(), "panic: bad trace") {
		t.Errorf("err = %v", err)
	}
}

func TestRowsDoNotDependOnJobs(t *testing.T) {
	points := testPoints(60)
	for i := range points { // two workloads, interleaved, and a pair of equal points
		points[i].Workload = testPoint(0, 1, 3+i%2).Workload
	}
	points[40].Config = points[20].Config
	simulate := func(ctx context.Context, job Job) (*simcore.Report, error) {
		time.Sleep(time.Duration(job.Point.Config.Deployment.Workers*7%5) * time.Millisecond / 4)
		return testSimulate(ctx, job)
	}
	var want []results.Row
	for _, jobs := range []int{1, 2, 8, 64} {
		opt := testOptions(t.TempDir())
		opt.Jobs, opt.Simulate = jobs, simulate
		out := mustRun(t, points, opt)
		if want == nil {
			want = out.Rows
		}
		if diff := sameRows(want, out.Rows); diff != "" {
			t.Errorf("jobs %d (-1 +%d):\n%s", jobs, jobs, diff)
		}
		for i, r := range out.Rows {
			if r.Point.Index != i {
				t.Fatalf("row %d is of point %d", i, r.Point.Index)
			}
		}
		if out.Counts.Simulated != 59 {
			t.Errorf("simulated %d points, want 59: one is equal to another", out.Counts.Simulated)
		}
	}
}

func TestWorkloadsAreLoadedOnceAndReleased(t *testing.T) {
	var points []gridspec.Point
	for i := range 30 {
		points = append(points, testPoint(i, i+1, 2+i%3))
	}
	var mu sync.Mutex
	loaded := map[int]weak.Pointer[workload.Workload]{}
	opt := testOptions(t.TempDir())
	opt.Load = func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
		w, err := testLoad(ctx, s, src)
		mu.Lock()
		defer mu.Unlock()
		if _, twice := loaded[s.Synthetic.Requests]; twice {
			t.Errorf("workload %d is loaded twice", s.Synthetic.Requests)
		}
		loaded[s.Synthetic.Requests] = weak.Make(w)
		return w, err
	}
	opt.Jobs = 1
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		if job.Point.Config.Deployment.Workers == 30 { // the last point: the first workload must be gone
			for range 5 {
				runtime.GC()
			}
			mu.Lock()
			defer mu.Unlock()
			if loaded[2].Value() != nil {
				t.Error("the first workload is still in memory while the last point runs")
			}
		}
		return testSimulate(ctx, job)
	}
	mustRun(t, points, opt)
	if len(loaded) != 3 {
		t.Errorf("%d workloads were loaded, want 3", len(loaded))
	}
}

func TestMemoryLimitsConcurrency(t *testing.T) {
	points := testPoints(24)
	w, _ := testLoad(t.Context(), points[0].Workload, workload.Source{})
	one := pointBytes(points[23].Config, sizeOf(w))
	shared := sizeOf(w).bytes(1)
	for _, tt := range []struct {
		name  string
		limit int64
		most  int64
	}{
		{"too little for one", 1 << 10, 1},
		{"one", shared + one*3/2, 1},
		{"three", shared + one*3, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var running, most atomic.Int64
			opt := testOptions(t.TempDir())
			opt.Jobs, opt.MemoryLimit = 8, tt.limit
			opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
				n := running.Add(1)
				defer running.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(3 * time.Millisecond)
				return testSimulate(ctx, job)
			}
			mustRun(t, points, opt)
			if most.Load() != tt.most {
				t.Errorf("%d points ran at once, want %d", most.Load(), tt.most)
			}
		})
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	opt := testOptions(t.TempDir())
	opt.Jobs = 1 // so that it is known what is finished
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		if job.Point.Config.Deployment.Workers > 10 {
			cancel()
			<-ctx.Done()
			return nil, fmt.Errorf("stopped: %w", ctx.Err())
		}
		return testSimulate(ctx, job)
	}
	start := time.Now()
	out, err := Run(ctx, testPoints(100), opt)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("stopping took %s", took)
	}
	if want := (Counts{Total: 100, OK: 10, Left: 90, Simulated: 10}); !out.Interrupted || out.Counts != want {
		t.Errorf("interrupted %t, counts %+v, want %+v", out.Interrupted, out.Counts, want)
	}
	if file, err := readTestFile(filepath.Join(opt.Dir, ResultsFile)); err != nil || file.Rows != 10 || !out.ResultsWritten {
		t.Errorf("results file: %d rows, %v", file.Rows, err)
	}
	opt.Simulate = testSimulate
	rest := mustRun(t, testPoints(100), opt)
	if want := (Counts{Total: 100, OK: 100, Simulated: 90, Reused: 10}); rest.Interrupted || rest.Counts != want {
		t.Errorf("after resuming: interrupted %t, counts %+v, want %+v", rest.Interrupted, rest.Counts, want)
	}
}

// An interruption before every workload is loaded must not replace a results file by one with fewer rows.
func TestInterruptBeforeEverythingIsKnown(t *testing.T) {
	points := []gridspec.Point{testPoint(0, 1, 5), testPoint(1, 2, 6)}
	opt := testOptions(t.TempDir())
	mustRun(t, points, opt)
	ctx, cancel := context.WithCancel(t.Context())
	opt.Load = func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
		if s.Synthetic.Requests == 6 {
			cancel()
			return nil, ctx.Err()
		}
		return testLoad(ctx, s, src)
	}
	out, err := Run(ctx, points, opt)
	if err != nil || !out.Interrupted || out.ResultsWritten {
		t.Errorf("outcome %+v, %v", out, err)
	}
	if file, err := readTestFile(filepath.Join(opt.Dir, ResultsFile)); err != nil || file.Rows != 2 {
		t.Errorf("results file: %d rows, %v; want the 2 of the first sweep", file.Rows, err)
	}
}

// The defaults are the real simulator and the real workloads.
func TestRealSimulator(t *testing.T) {
	opt := Options{Dir: t.TempDir()}
	points := testPoints(4)
	points[3].Config.Engine.BlockSize = -1
	out := mustRun(t, points, opt)
	for _, row := range out.Rows[:3] {
		if row.Status != results.StatusOK || row.Metrics[0] != 5 || row.WorkloadDigest == "" {
			t.Errorf("row %+v", row)
		}
	}
	if row := out.Rows[3]; row.Reason != ReasonInvalidConfig {
		t.Errorf("an invalid point: %s %s", row.Reason, row.Error)
	}
}

// recorder is an observer that writes down what it hears.
type recorder struct {
	NopObserver
	total    int
	loading  []string
	started  []int
	finished []Finished
	onFinish func(Finished)
}

func (r *recorder) SweepStarted(total int)        { r.total = total }
func (r *recorder) WorkloadLoading(label string)  { r.loading = append(r.loading, label) }
func (r *recorder) PointStarted(p gridspec.Point) { r.started = append(r.started, p.Index) }
func (r *recorder) PointFinished(f Finished) {
	r.finished = append(r.finished, f)
	if r.onFinish != nil {
		r.onFinish(f)
	}
}

func TestObserver(t *testing.T) {
	opt := testOptions(t.TempDir())
	heard := &recorder{}
	heard.onFinish = func(f Finished) {
		if !slices.Contains(heard.started, f.Row.Point.Index) {
			t.Errorf("point %d finished before it started", f.Row.Point.Index)
		}
		if _, ok := mustReadJournal(t, opt.Dir).results[f.Row.ID]; !ok {
			t.Errorf("point %d is reported but not in the journal", f.Row.Point.Index)
		}
	}
	opt.Observer = heard
	mustRun(t, testPoints(20), opt)
	if heard.total != 20 || len(heard.started) != 20 || len(heard.finished) != 20 {
		t.Errorf("total %d, started %d, finished %d", heard.total, len(heard.started), len(heard.finished))
	}
	if diff := cmp.Diff([]string{"synthetic 100/10"}, heard.loading); diff != "" {
		t.Error(diff)
	}
	resumed := &recorder{}
	opt.Observer = resumed
	mustRun(t, testPoints(20), opt)
	if len(resumed.started) != 0 || len(resumed.finished) != 20 || resumed.finished[0].Simulated {
		t.Errorf("resumed: started %v, finished %d", resumed.started, len(resumed.finished))
	}
}

// A blocked observer must not keep finished points from the journal.
func TestSlowObserver(t *testing.T) {
	opt := testOptions(t.TempDir())
	release := make(chan struct{})
	opt.Observer = &recorder{onFinish: func(Finished) { <-release }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = Run(context.Background(), testPoints(50), opt)
	}()
	for deadline := time.Now().Add(2 * time.Second); ; {
		if _, err := os.Stat(journalPath(opt.Dir)); err == nil && len(mustReadJournal(t, opt.Dir).results) == 50 {
			break
		}
		if time.Now().After(deadline) {
			t.Error("the points are not in the journal after 2 seconds")
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	close(release)
	<-done
}

func TestOptionsProblems(t *testing.T) {
	_, err := Run(t.Context(), nil, Options{Jobs: -1, Timeout: -1, MemoryLimit: -1, Retry: "some"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"jobs: -1", "timeout: -1ns", "memory limit: -1", `retry: "some"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	if _, err := Run(t.Context(), nil, Options{}); err == nil || !strings.Contains(err.Error(), "output folder: none is given") {
		t.Errorf("err = %v", err)
	}
}

// TestNothingCompleted checks that a point which completes no request has no latencies: those of 0 ms would be the best.
func TestNothingCompleted(t *testing.T) {
	for _, completed := range []int64{0, 3} {
		for i, v := range metrics.Figures(&metrics.Report{NumRequests: 3, CompletedRequests: completed, RouterQueue: &metrics.Summary{}, Handoff: &metrics.Summary{}, Tiers: &metrics.Tiers{}, AgentX: &metrics.AgentX{}, LatencyParts: &metrics.LatencyParts{QueueMs: 1}}) {
			f := metrics.Fields()[i]
			if f.Sampled && math.IsNaN(v) != (completed == 0) {
				t.Errorf("%s is %v where %d requests are completed", f.Name, v, completed)
			}
		}
	}
}
