package fidelity

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/requests"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

const capture = "../../examples/capture/agents.000000.jsonl.gz"

// replayed simulates the captured workload and returns its requests as a Parquet file and as JSON Lines.
func replayed(t testing.TB) (parquet, lines []byte) {
	t.Helper()
	trace := workload.DefaultTraceSpec()
	trace.Path = capture
	w, err := workload.Spec{Trace: &trace}.Load(context.Background(), workload.Source{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := simcore.DefaultConfig()
	cfg.Deployment.Workers = 2
	var records []simcore.RequestRecord
	if _, err := simcore.Run(context.Background(), cfg, w, simcore.Options{Records: func(r simcore.RequestRecord) { records = append(records, r) }}); err != nil {
		t.Fatal(err)
	}
	table := requests.Table("", records, w, nil)
	requests.Describe(table, w, cfg)
	var file bytes.Buffer
	if err := results.WriteParquet(&file, table); err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if lines, err = requests.AppendJSON(lines, requests.Columns(w), &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes(), lines
}

func captured(t testing.TB) []byte {
	t.Helper()
	file, err := os.Open(capture)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func packed(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const aiperfLine = `{"metadata":{"session_num":0,"x_request_id":"q1","conversation_id":"s1","turn_index":0,"credit_issued_ns":1795812391877389755,"request_start_ns":1795812391878389755,"request_end_ns":1795812391928712543,"benchmark_phase":"profiling","was_cancelled":false},` +
	`"metrics":{"request_latency":{"value":50.25,"unit":"ms"},"input_sequence_length":{"value":986,"unit":"tokens"},"output_sequence_length":{"value":12,"unit":"tokens"},"usage_prompt_tokens":{"value":990,"unit":"tokens"},"time_to_first_token":{"value":25.25,"unit":"ms"},"usage_prompt_cache_read_tokens":{"value":495,"unit":"tokens"}}}` + "\n"

// put writes files into a folder, and returns it.
func put(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRead reads one run in all forms that it may have.
func TestRead(t *testing.T) {
	parquet, lines := replayed(t)
	whole := captured(t)
	half := bytes.LastIndexByte(whole[:len(whole)/2], '\n') + 1
	live := bytes.ReplaceAll(lines, []byte(`"uuid":`), []byte(`"source":"live","prompt_tokens":77,"schedule_lag_ms":1.5,"request_id":"x","uuid":`))
	for name, test := range map[string]struct {
		files map[string][]byte
		open  string
		kind  Kind
	}{
		"a table":             {map[string][]byte{"a.parquet": parquet}, "a.parquet", KindReplay},
		"a table in a folder": {map[string][]byte{"requests.parquet": parquet}, "", KindReplay},
		"lines":               {map[string][]byte{"a.jsonl": lines}, "a.jsonl", KindReplay},
		"live":                {map[string][]byte{"a.jsonl": live}, "a.jsonl", KindLive},
		"a capture":           {map[string][]byte{"c.jsonl": whole}, "c.jsonl", KindCapture},
		"packed":              {map[string][]byte{"c": packed(t, whole)}, "c", KindCapture},
		"shards":              {map[string][]byte{"c.000000.jsonl.gz": packed(t, whole[:half]), "c.000001.jsonl.gz": packed(t, whole[half:])}, "", KindCapture},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := Read(context.Background(), workload.Source{}, filepath.Join(put(t, test.files), test.open))
			if err != nil {
				t.Fatal(err)
			}
			if run.Kind != test.kind || len(run.Requests) != 34 || run.sent() != 34 || run.completed() != 34 || len(turnsOf(run)) != 9 {
				t.Errorf("%s with %d requests, %d sent, %d completed, in %d sessions", run.Kind, len(run.Requests), run.sent(), run.completed(), len(turnsOf(run)))
			}
			if run.Kind != KindLive && run.WireLengths || run.Kind == KindLive && (!run.WireLengths || run.Requests[5].Input != 77 || run.Requests[5].LagMs != 1.5 || run.Requests[5].ClientID != "x") {
				t.Errorf("%+v", run.Requests[5])
			}
			if name == "a table" && (run.Facts.Topology != "2 workers, vllm, round_robin" || run.Facts.BlockSize != "64" || run.Facts.Workload == "") {
				t.Errorf("%+v", run.Facts)
			}
			for _, q := range run.Requests {
				if math.IsNaN(q.TTFTMs) || math.IsNaN(q.E2EMs) || q.Tokens == Unknown || q.Turn == Unknown || q.ID == "" {
					t.Fatalf("%+v", q)
				}
			}
		})
	}
}

func TestReadAIPerf(t *testing.T) {
	warmUp := strings.Replace(aiperfLine, `"profiling"`, `"warmup"`, 1)
	failed := strings.Replace(strings.Replace(aiperfLine, `"metrics"`, `"error":{"code":429,"type":"Overloaded","message":"busy"},"metrics"`, 1), `"q1"`, `"q2"`, 1)
	run, err := Read(context.Background(), workload.Source{}, put(t, map[string][]byte{"profile_export.jsonl": []byte(warmUp + aiperfLine + failed)}))
	if err != nil {
		t.Fatal(err)
	}
	q := run.Requests[0]
	if run.Kind != KindAIPerf || run.WarmUps != 1 || len(run.Requests) != 2 || q.ID != "q1" || q.Input != 990 || q.Tokens != 12 || q.reuse() != .5 || q.LagMs != 1 || math.Abs(q.ITLMs-25./11) > 1e-9 {
		t.Errorf("%+v with %+v", run, q)
	}
	if run.Requests[1].Completed || run.Requests[1].Problem != "Overloaded" {
		t.Errorf("%+v", run.Requests[1])
	}
}

// TestReadLive reads what a live run says of itself.
func TestReadLive(t *testing.T) {
	parquet, _ := replayed(t)
	dir := put(t, map[string][]byte{"requests.parquet": parquet, "live.json": []byte(`{"model":"m","tokenizer":"chars:4","block_size":16,"workload_digest":"d","planned_requests":40,"interrupted":true}`)})
	run, err := Read(context.Background(), workload.Source{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if f := run.Facts; f.Model != "m" || f.Tokenizer != "chars:4" || f.BlockSize != "16" || f.Workload != "d" || run.Planned != 40 || len(run.Notes) != 1 {
		t.Errorf("%+v", run)
	}
	if got := unsent(run, run); !strings.Contains(got, "6 of A were never sent") {
		t.Error(got)
	}
}

func TestReadRefuses(t *testing.T) {
	parquet, lines := replayed(t)
	whole := captured(t)
	first, _, _ := bytes.Cut(lines, []byte("\n"))
	changed := func(key, value string) []byte {
		var row map[string]any
		if err := json.Unmarshal(first, &row); err != nil {
			t.Fatal(err)
		}
		row[key] = json.RawMessage(value)
		data, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	line, rest, _ := bytes.Cut(whole, []byte("\n"))
	for name, test := range map[string]struct {
		files map[string][]byte
		open  string
		want  string
	}{
		"nothing there":     {nil, "missing", "no such file"},
		"an empty folder":   {nil, "", "has no requests.parquet"},
		"an empty file":     {map[string][]byte{"a": nil}, "a", "a"},
		"no run":            {map[string][]byte{"a": []byte("what is this")}, "a", "a"},
		"another table":     {map[string][]byte{"a": []byte(`{"terminal_status":"completed","ttft_ms":3}`)}, "a", "has no column uuid and no column arrival_time_ms"},
		"half a table":      {map[string][]byte{"a": parquet[:len(parquet)/2]}, "a", "damaged"},
		"half a line":       {map[string][]byte{"a": lines[:len(lines)-40]}, "a", "ends too early"},
		"text in a number":  {map[string][]byte{"a": changed("ttft_ms", `"soon"`)}, "a", "holds text"},
		"no such time":      {map[string][]byte{"a": changed("ttft_ms", `1e300`)}, "a", "has a time of 1e+300 ms"},
		"a negative time":   {map[string][]byte{"a": changed("ttft_ms", `-5`)}, "a", "took -5 ms"},
		"a negative length": {map[string][]byte{"a": changed("output_tokens", `-3`)}, "a", "column output_tokens holds -3 in row 1"},
		"half a token":      {map[string][]byte{"a": changed("input_length", `2.5`)}, "a", "column input_length holds 2.5"},
		"several points":    {map[string][]byte{"a": append(append(changed("id", `"p1"`), '\n'), changed("id", `"p2"`)...)}, "a", "several points"},
		"a cut capture":     {map[string][]byte{"a": packed(t, whole)[:len(packed(t, whole))/2]}, "a", "cut off"},
		"a doubled request": {map[string][]byte{"a": bytes.Join([][]byte{line, line, rest}, []byte("\n"))}, "a", "was a file given twice?"},
		"a trace":           {map[string][]byte{"a": []byte(`{"timestamp":0,"input_length":10,"output_length":3,"hash_ids":[1]}`)}, "a", "which says what to ask for and not how it went"},
		"AIPerf's, damaged": {map[string][]byte{"a": []byte(aiperfLine + "{\n")}, "a", "line 2"},
		"facts, damaged":    {map[string][]byte{"requests.parquet": parquet, "live.json": []byte("{")}, "", "live.json"},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := Read(context.Background(), workload.Source{}, filepath.Join(put(t, test.files), test.open))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v", run, err)
			}
		})
	}
}

// FuzzRead reads anything: it must say what is wrong, or give a run that can be compared.
func FuzzRead(f *testing.F) {
	parquet, lines := replayed(f)
	whole := captured(f)
	first, _, _ := bytes.Cut(whole, []byte("\n"))
	firstLine, _, _ := bytes.Cut(lines, []byte("\n"))
	for _, seed := range [][]byte{parquet, firstLine, first, packed(f, first), []byte(aiperfLine), []byte("{"), {}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := Read(context.Background(), workload.Source{}, filepath.Join(put(t, map[string][]byte{"a": data}), "a"))
		if err != nil {
			return
		}
		c, err := Compare(run, run, JoinAuto, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Fatal(err)
		}
	})
}
