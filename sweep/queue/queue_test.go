package queue

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/servegrid/servegrid/sweep"
)

func TestMain(m *testing.M) {
	// An object store of nats.go 1.55 forgets this goroutine when a file is stored before it has begun.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"))
}

// A sweep through the queue has the rows of one on this machine, and leaves nothing behind.
func TestSweepThroughQueue(t *testing.T) {
	s := startServer(t)
	conn := s.connectOnly("team-a")
	if err := conn.Prepare(t.Context(), Limits{}); err != nil {
		t.Fatal(err)
	}
	points := testPoints(t, 50)
	var seen counter
	observe := func(o *WorkerOptions) { o.Observer = &seen }
	startWorker(t, s.connectOnly("team-a"), observe)
	startWorker(t, s.connectOnly("team-a"), observe)
	out := testSweep{t: t, conn: conn, dir: t.TempDir()}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
	if out.Counts.Simulated != 50 || seen.received.Load() != 50 || seen.redelivered.Load() != 0 {
		t.Errorf("counts %+v; %d points received, %d again", out.Counts, seen.received.Load(), seen.redelivered.Load())
	}
	if state, err := conn.Seen(t.Context()); err != nil || state.Streams[0].Messages != 0 || state.Streams[1].Messages != 0 {
		t.Errorf("left behind: %+v, %v", state, err)
	}
}

// Rows travel together: a worker that always has the next point sends what it finishes within half a second at once.
func TestRowsTravelTogether(t *testing.T) {
	s := startServer(t)
	points := testPoints(t, 30)
	var seen counter
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Jobs, o.Observer = 1, &seen
		o.Simulate = before(func(context.Context, sweep.Job) error {
			time.Sleep(15 * time.Millisecond)
			return nil
		})
	})
	out := testSweep{t: t, conn: s.connect("a"), dir: t.TempDir()}.mustRun(points)
	if out.Counts.OK != len(points) {
		t.Fatalf("%+v", out.Counts)
	}
	// About two if nothing else runs on the machine, one for each point if every row is sent by itself.
	if parts := seen.parts.Load(); parts > int64(len(points))/2 {
		t.Errorf("%d points came in %d parts", len(points), parts)
	}
}

// The chart knows which version of the simulator its workers have: KEDA counts what waits for them.
func TestChartKnowsTheVersion(t *testing.T) {
	chart, err := os.ReadFile("../../deploy/helm/servegrid/Chart.yaml")
	if want := fmt.Sprintf("servegrid/simulator: %q", thisVersion); err != nil || !strings.Contains(string(chart), want) {
		t.Errorf("no %s in the chart, error %v", want, err)
	}
}
