package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/rules"
)

// dynamoSpec reads captures of testdata/dynamo.
func dynamoSpec(files ...string) TraceSpec {
	s := DefaultTraceSpec()
	s.Format = FormatDynamo
	for _, file := range files {
		s.Paths = append(s.Paths, filepath.Join("testdata/dynamo", file))
	}
	return s
}

func loadTrace(t *testing.T, s TraceSpec, compat rules.Compat) (*Workload, error) {
	t.Helper()
	set, err := rules.For(compat)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Trace: &s}.Load(context.Background(), Source{Rules: set})
}

// releases computes by hand when each request of a graph is released if all of them take serviceMs of their output
// length: an independent reading of what the driver does.
func releases(w *Workload, serviceMs func(output int) float64) map[string]float64 {
	g, n := w.Graph, w.Requests()
	at := make([]float64, n)
	known := make([]bool, n)
	var release func(r int32) float64
	release = func(r int32) float64 {
		if known[r] {
			return at[r]
		}
		known[r] = true
		ready := g.NotBeforeMs[r]
		for _, e := range g.Edges(r) {
			trigger := release(e.From)
			if e.Trigger == OnCompletion {
				trigger += serviceMs(int(w.Output[e.From]))
			}
			ready = max(ready, trigger+e.DelayMs)
		}
		at[r] = ready + w.DelayMs[r]
		return at[r]
	}
	times := map[string]float64{}
	for r := range n {
		times[w.ID(r)] = release(int32(r))
	}
	return times
}

// The worked examples of spec/workloads.md §2.3, with no service time for the reference's rules and one ms a token for
// the default ones, and what the peer's probes show (fixtures/probes).
func TestDynamoWorkedExamples(t *testing.T) {
	perToken := func(output int) float64 { return float64(output) }
	instant := func(int) float64 { return 0 }
	for _, test := range []struct {
		name    string
		files   []string
		compat  rules.Compat
		change  func(*TraceSpec)
		service func(int) float64
		want    string
	}{
		{"sessions and tools", []string{"agentic.all.jsonl"}, rules.Dynamo13, nil, instant, "p1 0, c1 60, c2 120, p2 230, p3 430"},
		{"shards", []string{"agentic.000000.jsonl.gz", "agentic.000001.jsonl.gz"}, rules.Dynamo13, nil, instant, "p1 0, c1 60, c2 120, p2 230, p3 430"},
		{"depth", []string{"deep.jsonl"}, rules.Dynamo13, nil, instant, "p1 0, c1 60, g1 100, q1 100, c2 150, p2 290"},
		{"in the background", []string{"claude_bg.jsonl"}, rules.Dynamo13, nil, instant, "p1 0, c1 100, p2 200, p3 350"},
		{"default: sessions and tools", []string{"agentic.all.jsonl"}, rules.Default, nil, perToken, "p1 0, c1 260, c2 332, p2 470, p3 686"},
		{"default: depth", []string{"deep.jsonl"}, rules.Default, nil, perToken, "p1 0, q1 100, c1 260, g1 700, c2 754, p2 900"},
		{"default: no metadata", []string{"d_none.jsonl"}, rules.Default, nil, perToken, "p1 0, c1 200, p2 204, p3 658"},
		{"default: no metadata, long subagent", []string{"d2_none.jsonl"}, rules.Default, nil, perToken, "p1 0, c1 200, p2 204, p3 4350, p4 5404"},
		{"default: blocking without consumer", []string{"d2_block.jsonl"}, rules.Default, nil, perToken, "p1 0, c1 200, p2 204, p3 658, p4 1712"},
		{"default: in the background without consumer", []string{"d2_bg.jsonl"}, rules.Default, nil, perToken, "p1 0, c1 200, p2 204, p3 658, p4 1712"},
		{"default: consumer", []string{"d2_block_cons.jsonl"}, rules.Default, nil, perToken, "p1 0, c1 200, p2 204, p3 658, p4 5500"},
		{"default: consumer before the subagent's end", []string{"d_block_cons.jsonl"}, rules.Default, nil, perToken, "p1 0, c1 200, p2 204, p3 658"},
		{"consumer before the subagent's end", []string{"d_block_cons.jsonl"}, rules.Dynamo13, nil, instant, "p1 0, c1 100, p2 100, p3 550"},
		{"spawn after completion", []string{"agentic.all.jsonl"}, rules.Default, func(s *TraceSpec) { s.SpawnTrigger = SpawnCompletion }, perToken, "p1 0, c1 80, c2 152, p2 470, p3 686"},
		{"spawn as recorded", []string{"agentic.all.jsonl"}, rules.Default, func(s *TraceSpec) { s.SpawnTrigger = SpawnRecorded }, perToken, "p1 0, c1 80, c2 152, p2 470, p3 686"},
		{"spawn at dispatch", []string{"deep.jsonl"}, rules.Dynamo13, func(s *TraceSpec) { s.SpawnTrigger = SpawnDispatch }, instant, "p1 0, q1 100, c1 260, g1 700, c2 750, p2 890"},
		{"no delay after subagents", []string{"d2_none.jsonl"}, rules.Default, func(s *TraceSpec) { s.JoinDelay = JoinNone }, perToken, "p1 0, c1 200, p2 204, p3 4200, p4 5254"},
		{"floors", []string{"agentic.all.jsonl"}, rules.Default, func(s *TraceSpec) { s.Pacing = PacingWithFloor }, perToken, "p1 0, c1 260, c2 420, p2 650, p3 1000"},
		{"lines that are no records", []string{"d_arr.jsonl"}, rules.Default, nil, perToken, "a 0"},
		{"plays", []string{"d_lanes.jsonl"}, rules.Default, nil, perToken, "z 0, z2 52, a 120"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := dynamoSpec(test.files...)
			if test.change != nil {
				test.change(&spec)
			}
			w, err := loadTrace(t, spec, test.compat)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]float64{}
			for _, item := range strings.Split(test.want, ", ") {
				var id string
				var ms float64
				if _, err := fmt.Sscan(item, &id, &ms); err != nil {
					t.Fatal(err)
				}
				want[id] = ms
			}
			got := releases(w, test.service)
			for id, ms := range want {
				if got[id] != ms {
					t.Errorf("%s is released at %v ms, want %v", id, got[id], ms)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d requests, want %d", len(got), len(want))
			}
		})
	}
}

