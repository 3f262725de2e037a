package aiperf

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/live"
)

// goldens are folders of runs of AIPerf; the test is skipped without them.
func goldens(t *testing.T) []string {
	t.Helper()
	shared := cmp.Or(os.Getenv("SHARED_DATA_DIR"), filepath.Join("..", "..", "..", "shared"))
	dirs, err := filepath.Glob(filepath.Join(shared, "golden", "workloads", "aiperf", "aip*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Skip("needs the recorded runs: set SHARED_DATA_DIR to the folder that holds golden/workloads")
	}
	return dirs
}

func readFile(t testing.TB, path string) []Record {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	records, err := ReadRecords(file)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// each goes through records.
func each(records []Record) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for i := range records {
			if !yield(&records[i]) {
				return
			}
		}
	}
}

// TestSummaryOfAIPerfsOwnRecords computes the summaries of runs of AIPerf from their records, and compares them with its own.
func TestSummaryOfAIPerfsOwnRecords(t *testing.T) {
	for _, dir := range goldens(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			records := readFile(t, filepath.Join(dir, RecordsFile))
			data, err := os.ReadFile(filepath.Join(dir, JSONFile))
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]json.RawMessage
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			facts := Facts{ProfilingSeconds: secondsOf(t, want)}
			var metrics map[string]json.RawMessage
			if warm := want["warmup_metrics"]; warm != nil {
				if err := json.Unmarshal(warm, &metrics); err != nil {
					t.Fatal(err)
				}
				facts.WarmUpSeconds = secondsOf(t, metrics)
			}
			totals := TotalsOf(each(records), facts)
			checkSummary(t, want, totals.Profiling)
			if metrics != nil {
				checkSummary(t, metrics, totals.WarmUp)
			}
			checkCSV(t, filepath.Join(dir, CSVFile), totals)
		})
	}
}

// secondsOf is how long the phase of a summary took, which its file states only by the throughput.
func secondsOf(t *testing.T, metrics map[string]json.RawMessage) float64 {
	t.Helper()
	avg := func(tag string) float64 {
		var stat struct {
			Avg float64 `json:"avg"`
		}
		if err := json.Unmarshal(metrics[tag], &stat); err != nil {
			t.Fatal(err)
		}
		return stat.Avg
	}
	return avg("request_count") / avg("request_throughput")
}

// checkSummary compares each metric of a summary with what AIPerf wrote.
func checkSummary(t *testing.T, want map[string]json.RawMessage, got Summary) {
	t.Helper()
	if len(got) < len(perRequest)+len(ofMetadata)+len(overTime)+len(single) {
		t.Errorf("%d metrics, fewer than there are names", len(got))
	}
	for tag, s := range got {
		tolerance := 1e-9
		if s.Weighted { // AIPerf rounds the ends of the phase and of its requests to 256 ns, and the file does not say them
			tolerance += (got["request_count"].Avg + 1) * 256e-9 / secondsOf(t, want)
		}
		var stat map[string]any
		if err := json.Unmarshal(want[tag], &stat); err != nil {
			t.Errorf("%s: %v", tag, err)
			continue
		}
		values := s.values()
		for key, v := range stat {
			switch a := v.(type) {
			case string:
				if values[key] != a {
					t.Errorf("%s.%s is %v, want %s", tag, key, values[key], a)
				}
			case float64:
				b, ok := values[key].(float64)
				if n, whole := values[key].(int); whole {
					b, ok = float64(n), true
				}
				if !ok || math.Abs(a-b) > tolerance*max(1, math.Abs(a)) {
					t.Errorf("%s.%s is %v, want %v", tag, key, values[key], a)
				}
			}
		}
		if len(stat) != len(values) {
			t.Errorf("%s has %d values, want %d", tag, len(values), len(stat))
		}
	}
}

// checkCSV compares the lines of our CSV file with those of AIPerf, as far as their metrics have names here.
func checkCSV(t *testing.T, path string, totals Totals) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var ours bytes.Buffer
	if err := WriteCSV(&ours, totals); err != nil {
		t.Fatal(err)
	}
	lines := func(text string) map[string]string {
		out := map[string]string{}
		r := csv.NewReader(strings.NewReader(text))
		r.FieldsPerRecord = -1
		rows, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			out[row[0]] = strings.Join(row, ",")
		}
		return out
	}
	want, got := lines(string(data)), lines(ours.String())
	found := 0
	for _, f := range slices.Concat(perRequest, ofMetadata, overTime, single) {
		name := header(f.tag, f.unit)
		if got[name] != want[name] && !(slices.Contains(overTime, f) && equalButLastDigit(got[name], want[name])) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got[name], want[name])
		}
		if want[name] != "" {
			found++
		}
	}
	if want := len(perRequest) + len(ofMetadata) + len(overTime) + len(single); found != want {
		t.Errorf("%d of %d metrics are in AIPerf's file", found, want)
	}
}

