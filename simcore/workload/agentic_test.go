package workload

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

const agenticHeaderLine = `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"handmade","digest":"d0"}}`

// loadRows reads a trace from memory.
func loadRows(t testing.TB, format, text string, compat rules.Compat) (*Workload, error) {
	t.Helper()
	set, err := rules.For(compat)
	if err != nil {
		t.Fatal(err)
	}
	spec := DefaultTraceSpec()
	spec.Path, spec.Format = "-", format
	return Spec{Trace: &spec}.Load(context.Background(), Source{Rules: set, Stdin: strings.NewReader(text)})
}

// agenticRow2 is a row of version 2 with the given members beside the required ones, which come later and so may be
// overridden by none.
func agenticRow2(id, play string, more string) string {
	return fmt.Sprintf(`{"request_id":%q,"play_id":%q,"session_id":"s","model":"m","input_length":64,"output_length":4,"hash_ids":[1]%s}`, id, play, more)
}

func agenticDep(id, trigger string, delay float64, relation string) string {
	return fmt.Sprintf(`{"request_id":%q,"trigger":%q,"delay_ms":%v,"relation":%q}`, id, trigger, delay, relation)
}

func rowsText(rows ...string) string { return strings.Join(rows, "\n") + "\n" }

// The worked examples of spec/workloads.md §1.3, with one ms a token of output, and what §9 corrects about floors.
func TestAgenticReleases(t *testing.T) {
	first := rowsText(
		`{"request_id":"root-1","session_id":"run:root","timestamp":1000.0,"input_length":512,"output_length":16,"hash_ids":[0],"branches":["child-1","child-2"],"delay":7,"tool_wait_ms":3}`,
		`{"request_id":"child-1","timestamp":1100,"input_length":300,"output_length":8,"hash_ids":[5],"wait_for":["root-1"],"delay":5}`,
		`{"request_id":"child-2","timestamp":1100,"input_length":300,"output_length":24,"hash_ids":[6],"wait_for":["root-1"],"delay_ms":5}`,
		`{"request_id":"root-2","session_id":"run:root","timestamp":2000,"input_length":1024,"output_length":8,"hash_ids":[0,1],"wait_for":["root-1","child-1","child-2"],"delay":10.0,"tool_wait_ms":250.0}`,
	)
	timestamps := rowsText(
		`{"request_id":"a","timestamp":1000,"output_length":1,"hash_ids":[1]}`,
		`{"request_id":"b","timestamp":400,"output_length":1,"hash_ids":[1],"wait_for":["a"]}`,
		`{"request_id":"c","timestamp":1500,"output_length":1,"hash_ids":[1]}`,
	)
	roots := rowsText(`{"request_id":"a","timestamp":1000,"output_length":1,"hash_ids":[1]}`, `{"request_id":"c","timestamp":1500,"output_length":1,"hash_ids":[1]}`)
	untimed := rowsText(`{"request_id":"a","output_length":1,"hash_ids":[1]}`, `{"request_id":"c","timestamp":1500,"output_length":1,"hash_ids":[1]}`)
	second := rowsText(agenticHeaderLine,
		`{"request_id":"a1","play_id":"pA","session_id":"root","model":"m","input_length":128,"output_length":10,"hash_ids":[1,2],"not_before_ms":0,"dependencies":[]}`,
		agenticRow2("b1", "pA", `,"not_before_ms":0,"dependencies":[`+agenticDep("a1", "dispatch", 3, "spawn")+`]`),
		agenticRow2("c1", "pA", `,"not_before_ms":0,"dependencies":[`+agenticDep("a1", "completion", 5, "spawn")+`]`),
		agenticRow2("a2", "pA", `,"not_before_ms":30,"dependencies":[`+agenticDep("a1", "completion", 10, "sequence")+","+agenticDep("b1", "completion", 2, "join")+","+agenticDep("c1", "completion", 1, "replay_barrier")+`]`),
		agenticRow2("z1", "pB", `,"not_before_ms":50`),
	)
	for _, test := range []struct {
		name   string
		text   string
		compat rules.Compat
		want   map[string]float64
	}{
		{"version 1", first, rules.Dynamo13, map[string]float64{"root-1": 0, "child-1": 21, "child-2": 21, "root-2": 45 + 260}},
		{"version 1, default", first, rules.Default, map[string]float64{"root-1": 1000, "child-1": 1021, "child-2": 1021, "root-2": 1045 + 260}},
		{"any timestamp is the start", timestamps, rules.Dynamo13, map[string]float64{"a": 600, "b": 601, "c": 1100}},
		{"the least floor is the start, default", timestamps, rules.Default, map[string]float64{"a": 1000, "b": 1001, "c": 1500}},
		{"only roots, default", roots, rules.Default, map[string]float64{"a": 0, "c": 500}},
		{"no timestamp", untimed, rules.Dynamo13, map[string]float64{"a": 0, "c": 0}},
		{"no timestamp, default", untimed, rules.Default, map[string]float64{"a": 0, "c": 1500}},
		{"version 2", second, rules.Default, map[string]float64{"a1": 0, "b1": 3, "c1": 15, "a2": 30, "z1": 50}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := loadRows(t, FormatAgenticMooncake, test.text, test.compat)
			if err != nil {
				t.Fatal(err)
			}
			got := releases(w, func(output int) float64 { return float64(output) })
			for id, ms := range test.want {
				if math.Abs(got[id]-ms) > 1e-9 {
					t.Errorf("%s is released at %v, want %v", id, got[id], ms)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("%d requests, want %d", len(got), len(test.want))
			}
		})
	}
}

