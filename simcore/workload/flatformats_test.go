package workload

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// loadText reads a trace from the standard input, which can be read only once, in the format told by its content.
func loadText(text string, change ...func(*TraceSpec)) (*Workload, error) {
	trace := DefaultTraceSpec()
	trace.Path = "-"
	for _, c := range change {
		if c != nil {
			c(&trace)
		}
	}
	return Spec{Trace: &trace}.Load(context.Background(), Source{Stdin: strings.NewReader(text)})
}

// TestFlatFormats reads a small trace of each format that is a table of requests.
func TestFlatFormats(t *testing.T) {
	azure := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	burst := "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	asAIPerf := func(s *TraceSpec) { s.Format = FormatAIPerf }
	for _, test := range []struct {
		name, format, text string
		want               []Request
		warnings           []string
		change             func(*TraceSpec)
	}{
		{"azure 2023", FormatAzure, azure + "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319601,3180,0\n", []Request{
			{Session: "request_1", Input: 4808, Output: 10},
			{Session: "request_2", ArrivalMs: 52.0001, Input: 3180},
		}, nil, nil},
		{"azure 2024", FormatAzure, azure + "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 01:00:00.009930+00:00,2399,6\n", []Request{
			{Session: "request_1", Input: 2162, Output: 5},
			{Session: "request_2", ArrivalMs: 3_600_000, Input: 2399, Output: 6},
		}, nil, nil},
		{"azure, other columns", FormatAzure, "\ufeffmodel, generated_tokens ,context_tokens,timestamp,x\r\n\"a,b\",7,8.0,2023-11-16T18:17:03,\r\n,7,9,2023-11-16 18:17:02,\"\"\r\n", []Request{
			{Session: "request_1", Input: 8, Output: 7},
			{Session: "request_2", ArrivalMs: -1000, Input: 9, Output: 7},
		}, nil, nil},
		{"burstgpt", FormatBurstGPT, burst + "5,ChatGPT,472,18,490,Conversation log\n45.061,GPT-4,1087,230,1317,API log\n46,GPT-4,0,0,0,API log\n118,ChatGPT,417,0,417,API log\n", []Request{
			{Session: "request_1", ArrivalMs: 5000, Input: 472, Output: 18},
			{Session: "request_2", ArrivalMs: 45_061, Input: 1087, Output: 230},
		}, []string{"2 rows with 0 response tokens are failed requests"}, nil},
		{"burstgpt sessions", FormatBurstGPT, "Timestamp,Session ID,Elapsed time,Request tokens,Response tokens\n1,7,0.5,10,1\n2.5,,,20,2\n4.001,7,1,30,3\n", []Request{
			{Session: "7", ArrivalMs: 1000, Input: 10, Output: 1},
			{Session: "7", ArrivalMs: none, DelayMs: 3001, Input: 30, Output: 3},
			{Session: "request_2", ArrivalMs: 2500, Input: 20, Output: 2},
		}, nil, nil},
		{"qwen-bailian", FormatQwenBailian, `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 33, "output_length": 5, "type": "text", "turn": 1, "hash_ids": [7, 8, 9]}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 70.5, "input_length": 40, "output_length": 6, "turn": 2, "hash_ids": [7, 8, 10]}
{"chat_id": 3, "parent_chat_id": 1, "timestamp": 71, "input_length": 16, "output_length": 7, "turn": 2, "hash_ids": [7, 8]}
{"chat_id": "4", "parent_chat_id": 99, "timestamp": 72, "output_length": 0, "hash_ids": [11]}
{"timestamp": 73, "input_length": 5, "output_length": 1}
`, []Request{
			{ID: "1", Session: "1", ArrivalMs: 61_114, Input: 33, Output: 5, Hashes: []uint64{7, 8, 9}},
			{ID: "2", Session: "1", ArrivalMs: none, DelayMs: 9386, Input: 40, Output: 6, Hashes: []uint64{7, 8, 10}},
			{ID: "3", Session: "3", ArrivalMs: 71_000, Input: 16, Output: 7, Hashes: []uint64{7}},
			{ID: "4", Session: "4", ArrivalMs: 72_000, Input: 16, Hashes: []uint64{11}},
			{Session: "request_4", ArrivalMs: 73_000, Input: 5, Output: 1},
		}, []string{"1 requests go on with a chat that no earlier row has", "1 requests go on with a chat that another one has gone on with"}, nil},
		{"aiperf lengths", FormatAIPerf, `{"timestamp": 1000, "input_length": 1200, "output_length": 12, "extra": {"temperature": 0}}
{"timestamp": 2000, "session_id": "s", "input_length": 520, "output_length": 4, "hash_ids": [20, 21]}
{"session_id": "s", "delay": 100, "input_length": 1030, "hash_ids": [20, 22, 23], "timestamp": 2500}
{"session_id": "s", "delay": 100.5, "input_length": 9, "output_length": 0, "tools": null}
{"session_id": "s", "input_length": 9, "output_length": 1}
`, []Request{
			{Session: "request_1", ArrivalMs: 1000, Input: 1200, Output: 12},
			{Session: "s", ArrivalMs: 2000, Input: 520, Output: 4, Hashes: []uint64{20, 21}},
			{Session: "s", ArrivalMs: none, DelayMs: 100, Input: 1030, Output: 128, Hashes: []uint64{20, 22, 23}},
			{Session: "s", ArrivalMs: none, DelayMs: 100.5, Input: 9},
			{Session: "s", ArrivalMs: none, Input: 9, Output: 1},
		}, []string{"1 rows state no output length and get 128 tokens"}, asAIPerf},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := loadText(test.text, test.change)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(test.want, requestsOf(w), sameRequests); diff != "" {
				t.Error(diff)
			}
			if w.Format != test.format {
				t.Errorf("format %s", w.Format)
			}
			if want := "- is read as " + test.format + ": it has the "; strings.HasPrefix(w.Detected, want) != (test.change == nil) {
				t.Errorf("detected %q", w.Detected)
			}
			checkWarnings(t, w, test.warnings)
		})
	}
}

