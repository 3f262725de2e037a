package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// reallySimulate is what the simulation of a worker is when nothing is done to it.
func reallySimulate(ctx context.Context, job sweep.Job) (*simcore.Report, error) {
	out, err := planner.Run(ctx, job.Point.Config.Config, job.Point.Config.Planner, job.Workload, simcore.Options{Bounds: job.Bounds})
	if err != nil {
		return nil, err
	}
	return out.Report, nil
}

// before is a simulation that does something first.
func before(do func(context.Context, sweep.Job) error) Simulation {
	return func(ctx context.Context, job sweep.Job, _ []string, _ func(string, func(io.Writer) error) error) (*simcore.Report, error) {
		if err := do(ctx, job); err != nil {
			return nil, err
		}
		return reallySimulate(ctx, job)
	}
}

// A worker that vanishes in the middle of a point costs nothing but time.
func TestWorkerVanishes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 10)
	vanishing := s.connect("a")
	var once sync.Once
	begun := make(chan struct{})
	startWorker(t, vanishing, func(o *WorkerOptions) {
		o.Grace = time.Millisecond
		o.Simulate = before(func(ctx context.Context, _ sweep.Job) error {
			once.Do(func() {
				vanishing.nc.Close() // as a kill would
				close(begun)
			})
			<-ctx.Done()
			return ctx.Err()
		})
	})
	var seen counter
	go func() {
		<-begun
		startWorkerLater(t, s.connect("a"), &seen)
	}()
	out := testSweep{t: t, conn: conn, dir: t.TempDir()}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
	if seen.redelivered.Load() == 0 {
		t.Error("no point was delivered again")
	}
}

// startWorkerLater is startWorker from another goroutine.
func startWorkerLater(t *testing.T, conn *Connection, o Observer) {
	startWorker(t, conn, func(opt *WorkerOptions) { opt.Observer = o })
}

// A server that restarts in the middle loses nothing.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 60)
	slow := before(func(context.Context, sweep.Job) error {
		time.Sleep(15 * time.Millisecond)
		return nil
	})
	for range 2 {
		startWorker(t, s.connect("a"), func(o *WorkerOptions) { o.Simulate = slow })
	}
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		for range 2 {
			time.Sleep(150 * time.Millisecond)
			s.stop()
			s.start()
		}
	}()
	out := testSweep{t: t, conn: conn, dir: t.TempDir()}.mustRun(points)
	<-restarted
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
}

// A coordinator that is stopped and started again takes in what was finished while it was away, and publishes the rest.
func TestCoordinatorRestarts(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 40)
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var simulated atomic.Int32
	hold := make(chan struct{})
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Grace = 10 * time.Second
		o.Simulate = before(func(ctx context.Context, _ sweep.Job) error {
			if simulated.Add(1) == 10 {
				stop() // while this point and others are under way
				select {
				case <-hold:
				case <-ctx.Done():
				}
			}
			return nil
		})
	})
	first, err := testSweep{t: t, conn: conn, dir: dir}.run(ctx, points)
	if err != nil || !first.Interrupted {
		t.Fatalf("interrupted %v, error %v", first.Interrupted, err)
	}
	if left, err := conn.waiting(t.Context(), conn.pointsStream(), conn.allPoints()); err != nil || left > 0 {
		t.Errorf("an interrupted sweep left %d points, error %v", left, err)
	}
	close(hold)
	waitFor(t, "parts of the time in between", func() bool {
		n, err := conn.waiting(t.Context(), conn.partsStream(), conn.allParts())
		return err == nil && n > 0
	})
	var seen counter
	out := testSweep{t: t, conn: conn, dir: dir, change: func(o *CoordinatorOptions) { o.Observer = &seen }}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
	if n := seen.published.Load(); n > int64(40-first.Counts.OK) || n == 0 {
		t.Errorf("%d points were published again, %d were finished", n, first.Counts.OK)
	}
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Parts that come twice, late acknowledgements and rubbish do no harm.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 20)
	var copies atomic.Int32
	// Somebody takes points, is late, and everything that he sends is there already.
	late := s.connect("a")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		consumer, err := late.workersConsumer(ctx, Limits{}.withDefaults())
		if err != nil {
			t.Error(err)
			return
		}
		for ctx.Err() == nil {
			batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(100*time.Millisecond))
			if err != nil {
				continue
			}
			for m := range batch.Messages() {
				time.Sleep(testAckWait * 5 / 4) // another worker has it by now
				w, err := wire.DecodeMessage(m.Data())
				if err != nil {
					t.Error(err)
					continue
				}
				row := sweep.FailedRow(w.ID, w.WorkloadDigest, sweep.ReasonTimeout, "late")
				lines, _ := sweep.EncodeRows([]results.Row{row})
				for range 2 {
					_, err = late.js.Publish(ctx, late.parts(w.Sweep), lines)
				}
				if err == nil && copies.Add(1) == 1 {
					_, _ = late.js.Publish(ctx, late.parts(w.Sweep), []byte("rubbish"))
				}
				_ = m.Ack()
			}
		}
	}()
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Jobs = 1
		o.Simulate = before(func(context.Context, sweep.Job) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
	})
	var seen counter
	out := testSweep{t: t, conn: conn, dir: t.TempDir(), change: func(o *CoordinatorOptions) { o.Observer = &seen }}.mustRun(points)
	stop()
	<-done
	if copies.Load() == 0 || seen.duplicates.Load() == 0 {
		t.Errorf("%d points were late, %d rows came again", copies.Load(), seen.duplicates.Load())
	}
	if out.Counts.OK+out.Counts.Failed != 20 || out.Counts.OK == 0 {
		t.Errorf("counts %+v", out.Counts)
	}
}

