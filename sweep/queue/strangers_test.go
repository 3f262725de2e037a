package queue

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// What strangers publish into a namespace does not reach the results, nor keep others' rows from them.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	points := testPoints(t, 6)
	dir := t.TempDir()
	named(t, dir, "of-us")
	var mu sync.Mutex
	var told strings.Builder
	tell := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		told.WriteString(text + "\n")
	}
	lines, err := sweep.EncodeRows([]results.Row{
		sweep.FailedRow("unknown", "", sweep.ReasonRefused, "of no point"),
		sweep.FailedRow(strings.Repeat("ab", 16), "", sweep.ReasonTimeout, "of another sweep"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.js.Publish(t.Context(), conn.parts("of-us"), lines); err != nil {
		t.Fatal(err)
	}
	nameless := &nats.Msg{Subject: conn.points(thisVersion, "of-us"), Data: []byte("nothing"), Header: nats.Header{}}
	var once sync.Once
	startWorker(t, s.connect("a"), func(o *WorkerOptions) {
		o.Notice = tell
		o.Simulate = before(func(ctx context.Context, _ sweep.Job) error {
			once.Do(func() {
				if _, err := conn.js.PublishMsg(ctx, nameless); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(20 * time.Millisecond)
			return nil
		})
	})
	out := testSweep{t: t, conn: conn, dir: dir, change: func(o *CoordinatorOptions) { o.Notice = tell }}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Errorf("rows (-local +queue):\n%s", diff)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{`"unknown" is not the content ID of a point`, "names no point"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is not in: %s", want, told.String())
		}
	}
	if out.Journal.Unused != 1 {
		t.Errorf("%d results are of no point of the sweep", out.Journal.Unused)
	}
}