func checkWarnings(t *testing.T, w *Workload, want []string) {
	t.Helper()
	if len(w.Warnings) != len(want) {
		t.Fatalf("warnings %q, want %q", w.Warnings, want)
	}
	for i := range want {
		if !strings.Contains(w.Warnings[i], want[i]) {
			t.Errorf("warning %q, want %q", w.Warnings[i], want[i])
		}
	}
}

// TestAIPerfTexts checks lengths of texts, and that texts which begin alike share blocks.
func TestAIPerfTexts(t *testing.T) {
	long := strings.Repeat("é", 64)
	w, err := loadText(fmt.Sprintf(`{"text_input": "What is AI?", "output_length": 4}
{"text_input": "", "output_length": 4}
{"session_id": "m", "timestamp": 0, "messages": [{"role": "user", "content": %[1]q}], "output_length": 5}
{"session_id": "m", "timestamp": 400, "messages": [{"role": "user", "content": [{"type": "text", "text": %[1]q}]}, {"role": "assistant", "content": "Hi!"}], "output_length": 3}
{"payload": {"model": "m", "max_tokens": 9, "tools": [{"a" : 1}], "messages": [{"role": "user", "content": "x\ny"}], "n": 1}}
`, long), func(s *TraceSpec) { s.BlockSize = 8 })
	if err != nil {
		t.Fatal(err)
	}
	// Characters: 11, 0, 4+64, 4+4+64+9+3 ("text" counts, being a string), 7+4+3.
	if want := []int32{3, 1, 17, 21, 4}; !slices.Equal(w.Input, want) {
		t.Errorf("lengths %v, want %v", w.Input, want)
	}
	if want := []int32{4, 4, 5, 3, 9}; !slices.Equal(w.Output, want) {
		t.Errorf("outputs %v, want %v", w.Output, want)
	}
	if w.Sessions() != 4 {
		t.Errorf("%d sessions", w.Sessions())
	}
	for i := range w.Requests() {
		if got, want := len(w.Hashes(i)), (int(w.Input[i])+7)/8; got != want {
			t.Errorf("request %d has %d ids, want %d", i, got, want)
		}
	}

	same, err := loadText(`{"text_input": "`+strings.Repeat("abcd", 20)+`1", "output_length": 1}
{"text_input": "`+strings.Repeat("abcd", 20)+`2", "output_length": 1}
{"input_length": 24, "output_length": 1, "hash_ids": [0, 1, 2]}`, func(s *TraceSpec) { s.BlockSize, s.CharactersPerToken = 8, 1.5 })
	if err != nil {
		t.Fatal(err)
	}
	// 81 characters are 54 tokens: 6 blocks of 12 characters each and 9 characters more; the last block differs.
	first, second := same.Hashes(0), same.Hashes(1)
	if len(first) != 7 || !slices.Equal(first[:6], second[:6]) || first[6] == second[6] || slices.Contains(first, 0) {
		t.Errorf("blocks %v and %v", first, second)
	}
}

