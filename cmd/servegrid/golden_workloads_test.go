package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// workloadCase is one run of a reference over a trace of any format: of the first with its arguments, or of the newest
// peer with its load. Traces are stored with the figures, by path.
type workloadCase struct {
	Name string
	// Args are the reference's arguments; Compat runs.
	Args []string `json:",omitempty"`
	// Format, Paths, Load and the rest are the peer's configuration; default runs.
	Format                               string   `json:",omitempty"`
	Paths                                []string `json:",omitempty"`
	Lanes, Concurrency                   int      `json:",omitempty"`
	Speedup                              float64  `json:",omitempty"`
	PrefillMs, DecodeMs                  float64  `json:",omitempty"`
	TraceBlockSize, BlockSize, NumBlocks int      `json:",omitempty"`
	// Refused is the error of a run that was refused; otherwise Report and Requests hold its figures.
	Refused  string             `json:",omitempty"`
	Report   map[string]float64 `json:",omitempty"`
	Requests []workloadRequest  `json:",omitempty"`
}

// workloadRequest is one request of a run of the peer, in ms and tokens; First and Last are -1 without output.
type workloadRequest struct {
	ID                           string
	Arrival, First, Last, Reused float64
}

// workloadGoldens is the file of all cases.
type workloadGoldens struct {
	Traces map[string][]byte
	Cases  []workloadCase
}

const workloadGoldensFile = "testdata/golden/workloads.json.gz"

// workloadDifferences says where we do otherwise than a reference, and why; docs/workloads.md tells users the same. The
// value is what our message holds when we refuse what it accepts; "accepted" when we accept what it refuses.
var workloadDifferences = map[string]string{
	// A file's content decides how it is read, not its name.
	"reference/bad_dy_gz_named_plain":    "accepted",
	"reference/bad_dy_plain_named_gz_gz": "accepted",
	"peer/ais_dy_gz_named_plain":         "accepted",
	"peer/ais_dy_plain_named_gz":         "accepted",
	// Several files are read as one.
	"reference/mc_two_files": "accepted",
	// Agentic captures run in lanes, and until a given time.
	"peer/ais_dy_conc":  "accepted",
	"peer/ais_dy_maxvt": "accepted",
	// The same for WEKA traces, whose hash ids may be global, and whose subagents may use models that a trace does not name.
	"peer/conc":          "accepted",
	"peer/v_global":      "accepted",
	"peer/wk_0291_plain": "accepted",
	// Lanes are the concurrency of any load; those of requests without plays hold a session each.
	"peer/ais_std_lanes": "accepted",
	// A subagent whose parent was not captured starts at its recorded time, with a warning; strict refuses it.
	"peer/ais_dy_parentmissing": "accepted",
	// A request needs a prompt and a time.
	"peer/ais_dy_in0":    "input_length is 0",
	"peer/ais_dy_norecv": "request_received_ms: is missing",
	"peer/ais_mc_in0":    "input_length is 0",
	"peer/ais_mc_nots":   "has no timestamp",
	"probe/m_nots2":      "has no timestamp",
}

// TestGoldenWorkloads replays recorded runs over all trace formats: those of the reference with its rules, and those of
// the newest peer with the default ones, request by request.
func TestGoldenWorkloads(t *testing.T) {
	if *update {
		collectWorkloads(t)
	}
	var goldens workloadGoldens
	readGzipJSON(t, workloadGoldensFile, &goldens)
	if len(goldens.Cases) < 250 {
		t.Fatalf("only %d cases", len(goldens.Cases))
	}
	dir := t.TempDir()
	for path, text := range goldens.Traces {
		writeFile(t, filepath.Join(dir, path), text)
	}
	for _, c := range goldens.Cases {
		t.Run(c.Name, func(t *testing.T) { c.check(t, dir) })
	}
	for name := range workloadDifferences {
		if !slices.ContainsFunc(goldens.Cases, func(c workloadCase) bool { return c.Name == name }) {
			t.Errorf("no case is named %s", name)
		}
	}
}

