package tracetools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/workload"
)

// testing.T and rapid.T.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// read loads a trace from memory in the format told by its content.
func read(t failer, text []byte) *workload.Workload {
	t.Helper()
	trace := workload.DefaultTraceSpec()
	trace.Path = "-"
	w, err := workload.Spec{Trace: &trace}.Load(context.Background(), workload.Source{Stdin: bytes.NewReader(text)})
	if err != nil {
		t.Fatalf("%v in\n%.2000s", err, text)
	}
	return w
}

// written returns a workload in a format, and what could not be kept.
func written(t failer, w *workload.Workload, target Target) ([]byte, []string) {
	t.Helper()
	var out bytes.Buffer
	notes, err := target.For(w).Write(&out, w)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), notes
}

// writtenFolder returns the files of a workload as weka.
func writtenFolder(w *workload.Workload, scope string) (files map[string]string, notes []string, err error) {
	files = map[string]string{}
	notes, err = Target{Format: workload.FormatWeka, HashIDScope: scope}.For(w).WriteFiles(func(name string, write func(io.Writer) error) error {
		var out bytes.Buffer
		err := write(&out)
		files[name] = out.String()
		return err
	}, w)
	return files, notes, err
}

// sessions draws a workload of sessions with prompts that share blocks.
func sessions(t *rapid.T) *workload.Workload {
	b := workload.NewBuilder("drawn", 4)
	known := map[string]bool{}
	for range rapid.IntRange(1, 25).Draw(t, "requests") {
		r := workload.Request{
			ID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id"), Session: rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "session"),
			ArrivalMs: math.NaN(), Input: rapid.IntRange(1, 20).Draw(t, "input"), Output: rapid.IntRange(0, 9).Draw(t, "output"),
		}
		if r.Session != "" && known[r.Session] {
			r.DelayMs = float64(rapid.IntRange(0, 900).Draw(t, "delay")) / 4
		} else {
			r.ArrivalMs = float64(rapid.IntRange(-900, 900).Draw(t, "arrival")) / 4
		}
		known[r.Session] = true
		for range (r.Input + 3) / 4 {
			r.Hashes = append(r.Hashes, rapid.Uint64Range(0, 3).Draw(t, "hash"))
		}
		if rapid.IntRange(0, 9).Draw(t, "planned") == 0 {
			r.PlannedOutput = rapid.SliceOfN(rapid.Uint32Range(0, 3), r.Output, r.Output).Draw(t, "tokens")
		}
		r.Hints.Priority = int32(rapid.IntRange(-1, 1).Draw(t, "priority"))
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// plays draws a workload of plays: requests wait for earlier ones of their play.
func plays(t *rapid.T) *workload.Workload {
	b := workload.NewGraphBuilder("drawn", 4)
	for play := range rapid.IntRange(1, 4).Draw(t, "plays") {
		first := int32(b.Requests())
		sessions := rapid.IntRange(1, 3).Draw(t, "sessions")
		latest := map[int]int32{}
		for n := range rapid.IntRange(1, 8).Draw(t, "requests") {
			session := rapid.IntRange(0, min(n, sessions-1)).Draw(t, "session")
			start := float64(rapid.IntRange(0, 400).Draw(t, "start"))
			r := workload.GraphRequest{
				Request:     workload.Request{ID: fmt.Sprintf("r%d-%d", play, n), Session: fmt.Sprintf("s%d-%d", play, session), Input: rapid.IntRange(1, 20).Draw(t, "input"), Output: rapid.IntRange(0, 9).Draw(t, "output")},
				NotBeforeMs: math.Inf(-1), Play: fmt.Sprintf("p%d", play), Model: "m", RecordedStartMs: start, RecordedEndMs: start + float64(rapid.IntRange(1, 100).Draw(t, "took")),
			}
			if n == 0 {
				r.NotBeforeMs = float64(100 * play) // the first play starts at 0, as loaders make it
			} else if rapid.Bool().Draw(t, "floor") {
				r.NotBeforeMs = float64(rapid.IntRange(0, 900).Draw(t, "not before"))
			}
			for range (r.Input + 3) / 4 {
				r.Hashes = append(r.Hashes, rapid.Uint64Range(0, 5).Draw(t, "hash"))
			}
			to := b.Add(r)
			before, turn := latest[session]
			latest[session] = to
			switch {
			case turn:
				b.AddEdge(to, workload.Edge{From: before, DelayMs: float64(rapid.IntRange(0, 50).Draw(t, "delay"))})
			case n > 0:
				trigger := rapid.SampledFrom([]workload.Trigger{workload.OnCompletion, workload.OnDispatch}).Draw(t, "trigger")
				b.AddEdge(to, workload.Edge{From: first, DelayMs: float64(rapid.IntRange(0, 50).Draw(t, "delay")), Trigger: trigger, Relation: workload.Spawn})
			}
			if n > 0 && rapid.Bool().Draw(t, "join") {
				relation := rapid.SampledFrom([]workload.Relation{workload.Join, workload.Barrier}).Draw(t, "relation")
				b.AddEdge(to, workload.Edge{From: first + int32(rapid.IntRange(0, n-1).Draw(t, "from")), DelayMs: 3, Relation: relation})
			}
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestMooncakeRoundTrip checks that a Mooncake trace read again is the same work.
func TestMooncakeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := sessions(t)
		text, notes := written(t, w, Target{Format: workload.FormatMooncake})
		trace := workload.DefaultTraceSpec()
		trace.Path, trace.BlockSize = "-", 4
		again, err := workload.Spec{Trace: &trace}.Load(context.Background(), workload.Source{Stdin: bytes.NewReader(text)})
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if again.Digest() != w.Digest() || len(notes) > 0 {
			t.Fatalf("digest %s became %s; notes %q\n%s", w.Digest(), again.Digest(), notes, text)
		}
	})
}

// TestAgenticRoundTrip checks that an agentic trace read again has the same requests, dependencies, plays and floors.
func TestAgenticRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := plays(t)
		text, notes := written(t, w, Target{})
		again := read(t, text)
		if diff := cmp.Diff(graphOf(w), graphOf(again), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" || len(notes) > 0 {
			t.Fatalf("%s\nnotes %q\n%s", diff, notes, text)
		}
	})
}