// equalButLastDigit compares lines of the CSV file whose figures have two digits. Those over time differ by what AIPerf rounds; see
// checkSummary.
func equalButLastDigit(got, want string) bool {
	a, b := strings.Split(got, ","), strings.Split(want, ",")
	return slices.EqualFunc(a, b, func(a, b string) bool {
		x, err := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return a == b || err == nil && err2 == nil && math.Abs(x-y) < .0101
	})
}

func liveRun() *live.Run {
	call := func(i, turn int, session string) *live.Call {
		return &live.Call{Number: int32(i), Request: i, ID: "id-" + string(rune('a'+i)), Session: session, Turn: turn, Input: 100, Output: 4}
	}
	return &live.Run{
		Started: time.Unix(1_700_000_000, 0),
		Records: []live.Record{
			{Call: call(0, 0, "s"), Phase: live.PhaseWarmUp, SentMs: 0, FirstTokenMs: 5, SecondTokenMs: 6, LastTokenMs: 8, EndMs: 9, OutputTokens: 4, InputTokens: 108, CachedTokens: 64},
			{Call: call(1, 1, "s"), ScheduledMs: 10, SentMs: 11, FirstTokenMs: 31, SecondTokenMs: 41, LastTokenMs: 61, EndMs: 62, OutputTokens: 4, InputTokens: 108, CachedTokens: 64},
			{Call: call(2, 0, ""), ScheduledMs: 20, SentMs: 20, FirstTokenMs: live.Never, SecondTokenMs: live.Never, LastTokenMs: live.Never, EndMs: 25, InputTokens: -1, CachedTokens: -1,
				Err: &live.Error{Kind: live.ErrOverloaded, Status: 503, Message: "no room"}},
			{Call: call(3, 0, "t"), ScheduledMs: 30, SentMs: 30, FirstTokenMs: live.Never, SecondTokenMs: live.Never, LastTokenMs: live.Never, EndMs: 35, InputTokens: -1, CachedTokens: -1, Cancelled: true},
		},
	}
}

