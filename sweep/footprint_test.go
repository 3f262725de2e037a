package sweep

import (
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// When the results file is written, which is when a sweep has most in memory, a point has its row, its metrics and its ID, each
// once, however the row came: simulated, from the journal or out of shards.
func TestMemoryOfRows(t *testing.T) {
	const n = 4000
	points := testPoints(n)
	dir := t.TempDir()
	row := int64(unsafe.Sizeof(results.Row{})) + int64(8*len(metrics.Fields())) + int64(len(testID(points[0], "")))
	limit := row + row/5 // what the allocator rounds up
	check := func(name string, sweep func(Options) Outcome, into string) {
		opt := benchOptions(into)
		before, used := heapBytes(), int64(0)
		opt.WriteResults = func(path string, rows []results.Row) error {
			if len(rows) == n {
				used = heapBytes() - before
			}
			return testWrite(path, rows)
		}
		out := sweep(opt)
		if len(out.Rows) != n || used/n > limit || used <= 0 {
			t.Errorf("%s: %d bytes a point are in use; its row has %d", name, used/n, row)
		}
		runtime.KeepAlive(out)
	}
	check("simulated", func(opt Options) Outcome { return mustRun(t, points, opt) }, filepath.Join(dir, "all"))
	check("resumed", func(opt Options) Outcome { return mustRun(t, points, opt) }, filepath.Join(dir, "all"))
	var odd, even []gridspec.Point
	for i, p := range points {
		if i%2 == 0 {
			even = append(even, p)
		} else {
			odd = append(odd, p)
		}
	}
	folders := []string{filepath.Join(dir, "even"), filepath.Join(dir, "odd")}
	for i, half := range [][]gridspec.Point{even, odd} {
		mustRun(t, half, benchOptions(folders[i]))
	}
	odd, even = nil, nil
	check("merged", func(opt Options) Outcome { return mustMerge(t, folders, points, opt).Outcome }, filepath.Join(dir, "merged"))
	runtime.KeepAlive(points)
}