type graphRequest struct {
	ID, Session, Play     string
	Input, Output         int32
	Hashes                []uint64
	Floor, Service, Delay float64
	Edges                 []workload.Edge
}

// graphOf lists what counts of a graph, edges in an order of their own.
func graphOf(w *workload.Workload) []graphRequest {
	var out []graphRequest
	for s := range w.Sessions() {
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			edges := slices.Clone(w.Graph.Edges(i))
			slices.SortFunc(edges, func(a, b workload.Edge) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			out = append(out, graphRequest{
				w.ID(int(i)), w.SessionName(s), w.Graph.PlayNames[w.Graph.Play[i]], w.Input[i], w.Output[i], w.Hashes(int(i)),
				max(0, w.Graph.NotBeforeMs[i]), w.RecordedServiceMs(int(i)), w.DelayMs[i], edges,
			})
		}
	}
	return out
}

// TestSessionsAsPlays checks that plain sessions become plays that run at the same times.
func TestSessionsAsPlays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := sessions(t)
		text, _ := written(t, w, Target{Format: workload.FormatAgenticMooncake})
		again := read(t, text)
		first := slices.Min(w.RecordedStarts())
		if w.Sessions() != again.Graph.Plays() {
			t.Fatalf("%d sessions became %d plays", w.Sessions(), again.Graph.Plays())
		}
		want, got := w.RecordedStarts(), again.RecordedStarts()
		for i := range want {
			if math.Abs(want[i]-first-got[i]) > 1e-9 {
				t.Fatalf("request %d starts at %g, not %g", i, got[i], want[i]-first)
			}
		}
		// What starts together goes in the order of ids in this format, so a small cache may hit otherwise.
		if a, b := workload.Stats(w).Reuse, workload.Stats(again).Reuse; !cmp.Equal(a, b) {
			t.Fatalf("%+v became %+v", a, b)
		}
	})
}

