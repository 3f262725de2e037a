package workload

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// damageable is a sound trace of a format whose rows do not need each other.
type damageable struct {
	header string
	row    func(i int) string
	// requests is how many a row makes.
	requests int
	bad      string // a row that is none, and what is said of it
	says     string
}

func damageables() map[string]damageable {
	mooncake := damageable{
		row: func(i int) string {
			return fmt.Sprintf(`{"timestamp":%d,"input_length":600,"output_length":2,"hash_ids":[1,%d]}`, i*10, i+2)
		},
		requests: 1, bad: `{"timestamp":5,"input_length":0,"output_length":2,"hash_ids":[1]}`, says: "input_length is 0: must be positive",
	}
	return map[string]damageable{
		FormatMooncake: mooncake, FormatMooncakeDelta: mooncake,
		FormatAgenticMooncake: {
			header: agenticHeaderLine,
			row: func(i int) string {
				return agenticRow2(fmt.Sprint("r", i), fmt.Sprint("p", i), fmt.Sprintf(`,"not_before_ms":%d`, i*10))
			},
			requests: 1, bad: agenticRow2("r0", "p0", `,"not_before_ms":0`), says: `request_id is "r0": line 2 has it too`,
		},
		FormatAppliedCompute: {
			row: func(i int) string {
				return fmt.Sprintf(`{"num_turns":1,"input_prompt_length":%d,"assistant_response_length":[3],"tool_call_output_length":[4],"tool_call_latency":[0.5],"final_assistant_response_length":6}`, 600+i)
			},
			requests: 2, bad: `{"num_turns":2,"input_prompt_length":`, says: "is not a JSON object: column 38 has the end of the line",
		},
		FormatAIPerf: {
			row:      func(i int) string { return fmt.Sprintf(`{"text_input":"a text %d","output_length":2}`, i) },
			requests: 1, bad: `{"text_input":"a","messages":[{"role":"user"}]}`, says: "mutually exclusive",
		},
		FormatAzure: {
			header:   "TIMESTAMP,ContextTokens,GeneratedTokens",
			row:      func(i int) string { return fmt.Sprintf("2023-11-16 18:17:%02d.9799600,4808,10", i) },
			requests: 1, bad: "2023-11-16 18:17:03.9799600,x,10", says: `ContextTokens is "x": must be a whole number`,
		},
		FormatBurstGPT: {
			header:   "Timestamp,Session ID,Request tokens,Response tokens",
			row:      func(i int) string { return fmt.Sprintf("%d,,12,7", i) },
			requests: 1, bad: "5,,12", says: "Response tokens: is missing",
		},
		FormatQwenBailian: {
			row: func(i int) string {
				return fmt.Sprintf(`{"chat_id":%d,"timestamp":%d,"input_length":20,"output_length":1,"hash_ids":[1,%d]}`, i, i, i+2)
			},
			requests: 1, bad: `{"chat_id":0,"timestamp":9,"input_length":20,"output_length":1,"hash_ids":[1,2]}`, says: `chat_id is "0": is the id of an earlier row too`,
		},
		FormatDynamo: {
			row: func(i int) string {
				return strings.TrimSpace(dynamoRow(fmt.Sprint("r", i), fmt.Sprint("s", i), "", 10*i, 10*i+5))
			},
			requests: 1, bad: `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1}`, says: "request: is missing",
		},
		FormatWeka: {
			row: func(i int) string {
				return strings.TrimSpace(wekaText(fmt.Sprint("c", i), "local", wekaRow(0, 1, 1, 2)))
			},
			requests: 1, bad: `{"id":"b","block_size":32,"hash_id_scope":"local","requests":[` + wekaRow(0, 1, 1) + `]}`, says: "block_size is 32: differs from the 64 of -:1",
		},
	}
}

// rows is the text of some rows.
func (d damageable) rows(n int) []string {
	var rows []string
	if d.header != "" {
		rows = append(rows, d.header)
	}
	for i := range n {
		rows = append(rows, d.row(i))
	}
	return rows
}

