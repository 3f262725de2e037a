package sweep

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// fakeWorkers simulate what they are given and deliver it late, in any order and some of it twice.
type fakeWorkers struct {
	mu        sync.Mutex
	random    *rand.Rand
	submitted []string
	kept      int
	finished  []results.Row
	wake      chan struct{}
	// alter changes a row before a second delivery, submitErr refuses a point.
	alter     func(*results.Row)
	submitErr error
}

func newFakeWorkers(seed uint64) *fakeWorkers {
	return &fakeWorkers{random: rand.New(rand.NewPCG(seed, 1)), wake: make(chan struct{}, 1)}
}

func (f *fakeWorkers) Submit(ctx context.Context, job Job) error {
	if f.submitErr != nil {
		return f.submitErr
	}
	row, err := Simulate(ctx, job, testSimulate)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submitted = append(f.submitted, job.ID)
	f.finish(row)
	return nil
}

func (f *fakeWorkers) finish(row results.Row) {
	f.finished = append(f.finished, row)
	signal(f.wake)
}

func (f *fakeWorkers) Receive(ctx context.Context) (Delivery, error) {
	select {
	case <-ctx.Done():
		return Delivery{}, ctx.Err()
	case <-f.wake:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.finished) == 0 { // taken together with what was there before
		return Delivery{Kept: func() {}}, nil
	}
	f.random.Shuffle(len(f.finished), func(i, j int) { f.finished[i], f.finished[j] = f.finished[j], f.finished[i] })
	n := f.random.IntN(len(f.finished)) + 1
	rows := slices.Clone(f.finished[:n])
	f.finished = f.finished[n:]
	if f.random.IntN(2) == 0 {
		again := rows[0]
		if f.alter != nil {
			again.Metrics = slices.Clone(again.Metrics)
			f.alter(&again)
		}
		f.finished = append(f.finished, again)
	}
	if len(f.finished) > 0 {
		signal(f.wake)
	}
	return Delivery{Rows: rows, Kept: func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.kept += n
	}}, nil
}

// An executor gives what the pool gives, whatever the order of deliveries.
func TestExecutor(t *testing.T) {
	points := append(testPoints(60), testPoint(60, 3, 5), testPoint(61, 4, 9)) // one is equal to another
	want := mustRun(t, points, testOptions(t.TempDir()))
	for seed := range uint64(4) {
		f := newFakeWorkers(seed)
		opt := testOptions(t.TempDir())
		opt.Executor = f
		out := mustRun(t, points, opt)
		if diff := sameRows(want.Rows, out.Rows); diff != "" {
			t.Fatalf("seed %d (-pool +executor):\n%s", seed, diff)
		}
		if len(f.submitted) != 61 || out.Counts.Simulated != 61 || len(out.Conflicts) > 0 {
			t.Fatalf("seed %d: %d submitted, counts %+v, conflicts %v", seed, len(f.submitted), out.Counts, out.Conflicts)
		}
		again := newFakeWorkers(seed)
		opt.Executor = again
		if out := mustRun(t, points, opt); len(again.submitted) != 0 || out.Counts.Simulated != 0 {
			t.Fatalf("a resumed sweep submitted %d points", len(again.submitted))
		}
	}
}

// What an earlier session left is taken in, and not simulated again.
func TestExecutorEarlierRows(t *testing.T) {
	points := append(testPoints(20), testPoint(20, 1, 7)) // the last one has another workload
	opt := testOptions(t.TempDir())
	earlier := mustRun(t, points, testOptions(t.TempDir()))
	f := newFakeWorkers(1)
	for _, i := range []int{3, 20} {
		f.finish(earlier.Rows[i])
	}
	opt.Executor = &patientWorkers{f, 2}
	out := mustRun(t, points, opt)
	if diff := sameRows(earlier.Rows, out.Rows); diff != "" {
		t.Fatalf("(-pool +executor):\n%s", diff)
	}
	if slices.Contains(f.submitted, earlier.Rows[20].ID) || len(f.submitted) < 19 || len(f.submitted) > 20 {
		t.Errorf("%d points were submitted", len(f.submitted))
	}
}

// patientWorkers take nothing before so many rows of earlier sessions are kept.
type patientWorkers struct {
	*fakeWorkers
	earlier int
}

func (p *patientWorkers) Submit(ctx context.Context, job Job) error {
	for {
		p.mu.Lock()
		kept := p.kept
		p.mu.Unlock()
		if kept >= p.earlier {
			return p.fakeWorkers.Submit(ctx, job)
		}
		time.Sleep(time.Millisecond)
	}
}

// Two results of one point that differ are told, and the first one stays.
func TestExecutorConflict(t *testing.T) {
	f := newFakeWorkers(1)
	f.alter = func(row *results.Row) { row.Metrics[0]++ }
	opt := testOptions(t.TempDir())
	opt.Executor = f
	out := mustRun(t, testPoints(50), opt)
	if len(out.Conflicts) == 0 {
		t.Fatal("no conflict was found")
	}
	want := mustRun(t, testPoints(50), testOptions(t.TempDir()))
	if diff := sameRows(want.Rows, out.Rows); diff != "" {
		t.Errorf("the first result did not stay:\n%s", diff)
	}
}

