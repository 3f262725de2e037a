package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/aiperf"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// chats are three sessions: two of one turn, one of two.
func chats(t testing.TB) *workload.Workload {
	b := workload.NewBuilder("chats", 16)
	for _, r := range []workload.Request{
		{ID: "a", Session: "one", Input: 100, Output: 4}, {ID: "b", Session: "two", Input: 200, Output: 3, ArrivalMs: 10},
		{ID: "c", Session: "two", Input: 300, Output: 2, DelayMs: 5}, {ID: "d", Session: "three", Input: 50, Output: 1, ArrivalMs: 20},
	} {
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func call(request, turn, input, output int, session string) *live.Call {
	return &live.Call{Number: int32(request), Request: request, ID: "id-" + string(rune('a'+request)), Session: session, Turn: turn, Input: input, Output: output}
}

// madeUpRun has a completed request, one with a shorter answer, one that failed and one that was cancelled.
func madeUpRun() *live.Run {
	gaps := &metrics.GapRecorder{}
	gaps.RecordGaps(10e6, 3)
	gaps.RecordGaps(20e6, 1)
	nan := math.NaN()
	return &live.Run{
		Started: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Planned: 4, EndMs: 500, Gaps: gaps, EvenGaps: gaps,
		Records: []live.Record{
			{Call: call(0, 0, 100, 4, "one"), ScheduledMs: 0, SentMs: 1, FirstTokenMs: 51, SecondTokenMs: 61, LastTokenMs: 81, EndMs: 82, Chunks: 4, OutputTokens: 4, InputTokens: 108, CachedTokens: 64},
			{Call: call(1, 0, 200, 3, "two"), ScheduledMs: 10, SentMs: 10, FirstTokenMs: 40, SecondTokenMs: 60, LastTokenMs: 60, EndMs: 60, Chunks: 2, OutputTokens: 2, InputTokens: 208, CachedTokens: 0},
			{Call: call(2, 1, 300, 2, "two"), ScheduledMs: 65, SentMs: 68, FirstTokenMs: live.Never, SecondTokenMs: live.Never, LastTokenMs: live.Never, EndMs: 70, InputTokens: -1, CachedTokens: -1,
				Err: &live.Error{Kind: live.ErrOverloaded, Status: 503, Message: "no room"}},
			{Call: call(3, 0, 50, 1, "three"), ScheduledMs: 20, SentMs: 20, FirstTokenMs: live.Never, SecondTokenMs: live.Never, LastTokenMs: live.Never, EndMs: 500, InputTokens: -1, CachedTokens: -1, Cancelled: true},
		},
		Samples: []live.Sample{
			{AtMs: 0, Endpoint: "http://a", Running: 1, Waiting: 0, KVUsage: .1, CachedTokens: nan, PromptTokens: nan, OutputTokens: 5, Preemptions: 7},
			{AtMs: 400, Endpoint: "http://a", Running: 2, Waiting: 1, KVUsage: .2, CachedTokens: nan, PromptTokens: nan, OutputTokens: 9, Preemptions: 9},
		},
	}
}

func defaultPoint() gridspec.Point {
	p := gridspec.Point{Config: gridspec.DefaultConfig()}
	p.Config.SLA.TTFTMs = 45
	return p
}

func write(t testing.TB, run *live.Run, opt Options) (dir string, s *Summary, rows *results.Table) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	s, err := Write(dir, defaultPoint(), chats(t), run, opt)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = results.ReadTable(filepath.Join(dir, ResultsFile)); err != nil {
		t.Fatal(err)
	}
	return dir, s, rows
}

// cells are the values of a row by column; nulls are left out.
func cells(t *results.Table, row int, names ...string) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		if c := t.Column(name); c != nil {
			if v, ok := c.Value(row); ok {
				out[name] = v.Any()
			}
		}
	}
	return out
}

