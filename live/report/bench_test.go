package report

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// longRun is a run of many requests at a steady rate.
func longRun(t testing.TB, n int) (*workload.Workload, *live.Run) {
	t.Helper()
	b := workload.NewBuilder("long", 16)
	gaps := &metrics.GapRecorder{}
	run := &live.Run{Started: time.Unix(1_700_000_000, 0), Planned: n, Gaps: gaps, EvenGaps: gaps, Records: make([]live.Record, n)}
	for i := range n {
		at, session := float64(i)*33.3, fmt.Sprintf("session-%d", i)
		b.Add(workload.Request{ID: fmt.Sprintf("r%d", i), Session: session, Input: 1000, Output: 100, ArrivalMs: at})
		run.Records[i] = live.Record{
			Call:        &live.Call{Number: int32(i), Request: i, ID: fmt.Sprintf("00000000-0000-8000-8000-%012d", i), Session: session, Input: 1000, Output: 100},
			ScheduledMs: at, SentMs: at + .1, FirstTokenMs: at + 50 + float64(i%17), SecondTokenMs: at + 80, LastTokenMs: at + 1000 + float64(i%101), EndMs: at + 1101,
			Chunks: 100, OutputTokens: 100, InputTokens: 1008, CachedTokens: 64,
		}
		gaps.RecordGaps(10e6, 99)
	}
	run.EndMs = run.Records[n-1].EndMs
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w, run
}

// BenchmarkWrite writes the files of a run. peak-B/request is how much the heap grows meanwhile at most, garbage included.
func BenchmarkWrite(b *testing.B) {
	const n = 24_000
	w, run := longRun(b, n)
	peak := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		before, stop := heap(), peakHeap()
		if _, err := Write(filepath.Join(b.TempDir(), "run"), defaultPoint(), w, run, Options{}); err != nil {
			b.Fatal(err)
		}
		peak = max(peak, stop()-before)
	}
	b.ReportMetric(float64(peak)/n, "peak-B/request")
}

// heap is how much of the heap is in use.
func heap() int64 {
	runtime.GC()
	return heapNow()
}

func heapNow() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// peakHeap watches the heap until stop is called, which returns the most that it held.
func peakHeap() (stop func() int64) {
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := heapNow()
		for {
			select {
			case <-done:
				peak <- max(most, heapNow())
				return
			case <-time.After(time.Millisecond):
				most = max(most, heapNow())
			}
		}
	}()
	return func() int64 { close(done); return <-peak }
}
