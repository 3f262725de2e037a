package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// goldenCase is one run of the reference: the arguments after its program name, and its report or its refusal.
type goldenCase struct {
	Name     string
	Args     []string
	Expected map[string]float64
	Refused  string
}

// TestGoldenReference replays the recorded runs of the reference and compares every figure of the report.
func TestGoldenReference(t *testing.T) {
	for _, file := range []string{"made.json", "mooncake.json", "engine.json", "speculative.json"} {
		var cases []goldenCase
		readJSON(t, filepath.Join("testdata/golden", file), &cases)
		if len(cases) == 0 {
			t.Fatalf("%s holds no case", file)
		}
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				args := append([]string{"replay", "--compat", "dynamo-1.3"}, c.Args...)
				if trace := args[3]; !strings.HasPrefix(trace, "--") {
					args[3] = goldenTrace(t, trace)
				}
				if report := replayGolden(t, args, c.Refused); report != "" {
					compareReport(t, report, c.Expected, 1e-6)
				}
			})
		}
	}
}

// replayGolden runs a case of the reference and returns the path of the report; empty when both refuse it.
func replayGolden(t *testing.T, args []string, refused string) (report string) {
	t.Helper()
	report = filepath.Join(t.TempDir(), "report.json")
	got := runCommand(t, append(args, "--report-json", report)...)
	if refused != "" {
		if got.code != exitRefused || got.stderr == "" {
			t.Fatalf("the reference refuses with %q; exit code %d, message %q", refused, got.code, got.stderr)
		}
		return ""
	}
	if got.code != exitOK {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	return report
}

// compareReport compares the figures of a report file, but for wall times.
func compareReport(t *testing.T, path string, want map[string]float64, relative float64) {
	t.Helper()
	var got map[string]any
	readJSON(t, path, &got)
	names := make([]string, 0, len(want))
	for name := range want {
		if !strings.Contains(name, "wall") && !strings.HasPrefix(name, "processed_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		v, ok := got[name].(float64)
		if !ok {
			t.Errorf("%s is missing, want %v", name, want[name])
		} else if !close(v, want[name], relative) {
			t.Errorf("%s = %v, want %v", name, v, want[name])
		}
	}
}

func close(got, want, relative float64) bool {
	d := math.Abs(got - want)
	return d <= 1e-9 || d <= relative*math.Abs(want)
}

// peerCase is one run of the newest peer with fixed pass times. Requests are [arrival, input, output, admitted,
// first token, last token (ms), reused tokens at the first admission].
type peerCase struct {
	Name   string
	Config struct {
		Traffic struct {
			Source struct{ Paths []string }
			Load   struct {
				Type        string
				Concurrency int
			}
		}
		Engine struct {
			Backend       string
			ContextLength int `json:"context_length"`
			Speculation   struct {
				Tokens int       `json:"num_speculative_tokens"`
				Rates  []float64 `json:"acceptance_rates"`
				Seed   uint64
			}
			Workers struct {
				Aggregated struct {
					Parallelism struct{ Replicas int }
					Scheduler   struct {
						MaxBatchedTokens int `json:"max_batched_tokens"`
						MaxSequences     int `json:"max_sequences"`
					}
					KVCache struct {
						BlockSize     int  `json:"block_size"`
						PrefixCaching bool `json:"prefix_caching"`
						Capacity      struct{ Blocks int }
					} `json:"kv_cache"`
					Timing struct {
						PrefillMs float64 `json:"prefill_ms"`
						DecodeMs  float64 `json:"decode_ms"`
					}
				}
			}
		}
	}
	Expected    map[string]float64
	Preemptions float64
	Requests    [][]float64
}

// TestGoldenPeer replays the recorded runs of the newest peer under the default rules and compares every request.
func TestGoldenPeer(t *testing.T) {
	var cases []peerCase
	for _, name := range []string{"peer.json.gz", "speculative_peer.json.gz", "stack_peer.json.gz", "sglang_peer.json.gz"} {
		cases = append(cases, readPeerCases(t, name)...)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			w := c.Config.Engine.Workers.Aggregated
			engine := fmt.Sprintf(`{"engine_type":%q,"block_size":%d,"num_gpu_blocks":%d,"enable_prefix_caching":%t,"max_num_seqs":%d,"max_num_batched_tokens":%d,"context_length":%d`,
				c.Config.Engine.Backend, w.KVCache.BlockSize, w.KVCache.Capacity.Blocks, w.KVCache.PrefixCaching, w.Scheduler.MaxSequences, w.Scheduler.MaxBatchedTokens, c.Config.Engine.ContextLength)
			if s := c.Config.Engine.Speculation; s.Tokens > 0 {
				rates := strings.ReplaceAll(strings.Trim(fmt.Sprint(s.Rates), "[]"), " ", ",")
				engine += fmt.Sprintf(`,"num_speculative_tokens":%d,"acceptance_rates":"%s","speculation_seed":%d`, s.Tokens, rates, s.Seed)
			}
			engine += "}"
			args := []string{"replay", goldenTrace(t, c.Config.Traffic.Source.Paths[0]), "--num-workers", fmt.Sprint(w.Parallelism.Replicas),
				"--timing", fmt.Sprintf(`{"source":"fixed","prefill_ms":%v,"decode_ms":%v}`, w.Timing.PrefillMs, w.Timing.DecodeMs),
				"--extra-engine-args", engine, "--report-json", filepath.Join(dir, "report.json"), "--report-jsonl", filepath.Join(dir, "requests.jsonl")}
			if c.Config.Traffic.Load.Type == "concurrency" {
				args = append(args, "--replay-concurrency", fmt.Sprint(c.Config.Traffic.Load.Concurrency))
			}
			if got := runCommand(t, args...); got.code != exitOK {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			// The peer's percentiles are sketches with an error of 0.1 %; it counts more samples than we report.
			want := map[string]float64{"preemptions": c.Preemptions}
			for name, v := range c.Expected {
				if !strings.HasPrefix(name, "num_") && name != "committed_prefill_tokens" {
					want[name] = v
				}
			}
			compareReport(t, filepath.Join(dir, "report.json"), want, 1.1e-3)
			compareRequests(t, readRequests(t, filepath.Join(dir, "requests.jsonl")), c.Requests)
		})
	}
}

func readPeerCases(t *testing.T, name string) []peerCase {
	t.Helper()
	var cases []peerCase
	readGzipJSON(t, filepath.Join("testdata/golden", name), &cases)
	return cases
}

func readGzipJSON(t *testing.T, path string, into any) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// readRequests reads the records of a replay in the layout of peerCase.Requests.
func readRequests(t *testing.T, path string) [][]float64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out [][]float64
	for s := bufio.NewScanner(file); s.Scan(); {
		var r struct {
			Arrival    float64 `json:"arrival_time_ms"`
			Input      float64 `json:"input_length"`
			Output     float64 `json:"output_length"`
			Admitted   float64 `json:"first_admit_ms"`
			FirstToken float64 `json:"first_token_ms"`
			LastToken  float64 `json:"last_token_ms"`
			Reused     float64 `json:"first_admission_reused_input_tokens"`
		}
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, []float64{r.Arrival, r.Input, r.Output, r.Admitted, r.FirstToken, r.LastToken, r.Reused})
	}
	return out
}