func (c workloadCase) check(t *testing.T, dir string) {
	difference := workloadDifferences[c.Name]
	out := t.TempDir()
	report, requests := filepath.Join(out, "report.json"), filepath.Join(out, "requests.jsonl")
	got := runCommand(t, append(c.arguments(dir), "--report-json", report, "--report-jsonl", requests)...)
	switch {
	case difference == "accepted":
		if c.Refused == "" || got.code != exitOK {
			t.Errorf("the reference refuses with %q; our exit code is %d: %s", c.Refused, got.code, got.stderr)
		}
	case difference != "":
		if c.Refused != "" || got.code == exitOK || !strings.Contains(got.stderr, difference) {
			t.Errorf("the reference refuses with %q; our exit code is %d: %s; want %q", c.Refused, got.code, got.stderr, difference)
		}
	case c.Refused != "":
		if got.code == exitOK || got.stderr == "" {
			t.Errorf("the reference refuses with %q; exit code %d, message %q", c.Refused, got.code, got.stderr)
		}
	case got.code != exitOK:
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	case len(c.Args) > 0:
		compareReport(t, report, withoutNoise(c.Report), 1e-6)
	default:
		// The peer's percentiles are sketches with an error of 0.1 %.
		compareReport(t, report, withoutNoise(c.Report), 1.1e-3)
		compareWorkloadRequests(t, requests, c.Requests)
	}
}

// withoutNoise leaves out deviations that are nothing but the rounding of equal samples: below 1e-8 of their mean.
func withoutNoise(report map[string]float64) map[string]float64 {
	maps.DeleteFunc(report, func(name string, v float64) bool {
		of, ok := strings.CutPrefix(name, "std_")
		return ok && v < 1e-8*report["mean_"+of]
	})
	return report
}

// arguments are those of our replay of the case, whose traces are in a folder.
func (c workloadCase) arguments(dir string) []string {
	if len(c.Args) > 0 {
		args := []string{"replay", "--compat", "dynamo-1.3"}
		for _, arg := range c.Args {
			if strings.HasPrefix(arg, "fixtures/") {
				arg = filepath.Join(dir, arg)
			}
			args = append(args, arg)
		}
		return args
	}
	args := []string{"replay"}
	for _, path := range c.Paths {
		args = append(args, filepath.Join(dir, path))
	}
	args = append(args, "--trace-format", c.Format, "--timing", fmt.Sprintf(`{"source":"fixed","prefill_ms":%v,"decode_ms":%v}`, c.PrefillMs, c.DecodeMs),
		"--extra-engine-args", fmt.Sprintf(`{"block_size":%d,"num_gpu_blocks":%d,"max_num_batched_tokens":2000000,"max_num_seqs":256}`, c.BlockSize, c.NumBlocks))
	if c.TraceBlockSize != 0 {
		args = append(args, "--trace-block-size", fmt.Sprint(c.TraceBlockSize))
	}
	if n := max(c.Lanes, c.Concurrency); n > 0 {
		args = append(args, "--replay-concurrency", fmt.Sprint(n))
	}
	if c.Speedup != 0 {
		args = append(args, "--arrival-speedup-ratio", fmt.Sprint(c.Speedup))
	}
	return args
}

// compareWorkloadRequests compares every request; those of mooncake traces have no names in common, so they are compared
// in order of arrival.
func compareWorkloadRequests(t *testing.T, path string, want []workloadRequest) {
	t.Helper()
	got := readWorkloadRequests(t, path)
	if len(want) == 0 {
		return
	}
	named := len(want) == len(got) && func() bool {
		ids := map[string]int{}
		for i := range want {
			ids[want[i].ID]++
			ids[got[i].ID]--
		}
		for _, n := range ids {
			if n != 0 {
				return false
			}
		}
		return true
	}()
	order := func(a, b workloadRequest) int {
		if named && a.ID != b.ID {
			return strings.Compare(a.ID, b.ID)
		}
		return slices.Compare([]float64{a.Arrival, a.Last, a.First, a.Reused}, []float64{b.Arrival, b.Last, b.First, b.Reused})
	}
	slices.SortStableFunc(got, order)
	slices.SortStableFunc(want, order)
	if len(got) != len(want) {
		t.Fatalf("%d requests, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if !close(g.Arrival, w.Arrival, 1e-6) || !close(g.First, w.First, 1e-6) || !close(g.Last, w.Last, 1e-6) || g.Reused != w.Reused {
			t.Errorf("request %d is %+v, want %+v", i, g, w)
		}
	}
}