// TestRecordsOfALiveRun checks what AIPerf's tools read of our runs, and that they come back from the file.
func TestRecordsOfALiveRun(t *testing.T) {
	var records []Record
	for r := range FromRun(liveRun()) {
		kept := *r
		kept.Metrics = maps.Clone(r.Metrics)
		records = append(records, kept)
	}
	var file bytes.Buffer
	if err := WriteRecords(&file, FromRun(liveRun())); err != nil {
		t.Fatal(err)
	}
	back, err := ReadRecords(&file)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(records, back); d != "" {
		t.Errorf("-written +read\n%s", d)
	}
	got := map[string]float64{}
	for tag := range records[1].Metrics {
		got[tag], _ = records[1].Number(tag)
	}
	want := map[string]float64{
		requestLatency: 50, timeToFirstToken: 20, timeToFirstOutput: 20, timeToSecondToken: 10, interTokenLatency: 10, decodeDuration: 30, inputLength: 108, outputLength: 4, outputCount: 4,
		usagePrompt: 108, usageCompletion: 4, usageTotal: 112, usageCached: 64, outputPerUser: 100, outputEndToEnd: 80, prefillPerUser: 5400, lengthMismatchPct: 0,
	}
	if d := diff.Diff(want, got); d != "" {
		t.Errorf("metrics: -want +got\n%s", d)
	}
	totals := TotalsOf(FromRun(liveRun()), Facts{ProfilingSeconds: .1})
	s := totals.Profiling
	if s["request_count"].Avg != 1 || s["completed_request_count"].Avg != 2 || s["request_error_rate"].Avg != 50 || s["credit_to_start_latency"].Count != 1 {
		t.Errorf("summary %v", s)
	}
	// One request with 108 tokens waits for 20 ms and is answered with 4 tokens in 31 ms, of 100; times are multiples of 256 ns.
	for tag, want := range map[string][2]float64{ // mean and most
		"effective_concurrency": {.51, 1}, "effective_prefill_concurrency": {.2, 1}, "effective_decode_concurrency": {.31, 1},
		"effective_prefill_throughput": {1080, 5400}, "effective_decode_throughput": {30, 3 / .031}, "effective_total_throughput": {1110, 5400},
		"effective_prefill_throughput_per_user": {1080, 5400}, "effective_decode_throughput_per_user": {30, 3 / .031}, "tokens_in_flight": {108*.2 + 112*.31, 112},
	} {
		if got := s[tag]; math.Abs(got.Avg-want[0]) > 1e-5*want[0] || math.Abs(got.Max-want[1]) > 1e-5*want[1] || got.Min != 0 || got.P50 > got.Max {
			t.Errorf("%s: %+v, want a mean of %g and %g at most", tag, got, want[0], want[1])
		}
	}
	var out bytes.Buffer
	if err := WriteJSON(&out, totals, Facts{Model: "m", Started: time.Unix(0, 0), Ended: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Errors []errorCount               `json:"error_summary"`
		WarmUp map[string]json.RawMessage `json:"warmup_metrics"`
	}
	if err := json.Unmarshal(out.Bytes(), &facts); err != nil {
		t.Fatal(err)
	}
	if len(facts.Errors) != 2 || facts.Errors[0].Count != 1 || facts.WarmUp[requestLatency] == nil {
		t.Errorf("facts %+v", facts)
	}
}

// TestPercentilesInterpolate compares with the definition: the share of the way from the least to the greatest rank.
func TestPercentilesInterpolate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 30).Draw(t, "values")
		s := statOf(slices.Clone(values), "ms")
		last := s.Min
		for _, p := range percentiles {
			v := *p.of(&s)
			if v < last || v > s.Max {
				t.Errorf("%s is %v, after %v, below %v", p.name, v, last, s.Max)
			}
			last = v
		}
	})
	if s := statOf([]float64{4, 1, 3, 2}, ""); s.P50 != 2.5 || s.P25 != 1.75 || s.P90 != 3.7 {
		t.Errorf("%+v", s)
	}
}

func TestBadRecords(t *testing.T) {
	const good = `{"metadata":{"request_start_ns":1,"request_end_ns":2,"benchmark_phase":"profiling"},"metrics":{"a":{"value":[1,2],"unit":"ms"},"b":{"value":null,"unit":"ms"},"c":{"value":true,"unit":""}}}`
	for _, test := range []struct{ name, line, want string }{
		{"no JSON", "x", "line 2: is no record of AIPerf: invalid character 'x' looking for beginning of value"},
		{"no metadata", `{"metrics":{}}`, "line 2: is no record of AIPerf: metadata is missing"},
		{"ends before it starts", strings.Replace(good, `"request_end_ns":2`, `"request_end_ns":0`, 1), "line 2: request_start_ns 1 and request_end_ns 0 are no times of a request"},
		{"a turn below 0", strings.Replace(good, `"benchmark_phase"`, `"turn_index":-1,"benchmark_phase"`, 1), "line 2: turn_index -1 is below 0"},
		{"a metric of words", strings.Replace(good, "[1,2]", `"fast"`, 1), `line 2: is no record of AIPerf: "fast" is neither a number nor a list of them`},
		{"a list of words", strings.Replace(good, "[1,2]", `["a"]`, 1), "line 2: is no record of AIPerf: is a list of other things than numbers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			records, err := ReadRecords(strings.NewReader(good + "\n" + test.line + "\n\n" + good))
			if err == nil || err.Error() != test.want || len(records) != 2 {
				t.Errorf("%d records, %v, want %s", len(records), err, test.want)
			}
		})
	}
	many := strings.Repeat("x\n", 2*mostProblems)
	if _, err := ReadRecords(strings.NewReader(many)); err == nil || strings.Count(err.Error(), "\n") != mostProblems-1 {
		t.Errorf("many bad lines: %v", err)
	}
}

func FuzzReadRecords(f *testing.F) {
	var file bytes.Buffer
	if err := WriteRecords(&file, FromRun(liveRun())); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add([]byte(`{"metadata":{"request_start_ns":1,"request_end_ns":2},"metrics":{"a":{"value":[],"unit":"ms"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := ReadRecords(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := WriteRecords(&bytes.Buffer{}, each(records)); err != nil {
			t.Error(err)
		}
		TotalsOf(each(records), Facts{ProfilingSeconds: 1})
	})
}