// TestInventedIDs writes workloads whose prompts have no ids, or not for all blocks, or ids that JSON readers round.
func TestInventedIDs(t *testing.T) {
	b := workload.NewBuilder("no ids", 0)
	b.Add(workload.Request{ArrivalMs: 0, Input: 20, Output: 1})
	b.Add(workload.Request{ArrivalMs: 1, Input: 16, Output: 1})
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	text, notes := written(t, w, Target{BlockSize: 8})
	if !strings.Contains(string(text), "[0,1,2]") || !strings.Contains(string(text), "[3,4]") || len(notes) != 1 || !strings.Contains(notes[0], "5 blocks without a hash id") {
		t.Errorf("%s%q", text, notes)
	}
	huge := read(t, []byte(`{"text_input": "`+strings.Repeat("a", 3000)+`", "output_length": 1, "timestamp": 0}`))
	text, notes = written(t, huge, Target{})
	if !strings.Contains(string(text), "[0,1]") || len(notes) != 1 || !strings.Contains(notes[0], "above 2^53") {
		t.Errorf("%s%q", text, notes)
	}
	delta := workload.DefaultTraceSpec()
	delta.Path, delta.Format, delta.BlockSize = "-", "mooncake-delta", 4
	rows := `{"timestamp": 0, "session_id": "s", "input_length": 8, "output_length": 4, "hash_ids": [1, 2]}
{"delay": 5, "session_id": "s", "input_length": 6, "output_length": 4, "hash_ids": [3, 4]}`
	turns, err := workload.Spec{Trace: &delta}.Load(context.Background(), workload.Source{Stdin: strings.NewReader(rows)})
	if err != nil {
		t.Fatal(err)
	}
	text, _ = written(t, turns, Target{})
	var first, second mooncakeRow
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := errors.Join(decoder.Decode(&first), decoder.Decode(&second)); err != nil {
		t.Fatal(err)
	}
	if second.InputLength != 18 || len(second.HashIDs) != 5 || !slices.Equal(first.HashIDs, second.HashIDs[:2]) {
		t.Errorf("turns that go on where the one before ended became\n%s", text)
	}
}

// TestLostDependencies checks that a graph in Mooncake format starts its sessions when the trace implies, and says so, as a
// format that loses something must (inference-sim#1621).
func TestLostDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := plays(t)
		text, notes := written(t, w, Target{Format: workload.FormatMooncake})
		trace := workload.DefaultTraceSpec()
		trace.Path, trace.BlockSize = "-", 4
		again, err := workload.Spec{Trace: &trace}.Load(context.Background(), workload.Source{Stdin: bytes.NewReader(text)})
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		starts := w.RecordedStarts()
		across := false
		for s := range w.Sessions() {
			if got := again.ArrivalMs[again.SessionStart[s]]; math.Abs(got-starts[w.SessionStart[s]]) > 1e-3 {
				t.Fatalf("session %d starts at %g, not %g", s, got, starts[w.SessionStart[s]])
			}
			for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
				for _, e := range w.Graph.Edges(i) {
					across = across || e.From < w.SessionStart[s] || e.From >= w.SessionStart[s+1]
				}
			}
		}
		if across != (len(notes) == 1) {
			t.Fatalf("notes %q", notes)
		}
	})
}

