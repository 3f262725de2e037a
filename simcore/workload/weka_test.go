package workload

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func wekaSpec(files ...string) TraceSpec {
	s := DefaultTraceSpec()
	s.Format = FormatWeka
	for _, file := range files {
		s.Paths = append(s.Paths, filepath.Join("testdata/weka", file))
	}
	return s
}

// wekaText writes a trace whose requests are given.
func wekaText(id, scope string, requests ...string) string {
	return fmt.Sprintf(`{"id":%q,"models":["m"],"block_size":64,"hash_id_scope":%q,"tool_tokens":0,"system_tokens":0,"requests":[%s]}`+"\n", id, scope, strings.Join(requests, ","))
}

// wekaRow writes a request of so many whole blocks.
func wekaRow(t, api float64, ids ...int) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = fmt.Sprint(id)
	}
	return fmt.Sprintf(`{"t":%v,"type":"s","model":"m","in":%d,"out":2,"hash_ids":[%s],"api_time":%v}`, t, max(1, 64*len(ids)), strings.Join(list, ","), api)
}

func wekaSub(t float64, agent string, durationMs int, requests ...string) string {
	return fmt.Sprintf(`{"t":%v,"type":"subagent","agent_id":%q,"duration_ms":%d,"requests":[%s]}`, t, agent, durationMs, strings.Join(requests, ","))
}

func wekaFile(t *testing.T, texts ...string) TraceSpec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, []byte(strings.Join(texts, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := DefaultTraceSpec()
	s.Path, s.Format = path, FormatWeka
	return s
}

// Column "ours" of spec/workloads.md §1.6, and what the section on differences between its readers says.
func TestWekaVariants(t *testing.T) {
	for _, test := range []struct {
		file     string
		requests int // 0: refused
		text     string
	}{
		{"tiny.json", 6, ""},
		{"v_unkkey.json", 6, `is no key of the format; it is passed over`},
		{"v_global.json", 6, ""},
		{"v_orphan.json", 0, `requests[0]: agent_id is "agent_001": the subagent comes before any request of the main agent`},
		{"v_in0.json", 0, "requests[3]: in is 0: must be from 1"},
		{"v_empty.json", 0, `requests: trace "tiny-weka" has no request of its main agent`},
		{"v_out0.json", 6, ""},
		{"v_nohash.json", 6, ""},
		{"v_fewhash.json", 6, ""},
		{"v_manyhash.json", 6, "go on after the end of a prompt"},
		{"v_ceilhash.json", 6, ""},
		{"v_noapi.json", 6, ""},
		{"v_dupagent.json", 6, ""},
		{"v_nested.json", 0, `requests[1]: requests[2]: `},
		{"v_unsorted.json", 6, "its requests are not in order of t"},
		{"v_rel.json", 6, ""},
	} {
		w, err := loadTrace(t, wekaSpec(test.file), "")
		switch {
		case test.requests == 0:
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s:\n got %v\nwant %s", test.file, err, test.text)
			}
		case err != nil:
			t.Errorf("%s: %v", test.file, err)
		default:
			warnings := strings.Join(w.Warnings, "\n")
			if w.Requests() != test.requests || !strings.Contains(warnings, test.text) || test.text == "" && warnings != "" {
				t.Errorf("%s: %d requests, warns %q, want %q", test.file, w.Requests(), warnings, test.text)
			}
		}
	}
}