// The settings of graphs change what a trace says about when its requests start.
func TestAgenticSettings(t *testing.T) {
	first := rowsText(
		`{"request_id":"a","timestamp":100,"output_length":10,"hash_ids":[1]}`,
		`{"request_id":"b","timestamp":150,"output_length":10,"hash_ids":[1],"wait_for":["a"],"delay":5}`,
	)
	// The root runs for 20 ms in the trace, from 100; one subagent starts during it, another one after it.
	second := rowsText(agenticHeaderLine,
		agenticRow2("root", "p", `,"not_before_ms":100,"recorded_api_time_ms":20`),
		agenticRow2("during", "p", `,"not_before_ms":107,"recorded_api_time_ms":6,"dependencies":[`+agenticDep("root", "dispatch", 7, "spawn")+`]`),
		agenticRow2("after", "p", `,"not_before_ms":130,"dependencies":[`+agenticDep("root", "completion", 10, "spawn")+`]`),
		agenticRow2("join", "p", `,"not_before_ms":200,"dependencies":[`+agenticDep("root", "completion", 80, "sequence")+","+agenticDep("during", "completion", 87, "join")+`]`),
	)
	for _, test := range []struct {
		name, text string
		change     func(*TraceSpec)
		want       map[string]float64
		warning    string
	}{
		{"version 1 as it is", first, func(*TraceSpec) {}, map[string]float64{"a": 100, "b": 115}, ""},
		{"version 1, causal", first, func(s *TraceSpec) { s.Pacing = PacingCausal }, map[string]float64{"a": 100, "b": 115}, ""},
		{"version 1, floors", first, func(s *TraceSpec) { s.Pacing = PacingWithFloor }, map[string]float64{"a": 0, "b": 55}, ""},
		{"version 1, subagents", first, func(s *TraceSpec) { s.JoinDelay = JoinNone }, map[string]float64{"a": 100, "b": 115}, "no effect on agentic_mooncake of version 1"},
		{"as it is", second, func(*TraceSpec) {}, map[string]float64{"root": 0, "during": 7, "after": 30, "join": 100}, ""},
		{"floors", second, func(s *TraceSpec) { s.Pacing = PacingWithFloor }, map[string]float64{"root": 0, "during": 7, "after": 30, "join": 100}, ""},
		{"causal", second, func(s *TraceSpec) { s.Pacing = PacingCausal }, map[string]float64{"root": 0, "during": 7, "after": 14, "join": 98}, ""},
		{"no delay after subagents", second, func(s *TraceSpec) { s.Pacing, s.JoinDelay = PacingCausal, JoinNone }, map[string]float64{"root": 0, "during": 7, "after": 14, "join": 84}, ""},
		{"spawn after completion", second, func(s *TraceSpec) { s.Pacing, s.SpawnTrigger = PacingCausal, SpawnCompletion }, map[string]float64{"root": 0, "during": 4, "after": 14, "join": 95}, ""},
		{"spawn at dispatch", second, func(s *TraceSpec) { s.Pacing, s.SpawnTrigger = PacingCausal, SpawnDispatch }, map[string]float64{"root": 0, "during": 7, "after": 30, "join": 98}, ""},
		{"spawn as recorded", second, func(s *TraceSpec) { s.Pacing, s.SpawnTrigger = PacingCausal, SpawnRecorded }, map[string]float64{"root": 0, "during": 7, "after": 14, "join": 98}, ""},
		{"no recorded times", strings.Replace(second, `,"recorded_api_time_ms":20`, "", 1), func(s *TraceSpec) { s.Pacing, s.SpawnTrigger = PacingCausal, SpawnCompletion },
			map[string]float64{"root": 0, "during": 7, "after": 14, "join": 98}, "no effect on 1 subagents"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := loadText(test.text, test.change)
			if err != nil {
				t.Fatal(err)
			}
			got := releases(w, func(output int) float64 { return float64(output) })
			for id, ms := range test.want {
				if math.Abs(got[id]-ms) > 1e-9 {
					t.Errorf("%s is released at %v, want %v", id, got[id], ms)
				}
			}
			if text := strings.Join(w.Warnings, "; "); (text == "") != (test.warning == "") || !strings.Contains(text, test.warning) {
				t.Errorf("warnings %q, want %q", text, test.warning)
			}
		})
	}
}

