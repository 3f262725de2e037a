package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/servegrid/servegrid/simcore/rules"
)

// writeTrace writes a trace file and returns its path.
func writeTrace(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadFiles loads trace files of 512-token blocks.
func loadFiles(src Source, paths ...string) (*Workload, error) {
	trace := DefaultTraceSpec()
	trace.Format = FormatMooncake
	trace.Paths = paths
	return Spec{Trace: &trace}.Load(context.Background(), src)
}

// requestsOf turns a workload back into requests, in its order.
func requestsOf(w *Workload) []Request {
	var out []Request
	for session := range w.Sessions() {
		for i := w.SessionStart[session]; i < w.SessionStart[session+1]; i++ {
			out = append(out, Request{
				ID: w.ID(int(i)), Session: w.SessionName(session), ArrivalMs: w.ArrivalMs[i], DelayMs: w.DelayMs[i],
				Input: int(w.Input[i]), Output: int(w.Output[i]), Hashes: w.Hashes(int(i)), PlannedOutput: w.PlannedOutput(int(i)), Hints: w.Hints(int(i)),
			})
		}
	}
	return out
}

var sameRequests = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

var none = math.NaN()

// TestMooncakeFiles reads the example traces.
func TestMooncakeFiles(t *testing.T) {
	for file, want := range map[string][]Request{
		"alias": {
			{Session: "request_1", ArrivalMs: 5, Input: 1000, Output: 20, Hashes: []uint64{0, 1}},
			{Session: "request_2", ArrivalMs: 55.5, Input: 1500, Output: 10, Hashes: []uint64{0, 1, 2}},
		},
		"extra": {
			{ID: "r1", Session: "request_1", ArrivalMs: 0, Input: 512, Output: 3, Hashes: []uint64{1}, PlannedOutput: []uint32{11, 12, 13},
				Hints: Hints{Priority: 3, StrictPriority: 1, PolicyClass: "gold"}},
			{ID: "r2", Session: "request_2", ArrivalMs: 1, Input: 1024, Output: 3, Hashes: []uint64{1, 2}},
		},
		"flat": {
			{Session: "request_1", ArrivalMs: 0, Input: 1000, Output: 20, Hashes: []uint64{0, 1}},
			{Session: "request_2", ArrivalMs: 50, Input: 1500, Output: 10, Hashes: []uint64{0, 1, 2}},
			{Session: "request_3", ArrivalMs: 400, Input: 700, Output: 5, Hashes: []uint64{9, 10}},
		},
		"offset": {
			{Session: "request_1", ArrivalMs: 100000, Input: 512, Output: 3, Hashes: []uint64{1}},
			{Session: "request_2", ArrivalMs: 100500, Input: 512, Output: 3, Hashes: []uint64{2}},
		},
		"sessions": {
			{Session: "a", ArrivalMs: 1000, Input: 512, Output: 8, Hashes: []uint64{1}},
			{Session: "a", ArrivalMs: none, DelayMs: 50, Input: 1024, Output: 8, Hashes: []uint64{1, 2}},
			{Session: "a", ArrivalMs: none, DelayMs: 0, Input: 1536, Output: 8, Hashes: []uint64{1, 2, 3}},
			{Session: "b", ArrivalMs: 1010, Input: 512, Output: 4, Hashes: []uint64{7}},
			{Session: "b", ArrivalMs: none, DelayMs: 50, Input: 1024, Output: 4, Hashes: []uint64{7, 8}},
		},
		"unsorted": {
			{Session: "request_1", ArrivalMs: 500, Input: 512, Output: 3, Hashes: []uint64{1}},
			{Session: "request_2", ArrivalMs: 0, Input: 512, Output: 3, Hashes: []uint64{2}},
		},
	} {
		w, err := loadFiles(Source{}, filepath.Join("testdata", "mooncake", file+".jsonl"))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if diff := cmp.Diff(want, requestsOf(w), sameRequests); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", file, diff)
		}
		if w.Name != file+".jsonl" || w.BlockSize != 512 {
			t.Errorf("%s: named %q with blocks of %d", file, w.Name, w.BlockSize)
		}
	}
}

