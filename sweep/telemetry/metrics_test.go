package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func point(index int) gridspec.Point { return gridspec.Point{Index: index} }

func finished(index int, status results.Status, reason string, simulated bool) sweep.Finished {
	return sweep.Finished{Simulated: simulated, Row: results.Row{Point: &gridspec.Point{Index: index}, Status: status, Reason: reason, WallSeconds: 0.2}}
}

// The gauges follow the points of a sweep, also of one whose rows come without a start.
func TestSweepMetrics(t *testing.T) {
	m := NewMetrics(Identity{Program: "v1", Simulator: "11", Build: "default", Sweep: "demo"})
	s := m.Sweep()
	s.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	s.SweepStarted(6)
	for i := range 3 {
		s.PointStarted(point(i))
	}
	s.PointFinished(finished(0, results.StatusOK, "", true))
	s.PointFinished(finished(1, results.StatusFailed, "timeout", true))
	s.PointFinished(finished(4, results.StatusOK, "", false)) // never started
	s.JournalCommitted(2, 300, 4*time.Millisecond)
	load := s.Load(func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error) {
		return nil, errors.New("no such file")
	})
	if _, err := load(context.Background(), workload.Spec{}, workload.Source{}); err == nil {
		t.Error("the error of a load is lost")
	}
	if err := s.WriteResults(func(string, []results.Row) error { return errors.New("disk full") })("x", nil); err == nil {
		t.Error("the error of a write is lost")
	}
	want := `
# HELP servegrid_sweep_points Points of the sweep; of a search, about how many it will simulate.
# TYPE servegrid_sweep_points gauge
servegrid_sweep_points{sweep="demo"} 6
# HELP servegrid_points_queued Points without a row that have not begun.
# TYPE servegrid_points_queued gauge
servegrid_points_queued{sweep="demo"} 2
# HELP servegrid_points_running Points that are being simulated; with a queue, those that were handed to it.
# TYPE servegrid_points_running gauge
servegrid_points_running{sweep="demo"} 1
# HELP servegrid_points_finished_total Points that have their row, by status and by where it came from: simulated, or reused.
# TYPE servegrid_points_finished_total counter
servegrid_points_finished_total{source="simulated",status="failed",sweep="demo"} 1
servegrid_points_finished_total{source="simulated",status="ok",sweep="demo"} 1
servegrid_points_finished_total{source="reused",status="ok",sweep="demo"} 1
# HELP servegrid_points_failed_total Points whose row is a failure, by its reason.
# TYPE servegrid_points_failed_total counter
servegrid_points_failed_total{reason="timeout",sweep="demo"} 1
# HELP servegrid_journal_bytes_total Bytes that were appended to the journal.
# TYPE servegrid_journal_bytes_total counter
servegrid_journal_bytes_total{sweep="demo"} 300
# HELP servegrid_results_write_failures_total Times that the results file could not be written.
# TYPE servegrid_results_write_failures_total counter
servegrid_results_write_failures_total{sweep="demo"} 1
# HELP servegrid_workload_loads_total Workloads that were loaded, by result: ok or error.
# TYPE servegrid_workload_loads_total counter
servegrid_workload_loads_total{result="error",sweep="demo"} 1
servegrid_workload_loads_total{result="ok",sweep="demo"} 0
# HELP servegrid_last_point_timestamp_seconds When the last point got its row, in seconds since 1970; at first when the sweep started.
# TYPE servegrid_last_point_timestamp_seconds gauge
servegrid_last_point_timestamp_seconds{sweep="demo"} 1.7e+09
`
	if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "servegrid_sweep_points", "servegrid_points_queued",
		"servegrid_points_running", "servegrid_points_finished_total", "servegrid_points_failed_total", "servegrid_journal_bytes_total",
		"servegrid_results_write_failures_total", "servegrid_workload_loads_total", "servegrid_last_point_timestamp_seconds"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(s.finished); n != 3 {
		t.Errorf("%d series of finished points, want 3", n)
	}
}