// Every setting that not all formats know is one that some format uses, and the others say that it has no effect.
func TestSettingsWithoutEffect(t *testing.T) {
	all := TraceSpec{BlockSize: 16, Pacing: PacingCausal, SpawnTrigger: SpawnRecorded, JoinDelay: JoinNone, SharedPrefixRatio: 0.5,
		PrefixGroups: 2, CharactersPerToken: 3, DefaultOutputLength: 5, NestedTimestampBasis: NestedAbsolute}
	given := all.given()
	fields := reflect.TypeFor[TraceSpec]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		used := slices.ContainsFunc(traceFormats(), func(f traceFormat) bool { return slices.Contains(f.uses, name) })
		if slices.Contains([]string{"path", "paths", "format", "strict", "salvage"}, name) {
			continue
		}
		if !slices.Contains(given, name) || !used {
			t.Errorf("setting %s: given %v, used by a format %v", name, slices.Contains(given, name), used)
		}
	}
	if names := DefaultTraceSpec().given(); names != nil {
		t.Errorf("nothing is given, but %q", names)
	}
	w, err := loadText("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n", func(s *TraceSpec) { s.BlockSize, s.Pacing = 16, PacingCausal })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"block_size has no effect on a trace of format azure", "pacing has no effect on a trace of format azure"}
	if !slices.Equal(w.Warnings, want) {
		t.Errorf("warnings %q, want %q", w.Warnings, want)
	}
}

// A trace says which requests, sessions, plays and models it has, and what waits for what and why.
func TestAgenticGraph(t *testing.T) {
	row := func(id, play, session, model string, more string) string {
		return fmt.Sprintf(`{"request_id":%q,"play_id":%q,"session_id":%q,"model":%q,"input_length":100,"output_length":2,"hash_ids":[1,2],"output_token_ids":[7,8],"priority":-1,"strict_priority":2,"policy_class":"p","unknown":[1]%s}`, id, play, session, model, more)
	}
	w, err := loadRows(t, FormatAuto, rowsText(agenticHeaderLine,
		row("x", "late", "s1", "large", `,"not_before_ms":5,"source_play_ordinal":1,"recorded_api_time_ms":40`),
		row("y", "early", "s2", "small", `,"not_before_ms":6.5,"source_play_ordinal":0`),
		row("z", "late", "s1", "large", `,"not_before_ms":5,"source_play_ordinal":1,"dependencies":[`+agenticDep("x", "completion", 2.5, "sequence")+`,`+agenticDep("x", "completion", 2.5, "sequence")+`]`),
	), rules.Default)
	if err != nil {
		t.Fatal(err)
	}
	g := w.Graph
	if w.Format != FormatAgenticMooncake || w.BlockSize != 64 || w.Requests() != 3 || w.Sessions() != 2 {
		t.Errorf("%s with blocks of %d: %d requests in %d sessions", w.Format, w.BlockSize, w.Requests(), w.Sessions())
	}
	if want := []string{"early", "late"}; !slices.Equal(g.PlayNames, want) {
		t.Errorf("plays are %q, want %q", g.PlayNames, want)
	}
	for i, want := range []struct {
		id, play, model string
		notBefore       float64
		edges           []Edge
		rank            int32
	}{
		{"x", "late", "large", 0, nil, 0},
		{"z", "late", "large", 0, []Edge{{0, 2.5, OnCompletion, Sequence}, {0, 2.5, OnCompletion, Sequence}}, 2},
		{"y", "early", "small", 1.5, nil, 1},
	} {
		got := []any{w.ID(i), g.PlayNames[g.Play[i]], g.ModelNames[g.Model[i]], g.NotBeforeMs[i], g.Rank[i]}
		if !slices.Equal(got, []any{want.id, want.play, want.model, want.notBefore, want.rank}) || !slices.Equal(g.Edges(int32(i)), want.edges) {
			t.Errorf("request %d is %v with edges %v, want %+v", i, got, g.Edges(int32(i)), want)
		}
		if w.Hints(i) != (Hints{-1, 2, "p"}) || !slices.Equal(w.PlannedOutput(i), []uint32{7, 8}) || !slices.Equal(w.Hashes(i), []uint64{1, 2}) {
			t.Errorf("request %d has hints %v, output %v and ids %v", i, w.Hints(i), w.PlannedOutput(i), w.Hashes(i))
		}
	}
	if g.RecordedStartMs[0] != 5 || g.RecordedEndMs[0] != 45 || !math.IsNaN(g.RecordedEndMs[1]) {
		t.Errorf("recorded from %v to %v", g.RecordedStartMs, g.RecordedEndMs)
	}
}