// A result that comes again is the same one, although the row that is there has what its point costs.
func TestAgainOnPricedGPUs(t *testing.T) {
	points := testPoints(1)
	points[0].GPUPrice = metrics.GPUPrice{USDPerHour: 2, TDPWatts: 700}
	opt := testOptions(t.TempDir())
	l := newLedger(map[string]stored{}, &opt, startNotifier(NopObserver{}), func() {})
	defer l.notify.close()
	l.extend(points, true)
	report := metrics.Report{GPUHours: 3, TotalInputTokens: 5, TotalOutputTokens: 7}
	row := results.Row{ID: "x", Status: results.StatusOK, Metrics: metrics.Figures(&report)}
	if !l.claim(0, row.ID) || !l.wants(&row) {
		t.Fatal("the row is not wanted")
	}
	l.durable([]results.Row{row})
	if l.wants(&row) || len(l.conflicts) > 0 {
		t.Errorf("the same row is news, or another one: %v", l.conflicts)
	}
	if cost := l.snapshot()[0].Metrics[slices.Index(metricNames(), "cost_usd")]; cost != 6 {
		t.Errorf("the point costs %g USD", cost)
	}
	other := row
	other.Metrics = slices.Clone(row.Metrics)
	other.Metrics[0]++
	if l.wants(&other) || len(l.conflicts) != 1 {
		t.Error("another row is the same one")
	}
}

// A failure of a machine gives way to the result that another one finds, whenever that comes.
func TestExecutorBetterResult(t *testing.T) {
	points := append(testPoints(30), testPoint(30, 2, 5)) // the last one is equal to another
	want := mustRun(t, points, testOptions(t.TempDir()))
	for seed := range uint64(6) {
		opt := testOptions(t.TempDir())
		f := newFakeWorkers(seed)
		opt.Executor = failFirst{f}
		out := mustRun(t, points, opt)
		if diff := sameRows(want.Rows, out.Rows); diff != "" || len(out.Conflicts) > 0 {
			t.Fatalf("seed %d: conflicts %v (-pool +executor):\n%s", seed, out.Conflicts, diff)
		}
	}
}

// failFirst delivers a failure of each point with its result, the last point's excepted, which comes at the end.
type failFirst struct{ *fakeWorkers }

func (f failFirst) Receive(ctx context.Context) (Delivery, error) {
	for {
		f.mu.Lock()
		n := len(f.submitted)
		f.mu.Unlock()
		if n == 30 {
			break
		}
		select {
		case <-ctx.Done():
			return Delivery{}, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.finished) == 0 {
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return Delivery{}, ctx.Err()
	}
	// All failures, then all results but one; the results of those that failed are late.
	row := f.finished[0]
	rows := f.finished[:1]
	if f.kept < len(f.submitted)-1 {
		rows = []results.Row{FailedRow(f.submitted[f.kept], row.WorkloadDigest, ReasonWorkerLost, "gone")}
	} else {
		f.finished = f.finished[1:]
	}
	f.kept++
	return Delivery{Rows: slices.Clone(rows), Kept: func() {}}, nil
}

// An executor that fails ends the sweep with what it has.
func TestExecutorErrors(t *testing.T) {
	f := newFakeWorkers(1)
	f.submitErr = errors.New("the queue is gone")
	opt := testOptions(t.TempDir())
	opt.Executor = f
	if _, err := Run(t.Context(), testPoints(3), opt); err == nil || !strings.Contains(err.Error(), "the queue is gone") {
		t.Errorf("error %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	opt.Executor = stopper{stop}
	out, err := Run(ctx, testPoints(3), opt)
	if err != nil || !out.Interrupted {
		t.Errorf("interrupted: %v, error %v", out.Interrupted, err)
	}
}

// stopper stops the sweep with the first point.
type stopper struct{ stop context.CancelFunc }

func (s stopper) Submit(context.Context, Job) error { s.stop(); return nil }

func (s stopper) Receive(ctx context.Context) (Delivery, error) {
	<-ctx.Done()
	return Delivery{}, ctx.Err()
}

// Rows survive the way through their lines, and damage is noticed.
func TestEncodeRows(t *testing.T) {
	rows := mustRun(t, testPoints(5), testOptions(t.TempDir())).Rows
	for i := range rows {
		rows[i].Point = nil
	}
	lines, err := EncodeRows(rows)
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeRows(lines, simcore.SemanticVersion)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b results.Row) int { return strings.Compare(a.ID, b.ID) })
	if diff := sameRows(rows, back); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	for cut := 0; cut < len(lines); cut += 17 {
		if cut > 0 && lines[cut-1] == '\n' {
			continue // whole lines
		}
		if _, err := decodeRows(lines[:cut], simcore.SemanticVersion); err == nil {
			t.Fatalf("%d of %d bytes were taken", cut, len(lines))
		}
	}
	if _, err := decodeRows(lines, "another"); err == nil {
		t.Error("rows of another simulator were taken")
	}
}