func TestWekaProblems(t *testing.T) {
	ok := wekaRow(0, 1, 1, 2)
	for _, test := range []struct{ text, want string }{
		{`[1]`, `:1: is not a JSON object: it has '[' where '{' belongs`},
		{wekaText("", "local", ok), `:1: id: is missing or empty`},
		{wekaText("a", "world", ok), `:1: hash_id_scope is "world": use local or global`},
		{strings.Replace(wekaText("a", "local", ok), `"block_size":64,`, "", 1), `block_size is 0: must be from 1`},
		{strings.Replace(wekaText("a", "local", ok), `"requests"`, `"asks"`, 1), `requests: is missing`},
		{strings.Replace(wekaText("a", "local", ok), `:[{`, `:{"b":[{`, 1), `must be a list`},
		{wekaText("a", "local", ok, `{"type":"s","in":1,"out":1}`), `requests[1]: t: is missing`},
		{wekaText("a", "local", ok, `{"t":1,"type":"s","out":1}`), `requests[1]: in: is missing`},
		{wekaText("a", "local", ok, `{"t":1,"type":"s","in":1}`), `requests[1]: out: is missing`},
		{wekaText("a", "local", ok, `{"t":-1,"type":"s","in":1,"out":1}`), `requests[1]: t is -1: must be from 0`},
		{wekaText("a", "local", ok, `{"t":1,"in":1,"out":1}`), `requests[1]: type: is missing`},
		{wekaText("a", "local", ok, `{"t":1,"type":"x","in":1,"out":1}`), `requests[1]: type is "x": use n, s or subagent`},
		{wekaText("a", "local", ok, `{"t":1,"type":"s","in":1,"out":1,"requests":[]}`), `requests[1]: requests: only a subagent has`},
		{wekaText("a", "local", ok, wekaSub(1, "k", 5, `{"type":"s","in":1,"out":1}`)), `requests[1]: requests[0]: t: is missing`},
		{wekaText("a", "local", ok, wekaSub(1, "k", 5, wekaSub(1, "g", 5))), `requests[1]: requests[0]: requests: a subagent within a subagent`},
		{wekaText("a", "local", ok, wekaSub(1, "k", 5), wekaRow(9, 1, 1, 2, 3)), `waits for subagent "k", which has no requests`},
		{wekaText("a", "local", ok, `{"t":1,"t":2}`), `requests[1]: t: is given twice`},
		{wekaText("a", "local", ok, `{"t":"1"}`), `requests[1]: t is "1": must be a number`},
		{wekaText("a", "local", ok)[:60], `is not a JSON object: the file ends within it`},
		{wekaText("a", "local", ok) + "x", `:2: is not a JSON object: it has 'x' where '{' belongs`},
		{wekaText("a", "local", ok) + strings.Replace(wekaText("b", "local", ok), ":64", ":32", 1), `:2: block_size is 32: differs from the 64 of`},
		{"", "did not contain any traces"},
	} {
		_, err := loadTrace(t, wekaFile(t, test.text), "")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.100s:\n got %v\nwant %s", test.text, err, test.want)
		}
	}
	spec := wekaFile(t, wekaText("a", "local", ok))
	spec.BlockSize = 128
	if _, err := loadTrace(t, spec, ""); err == nil || !strings.Contains(err.Error(), "does not match the block size 128") {
		t.Errorf("another block size gives %v", err)
	}
}

// Files of a folder come in order of their paths, whatever the ids in them; links are refused, and other files passed over.
func TestWekaFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"1.json":       wekaText("z", "local", wekaRow(0, 1, 1, 2)),
		"2.json":       wekaText("a", "local", wekaRow(0, 1, 1, 2)),
		"deep/3.jsonl": wekaText("a", "local", wekaRow(0, 1, 1, 2)) + "\n" + wekaText("b", "local", wekaRow(0, 1, 1, 2)),
		"notes.txt":    "no trace",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := DefaultTraceSpec()
	spec.Path = dir
	w, err := loadTrace(t, spec, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.Graph.PlayNames, ", "); got != "z, a, a (2), b" || w.Format != FormatWeka {
		t.Errorf("plays %s of format %s", got, w.Format)
	}
	if shared := sharedBlocks(t, w); shared != 0 {
		t.Errorf("traces with local ids share %d blocks", shared)
	}
	if err := os.Symlink(filepath.Join(dir, "1.json"), filepath.Join(dir, "9.json")); err != nil {
		t.Skip("no links here")
	}
	if _, err := loadTrace(t, spec, ""); err == nil || !strings.Contains(err.Error(), "9.json is a symbolic link") {
		t.Errorf("a link gives %v", err)
	}
}

func TestWekaScopes(t *testing.T) {
	for scope, want := range map[string]int{"local": 0, "global": 2} {
		w, err := loadTrace(t, wekaFile(t, wekaText("a", scope, wekaRow(0, 1, 1, 2)), wekaText("b", scope, wekaRow(0, 1, 1, 2, 3))), "")
		if err != nil {
			t.Fatal(err)
		}
		if shared := sharedBlocks(t, w); shared != want {
			t.Errorf("%s ids: %d blocks are shared, want %d", scope, shared, want)
		}
	}
}

