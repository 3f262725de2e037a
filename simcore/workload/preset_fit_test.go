package workload

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "rewrite testdata and the tables of docs/workloads.md")

// traceStatistics holds the statistics of the real traces, measured where those are.
const traceStatistics = "testdata/trace_statistics.json"

// presetFit says what a preset is compared with.
type presetFit struct {
	preset string
	trace  string // its name in the document
	seeds  int    // the preset's figures are the mean over so many seeds
	cache  []int  // sizes in blocks of the LRU caches
	rows   []fitRow
	load   func(t *testing.T, shared string) *Workload // nil: figures are published only
}

// fitRow is a figure of a preset and its trace.
type fitRow struct {
	name     string
	get      func(Statistics) float64
	digits   int
	relative float64 // allowed difference as a share of the trace's figure
	absolute float64 // or in units of the figure, whichever is larger; both 0: shown only
}

func fits() []presetFit {
	open := slices.Concat(sizeRows(), arrivalRows(), lengthRows(), reuseRows(1000, 10_000, 50_000))
	return []presetFit{
		{
			preset: PresetChat, trace: "conversation trace", seeds: 4, cache: []int{1000, 10_000, 50_000}, rows: open,
			load: mooncakeTrace("conversation_trace.jsonl"),
		},
		{
			preset: PresetAgentic, trace: "34 coding sessions", seeds: 8, load: codingSessions,
			rows: slices.Concat(sizeRows(), sessionRows(), lengthRows(), reuseRows()),
		},
		{
			preset: PresetToolAgent, trace: "published figures", seeds: 2, cache: []int{1000, 10_000, 50_000}, rows: open,
		},
		{
			preset: PresetLongContext, trace: "synthetic trace", seeds: 24, cache: []int{1000, 10_000, 50_000}, rows: open,
			load: mooncakeTrace("synthetic_trace.jsonl"),
		},
	}
}

func sizeRows() []fitRow {
	return []fitRow{{name: "requests", get: func(s Statistics) float64 { return float64(s.Requests) }, absolute: .5}}
}

func arrivalRows() []fitRow {
	return []fitRow{
		{name: "requests per second", digits: 3, relative: .02, get: func(s Statistics) float64 { return s.Arrivals.Rate }},
		{name: "interval, coefficient of variation", digits: 2, relative: .2, get: func(s Statistics) float64 { return s.Arrivals.IntervalCV }},
		{name: "dispersion in 10 s", digits: 2, relative: .2, get: func(s Statistics) float64 { return s.Arrivals.Dispersion10s }},
		{name: "dispersion in 60 s", digits: 2, relative: .25, get: func(s Statistics) float64 { return s.Arrivals.Dispersion60s }},
	}
}

func sessionRows() []fitRow {
	turns := func(s Statistics) Distribution { return s.Turns }
	delay := func(s Statistics) Distribution { return s.DelayMs }
	return append(distributionRows("turns", turns, .15, 1), distributionRows("pause ms", delay, .1, 0)...)
}

func lengthRows() []fitRow {
	in := func(s Statistics) Distribution { return s.InputTokens }
	out := func(s Statistics) Distribution { return s.OutputTokens }
	return append(distributionRows("input tokens", in, .1, 2), distributionRows("output tokens", out, .1, 2)...)
}

// distributionRows compares mean and percentiles. Pauses have no band beyond p90 and none for the mean, both of
// which are made by the few pauses of several hours; neither has the number of turns at p10.
func distributionRows(name string, of func(Statistics) Distribution, relative, absolute float64) []fitRow {
	row := func(what string, get func(Distribution) float64) fitRow {
		return fitRow{name: name + ", " + what, get: func(s Statistics) float64 { return get(of(s)) }, relative: relative, absolute: absolute}
	}
	rows := []fitRow{
		row("mean", func(d Distribution) float64 { return d.Mean }),
		row("p10", func(d Distribution) float64 { return d.P10 }),
		row("p50", func(d Distribution) float64 { return d.P50 }),
		row("p90", func(d Distribution) float64 { return d.P90 }),
		row("p99", func(d Distribution) float64 { return d.P99 }),
		row("max", func(d Distribution) float64 { return d.Max }),
	}
	free := []int{5}
	switch name {
	case "pause ms":
		free = []int{0, 4, 5}
	case "turns":
		free = []int{1, 5}
	}
	for _, i := range free {
		rows[i].relative, rows[i].absolute = 0, 0
	}
	return rows
}

