package sweep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// failThird fails every third point.
func failThird(ctx context.Context, job Job) (*simcore.Report, error) {
	if job.Point.Config.Deployment.Workers%3 == 0 {
		return nil, stuck{}
	}
	return testSimulate(ctx, job)
}

func TestResume(t *testing.T) {
	tests := []struct {
		name   string
		points []gridspec.Point
		change func(*Options)
		want   Counts
		plan   [2]int // run, reuse
		left   JournalState
	}{
		{"same spec", testPoints(9), func(*Options) {},
			Counts{Total: 9, OK: 6, Failed: 3, Reused: 9, KeptFailed: 3}, [2]int{0, 9}, JournalState{Points: 9}},
		{"extended", testPoints(12), func(*Options) {},
			Counts{Total: 12, OK: 9, Failed: 3, Simulated: 3, Reused: 9, KeptFailed: 3}, [2]int{3, 9}, JournalState{Points: 9}},
		{"points removed", testPoints(4), func(*Options) {},
			Counts{Total: 4, OK: 3, Failed: 1, Reused: 4, KeptFailed: 1}, [2]int{0, 4}, JournalState{Points: 9, Unused: 5}},
		{"reordered", []gridspec.Point{testPoint(0, 8, 5), testPoint(1, 11, 5), testPoint(2, 1, 5)}, func(*Options) {},
			Counts{Total: 3, OK: 3, Simulated: 1, Reused: 2}, [2]int{1, 2}, JournalState{Points: 9, Unused: 7}},
		{"other requests", []gridspec.Point{testPoint(0, 1, 6), testPoint(1, 2, 5)}, func(*Options) {},
			Counts{Total: 2, OK: 2, Simulated: 1, Reused: 1}, [2]int{1, 1}, JournalState{Points: 9, Unused: 8}},
		{"retry failed", testPoints(9), func(o *Options) { o.Retry = RetryFailed },
			Counts{Total: 9, OK: 9, Simulated: 3, Reused: 6}, [2]int{3, 6}, JournalState{Points: 9}},
		{"retry all", testPoints(9), func(o *Options) { o.Retry = RetryAll },
			Counts{Total: 9, OK: 9, Simulated: 9}, [2]int{9, 0}, JournalState{Points: 9}},
		{"fresh", testPoints(9), func(o *Options) { o.Fresh = true },
			Counts{Total: 9, OK: 9, Simulated: 9}, [2]int{9, 0}, JournalState{SetAside: []string{"results.1.parquet", "journal.1.jsonl"}}},
		{"other simulator", testPoints(9), func(o *Options) { o.semanticVersion = "2" },
			Counts{Total: 9, OK: 9, Simulated: 9}, [2]int{9, 0}, JournalState{Points: 9, OtherVersions: 9, Versions: []string{"1"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := testOptions(t.TempDir())
			opt.semanticVersion = "1"
			opt.Simulate = failThird
			mustRun(t, testPoints(9), opt)
			opt.Simulate = testSimulate
			tt.change(&opt)
			plan, err := Plan(t.Context(), tt.points, opt)
			if err != nil {
				t.Fatal(err)
			}
			if got := [2]int{plan.Run, plan.Reuse}; got != tt.plan {
				t.Errorf("plan: run, reuse = %v, want %v", got, tt.plan)
			}
			out := mustRun(t, tt.points, opt)
			if out.Counts != tt.want {
				t.Errorf("counts\n%+v, want\n%+v", out.Counts, tt.want)
			}
			tt.left.Path = journalPath(opt.Dir)
			if diff := cmp.Diff(tt.left, out.Journal); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
			if file, err := readTestFile(filepath.Join(opt.Dir, ResultsFile)); err != nil || !cmp.Equal(file.IDs, rowIDs(out.Rows)) {
				t.Errorf("the results file does not hold the rows: %v", err)
			}
			for i, row := range out.Rows {
				if !cmp.Equal(*row.Point, tt.points[i]) {
					t.Errorf("row %d has another point", i)
				}
			}
			// Removed points stay in the journal: the first spec finds all of its own again.
			if back := mustRun(t, testPoints(9), opt); !opt.Fresh && opt.Retry != RetryAll && back.Counts.Reused != 9 {
				t.Errorf("the first spec again: %+v", back.Counts)
			}
		})
	}
}

// Points that are to run again keep their older rows when the sweep is interrupted before they do.
func TestInterruptedRetryKeepsOlderRows(t *testing.T) {
	opt := testOptions(t.TempDir())
	first := mustRun(t, testPoints(20), opt)
	ctx, cancel := context.WithCancel(t.Context())
	opt.Retry, opt.Jobs = RetryAll, 1
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		if job.Point.Config.Deployment.Workers == 5 {
			cancel()
			return nil, ctx.Err()
		}
		return testSimulate(ctx, job)
	}
	out, err := Run(ctx, testPoints(20), opt)
	if err != nil || !out.Interrupted || out.Counts.Simulated != 4 || out.Counts.Reused != 16 {
		t.Errorf("counts %+v, %v", out.Counts, err)
	}
	if diff := sameRows(first.Rows, out.Rows); diff != "" {
		t.Error(diff)
	}
}