// The order of a trace's keys, and how it is laid out in lines, do not count.
func TestWekaLayout(t *testing.T) {
	one, err := loadTrace(t, wekaFile(t, wekaText("a", "local", wekaRow(0, 1, 1, 2), wekaRow(3, 1, 1, 2, 3))), "")
	if err != nil {
		t.Fatal(err)
	}
	text := "\n{\n \"requests\" : [\n" + wekaRow(0, 1, 1, 2) + ",\n\n" + wekaRow(3, 1, 1, 2, 3) + " ] ,\n \"hash_id_scope\": \"local\", \"block_size\" : 64,\n\"id\":\"a\"}"
	other, err := loadTrace(t, wekaFile(t, text), "")
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() != other.Digest() {
		t.Error("another layout is another workload")
	}
	_, err = loadTrace(t, wekaFile(t, strings.Replace(text, `"in":192`, `"in":0`, 1)), "")
	if err == nil || !strings.Contains(err.Error(), "trace.json:6: requests[1]: in is 0") {
		t.Errorf("a problem in line 6 is told as %v", err)
	}
}

// Times of subagents' requests count from their marker in some corpora and from the trace's start in others; the whole
// corpus decides, users may, and the least difference of binary fractions does not (dynamo#14355, aiperf#1396).
func TestNestedClockOfWeka(t *testing.T) {
	trace := func(id string, inner float64) string {
		return wekaText(id, "local", wekaRow(0, .5, 1), wekaSub(.8, "k", 700, wekaRow(inner, .3, 50)), wekaRow(5, .5, 1, 2))
	}
	for _, test := range []struct {
		name  string
		texts []string
		basis string
		want  float64 // the subagent's request of the first trace
	}{
		{"absolute", []string{trace("a", .9)}, "", 900},
		{"relative", []string{trace("a", .1)}, "", 900},
		{"another trace shows it", []string{trace("a", .9), trace("b", .1)}, "", 1700},
		{"forced relative", []string{trace("a", .9)}, NestedRelative, 1700},
		{"forced absolute", []string{trace("a", .1)}, NestedAbsolute, 100},
		{"auto", []string{trace("a", .1)}, NestedAuto, 900},
		{"a hair before the marker", []string{trace("a", .7999999)}, "", 799.9999},
	} {
		spec := wekaFile(t, test.texts...)
		spec.NestedTimestampBasis = test.basis
		w, err := loadTrace(t, spec, "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.Requests() {
			if w.ID(i) == "outer:1:inner:0" && w.Graph.PlayNames[w.Graph.Play[i]] == "a" && w.Graph.RecordedStartMs[i] != test.want {
				t.Errorf("%s: starts at %v ms, want %v", test.name, w.Graph.RecordedStartMs[i], test.want)
			}
		}
	}
}

// Settings of pacing, spawns and joins on the example of the specification (§2.4), with 1 ms a token.
func TestWekaSettings(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*TraceSpec)
		want   string
	}{
		{"floors", nil, "outer:0 0, outer:1:inner:0 900, outer:2:inner:0 950, outer:1:inner:1 1600, outer:3 2300, outer:4 9000"},
		{"causal", func(s *TraceSpec) { s.Pacing = PacingCausal }, "outer:0 0, outer:1:inner:0 420, outer:2:inner:0 470, outer:1:inner:1 828, outer:3 1820, outer:4 7932"},
		{"spawn at dispatch", func(s *TraceSpec) { s.Pacing, s.SpawnTrigger = PacingCausal, SpawnDispatch }, "outer:0 0, outer:1:inner:0 900, outer:2:inner:0 950, outer:1:inner:1 1308, outer:3 1906, outer:4 8018"},
		{"no join delay", func(s *TraceSpec) { s.Pacing, s.JoinDelay = PacingCausal, JoinNone }, "outer:0 0, outer:1:inner:0 420, outer:2:inner:0 470, outer:1:inner:1 828, outer:3 1820, outer:4 7932"},
	} {
		spec := wekaSpec("tiny.json")
		if test.change != nil {
			test.change(&spec)
		}
		w, err := loadTrace(t, spec, "")
		if err != nil {
			t.Fatal(err)
		}
		got := releases(w, func(output int) float64 { return float64(output) })
		for _, item := range strings.Split(test.want, ", ") {
			id, ms, _ := strings.Cut(item, " ")
			if fmt.Sprint(math.Round(got[id]*1e6)/1e6) != ms {
				t.Errorf("%s: %s is released at %v ms, want %s", test.name, id, got[id], ms)
			}
		}
	}
}