func readWorkloadRequests(t *testing.T, path string) []workloadRequest {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []workloadRequest
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var r struct {
			UUID    string
			Arrival float64  `json:"arrival_time_ms"`
			First   *float64 `json:"first_token_ms"`
			Last    *float64 `json:"last_token_ms"`
			Reused  float64  `json:"first_admission_reused_input_tokens"`
		}
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, workloadRequest{r.UUID, r.Arrival, orNone(r.First), orNone(r.Last), r.Reused})
	}
	return out
}

// orNone is a time, or -1 when there was none.
func orNone(ms *float64) float64 {
	if ms == nil {
		return -1
	}
	return *ms
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// collectWorkloads writes the file of cases from the shared data: what was recorded and the traces it was recorded with.
func collectWorkloads(t *testing.T) {
	shared := sharedData(t)
	goldens := workloadGoldens{Traces: map[string][]byte{}}
	goldens.Cases = append(goldens.Cases, collectReference(t, shared)...)
	goldens.Cases = append(goldens.Cases, collectPeer(t, shared)...)
	goldens.Cases = append(goldens.Cases, collectProbes(t, shared)...)
	for _, c := range goldens.Cases {
		for _, path := range append(slices.Clone(c.Args), c.Paths...) {
			if strings.HasPrefix(path, "fixtures/") || strings.HasPrefix(path, "traces/") {
				addTraces(t, goldens.Traces, shared, path)
			}
		}
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err := json.NewEncoder(z).Encode(goldens); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, workloadGoldensFile, packed.Bytes())
}

// addTraces stores a trace file, or all of a folder.
func addTraces(t *testing.T, traces map[string][]byte, shared, path string) {
	t.Helper()
	full := filepath.Join(shared, path)
	info, err := os.Stat(full)
	if err != nil {
		return // a run over a file that is not there
	}
	if info.IsDir() {
		entries, err := os.ReadDir(full)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			addTraces(t, traces, shared, filepath.Join(path, entry.Name()))
		}
		return
	}
	if traces[path], err = os.ReadFile(full); err != nil {
		t.Fatal(err)
	}
}

// collectReference reads the runs of the reference, and the report beside each that was accepted.
func collectReference(t *testing.T, shared string) []workloadCase {
	t.Helper()
	folder := filepath.Join(shared, "golden/workloads")
	var runs []struct {
		Name, Cmd, Error string
		RC               int
	}
	readJSON(t, filepath.Join(folder, "INDEX.json"), &runs)
	var cases []workloadCase
	for _, run := range runs {
		c := workloadCase{Name: "reference/" + run.Name, Args: shellWords(t, strings.TrimPrefix(run.Cmd, "python -m dynamo.replay "))}
		if run.RC == 0 {
			c.Report = readFigures(t, filepath.Join(folder, run.Name+".json"))
		} else {
			c.Refused = run.Error
		}
		cases = append(cases, c)
	}
	return cases
}

// readFigures reads the numbers of a report.
func readFigures(t *testing.T, path string) map[string]float64 {
	t.Helper()
	var report map[string]any
	readJSON(t, path, &report)
	return figures(report)
}

func figures(report map[string]any) map[string]float64 {
	out := map[string]float64{}
	for name, value := range report {
		if v, ok := value.(float64); ok {
			out[name] = v
		}
	}
	return out
}