// Column "ours" of spec/workloads.md §1.8 and §2.5. A text is what the error, or else a warning, says.
func TestDynamoFixtures(t *testing.T) {
	strict := func(s *TraceSpec) { s.Strict = true }
	salvage := func(s *TraceSpec) { s.Salvage = true }
	block128 := func(s *TraceSpec) { s.BlockSize = 128 }
	block64 := func(s *TraceSpec) { s.BlockSize = 64 }
	for _, test := range []struct {
		files    string
		change   func(*TraceSpec)
		compat   rules.Compat
		requests int // 0: refused
		text     string
	}{
		{"agentic.all.jsonl", strict, "", 5, ""},
		{"agentic.000000.jsonl.gz agentic.000001.jsonl.gz", strict, "", 5, ""},
		{"agentic.000000.jsonl.gz", nil, "", 3, "agentic.000001 is not given, but belongs to the same capture"},
		{"agentic.000000.jsonl.gz", strict, "", 0, "agentic.000001 is not given, but belongs to the same capture"},
		{"agentic.000001.jsonl.gz", nil, "", 2, "agentic.000000 is not given"},
		{"agentic.000000.jsonl.gz agentic.000000.jsonl.gz", nil, "", 0, `000000.jsonl.gz:1: request.request_id is "p1": is the one of testdata/dynamo/agentic.000000.jsonl.gz:1 too`},
		{"std.000000.jsonl", nil, "", 3, ""},
		{"std.000000.jsonl", block64, "", 3, ""},
		{"std.000000.jsonl", block128, "", 0, "trace_block_size is 64: does not match the block size 128 that was asked for"},
		{"completion.jsonl", nil, "", 2, ""},
		{"with_payload_and_toolstart.jsonl", nil, "", 0, "toolstart.jsonl:4: event: must be an object"},
		{"with_payload_and_toolstart.jsonl", salvage, "", 1, `tool call "t0" of session "run" begins here and never ends`},
		{"with_payload_and_toolstart.jsonl", nil, rules.Dynamo13, 0, `toolstart.jsonl:1: event_type is "request_payload": is not supported`},
		{"d_arr.jsonl", nil, "", 1, "d_arr.jsonl:1: this line holds no record and is passed over"},

		{"dy_bs0.jsonl", nil, "", 0, "dy_bs0.jsonl:1: request.replay.trace_block_size is 0: must be from 1"},
		{"dy_cutline.jsonl", nil, "", 0, "dy_cutline.jsonl:2: is not a JSON object: column 151 has the end of the line"},
		{"dy_cutline.jsonl", salvage, "", 1, "left out: testdata/dynamo/dy_cutline.jsonl:2: is not a JSON object"},
		{"dy_dup.jsonl", nil, "", 0, `dy_dup.jsonl:2: request.request_id is "a": is the one of testdata/dynamo/dy_dup.jsonl:1 too`},
		{"dy_empty.jsonl", nil, "", 0, "has no request_end records with replay fields"},
		{"dy_emptysess.jsonl", nil, "", 0, "dy_emptysess.jsonl:1: agent_context.session_id: must not be empty"},
		{"dy_emptysess.jsonl", nil, rules.Dynamo13, 2, ""},
		{"dy_evt.jsonl", nil, "", 0, `dy_evt.jsonl:1: event_type is "request_start": is not supported`},
		{"dy_garbage_tail.jsonl.gz", nil, "", 0, "dy_garbage_tail.jsonl.gz:2: cannot be read past line 1: the compressed stream is cut off; get the whole file (good records before it: 1; --salvage keeps them)"},
		{"dy_garbage_tail.jsonl.gz", salvage, "", 1, "good records before it: 1; they are kept"},
		{"dy_gz_named_plain.jsonl", nil, "", 2, ""},
		{"dy_hashcount.jsonl", nil, "", 0, "dy_hashcount.jsonl:1: request.replay.input_length is 65: needs 2 input_sequence_hashes of 64 tokens each, there are 1"},
		{"dy_in0.jsonl", nil, "", 0, "dy_in0.jsonl:1: request.replay.input_length is 0: must be from 1"},
		{"dy_mixblk.jsonl", nil, "", 0, "dy_mixblk.jsonl:2: request.replay.trace_block_size is 32: differs from the 64 of testdata/dynamo/dy_mixblk.jsonl:1"},
		{"std.000000.jsonl dy_mixblk.jsonl", nil, "", 0, "dy_mixblk.jsonl:2: request.replay.trace_block_size is 32: differs from the 64 of testdata/dynamo/std.000000.jsonl:1"},
		{"dy_mixctx.jsonl", nil, "", 0, "dy_mixctx.jsonl:2: agent_context: is missing, but testdata/dynamo/dy_mixctx.jsonl:1 has one"},
		{"dy_noout.jsonl", nil, "", 0, "dy_noout.jsonl:1: request.output_tokens: is missing"},
		{"dy_norecv.jsonl", nil, "", 0, "dy_norecv.jsonl:1: request.request_received_ms: is missing"},
		{"dy_noreplay.jsonl", nil, "", 0, "dy_noreplay.jsonl:1: request.replay: is missing"},
		{"dy_noreq.jsonl", nil, "", 0, "dy_noreq.jsonl:1: request: is missing"},
		{"dy_onlytools.jsonl", nil, "", 0, "has no request_end records with replay fields"},
		{"dy_out0.jsonl", nil, "", 2, ""},
		{"dy_parentconf.jsonl", nil, "", 0, `dy_parentconf.jsonl:2: agent_context.parent_session_id is "y": conflicts with testdata/dynamo/dy_parentconf.jsonl:1, where the parent of session "c" is "x"`},
		{"dy_parentmissing.jsonl", nil, "", 2, `dy_parentmissing.jsonl:1: parent_session_id is "ghost": no request of that session was captured`},
		{"dy_parentmissing.jsonl", strict, "", 0, `parent_session_id is "ghost": no request of that session was captured`},
		{"dy_parentmissing.jsonl", nil, rules.Dynamo13, 2, `parent_session_id is "ghost"`},
		{"dy_parentself.jsonl", nil, "", 0, `dy_parentself.jsonl:1: agent_context.parent_session_id is "c": is the session itself`},
		{"dy_plain_named_gz.jsonl.gz", nil, "", 1, ""},
		{"dy_schema.jsonl", nil, "", 0, `dy_schema.jsonl:1: schema is "dynamo.request.trace.v2": is not supported`},
		{"dy_schema_agentv1.jsonl", nil, "", 0, `dy_schema_agentv1.jsonl:1: schema is "dynamo.agent.trace.v1": is not supported`},
		{"dy_trunc.jsonl.gz", nil, "", 0, "dy_trunc.jsonl.gz:3: cannot be read past line 2: the compressed stream is cut off; get the whole file (good records before it: 2; --salvage keeps them)"},
		{"dy_trunc.jsonl.gz", salvage, "", 1, "good records before it: 2; they are kept"},
		{"dy_trunc_member.jsonl.gz", nil, "", 0, "dy_trunc_member.jsonl.gz:3: cannot be read past line 2: the compressed stream is cut off; get the whole file (good records before it: 2; --salvage keeps them)"},
		{"dy_trunc_member.jsonl.gz", salvage, "", 2, "good records before it: 2; they are kept"},
	} {
		name := fmt.Sprintf("%s %s %v", test.files, test.compat, test.change != nil)
		spec := dynamoSpec(strings.Fields(test.files)...)
		if test.change != nil {
			test.change(&spec)
		}
		w, err := loadTrace(t, spec, test.compat)
		switch {
		case test.requests == 0 && err == nil:
			t.Errorf("%s: is not refused", name)
		case test.requests == 0:
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s:\n got %v\nwant %s", name, err, test.text)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if w.Requests() != test.requests {
				t.Errorf("%s: %d requests, want %d", name, w.Requests(), test.requests)
			}
			warnings := strings.Join(w.Warnings, "\n")
			if !strings.Contains(warnings, test.text) || test.text == "" && warnings != "" && !strings.Contains(warnings, "is not given") {
				t.Errorf("%s: warns\n %s\nwant %s", name, warnings, test.text)
			}
			if salvaged := strings.Contains(warnings, "left out"); (w.LeftOut > 0) != salvaged {
				t.Errorf("%s: %d left out", name, w.LeftOut)
			}
		}
	}
}