// TestAIPerfTimes checks when turns start, as AIPerf's fixed schedule has it: at their timestamp, but not before the turn
// before them has ended.
func TestAIPerfTimes(t *testing.T) {
	w, err := loadText(`{"session_id": "s", "timestamp": 1000, "input_length": 9, "output_length": 1}
{"timestamp": 900, "input_length": 9, "output_length": 1}
{"session_id": "s", "timestamp": 1400, "input_length": 9, "output_length": 1}
{"session_id": "s", "delay": 20, "timestamp": 1500, "input_length": 9, "output_length": 1}
{"session_id": "s", "input_length": 9, "output_length": 1}
{"session_id": "late", "input_length": 9, "output_length": 1}
{"session_id": "late", "timestamp": 1200, "input_length": 9, "output_length": 1}
`, func(s *TraceSpec) { s.Format = FormatAIPerf })
	if err != nil {
		t.Fatal(err)
	}
	checkWarnings(t, w, []string{"1 sessions have no timestamp"})
	if want := []float64{100, 500, math.Inf(-1), math.Inf(-1), 0, 0, 300}; !slices.Equal(w.Graph.NotBeforeMs, want) {
		t.Errorf("floors %v, want %v", w.Graph.NotBeforeMs, want)
	}
	if want := []int32{0, 0, 0, 0, 1, 2, 2}; !slices.Equal(w.Graph.Play, want) {
		t.Errorf("plays %v, want %v", w.Graph.Play, want)
	}
	for request, want := range [][]Edge{nil, {{From: 0}}, {{From: 1, DelayMs: 20}}, {{From: 2}}, nil, nil, {{From: 5}}} {
		if !slices.Equal(w.Graph.Edges(int32(request)), want) {
			t.Errorf("request %d waits for %v, want %v", request, w.Graph.Edges(int32(request)), want)
		}
	}
}