// Whatever cuts a stream into reads, its values come out whole.
func TestJSONStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var values []string
		for range rapid.IntRange(0, 5).Draw(t, "values") {
			values = append(values, rapid.SampledFrom([]string{`1`, `-2.5e3`, `true`, `null`, `"a\"]}\\"`, `[]`, `{}`, `[1,[2,{"a":"]"}]]`, `{"k":["}",{"x":[]}]}`, "[ 1 ,\n2 ]"}).Draw(t, "value"))
		}
		space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
		text := "[" + strings.Join(values, space+","+space) + space + "]"
		var got []string
		stream := newJSONStream(oneByteReader{strings.NewReader(text), rapid.IntRange(1, 7).Draw(t, "size")})
		_, err := stream.list(func() error {
			raw, err := stream.value()
			got = append(got, string(raw))
			return err
		})
		if err != nil || strings.Join(got, "|") != strings.Join(values, "|") || stream.line != 1+strings.Count(text, "\n") {
			t.Fatalf("%s came back as %q, line %d, %v", text, got, stream.line, err)
		}
	})
}

// oneByteReader reads so many bytes at a time.
type oneByteReader struct {
	r    *strings.Reader
	size int
}

func (r oneByteReader) Read(p []byte) (int, error) { return r.r.Read(p[:min(len(p), r.size)]) }

func FuzzWeka(f *testing.F) {
	files, err := filepath.Glob("testdata/weka/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(wekaText("a", "global", wekaRow(0, 5), wekaRow(2, 1, 1), wekaSub(3, "k", 1, wekaRow(1, 1), wekaRow(1, 1, 7)), wekaRow(9, 1, 1, 2))))
	f.Fuzz(func(t *testing.T, data []byte) {
		load := func(change func(*TraceSpec)) (*Workload, error) {
			s := DefaultTraceSpec()
			s.Path, s.Format = "-", FormatWeka
			if change != nil {
				change(&s)
			}
			w, err := Spec{Trace: &s}.Load(context.Background(), Source{Stdin: bytes.NewReader(data)})
			if err == nil {
				checkWorkload(t, w)
				checkCapturedGraph(t, w)
			}
			return w, err
		}
		floored, err := load(nil)
		causal, causalErr := load(func(s *TraceSpec) {
			s.Pacing, s.SpawnTrigger, s.JoinDelay, s.NestedTimestampBasis = PacingCausal, SpawnCompletion, JoinNone, NestedRelative
		})
		if (err == nil) != (causalErr == nil) && !strings.Contains(fmt.Sprint(err, causalErr), "which has no requests") {
			t.Errorf("pacing decides what is accepted: %v, %v", err, causalErr)
		}
		if err == nil && causalErr == nil && floored.Requests() != causal.Requests() {
			t.Errorf("%d requests with floors, %d without", floored.Requests(), causal.Requests())
		}
		checkReadings(t, FormatWeka, data, func(w *Workload) { checkWorkload(t, w); checkCapturedGraph(t, w) })
	})
}

// BenchmarkLoadWeka reads a conversation of 2,000 turns with up to 2,000 blocks.
func BenchmarkLoadWeka(b *testing.B) {
	rows := make([]string, 2000)
	for i := range rows {
		ids := make([]int, i+1)
		for k := range ids {
			ids[k] = k + 1
		}
		rows[i] = wekaRow(float64(i), .5, ids...)
	}
	text := wekaText("long", "local", rows...)
	spec := DefaultTraceSpec()
	spec.Path, spec.Format = "-", FormatWeka
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Spec{Trace: &spec}).Load(context.Background(), Source{Stdin: strings.NewReader(text)}); err != nil {
			b.Fatal(err)
		}
	}
}