func compareRequests(t *testing.T, got, want [][]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d requests, want %d", len(got), len(want))
	}
	byArrival := func(a, b []float64) int { return slices.Compare(a[:3], b[:3]) }
	slices.SortStableFunc(got, byArrival)
	slices.SortStableFunc(want, byArrival)
	for i := range want {
		for field := range want[i] {
			if !close(got[i][field], want[i][field], 1e-6) {
				t.Fatalf("request %d is %v, want %v", i, got[i], want[i])
			}
		}
	}
}

// goldenTrace returns the path of a made trace in testdata, or of a real one where shared data is. conv500,
// conv2k and so on are the first rows of a real trace.
func goldenTrace(t *testing.T, name string) string {
	t.Helper()
	if made := filepath.Join("testdata/golden/traces", name); exists(made) {
		return made
	}
	shared := sharedData(t)
	heads := map[string]struct {
		file string
		rows int
	}{
		"conv300.jsonl":            {"conversation_trace.jsonl", 300},
		"conv500.jsonl":            {"conversation_trace.jsonl", 500},
		"conv2k.jsonl":             {"conversation_trace.jsonl", 2000},
		"conv3000.jsonl":           {"conversation_trace.jsonl", 3000},
		"synth1000.jsonl":          {"synthetic_trace.jsonl", 1000},
		"conversation_trace.jsonl": {"conversation_trace.jsonl", math.MaxInt},
		"synthetic_trace.jsonl":    {"synthetic_trace.jsonl", math.MaxInt},
	}
	head, ok := heads[name]
	if !ok {
		t.Fatalf("unknown trace %s", name)
	}
	data, err := os.ReadFile(filepath.Join(shared, "traces/mooncake", head.file))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, bytes.Join(lines[:min(head.rows, len(lines))], nil), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// sharedData returns the folder with the real traces, or skips the test where it is not. SHARED_DATA_DIR names it;
// the default is a folder named shared beside the checkout.
func sharedData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SHARED_DATA_DIR")
	if dir == "" {
		dir = "../../../shared"
	}
	if !exists(filepath.Join(dir, "traces")) {
		t.Skip("needs the real traces: set SHARED_DATA_DIR to the folder that holds traces/mooncake")
	}
	return dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// outcome is what a command printed and how it ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// runCommand runs a command line in this process.
func runCommand(t *testing.T, args ...string) outcome {
	t.Helper()
	return runWith(t, nil, args...)
}

func runWith(t *testing.T, stdin io.Reader, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	st := &state{args: args, stdin: stdin, stdout: &stdout, stderr: &stderr,
		terminal: func() (int, bool) { return 0, false }, now: time.Now}
	code := run(context.Background(), st)
	return outcome{code, stdout.String(), stderr.String()}
}