// dynamoRow writes a request_end record; hashes are made of the id unless given.
func dynamoRow(id, session, parent string, start, end int, hashes ...string) string {
	if len(hashes) == 0 {
		sum := 0
		for _, c := range id {
			sum = sum*131 + int(c)
		}
		hashes = []string{fmt.Sprint(1000 + sum)}
	}
	agent := ""
	if session != "" {
		agent = fmt.Sprintf(`"agent_context":{"session_id":%q,"parent_session_id":%q},`, session, parent)
		if parent == "" {
			agent = fmt.Sprintf(`"agent_context":{"session_id":%q},`, session)
		}
	}
	return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":%d,%s"request":{"request_id":%q,"output_tokens":4,"request_received_ms":%d,"total_time_ms":%d,"replay":{"trace_block_size":64,"input_length":%d,"input_sequence_hashes":[%s]}}}`+"\n",
		end, agent, id, start, end-start, 64*len(hashes), strings.Join(hashes, ","))
}

// dynamoToolRow writes a tool_end record with the given claude metadata.
func dynamoToolRow(session, call string, start, end int, claude string) string {
	if claude != "" {
		claude = `,"claude":` + claude
	}
	return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":%d,"agent_context":{"session_id":%q},"tool":{"tool_call_id":%q,"started_at_unix_ms":%d,"ended_at_unix_ms":%d%s}}`+"\n",
		end, session, call, start, end, claude)
}

