package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// reproduceSpec covers every kind of workload, settings of every type, hostile names and numbers that are written
// in more than one way.
const reproduceSpec = `
name: "it's \"here\" & <there> $HOME"
workload:
  - preset: {name: chat, requests: 30, seed: 9007199254740993, scale: 0.5}
  - preset: {name: agentic, requests: 20, rate: 3.5}
  - synthetic: {input_tokens: 100, output_tokens: 5, requests: 10, shared_prefix_ratio: 0.5, prefix_groups: 3, turns_per_session: 2, inter_turn_delay_ms: 1.5}
  - {name: plain, synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}}
  - name: named
    trace: {path: "it's a $trace.jsonl"}
  - trace: {paths: ["it's a $trace.jsonl", "-dash & co.jsonl"], block_size: 256}
sla: {ttft_ms: 1500, itl_ms: 12.5}
cases:
  closed: {load.concurrency: 3, engine.max_num_seqs: null}
  rate: {load.rate: 2.5, engine.enable_prefix_caching: false}
  fast: {load.speedup: 1000000, timing: {source: fixed, prefill_ms: 0.0000001, decode_ms: 1e-7}}
  reference: {compat: dynamo-1.3, load.speedup: 0.1, engine.enable_chunked_prefill: false, load.max_sim_time_seconds: 3}
  small: {engine.num_gpu_blocks: 40, engine.preemption_mode: fifo, engine.block_size: 16, timing.tp: 2}
  priced: {timing: {gpu: h200, model: Qwen/Qwen3-32B, tp: 2}, engine.gpu_memory_utilization: 0.8}
  profiled: {timing: {profile: "a #1: it's.csv", gpu: mi300x, model: llama-3.1-8b}, engine.num_speculative_tokens: 2, engine.acceptance_rates: "0.7"}
  split: {deployment.mode: disaggregated, deployment.prefill_workers: 2, deployment.decode_workers: 3, engine.block_size: 32, prefill.engine.kv_transfer_bandwidth: 10, prefill.engine.kv_bytes_per_token: 1000,
    decode.engine.max_num_seqs: null, router: {policy: kv_router, router_queue_threshold: null, router_temperature: 0.5}}
  sglang: {engine.type: sglang, engine.sglang.schedule_policy: lpm, engine.sglang.page_size: 8, router: {policy: power_of_two, seed: 7}}
  planned: {planner: {policy: dynamo, optimization_target: load, load_adjustment_interval_seconds: 1, decode_scale_up_kv_rate: 50.5, decode_scale_down_kv_rate: 10, max_gpu_budget: -1},
    engine.num_gpu_blocks: 400, engine.startup_time: 2.5}
  learned: {planner: {policy: dynamo, optimization_target: sla, enable_load_scaling: true, load_predictor: kalman, kalman_r: 0.5}}
  tracked: {planner: {policy: target_tracking}, deployment: {mode: disaggregated, prefill_workers: 2}, decode.engine.startup_time: 4}
prices: {h200: 10, mi300x: 0.5}
grid: {sla.e2e_ms: [30000, 60000]}
execution: {replicates: 2, on_invalid: skip}
`