// A torn last line is cut off, and what is appended afterwards is readable.
func TestResumeAfterTornLine(t *testing.T) {
	opt := testOptions(t.TempDir())
	want := mustRun(t, testPoints(10), opt).Rows
	text, err := os.ReadFile(journalPath(opt.Dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 20, 900} {
		if err := os.WriteFile(journalPath(opt.Dir), text[:len(text)-cut], 0o666); err != nil {
			t.Fatal(err)
		}
		out := mustRun(t, testPoints(10), opt)
		if out.Counts.Simulated < 1 || out.Journal.Damaged != 0 {
			t.Errorf("cut %d: counts %+v, damaged %d", cut, out.Counts, out.Journal.Damaged)
		}
		if diff := sameRows(want, out.Rows); diff != "" {
			t.Error(diff)
		}
		if again := mustRun(t, testPoints(10), opt); again.Counts.Simulated != 0 {
			t.Errorf("cut %d: %d points ran again", cut, again.Counts.Simulated)
		}
	}
}

// Whatever was interrupted, edited and resumed before, the rows are those of a straight run.
func TestAnyHistoryGivesTheSameRows(t *testing.T) {
	spec := rapid.Custom(func(t *rapid.T) []gridspec.Point {
		var points []gridspec.Point
		for i, x := range rapid.SliceOfN(rapid.IntRange(0, 39), 1, 15).Draw(t, "points") {
			points = append(points, testPoint(i, 1+x/2, 3+x%2))
			if x%10 == 7 {
				points[i].SkipReason = "impossible"
			}
		}
		return points
	})
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "history")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var points []gridspec.Point
		for range rapid.IntRange(1, 3).Draw(rt, "sessions") {
			points = spec.Draw(rt, "spec")
			stopAfter := rapid.IntRange(0, 20).Draw(rt, "stop after")
			runAndStop(rt, points, dir, rapid.IntRange(1, 4).Draw(rt, "jobs"), stopAfter)
		}
		opt := testOptions(dir)
		opt.Simulate = failThird
		got, err := Run(context.Background(), points, opt)
		if err != nil {
			rt.Fatal(err)
		}
		straight := testOptions(filepath.Join(dir, "straight"))
		straight.Jobs, straight.Simulate = 1, failThird
		want, err := Run(context.Background(), points, straight)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := sameRows(want.Rows, got.Rows); diff != "" {
			rt.Errorf("rows differ from those of a straight run:\n%s", diff)
		}
	})
}

// runAndStop cancels a sweep when it begins its point number stopAfter.
func runAndStop(t *rapid.T, points []gridspec.Point, dir string, jobs, stopAfter int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opt := testOptions(dir)
	opt.Jobs = jobs
	var mu sync.Mutex
	started := 0
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		mu.Lock()
		if started++; started > stopAfter {
			cancel()
		}
		mu.Unlock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return failThird(ctx, job)
	}
	out, err := Run(ctx, points, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Rows)+out.Counts.Left != len(points) {
		t.Fatalf("%d rows and %d left of %d", len(out.Rows), out.Counts.Left, len(points))
	}
	for _, row := range out.Rows {
		if row.Status == results.StatusFailed && row.Reason != "dead_end" {
			t.Fatalf("an interruption became a failure: %s %s", row.Reason, row.Error)
		}
	}
}

func TestPlanSaysWhy(t *testing.T) {
	opt := testOptions(t.TempDir())
	opt.Simulate = failThird
	mustRun(t, testPoints(3), opt)
	points := append(testPoints(4), testPoint(4, 4, 5), testPoint(5, 9, 13), testPoint(6, 9, 5))
	points[6].SkipReason, points[6].SkipMessage = "too_many_gpus", "9 workers on 8 GPUs"
	opt.Load = func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
		if s.Synthetic.Requests == 13 {
			return nil, errors.New("x.jsonl is empty")
		}
		return testLoad(ctx, s, src)
	}
	before, err := os.ReadFile(journalPath(opt.Dir))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Plan(t.Context(), points, opt)
	if err != nil {
		t.Fatal(err)
	}
	var got [][2]string
	for _, p := range plan.Points {
		got = append(got, [2]string{string(p.Action), p.Why})
	}
	want := [][2]string{
		{"reuse", "it has a result"},
		{"reuse", "it has a result"},
		{"reuse", "it failed before (dead_end); retry failed points to run it again"},
		{"run", "it is new"},
		{"reuse", "it is equal to point 3"},
		{"fail", "x.jsonl is empty"},
		{"skip", "too_many_gpus: 9 workers on 8 GPUs"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if after, _ := os.ReadFile(journalPath(opt.Dir)); !cmp.Equal(before, after) {
		t.Error("a plan changed the journal")
	}
	opt.Retry = RetryFailed
	if plan, err = Plan(t.Context(), points, opt); err != nil || plan.Points[2].Why != "it failed before (dead_end) and runs again" {
		t.Errorf("retry: %q, %v", plan.Points[2].Why, err)
	}
	opt.Dir = filepath.Join(opt.Dir, "new")
	if plan, err = Plan(t.Context(), testPoints(2), opt); err != nil || plan.Run != 2 {
		t.Errorf("new folder: %d, %v", plan.Run, err)
	}
	if _, err := os.Stat(opt.Dir); err == nil {
		t.Error("a plan made the folder")
	}
}