// A point that its workers cannot simulate becomes a row, with what was wrong the last time.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	points := testPoints(t, 6)
	var seen counter
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.MaxTries, o.Observer = 2, &seen
		o.Simulate = before(func(_ context.Context, job sweep.Job) error {
			if job.Point.Config.Engine.MaxNumSeqs == 3 {
				return &sweep.EnvironmentError{Err: errors.New("no room on the disk")}
			}
			return nil
		})
	})
	out := testSweep{t: t, conn: s.connect("a"), dir: t.TempDir()}.mustRun(points)
	failed := 0
	for _, row := range out.Rows {
		if row.Status == results.StatusFailed {
			failed++
			if row.Reason != sweep.ReasonEnvironment || !strings.Contains(row.Error, "no room on the disk") || !strings.Contains(row.Error, "begun 4 times") {
				t.Errorf("row %s: %s", row.Reason, row.Error)
			}
		}
	}
	if failed != 2 || seen.dead.Load() != 2 { // one on each workload
		t.Errorf("%d failed, %d were given up", failed, seen.dead.Load())
	}
}

// A point that its workers do not survive becomes a row; deliveries to workers that did not begin it do not count.
func TestDeadLetterOfLostWorkers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	points := testPoints(t, 2)
	conn := s.connect("a")
	go func() {
		consumer, err := conn.workersConsumer(t.Context(), Limits{}.withDefaults())
		if err != nil {
			t.Error(err)
			return
		}
		waitFor(t, "both points", func() bool {
			n, err := conn.waiting(t.Context(), conn.pointsStream(), conn.allPoints())
			return err == nil && n == 2
		})
		for handed := 0; handed < 20; { // to workers that are told to end
			batch, err := consumer.Fetch(2, jetstream.FetchMaxWait(time.Second))
			if err != nil {
				t.Error(err)
				return
			}
			for m := range batch.Messages() {
				_ = m.Nak()
				handed++
			}
		}
		for range 2 { // each begins both points and is killed
			doomed := s.connect("a")
			var begun atomic.Int32
			both := make(chan struct{})
			end := startWorker(t, doomed, func(o *WorkerOptions) {
				o.MaxTries, o.Grace = 2, time.Millisecond
				o.Simulate = before(func(ctx context.Context, _ sweep.Job) error {
					if begun.Add(1) == 2 {
						close(both)
					}
					<-ctx.Done()
					return ctx.Err()
				})
			})
			<-both
			doomed.nc.Close()
			end()
		}
		startWorker(t, conn, func(o *WorkerOptions) { o.MaxTries = 2 })
	}()
	out := testSweep{t: t, conn: s.connect("a"), dir: t.TempDir()}.mustRun(points)
	for _, row := range out.Rows {
		if row.Reason != sweep.ReasonWorkerLost || !strings.Contains(row.Error, "begun 2 times") {
			t.Errorf("row %s: %s", row.Reason, row.Error)
		}
	}
}

