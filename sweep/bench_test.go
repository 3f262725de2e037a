package sweep

import (
	"testing"

	"github.com/servegrid/servegrid/gridspec"
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