// Whatever the format, damage is told with its place, and salvaging keeps what is whole, just as it was, and says so.
func TestSalvage(t *testing.T) {
	traces := damageables()
	for _, format := range Formats() {
		if format == FormatAuto {
			continue
		}
		d, ok := traces[format]
		if !ok {
			t.Errorf("format %s has no test", format)
			continue
		}
		load := func(text string, salvage bool) (*Workload, error) {
			return loadText(text, func(s *TraceSpec) { s.Format, s.Salvage = format, salvage })
		}
		t.Run(format, func(t *testing.T) {
			whole, err := load(rowsText(d.rows(6)...), false)
			if err != nil || whole.LeftOut != 0 {
				t.Fatal(err)
			}
			kept := func(text string, want *Workload, damages int, says ...string) {
				t.Helper()
				_, err := load(text, false)
				for _, part := range says {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("is refused with %q, want %q", err, part)
					}
				}
				w, err := load(text, true)
				if err != nil {
					t.Fatal(err)
				}
				warnings := strings.Join(w.Warnings, "\n")
				if w.Digest() != want.Digest() || w.LeftOut != damages || strings.Contains(warnings, "left out") != (damages > 0) {
					t.Errorf("%d requests, %d left out, %s; want %d and %d", w.Requests(), w.LeftOut, warnings, want.Requests(), damages)
				}
				check := checkText(t, format, text, false)
				if check.Requests != want.Requests() || check.Sound() == (len(says) > 0) || len(says) > 0 && !strings.Contains(strings.Join(check.Problems, "\n"), says[0]) {
					t.Errorf("the check has %d requests and finds %q", check.Requests, check.Problems)
				}
				if check = checkText(t, format, text, true); !check.Sound() || check.LeftOut != damages || check.Requests != want.Requests() {
					t.Errorf("what is whole has %d requests, %d left out, problems %q", check.Requests, check.LeftOut, check.Problems)
				}
			}
			kept(rowsText(d.rows(6)...), whole, 0)

			at := len(d.rows(3)) // bad rows come there, after three good ones
			bad := func(n int) string {
				return rowsText(slices.Insert(d.rows(6), at, slices.Repeat([]string{d.bad}, n)...)...)
			}
			kept(bad(1), whole, 1, fmt.Sprintf("-:%d: ", at+1), d.says)
			kept(bad(30), whole, 30, fmt.Sprintf("-:%d: ", at+20), "and 10 more bad lines")

			three, err := load(rowsText(d.rows(3)...), false)
			if err != nil {
				t.Fatal(err)
			}
			first := gzipped(t, rowsText(d.rows(3)...))
			for _, cut := range []string{first + gzipped(t, rowsText(d.rows(6)[at:]...))[:12], first + "garbage!"} {
				good := 3
				if d.header != "" && strings.HasPrefix(d.header, "{") {
					good++ // the header is a good line
				}
				kept(cut, three, 1, fmt.Sprintf("-:%d: cannot be read past line %d: ", at+1, at), fmt.Sprintf("(good records before it: %d; --salvage keeps them)", good))
			}

			for _, nothing := range []string{rowsText(d.rows(0)...), rowsText(append(d.rows(0), `{"x`)...)} {
				if _, err := load(nothing, true); err == nil || !strings.Contains(err.Error(), "did not contain any") && !strings.Contains(err.Error(), "has no request_end") {
					t.Errorf("a trace without a whole record: %v", err)
				}
			}
		})
	}
}

