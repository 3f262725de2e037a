package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	dto "github.com/prometheus/client_model/go"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/filelock"
	"github.com/servegrid/servegrid/sweep/queue"
	"github.com/servegrid/servegrid/sweep/telemetry"
)

// endedFolder is the output folder of a sweep of two points, with its status changed.
func endedFolder(t *testing.T, change func(*telemetry.Status)) string {
	t.Helper()
	dir := t.TempDir()
	mustRun(t, "sweep", writeSpec(t, `
name: demo
workload: {synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}}
grid: {deployment.workers: [1, 2]}
`), "-q", "-o", dir)
	s, err := telemetry.ReadStatus(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(&s)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, telemetry.StatusFileName), text, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A sweep runs as long as its folder is locked, whatever its status says: that of one that was killed says that it runs.
func TestStatusOfRunningAndKilled(t *testing.T) {
	dir := endedFolder(t, func(s *telemetry.Status) {
		eta := 90.0
		s.State, s.PointsPerSecond, s.ETASeconds = telemetry.StateRunning, 2, &eta
		s.Points.Total, s.Points.Left, s.Points.Running = 182, 180, 3
	})
	lock, err := os.OpenFile(filepath.Join(dir, ".sweep.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := filelock.Try(lock); !taken || err != nil {
		t.Fatal(taken, err)
	}
	got := runCommand(t, "status", dir)
	if got.code != exitOK {
		t.Errorf("exit code %d", got.code)
	}
	for _, want := range []string{"running, process ", "182: 2 ok, 0 failed, 180 left, of which 3 run", "2.00 points a second, 1m30s left"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	lock.Close()
	got = runCommand(t, "status", dir)
	if got.code != exitSomeFailed || !strings.Contains(got.stdout, "killed: it ended without a word") || strings.Contains(got.stdout, "which") {
		t.Errorf("exit code %d:\n%s", got.code, got.stdout)
	}
	before := folderContent(t, dir)
	runCommand(t, "status", "--json", dir)
	if after := folderContent(t, dir); after != before {
		t.Errorf("status changed the folder:\n%s\n%s", before, after)
	}
}

func TestStatusOfFolderWithoutStatus(t *testing.T) {
	dir := endedFolder(t, func(*telemetry.Status) {})
	if err := os.Remove(filepath.Join(dir, telemetry.StatusFileName)); err != nil {
		t.Fatal(err)
	}
	got := runCommand(t, "status", dir)
	if got.code != exitSomeFailed || !strings.Contains(got.stdout, "unknown") || !strings.Contains(got.stdout, "2 results") {
		t.Errorf("exit code %d:\n%s", got.code, got.stdout)
	}
}

// A journal that is being written to ends in the middle of a line.
func TestStatusWhileLinesAreWritten(t *testing.T) {
	dir := endedFolder(t, func(*telemetry.Status) {})
	path := filepath.Join(dir, "journal.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 50, bytes.LastIndexByte(text[:len(text)-1], '\n') + 2 - len(text)} {
		if cut < 0 {
			cut = -cut
		}
		if err := os.WriteFile(path, text[:len(text)-cut], 0o666); err != nil {
			t.Fatal(err)
		}
		got := runCommand(t, "status", "--json", dir)
		var v statusView
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || got.code != exitOK {
			t.Fatalf("exit code %d: %v\n%s", got.code, err, got.stdout)
		}
		if j := v.Folders[0].Journal; *j.Results != 1 || j.TornBytes == 0 || j.Damaged != 0 {
			t.Errorf("%d bytes less: %+v", cut, j)
		}
	}
}

func TestStatusOfForeignFiles(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "{", "another form": `{"format": 2}`, "nothing": ""} {
		dir := endedFolder(t, func(*telemetry.Status) {})
		if err := os.WriteFile(filepath.Join(dir, telemetry.StatusFileName), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := runCommand(t, "status", dir); got.code != exitRefused || !strings.Contains(got.stderr, telemetry.StatusFileName) {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.stderr)
		}
	}
}

// Names of others do not reach the terminal as they are.
func TestStatusOfHostileNames(t *testing.T) {
	dir := endedFolder(t, func(s *telemetry.Status) {
		s.Sweep, s.Host, s.Metrics, s.Loading, s.State = hostile, hostile, hostile, hostile, telemetry.State(hostile)
		s.Failures = map[string]int{hostile: 1}
		s.Best.Axes = map[string]any{hostile: hostile}
		s.Best.Metric = hostile
	})
	for _, args := range [][]string{{"status", dir}, {"status", dir, dir}} {
		stdout := runCommand(t, args...).stdout
		for _, r := range stdout {
			if obeyed(r) && r != '\n' {
				t.Errorf("%v: %q in %q", args[1:], r, stdout)
				break
			}
		}
	}
}

// On a terminal a look takes the place of the one before.
func TestRedraw(t *testing.T) {
	var out strings.Builder
	r := &redrawer{out: &out, redraw: true}
	for _, text := range []string{"a\nb\n", "c"} {
		if err := r.show(text); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "a\nb\n\x1b[2A\x1b[Jc\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAge(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", 0: "just now", 59 * time.Second: "59 s ago", 61 * time.Second: "1 min ago", 47 * time.Hour: "47 h ago", 50 * time.Hour: "2 days ago",
	} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// folderContent is the names, sizes and times of the files of a folder.
func folderContent(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.Name() + " " + info.ModTime().String() + " " + bytesText(info.Size()) + "\n")
	}
	return b.String()
}

// What somebody should look at in a queue is said in a sentence.
func TestQueueWarnings(t *testing.T) {
	d := queue.Description{
		State: queue.State{
			Streams: []queue.StreamState{
				{Kind: "points", Messages: 9, MaxMessages: 10, Bytes: 10, MaxBytes: -1},
				{Kind: "files", Messages: 5, MaxMessages: -1, Bytes: 900, MaxBytes: 1000},
			},
			Consumers: []queue.ConsumerState{{Version: "4", Waiting: 7, InProgress: 1}},
			Workers:   map[string]int{"3": 2},
		},
		Sweeps: []queue.SweepState{{Sweep: "aaa", Version: "4", Points: 8}, {Sweep: "bbb", Version: "5", Points: 2, Parts: 1}},
		There:  []queue.WorkerState{{Host: hostile, PID: 1, Jobs: 2, Simulator: hostile}},
	}
	v := newQueueView("team", d)
	for _, want := range []string{
		"8 points of simulator version 4, but no worker", "2 points of simulator version 5, but no worker", "2 workers of simulator version 3 with nothing to do, while points wait for version 4, 5",
		"the stream of points holds 9 messages of at most 10", "the stream of files holds 900 bytes of at most 1.00 kB",
	} {
		if !slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("no warning %q in %q", want, v.Warnings)
		}
	}
	if len(v.Warnings) != 5 {
		t.Errorf("%d warnings: %q", len(v.Warnings), v.Warnings)
	}
	text := v.text(time.Now())
	for _, r := range text {
		if obeyed(r) && r != '\n' {
			t.Errorf("%q in %q", r, text)
			break
		}
	}
	d.Workers = map[string]int{"4": 1}
	d.Sweeps, d.Streams = d.Sweeps[:1], []queue.StreamState{{Kind: "points", Messages: 1, MaxMessages: -1, MaxBytes: -1}}
	if v := newQueueView("team", d); len(v.Warnings) != 0 {
		t.Errorf("warnings about nothing: %q", v.Warnings)
	}
	if _, err := json.Marshal(statusView{Queue: v}); err != nil {
		t.Error(err)
	}
}