func dynamoFile(t *testing.T, rows ...string) TraceSpec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := DefaultTraceSpec()
	s.Path, s.Format = path, FormatDynamo
	return s
}

// What links requests beyond the plain cases; the numbers without a remark are those of both generations, run.
func TestDynamoLinks(t *testing.T) {
	p := func(id string, start, end int) string { return dynamoRow(id, "r", "", start, end) }
	k := func(id string, start, end int) string { return dynamoRow(id, "k", "r", start, end) }
	claude := func(text string) string { return dynamoToolRow("r", "t", 100, 550, text) }
	for _, test := range []struct {
		name           string
		rows           []string
		instant, token string // releases: the reference's rules without service time, the default ones with 4 ms each
	}{
		// The peer refuses requests of a session that overlap; ours start as far apart as they did.
		{"overlap", []string{p("a", 0, 1000), p("b", 300, 500), p("c", 1500, 1600)}, "a 0, b 0, c 1000", "a 0, b 300, c 1304"},
		{"overlapping subagent", []string{p("p1", 0, 100), k("k1", 150, 900), k("k2", 200, 400), p("p2", 500, 600), p("p3", 1000, 1100)},
			"p1 0, k1 50, k2 50, p2 400, p3 500", "p1 0, k1 150, k2 200, p2 404, p3 808"},
		{"barrier", []string{p("a", 0, 50), p("b", 10, 400), p("c", 20, 60), p("d", 100, 150)}, "a 0, b 0, c 0, d 40", "a 0, b 10, c 20, d 64"},
		{"named spawner", []string{p("p1", 0, 100), p("p2", 200, 300), k("k1", 400, 500), p("p3", 600, 700), claude(`{"source_request_id":"p1","child_session_id":"k","execution_mode":"blocking"}`)},
			"p1 0, p2 100, k1 300, p3 400", "p1 0, p2 104, k1 400, p3 408"},
		{"named spawner and consumer", []string{p("p1", 0, 100), p("p2", 200, 300), k("k1", 400, 500), p("p3", 600, 700), p("p4", 800, 900),
			claude(`{"source_request_id":"p1","consumer_request_id":"p4","child_session_id":"k","execution_mode":"background"}`)},
			"p1 0, p2 100, k1 300, p3 400, p4 500", "p1 0, p2 104, k1 400, p3 408, p4 704"},
		// The peer refuses it; a subagent that began before its spawner starts with it.
		{"spawner after its subagent", []string{p("p1", 0, 100), k("k1", 150, 250), p("p2", 200, 300), p("p3", 600, 700), claude(`{"source_request_id":"p2","child_session_id":"k","execution_mode":"blocking"}`)},
			"p1 0, p2 100, k1 100, p3 400", "p1 0, p2 104, k1 104, p3 408"},
		{"tool of no parent", []string{p("p1", 0, 100), dynamoRow("k1", "k", "", 150, 250), p("p2", 400, 500), claude(`{"source_request_id":"p1","consumer_request_id":"p2","child_session_id":"k"}`)},
			"p1 0, k1 150, p2 300", "p1 0, k1 150, p2 304"},
		{"subagent before its parent", []string{k("k1", 0, 50), p("p1", 100, 200), p("p2", 300, 400)}, "k1 0, p1 50, p2 150", "k1 0, p1 54, p2 158"},
		{"equal times", []string{p("p1", 0, 100), p("pb", 100, 100), p("pa", 100, 100), k("k1", 100, 150), p("p9", 150, 170)},
			"p1 0, pa 0, pb 0, k1 0, p9 0", "p1 0, pa 4, pb 8, k1 8, p9 62"},
		{"two subagents", []string{p("p1", 0, 100), k("k1", 100, 400), dynamoRow("j1", "j", "r", 120, 450), p("p2", 500, 600)}, "p1 0, k1 0, j1 20, p2 70", "p1 0, k1 100, j1 120, p2 404"},
		{"three generations", []string{p("p1", 0, 100), k("k1", 150, 300), dynamoRow("g1", "g", "k", 200, 700), k("k2", 400, 500), p("p2", 600, 650), p("p3", 800, 900)},
			"p1 0, k1 50, g1 50, k2 150, p2 250, p3 400", "p1 0, k1 150, g1 200, k2 254, p2 504, p3 658"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, side := range []struct {
				compat  rules.Compat
				service float64
				want    string
			}{{rules.Dynamo13, 0, test.instant}, {rules.Default, 4, test.token}} {
				w, err := loadTrace(t, dynamoFile(t, test.rows...), side.compat)
				if err != nil {
					t.Fatal(err)
				}
				got := releases(w, func(int) float64 { return side.service })
				for _, item := range strings.Split(side.want, ", ") {
					id, ms, _ := strings.Cut(item, " ")
					if fmt.Sprint(got[id]) != ms {
						t.Errorf("%q: %s is released at %v ms, want %s", side.compat, id, got[id], ms)
					}
				}
			}
		})
	}
}

