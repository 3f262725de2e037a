package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
)

// elsewhere simulates points as a worker of another machine does: what it knows of a point is its portable text.
type elsewhere struct {
	job    *sweepJob
	rows   chan results.Row
	placed int // files
}

func (e *elsewhere) Submit(ctx context.Context, job sweep.Job) error {
	text, err := job.Point.Portable(func(key, _ string) (string, error) { return "", errors.New(key + " names a file") })
	if err != nil {
		return err
	}
	there := job
	if there.Point, err = gridspec.FromPortable(text, "", nil); err != nil {
		return err
	}
	there.Point.Replicate = job.Point.Replicate
	key, err := sweep.WorkloadKeyOf(&there.Point)
	if err != nil {
		return err
	}
	if there.Workload, err = there.Point.Workload.Load(ctx, key.Source()); err != nil {
		return err
	}
	made := map[string][]byte{}
	_, err = simulateWithFiles(ctx, there, kindsAsked(e.job.spec.Output), func(kind string, to func(io.Writer) error) error {
		var b bytes.Buffer
		err := to(&b)
		made[kind] = b.Bytes()
		return err
	})
	if err != nil {
		return err
	}
	row, err := sweep.Simulate(ctx, there, nil)
	if err != nil {
		return err
	}
	for kind, data := range made {
		if err := e.job.placePointFile(kind, job.ID, bytes.NewReader(data)); err != nil {
			return err
		}
		e.placed++
	}
	e.rows <- row
	return nil
}

func (e *elsewhere) Receive(ctx context.Context) (sweep.Delivery, error) {
	select {
	case row := <-e.rows:
		return sweep.Delivery{Rows: []results.Row{row}, Kept: func() {}}, nil
	case <-ctx.Done():
		return sweep.Delivery{}, ctx.Err()
	}
}

const keptSpec = `
name: kept
workload:
  - {synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}, name: "a/b = c"}
  - {preset: {name: chat, requests: 10, seed: 3}}
grid: {deployment.workers: [1, 2]}
sla: {ttft_ms: 200}
output: {per_request: true, timelines: true, partition_by: [workload, workers]}
`

// keptJob is a sweep of keptSpec into a folder.
func keptJob(t *testing.T, dir string) (*sweepJob, []gridspec.Point) {
	t.Helper()
	spec, err := gridspec.Load(gridspec.Source{Path: "kept.yaml", Data: []byte(keptSpec)})
	if err != nil {
		t.Fatal(err)
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &sweepJob{state: newState(), flags: &sweepFlags{retry: string(sweep.RetryNone), quiet: true}, spec: spec, dir: dir}, points
}

// filesOf reads the files of points below a folder.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, f := range pointFiles {
		err := filepath.WalkDir(filepath.Join(dir, f.folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			name, _ := filepath.Rel(dir, path)
			found[filepath.ToSlash(name)] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// A worker makes the same bytes of a point as a sweep, and they get to the same place.
func TestPointFilesMadeElsewhere(t *testing.T) {
	sweepInto := func(dir string, sort bool, change func(*sweepJob, *sweep.Options)) {
		t.Helper()
		job, points := keptJob(t, dir)
		opt := job.options()
		change(job, &opt)
		out, err := sweep.Run(t.Context(), points, opt)
		if err == nil && sort {
			err = job.sortFiles(out.Rows)
		}
		if err != nil || out.Counts.OK != 4 {
			t.Fatalf("%+v, %v", out.Counts, err)
		}
		if notes := job.missingFiles(out.Rows); len(notes) > 0 {
			t.Error(notes)
		}
	}
	here, there, late := t.TempDir(), t.TempDir(), t.TempDir()
	sweepInto(here, false, func(*sweepJob, *sweep.Options) {})
	want := filesOf(t, here)
	if len(want) != 8 || !strings.Contains(strings.Join(slices.Sorted(maps.Keys(want)), "\n"), "requests/workload=a%2Fb%20%3D%20c/workers=2/") {
		t.Fatalf("a sweep keeps %q", slices.Sorted(maps.Keys(want)))
	}
	sweepInto(there, false, func(job *sweepJob, opt *sweep.Options) {
		e := &elsewhere{job: job, rows: make(chan results.Row, 4)}
		opt.Executor = e
		t.Cleanup(func() {
			if e.placed != len(want) {
				t.Errorf("%d files came from elsewhere, want %d", e.placed, len(want))
			}
		})
	})
	if diff := cmp.Diff(want, filesOf(t, there)); diff != "" {
		t.Errorf("files of points made elsewhere (-here +there): %.2000s", diff)
	}

	// Files of an earlier session come before the points are known.
	sweepInto(late, true, func(job *sweepJob, opt *sweep.Options) {
		load, place := opt.Load, sync.OnceFunc(func() {
			for name, data := range want {
				kind, _, _ := strings.Cut(name, "/")
				id := strings.TrimSuffix(filepath.Base(name), fileOfPoint)
				if err := job.placePointFile(kind, id, strings.NewReader(data)); err != nil {
					t.Error(err)
				}
			}
		})
		opt.Load = func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
			place()
			return load(ctx, s, src)
		}
		opt.Simulate = nil // none is made here
	})
	if diff := cmp.Diff(want, filesOf(t, late)); diff != "" {
		t.Errorf("files of an earlier session (-here +there): %.2000s", diff)
	}
}

// What comes from a queue can write nothing but files of points.
func TestPointFilesFromElsewhereStayInTheirFolder(t *testing.T) {
	parent := t.TempDir()
	job, _ := keptJob(t, filepath.Join(parent, "out"))
	id := strings.Repeat("a", 32)
	for _, name := range [][2]string{
		{"requests", ""}, {"requests", "../" + id}, {"requests", "/" + id}, {"requests", id + "/x"}, {"requests", strings.ToUpper(id)},
		{"requests", strings.Repeat("a", 65)}, {"requests", "a\x00"}, {"", id}, {"..", id}, {"journal.jsonl", id}, {"requests/", id}, {"report", id},
	} {
		if err := job.placePointFile(name[0], name[1], strings.NewReader("x")); err == nil {
			t.Errorf("a file of kind %q of the point %q is kept", name[0], name[1])
		}
	}
	broken := io.MultiReader(strings.NewReader("the first half"), failing{})
	if err := job.placePointFile(requestsFolder, id, broken); !errors.Is(err, errBroken) {
		t.Errorf("a file that breaks off: %v", err)
	}
	var found []string
	_ = filepath.WalkDir(parent, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	if len(found) > 0 {
		t.Errorf("files are left: %q", found)
	}
}

var errBroken = errors.New("the connection broke off")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }

// A worker that lacks a kind of file leaves the point to others.
func TestUnknownKindOfPointFile(t *testing.T) {
	_, points := keptJob(t, t.TempDir())
	_, err := simulateWithFiles(t.Context(), sweep.Job{ID: "a", Point: points[0]}, []string{"heatmaps"}, nil)
	if environment := new(sweep.EnvironmentError); !errors.As(err, &environment) || !strings.Contains(err.Error(), "heatmaps") {
		t.Errorf("error %v", err)
	}
}