// A queue is looked at while points wait in it and while workers work.
func TestStatusOfQueue(t *testing.T) {
	url := startNATS(t)
	connection, err := queue.Connect(t.Context(), queue.ConnectOptions{URL: url + "/team", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.Prepare(t.Context(), queue.Limits{Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, "status", "--queue", url+"/team", "--json")
	var v statusView
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || v.Queue == nil || v.Queue.Namespace != "team" || len(v.Queue.Streams) != 4 || len(v.Queue.Warnings) != 0 {
		t.Errorf("%v\n%s", err, got.stdout)
	}
	got = mustRun(t, "status", "--queue", url+"/team")
	for _, want := range []string{"queue       team", "workers     none", "sweeps      none", "points"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	if got := runCommand(t, "status", "--queue", "http://x"); got.code != exitRefused || !strings.Contains(got.stderr, "nats://HOST") {
		t.Errorf("%d %s", got.code, got.stderr)
	}
}

// Coordinator and worker say through their metrics what went over the queue.
func TestMetricsOfQueue(t *testing.T) {
	url, dir := startNATS(t), t.TempDir()
	spec := writeSpec(t, `
name: demo
workload: {synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}}
grid: {deployment.workers: [1, 2, 3], engine.max_num_seqs: [4, 8]}
`)
	worker := make(chan outcome, 1)
	go func() {
		worker <- runCommand(t, "worker", "-q", "--queue", url+"/team", "--cache", filepath.Join(dir, "cache"), "--max-points", "6", "--metrics-file", filepath.Join(dir, "worker.prom"))
	}()
	mustRun(t, "sweep", spec, "-q", "-o", filepath.Join(dir, "out"), "--queue", url+"/team", "--metrics-file", filepath.Join(dir, "sweep.prom"))
	if got := <-worker; got.code != exitOK {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	for file, lines := range map[string][]string{
		"sweep.prom": {
			`servegrid_points_finished_total{queue_namespace="team",source="simulated",status="ok",sweep="demo"} 6`,
			`servegrid_queue_points_published_total{queue_namespace="team",result="ok",sweep="demo"} 6`,
			`servegrid_queue_rows_received_total{queue_namespace="team",sweep="demo"} 6`,
			`servegrid_queue_submit_duration_seconds_count{queue_namespace="team",sweep="demo"} 6`,
			`servegrid_queue_points_out{queue_namespace="team",sweep="demo"} 0`,
		},
		"worker.prom": {
			`servegrid_worker_points_finished_total{queue_namespace="team",status="ok"} 6`,
			`servegrid_worker_points_settled_total{how="acked",queue_namespace="team"} 6`,
			`servegrid_worker_rows_published_total{queue_namespace="team"} 6`,
			`servegrid_worker_slots_busy{queue_namespace="team"} 0`,
			`servegrid_points_redelivered_total{queue_namespace="team"} 0`,
		},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line+"\n") {
				t.Errorf("%s has no %s", file, line)
			}
		}
	}
	if s, err := telemetry.ReadStatus(filepath.Join(dir, "out")); err != nil || s.Queue != "team" || s.Points.OK != 6 {
		t.Errorf("%+v %v", s, err)
	}
}

// Looking at a sweep again and again does not disturb it, and what it says only grows.
func TestStatusWhileASweepRuns(t *testing.T) {
	dir := t.TempDir()
	spec := writeSpec(t, `
workload: {synthetic: {input_tokens: 100, output_tokens: 20, requests: 200}}
grid: {deployment.workers: {range: [1, 60, 1]}, engine.max_num_seqs: [4, 8, 16, 32]}
`)
	done := make(chan outcome, 1)
	go func() { done <- runCommand(t, "sweep", spec, "-q", "-o", dir) }()
	last, seen := 0, map[string]int{}
	for {
		var v statusView
		if got := runCommand(t, "status", "--json", dir); got.code == exitOK {
			if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
				t.Fatal(err)
			}
			f := v.Folders[0]
			if seen[f.State]++; f.Status != nil {
				p := f.Status.Points
				if p.OK < last || p.OK+p.Failed+p.Left != p.Total || f.State != "running" && f.State != "complete" {
					t.Fatalf("%s: %+v after %d", f.State, p, last)
				}
				last = p.OK
			}
			if f.Journal.Damaged > 0 {
				t.Fatalf("%+v", f.Journal)
			}
		} else if len(seen) > 0 {
			t.Fatalf("exit code %d: %s", got.code, got.stderr)
		}
		select {
		case got := <-done:
			if got.code != exitOK {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			if seen["running"] == 0 {
				t.Errorf("the sweep was never seen running: %v", seen)
			}
			return
		default:
		}
	}
}

// startNATS starts a server with JetStream and returns its URL.
func startNATS(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s.ClientURL()
}

// What a sweep simulates is counted while it is simulated.
func TestTelemetryCountsSimulations(t *testing.T) {
	offered := &commandTelemetry{metrics: telemetry.NewMetrics(telemetry.Identity{})}
	running := func() float64 {
		families, err := offered.metrics.Gatherer().Gather()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "servegrid_points_running" })
		return families[i].GetMetric()[0].GetGauge().GetValue()
	}
	opt := sweep.Options{Simulate: func(context.Context, sweep.Job) (*simcore.Report, error) {
		if n := running(); n != 1 {
			t.Errorf("%v points run, want 1", n)
		}
		return nil, nil
	}}
	offered.observe(&sweepJob{state: &state{now: time.Now}}, &opt, &progress{})
	if _, err := opt.Simulate(context.Background(), sweep.Job{}); err != nil || running() != 0 {
		t.Errorf("%v points run afterwards, error %v", running(), err)
	}
}

// What was handed to a queue may wait there: nobody says that it runs.
func TestStatusCountsWhatRuns(t *testing.T) {
	for _, tt := range []struct{ state, queue, want string }{
		{"running", "", "95: 0 ok, 0 failed, 95 left, of which 91 run"},
		{"running", "team", "95: 0 ok, 0 failed, 95 left, of which 91 are out in the queue"},
		{stateKilled, "", "95: 0 ok, 0 failed, 95 left"},
		{stateKilled, "team", "95: 0 ok, 0 failed, 95 left"},
	} {
		f := folderView{State: tt.state, Status: &telemetry.Status{Queue: tt.queue, Points: telemetry.PointCounts{Total: 95, Left: 95, Running: 91}}}
		if got := f.pointsText(); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.state, tt.queue, got, tt.want)
		}
	}
}