func TestDynamoLinkProblems(t *testing.T) {
	rows := []string{dynamoRow("p1", "r", "", 0, 100), dynamoRow("k1", "k", "r", 150, 250), dynamoRow("p2", "r", "", 400, 500)}
	with := func(claude ...string) []string {
		all := slices.Clone(rows)
		for _, text := range claude {
			all = append(all, dynamoToolRow("r", "t", 100, 300, text))
		}
		return all
	}
	for _, test := range []struct {
		rows []string
		want string
	}{
		{with(`{"source_request_id":"p9","child_session_id":"k"}`), `:4: tool.claude.source_request_id is "p9": tool call "t" names a request that was not captured`},
		{with(`{"consumer_request_id":"k1","child_session_id":"k"}`), `:4: tool.claude.consumer_request_id is "k1": tool call "t" names a request of another session, "k"`},
		{with(`{"child_session_id":"k"}`, `{"child_session_id":"k"}`), `:5: tool.claude.child_session_id is "k": tool call`},
		{with(`{"child_session_id":"k","execution_mode":"later"}`), `:4: tool.claude.execution_mode is "later": use blocking or background`},
		{with(`{"source_request_id":"p2","consumer_request_id":"p1","child_session_id":"k"}`), ""},
	} {
		spec := dynamoFile(t, test.rows...)
		_, err := loadTrace(t, spec, "")
		if got := fmt.Sprint(err); (err != nil) != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("got %s\nwant %s", got, test.want)
		}
		spec.Salvage = true
		if w, err := loadTrace(t, spec, ""); err != nil || (w.LeftOut > 0) != (test.want != "") {
			t.Errorf("salvaged: %v", err)
		}
	}
	// The reference's rules join a consumer that began before: here one that the subagent's spawner waits for.
	_, err := loadTrace(t, dynamoFile(t, with(`{"source_request_id":"p2","consumer_request_id":"p1","child_session_id":"k"}`)...), rules.Dynamo13)
	if err == nil || !strings.Contains(err.Error(), "cycle detected among 3 requests") {
		t.Errorf("a cycle gives %v", err)
	}
}

