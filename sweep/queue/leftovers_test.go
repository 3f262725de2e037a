package queue

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep"
)

// named gives a folder's sweep a name in the queue.
func named(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, TokenFile), []byte(name+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// sendLate sends a row of a point as a worker that was thought lost does.
func sendLate(t *testing.T, conn *Connection, sweepName string) {
	t.Helper()
	row := sweep.FailedRow(strings.Repeat("ab", 16), "aa", sweep.ReasonTimeout, "late")
	lines, err := sweep.EncodeRows([]results.Row{row})
	if err == nil {
		err = objects{conn}.Put(t.Context(), producedName(sweepName, row.ID, "requests"), strings.NewReader("made"))
	}
	if err == nil {
		_, err = conn.js.Publish(t.Context(), conn.parts(sweepName), lines)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What comes for a sweep that has ended is removed by the next one; what waits for one that was interrupted stays.
func TestLateParts(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	startWorker(t, s.connect("a"))
	points := testPoints(t, 2)
	first := t.TempDir()
	named(t, first, "ended-one")
	testSweep{t: t, conn: conn, dir: first}.mustRun(points)
	if name, err := readToken(first); name != "" || err != nil {
		t.Errorf("a sweep that has all its rows keeps the name %q, %v", name, err)
	}
	sendLate(t, conn, "interrupted-one")
	for _, dir := range []string{t.TempDir(), first} { // another sweep, and the same one with nothing to do
		sendLate(t, conn, "ended-one")
		testSweep{t: t, conn: conn, dir: dir}.mustRun(points)
		checkLeftovers(t, conn)
	}
}

// checkLeftovers wants what came for ended-one to be gone, and what came for interrupted-one to be there.
func checkLeftovers(t *testing.T, conn *Connection) {
	t.Helper()
	subjects, err := conn.subjects(t.Context(), conn.partsStream(), conn.allParts())
	if err != nil || len(subjects) != 1 || subjects[conn.parts("interrupted-one")] != 1 {
		t.Errorf("parts %v, error %v", subjects, err)
	}
	for name, want := range map[string]bool{"ended-one": false, "interrupted-one": true} {
		has, err := objects{conn}.Has(t.Context(), producedName(name, strings.Repeat("ab", 16), "requests"))
		if has != want || err != nil {
			t.Errorf("the file of %s is there: %v, error %v", name, has, err)
		}
	}
}

// Two sweeps of one name, such as that of a copied folder, do not withdraw each other's points: the second says what is wrong.
func TestCopiedFolder(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 4)
	first, second := t.TempDir(), t.TempDir()
	named(t, first, "one-name")
	named(t, second, "one-name")
	goOn, begun := make(chan struct{}), make(chan struct{}, len(points))
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Simulate = func(ctx context.Context, job sweep.Job, _ []string, _ func(string, func(io.Writer) error) error) (*simcore.Report, error) {
			begun <- struct{}{}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return reallySimulate(ctx, job)
		}
	})
	finish := testSweep{t: t, conn: conn, dir: first}.start(points)
	waitFor(t, "the first sweep's points", func() bool { return len(begun) > 0 })
	soon := func(o *CoordinatorOptions) { o.aloneFor = time.Millisecond }
	_, err := testSweep{t: t, conn: s.connect("a"), dir: second, change: soon}.run(t.Context(), points)
	if err == nil || !strings.Contains(err.Error(), "the folder was copied") {
		t.Errorf("error %v", err)
	}
	close(goOn)
	if diff := sameRows(locally(t, points), finish().Rows); diff != "" {
		t.Errorf("rows (-local +queue):\n%s", diff)
	}
}

// A sweep that ends while the server is away keeps its name, so that the same command again removes what it left.
func TestEndsWithoutServer(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	end := startWorker(t, s.connect("a"))
	points := testPoints(t, 2)
	dir := t.TempDir()
	c := NewCoordinator(CoordinatorOptions{Connection: conn, Dir: dir})
	if _, err := sweep.Run(t.Context(), points, sweep.Options{Dir: dir, Executor: c}); err != nil {
		t.Fatal(err)
	}
	end()
	s.stop()
	ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer stop()
	if err := c.Close(ctx, true); err == nil || !strings.Contains(err.Error(), "does no harm") {
		t.Errorf("error %v", err)
	}
	earlier, err := readToken(dir)
	if earlier == "" || err != nil {
		t.Fatalf("the name is %q, error %v", earlier, err)
	}

	s.start()
	conn = s.connect("a")
	testSweep{t: t, conn: conn, dir: dir}.mustRun(points)
	if name, err := readToken(dir); name != "" || err != nil {
		t.Errorf("after the end, the name is %q, error %v", name, err)
	}
	if _, err := conn.js.Consumer(t.Context(), conn.partsStream(), partsConsumer(earlier)); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Errorf("the consumer of the sweep: error %v", err)
	}
}