// Everything that a dependency or a floor says counts in the digest; names do not.
func TestAgenticDigest(t *testing.T) {
	digest := func(replace ...string) string {
		text := rowsText(agenticHeaderLine, agenticRow2("a", "p", `,"not_before_ms":0`), agenticRow2("b", "p", `,"not_before_ms":3,"dependencies":[`+agenticDep("a", "completion", 5, "spawn")+`]`))
		w, err := loadRows(t, FormatAgenticMooncake, strings.NewReplacer(replace...).Replace(text), rules.Default)
		if err != nil {
			t.Fatal(err)
		}
		return w.Digest()
	}
	plain := digest()
	for _, change := range [][]string{{`"completion"`, `"dispatch"`}, {`"delay_ms":5`, `"delay_ms":6`}, {`"spawn"`, `"join"`}, {`"not_before_ms":3`, `"not_before_ms":4`}} {
		if digest(change...) == plain {
			t.Errorf("the digest is the same with %q", change)
		}
	}
	if digest(`"a"`, `"aa"`) != plain {
		t.Error("the digest depends on a name")
	}
}

func TestAgenticErrors(t *testing.T) {
	nb := `,"not_before_ms":0`
	good := agenticRow2("a1", "pA", nb)
	dep := func(of string) string { return nb + `,"dependencies":[` + of + `]` }
	header := func(old, new string) string { return strings.Replace(agenticHeaderLine, old, new, 1) }
	v1 := func(more string) string { return `{"output_length":3,"hash_ids":[1]` + more + `}` }
	for _, test := range []struct{ name, text, want string }{
		{"version", rowsText(header(`:2`, `:3`), good), `-:1: version is 3: this version is not supported; expected 2`},
		{"schema", rowsText(header(`agentic_mooncake`, `other`), good), `-:1: schema is "dynamo.other": must be "dynamo.agentic_mooncake"`},
		{"scope", rowsText(header(`local`, `global`), good), `-:1: hash_id_scope is "global": must be "local"`},
		{"block size", rowsText(header(`64`, `0`), good), `-:1: block_size is 0: must be from 1 to`},
		{"digest", rowsText(header(`"d0"`, `""`), good), `-:1: source: needs a format and a digest`},
		{"no rows", rowsText(agenticHeaderLine), `did not contain any requests`},
		{"nothing", "\n", `did not contain any requests`},
		{"number of ids", rowsText(agenticHeaderLine, strings.Replace(good, `[1]`, `[1,2]`, 1)), `-:2: hash_ids: has 2 ids; an input_length of 64 needs exactly 1, of 64 tokens each`},
		{"no ids", rowsText(agenticHeaderLine, strings.Replace(good, `[1]`, `[]`, 1)), `-:2: hash_ids`},
		{"no input", rowsText(agenticHeaderLine, strings.Replace(good, `"input_length":64`, `"input_length":0`, 1)), `-:2: input_length is 0: must be positive`},
		{"planned output", rowsText(agenticHeaderLine, agenticRow2("a", "p", nb+`,"output_token_ids":[1,2]`)), `-:2: output_length is 4: does not match output_token_ids, which has 2 tokens`},
		{"no model", rowsText(agenticHeaderLine, strings.Replace(good, `"m"`, `" "`, 1)), `-:2: model: is empty`},
		{"no floor", rowsText(agenticHeaderLine, agenticRow2("a1", "pA", "")), `-:2: not_before_ms: is missing`},
		{"negative floor", rowsText(agenticHeaderLine, agenticRow2("a1", "pA", `,"not_before_ms":-5`)), `-:2: not_before_ms is -5: must be from 0`},
		{"twice", rowsText(agenticHeaderLine, good, good), `-:3: request_id is "a1": line 2 has it too`},
		{"self", rowsText(agenticHeaderLine, agenticRow2("a1", "pA", dep(agenticDep("a1", "completion", 0, "join")))), `-:2: dependencies.request_id is "a1": a request cannot wait for itself`},
		{"unknown", rowsText(agenticHeaderLine, agenticRow2("a1", "pA", dep(agenticDep("nope", "completion", 0, "join")))), `-:2: dependencies.request_id is "nope": no request of the trace has this id`},
		{"other play", rowsText(agenticHeaderLine, good, agenticRow2("z1", "pB", dep(agenticDep("a1", "completion", 0, "join")))), `-:3: dependencies.request_id is "a1": it is of play pA, and this request of play pB`},
		{"dispatch", rowsText(agenticHeaderLine, good, agenticRow2("a2", "pA", dep(agenticDep("a1", "dispatch", 0, "sequence")))), `-:3: dependencies.trigger is "dispatch": only the relation spawn may have it, not sequence`},
		{"trigger", rowsText(agenticHeaderLine, good, agenticRow2("a2", "pA", dep(agenticDep("a1", "start", 0, "spawn")))), `-:3: dependencies.trigger is "start": use dispatch or completion`},
		{"relation", rowsText(agenticHeaderLine, good, agenticRow2("a2", "pA", dep(agenticDep("a1", "completion", 0, "wait")))), `-:3: dependencies.relation is "wait": use`},
		{"negative delay", rowsText(agenticHeaderLine, good, agenticRow2("a2", "pA", dep(agenticDep("a1", "completion", -1, "join")))), `-:3: dependencies.delay_ms is -1: must be from 0`},
		{"incomplete dependency", rowsText(agenticHeaderLine, good, agenticRow2("a2", "pA", dep(`{"request_id":"a1"}`))), `-:3: dependencies.trigger: is missing`},
		{"cycle", rowsText(agenticHeaderLine, agenticRow2("a", "p", dep(agenticDep("b", "completion", 0, "join"))), agenticRow2("b", "p", dep(agenticDep("a", "completion", 0, "join"))), agenticRow2("c", "p", nb)),
			`cycle detected among 2 requests, which wait for each other: a, b`},
		{"ordinal of some", rowsText(agenticHeaderLine, agenticRow2("a", "p", nb+`,"source_play_ordinal":0`), agenticRow2("b", "q", nb)), `source_play_ordinal is given for 1 of 2 plays`},
		{"ordinals of a play", rowsText(agenticHeaderLine, agenticRow2("a", "p", nb+`,"source_play_ordinal":0`), agenticRow2("b", "p", nb)), `-:3: source_play_ordinal is none: differs from the 0 of earlier rows of play p`},
		{"gap of ordinals", rowsText(agenticHeaderLine, agenticRow2("a", "p", nb+`,"source_play_ordinal":0`), agenticRow2("b", "q", nb+`,"source_play_ordinal":2`)), `expected 1, found 2`},

		{"first: no id", rowsText(v1("")), `-:1: request_id: is missing`},
		{"first: blank id", rowsText(v1(`,"request_id":" "`)), `-:1: request_id: is empty`},
		{"first: negative timestamp", rowsText(v1(`,"request_id":"a","timestamp":-1`)), `-:1: timestamp is -1: must be from 0`},
		{"first: negative delay", rowsText(v1(`,"request_id":"a","delay":-1`)), `-:1: delay is -1: must be from 0`},
		{"first: negative tool wait", rowsText(v1(`,"request_id":"a","tool_wait_ms":-5`)), `-:1: tool_wait_ms is -5: must be from 0`},
		{"first: both delays", rowsText(v1(`,"request_id":"a","delay":1,"delay_ms":1`)), `-:1: delay_ms: is given twice`},
		{"first: self", rowsText(v1(`,"request_id":"a","wait_for":["a"]`)), `-:1: wait_for is "a": a request cannot wait for itself`},
		{"first: unknown", rowsText(v1(`,"request_id":"a","wait_for":["zz"]`)), `-:1: wait_for is "zz": no request of the trace has this id`},
		{"first: too long", rowsText(v1(`,"request_id":"a","input_length":5000`)), `-:1: input_length is 5000: exceeds the 512 tokens that 1 hash_ids of 512 tokens cover`},
		{"first: a cycle of many", func() string {
			var rows []string
			for i := range 12 {
				rows = append(rows, v1(fmt.Sprintf(`,"request_id":"r%d","wait_for":["r%d"]`, i, (i+1)%12)))
			}
			return rowsText(rows...)
		}(), `cycle detected among 12 requests, which wait for each other: r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, …`},
		{"first: many problems", rowsText(slices.Repeat([]string{v1("")}, 25)...), `and 5 more bad lines`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := loadRows(t, FormatAgenticMooncake, test.text, rules.Default)
			if err == nil || w != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A branch that nobody takes is worth a word.
func TestAgenticWarnings(t *testing.T) {
	w, err := loadRows(t, FormatAgenticMooncake, `{"request_id":"a","output_length":1,"hash_ids":[1],"branches":["b"]}`, rules.Default)
	if err != nil || len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], "-:1: branches names request \"b\"") {
		t.Errorf("warnings %q, error %v", w.Warnings, err)
	}
}

func FuzzAgentic(f *testing.F) {
	f.Add([]byte(rowsText(agenticHeaderLine, agenticRow2("a", "p", `,"not_before_ms":0,"source_play_ordinal":0`), agenticRow2("b", "p", `,"not_before_ms":1e3,"source_play_ordinal":0,"dependencies":[`+agenticDep("a", "dispatch", 1, "spawn")+`]`))))
	f.Add([]byte(rowsText(`{"request_id":"a","output_length":0,"hash_ids":[18446744073709551615],"branches":["q"]}`, `{"request_id":"b","output_length":3,"output_token_ids":[1,2,3],"hash_ids":[1,2],"input_length":520,"wait_for":["a","a"],"tool_wait_ms":0.5,"delay":1e15}`)))
	for _, row := range []string{`{"schema":1}`, `{"schema":"dynamo.agentic_mooncake","source":[]}`, `{"request_id":null,"wait_for":{}}`, `{"wait_for":[1]}`, `{"dependencies":[[]]}`, `{"request_id":"a","wait_for":["b"`} {
		f.Add([]byte(row))
		f.Add([]byte(rowsText(agenticHeaderLine, row)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, compat := range []rules.Compat{rules.Default, rules.Dynamo13} {
			w, err := loadRows(t, FormatAgenticMooncake, string(data), compat)
			if err == nil {
				checkWorkload(t, w)
				checkGraph(t, w)
			} else if w != nil || err.Error() == "" {
				t.Errorf("a workload comes with the error %q", err)
			}
		}
		checkReadings(t, FormatAgenticMooncake, data, func(w *Workload) { checkWorkload(t, w); checkGraph(t, w) })
	})
}

// checkGraph checks that every request can be released, and that what says so is in range.
func checkGraph(t *testing.T, w *Workload) {
	t.Helper()
	g := w.Graph
	for id, at := range releases(w, func(int) float64 { return 0 }) {
		if !(at >= 0) || math.IsInf(at, 0) {
			t.Errorf("request %s is released at %v", id, at)
		}
	}
	for i := range w.Requests() {
		for _, e := range g.Edges(int32(i)) {
			if g.Play[e.From] != g.Play[i] || !(e.DelayMs >= 0) || !slices.ContainsFunc(g.Dependants(e.From), func(d Edge) bool { return d.From == int32(i) }) {
				t.Errorf("request %d has the edge %+v", i, e)
			}
		}
	}
}

// BenchmarkLoadAgentic reads a graph of 20,000 requests with 40 ids each.
func BenchmarkLoadAgentic(b *testing.B) {
	var text bytes.Buffer
	fmt.Fprintln(&text, agenticHeaderLine)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		play, turn := i/20, i%20
		deps := ""
		if turn > 0 {
			deps = agenticDep(fmt.Sprint("r", i-1), "completion", 10.5, "sequence")
		}
		ids := make([]string, 40)
		for k := range ids {
			ids[k] = fmt.Sprint(play*1000 + k + random.IntN(2))
		}
		fmt.Fprintf(&text, `{"request_id":"r%d","play_id":"p%d","session_id":"s%d","model":"m","input_length":2560,"output_length":100,"hash_ids":[%s],"not_before_ms":0,"dependencies":[%s]}`+"\n",
			i, play, play, strings.Join(ids, ","), deps)
	}
	spec := DefaultTraceSpec()
	spec.Path, spec.Format = "-", FormatAgenticMooncake
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Spec{Trace: &spec}).Load(context.Background(), Source{Stdin: bytes.NewReader(text.Bytes())}); err != nil {
			b.Fatal(err)
		}
	}
}