// The command that the report shows for a point gives the figures of its row, exactly, when a shell runs it.
func TestReproduce(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here to read the commands")
	}
	spec := writeSpec(t, reproduceSpec)
	copyHead(t, "testdata/golden/traces/chat.jsonl", filepath.Join(filepath.Dir(spec), "it's a $trace.jsonl"), 25)
	copyHead(t, "testdata/golden/traces/longctx.jsonl", filepath.Join(filepath.Dir(spec), "-dash & co.jsonl"), 10)
	profile := "phase,new_tokens,batch,context,ms\nprefill,100,,,10\nprefill,9000,,,400\ndecode,,1,,3\ndecode,,9,,6\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(spec), "a #1: it's.csv"), []byte(profile), 0o666); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if got := runCommand(t, "sweep", spec, "-q", "-o", dir); got.code != exitOK && got.code != exitSomeFailed {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	commands := reportCommands(t, filepath.Join(dir, "report.html"))
	if len(commands) != table.Rows() {
		t.Fatalf("%d commands for %d points", len(commands), table.Rows())
	}
	checked := 0
	for row, command := range commands {
		if table.Column("status").Text(row) == "ok" {
			checked++
			checkReproduced(t, table, row, command)
			if _, err := pointOfRow(nil, table, row); err != nil { // compares content IDs
				t.Error(err)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d points were ok", checked)
	}
}

// The command names what is not the default, and nothing else.
func TestReproduceLeavesOutDefaults(t *testing.T) {
	for spec, want := range map[string]string{
		"workload: {preset: {name: chat}}": "servegrid replay --preset chat",
		"workload: {preset: {name: chat, requests: 30, seed: 3}}\ndeployment: {workers: 2}": "servegrid replay --preset chat " +
			"--set workload.preset.requests=30 --set workload.preset.seed=3 --set deployment.workers=2",
		"workload: {preset: {name: chat}}\nengine: {max_num_seqs: 8, block_size: 16}\ndeployment: {prefill_workers: 2}\nprefill: {engine: {max_num_seqs: 4}}": "servegrid replay --preset chat " +
			"--set deployment.mode=disaggregated --set deployment.prefill_workers=2 --set engine.block_size=16 --set prefill.engine.max_num_seqs=4 --set decode.engine.max_num_seqs=8",
		"workload: {synthetic: {input_tokens: 9, output_tokens: 5, requests: 7}}": "servegrid replay --input-tokens 9 --output-tokens 5 --request-count 7",
		"workload: {synthetic: {input_tokens: 9, output_tokens: 5, requests: 7, seed: 1}}": "servegrid replay --input-tokens 9 --output-tokens 5 --request-count 7 " +
			"--set workload.synthetic.seed=1",
	} {
		s, err := gridspec.Load(gridspec.Source{Data: []byte(spec)})
		if err != nil {
			t.Fatal(err)
		}
		points, err := s.Expand(gridspec.ExpandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := reproduceCommand(points[0]); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", spec, got, want)
		}
	}
}

// checkReproduced runs a command and compares its report with a row.
func checkReproduced(t *testing.T, table *results.Table, row int, command string) {
	t.Helper()
	args := shellWords(t, command)
	if len(args) < 2 || args[0] != "servegrid" || args[1] != "replay" {
		t.Fatalf("not a replay: %s", command)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	got := runCommand(t, append(args[1:], "--report-json", report)...)
	if got.code != exitOK {
		t.Errorf("%s\nexit code %d: %s", command, got.code, got.stderr)
		return
	}
	var values map[string]any
	readJSON(t, report, &values)
	compared := 0
	for _, c := range table.Columns {
		v, ok := c.Value(row)
		if c.Role != results.RoleMetric || !ok {
			continue
		}
		want := v.Float
		if v.Kind == gridspec.KindInt {
			want = float64(v.Int)
		}
		if got, ok := values[c.Name].(float64); !ok || got != want {
			t.Errorf("%s\n%s = %v, want %v", command, c.Name, values[c.Name], want)
		}
		compared++
	}
	least := 50
	if values["completed_requests"] == 0. {
		least = 20 // there are no latencies
	}
	if digest := table.Column("workload_digest").Text(row); values["workload_digest"] != digest || compared < least {
		t.Errorf("%s\nworkload digest %v, want %s; %d metrics", command, values["workload_digest"], digest, compared)
	}
}

// reportCommands reads the commands out of the data in a report.
func reportCommands(t *testing.T, path string) []string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindSubmatch(page)
	if data == nil {
		t.Fatal("the report holds no data")
	}
	var report struct {
		Commands struct {
			Words    []string
			Encoding string
			Data     []byte
		}
	}
	if err := json.Unmarshal(data[1], &report); err != nil {
		t.Fatal(err)
	}
	width := map[string]int{"u8": 1, "u16": 2, "u32": 4}[report.Commands.Encoding]
	if width == 0 {
		t.Fatalf("the commands are encoded as %q", report.Commands.Encoding)
	}
	var commands, words []string
	for code := range slices.Chunk(report.Commands.Data, width) {
		place := binary.LittleEndian.Uint32(append(slices.Clone(code), make([]byte, 4-width)...))
		if place > 0 {
			words = append(words, report.Commands.Words[place-1])
			continue
		}
		commands, words = append(commands, strings.Join(words, " ")), nil
	}
	return commands
}

// shellWords lets a real shell take a command line apart.
func shellWords(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `printf '%s\0' `+command).Output()
	if err != nil {
		t.Fatalf("sh cannot read %s: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// copyHead copies the first lines of a file.
func copyHead(t *testing.T, from, to string, lines int) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.SplitAfter(string(data), "\n")
	if err := os.WriteFile(to, []byte(strings.Join(all[:min(lines, len(all))], "")), 0o666); err != nil {
		t.Fatal(err)
	}
}