// A worker refuses what is not what it says it is, with a row.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 2)
	c := NewCoordinator(CoordinatorOptions{Connection: conn, Dir: t.TempDir()})
	c.sweep = "token"
	message := func() *wire.Message {
		load, err := points[0].Workload.Load(t.Context(), workloadSource(points[0]))
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.message(t.Context(), sweep.Job{ID: points[0].ContentID(load.Digest()), Point: points[0], Workload: load})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	cases := []struct {
		name           string
		change         func(*wire.Message)
		header         string
		raw            string
		reason, detail string
	}{
		{"other version", func(m *wire.Message) { m.Simulator = "99" }, "", "", sweep.ReasonOtherVersion, "version 99"},
		{"another point", func(m *wire.Message) { m.ID = strings.Repeat("ab", 16) }, "", "", sweep.ReasonRefused, "content ID"},
		{"another header", func(*wire.Message) {}, strings.Repeat("cd", 16), "", sweep.ReasonRefused, "not of the point"},
		{"another workload", func(m *wire.Message) {
			m.WorkloadDigest = strings.Repeat("12", 32)
			m.ID = points[0].ContentID(m.WorkloadDigest)
		}, "", "", sweep.ReasonRefused, "other requests"},
		{"a file of the worker", func(m *wire.Message) { m.Spec = "workload: {trace: {path: /etc/passwd, format: mooncake}}\n" }, "", "", sweep.ReasonRefused, "declared"},
		{"rubbish", nil, strings.Repeat("ef", 16), "{", sweep.ReasonRefused, "cannot be read"},
	}
	startWorker(t, s.connect("a"))
	consumer, err := conn.js.CreateConsumer(t.Context(), conn.partsStream(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range cases {
		m := &nats.Msg{Subject: conn.points(thisVersion, "token"), Header: nats.Header{}, Data: []byte(tt.raw)}
		id := tt.header
		if tt.change != nil {
			point := message()
			tt.change(point)
			if m.Data, err = point.Encode(); err != nil {
				t.Fatal(err)
			}
			if id == "" {
				id = point.ID
			}
		}
		m.Header.Set(headerPoint, id)
		if _, err := conn.js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		part, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		_ = part.Ack()
		rows, err := sweep.DecodeRows(part.Data())
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: %d rows, %v", tt.name, len(rows), err)
		}
		if r := rows[0]; r.ID != id || r.Reason != tt.reason || !strings.Contains(r.Error, tt.detail) {
			t.Errorf("%s: row %s, %s: %s", tt.name, r.ID, r.Reason, r.Error)
		}
	}
}

// A point that is larger than what the server takes is a row.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	stream, err := conn.js.Stream(t.Context(), conn.pointsStream())
	if err == nil {
		config := stream.CachedInfo().Config
		config.MaxMsgSize = 200
		_, err = conn.js.UpdateStream(t.Context(), config)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := testSweep{t: t, conn: conn, dir: t.TempDir()}.mustRun(testPoints(t, 4))
	for _, row := range out.Rows {
		if row.Reason != sweep.ReasonNotPortable || !strings.Contains(row.Error, "max_msg_size") {
			t.Errorf("row %s: %s", row.Reason, row.Error)
		}
	}
}

// Workers wait while there is no room for what they finished.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connectOnly("a")
	if err := conn.Prepare(t.Context(), Limits{AckWait: testAckWait, MaxPartsBytes: 32 << 10}); err != nil {
		t.Fatal(err)
	}
	points := testPoints(t, 30)
	var told atomic.Int32
	startWorker(t, s.connectOnly("a"), func(o *WorkerOptions) {
		o.Notice = func(text string) {
			if strings.Contains(text, "no finished points") {
				told.Add(1)
			}
		}
	})
	// A coordinator that is slow to take in what there is.
	slow := func(o *sweep.Options) { o.Executor = slowExecutor{o.Executor} }
	out := testSweep{t: t, conn: conn, dir: t.TempDir(), sweep: slow}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
	if told.Load() != 1 {
		t.Errorf("people were told %d times", told.Load())
	}
}

// slowExecutor delivers at most every now and then.
type slowExecutor struct{ sweep.Executor }

func (s slowExecutor) Receive(ctx context.Context) (sweep.Delivery, error) {
	pause(ctx, 40*time.Millisecond)
	return s.Executor.Receive(ctx)
}

