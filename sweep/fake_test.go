package sweep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// testPoint is a point with this many workers on a workload of this many requests. The number of workers tells
// fake simulators which point it is.
func testPoint(index, workers, requests int) gridspec.Point {
	cfg := gridspec.DefaultConfig()
	cfg.Deployment.Workers = workers
	s := workload.DefaultSyntheticSpec()
	s.InputTokens, s.OutputTokens, s.Requests = 100, 10, requests
	return gridspec.Point{Index: index, Config: cfg, Workload: workload.Spec{Synthetic: &s}}
}

// testPoints returns n points with 1 to n workers on one workload.
func testPoints(n int) []gridspec.Point {
	points := make([]gridspec.Point, n)
	for i := range points {
		points[i] = testPoint(i, i+1, 5)
	}
	return points
}

// testID names a point by what the fakes look at.
func testID(p gridspec.Point, digest string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s %s", p.Config.Deployment.Workers, p.Config.Engine.BlockSize, p.Config.Compat, digest))
	return hex.EncodeToString(sum[:])
}

// testLoad makes the requests without the real generators.
func testLoad(_ context.Context, s workload.Spec, _ workload.Source) (*workload.Workload, error) {
	b := workload.NewBuilder("test", 0)
	for range s.Synthetic.Requests {
		b.Add(workload.Request{Input: s.Synthetic.InputTokens, Output: s.Synthetic.OutputTokens})
	}
	return b.Build()
}

// testSimulate returns figures that differ from point to point and need all digits of a float64.
func testSimulate(_ context.Context, job Job) (*simcore.Report, error) {
	x := float64(job.Point.Config.Deployment.Workers)
	return &simcore.Report{
		NumRequests: int64(job.Workload.Requests()), DurationMs: 1000 / (x * 3), OutputThroughputTokS: x / 7,
	}, nil
}

// testWrite stands in for the Parquet writer. The file says how long it must be, so that a part of it is noticed.
func testWrite(path string, rows []results.Row) error {
	text, err := json.Marshal(testFile{len(rows), rowIDs(rows)})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o666)
}

type testFile struct {
	Rows int
	IDs  []string
}

func readTestFile(path string) (testFile, error) {
	var f testFile
	text, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&f); err != nil {
		return f, err
	}
	if f.Rows != len(f.IDs) {
		return f, errors.New("the results file is not whole")
	}
	return f, nil
}

func rowIDs(rows []results.Row) []string {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	return ids
}

// testOptions are options with fakes for everything outside this package.
func testOptions(dir string) Options {
	return Options{
		Dir: dir, Jobs: 4, ContentID: testID, Load: testLoad, Simulate: testSimulate, WriteResults: testWrite,
	}
}

func mustRun(t testing.TB, points []gridspec.Point, opt Options) Outcome {
	t.Helper()
	out, err := Run(t.Context(), points, opt)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return out
}

// sameRows compares rows, wall times aside.
func sameRows(want, got []results.Row) string {
	return cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(results.Row{}, "WallSeconds"))
}

func journalPath(dir string) string { return filepath.Join(dir, JournalFile) }

func mustReadJournal(t testing.TB, dir string) *journal {
	t.Helper()
	f, err := os.Open(journalPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	j, err := readJournal(f, metricNames())
	if err != nil {
		t.Fatal(err)
	}
	return j
}