// TestFlatFormatErrors checks what loaders refuse: where, which field, what to do.
func TestFlatFormatErrors(t *testing.T) {
	aiperf := func(rows ...string) string { return strings.Join(rows, "\n") }
	const row = `"output_length": 1`
	for _, test := range []struct{ name, text, want string }{
		{"no content", aiperf(`{"text_input": "a", `+row+`}`, `{`+row+`}`), `-:2: exactly one of 'input_length', 'text_input', 'messages', or 'payload' must be provided`},
		{"two contents", `{"text_input": "a", "input_length": 3, ` + row + `}`, "are mutually exclusive; use only one of them"},
		{"no messages", `{"messages": [], ` + row + `}`, "messages: must be a non-empty list"},
		{"no role", `{"messages": [{"role": "user"}, {"content": "x"}], ` + row + `}`, "each message must have a 'role' key, but the message at index 1 does not"},
		{"message of another type", `{"messages": ["x"], ` + row + `}`, `messages is "x": must be an object`},
		{"messages of another type", `{"messages": {}, ` + row + `}`, "messages is {}: must be a list"},
		{"no payload", `{"payload": {}, ` + row + `}`, "payload: must be a non-empty dict"},
		{"tools alone", `{"text_input": "a", "tools": [{}], ` + row + `}`, "tools: is only allowed when 'messages' is provided"},
		{"no tools", `{"messages": [{"role": "user"}], "tools": [], ` + row + `}`, "tools: must be a non-empty list"},
		{"tool of another type", `{"messages": [{"role": "user"}], "tools": [1], ` + row + `}`, "tools is 1: must be a list of objects"},
		{"hash ids of a text", `{"text_input": "a", "hash_ids": [1], ` + row + `}`, "hash_ids: is only allowed when 'input_length' is provided"},
		{"zero input", `{"input_length": 0, ` + row + `}`, "input_length is 0: must be positive"},
		{"over capacity", `{"text_input": "a", ` + row + "}\n" + `{"input_length": 513, "hash_ids": [1], ` + row + `}`, "-:2: input_length is 513: exceeds the 512 tokens that 1 hash_ids of 512 tokens cover"},
		{"mixed session", aiperf(`{"session_id": "s", "messages": [{"role": "user"}], `+row+`}`, `{"session_id": "s", "payload": {"a": 1}, `+row+`}`), `-:2: session "s" mixes 'messages' and 'payload' rows`},
		{"mixed synthesis", aiperf(`{"session_id": "s", "input_length": 1, `+row+`}`, `{"session_id": "s", "messages": [{"role": "user"}], `+row+`}`), `-:2: session "s" mixes raw 'messages' or 'payload' rows with synthesized prompts`},
		{"back in time", aiperf(`{"session_id": "s", "text_input": "", "timestamp": 5, `+row+`}`, `{"session_id": "s", "text_input": "", "timestamp": 4, `+row+`}`), `timestamp is 4: is before the previous turn of session "s" at 5 ms`},
		{"negative delay", `{"text_input": "", "delay": -1, ` + row + `}`, "delay is -1: must be from 0 to"},
		{"twice", `{"text_input": "", "text_input": "", ` + row + `}`, "text_input: is given twice"},

		{"time", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n", `-:2: TIMESTAMP is "yesterday": must be a date and time such as`},
		{"fraction", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1.5,1\n", `ContextTokens is "1.5": must be a whole number of tokens`},
		{"empty", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,,1\n", "ContextTokens: is missing"},
		{"short row", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03\n", "ContextTokens: is missing"},
		{"zero", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,0,1\n", "ContextTokens is 0: must be positive"},
		{"quote", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,1\n\"2023\"-11,1,1\n", `-:3: is not CSV: column`},
		{"only a header", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "did not contain any requests"},
		{"missing column", "TIMESTAMP,ContextTokens\n2023-11-16 18:17:03,1\n", "its format is not recognised: no format has the columns \"TIMESTAMP,ContextTokens\"; name it"},

		{"seconds", "Timestamp,Request tokens,Response tokens\nx,1,1\n", `-:2: Timestamp is "x": must be a number of seconds`},
		{"too many seconds", "Timestamp,Request tokens,Response tokens\n1e300,1,1\n", "Timestamp is 1e+300: is beyond"},
		{"no number", "Timestamp,Request tokens,Response tokens\nNaN,1,1\n", "Timestamp is NaN: is beyond"},
		{"unsorted session", "Timestamp,Request tokens,Response tokens,Session ID\n5,1,1,a\n4,1,1,a\n", `-:3: the turn at 4000 ms is before the previous one of session "a" at 5000 ms; sort the rows by time`},

		{"chat twice", `{"chat_id": 1, "input_length": 1, ` + row + "}\n" + `{"chat_id": "1", "input_length": 1, ` + row + `}`, `-:2: chat_id is "1": is the id of an earlier row too`},
		{"chat of another type", `{"chat_id": [1], "input_length": 1, ` + row + `}`, "chat_id is [1]: must be"},
		{"no output", `{"chat_id": 1, "input_length": 1}`, "output_length: is missing"},
		{"no input", `{"chat_id": 1, ` + row + `}`, "input_length is 0: must be positive"},
		{"child before parent in time", `{"chat_id": 1, "timestamp": 2, "input_length": 1, ` + row + "}\n" + `{"chat_id": 2, "parent_chat_id": 1, "timestamp": 1, "input_length": 1, ` + row + `}`, "-:2: the turn at 1000 ms is before the previous one"},

		{"no format", "hello\n", "its format is not recognised"},
		{"another object", `{"a": 1, "b": 2}`, "no format has the fields a, b; name it with format (--trace-format), one of: auto, mooncake, "},
		{"nothing", "\n \n", "trace file - did not contain any requests"},
	} {
		w, err := loadText(test.text)
		if err == nil || w != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s:\n got %v\nwant %s", test.name, err, test.want)
		}
	}
	if _, err := loadText(`{"text_input": ""}`, func(s *TraceSpec) { s.DefaultOutputLength = 0 }); err == nil || !strings.Contains(err.Error(), "output_length: is missing") {
		t.Errorf("no default output: %v", err)
	}
}

// TestOptionalColumns loads traces that lack or have columns which other tools refuse: guidellm#597, #777, #967, #992.
func TestOptionalColumns(t *testing.T) {
	for name, text := range map[string]string{
		"mooncake with an unknown column":   `{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1], "user": {"id": [1, {"x": null}]}}`,
		"mooncake without timestamps":       `{"input_length": 1, "output_length": 1, "hash_ids": [1]}`,
		"mooncake without input lengths":    `{"timestamp": 0, "output_length": 1, "hash_ids": [1]}`,
		"without hash ids":                  `{"timestamp": 0, "input_length": 1, "output_length": 1}`,
		"qwen without type and turn":        `{"chat_id": 1, "input_length": 1, "output_length": 1, "hash_ids": [5]}`,
		"burstgpt without model":            "Timestamp,Request tokens,Response tokens\n0,1,1\n",
		"burstgpt with elapsed time":        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n0,,,m,1,1,2,x\n",
		"azure with an unknown last column": "TIMESTAMP,ContextTokens,GeneratedTokens,Region\n2023-11-16 18:17:03,1,1\n",
	} {
		if w, err := loadText(text); err != nil || w.Requests() != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBlockSizes loads traces of 16-token blocks without being told: aiperf#1159, vllm#39795, inference-sim#1604.
func TestBlockSizes(t *testing.T) {
	text := `{"chat_id": 1, "output_length": 1, "hash_ids": [1, 2, 3]}`
	for size, want := range map[int]int32{0: 48, 64: 192} {
		if w, err := loadText(text, func(s *TraceSpec) { s.BlockSize = size }); err != nil || w.Input[0] != want {
			t.Errorf("blocks of %d tokens: %v", size, err)
		}
	}
}

// TestDetectionKeepsPipes checks that what was read of a pipe to tell its format reaches the loader, also of
// compressed and of long ones, and that several files have the format of the first.
func TestDetectionKeepsPipes(t *testing.T) {
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, `{"chat_id": %d, "timestamp": %d, "input_length": 16, "output_length": 1, "hash_ids": [%d]}`+"\n", i, i, i)
	}
	for name, text := range map[string]string{"plain": long.String(), "gzip": gzipped(t, long.String()), "zstd": zstdded(t, long.String())} {
		if w, err := loadText(text); err != nil || w.Requests() != 5000 || w.Format != FormatQwenBailian {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty, second := writeTrace(t, "empty.csv", "\n"), writeTrace(t, "second.csv", "Timestamp,Request tokens,Response tokens\n0,1,1\n")
	trace := DefaultTraceSpec()
	trace.Paths = []string{empty, second, second}
	if w, err := (Spec{Trace: &trace}).Load(context.Background(), Source{}); err != nil || w.Requests() != 2 || w.Format != FormatBurstGPT {
		t.Error(err)
	}
}

// TestDetectFormat tells formats by their beginning, which may end anywhere.
func TestDetectFormat(t *testing.T) {
	for _, test := range []struct{ head, want string }{
		{`{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47`, FormatMooncake},
		{`{"timestamp": 0, "output_length": 52, "delay": 1}` + "\n" + `{"hash_ids":[`, FormatMooncake},
		{"{\n  \"messages\": [\n", FormatAIPerf},
		{`{"text_input": "` + strings.Repeat("hash_ids ", 100), FormatAIPerf},
		{`{"input_length": 3, "output_length": 1}`, FormatAIPerf},
		{`{"turn": 1, "parent_chat_id"`, ""},
		{`{"turn": 1, "parent_chat_id": -`, FormatQwenBailian},
		{agenticHeaderLine, FormatAgenticMooncake},
		{`{"id":"a","hash_id_scope":"local","requests":[`, FormatWeka},
		{"\ufeffTIMESTAMP,ContextTokens,GeneratedTokens", FormatAzure},
		{"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,", FormatBurstGPT},
		{"a,b\n", ""}, {"[1]", ""}, {"\x00", ""}, {"{", ""}, {"", ""},
	} {
		if got, shown := detectFormat([]byte(test.head)); got != test.want || shown == "" {
			t.Errorf("%.60q: %q, %s", test.head, got, shown)
		}
	}
}

// TestPublicTables loads the Azure traces.
func TestPublicTables(t *testing.T) {
	shared := cmp.Or(os.Getenv("SHARED_DATA_DIR"), filepath.Join(moduleRoot(t), "..", "shared"))
	for name, want := range map[string]string{
		"AzureLLMInferenceTrace_code.csv": "8819 requests, 4808/10 first, 18059974 in, 245896 out, 3435.9 s",
		"AzureLLMInferenceTrace_conv.csv": "19366 requests, 374/44 first, 22361870 in, 4088665 out, 3501.7 s",
	} {
		path := filepath.Join(shared, "traces", "public", name)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("needs %s: set SHARED_DATA_DIR to the folder that holds traces", name)
		}
		trace := DefaultTraceSpec()
		trace.Path = path
		w, err := Spec{Trace: &trace}.Load(context.Background(), Source{})
		if err != nil {
			t.Fatal(err)
		}
		s := Stats(w)
		got := fmt.Sprintf("%d requests, %d/%d first, %.0f in, %.0f out, %.1f s", w.Requests(), w.Input[0], w.Output[0],
			s.InputTokens.Mean*float64(w.Requests()), s.OutputTokens.Mean*float64(w.Requests()), s.Arrivals.SpanMs/1000)
		if got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestFlatFormatsEnd checks that reading ends with the context and with what is no trace.
func TestFlatFormatsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("reads garbage without end")
	}
	for name, row := range map[string]string{
		FormatAzure: "x,1,1\n", FormatBurstGPT: "x,1,1\n", FormatQwenBailian: "{}\n", FormatAIPerf: "{}\n",
	} {
		head := map[string]string{
			FormatAzure: "TIMESTAMP,ContextTokens,GeneratedTokens\n", FormatBurstGPT: "Timestamp,Request tokens,Response tokens\n",
		}[name]
		trace := DefaultTraceSpec()
		trace.Path, trace.Format = "-", name
		stdin := io.MultiReader(strings.NewReader(head), &repeating{text: []byte(strings.Repeat(row, 1000))})
		_, err := Spec{Trace: &trace}.Load(context.Background(), Source{Stdin: stdin})
		var e *TraceError
		if !errors.As(err, &e) || len(e.Problems) != maxTraceProblems || e.More != maxBadLines {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := (Spec{Trace: &trace}).Load(ctx, Source{Stdin: &repeating{text: []byte("\n")}}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	trace := DefaultTraceSpec()
	trace.Path, trace.Format = "-", FormatAzure
	for name, text := range map[string]string{"a row": "TIMESTAMP,ContextTokens,GeneratedTokens\n", "a quoted field": "TIMESTAMP,ContextTokens,GeneratedTokens\n\"", "a header": ""} {
		stdin := io.MultiReader(strings.NewReader(text), &repeating{text: []byte("aaaaaaaa")})
		if _, err := (Spec{Trace: &trace}).Load(context.Background(), Source{Stdin: stdin}); err == nil || !strings.Contains(err.Error(), "is this a trace?") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// repeating repeats a text for ever.
type repeating struct{ text []byte }

func (e *repeating) Read(p []byte) (int, error) {
	if len(p) < len(e.text) {
		n := copy(p, e.text)
		e.text = append(e.text[n:len(e.text):len(e.text)], e.text[:n]...)
		return n, nil
	}
	n := 0
	for len(p)-n >= len(e.text) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

func FuzzFlatFormats(f *testing.F) {
	for _, text := range []string{
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n", "Timestamp,Session ID,Request tokens,Response tokens\n5,a,1,1\n6,a,2,0\n",
		`{"chat_id": 1, "timestamp": 2.5, "input_length": 20, "output_length": 1, "hash_ids": [1, 2]}` + "\n" + `{"chat_id": "2", "parent_chat_id": 1, "output_length": 1, "hash_ids": [3]}`,
		`{"text_input": "a\u00e9\ud83d", "output_length": 1}` + "\n" + `{"messages": [{"role": "x", "content": [{"a": [1, null, "b"]}]}], "tools": [{"b": 1}], "session_id": 4}`,
		`{"payload": {"max_tokens": 3, "input": ["a", 2], "messages": [{"role": null}]}}`, `{"input_length": 3, "delay": 1e3, "timestamp": -1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []string{FormatAuto, FormatAzure, FormatBurstGPT, FormatQwenBailian, FormatAIPerf} {
			trace := DefaultTraceSpec()
			trace.Path, trace.Format = "-", format
			w, err := Spec{Trace: &trace}.Load(context.Background(), Source{Stdin: bytes.NewReader(data)})
			if err == nil {
				checkFlat(t, w)
			} else if w != nil || err.Error() == "" {
				t.Errorf("%s: a workload comes with the error %q", format, err)
			}
			checkReadings(t, format, data, func(w *Workload) { checkFlat(t, w) })
		}
	})
}

// checkFlat is checkWorkload for formats whose requests need not have hash ids.
func checkFlat(t *testing.T, w *Workload) {
	t.Helper()
	for i := range w.Requests() {
		in, out := int(w.Input[i]), int(w.Output[i])
		if ids := len(w.Hashes(i)); in < 1 || in > MaxTokens || out < 0 || out > MaxTokens || ids != 0 && ids != (in+w.BlockSize-1)/w.BlockSize {
			t.Errorf("request %d has %d input and %d output tokens and %d ids", i, in, out, ids)
		}
		if !(w.DelayMs[i] >= 0) || w.DelayMs[i] > 2*maxTimeMs || w.ArrivalMs[i] > maxTimeMs || w.ArrivalMs[i] < -maxTimeMs {
			t.Errorf("request %d arrives at %v ms or waits for %v", i, w.ArrivalMs[i], w.DelayMs[i])
		}
	}
	if w.Sessions() < 1 || int(w.SessionStart[w.Sessions()]) != w.Requests() || len(w.Digest()) != 64 {
		t.Errorf("%d sessions of %d requests, digest %q", w.Sessions(), w.Requests(), w.Digest())
	}
	if _, err := w.Blocks(16, true); err != nil && !strings.Contains(err.Error(), "use a larger block size") {
		t.Error(err)
	}
}

// BenchmarkFlatFormats reads 10,000 rows of each format.
func BenchmarkFlatFormats(b *testing.B) {
	for name, row := range map[string]func(i int) string{
		FormatAzure: func(i int) string {
			return fmt.Sprintf("2023-11-16 %02d:%02d:%02d.9799600,4808,10\n", i/3600%24, i/60%60, i%60)
		},
		FormatBurstGPT: func(i int) string {
			return fmt.Sprintf("%d.5,ChatGPT,472,18,490,Conversation log\n", i)
		},
		FormatQwenBailian: func(i int) string {
			return fmt.Sprintf(`{"chat_id":%d,"parent_chat_id":%d,"timestamp":%d.114,"input_length":160,"output_length":132,"type":"text","turn":1,"hash_ids":[0,1,2,3,4,5,6,7,8,%d]}`+"\n", i, i/2-1, i, i+9)
		},
		FormatAIPerf: func(i int) string {
			return fmt.Sprintf(`{"timestamp":%d,"text_input":"Explain KV caches, and then number %d.","output_length":4}`+"\n", i, i)
		},
	} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			text.WriteString(map[string]string{FormatAzure: "TIMESTAMP,ContextTokens,GeneratedTokens\n", FormatBurstGPT: "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"}[name])
			for i := range 10_000 {
				text.WriteString(row(i))
			}
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if w, err := loadText(text.String()); err != nil || w.Requests() != 10_000 {
					b.Fatal(err)
				}
			}
		})
	}
}