// TestRow checks the figures of a run, and that what nobody knows is null.
func TestRow(t *testing.T) {
	names := []string{
		"source", "status", "num_requests", "planned_requests", "completed_requests", "failed_requests", "cancelled_requests", "output_length_mismatches", "error_kinds",
		"total_output_tokens", "mean_ttft_ms", "max_itl_ms", "median_itl_ms", "mean_output_token_throughput_per_user", "max_schedule_lag_ms", "duration_ms", "sla_attainment", "preemptions", "prefix_cache_reused_ratio",
		"gpus", "mean_gpus", "gpu_hours", "output_throughput_tok_s_per_gpu", "passes", "timing_source", "simulator_version", "mean_queue_time_ms", "limited_by_compute_share", "deployment_workers", "cost_usd",
	}
	want := map[string]any{
		"source": "live", "status": "ok", "num_requests": int64(4), "planned_requests": int64(4), "completed_requests": int64(2), "failed_requests": int64(1), "cancelled_requests": int64(1),
		"output_length_mismatches": int64(1), "error_kinds": "overloaded 1", "total_output_tokens": int64(6), "mean_ttft_ms": 40., "max_itl_ms": 20., "median_itl_ms": 10., "mean_output_token_throughput_per_user": 87.5,
		"max_schedule_lag_ms": 3., "duration_ms": 81., "sla_attainment": .25, "preemptions": int64(2), "prefix_cache_reused_ratio": 64. / 300,
	}
	_, _, rows := write(t, madeUpRun(), Options{})
	if diff := cmp.Diff(want, cells(rows, 0, names...)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, stated := rows.Metadata.Constants["deployment.workers"]; stated {
		t.Error("the workers of an unknown deployment are stated")
	}
	_, _, rows = write(t, madeUpRun(), Options{DeploymentStated: true})
	got := cells(rows, 0, "gpus", "mean_gpus", "gpu_hours", "output_throughput_tok_s_per_gpu")
	if diff := cmp.Diff(map[string]any{"gpus": int64(1), "mean_gpus": 1., "gpu_hours": .5 / 3600, "output_throughput_tok_s_per_gpu": 6 / .081}, got); diff != "" {
		t.Errorf("with a deployment: -want +got\n%s", diff)
	}
	if rows.Metadata.Constants["deployment.workers"] == nil {
		t.Error("the workers are not stated")
	}
}

// TestUnknownFigures checks that figures that the endpoint did not tell are null.
func TestUnknownFigures(t *testing.T) {
	run := madeUpRun()
	run.Gaps, run.Samples, run.Planned = nil, nil, -1
	for i := range run.Records {
		run.Records[i].CachedTokens = -1
	}
	_, _, rows := write(t, run, Options{})
	if got := cells(rows, 0, "mean_itl_ms", "preemptions", "planned_requests", "prefix_cache_reused_ratio"); len(got) > 0 {
		t.Errorf("known: %v", got)
	}
}

// TestRequests checks the columns that only live requests have, and those that only simulated ones have.
func TestRequests(t *testing.T) {
	dir, s, rows := write(t, madeUpRun(), Options{})
	requests, err := results.ReadTable(filepath.Join(dir, RequestsFile))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"uuid", "session_id", "turn_index", "terminal_status", "arrival_time_ms", "ttft_ms", "itl_ms", "input_length", "prompt_tokens", "output_length", "output_tokens",
		"reused_input_tokens", "schedule_lag_ms", "error_kind", "error_status", "error", "request_id", "source", "queue_time_ms", "routed_ms", "decode_worker_idx"}
	for row, want := range []map[string]any{
		{"uuid": "a", "session_id": "one", "turn_index": int64(0), "terminal_status": "completed", "arrival_time_ms": 1., "ttft_ms": 50., "itl_ms": 10., "input_length": int64(100), "prompt_tokens": int64(108),
			"output_length": int64(4), "output_tokens": int64(4), "reused_input_tokens": int64(64), "schedule_lag_ms": 1., "request_id": "id-a", "source": "live"},
		{"uuid": "b", "session_id": "two", "turn_index": int64(0), "terminal_status": "completed", "arrival_time_ms": 10., "ttft_ms": 30., "itl_ms": 20., "input_length": int64(200), "prompt_tokens": int64(208),
			"output_length": int64(3), "output_tokens": int64(2), "reused_input_tokens": int64(0), "schedule_lag_ms": 0., "request_id": "id-b", "source": "live"},
		{"uuid": "c", "session_id": "two", "turn_index": int64(1), "terminal_status": "failed", "arrival_time_ms": 68., "input_length": int64(300), "output_length": int64(2), "output_tokens": int64(0),
			"schedule_lag_ms": 3., "error_kind": "overloaded", "error_status": int64(503), "error": "no room", "request_id": "id-c", "source": "live"},
		{"uuid": "d", "session_id": "three", "turn_index": int64(0), "terminal_status": "cancelled", "arrival_time_ms": 20., "input_length": int64(50), "output_length": int64(1), "output_tokens": int64(0),
			"schedule_lag_ms": 0., "request_id": "id-d", "source": "live"},
	} {
		if diff := cmp.Diff(want, cells(requests, row, names...)); diff != "" {
			t.Errorf("request %d: -want +got\n%s", row, diff)
		}
	}
	if want := "Errors: overloaded 1\nFirst overloaded: \"no room\"\n"; !strings.Contains(s.Text(), want) {
		t.Errorf("%s lacks %s", s.Text(), want)
	}
	if got, want := requests.Column("id").Strings[0], rows.Column("id").Strings[0]; got != want {
		t.Errorf("the ID of requests is %s, that of results %s", got, want)
	}
}