// A capture's folder is one trace: requests without a session, which are in files of their own, start at their recorded times beside
// the sessions, and what else lies in the folder does not count.
func TestCaptureFolder(t *testing.T) {
	agents := dynamoRow("p1", "p", "", 1000, 1100) + dynamoRow("k1", "k", "p", 1150, 1200) + dynamoRow("p2", "p", "", 1300, 1400)
	alone := dynamoRow("x", "", "", 950, 2000) + dynamoRow("y", "", "", 1250, 1260)
	folder := t.TempDir()
	for name, text := range map[string]string{"c.000000.jsonl": agents, "c-alone.000000.jsonl.gz": gzipped(t, alone), "checked.json": "{}", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := DefaultTraceSpec()
	spec.Path, spec.Strict = folder, true
	w, err := loadTrace(t, spec, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"x": 0, "p1": 50, "k1": 50 + 150, "y": 300, "p2": 50 + 150 + 10 + 100}
	if got := releases(w, func(int) float64 { return 10 }); !maps.Equal(got, want) {
		t.Errorf("released at %v, want %v", got, want)
	}
	if w.Requests() != 5 || w.Sessions() != 4 || w.Graph.Plays() != 3 || w.Name != filepath.Base(folder) || !spec.MayBeFolder() {
		t.Errorf("%s has %d requests in %d sessions and %d plays", w.Name, w.Requests(), w.Sessions(), w.Graph.Plays())
	}
	// The same as both files, in any order.
	spec.Path, spec.Paths = "", []string{filepath.Join(folder, "c.000000.jsonl"), filepath.Join(folder, "c-alone.000000.jsonl.gz")}
	if named, err := loadTrace(t, spec, ""); err != nil || named.Digest() != w.Digest() {
		t.Errorf("both files by name are another trace: %v", err)
	}
	// The reference has one kind.
	spec.Format = FormatDynamo
	if _, err := loadTrace(t, spec, rules.Dynamo13); err == nil || !strings.Contains(err.Error(), "c-alone.000000.jsonl.gz:1: agent_context: is missing, but ") {
		t.Errorf("compat dynamo-1.3: %v", err)
	}
	spec.Strict, spec.Salvage = false, true
	if _, err := loadTrace(t, spec, rules.Dynamo13); err == nil {
		t.Error("compat dynamo-1.3: salvaging takes both kinds")
	}
	// In one file they are mixed up, which salvaging takes as it is.
	mixed := dynamoFile(t, agents, alone)
	if _, err := loadTrace(t, mixed, ""); err == nil || !strings.Contains(err.Error(), ":4: agent_context: is missing") {
		t.Errorf("a mixed file: %v", err)
	}
	mixed.Salvage = true
	if salvaged, err := loadTrace(t, mixed, ""); err != nil || salvaged.Digest() != w.Digest() || salvaged.LeftOut > 0 {
		t.Errorf("a salvaged mixed file: %v", err)
	}
}

// Up to 20 problems come at once, of all files.
func TestDynamoManyProblems(t *testing.T) {
	spec := dynamoSpec("dy_trunc.jsonl.gz", "dy_evt.jsonl", "dy_schema.jsonl", "dy_noout.jsonl")
	_, err := loadTrace(t, spec, "")
	var e *TraceError
	if !errors.As(err, &e) || len(e.Problems) != 4 {
		t.Errorf("got %v", err)
	}
}

// However the records are spread over files and ordered, the workload is the same.
func TestDynamoOrderDoesNotCount(t *testing.T) {
	one, err := loadTrace(t, dynamoSpec("agentic.all.jsonl"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range [][]string{{"agentic.000000.jsonl.gz", "agentic.000001.jsonl.gz"}, {"agentic.000001.jsonl.gz", "agentic.000000.jsonl.gz"}} {
		other, err := loadTrace(t, dynamoSpec(files...), "")
		if err != nil {
			t.Fatal(err)
		}
		if one.Digest() != other.Digest() {
			t.Errorf("%v: another digest", files)
		}
	}
	text, err := os.ReadFile("testdata/dynamo/deep.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.SplitAfter(strings.TrimSuffix(string(text), "\n")+"\n", "\n")
	rows = rows[:len(rows)-1]
	rapid.Check(t, func(rt *rapid.T) {
		var digests []string
		for range 2 {
			w, err := loadTrace(t, dynamoFile(t, rapid.Permutation(rows).Draw(rt, "rows")...), "")
			if err != nil {
				rt.Fatal(err)
			}
			digests = append(digests, w.Digest())
		}
		if digests[0] != digests[1] {
			rt.Error("the digest depends on the order of the records")
		}
	})
}

// A follow-up prompt reuses the blocks that the answer before it filled.
func TestDynamoCompletionHashes(t *testing.T) {
	w, err := loadTrace(t, dynamoFile(t,
		strings.Replace(dynamoRow("a", "", "", 0, 100, "1", "2"), `"output_tokens":4`, `"output_tokens":130`, 1),
		dynamoRow("b", "", "", 300, 400, "1", "2", "3", "4", "9"),
	), "")
	if err != nil {
		t.Fatal(err)
	}
	if shared := sharedBlocks(t, w); shared != 2 {
		t.Errorf("without completion hashes %d blocks are shared, want 2", shared)
	}
	first := strings.Replace(dynamoRow("a", "", "", 0, 100, "1", "2"), `"output_tokens":4`, `"output_tokens":130`, 1)
	first = strings.Replace(first, `"input_sequence_hashes"`, `"completion_sequence_hashes":[1,2,3,4,5],"input_sequence_hashes"`, 1)
	w, err = loadTrace(t, dynamoFile(t, first, dynamoRow("b", "", "", 300, 400, "1", "2", "3", "4", "9")), "")
	if err != nil {
		t.Fatal(err)
	}
	if shared := sharedBlocks(t, w); shared != 4 {
		t.Errorf("with completion hashes %d blocks are shared, want 4", shared)
	}
	for _, bad := range []struct{ hashes, want string }{
		{"[1,2,3,4]", "128 input and 130 output tokens need 5 hashes of 64 tokens each, there are 4"},
		{"[1,7,3,4,5]", "begins with other hashes than the input: hash 1 is 7, the input's is 2"},
	} {
		_, err := loadTrace(t, dynamoFile(t, strings.Replace(first, "[1,2,3,4,5]", bad.hashes, 1)), "")
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v", bad.hashes, err)
		}
	}
}

// sharedBlocks counts the leading known blocks of 64 tokens that the first two requests have in common.
func sharedBlocks(t *testing.T, w *Workload) int {
	t.Helper()
	table, err := w.Blocks(64, true)
	if err != nil {
		t.Fatal(err)
	}
	expand := func(r int) (ids []uint32) {
		for _, s := range table.Segments(r) {
			for i := range s.Len {
				ids = append(ids, s.Start+i)
			}
		}
		return ids
	}
	a, b := expand(0), expand(1)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func TestShardGaps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"c.000000.jsonl.gz", "c.000001.jsonl.gz", "c.000002.jsonl", "c.000005.jsonl.gz", "d.000000.jsonl", "c.notes.jsonl", "e.000001.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		given string
		want  []string
	}{
		{"d.000000.jsonl", nil},
		{"c.notes.jsonl", nil},
		{"c.000000.jsonl.gz c.000001.jsonl.gz c.000002.jsonl c.000005.jsonl.gz", []string{"c.000003 to 000004 are missing"}},
		{"c.000005.jsonl.gz c.000002.jsonl", []string{"c.000000 to 000001 are not given", "c.000003 to 000004 are missing"}},
		{"e.000001.jsonl d.000000.jsonl", []string{"e.000000 is missing"}},
	} {
		var paths []string
		for _, name := range strings.Fields(test.given) {
			paths = append(paths, filepath.Join(dir, name))
		}
		got := Source{}.shardGaps(t.Context(), paths)
		if len(got) != len(test.want) {
			t.Errorf("%s: %q", test.given, got)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", test.given, got[i], want)
			}
		}
	}
	if got := (Source{}).shardGaps(t.Context(), []string{filepath.Join(dir, "nowhere", "c.000000.jsonl")}); got != nil {
		t.Errorf("a file that does not exist gives %q", got)
	}
}

// Runs of names spell out the hashes that went in.
func TestHashNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := hashNames{}
		lists := rapid.SliceOf(rapid.SliceOf(rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64Range(denseHashes-2, denseHashes+2), rapid.Just(uint64(math.MaxUint64))))).Draw(t, "hashes")
		var runs []Segment
		for _, list := range lists {
			from := len(runs)
			runs = names.appendRuns(runs, list)
			var back []uint64
			for _, run := range runs[from:] {
				for i := range run.Len {
					back = append(back, names.hashes[run.Start+i])
				}
			}
			if !slices.Equal(back, list) {
				t.Fatalf("%v came back as %v", list, back)
			}
		}
	})
}