const agent = `{"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 64, "hash_id_scope": "local", "source": {"format": "x", "digest": "d"}}
{"request_id": "a", "play_id": "p", "session_id": "main", "model": "m", "input_length": 128, "output_length": 10, "hash_ids": [1, 2], "not_before_ms": 0, "recorded_api_time_ms": 100, "dependencies": []}
{"request_id": "b", "play_id": "p", "session_id": "kid", "model": "h", "input_length": 64, "output_length": 4, "hash_ids": [9], "not_before_ms": 0, "recorded_api_time_ms": 50, "dependencies": [{"request_id": "a", "trigger": "completion", "delay_ms": 5, "relation": "spawn"}]}
{"request_id": "c", "play_id": "p", "session_id": "main", "model": "m", "input_length": 192, "output_length": 5, "hash_ids": [1, 2, 3], "not_before_ms": 0, "recorded_api_time_ms": 70, "dependencies": [{"request_id": "a", "trigger": "completion", "delay_ms": 10, "relation": "sequence"}, {"request_id": "b", "trigger": "completion", "delay_ms": 2.5, "relation": "join"}]}
`

// TestWeka checks a conversation with a subagent, word for word.
func TestWeka(t *testing.T) {
	files, notes, err := writtenFolder(read(t, []byte(agent)), "")
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	want := `{"id":"main","models":["m","h"],"block_size":64,"hash_id_scope":"local","tool_tokens":0,"system_tokens":0,"requests":[` +
		`{"t":0,"type":"n","model":"m","in":128,"out":10,"hash_ids":[1,2],"input_types":["text"],"output_types":["text"],"stop":"tool_use","api_time":0.1},` +
		`{"t":0.105,"type":"subagent","agent_id":"kid","subagent_type":"general-purpose","duration_ms":50,"total_tokens":68,"status":"completed","requests":[` +
		`{"t":0.105,"type":"n","model":"h","in":64,"out":4,"hash_ids":[9],"input_types":["text"],"output_types":["text"],"stop":"end_turn","api_time":0.05}],"models":["h"],"tool_tokens":0,"system_tokens":0},` +
		`{"t":0.1575,"type":"n","model":"m","in":192,"out":5,"hash_ids":[1,2,3],"input_types":["text"],"output_types":["text"],"stop":"end_turn","api_time":0.07}]}` + "\n"
	if diff := cmp.Diff(map[string]string{"1-main.json": want}, files); diff != "" {
		t.Error(diff)
	}
}

// TestWekaRefuses checks what the format has no place for, and what is said about the rest.
func TestWekaRefuses(t *testing.T) {
	row := func(id, session, edges string) string {
		return fmt.Sprintf(`{"request_id": %q, "play_id": "p", "session_id": %q, "model": "m", "input_length": 64, "output_length": 1, "hash_ids": [1], "not_before_ms": 0, "priority": 1, "dependencies": [%s]}`+"\n", id, session, edges)
	}
	edge := func(from, relation string) string {
		return fmt.Sprintf(`{"request_id": %q, "trigger": "completion", "delay_ms": 0, "relation": %q}`, from, relation)
	}
	header, _, _ := strings.Cut(agent, "\n")
	deep := header + "\n" + row("a", "main", "") + row("b", "kid", edge("a", "spawn")) + row("c", "grandkid", edge("b", "spawn"))
	if files, _, err := writtenFolder(read(t, []byte(deep)), ""); err == nil || !strings.Contains(err.Error(), "session main > kid > grandkid is a subagent of a subagent") || len(files) > 0 {
		t.Errorf("%v %v", err, files)
	}
	cousins := header + "\n" + row("a", "main", "") + row("b", "other", edge("a", "join"))
	if _, _, err := writtenFolder(read(t, []byte(cousins)), ""); err == nil || !strings.Contains(err.Error(), "session other waits for session main, which is neither its subagent nor the one that spawned it") {
		t.Error(err)
	}
	orphan, err := os.ReadFile("../testdata/dynamo/dy_parentmissing.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if files, _, err := writtenFolder(read(t, orphan), ""); err == nil || !strings.Contains(err.Error(), "is a subagent of session ghost, of which the trace has no request") || len(files) > 0 {
		t.Errorf("%v %v", err, files)
	}
	two := header + "\n" + row("a", "main", "") + strings.Replace(row("b", "../else where", ""), `"p"`, `"q"`, 1)
	files, notes, err := writtenFolder(read(t, []byte(two)), "")
	if err != nil || len(files) != 2 || !strings.Contains(files["2-_else_where.json"], `"hash_id_scope":"global"`) {
		t.Errorf("%v %v", err, files)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "hash_id_scope is global") || !strings.Contains(notes[1], "priorities") {
		t.Errorf("%q", notes)
	}
	if files, _, err := writtenFolder(read(t, []byte(two)), "local"); err != nil || !strings.Contains(files["1-main.json"], `"hash_id_scope":"local"`) {
		t.Errorf("%v %v", err, files)
	}
}

