package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// tinyPoints are n points of 50 requests.
func tinyPoints(b *testing.B, n int) []gridspec.Point {
	b.Helper()
	spec, err := gridspec.Load(gridspec.Source{Data: fmt.Appendf(nil, `
name: tiny
workload: {preset: {name: chat, requests: 50, rate: 4, seed: 1}}
deployment: {workers: 2}
grid:
  engine.max_num_batched_tokens: {range: [2048, %d, 1]}
`, 2048+n-1)})
	if err != nil {
		b.Fatal(err)
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return points
}

// What a point costs through the queue beside the local pool: a coordinator and two workers with one job each, a real server,
// all in this process. The target is 2 ms a point more.
//
//	go test -run '^$' -bench Overhead -benchtime 10000x ./sweep/queue
func BenchmarkOverhead(b *testing.B) {
	points := tinyPoints(b, b.N)
	start := time.Now()
	if _, err := sweep.Run(b.Context(), points, sweep.Options{Dir: b.TempDir()}); err != nil {
		b.Fatal(err)
	}
	local := time.Since(start)
	s := startServer(b)
	conn := s.connect("a")
	for range 2 {
		startWorker(b, s.connect("a"), func(o *WorkerOptions) { o.Jobs = 1 })
	}
	c := NewCoordinator(CoordinatorOptions{Connection: conn, Dir: b.TempDir()})
	b.ResetTimer()
	start = time.Now()
	out, err := sweep.Run(b.Context(), points, sweep.Options{Dir: c.opt.Dir, Executor: c})
	queued := time.Since(start)
	b.StopTimer()
	if err != nil || out.Counts.OK != b.N {
		b.Fatalf("%+v, %v", out.Counts, err)
	}
	if err := c.Close(b.Context(), true); err != nil {
		b.Fatal(err)
	}
	perPoint := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(perPoint(local), "local-ms/point")
	b.ReportMetric(perPoint(queued), "queue-ms/point")
	b.ReportMetric(perPoint(queued-local), "overhead-ms/point")
}

// How many points a second a server and a coordinator can have at most: a thousand workers that only answer. The target is 5,000.
//
//	go test -run '^$' -bench FanOut -benchtime 50000x ./sweep/queue
func BenchmarkFanOut(b *testing.B) {
	const workers, connections = 1000, 8
	s := startServer(b)
	conn := s.connect("a")
	points := tinyPoints(b, 1)
	load, err := points[0].Workload.Load(b.Context(), workloadSource(points[0]))
	if err != nil {
		b.Fatal(err)
	}
	c := NewCoordinator(CoordinatorOptions{Connection: conn, Dir: b.TempDir(), Window: 20_000})
	ctx, stop := context.WithCancel(b.Context())
	var virtual sync.WaitGroup
	for range connections {
		shared := s.connect("a")
		v := &virtualWorkers{conn: shared, finished: make(chan results.Row, 10_000)}
		virtual.Go(func() { v.send(ctx) })
		for range workers / connections {
			virtual.Go(func() { v.work(ctx) })
		}
	}
	received := make(chan struct{})
	var rows atomic.Int64
	go func() {
		defer close(received)
		for rows.Load() < int64(b.N) {
			d, err := c.Receive(ctx)
			if err != nil {
				b.Error(err)
				return
			}
			rows.Add(int64(len(d.Rows)))
			d.Kept()
		}
	}()
	b.ResetTimer()
	start := time.Now()
	for i := range b.N {
		job := sweep.Job{ID: fmt.Sprintf("%032x", i), Point: points[0], Workload: load}
		if err := c.Submit(ctx, job); err != nil {
			b.Fatal(err)
		}
	}
	<-received
	took := time.Since(start)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/took.Seconds(), "points/s")
	stop()
	virtual.Wait()
	if err := c.Close(b.Context(), true); err != nil {
		b.Fatal(err)
	}
}

// virtualWorkers answer points without looking at them. They share a connection and send parts together, as the jobs of a
// machine do.
type virtualWorkers struct {
	conn     *Connection
	finished chan results.Row
	sweep    atomic.Value
}

// work is one of them, which has one point at a time.
func (v *virtualWorkers) work(ctx context.Context) {
	consumer, err := v.conn.js.Consumer(ctx, v.conn.pointsStream(), workersConsumer(thisVersion))
	if err != nil {
		return
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(1))
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for {
		m, err := messages.Next()
		if err != nil {
			return
		}
		v.sweep.Store(v.conn.sweepOf(m.Subject()))
		v.finished <- sweep.FailedRow(m.Headers().Get(headerPoint), "", sweep.ReasonTimeout, "virtual")
		_ = m.Ack()
	}
}

// send sends what is finished.
func (v *virtualWorkers) send(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var rows []results.Row
		for more := true; more && len(rows) < partRows; {
			select {
			case row := <-v.finished:
				rows = append(rows, row)
			default:
				more = false
			}
		}
		if len(rows) == 0 {
			continue
		}
		lines, err := sweep.EncodeRows(rows)
		if err != nil {
			return
		}
		m := &nats.Msg{Subject: v.conn.parts(v.sweep.Load().(string)), Data: lines, Header: nats.Header{}}
		m.Header.Set(jetstream.MsgIDHeader, randomToken())
		_ = v.conn.publish(ctx, m, func(error) {})
	}
}