// Points that the server lost are published again, and people are told when no worker is there.
func TestLostPoints(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 10)
	var notices sync.Map
	told := func(part string) bool {
		found := false
		notices.Range(func(text, _ any) bool {
			found = found || strings.Contains(text.(string), part)
			return true
		})
		return found
	}
	go func() {
		waitFor(t, "the notice that there are no workers", func() bool { return told("no worker of simulator version") })
		if err := conn.ask(t.Context(), func(ctx context.Context) error {
			stream, err := conn.js.Stream(ctx, conn.pointsStream())
			if err != nil {
				return err
			}
			return stream.Purge(ctx)
		}); err != nil {
			t.Error(err)
		}
		startWorker(t, s.connect("a"))
	}()
	notice := func(o *CoordinatorOptions) {
		o.quietFor = 100 * time.Millisecond
		o.Notice = func(text string) { notices.Store(text, true) }
	}
	out := testSweep{t: t, conn: conn, dir: t.TempDir(), change: notice}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
	if !told("published again") {
		t.Error("nobody was told that points were lost")
	}
}

// A worker that lacks something does not use up the tries of points that another one can simulate.
func TestSickWorker(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var failed atomic.Int32
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Jobs = 1
		o.Simulate = before(func(context.Context, sweep.Job) error {
			failed.Add(1)
			return &sweep.EnvironmentError{Err: errors.New("no space left on device")}
		})
	})
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Jobs = 1
		o.Simulate = before(func(context.Context, sweep.Job) error {
			time.Sleep(30 * time.Millisecond)
			return nil
		})
	})
	points := testPoints(t, 40)
	out := testSweep{t: t, conn: s.connect("a"), dir: t.TempDir()}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
	if failed.Load() == 0 {
		t.Error("the sick worker had no point")
	}
}

// A folder that takes no files of points ends the sweep as a journal does that cannot be written, with what is finished.
func TestFolderIsFull(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Simulate = func(ctx context.Context, job sweep.Job, _ []string, write func(string, func(io.Writer) error) error) (*simcore.Report, error) {
			if err := write("requests", func(w io.Writer) error { _, err := io.WriteString(w, "made"); return err }); err != nil {
				return nil, err
			}
			return reallySimulate(ctx, job)
		}
	})
	full := func(o *CoordinatorOptions) {
		o.Kept = []string{"requests"}
		o.KeepFile = func(string, string, io.Reader) error { return errors.New("no space left on device") }
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	_, err := testSweep{t: t, conn: s.connect("a"), dir: t.TempDir(), change: full}.run(ctx, testPoints(t, 6))
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || ctx.Err() != nil {
		t.Errorf("error %v", err)
	}
}

// What is in the store under the name of another content does not count, and is replaced.
func TestPoisonedStore(t *testing.T) {
	t.Parallel()
	store := objects{startServer(t).connect("a")}
	name := strings.Repeat("ab", 32)
	if err := store.Put(t.Context(), name, strings.NewReader("something else")); err != nil {
		t.Fatal(err)
	}
	if has, err := store.Has(t.Context(), name); has || err != nil {
		t.Errorf("a poisoned object counts: %v, error %v", has, err)
	}
	sum := sha256.Sum256([]byte("right"))
	name = hex.EncodeToString(sum[:])
	if err := store.Put(t.Context(), name, strings.NewReader("right")); err != nil {
		t.Fatal(err)
	}
	if has, err := store.Has(t.Context(), name); !has || err != nil {
		t.Errorf("an object is there: %v, error %v", has, err)
	}
}

// Streams and buckets that somebody removes while a sweep runs are made again, and what was in them is published again; so is
// everything of a server that lost its disk.
func TestLostStreams(t *testing.T) {
	t.Parallel()
	remove := func(stream func(*Connection) string) func(*testing.T, *testServer, *Connection) {
		return func(t *testing.T, _ *testServer, conn *Connection) {
			err := conn.ask(t.Context(), func(ctx context.Context) error { return conn.js.DeleteStream(ctx, stream(conn)) })
			if err != nil {
				t.Error(err)
			}
		}
	}
	tests := []struct {
		name string
		lose func(*testing.T, *testServer, *Connection)
	}{
		{"points", remove(func(c *Connection) string { return c.pointsStream() })},
		{"parts", remove(func(c *Connection) string { return c.partsStream() })},
		{"files", remove(func(c *Connection) string { return c.filesStream() })},
		{"workers", remove(func(c *Connection) string { return c.workersStream() })},
		{"tries", remove(func(c *Connection) string { return c.triesStream() })},
		{"disk", func(t *testing.T, s *testServer, _ *Connection) {
			s.stop()
			if err := os.RemoveAll(s.opts.StoreDir); err != nil {
				t.Error(err)
			}
			s.start()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			conn := s.connect("a")
			points := testPoints(t, 10)
			var lose sync.Once
			var begun atomic.Int32
			startWorker(t, s.connect("a"), func(o *WorkerOptions) {
				o.Jobs = 1
				o.Simulate = before(func(context.Context, sweep.Job) error {
					if begun.Add(1) == 4 {
						go lose.Do(func() { tt.lose(t, s, conn) })
					}
					time.Sleep(30 * time.Millisecond)
					return nil
				})
			})
			watch := func(o *CoordinatorOptions) { o.watchEvery = 200 * time.Millisecond }
			out := testSweep{t: t, conn: conn, dir: t.TempDir(), change: watch}.mustRun(points)
			if diff := sameRows(locally(t, points), out.Rows); diff != "" {
				t.Fatalf("rows (-local +queue):\n%s", diff)
			}
		})
	}
}

