package replay

import (
	"context"
	"runtime"
	"testing"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore/workload"
)

// inUse is how many bytes are in use, without garbage.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // what pools held goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkKept measures how much memory a run holds when all requests have ended, for each of them, and how long a request takes.
// What a run without records holds is the schedule, which it has from its beginning.
func BenchmarkKept(b *testing.B) {
	const requests = 20_000
	list := make([]workload.Request, requests)
	for i := range list {
		list[i] = workload.Request{Input: 64, Output: 5, ArrivalMs: float64(i) / 10}
	}
	w := made(b, list...)
	target := &fakeTarget{answer: func(*live.Call) ([]float64, error) { return make([]float64, 5), nil }}
	for name, unkept := range map[string]bool{"records": false, "unkept": true} {
		b.Run(name, func(b *testing.B) {
			before, after := inUse(), uint64(0)
			for b.Loop() {
				opt, ended := options(target, w), 0
				opt.Unkept = unkept
				opt.Ended = func(*live.Record) {
					if ended++; ended == requests {
						after = inUse()
					}
				}
				mustRun(b, context.Background(), opt)
			}
			b.ReportMetric((float64(after)-float64(before))/requests, "B/request")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/requests, "us/request")
		})
	}
}
