package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// writeJournal makes the folder of a sweep with these rows.
func writeJournal(t testing.TB, dir string, rows ...results.Row) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	text := journalText(t, simcore.SemanticVersion, metricNames(), rows...)
	if err := os.WriteFile(journalPath(dir), text, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustMerge(t testing.TB, folders []string, points []gridspec.Point, opt Options) Merged {
	t.Helper()
	m, err := Merge(t.Context(), folders, points, opt)
	if err != nil {
		t.Fatalf("Merge: %v", err)
	}
	return m
}

// figures are metrics that start with a value.
func figures(v float64) []float64 {
	m := noMetrics()
	m[0], m[1] = v, v/3
	return m
}

// Of two results the one of a whole simulation counts, whatever their order; two that cannot both be right are a conflict.
func TestMergeOfTwoResults(t *testing.T) {
	p := testPoint(0, 1, 5)
	w, err := testLoad(t.Context(), p.Workload, workload.Source{})
	if err != nil {
		t.Fatal(err)
	}
	row := func(r results.Row) results.Row {
		r.ID, r.WorkloadDigest = testID(p, w.Digest()), w.Digest()
		if r.Metrics == nil {
			r.Metrics = noMetrics()
		}
		return r
	}
	failed := func(reason, message string) results.Row {
		return row(results.Row{Status: results.StatusFailed, Reason: reason, Error: message})
	}
	stopped := func(limit float64) results.Row {
		return row(results.Row{Status: results.StatusStopped, Reason: ReasonLost, Lost: simcore.Bound{Metric: "p99_ttft_ms", Limit: limit}})
	}
	ok := row(results.Row{Status: results.StatusOK, Metrics: figures(1), WallSeconds: 1})
	slow, other := ok, ok
	slow.WallSeconds, other.Metrics = 9, figures(math.Nextafter(1, 2))
	for _, tt := range []struct {
		name     string
		a, b     results.Row
		want     results.Status
		conflict string
	}{
		{"equal figures", ok, slow, results.StatusOK, ""},
		{"other figures", ok, other, "", "num_requests: 1 and 1.0000000000000002"},
		{"timeout", ok, failed(ReasonTimeout, ""), results.StatusOK, ""},
		{"panic", ok, failed(ReasonPanic, ""), results.StatusOK, ""},
		{"worker lost", ok, failed(ReasonWorkerLost, ""), results.StatusOK, ""},
		{"other version", ok, failed(ReasonOtherVersion, ""), results.StatusOK, ""},
		{"error without a reason", ok, failed(ReasonSimulation, ""), results.StatusOK, ""},
		{"dead end", ok, failed("dead_end", "stuck"), "", "reason: none and dead_end"},
		{"two dead ends", failed("dead_end", "stuck on a"), failed("dead_end", "stuck on b"), results.StatusFailed, ""},
		{"two reasons", failed("dead_end", ""), failed("invalid_config", ""), "", "reason: dead_end and invalid_config"},
		{"two timeouts", failed(ReasonTimeout, "a"), failed(ReasonPanic, "b"), results.StatusFailed, ""},
		{"stopped and whole", stopped(5), ok, results.StatusOK, ""},
		{"stopped and dead end", stopped(5), failed("dead_end", ""), results.StatusFailed, ""},
		{"stopped and timeout", stopped(5), failed(ReasonTimeout, ""), results.StatusStopped, ""},
		{"stopped alike", stopped(5), stopped(5), results.StatusStopped, ""},
		{"stopped by others", stopped(5), stopped(6), "", "lost: p99_ttft_ms <= 5 and p99_ttft_ms <= 6"},
	} {
		for _, order := range []string{"ab", "ba", "a into b", "b into a"} {
			t.Run(tt.name+" "+order, func(t *testing.T) {
				dir := t.TempDir()
				a, b := writeJournal(t, filepath.Join(dir, "a"), tt.a), writeJournal(t, filepath.Join(dir, "b"), tt.b)
				folders, opt := []string{a, b}, testOptions(filepath.Join(dir, "merged"))
				switch order {
				case "ba":
					folders = []string{b, a}
				case "a into b":
					opt.Dir = b
				case "b into a":
					opt.Dir = a
				}
				before, _ := os.ReadFile(journalPath(opt.Dir))
				m, err := Merge(t.Context(), folders, []gridspec.Point{p}, opt)
				if tt.conflict != "" {
					conflict := new(ConflictError)
					if !errors.As(err, &conflict) || order == "ab" && !strings.Contains(err.Error(), tt.conflict) {
						t.Errorf("error %v, want %q", err, tt.conflict)
					}
					if after, _ := os.ReadFile(journalPath(opt.Dir)); !bytes.Equal(before, after) {
						t.Error("the journal was changed")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if len(m.Rows) != 1 || m.Rows[0].Status != tt.want {
					t.Errorf("rows %+v", m.Rows)
				}
			})
		}
	}
}

// A conflict names its point, the folders and what differs; there may be many.
func TestMergeConflictNamesPoints(t *testing.T) {
	points := testPoints(30)
	for i := range points {
		points[i].Axes = []gridspec.AxisValue{{Column: "workers", Value: gridspec.Value{Kind: gridspec.KindInt, Int: int64(i + 1)}}}
	}
	dir := t.TempDir()
	opt := testOptions(filepath.Join(dir, "a"))
	rows := mustRun(t, points, opt).Rows
	opt.Dir = filepath.Join(dir, "b")
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		r, err := testSimulate(ctx, job)
		if job.Point.Config.Deployment.Workers > 5 {
			r.OutputThroughputTokS *= 2
		}
		return r, err
	}
	mustRun(t, points, opt)
	opt.Dir = filepath.Join(dir, "merged")
	_, err := Merge(t.Context(), []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, points, opt)
	conflict := new(ConflictError)
	if !errors.As(err, &conflict) || conflict.Total != 25 || len(conflict.Conflicts) != 20 {
		t.Fatalf("%v", err)
	}
	for _, c := range conflict.Conflicts {
		at := slices.IndexFunc(rows, func(r results.Row) bool { return r.ID == c.ID })
		if at < 0 || !cmp.Equal(c.Axes, points[at].Axes) {
			t.Errorf("%s is not at %v", c.ID, c.Axes)
		}
		v := float64(at+1) / 7
		want := []Difference{{"output_throughput_tok_s", [2]string{figureText(v), figureText(2 * v)}}}
		if diff := cmp.Diff(want, c.Differences); diff != "" {
			t.Errorf("point %d (-want +got):\n%s", at, diff)
		}
	}
	c := conflict.Conflicts[0]
	for _, want := range []string{
		"25 points have two different results, so nothing is merged",
		fmt.Sprintf("\n  %s (workers=%s), in %s and in %s:\n", c.ID, c.Axes[0].Value, filepath.Join(dir, "a"), filepath.Join(dir, "b")),
		"\n  and 5 more",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if _, err := os.Stat(opt.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

// What is not used is told.
func TestMergeTellsWhatItLeavesOut(t *testing.T) {
	points := testPoints(6)
	dir := t.TempDir()
	opt := testOptions(filepath.Join(dir, "a"))
	mustRun(t, points[:4], opt)
	opt.Dir = filepath.Join(dir, "b")
	opt.semanticVersion = "old"
	mustRun(t, points[4:5], opt)
	opt.semanticVersion = ""
	text, err := os.ReadFile(journalPath(filepath.Join(dir, "a")))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[2] = append([]byte("x"), lines[2]...)
	if err := os.WriteFile(journalPath(filepath.Join(dir, "a")), append(bytes.Join(lines, nil), `{"torn`...), 0o666); err != nil {
		t.Fatal(err)
	}
	opt.Dir = filepath.Join(dir, "merged")
	folders := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	m := mustMerge(t, folders, points[1:], opt)
	want := []MergedFolder{
		{Dir: folders[0], Points: 3, New: 3, Damaged: 1},
		{Dir: folders[1], OtherVersions: 1, Versions: []string{"old"}},
	}
	if diff := cmp.Diff(want, m.Folders); diff != "" {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
	if m.Missing+len(m.Rows) != 5 || m.Counts.Left != m.Missing || m.Counts.Simulated != 0 || m.Journal.Points != 3 || m.Journal.Unused != 3-len(m.Rows) {
		t.Errorf("%d missing, %+v, %+v", m.Missing, m.Counts, m.Journal)
	}
	opt.Name = "this"
	for _, wrong := range []string{filepath.Join(dir, "gone"), writeJournal(t, filepath.Join(dir, "c"))} {
		if wrong == filepath.Join(dir, "c") {
			if err := os.WriteFile(journalPath(wrong), []byte("text\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Merge(t.Context(), append(folders, wrong), points, opt); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	opt.Dir, opt.Name = filepath.Join(dir, "d"), "that"
	mustRun(t, points, opt)
	opt.Dir, opt.Name = filepath.Join(dir, "merged"), "this"
	if _, err := Merge(t.Context(), []string{filepath.Join(dir, "d")}, points, opt); err == nil || !strings.Contains(err.Error(), `another sweep, "that"`) {
		t.Errorf("%v", err)
	}
}

// A workload that is not there is not needed for the results that are.
func TestMergeWithoutTheWorkload(t *testing.T) {
	points := []gridspec.Point{testPoint(0, 1, 5), testPoint(1, 2, 5), testPoint(2, 3, 6), testPoint(3, 4, 7)}
	dir := t.TempDir()
	opt := testOptions(filepath.Join(dir, "a"))
	want := mustRun(t, points[:3], opt).Rows
	opt.Load = func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
		return nil, errors.New("no such file")
	}
	opt.Dir = filepath.Join(dir, "merged")
	m := mustMerge(t, []string{filepath.Join(dir, "a")}, points, opt)
	if diff := sameRows(want, m.Rows[:3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := m.Rows[3]; len(m.Unloaded) != 2 || last.Reason != ReasonWorkload || m.Missing != 0 {
		t.Errorf("%v, %+v, %d missing", m.Unloaded, last, m.Missing)
	}
	if _, err := Merge(t.Context(), []string{filepath.Join(dir, "a")}, points[3:], opt); err == nil {
		t.Error("no workload can be loaded, and that is no error")
	}
}

// Of several workloads that are not there, results are taken only where it is certain whose they are.
func TestMergeTellsWorkloadsApart(t *testing.T) {
	loads := func(allowed ...int) func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error) {
		return func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
			if slices.Contains(allowed, s.Synthetic.Requests) {
				return testLoad(ctx, s, src)
			}
			return nil, errors.New("no such file")
		}
	}
	both := []gridspec.Point{testPoint(0, 1, 5), testPoint(1, 1, 6)}
	for name, tt := range map[string]struct {
		swept, merged []int // the requests of the workloads that can be loaded
		ok            []bool
		message       string
	}{
		"one never simulated":       {[]int{5}, []int{5}, []bool{true, false}, "no such file"},
		"the other is there":        {[]int{5, 6}, []int{5}, []bool{true, true}, ""},
		"one of them simulated":     {[]int{5}, nil, nil, "which of the results"},
		"both simulated, none here": {[]int{5, 6}, nil, nil, "which of the results"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			opt := testOptions(filepath.Join(dir, "a"))
			opt.Load = loads(tt.swept...)
			want := mustRun(t, both, opt).Rows
			opt.Load, opt.Dir = loads(tt.merged...), filepath.Join(dir, "merged")
			m, err := Merge(t.Context(), []string{filepath.Join(dir, "a")}, both, opt)
			if tt.ok == nil {
				if err == nil || !strings.Contains(err.Error(), tt.message) {
					t.Fatalf("error %v, want %q", err, tt.message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, ok := range tt.ok {
				if row := m.Rows[i]; (row.Status == results.StatusOK) != ok || ok && sameRows(want[i:i+1], m.Rows[i:i+1]) != "" || !ok && !strings.Contains(row.Error, tt.message) {
					t.Errorf("row %d: %s %s", i, row.Status, row.Error)
				}
			}
		})
	}
}

// timelessFile is the Parquet file of rows, without their wall times.
func timelessFile(t rapid.TB, rows []results.Row) []byte {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].WallSeconds = 0
	}
	var b bytes.Buffer
	if err := results.WriteParquet(&b, results.NewTable(rows, results.Metadata{})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// drawGrid draws a spec and an extension of it.
func drawGrid(rt *rapid.T) (spec, extended *gridspec.Spec) {
	load := func(workers, blocks, replicates int) *gridspec.Spec {
		s, err := gridspec.Load(gridspec.Source{Data: fmt.Appendf(nil, `
workload: [{synthetic: {input_tokens: 100, output_tokens: 10, requests: 5}}, {name: b, synthetic: {input_tokens: 90, output_tokens: 10, requests: 6}}]
grid: {deployment.workers: {range: [1, %d, 1]}, engine.block_size: %s}
exclude: ["workers == 4 && block_size == 32"]
execution: {replicates: %d}
`, workers, []string{"[16]", "[64, 16]", "[64, 16, 32]"}[blocks], replicates)})
		if err != nil {
			rt.Fatal(err)
		}
		return s
	}
	workers, blocks, replicates := rapid.IntRange(1, 4).Draw(rt, "workers"), rapid.IntRange(0, 2).Draw(rt, "blocks"), rapid.IntRange(1, 2).Draw(rt, "replicates")
	return load(workers, blocks, replicates),
		load(workers+rapid.IntRange(0, 2).Draw(rt, "more workers"), rapid.IntRange(blocks, 2).Draw(rt, "more blocks"), rapid.IntRange(replicates, 2).Draw(rt, "more replicates"))
}

// However a spec is cut into shards, and extended, merging these gives what one machine finds, to the byte. Some shards may
// be missing, and some points be there twice: a sweep of the merged folder simulates just what no shard had.
func TestMergedShardsAreASingleRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec, extended := drawGrid(rt)
		count := rapid.IntRange(1, 3).Draw(rt, "count")
		root, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		var simulated atomic.Int64
		opt := Options{Load: testLoad, WriteResults: testWrite, Simulate: func(ctx context.Context, job Job) (*simcore.Report, error) {
			simulated.Add(1)
			return failThird(ctx, job)
		}}
		run := func(s *gridspec.Spec, shard gridspec.Shard, dir string) Outcome {
			points, err := s.Expand(gridspec.ExpandOptions{Shard: shard})
			if err != nil {
				rt.Fatal(err)
			}
			opt.Dir = filepath.Join(root, dir)
			out, err := Run(t.Context(), points, opt)
			if err != nil {
				rt.Fatal(err)
			}
			return out
		}
		want := run(extended, gridspec.Shard{}, "single")
		simulated.Store(0)
		ran := false
		for i := 1; i <= count; i++ {
			s := gridspec.Shard{Index: i, Count: count}
			if rapid.IntRange(0, 3).Draw(rt, "lost") == 0 {
				continue
			}
			if rapid.Bool().Draw(rt, "before the extension") {
				run(spec, s, "out/"+ShardFolder(s)) // is extended, or merged as it is
			}
			if rapid.IntRange(0, 3).Draw(rt, "extended") > 0 {
				run(extended, s, "out/"+ShardFolder(s))
				ran = true
			}
		}
		if other := (gridspec.Shard{Index: 1, Count: count + 1}); !ran || rapid.IntRange(0, 3).Draw(rt, "another cut") == 0 {
			run(spec, other, "out/"+ShardFolder(other))
		}
		folders, err := ResultFolders([]string{filepath.Join(root, "out")})
		if err != nil {
			rt.Fatal(err)
		}
		points, err := extended.Expand(gridspec.ExpandOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		opt.Dir = filepath.Join(root, "merged")
		simulated.Store(0)
		merged, err := Merge(t.Context(), folders, points, opt)
		if err != nil {
			rt.Fatal(err)
		}
		journal, _ := os.ReadFile(journalPath(opt.Dir))
		if again, err := Merge(t.Context(), append(folders, opt.Dir), points, opt); err != nil || again.Missing != merged.Missing {
			rt.Fatalf("again: %v, %d missing and %d", err, again.Missing, merged.Missing)
		}
		if after, _ := os.ReadFile(journalPath(opt.Dir)); !bytes.Equal(journal, after) {
			rt.Error("merging again changed the journal")
		}
		if n := simulated.Load(); n != 0 || merged.Counts.Left != merged.Missing || merged.Missing+len(merged.Rows) != len(want.Rows) {
			rt.Errorf("%d simulated, %d missing, %d rows of %d", n, merged.Missing, len(merged.Rows), len(want.Rows))
		}
		got := run(extended, gridspec.Shard{}, "merged")
		if n := simulated.Load(); int(n) != merged.Missing {
			rt.Errorf("%d simulated afterwards, %d were missing", n, merged.Missing)
		}
		if !bytes.Equal(timelessFile(rt, want.Rows), timelessFile(rt, got.Rows)) {
			rt.Errorf("the results files differ (-single +merged):\n%s", sameRows(want.Rows, got.Rows))
		}
	})
}