// The files that workers make of points come back with them and do not stay in the queue.
func TestMadeFiles(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 12)
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Simulate = func(ctx context.Context, job sweep.Job, kinds []string, write func(string, func(io.Writer) error) error) (*simcore.Report, error) {
			for _, kind := range kinds {
				err := write(kind, func(w io.Writer) error {
					_, err := io.WriteString(w, kind+" of "+job.ID)
					return err
				})
				if err != nil {
					return nil, err
				}
			}
			return reallySimulate(ctx, job)
		}
	})
	var mu sync.Mutex
	got := map[string]string{}
	keep := func(o *CoordinatorOptions) {
		o.Kept = []string{"requests", "timelines"}
		o.KeepFile = func(kind, id string, r io.Reader) error {
			var b bytes.Buffer
			_, err := b.ReadFrom(r)
			mu.Lock()
			defer mu.Unlock()
			got[kind+" of "+id] = b.String()
			return err
		}
	}
	out := testSweep{t: t, conn: conn, dir: t.TempDir(), change: keep}.mustRun(points)
	for _, row := range out.Rows {
		for _, kind := range []string{"requests", "timelines"} {
			if name := kind + " of " + row.ID; got[name] != name {
				t.Errorf("%s is %q", name, got[name])
			}
		}
	}
	if info, err := conn.streamInfo(t.Context(), conn.filesStream(), "$O."+conn.filesBucket()+".C.>"); err != nil || len(info.State.Subjects) > 0 {
		t.Errorf("files stay in the queue: %v, %v", info.State.Subjects, err)
	}
}

// A worker that is told to end finishes what it can and gives the rest back at once.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connectFor("a", Limits{AckWait: 10 * time.Second}) // what is not given back comes again after this
	points := testPoints(t, 20)
	var begun atomic.Int32
	var leaving counter
	stuck := startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Jobs, o.Grace, o.Observer = 3, 100*time.Millisecond, &leaving
		o.Simulate = before(func(ctx context.Context, _ sweep.Job) error {
			if begun.Add(1) == 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
	})
	var seen counter
	go func() {
		waitFor(t, "points under way", func() bool { return begun.Load() >= 4 })
		if out := stuck(); out.Finished != 1 || out.Returned < 3 {
			t.Errorf("the worker that left: %+v", out)
		}
		startWorkerLater(t, s.connect("a"), &seen)
	}()
	out := testSweep{t: t, conn: conn, dir: t.TempDir()}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
	if leaving.settled.Load() != leaving.received.Load() {
		t.Errorf("%d points received, %d settled", leaving.received.Load(), leaving.settled.Load())
	}
}

// What the server has sent to a worker as it is told to end goes back at once: nobody else would get it before the server thinks
// that the worker is lost.
func TestDrainOnTheWay(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connectFor("a", Limits{AckWait: 10 * time.Minute})
	points := testPoints(t, 3000)
	sent := new(counter)
	finish := testSweep{t: t, conn: conn, dir: t.TempDir(), change: func(o *CoordinatorOptions) { o.Observer = sent }}.start(points)
	for range 8 {
		var seen counter
		end := startWorker(t, s.connect("a"), func(o *WorkerOptions) {
			o.Jobs, o.Observer = 16, &seen // so that hundreds are on the way at a time
		})
		for seen.received.Load() < 100 && sent.rows.Load() < int64(len(points)) {
			runtime.Gosched()
		}
		end()
	}
	startWorker(t, s.connect("a"))
	if got := finish(); got.Counts.OK != len(points) {
		t.Errorf("%+v", got.Counts)
	}
}

