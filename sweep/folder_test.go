package sweep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestFolderRefused(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string) Options
		parts   []string
	}{
		{"a file", func(t *testing.T, dir string) Options {
			path := filepath.Join(dir, "file")
			write(t, path, "")
			return testOptions(path)
		}, []string{"file is a file"}},
		{"below a file", func(t *testing.T, dir string) Options {
			path := filepath.Join(dir, "file")
			write(t, path, "")
			return testOptions(filepath.Join(path, "out"))
		}, []string{"not a directory"}},
		{"other files", func(t *testing.T, dir string) Options {
			for _, name := range []string{"a", "b", "c", "d", "spec.yaml"} {
				write(t, filepath.Join(dir, name), "")
			}
			opt := testOptions(dir)
			opt.Companions = []string{"spec.yaml"}
			return opt
		}, []string{"holds other files (a, b, c and 2 more)", "no journal.jsonl"}},
		{"results without a journal", func(t *testing.T, dir string) Options {
			write(t, filepath.Join(dir, ResultsFile), "")
			return testOptions(dir)
		}, []string{"holds other files (results.parquet)"}},
		{"a journal of something else", func(t *testing.T, dir string) Options {
			write(t, journalPath(dir), "2024-01-01 started\n")
			return testOptions(dir)
		}, []string{"journal.jsonl cannot be read", "not the journal of a sweep"}},
		{"another sweep", func(t *testing.T, dir string) Options {
			opt := testOptions(dir)
			opt.Name = "h200"
			mustRun(t, testPoints(3), opt)
			opt.Name = "b200"
			return opt
		}, []string{`another sweep, "h200", with 3 points`, `this one is "b200"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := tt.prepare(t, t.TempDir())
			_, err := Run(t.Context(), testPoints(3), opt)
			_, planErr := Plan(t.Context(), testPoints(3), opt)
			for call, err := range map[string]error{"Run": err, "Plan": planErr} {
				if err == nil {
					t.Fatalf("%s: no error", call)
				}
				for _, part := range tt.parts {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %q lacks %q", call, err, part)
					}
				}
			}
		})
	}
}

func TestReadOnlyFolder(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("permissions do not bind this user")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "out")} {
		if _, err := Run(t.Context(), testPoints(1), testOptions(path)); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: err = %v", path, err)
		}
	}
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	opt := testOptions(dir)
	checked := false
	opt.Jobs = 1
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		if !checked {
			checked = true
			_, err := Run(ctx, testPoints(3), testOptions(dir))
			if err == nil || !strings.Contains(err.Error(), "in use by another sweep (process "+strconv.Itoa(os.Getpid())+")") {
				t.Errorf("second sweep: err = %v", err)
			}
			if _, err := Plan(ctx, testPoints(3), testOptions(dir)); err != nil {
				t.Errorf("a plan needs no lock: %v", err)
			}
		}
		return testSimulate(ctx, job)
	}
	if out := mustRun(t, testPoints(3), opt); !checked || out.Counts.OK != 3 {
		t.Errorf("counts %+v", out.Counts)
	}
	mustRun(t, testPoints(3), testOptions(dir)) // the lock is free again
}

func TestFresh(t *testing.T) {
	opt := testOptions(t.TempDir())
	first := mustRun(t, testPoints(3), opt)
	if len(first.Journal.SetAside) != 0 {
		t.Errorf("set aside: %v", first.Journal.SetAside)
	}
	opt.Fresh = true
	for n := 1; n <= 2; n++ {
		plan, err := Plan(t.Context(), testPoints(3), opt)
		if err != nil || plan.Run != 3 {
			t.Errorf("plan: %d to run, %v", plan.Run, err)
		}
		out := mustRun(t, testPoints(3), opt)
		names := []string{"results." + strconv.Itoa(n) + ".parquet", "journal." + strconv.Itoa(n) + ".jsonl"}
		if diff := cmp.Diff(names, out.Journal.SetAside); diff != "" || out.Counts.Simulated != 3 {
			t.Errorf("simulated %d, set aside (-want +got):\n%s", out.Counts.Simulated, diff)
		}
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(opt.Dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
}

// Hidden files and what a kill leaves do not make a folder somebody else's; a file of the caller's name does, since
// without a journal it may be the user's. A fresh start takes a folder that holds nothing else.
func TestFolderWithCompanions(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".gitkeep", JournalFile + tmpSuffix, ".report.html.tmp-123"} {
		write(t, filepath.Join(dir, name), "")
	}
	opt := testOptions(filepath.Join(dir, "."))
	opt.Companions = []string{"spec.yaml"}
	mustRun(t, testPoints(1), opt)
	if _, err := os.Stat(filepath.Join(dir, ".report.html.tmp-123")); err == nil {
		t.Error("what a killed sweep left is still there")
	}

	if err := os.Remove(journalPath(dir)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "spec.yaml"), "")
	if _, err := Run(t.Context(), testPoints(1), opt); err == nil || !strings.Contains(err.Error(), "results.parquet, spec.yaml") {
		t.Errorf("err = %v", err)
	}
	opt.Fresh = true
	if out := mustRun(t, testPoints(1), opt); !slices.Contains(out.Journal.SetAside, "results.1.parquet") {
		t.Errorf("set aside: %v", out.Journal.SetAside)
	}
}

// A journal that is gone or cut while the sweep runs is not reported as safe.
func TestJournalTakenAway(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o666)) },
		"cut":      func(path string) error { return os.Truncate(path, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			opt := testOptions(t.TempDir())
			opt.Jobs = 1
			points := testPoints(3)
			opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
				if job.Point.Index == 2 {
					if err := harm(journalPath(opt.Dir)); err != nil {
						t.Error(err)
					}
				}
				return testSimulate(ctx, job)
			}
			out, err := Run(t.Context(), points, opt)
			if err == nil || !strings.Contains(err.Error(), "was removed or changed while the sweep ran") {
				t.Errorf("err = %v", err)
			}
			if len(out.Rows) != 3 || !out.ResultsWritten {
				t.Errorf("%d rows, results written: %t", len(out.Rows), out.ResultsWritten)
			}
		})
	}
}

// What the machine does wrong is no property of a point: the sweep stops, and the point runs the next time.
func TestEnvironmentErrorStops(t *testing.T) {
	opt := testOptions(t.TempDir())
	opt.Jobs = 1
	full := errors.New("no space left")
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		if job.Point.Index == 1 {
			return nil, &EnvironmentError{full}
		}
		return testSimulate(ctx, job)
	}
	out, err := Run(t.Context(), testPoints(4), opt)
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "the sweep stopped") || len(out.Rows) >= 4 {
		t.Fatalf("%d rows, err = %v", len(out.Rows), err)
	}
	opt.Simulate = testSimulate
	if out := mustRun(t, testPoints(4), opt); out.Counts.OK != 4 || out.Counts.KeptFailed != 0 {
		t.Errorf("counts %+v", out.Counts)
	}
}