// Requests that are released at one instant go in the order of their ids, as the newest peer's do (runs of random graphs), and under
// the reference's rules in that of rows or recorded times. A play without a name has that of its root that starts first.
func TestTies(t *testing.T) {
	v1 := func(id, more string) string {
		return fmt.Sprintf(`{"request_id":%q,"output_length":1,"hash_ids":[1]%s}`, id, more)
	}
	first := rowsText(v1("c", `,"wait_for":["b"]`), v1("b", `,"timestamp":20`), v1("z", `,"timestamp":10`), v1("a", `,"wait_for":["z","b"]`), v1("d", ""))
	second := rowsText(agenticHeaderLine, agenticRow2("r9", "p", `,"not_before_ms":0`), agenticRow2("r10", "q", `,"not_before_ms":0`), agenticRow2("a", "q", `,"not_before_ms":0`))
	dynamo := func(id, session string, start, end int) string {
		return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":%d,"agent_context":{"session_id":%q},"request":{"request_id":%q,"output_tokens":1,"request_received_ms":%d,"replay":{"trace_block_size":64,"input_length":64,"input_sequence_hashes":[1]}}}`, end, session, id, start)
	}
	capture := rowsText(dynamo("y", "s", 100, 150), dynamo("x", "t", 100, 200), dynamo("w", "s", 160, 170))
	weka := `{"id":"t","block_size":64,"hash_id_scope":"local","requests":[` + strings.Join(slices.Repeat([]string{`{"t":0,"type":"n","model":"m","in":64,"out":1,"hash_ids":[1]}`}, 11), ",") + "]}"
	for _, test := range []struct {
		name, format, text string
		compat             rules.Compat
		order, plays       string
	}{
		{"version 1", FormatAgenticMooncake, first, rules.Default, "a b c d z", "legacy-play:d legacy-play:z"},
		{"version 1, reference", FormatAgenticMooncake, first, rules.Dynamo13, "c b z a d", "legacy-play:d legacy-play:z"},
		{"version 2", FormatAgenticMooncake, second, rules.Default, "a r10 r9", "p q"},
		{"capture", FormatDynamo, capture, rules.Default, "w x y", "dynamo-play:x dynamo-play:y"},
		{"capture, reference", FormatDynamo, capture, rules.Dynamo13, "y x w", "dynamo-play:x dynamo-play:y"},
		{"weka", FormatWeka, weka, rules.Default, "outer:0 outer:1 outer:10 outer:2 outer:3 outer:4 outer:5 outer:6 outer:7 outer:8 outer:9", "t"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := loadRows(t, test.format, test.text, test.compat)
			if err != nil {
				t.Fatal(err)
			}
			ids := make([]string, w.Requests())
			for i := range ids {
				ids[w.Graph.Rank[i]] = w.ID(i)
			}
			if got := strings.Join(ids, " "); got != test.order {
				t.Errorf("ties go in the order %s, want %s", got, test.order)
			}
			if got := strings.Join(w.Graph.PlayNames, " "); got != test.plays {
				t.Errorf("plays are %s, want %s", got, test.plays)
			}
		})
	}
}