// TestInterruptedRun checks that a run that was ended early keeps what it measured, and is on no frontier.
func TestInterruptedRun(t *testing.T) {
	run := madeUpRun()
	run.Interrupted, run.Planned = true, 10
	_, s, rows := write(t, run, Options{DeploymentStated: true})
	want := map[string]any{"status": "failed", "reason": "interrupted", "error": "the run was ended before its time, with 4 requests sent of 10", "mean_ttft_ms": 40.}
	if diff := cmp.Diff(want, cells(rows, 0, "status", "reason", "error", "mean_ttft_ms")); diff != "" || !s.Interrupted {
		t.Errorf("-want +got\n%s", diff)
	}
	if err := results.MarkFrontier(rows, rows.Analysis()); err != nil {
		t.Fatal(err)
	}
	if rows.Column(results.FrontierColumn).Bools[0] {
		t.Error("it is on the frontier")
	}
}

// TestFacts checks live.json, and that it has no secrets.
func TestFacts(t *testing.T) {
	dir, _, _ := write(t, madeUpRun(), Options{URLs: []string{"http://me:secret@host:8000/v1?key=secret"}, Model: "m", Tokenizer: "bytes", BlockSize: 16, Versions: map[string]string{"servegrid": "1"}})
	data, err := os.ReadFile(filepath.Join(dir, FactsFile))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "secret") {
		t.Errorf("a secret is in %s", data)
	}
	var got facts
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Model != "m" || got.BlockSize != 16 || got.SentRequests != 4 || got.Errors[live.ErrOverloaded] != 1 || got.WorkloadDigest != chats(t).Digest() || got.LeftOutRecords != 0 {
		t.Errorf("got %+v", got)
	}
	damaged := chats(t)
	damaged.LeftOut = 3
	if f := factsOf("1", damaged, madeUpRun(), &Summary{}, Options{}); f.LeftOutRecords != 3 {
		t.Error("a trace of which only a part was read is not told")
	}
}

// TestWriteIsRepeatable checks that two runs have different IDs, and writing one twice gives equal files.
func TestWriteIsRepeatable(t *testing.T) {
	first, _, rows := write(t, madeUpRun(), Options{})
	second, _, again := write(t, madeUpRun(), Options{})
	later := madeUpRun()
	later.Started = later.Started.Add(time.Nanosecond)
	_, _, other := write(t, later, Options{})
	id := func(t *results.Table) string { return t.Column("id").Strings[0] }
	if id(rows) != id(again) || id(rows) == id(other) {
		t.Errorf("IDs %s, %s and %s", id(rows), id(again), id(other))
	}
	for _, name := range []string{ResultsFile, RequestsFile, ServerFile, FactsFile} {
		a, errA := os.ReadFile(filepath.Join(first, name))
		b, errB := os.ReadFile(filepath.Join(second, name))
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s differs, %v, %v", name, errA, errB)
		}
	}
	for _, name := range []string{aiperf.RecordsFile, aiperf.JSONFile, aiperf.CSVFile} {
		if info, err := os.Stat(filepath.Join(first, AIPerfFolder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	page, err := os.ReadFile(filepath.Join(first, PageFile))
	if err != nil || !strings.Contains(string(page), "server_kv_usage") {
		t.Errorf("the page has no server metrics, %v", err)
	}
}
