package sweep

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// BenchmarkOverhead is what a point costs beyond its simulation: naming, starting, observing, keeping. Resumed
// points are read from the journal.
func BenchmarkOverhead(b *testing.B) {
	const n = 10_000
	points := testPoints(n)
	perPoint := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/point")
	}
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			opt := benchOptions(b.TempDir())
			if out := mustRun(b, points, opt); out.Counts.OK != n {
				b.Fatalf("%+v", out.Counts)
			}
		}
		perPoint(b)
	})
	b.Run("resumed", func(b *testing.B) {
		opt := benchOptions(b.TempDir())
		mustRun(b, points, opt)
		for b.Loop() {
			if out := mustRun(b, points, opt); out.Counts.Reused != n {
				b.Fatalf("%+v", out.Counts)
			}
		}
		perPoint(b)
	})
}

func benchOptions(dir string) Options {
	opt := testOptions(dir)
	opt.Jobs, opt.WriteResults = 0, nil
	tracker := &trackingObserver{}
	opt.Observer = tracker
	return opt
}

// trackingObserver does what a progress display does.
type trackingObserver struct {
	NopObserver
	done int
}

func (o *trackingObserver) PointStarted(gridspec.Point) {}
func (o *trackingObserver) PointFinished(Finished)      { o.done++ }

// BenchmarkMerge is what a point costs when eight shards are merged. Beside the rows, the index of the journals takes memory.
func BenchmarkMerge(b *testing.B) {
	const shards = 8
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			points := testPoints(n)
			w, err := testLoad(b.Context(), points[0].Workload, workload.Source{})
			if err != nil {
				b.Fatal(err)
			}
			dir := b.TempDir()
			var folders []string
			for s := range shards {
				var rows []results.Row
				for i := s; i < n; i += shards {
					rows = append(rows, results.Row{
						ID: testID(points[i], w.Digest()), Status: results.StatusOK, WallSeconds: 0.01, WorkloadDigest: w.Digest(), Metrics: figures(float64(i)),
					})
				}
				folders = append(folders, writeJournal(b, filepath.Join(dir, fmt.Sprint(s)), rows...))
			}
			opt := benchOptions("")
			b.ReportAllocs()
			for b.Loop() {
				opt.Dir = b.TempDir()
				if m := mustMerge(b, folders, points, opt); m.Missing > 0 || len(m.Rows) != n {
					b.Fatalf("%d missing", m.Missing)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/point")

			index := merge{opt: &opt, index: map[resultKey]place{}, conflicts: map[resultKey][2]place{}}
			if index.opt.semanticVersion == "" {
				index.opt.semanticVersion = simcore.SemanticVersion
			}
			before := heapBytes()
			for _, dir := range folders {
				if err := index.add(b.Context(), dir); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(heapBytes()-before)/float64(n), "index-B/point")
			runtime.KeepAlive(&index)
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