// TestWekaRoundTrip checks that captures become conversations that start their requests at the same times.
func TestWekaRoundTrip(t *testing.T) {
	files, _, err := writtenFolder(read(t, []byte(agent)), "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "1.json")
	if err := os.WriteFile(path, []byte(files["1-main.json"]), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := workload.DefaultTraceSpec()
	trace.Path = path
	again, err := workload.Spec{Trace: &trace}.Load(context.Background(), workload.Source{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(again.RecordedStarts()), "[0 157.5 105]"; got != want || again.Graph.Parent[1] != 0 {
		t.Errorf("starts %s, want %s", got, want)
	}
}

func TestTargets(t *testing.T) {
	for _, test := range []struct {
		target Target
		want   string
	}{
		{Target{}, ""}, {Target{Format: "weka", HashIDScope: "local"}, ""}, {Target{Format: "csv"}, "to"},
		{Target{BlockSize: -1}, "block_size"}, {Target{HashIDScope: "global"}, "hash_id_scope"}, {Target{Format: "weka", HashIDScope: "all"}, "hash_id_scope"},
	} {
		var got []string
		for _, p := range test.target.Validate() {
			got = append(got, p.Path)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v: %q", test.target, got)
		}
	}
}

// TestWekaCorpus writes each trace of the kv-cache-tester corpus again and compares requests and dependencies.
func TestWekaCorpus(t *testing.T) {
	shared := os.Getenv("SHARED_DATA_DIR")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "shared")
	}
	traces, err := filepath.Glob(filepath.Join(shared, "traces", "weka", "trace_*.json"))
	if err != nil || len(traces) == 0 {
		t.Skip("needs traces/weka: set SHARED_DATA_DIR to the folder that holds traces")
	}
	load := func(path string) *workload.Workload {
		trace := workload.DefaultTraceSpec()
		trace.Path = path
		w, err := workload.Spec{Trace: &trace}.Load(context.Background(), workload.Source{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, path := range traces {
		w := load(path)
		files, notes, err := writtenFolder(w, "")
		if err != nil || len(files) != 1 || len(notes) > 0 {
			t.Fatalf("%s: %d files, %v %q", path, len(files), err, notes)
		}
		again := filepath.Join(t.TempDir(), "again.json")
		for _, text := range files {
			if err := os.WriteFile(again, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(anonymousGraph(w), anonymousGraph(load(again)), cmpopts.EquateApprox(0, 1e-3), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %.1000s", filepath.Base(path), diff)
		}
	}
}

// anonymousGraph is graphOf without names of requests, and with a sum of the hash ids in order of appearance.
func anonymousGraph(w *workload.Workload) []graphRequest {
	list := graphOf(w)
	ids := map[uint64]uint64{}
	for i := range list {
		list[i].ID, list[i].Play = "", ""
		sum := fnv.New64a()
		for _, id := range list[i].Hashes {
			if _, known := ids[id]; !known {
				ids[id] = uint64(len(ids))
			}
			fmt.Fprint(sum, ids[id], " ")
		}
		list[i].Hashes = []uint64{sum.Sum64()}
	}
	return list
}