func reuseRows(cacheBlocks ...int) []fitRow {
	rows := []fitRow{{name: "ideal reuse", digits: 3, absolute: .03, get: func(s Statistics) float64 { return s.Reuse.Ideal }}}
	for i, size := range cacheBlocks {
		rows = append(rows, fitRow{
			name: fmt.Sprintf("LRU hit ratio, %s blocks", figure(float64(size), 0)), digits: 3, absolute: .05,
			get: func(s Statistics) float64 {
				if i >= len(s.Reuse.LRU) {
					return math.NaN()
				}
				return s.Reuse.LRU[i].HitRatio
			},
		})
	}
	return rows
}

// published is what is known of the Mooncake tool-and-agent trace; the rest is NaN.
func published() Statistics {
	none := math.NaN()
	unknown := Distribution{Mean: none, P10: none, P50: none, P90: none, P99: none, Max: none}
	s := Statistics{
		Requests: 23_608, InputTokens: unknown, OutputTokens: unknown,
		Arrivals: &ArrivalStatistics{Rate: 23_608 / 3600., IntervalCV: none, Dispersion10s: none, Dispersion60s: none},
		Reuse:    &ReuseStatistics{Ideal: .59},
	}
	s.InputTokens.Mean, s.OutputTokens.Mean = 8596, 182
	return s
}

