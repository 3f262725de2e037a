package queue

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// testServer is a real server with JetStream, which can be stopped and started again on its port and its files.
type testServer struct {
	t    testing.TB
	opts server.Options
	*server.Server
}

func startServer(t testing.TB, change ...func(*server.Options)) *testServer {
	t.Helper()
	s := &testServer{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	}}
	for _, f := range change {
		f(&s.opts)
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) start() {
	s.t.Helper()
	opts := s.opts
	var err error
	if s.Server, err = server.NewServer(&opts); err != nil {
		s.t.Fatal(err)
	}
	s.Server.Start()
	if !s.Server.ReadyForConnections(10 * time.Second) {
		s.t.Fatal("the server does not start")
	}
	if _, text, ok := strings.Cut(s.Server.Addr().String(), ":"); ok && s.opts.Port == -1 {
		_, _ = fmt.Sscan(text, &s.opts.Port) // the same one after a restart
	}
}

func (s *testServer) stop() {
	s.Server.Shutdown()
	s.Server.WaitForShutdown()
}

func (s *testServer) url(namespace string) string {
	return fmt.Sprintf("nats://127.0.0.1:%d/%s", s.opts.Port, namespace)
}

// connect prepares a namespace, with a short time until lost points come again.
func (s *testServer) connect(namespace string, env ...string) *Connection {
	s.t.Helper()
	return s.connectFor(namespace, Limits{AckWait: testAckWait}, env...)
}

// connectFor prepares a namespace with limits.
func (s *testServer) connectFor(namespace string, l Limits, env ...string) *Connection {
	s.t.Helper()
	c := s.connectOnly(namespace, env...)
	if err := c.Prepare(s.t.Context(), l); err != nil {
		s.t.Fatal(err)
	}
	return c
}

const testAckWait = 600 * time.Millisecond

func (s *testServer) connectOnly(namespace string, env ...string) *Connection {
	s.t.Helper()
	return s.connectNotified(namespace, nil, env...)
}

func (s *testServer) connectNotified(namespace string, notice func(string), env ...string) *Connection {
	s.t.Helper()
	c, err := Connect(s.t.Context(), ConnectOptions{URL: s.url(namespace), Getenv: environment(env...), Notice: notice})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// environment is one of NAME=value.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if have, value, _ := strings.Cut(pair, "="); have == name {
				return value
			}
		}
		return ""
	}
}

// testPoints are n points with short simulations on two workloads.
func testPoints(t testing.TB, n int) []gridspec.Point {
	t.Helper()
	spec, err := gridspec.Load(gridspec.Source{Data: fmt.Appendf(nil, `
name: queue
workload:
  - synthetic: {input_tokens: 96, output_tokens: 8, requests: 20, arrival_interval_ms: 3}
  - preset: {name: chat, requests: 20, rate: 4, seed: 1}
deployment: {workers: 2}
grid:
  engine.max_num_seqs: {range: [2, %d, 1]}
`, n/2+1)})
	if err != nil {
		t.Fatal(err)
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(points) != n {
		t.Fatalf("%d points instead of %d", len(points), n)
	}
	return points
}

// locally is what a sweep on this machine finds.
func locally(t testing.TB, points []gridspec.Point) []results.Row {
	t.Helper()
	out, err := sweep.Run(t.Context(), points, sweep.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return out.Rows
}

func sameRows(want, got []results.Row) string {
	return cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(results.Row{}, "WallSeconds"))
}

// testCoordinator runs a sweep through the queue and returns its outcome.
type testSweep struct {
	t      testing.TB
	conn   *Connection
	dir    string
	change func(*CoordinatorOptions)
	sweep  func(*sweep.Options)
}

func (s testSweep) run(ctx context.Context, points []gridspec.Point) (sweep.Outcome, error) {
	opt := CoordinatorOptions{Connection: s.conn, Dir: s.dir, watchEvery: 200 * time.Millisecond, quietFor: time.Second}
	if s.change != nil {
		s.change(&opt)
	}
	c := NewCoordinator(opt)
	sweepOpt := sweep.Options{Dir: s.dir, Executor: c}
	if s.sweep != nil {
		s.sweep(&sweepOpt)
	}
	out, err := sweep.Run(ctx, points, sweepOpt)
	if closeErr := c.Close(context.WithoutCancel(ctx), err == nil && !out.Interrupted); closeErr != nil {
		s.t.Error(closeErr)
	}
	return out, err
}

func (s testSweep) mustRun(points []gridspec.Point) sweep.Outcome {
	s.t.Helper()
	return s.start(points)()
}

// start begins a sweep. The function that it returns waits until it has all rows.
func (s testSweep) start(points []gridspec.Point) func() sweep.Outcome {
	var (
		out  sweep.Outcome
		err  error
		done = make(chan struct{})
	)
	ctx, stop := context.WithTimeout(s.t.Context(), 60*time.Second)
	go func() {
		defer close(done)
		out, err = s.run(ctx, points)
	}()
	s.t.Cleanup(func() { <-done })
	return func() sweep.Outcome {
		s.t.Helper()
		defer stop()
		<-done
		if err != nil {
			s.t.Fatal(err)
		}
		if out.Interrupted {
			s.t.Fatalf("the sweep took too long: %+v", out.Counts)
		}
		return out
	}
}

// startWorker starts a worker that ends with the test, or when the function is called, which returns what it did.
func startWorker(t testing.TB, conn *Connection, change ...func(*WorkerOptions)) func() WorkerOutcome {
	t.Helper()
	opt := WorkerOptions{Connection: conn, Cache: filepath.Join(t.TempDir(), "cache"), Jobs: 2, Grace: time.Second, retryDelay: 50 * time.Millisecond}
	for _, f := range change {
		f(&opt)
	}
	ctx, stop := context.WithCancel(context.Background())
	var (
		outcome WorkerOutcome
		err     error
		done    = make(chan struct{})
		once    sync.Once
	)
	go func() {
		defer close(done)
		outcome, err = Work(ctx, opt)
	}()
	end := func() WorkerOutcome {
		once.Do(func() {
			stop()
			<-done
			if err != nil {
				t.Error(err)
			}
		})
		return outcome
	}
	t.Cleanup(func() { end() })
	return end
}

// counter counts what an observer hears.
type counter struct {
	NopObserver
	published, received, redelivered, settled, dead, refused, returned, parts, rows, duplicates atomic.Int64
}

func (c *counter) PointPublished(context.Context, string, int, error) { c.published.Add(1) }

func (c *counter) PointReceived(ctx context.Context, _ Header, _ string, _ time.Time, delivery int) context.Context {
	c.received.Add(1)
	if delivery > 1 {
		c.redelivered.Add(1)
	}
	return ctx
}

func (c *counter) PointSettled(_ context.Context, how Settled) {
	c.settled.Add(1)
	switch how {
	case SettledDead:
		c.dead.Add(1)
	case SettledRefused:
		c.refused.Add(1)
	case SettledReturned:
		c.returned.Add(1)
	}
}

func (c *counter) PartPublished(context.Context, int, int, time.Duration, error) { c.parts.Add(1) }

func (c *counter) PartReceived(rows, duplicates, _ int) {
	c.rows.Add(int64(rows))
	c.duplicates.Add(int64(duplicates))
}