// A point that was simulated and whose row is not on the disk yet does not run any more.
func TestWhatIsSimulatedRuns(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_700_000_000, 0)
	m, status := NewMetrics(Identity{}).Sweep(), NewStatusFile(dir, Status{}, sweep.Objective{}, func() time.Time { return now })
	observer := Observers(m, status)
	inside := func() {}
	simulate := m.Simulate(status.Simulate(func(context.Context, sweep.Job) (*simcore.Report, error) {
		inside()
		return nil, errors.New("it cannot be simulated")
	}))
	running := func(want int) {
		t.Helper()
		s, err := ReadStatus(dir)
		if gauge := testutil.ToFloat64(m.running); err != nil || gauge != float64(want) || s.Points.Running != want {
			t.Errorf("%v run, and %d by the status (%v), want %d", gauge, s.Points.Running, err, want)
		}
	}
	observer.SweepStarted(4)
	for i := range 3 {
		observer.PointStarted(point(i))
		if _, err := simulate(context.Background(), sweep.Job{}); err == nil {
			t.Error("the error of a simulation is lost")
		}
	}
	observer.PointStarted(point(3))
	inside = func() {
		now = now.Add(statusInterval)
		observer.PointFinished(finished(0, results.StatusOK, "", true))
		running(1)
	}
	_, _ = simulate(context.Background(), sweep.Job{})
	now = now.Add(statusInterval)
	observer.PointFinished(finished(1, results.StatusOK, "", true))
	running(0)
	if queued := testutil.ToFloat64(m.queued); queued != 0 {
		t.Errorf("%v have not begun", queued)
	}
}

// Whatever reasons, versions and statuses rows say, the number of series is bounded, and no message becomes a label.
func TestLabelsAreBounded(t *testing.T) {
	m := NewMetrics(Identity{})
	s, w, c := m.Sweep(), m.Worker(), m.Coordinator()
	s.SweepStarted(1000)
	var seen queue.State
	for i := range 1000 {
		row := results.Row{Point: &gridspec.Point{Index: i}, Status: results.Status(fmt.Sprintf("status%d", i)), Reason: fmt.Sprintf("reason_%d", i)}
		if i%2 == 0 {
			row.Status, row.Reason = results.StatusFailed, fmt.Sprintf("an error: https://user:password@host/%d", i)
		}
		if i%3 == 0 {
			row.Status = results.StatusFailed
		}
		s.PointFinished(sweep.Finished{Row: row, Simulated: true})
		w.PointFinished(context.Background(), &row, time.Second, nil)
		seen.Consumers = append(seen.Consumers, queue.ConsumerState{Version: fmt.Sprintf("v%d", i), Waiting: 1})
		seen.Streams = append(seen.Streams, queue.StreamState{Kind: fmt.Sprintf("k%d", i), Messages: 1, Bytes: 2})
	}
	c.QueueSeen(seen)
	families, err := m.ours.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.Metric); n > maxReasons+1 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
		if text := f.String(); strings.Contains(text, "password") || strings.Contains(text, "an error") {
			t.Errorf("%s has a message for a label: %s", f.GetName(), text)
		}
	}
	if got := testutil.ToFloat64(c.waiting.WithLabelValues(other)); got != 1000-maxVersions {
		t.Errorf("%v points of other versions, want %d", got, 1000-maxVersions)
	}
	c.QueueSeen(queue.State{}) // what is gone is not shown any more
	if n := testutil.CollectAndCount(c.waiting); n != 0 {
		t.Errorf("%d consumers are shown that are gone", n)
	}
}