func checkText(t *testing.T, format, text string, salvage bool) *TraceCheck {
	t.Helper()
	s := DefaultTraceSpec()
	s.Path, s.Format, s.Salvage = "-", format, salvage
	check, err := s.Check(context.Background(), Source{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return check
}

// What waited for a lost row of an agent goes on with what is left.
func TestSalvageDependencies(t *testing.T) {
	nb := func(more string) string { return `,"not_before_ms":0` + more }
	dep := func(from string, delay float64, relation string) string {
		return `,"dependencies":[` + agenticDep(from, "completion", delay, relation) + `]`
	}
	asAgentic := func(s *TraceSpec) { s.Format, s.Salvage = FormatAgenticMooncake, true }
	service := func(output int) float64 { return float64(output) } // 4 ms each
	for _, test := range []struct {
		name, text string
		want       map[string]float64
		warning    string
		refused    string
	}{
		{"a turn follows the one before the lost one",
			rowsText(agenticHeaderLine, agenticRow2("a", "p", nb("")), agenticRow2("b", "p", nb(dep("a", 10, "sequence")))+"}", agenticRow2("c", "p", nb(dep("b", 20, "sequence")))),
			map[string]float64{"a": 0, "c": 24}, `left out: -:4: dependencies.request_id is "b": no request of the trace has this id`, ""},
		{"a subagent that is lost is not waited for",
			rowsText(agenticHeaderLine, agenticRow2("a", "p", nb("")), agenticRow2("c", "p", nb(`,"dependencies":[`+agenticDep("a", "completion", 5, "sequence")+","+agenticDep("kid", "completion", 1, "join")+`]`))),
			map[string]float64{"a": 0, "c": 9}, `-:3: dependencies.request_id is "kid"`, ""},
		{"a play that is lost leaves a gap in the numbers",
			rowsText(agenticHeaderLine, agenticRow2("a", "p", nb(`,"source_play_ordinal":0`)), agenticRow2("b", "q", nb(`,"source_play_ordinal":1`))+"]", agenticRow2("c", "r", nb(`,"source_play_ordinal":2`))),
			map[string]float64{"a": 0, "c": 0}, "left out: -:3: is not a JSON object", ""},
		{"version 1: the timestamp counts when nothing is left to wait for",
			rowsText(`{"request_id":"a","timestamp":0,"output_length":4,"hash_ids":[1]}`, `{"request_id":"c","timestamp":700,"output_length":4,"hash_ids":[1],"wait_for":["b"]}`),
			map[string]float64{"a": 0, "c": 700}, `-:2: wait_for is "b"`, ""},
		{"without its header nobody knows what rows mean", rowsText(strings.Replace(agenticHeaderLine, ":64", ":0", 1), agenticRow2("a", "p", nb(""))),
			nil, "", "-:1: block_size is 0"},
		{"a cycle", rowsText(agenticHeaderLine, agenticRow2("a", "p", nb(dep("c", 0, "join"))), agenticRow2("b", "p", nb("")), agenticRow2("c", "p", nb(dep("a", 0, "sequence")))),
			nil, "", `-:2: request_id is "a": cycle detected among 2 requests, which wait for each other: a, c: a (-:2) waits for c (-:4), which waits for a (-:2)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := loadText(test.text, asAgentic)
			if err != nil || test.refused != "" {
				if test.refused == "" || err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("is refused with %q, want %q", err, test.refused)
				}
				return
			}
			got := releases(w, service)
			for id, ms := range test.want {
				if at, ok := got[id]; !ok || at != ms || len(got) != len(test.want) {
					t.Errorf("released are %v, want %v", got, test.want)
				}
			}
			if text := strings.Join(w.Warnings, "\n"); w.LeftOut == 0 || !strings.Contains(text, test.warning) {
				t.Errorf("%d left out, warnings %s, want %s", w.LeftOut, text, test.warning)
			}
		})
	}
}

// Of a WEKA conversation that is cut off the requests before the cut are kept, and bad ones between are left out.
func TestSalvageWeka(t *testing.T) {
	good := []string{wekaRow(0, 1, 1), wekaRow(2, 1, 1, 2), wekaSub(3, "k", 1000, wekaRow(0, 1, 7)), wekaRow(9, 1, 1, 2, 3)}
	bad := `{"t":5,"type":"s","model":"m","in":0,"out":1}`
	badSub := wekaSub(3, "bad", 1000, wekaRow(0, 1, 7), bad)
	text := func(id string, rows ...string) string { return wekaText(id, "local", rows...) }
	load := func(salvage bool, text string) (*Workload, error) {
		return loadText(text, func(s *TraceSpec) { s.Format, s.Salvage = FormatWeka, salvage })
	}
	tail := text("z", good[0])
	cut := strings.TrimSuffix(text("a", good...), "]}\n")
	for _, test := range []struct {
		name, damaged, whole string
		says                 []string
	}{
		{"cut off", cut, text("a", good...), []string{"-:1: cannot be read past line 0: is not a JSON object: the file ends within it (good records before it: 4;"}},
		{"cut off in a request", cut[:len(cut)-9], text("a", good[:3]...), []string{"the file ends within it (good records before it: 3;"}},
		{"a bad request", text("a", good[0], good[1], bad, good[2], good[3]), text("a", good...), []string{"-:1: requests[2]: in is 0: must be from 1"}},
		{"a bad request of a subagent", text("a", good[0], good[1], badSub, good[2], good[3]), text("a", good...), []string{"-:1: requests[2]: requests[1]: in is 0"}},
		{"a text that does not end, and another conversation", text("a", good[:2]...)[:strings.LastIndex(text("a", good[:2]...), "_time")] + "\n" + tail, text("a", good[0]) + tail, []string{"-:1: "}},
		{"several bad conversations", `{"id":"b",]}` + "\n" + tail + `{"id":5}` + "\n" + text("y", good[0]), tail + text("y", good[0]), []string{"-:1: is not a JSON object", "-:3: id is 5: must be a string"}},
		{"a subagent that is waited for and has no requests", text("a", good[0], wekaSub(1, "k", 5), good[1]), "", []string{`-:1: trace "a" waits for subagent "k", which has no requests`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(false, test.damaged)
			for _, part := range test.says {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("is refused with %v, want %q", err, part)
				}
			}
			w, err := load(true, test.damaged)
			if err != nil || w.LeftOut == 0 {
				t.Fatalf("salvaged: %v", err)
			}
			if test.whole == "" {
				return
			}
			want, err := load(false, test.whole)
			if err != nil {
				t.Fatal(err)
			}
			gotAt, wantAt := releases(w, func(int) float64 { return 1 }), releases(want, func(int) float64 { return 1 })
			if w.Requests() != want.Requests() || w.Sessions() != want.Sessions() || len(gotAt) != len(wantAt) {
				t.Fatalf("%d requests in %d sessions, want %d in %d: %s", w.Requests(), w.Sessions(), want.Requests(), want.Sessions(), strings.Join(w.Warnings, "\n"))
			}
			got, expected := slices.Sorted(maps.Values(gotAt)), slices.Sorted(maps.Values(wantAt))
			if !slices.Equal(got, expected) {
				t.Errorf("released at %v, want %v", got, expected)
			}
		})
	}
}

// Files of any format that are numbered tell of gaps, and strict readers refuse what looks incomplete.
func TestDoubts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"part.000000.jsonl": `{"timestamp":0,"output_length":1,"hash_ids":[1],"request_id":"a"}`,
		"part.000002.jsonl": `{"timestamp":5,"output_length":1,"hash_ids":[2],"request_id":"b"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		spec  TraceSpec
		text  string
		doubt string
	}{
		{"a gap in the numbers", TraceSpec{Paths: []string{filepath.Join(dir, "part.000000.jsonl"), filepath.Join(dir, "part.000002.jsonl")}}, "", "part.000001 is missing"},
		{"ids that two rows have", TraceSpec{}, rowsText(`{"timestamp":0,"output_length":1,"hash_ids":[1],"request_id":"a"}`, `{"timestamp":0,"output_length":1,"hash_ids":[1],"request_id":"a"}`),
			`-:2: request_id is "a": an earlier row has it too`},
		{"a chat that is not there", TraceSpec{}, `{"chat_id":1,"parent_chat_id":7,"timestamp":0,"input_length":20,"output_length":1,"hash_ids":[1,2]}`, "1 requests go on with a chat that no earlier row has"},
		{"a branch that is not there", TraceSpec{}, rowsText(`{"request_id":"a","timestamp":0,"output_length":1,"hash_ids":[1],"branches":["b"]}`), `-:1: branches names request "b"`},
	} {
		for _, strict := range []bool{false, true} {
			s := test.spec
			s.Format, s.Strict = FormatAuto, strict
			if len(s.Paths) == 0 {
				s.Path = "-"
			}
			set, err := rules.For(rules.Default)
			if err != nil {
				t.Fatal(err)
			}
			w, err := Spec{Trace: &s}.Load(context.Background(), Source{Rules: set, Stdin: strings.NewReader(test.text)})
			switch {
			case strict && (err == nil || !strings.Contains(err.Error(), test.doubt)):
				t.Errorf("%s: strict reading says %v, want %q", test.name, err, test.doubt)
			case !strict && (err != nil || !strings.Contains(strings.Join(w.Warnings, "\n"), test.doubt)):
				t.Errorf("%s: %v, want the warning %q", test.name, err, test.doubt)
			}
		}
	}
}

// What a workload is without is told of whatever is made of it.
func TestLeftOutStays(t *testing.T) {
	w, err := loadText(wekaText("a", "local", wekaRow(0, 1, 1), wekaRow(9, 1, 1, 2))+`{"id":5}`+"\n"+wekaText("b", "local", wekaRow(0, 1, 1)), func(s *TraceSpec) { s.Format, s.Salvage = FormatWeka, true })
	if err != nil {
		t.Fatal(err)
	}
	started, err := w.StartingAt(make([]float64, w.Requests()))
	if err != nil {
		t.Fatal(err)
	}
	scenario, err := AgentX(t.Context(), w, AgentXPlan{Users: 1, Salt: SaltPlay, GapCapMs: math.Inf(1), Plays: 2})
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]*Workload{"the trace": w, "its beginning": w.First(.5), "at given times": started, "its scenario": scenario.Workload} {
		if of.LeftOut != 1 {
			t.Errorf("%s: %d are left out, want 1", name, of.LeftOut)
		}
	}
}