// A worker that is told to end while the server is away does not wait for it longer than a moment after the grace period.
func TestWorkerEndsWithoutServer(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	ctx, stop := context.WithCancel(t.Context())
	var begun atomic.Int32
	away := make(chan struct{})
	told := make(chan string, 100)
	end := startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Jobs, o.Notice = 2, func(text string) { told <- text }
		o.Simulate = before(func(ctx context.Context, _ sweep.Job) error {
			if begun.Add(1) == 2 { // one ends after the server does, the other never
				<-ctx.Done()
				return ctx.Err()
			}
			<-away
			return nil
		})
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = testSweep{t: t, conn: conn, dir: t.TempDir()}.run(ctx, testPoints(t, 2))
	}()
	waitFor(t, "both points", func() bool { return begun.Load() == 2 })
	s.stop()
	close(away)
	began := time.Now()
	if out := end(); out.Finished != 0 || out.Returned != 0 || out.Left != 2 || time.Since(began) > leastLast+10*time.Second {
		t.Errorf("%+v after %s", out, time.Since(began))
	}
	close(told)
	waits := false
	for text := range told {
		waits = waits || strings.HasPrefix(text, "waiting up to 5s for the server")
	}
	if !waits {
		t.Error("nobody was told that the worker waits for the server")
	}
	s.start()
	stop()
	<-done
}

// Points that a worker took ahead, behind one that takes long, go to a worker that has nothing to do.
func TestAheadGoesBack(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connectFor("a", Limits{AckWait: 10 * time.Minute})
	points := testPoints(t, 20)
	long := make(chan struct{})
	var begun atomic.Int32
	var first, second counter
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Jobs, o.Observer = 1, &first
		o.Simulate = before(func(ctx context.Context, _ sweep.Job) error {
			if begun.Add(1) == 10 {
				select {
				case <-long:
				case <-ctx.Done():
				}
			}
			return nil
		})
	})
	finish := testSweep{t: t, conn: conn, dir: t.TempDir()}.start(points)
	waitFor(t, "the long point", func() bool { return begun.Load() == 10 })
	startWorker(t, s.connect("a"), func(o *WorkerOptions) { o.Observer = &second })
	waitFor(t, "the other points", func() bool { return second.settled.Load() == 10 })
	close(long)
	if got := finish(); got.Counts.OK != len(points) || first.returned.Load() == 0 {
		t.Errorf("%+v; %d points went back", got.Counts, first.returned.Load())
	}
}

// A worker ends after so many points, and when there is nothing to do.
func TestWorkerEnds(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connectOnly("a")
	if err := conn.Prepare(t.Context(), Limits{}); err != nil { // no point is thought lost and counted twice
		t.Fatal(err)
	}
	points := testPoints(t, 10)
	work := func(o WorkerOptions) WorkerOutcome {
		o.Connection, o.Cache = s.connect("a"), t.TempDir()
		out, err := Work(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		return out
	}
	finish := testSweep{t: t, conn: conn, dir: t.TempDir()}.start(points)
	first := work(WorkerOptions{MaxPoints: 4})
	second := work(WorkerOptions{IdleExit: 3 * time.Second}) // far more than a busy machine needs to deliver one
	finish()
	if first.Finished != 4 || second.Finished != 6 {
		t.Errorf("the workers finished %+v and %+v", first, second)
	}
}

// A sweep that is told to start afresh takes nothing of before.
func TestFresh(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 4)
	dir := t.TempDir()
	const before = "of-before"
	named(t, dir, before)
	row := sweep.FailedRow(points[0].ContentID("aa"), "aa", sweep.ReasonTimeout, "of before")
	lines, err := sweep.EncodeRows([]results.Row{row})
	if err == nil {
		_, err = conn.js.Publish(t.Context(), conn.parts(before), lines)
	}
	if err != nil {
		t.Fatal(err)
	}
	startWorker(t, s.connect("a"))
	var seen counter
	testSweep{
		t: t, conn: conn, dir: dir, change: func(o *CoordinatorOptions) { o.Fresh, o.Observer = true, &seen },
		sweep: func(o *sweep.Options) { o.Fresh = true },
	}.mustRun(points)
	if seen.rows.Load() != 4 {
		t.Errorf("%d rows came", seen.rows.Load())
	}
}

// workloadSource is what the workload of a point is loaded with.
func workloadSource(p gridspec.Point) workload.Source {
	set, _ := rules.For(p.Config.Compat)
	return workload.Source{Rules: set, EngineBlockSize: p.Config.BlockSize()}
}