func TestQueueMetrics(t *testing.T) {
	m := NewMetrics(Identity{Namespace: "team"})
	w, c := m.Worker(), m.Coordinator()
	now := time.Unix(1000, 0)
	w.now = func() time.Time { return now }
	ctx := context.Background()
	w.WorkerStarted(4)
	w.Connected()
	w.PointReceived(ctx, nil, "id", now.Add(-3*time.Second), 1)
	w.PointReceived(ctx, nil, "id", now.Add(time.Second), 2)
	w.PointStarted(ctx)
	w.PointStarted(ctx)
	w.PointFinished(ctx, &results.Row{Status: results.StatusOK}, time.Second, nil)
	w.PointStarted(ctx)
	w.PointFinished(ctx, nil, 0, errors.New("disk full"))
	w.PartPublished(ctx, 1, 500, time.Millisecond, nil)
	w.PartPublished(ctx, 1, 500, time.Second, errors.New("no answer"))
	w.PointSettled(ctx, queue.SettledDead)
	w.FileFetched(ctx, 1000, false, time.Second, nil)
	w.FileFetched(ctx, 1000, true, 0, nil)
	w.Disconnected(errors.New("reset"))
	c.PointPublished(ctx, "id", 700, nil)
	c.PointPublished(ctx, "id", 700, errors.New("full"))
	c.PointsOut(3)
	c.PartReceived(5, 2, 900)
	c.FileStored(100, false, nil)
	c.FileStored(100, true, nil)
	c.QueueSeen(queue.State{
		Streams:   []queue.StreamState{{Kind: "points", Messages: 7, Bytes: 70, MaxBytes: 100}},
		Consumers: []queue.ConsumerState{{Version: "11", Waiting: 5, InProgress: 2, Redelivered: 1}},
		Workers:   map[string]int{"10": 3},
	})
	for _, v := range []struct {
		what string
		c    prometheus.Collector
		want float64
	}{
		{"slots", w.slots, 4}, {"busy", w.busy, 1}, {"received", w.received, 2}, {"redelivered", w.redelivered, 1},
		{"ok", w.finished.WithLabelValues("ok"), 1}, {"errors", w.finished.WithLabelValues("error"), 1},
		{"parts", w.parts.WithLabelValues("ok"), 1}, {"lost parts", w.parts.WithLabelValues("error"), 1}, {"bytes of parts", w.publishedBytes, 500},
		{"dead", w.settled.WithLabelValues("dead"), 1}, {"acked", w.settled.WithLabelValues("acked"), 0},
		{"fetched", w.files.WithLabelValues("fetched"), 1}, {"cached", w.files.WithLabelValues("cached"), 1}, {"bytes of files", w.fileBytes, 1000},
		{"connected", w.connected, 0}, {"disconnects", w.lost, 1},
		{"published", c.published.WithLabelValues("ok"), 1}, {"published bytes", c.publishedBytes, 700}, {"out", c.out, 3},
		{"rows", c.rows, 5}, {"duplicates", c.duplicates, 2}, {"stored", c.storedBytes, 100},
		{"waiting", c.waiting.WithLabelValues("11"), 5}, {"in progress", c.inProgress.WithLabelValues("11"), 2},
		{"no workers", c.workers.WithLabelValues("11"), 0}, {"other workers", c.workers.WithLabelValues("10"), 3},
		{"stream", c.size.WithLabelValues("points"), 70}, {"limit", c.limitBytes.WithLabelValues("points"), 100},
	} {
		if got := testutil.ToFloat64(v.c); got != v.want {
			t.Errorf("%s: %v, want %v", v.what, got, v.want)
		}
	}
}