// TestPresetFits compares each preset with its trace, in size as the trace is, and keeps the tables of
// docs/workloads.md.
func TestPresetFits(t *testing.T) {
	if testing.Short() {
		t.Skip("draws whole presets and reads whole traces")
	}
	traces := realStatistics(t)
	path := filepath.Join(moduleRoot(t), "docs", "workloads.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	for _, f := range fits() {
		real, ok := traces[f.preset]
		if !ok {
			real = published()
		}
		requests, _ := PresetDefaults(f.preset)
		mean := meanStatistics(t, f)
		longer := Stats(mustGenerate(t, PresetSpec{Name: f.preset, Requests: 4 * requests, Seed: 1}), f.cache...)
		for _, row := range f.rows {
			want, got := row.get(real), row.get(mean)
			if allowed := max(row.relative*math.Abs(want), row.absolute); allowed > 0 && math.Abs(got-want) > allowed {
				t.Errorf("%s: %s is %.4g, the trace's is %.4g; at most %.3g apart is allowed", f.preset, row.name, got, want, allowed)
			}
		}
		document = replaceTable(t, document, f, real, mean, longer)
	}
	if *update {
		if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := gocmp.Diff(string(text), document); diff != "" {
		t.Errorf("docs/workloads.md is out of date; run go test -run TestPresetFits -update (-file +generated):\n%s", diff)
	}
}

// replaceTable puts the preset's table between its two markers in the document.
func replaceTable(t *testing.T, document string, f presetFit, real, mean, longer Statistics) string {
	begin, end := fmt.Sprintf("<!-- table %s: generated by TestPresetFits -->\n", f.preset), "<!-- end of table -->"
	before, rest, ok := strings.Cut(document, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/workloads.md lacks the marker %q or what ends it", strings.TrimSpace(begin))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s | `%s` | `%s`, four times as many requests |\n|---|---:|---:|---:|\n", f.trace, f.preset, f.preset)
	for _, row := range f.rows {
		fmt.Fprintf(&b, "| %s |", row.name)
		for _, s := range []Statistics{real, mean, longer} {
			fmt.Fprintf(&b, " %s |", figure(row.get(s), row.digits))
		}
		b.WriteByte('\n')
	}
	return before + begin + b.String() + end + after
}

// figure prints a number with digits decimals and commas between thousands.
func figure(v float64, digits int) string {
	if math.IsNaN(v) {
		return "–"
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', digits, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

// meanStatistics is the mean of the figures of f.rows over seeds 1, 2, ….
func meanStatistics(t *testing.T, f presetFit) Statistics {
	var mean Statistics
	for seed := range f.seeds {
		s := Stats(mustGenerate(t, PresetSpec{Name: f.preset, Seed: uint64(seed) + 1}), f.cache...)
		if seed == 0 {
			mean.Arrivals, mean.Reuse = &ArrivalStatistics{}, &ReuseStatistics{LRU: make([]CacheReuse, len(f.cache))}
		}
		share := 1 / float64(f.seeds)
		mean.Requests = s.Requests
		for _, d := range [][2]*Distribution{
			{&mean.InputTokens, &s.InputTokens}, {&mean.OutputTokens, &s.OutputTokens}, {&mean.Turns, &s.Turns}, {&mean.DelayMs, &s.DelayMs},
		} {
			addShare(share, []*float64{&d[0].Mean, &d[0].P10, &d[0].P50, &d[0].P90, &d[0].P99, &d[0].Max},
				d[1].Mean, d[1].P10, d[1].P50, d[1].P90, d[1].P99, d[1].Max)
		}
		m, a := mean.Arrivals, s.Arrivals
		addShare(share, []*float64{&m.Rate, &m.IntervalCV, &m.Dispersion10s, &m.Dispersion60s, &mean.Reuse.Ideal},
			a.Rate, a.IntervalCV, a.Dispersion10s, a.Dispersion60s, s.Reuse.Ideal)
		for i := range f.cache {
			mean.Reuse.LRU[i].HitRatio += share * s.Reuse.LRU[i].HitRatio
		}
	}
	return mean
}

func addShare(share float64, sums []*float64, values ...float64) {
	for i, sum := range sums {
		*sum += share * values[i]
	}
}

// realStatistics returns the recorded statistics of the real traces, by preset. Where the traces are, it measures
// them again and compares, or records them with -update.
func realStatistics(t *testing.T) map[string]Statistics {
	recorded := map[string]Statistics{}
	if text, err := os.ReadFile(traceStatistics); err == nil {
		if err := json.Unmarshal(text, &recorded); err != nil {
			t.Fatal(err)
		}
	} else if !*update {
		t.Fatal(err)
	}
	shared := cmp.Or(os.Getenv("SHARED_DATA_DIR"), filepath.Join(moduleRoot(t), "..", "shared"))
	if _, err := os.Stat(filepath.Join(shared, "traces")); err != nil {
		t.Log("the real traces are not here; comparing with their recorded statistics")
		return recorded
	}
	measured := map[string]Statistics{}
	for _, f := range fits() {
		if f.load != nil {
			measured[f.preset] = Stats(f.load(t, shared), f.cache...)
		}
	}
	if *update {
		text, err := json.MarshalIndent(measured, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(traceStatistics, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := gocmp.Diff(recorded, measured, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("%s differs from the traces (-file +measured):\n%s", traceStatistics, diff)
	}
	return measured
}

func mooncakeTrace(file string) func(*testing.T, string) *Workload {
	return func(t *testing.T, shared string) *Workload {
		trace := DefaultTraceSpec()
		trace.Path = filepath.Join(shared, "traces", "mooncake", file)
		w, err := Spec{Trace: &trace}.Load(t.Context(), Source{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// codingSessions reads the main agents of the coding sessions. Their hash ids are local to a file, and when the
// sessions started is not known.
func codingSessions(t *testing.T, shared string) *Workload {
	files, err := filepath.Glob(filepath.Join(shared, "traces", "weka", "trace_*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no coding sessions: %v", err)
	}
	b := NewBuilder("coding sessions", 64)
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var trace struct {
			Requests []struct {
				Type    string
				T       float64
				APITime float64 `json:"api_time"`
				In, Out int
				HashIDs []uint64 `json:"hash_ids"`
			}
		}
		if err := json.Unmarshal(text, &trace); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		end := math.NaN()
		for _, r := range trace.Requests {
			if r.Type == "subagent" {
				continue
			}
			request := Request{Session: filepath.Base(file), Input: r.In, Output: r.Out, ArrivalMs: math.NaN()}
			if !math.IsNaN(end) {
				request.DelayMs = max(0, r.T-end) * 1000
			}
			end = r.T + r.APITime
			for _, id := range r.HashIDs {
				request.Hashes = append(request.Hashes, uint64(i)<<32|id)
			}
			b.Add(request)
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// moduleRoot is the folder of go.mod.
func moduleRoot(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the package")
		}
		dir = parent
	}
}
