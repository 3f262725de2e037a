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

func TestPlausible(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0a", 16)
	ok := results.Row{ID: id, Status: results.StatusOK, WallSeconds: 0.5, WorkloadDigest: "77e1"}
	for name, tt := range map[string]struct {
		change func(*results.Row)
		want   string
	}{
		"a row":             {func(*results.Row) {}, ""},
		"a failure":         {func(r *results.Row) { r.Status, r.Reason = results.StatusFailed, sweep.ReasonTimeout }, ""},
		"no workload":       {func(r *results.Row) { r.WorkloadDigest = "" }, ""},
		"another name":      {func(r *results.Row) { r.ID = "unknown" }, "not the content ID"},
		"a path":            {func(r *results.Row) { r.ID = "../" + id }, "not the content ID"},
		"another digest":    {func(r *results.Row) { r.WorkloadDigest = "x/y" }, "not the digest"},
		"time before":       {func(r *results.Row) { r.WallSeconds = -1 }, "not possible"},
		"time without end":  {func(r *results.Row) { r.WallSeconds = 1e300 }, "not possible"},
		"no reason":         {func(r *results.Row) { r.Status = results.StatusFailed }, "does not go with"},
		"a reason too many": {func(r *results.Row) { r.Reason = "x" }, "does not go with"},
		"a long reason":     {func(r *results.Row) { r.Status, r.Reason = results.StatusFailed, strings.Repeat("x", 100) }, "does not go with"},
		"a long text": {func(r *results.Row) {
			r.Status, r.Reason, r.Error = results.StatusFailed, "x", strings.Repeat("x", 1<<20)
		}, "does not go with"},
	} {
		r := ok
		tt.change(&r)
		good, wrong := plausible([]results.Row{ok, r})
		switch {
		case tt.want == "" && (len(good) != 2 || len(wrong) != 0):
			t.Errorf("%s: %v", name, wrong)
		case tt.want != "" && (len(good) != 1 || len(wrong) != 1 || !strings.Contains(wrong[0].Error(), tt.want)):
			t.Errorf("%s: %d good, %v", name, len(good), wrong)
		}
	}
}

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

// Whatever a part holds, only rows that a worker may have sent come out of it.
func FuzzReadPart(f *testing.F) {
	ours := results.Row{ID: strings.Repeat("0a", 16), Status: results.StatusFailed, Reason: sweep.ReasonTimeout, WallSeconds: 1}
	strange := ours
	strange.ID = "unknown"
	for _, rows := range [][]results.Row{nil, {ours}, {strange}, {ours, strange}} {
		lines, err := sweep.EncodeRows(rows)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(lines)
		f.Add(lines[:len(lines)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, _ := readPart(data)
		for i := range rows {
			if err := implausible(&rows[i]); err != nil {
				t.Error(err)
			}
		}
	})
}