func TestMooncakeRows(t *testing.T) {
	for _, test := range []struct {
		name, rows string
		src        Source
		want       []Request
	}{
		{name: "no times", rows: `{"output_length":3,"hash_ids":[1]}`,
			want: []Request{{ArrivalMs: none, Input: 512, Output: 3, Hashes: []uint64{1}}}},
		{name: "no output", rows: `{"timestamp":1,"output_length":0,"hash_ids":[1]}`,
			want: []Request{{ArrivalMs: 1, Input: 512, Hashes: []uint64{1}}}},
		{name: "nulls are absent", rows: `{"timestamp":null,"created_time":2,"input_length":null,"output_length":3,"hash_ids":[1],"session_id":null,"delay":null,"output_token_ids":null,"request_id":null,"priority":null}`,
			want: []Request{{ArrivalMs: 2, Input: 512, Output: 3, Hashes: []uint64{1}}}},
		{name: "negative and fractional times", rows: `{"timestamp":-5.25e1,"output_length":3,"hash_ids":[1]}`,
			want: []Request{{ArrivalMs: -52.5, Input: 512, Output: 3, Hashes: []uint64{1}}}},
		{name: "large ids", rows: `{"timestamp":0,"output_length":1,"hash_ids":[18446744073709551615, 4294967297 ,0]}`,
			want: []Request{{Input: 1536, Output: 1, Hashes: []uint64{math.MaxUint64, 1<<32 + 1, 0}}}},
		{name: "large ids cut to 32 bits", src: Source{Rules: rules.Set{HashIDs32: true}},
			rows: `{"timestamp":0,"output_length":1,"hash_ids":[18446744073709551615,4294967297,0]}`,
			want: []Request{{Input: 1536, Output: 1, Hashes: []uint64{math.MaxUint32, 1, 0}}}},
		{name: "ids past the input", rows: `{"timestamp":0,"input_length":513,"output_length":1,"hash_ids":[1,2,3,4]}`,
			want: []Request{{Input: 513, Output: 1, Hashes: []uint64{1, 2}}}},
		{name: "clamped input", src: Source{Rules: rules.Set{ClampInput: true}}, rows: `{"timestamp":0,"input_length":2000,"output_length":1,"hash_ids":[1]}`,
			want: []Request{{Input: 512, Output: 1, Hashes: []uint64{1}}}},
		{name: "escaped and foreign text", rows: `{"\u0074imestamp":3,"output_length":1,"hash_ids":[1],"session_id":"\u00e9\n\"","request_id":"日本"}`,
			want: []Request{{ID: "日本", Session: "é\n\"", ArrivalMs: 3, Input: 512, Output: 1, Hashes: []uint64{1}}}},
		{name: "unknown fields of any type", rows: `{"x":{"hash_ids":[[1,{"a":null}],"}"]},"timestamp":1,"y":[],"output_length":1,"z":-1.5e3,"hash_ids":[1],"t":true,"":""}`,
			want: []Request{{ArrivalMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}}}},
		{name: "hints", rows: `{"timestamp":1,"output_length":1,"hash_ids":[1],"priority":-2147483648,"strict_priority":4294967295,"policy_class":"gold"}`,
			want: []Request{{ArrivalMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}, Hints: Hints{Priority: math.MinInt32, StrictPriority: math.MaxUint32, PolicyClass: "gold"}}}},
		{name: "hints of one turn", rows: `{"session_id":"a","timestamp":1,"output_length":1,"hash_ids":[1]}
{"session_id":"b","timestamp":1,"output_length":1,"hash_ids":[1]}
{"session_id":"a","timestamp":2,"output_length":1,"hash_ids":[1],"priority":3}`,
			want: []Request{
				{Session: "a", ArrivalMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}},
				{Session: "a", ArrivalMs: none, DelayMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}, Hints: Hints{Priority: 3}},
				{Session: "b", ArrivalMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}},
			}},
		{name: "white space", rows: " \t{ \"timestamp\" : 1 ,\t\"output_length\":1 , \"hash_ids\" : [ 1 , 2 ] } \r\n\n \t\r\n{\"timestamp\":2,\"output_length\":1,\"hash_ids\":[ ],\"hash_ids\":[3]}",
			want: nil}, // hash_ids given twice
		{name: "CRLF, blank lines, no last line end", rows: "\r\n{\"timestamp\":1,\"output_length\":1,\"hash_ids\":[1]}\r\n\r\n   \n{\"timestamp\":2,\"output_length\":1,\"hash_ids\":[2]}",
			want: []Request{{ArrivalMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}}, {ArrivalMs: 2, Input: 512, Output: 1, Hashes: []uint64{2}}}},
		{name: "byte order mark", rows: "\ufeff{\"timestamp\":1,\"output_length\":1,\"hash_ids\":[1]}\n",
			want: []Request{{ArrivalMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}}}},
		{name: "delays of a session", rows: `{"session_id":"s","timestamp":10,"output_length":1,"hash_ids":[1]}
{"session_id":"s","timestamp":35,"output_length":1,"hash_ids":[1]}
{"session_id":"s","delay":7,"timestamp":40,"output_length":1,"hash_ids":[1]}
{"session_id":"s","output_length":1,"hash_ids":[1]}
{"session_id":"s","timestamp":41,"output_length":1,"hash_ids":[1]}
{"session_id":"s","delay_ms":0,"output_length":1,"hash_ids":[1]}`,
			want: []Request{
				{Session: "s", ArrivalMs: 10, Input: 512, Output: 1, Hashes: []uint64{1}},
				{Session: "s", ArrivalMs: none, DelayMs: 25, Input: 512, Output: 1, Hashes: []uint64{1}},
				{Session: "s", ArrivalMs: none, DelayMs: 7, Input: 512, Output: 1, Hashes: []uint64{1}},
				{Session: "s", ArrivalMs: none, DelayMs: 0, Input: 512, Output: 1, Hashes: []uint64{1}},
				{Session: "s", ArrivalMs: none, DelayMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}},
				{Session: "s", ArrivalMs: none, DelayMs: 0, Input: 512, Output: 1, Hashes: []uint64{1}},
			}},
		{name: "a first turn may state a delay of 0", rows: `{"session_id":"s","timestamp":10,"delay":0,"output_length":1,"hash_ids":[1]}`,
			want: []Request{{Session: "s", ArrivalMs: 10, Input: 512, Output: 1, Hashes: []uint64{1}}}},
		{name: "an empty session id stands alone", rows: `{"session_id":"","timestamp":1,"output_length":1,"hash_ids":[1]}
{"session_id":"","timestamp":2,"output_length":1,"hash_ids":[1]}`,
			want: []Request{{ArrivalMs: 1, Input: 512, Output: 1, Hashes: []uint64{1}}, {ArrivalMs: 2, Input: 512, Output: 1, Hashes: []uint64{1}}}},
	} {
		w, err := loadFiles(test.src, writeTrace(t, "trace.jsonl", test.rows))
		if test.want == nil {
			if err == nil {
				t.Errorf("%s: loads", test.name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		for i := range test.want {
			if test.want[i].Session == "" {
				test.want[i].Session = fmt.Sprintf("request_%d", i+1)
			}
		}
		if diff := cmp.Diff(test.want, requestsOf(w), sameRequests); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestMooncakeProblems checks the text for each kind of bad field: file, line, field, value, what is wrong.
func TestMooncakeProblems(t *testing.T) {
	const good = `{"session_id":"s","timestamp":100,"output_length":3,"hash_ids":[1]}`
	for _, test := range []struct{ row, want string }{
		{`[1,2]`, `is not a JSON object: column 1 has '[' where '{' belongs`},
		{`nonsense`, `is not a JSON object: column 1 has 'n' where '{' belongs`},
		{`{"timestamp": 0, "input_length":`, `is not a JSON object: `},
		{`{"timestamp":0,"output_length":3,"hash_ids":[1]} x`, `column 50 has 'x' where the end of the line belongs`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[1]`, `has the end of the line where ',' or '}' belongs`},
		{`{"timestamp":0 "output_length":3,"hash_ids":[1]}`, `column 16 has '"' where ',' or '}' belongs`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[1 2]}`, `column 48 has '2' where ',' or ']' belongs`},
		{`{timestamp:0}`, `column 2 has 't' where '"' belongs`},
		{"{\"a\tb\":1}", `column 4 has '\t' where a character of a string belongs`},
		{`{"timestamp":0,"output_length":3}`, `hash_ids: is missing`},
		{`{"timestamp":0,"output_length":3,"hash_ids":null}`, `hash_ids: is missing`},
		{`{"timestamp":0,"hash_ids":[1]}`, `output_length: is missing`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[]}`, `input_length is 0: must be positive and be covered by hash_ids, which has 0 ids`},
		{`{"timestamp":0,"input_length":512,"output_length":3,"hash_ids":[]}`, `input_length is 512: must be positive and be covered by hash_ids, which has 0 ids`},
		{`{"timestamp":0,"input_length":0,"output_length":3,"hash_ids":[1]}`, `input_length is 0: must be positive`},
		{`{"timestamp":0,"input_length":2000,"output_length":3,"hash_ids":[1]}`, `input_length is 2000: exceeds the 512 tokens that 1 hash_ids of 512 tokens cover`},
		{`{"timestamp":0,"input_length":512.0,"output_length":3,"hash_ids":[1]}`, `input_length is 512.0: must be an integer of 0 or more`},
		{`{"timestamp":0,"input_length":-1,"output_length":3,"hash_ids":[1]}`, `input_length is -1: must be an integer of 0 or more`},
		{`{"timestamp":0,"input_tokens":"512","output_length":3,"hash_ids":[1]}`, `input_tokens is "512": must be an integer of 0 or more`},
		{`{"timestamp":0,"output_length":18446744073709551616,"hash_ids":[1]}`, `output_length is 18446744073709551616: must be an integer below 2^64`},
		{`{"timestamp":0,"output_length":18446744073709551615,"hash_ids":[1]}`, `output_length is 18446744073709551615: is above the limit of 268435456 tokens`},
		{`{"timestamp":0,"output_tokens":1e3,"hash_ids":[1]}`, `output_tokens is 1e3: must be an integer of 0 or more`},
		{`{"timestamp":0,"output_length":true,"hash_ids":[1]}`, `output_length is true: must be an integer of 0 or more`},
		{`{"timestamp":0,"output_length":007,"hash_ids":[1]}`, `is not a JSON object: column 32 has '0' where a well-formed number belongs; output_length must be an integer of 0 or more`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[-1]}`, `hash_ids is [-1]: must be a list of integers from 0 to 2^64-1`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[1,18446744073709551616]}`, `hash_ids is [1,18446744073709551616]: must be a list of integers from 0 to 2^64-1`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[1,null]}`, `hash_ids is [1,null]: must be a list of integers`},
		{`{"timestamp":0,"output_length":3,"hash_ids":"1"}`, `hash_ids is "1": must be a list of integers of 0 or more`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[1.5]}`, `hash_ids is [1.5]: must be a list of integers`},
		{`{"timestamp":"soon","output_length":3,"hash_ids":[1]}`, `timestamp is "soon": must be a number`},
		{`{"created_time":[],"output_length":3,"hash_ids":[1]}`, `created_time is []: must be a number`},
		{`{"timestamp":NaN,"output_length":3,"hash_ids":[1]}`, `is not a JSON object: column 14 has 'N' where a value belongs; timestamp must be a number`},
		{`{"timestamp":Infinity,"output_length":3,"hash_ids":[1]}`, `is not a JSON object: column 14 has 'I' where a value belongs; timestamp must be a number`},
		{`{"timestamp":1e999,"output_length":3,"hash_ids":[1]}`, `timestamp is 1e999: must be a finite number`},
		{`{"timestamp":-1e16,"output_length":3,"hash_ids":[1]}`, `timestamp is -1e+16: is beyond ±1e+15 ms`},
		{`{"timestamp":01,"output_length":3,"hash_ids":[1]}`, `is not a JSON object: column 14 has '0' where a well-formed number belongs; timestamp must be a number`},
		{`{"timestamp":0,"created_time":1,"output_length":3,"hash_ids":[1]}`, `created_time: is given twice, perhaps under its other name`},
		{`{"timestamp":0,"output_length":3,"output_tokens":3,"hash_ids":[1]}`, `output_tokens: is given twice`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[1],"hash_ids":[2]}`, `hash_ids: is given twice`},
		{`{"timestamp":0,"output_length":3,"hash_ids":[1],"delay":5}`, `delay is 5: a session's first turn has nothing to wait for`},
		{`{"session_id":"new","timestamp":0,"output_length":3,"hash_ids":[1],"delay_ms":5}`, `delay is 5: a session's first turn has nothing to wait for`},
		{`{"session_id":"s","output_length":3,"hash_ids":[1],"delay":-5}`, `delay is -5: must be from 0 to 1e+15 ms`},
		{`{"session_id":"s","output_length":3,"hash_ids":[1],"delay":2e15}`, `delay is 2e+15: must be from 0 to 1e+15 ms`},
		{`{"session_id":"s","timestamp":50,"output_length":3,"hash_ids":[1]}`, `timestamp is 50: is before the previous turn of session "s" at 100 ms`},
		{`{"session_id":7,"output_length":3,"hash_ids":[1]}`, `session_id is 7: must be a string`},
		{`{"request_id":{"a":1},"output_length":3,"hash_ids":[1]}`, `request_id is {"a":1}: must be a string`},
		{`{"policy_class":1,"output_length":3,"hash_ids":[1]}`, `policy_class is 1: must be a string`},
		{`{"priority":2147483648,"output_length":3,"hash_ids":[1]}`, `priority is 2147483648: must be an integer from -2147483648 to 2147483647`},
		{`{"priority":1.0,"output_length":3,"hash_ids":[1]}`, `priority is 1.0: must be an integer`},
		{`{"strict_priority":-1,"output_length":3,"hash_ids":[1]}`, `strict_priority is -1: must be an integer from 0 to 4294967295`},
		{`{"output_length":3,"hash_ids":[1],"output_token_ids":[1]}`, `output_length is 3: does not match output_token_ids, which has 1 tokens`},
		{`{"output_length":1,"hash_ids":[1],"output_token_ids":[4294967296]}`, `output_token_ids is [4294967296]: must be a list of token ids below 2^32`},
		{`{"output_length":1,"hash_ids":[1],"output_token_ids":3}`, `output_token_ids is 3: must be a list`},
		{`{"output_length":1,"hash_ids":[1],"x":{"unclosed":[}}`, `is not a JSON object: `},
	} {
		path := writeTrace(t, "trace.jsonl", good+"\n\n"+test.row+"\n"+strings.Replace(good, `"s"`, `"t"`, 1)+"\n")
		_, err := loadFiles(Source{}, path)
		var bad *TraceError
		if !errors.As(err, &bad) || len(bad.Problems) != 1 || bad.More != 0 {
			t.Errorf("%s:\n got %v\nwant one problem", test.row, err)
			continue
		}
		if want := path + ":3: "; !strings.HasPrefix(bad.Problems[0], want) || !strings.Contains(bad.Problems[0], test.want) {
			t.Errorf("%s:\n got %s\nwant %s%s", test.row, bad.Problems[0], want, test.want)
		}
	}
}

func TestMooncakeDelayNeedsATime(t *testing.T) {
	_, err := loadFiles(Source{}, writeTrace(t, "t.jsonl", `{"session_id":"s","output_length":3,"hash_ids":[1]}
{"session_id":"s","timestamp":50,"output_length":3,"hash_ids":[1]}`))
	if err == nil || !strings.Contains(err.Error(), `t.jsonl:2: timestamp is 50: cannot become a delay: no earlier row of session "s" has a timestamp`) {
		t.Errorf("got %v", err)
	}
}

// TestManyBadLines checks that the problems of all files are listed together, up to a limit.
func TestManyBadLines(t *testing.T) {
	bad := strings.Repeat(`{"output_length":1}`+"\n", 15)
	first, second := writeTrace(t, "first.jsonl", bad), writeTrace(t, "second.jsonl", "\n"+bad)
	_, err := loadFiles(Source{}, first, second)
	var e *TraceError
	if !errors.As(err, &e) || len(e.Problems) != 20 || e.More != 10 {
		t.Fatalf("got %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	got := []string{lines[0], lines[14], lines[15], lines[19], lines[20]}
	want := []string{
		first + ":1: hash_ids: is missing", first + ":15: hash_ids: is missing", second + ":2: hash_ids: is missing",
		second + ":6: hash_ids: is missing", "and 10 more bad lines",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSeveralFiles checks that several files are one trace: sessions go on in the next file.
func TestSeveralFiles(t *testing.T) {
	first := writeTrace(t, "first.jsonl", `{"session_id":"s","timestamp":10,"output_length":1,"hash_ids":[1]}`)
	second := writeTrace(t, "second.jsonl", "\ufeff"+`{"session_id":"s","timestamp":30,"output_length":2,"hash_ids":[1]}`+"\n"+`{"timestamp":3,"output_length":3,"hash_ids":[1]}`)
	w, err := loadFiles(Source{}, first, second)
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{
		{Session: "s", ArrivalMs: 10, Input: 512, Output: 1, Hashes: []uint64{1}},
		{Session: "s", ArrivalMs: none, DelayMs: 20, Input: 512, Output: 2, Hashes: []uint64{1}},
		{Session: "request_2", ArrivalMs: 3, Input: 512, Output: 3, Hashes: []uint64{1}},
	}
	if diff := cmp.Diff(want, requestsOf(w), sameRequests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.Name != "first.jsonl and 1 more" {
		t.Errorf("named %q", w.Name)
	}
}

func TestLongLines(t *testing.T) {
	const n = 300_000 // about 2 MB, far above the read buffer
	ids := strings.Repeat("123456,", n-1) + "7"
	w, err := loadFiles(Source{}, writeTrace(t, "t.jsonl", `{"timestamp":1,"output_length":1,"hash_ids":[`+ids+`]}`+"\r\n"+`{"timestamp":2,"output_length":1,"hash_ids":[8]}`))
	if err != nil {
		t.Fatal(err)
	}
	if h := w.Hashes(0); len(h) != n || h[n-1] != 7 || int(w.Input[0]) != n*512 || w.Hashes(1)[0] != 8 {
		t.Errorf("got %d ids of %d tokens", len(h), w.Input[0])
	}
}

func TestLoadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	trace := DefaultTraceSpec()
	trace.Format = FormatMooncake
	trace.Path = writeTrace(t, "t.jsonl", strings.Repeat(`{"timestamp":1,"output_length":1,"hash_ids":[1]}`+"\n", 10_000))
	if _, err := (Spec{Trace: &trace}).Load(ctx, Source{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