// The union of tool spans is what a clock that looks at every millisecond finds.
func TestToolSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &dynamoCapture{}
		var order []int32
		covered := map[uint64]bool{}
		from, to := rapid.Uint64Range(0, 30).Draw(t, "from"), rapid.Uint64Range(0, 60).Draw(t, "to")
		for range rapid.IntRange(0, 5).Draw(t, "tools") {
			tool := dynamoTool{fromMs: rapid.Uint64Range(0, 60).Draw(t, "start"), background: rapid.Bool().Draw(t, "background"), consumer: rapid.SampledFrom([]string{"", "me"}).Draw(t, "consumer")}
			tool.toMs = tool.fromMs + rapid.Uint64Range(0, 20).Draw(t, "length")
			order = append(order, int32(len(c.tools)))
			c.tools = append(c.tools, tool)
			for ms := max(from, tool.fromMs); ms < min(to, tool.toMs); ms++ {
				covered[ms] = covered[ms] || !tool.background || tool.consumer == "me"
			}
		}
		slices.SortStableFunc(order, func(a, b int32) int { return int(c.tools[a].toMs) - int(c.tools[b].toMs) })
		want := 0
		for _, is := range covered {
			if is {
				want++
			}
		}
		if got := c.spansMs(order, from, to, "me"); got != float64(want) {
			t.Fatalf("%v ms, want %d", got, want)
		}
	})
}

// The wait before p2 of the worked example is 60 ms of tools and 50 ms of the harness.
func TestDynamoToolWaits(t *testing.T) {
	w, err := loadTrace(t, dynamoSpec("agentic.all.jsonl"), rules.Dynamo13)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Requests() {
		want := map[string]float64{"p2": 60}[w.ID(i)]
		if got := w.Graph.ToolWaitMs[i]; got != want {
			t.Errorf("%s: tools took %v ms, want %v", w.ID(i), got, want)
		}
		if math.IsNaN(w.Graph.RecordedStartMs[i]) {
			t.Errorf("%s has no recorded start", w.ID(i))
		}
	}
}