// Which request follows which, in cases that only runs of the newest peer could tell.
func TestWekaStreams(t *testing.T) {
	for _, test := range []struct {
		name string
		rows []string
		want string // what the last request waits for
	}{
		{"a first request alone is a preamble, even if it ran on", []string{wekaRow(0, 1, 1), wekaRow(.5, 1.5, 9)}, "outer:0 completion 0 sequence"},
		{"a first request that comes back is none", []string{wekaRow(0, 1, 1), wekaRow(4, 1, 1, 10), wekaRow(4.5, 1.5, 9)}, "outer:0 completion 0 replay_barrier"},
		{"of equals, one that has ended", []string{wekaRow(0, 1, 1, 2), wekaRow(.5, 5, 1, 3), wekaRow(3, 1, 1)}, "outer:0 completion 2000 sequence"},
		{"of equals that ended, the first", []string{wekaRow(0, 5, 1, 2, 3), wekaRow(2, 1, 1, 2, 3), wekaRow(7, 1, 1, 2, 3, 4)}, "outer:0 completion 2000 sequence, outer:1 completion 0 replay_barrier"},
		{"of equals that go on, the first", []string{wekaRow(0, 9, 1, 2), wekaRow(1, 8, 1, 3), wekaRow(4, 1, 1, 4)}, "outer:0 dispatch 4000 spawn"},
		{"of equals, the longer one", []string{wekaRow(0, 7, 1, 2), wekaRow(.5, 5.5, 1, 3), wekaRow(.7, 3.3, 1, 4, 5), wekaRow(5, 4, 1, 6), wekaRow(10, 1, 1, 4, 5, 6), wekaRow(5, .5, 1, 7)}, "outer:2 completion 1000 spawn"},
		{"a prompt that was cut down goes on with the stream that ends", []string{wekaRow(0, 1, 1, 2), wekaRow(2, 1, 1, 3)}, "outer:0 completion 1000 sequence"},
		{"and is a fork of one that goes on", []string{wekaRow(0, 1, 1, 2), wekaRow(3, 1, 1, 2, 4), wekaRow(2, .5, 1, 3)}, "outer:0 completion 1000 spawn"},
		{"or of its new end, if that comes before", []string{wekaRow(0, 1, 1, 2), wekaRow(2, 1, 1, 3), wekaRow(4, 1, 1, 3, 4), wekaRow(6.5, 1.5, 1, 3, 6), wekaRow(6, 1, 1, 5)}, "outer:2 completion 1000 spawn"},
		{"not of another model", []string{wekaRow(0, 1, 1, 2), strings.Replace(wekaRow(2, 1, 1, 2, 3), `"m"`, `"n"`, 1)}, "outer:0 completion 1000 spawn"},
		{"not after more than an hour with less than half of it", []string{wekaRow(0, 1, 1, 2, 3, 4), wekaRow(3700, 1, 1, 5)}, "outer:0 completion 3.699e+06 spawn"},
		{"after an hour with half of it", []string{wekaRow(0, 1, 1, 2, 3, 4), wekaRow(3700, 1, 1, 2, 5)}, "outer:0 completion 3.699e+06 sequence"},
		{"ids of blocks that are not whole count", []string{strings.Replace(wekaRow(0, 1, 1, 2), `"in":128`, `"in":100`, 1), wekaRow(4, 1, 1, 2, 6), wekaRow(2, 1, 1, 3)}, "outer:0 completion 1000 spawn"},
		{"joins wait for the last request of a stream", []string{wekaRow(0, 1, 1), wekaSub(2, "k", 6000, wekaRow(2, 1, 10, 11), wekaRow(4, 3, 10, 12), wekaRow(4.5, .5, 10, 13)), wekaRow(9, 1, 1, 2)},
			"outer:0 completion 8000 sequence, outer:1:inner:1 completion 2000 join, outer:1:inner:2 completion 4000 join"},
		{"no barrier for one that starts at the same time", []string{wekaRow(0, 1, 1), wekaRow(2, 0, 1, 2), wekaRow(2, 1, 9)}, "outer:0 completion 0 replay_barrier"},
		{"joins wait for every stream of a subagent", []string{wekaRow(0, 1, 1), wekaSub(1, "k", 3000, wekaRow(1, 2, 50), wekaRow(2, .5, 50, 60), wekaRow(2, .25, 70)), wekaRow(7, 1, 1, 2)},
			"outer:0 completion 6000 sequence, outer:1:inner:0 completion 4000 join, outer:1:inner:1 completion 4500 join, outer:1:inner:2 completion 4750 join"},
	} {
		w, err := loadTrace(t, wekaFile(t, wekaText("a", "local", test.rows...)), "")
		if err != nil {
			t.Fatal(err)
		}
		last := int32(0)
		for i := range w.Requests() {
			if w.ID(i) == fmt.Sprintf("outer:%d", len(test.rows)-1) {
				last = int32(i)
			}
		}
		var got []string
		for _, e := range w.Graph.Edges(last) {
			got = append(got, fmt.Sprintf("%s %s %v %s", w.ID(int(e.From)), e.Trigger, e.DelayMs, e.Relation))
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, text, test.want)
		}
	}
}