// collectPeer reads the runs of the newest peer with fixed pass times, but for those of the AgentX scenario.
func collectPeer(t *testing.T, shared string) []workloadCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shared, "golden/workloads/aisim/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []workloadCase
	for _, file := range files {
		if filepath.Base(file) == "INDEX.json" {
			continue
		}
		var run struct {
			Name   string
			Error  []string
			RC     int
			Report map[string]any
			Config struct {
				Traffic struct {
					Source struct {
						Format    string
						Paths     []string
						BlockSize int `json:"block_size"`
					}
					Load struct {
						Lanes       int `json:"agentic_lanes"`
						Concurrency int
						Speedup     float64
						Snapshot    any `json:"agentic_snapshot"`
					}
				}
				Engine struct {
					Workers struct {
						Aggregated struct {
							KVCache struct {
								BlockSize int `json:"block_size"`
								Capacity  struct{ Blocks int }
							} `json:"kv_cache"`
							Timing struct {
								PrefillMs float64 `json:"prefill_ms"`
								DecodeMs  float64 `json:"decode_ms"`
							}
						}
					}
				}
			}
			Requests []struct {
				ID          string
				Arrival     float64
				First, Last *float64
				Reused      float64
			}
		}
		readJSON(t, file, &run)
		source, load, w := run.Config.Traffic.Source, run.Config.Traffic.Load, run.Config.Engine.Workers.Aggregated
		if load.Snapshot != nil {
			continue
		}
		c := workloadCase{Name: "peer/" + run.Name, Format: source.Format, Paths: source.Paths, TraceBlockSize: source.BlockSize, Lanes: load.Lanes, Concurrency: load.Concurrency, Speedup: load.Speedup,
			PrefillMs: w.Timing.PrefillMs, DecodeMs: w.Timing.DecodeMs, BlockSize: w.KVCache.BlockSize, NumBlocks: w.KVCache.Capacity.Blocks}
		if run.RC != 0 {
			c.Refused = strings.Join(run.Error, "\n")
		} else {
			c.Report = figures(run.Report)
			// The peer counts more samples, and plays as trajectories, which the requests below show.
			maps.DeleteFunc(c.Report, func(name string, _ float64) bool {
				return strings.HasPrefix(name, "num_") && name != "num_requests" || strings.HasPrefix(name, "agentic_") || strings.Contains(name, "trajector") ||
					name == "committed_prefill_tokens"
			})
			for _, r := range run.Requests {
				c.Requests = append(c.Requests, workloadRequest{r.ID, r.Arrival, orNone(r.First), orNone(r.Last), r.Reused})
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// collectProbes reads the small graphs that the newest peer was probed with.
func collectProbes(t *testing.T, shared string) []workloadCase {
	t.Helper()
	var probes []struct {
		Name, File, Format string
		Load               struct {
			Lanes   int `json:"agentic_lanes"`
			Speedup float64
		}
		PrefillMs float64 `json:"prefill_ms"`
		DecodeMs  float64 `json:"decode_ms"`
		NumBlocks int     `json:"kv_blocks"`
		BlockSize int     `json:"block_size"`
		Requests  [][]any
	}
	readJSON(t, filepath.Join(shared, "golden/workloads/probes.json"), &probes)
	var cases []workloadCase
	for _, p := range probes {
		c := workloadCase{Name: "probe/" + p.Name, Format: p.Format, Paths: []string{p.File}, Lanes: p.Load.Lanes, Speedup: p.Load.Speedup,
			PrefillMs: p.PrefillMs, DecodeMs: p.DecodeMs, BlockSize: p.BlockSize, NumBlocks: p.NumBlocks}
		for _, r := range p.Requests {
			at := func(i int) float64 {
				if v, ok := r[i].(float64); ok {
					return v
				}
				return -1
			}
			c.Requests = append(c.Requests, workloadRequest{fmt.Sprint(r[0]), at(1), at(3), at(4), at(5)})
		}
		cases = append(cases, c)
	}
	return cases
}