// Prometheus reads the metrics in each of its formats, and the linter of client_golang has nothing to say.
func TestServer(t *testing.T) {
	m := NewMetrics(Identity{Sweep: "demo", Namespace: "team"})
	s := m.Sweep()
	m.Worker()
	m.Coordinator()
	s.SweepStarted(1)
	s.PointFinished(finished(0, results.StatusOK, "", true))
	server, err := Serve("0", m)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	if !strings.HasPrefix(server.Address(), "127.0.0.1:") {
		t.Errorf("listens on %s", server.Address())
	}
	get := func(path, accept string) (int, string, string) {
		t.Helper()
		req, _ := http.NewRequest("GET", "http://"+server.Address()+path, nil)
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header.Get("Content-Type"), string(body)
	}
	if code, _, body := get("/readyz", ""); code != 503 || !strings.Contains(body, "starting") {
		t.Errorf("ready before the start: %d %s", code, body)
	}
	server.SetReady(func() error { return errors.New("nats://user:secretword@host is not there") })
	if code, _, body := get("/readyz", ""); code != 503 || strings.Contains(body, "secretword") {
		t.Errorf("%d %s", code, body)
	}
	server.SetReady(func() error { return nil })
	for path, want := range map[string]int{"/readyz": 200, "/healthz": 200, "/": 200, "/other": 404} {
		if code, _, body := get(path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	code, kind, body := get("/metrics", "application/openmetrics-text;version=1.0.0")
	if code != 200 || !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(body, "# EOF\n") {
		t.Errorf("OpenMetrics: %d %s", code, kind)
	}
	_, kind, body = get("/metrics", "text/plain")
	for _, want := range []string{
		`servegrid_points_finished_total{queue_namespace="team",source="simulated",status="ok",sweep="demo"} 1`, "go_goroutines", "process_cpu_seconds_total",
		`servegrid_point_duration_seconds_bucket{queue_namespace="team",sweep="demo",le="0.25"} 1`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, kind)
		}
	}
	if problems, err := testutil.GatherAndLint(m.ours); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + server.Address() + "/healthz"); err == nil {
		t.Error("the server still listens")
	}
}

func TestListenAddress(t *testing.T) {
	for in, want := range map[string]string{
		"9464": "127.0.0.1:9464", ":9464": "127.0.0.1:9464", "0": "127.0.0.1:0", "0.0.0.0:1": "0.0.0.0:1", "[::]:9464": "[::]:9464", "localhost:http": "localhost:http",
	} {
		if got, err := listenAddress(in); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", ":", "host", "70000", "-1", "1:2:3", "host:", "http://host:1"} {
		if got, err := listenAddress(in); err == nil {
			t.Errorf("%q is taken for %s", in, got)
		} else if !strings.Contains(err.Error(), "such as") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestTextFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "servegrid.prom")
	m := NewMetrics(Identity{Sweep: "demo"})
	s := m.Sweep()
	f, err := WriteTextFile(path, m)
	if err != nil {
		t.Fatal(err)
	}
	s.SweepStarted(7)
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "servegrid_sweep_points{sweep=\"demo\"} 7\n") {
		t.Errorf("the last write is missing:\n%s", text)
	}
	if regexp.MustCompile(`(?m)^(go|process)_`).Match(text) {
		t.Error("node_exporter has metrics of these names too")
	}
	if _, err := WriteTextFile(filepath.Join(t.TempDir(), "missing", "x.prom"), m); err == nil {
		t.Error("a folder that does not exist is no error")
	}
}

func TestScrub(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                               "plain text",
		"nats://user:pass@host:4222/ns: refused":   "nats://…@host:4222/ns: refused",
		"nats://token@host":                        "nats://…@host",
		"s3://bucket/key?X-Amz-Signature=abc&x=1":  "s3://bucket/key?…",
		`Authorization: Bearer eyJhbGciOi.x.y end`: "Authorization: … end",
		`{"password":"hunter2","a":1}`:             `{"password":…,"a":1}`,
		"AWS_SECRET_ACCESS_KEY=abc/def":            "AWS_SECRET_ACCESS_KEY=…",
		"input_tokens: 100, tokens: 5":             "input_tokens: 100, tokens: 5",
		"at 12:30: a=b":                            "at 12:30: a=b",
	} {
		if got := Scrub(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func BenchmarkSweepMetrics(b *testing.B) {
	s := NewMetrics(Identity{}).Sweep()
	s.SweepStarted(b.N)
	f := finished(0, results.StatusOK, "", true)
	b.ReportAllocs()
	for b.Loop() {
		s.PointStarted(*f.Row.Point)
		s.PointFinished(f)
	}
}
