package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublicReports replays what users of other tools have reported about traces, and what should have happened (§5 of the
// workload specification). Those that one loader alone is about are tests beside it.
func TestPublicReports(t *testing.T) {
	const fixed = `{"source":"fixed","prefill_ms":10,"decode_ms":1}`
	session := func(extra string) string {
		return `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":` + extra + `}` + "\n"
	}
	request := func(id, agent string, start, in int, hashes string) string {
		return session(fmt.Sprintf(`%d%s,"request":{"request_id":%q,"output_tokens":5,"request_received_ms":%d,"total_time_ms":100,"replay":{"trace_block_size":64,"input_length":%d,"input_sequence_hashes":%s}}`,
			start+100, agent, id, start, in, hashes))
	}
	agent := func(id, parent string) string {
		if parent == "" {
			return fmt.Sprintf(`,"agent_context":{"session_id":%q}`, id)
		}
		return fmt.Sprintf(`,"agent_context":{"session_id":%q,"parent_session_id":%q}`, id, parent)
	}
	for _, test := range []struct {
		name, report string
		file, text   string
		args         []string
		// figures are what the report must hold; problem is what the message of a refusal, or a warning, must hold.
		figures map[string]float64
		problem string
		refused bool
	}{
		{
			name: "ids that are equal in their low 32 bits are different blocks", report: "dynamo#12046",
			text: `{"timestamp":0,"input_length":512,"output_length":2,"hash_ids":[1]}
{"timestamp":500,"input_length":512,"output_length":2,"hash_ids":[4294967297]}`,
			figures: map[string]float64{"prefix_cache_reused_ratio": 0},
		},
		{
			name: "a capture that ends in the middle of a gzip member", report: "dynamo#14131, dynamo#13288",
			file:    "capture.000000.jsonl.gz",
			text:    truncated(t, request("a", "", 1000, 64, "[1]")+request("b", "", 1200, 64, "[2]")),
			problem: "capture.000000.jsonl.gz", refused: true,
		},
		{
			name: "a planner and a closed loop: one session at a time", report: "dynamo#11633, dynamo#11637",
			text: `{"session_id":"a","timestamp":0,"input_length":512,"output_length":2,"hash_ids":[1]}
{"session_id":"b","timestamp":0,"input_length":512,"output_length":2,"hash_ids":[2]}
{"session_id":"c","timestamp":0,"input_length":512,"output_length":2,"hash_ids":[3]}`,
			args:    []string{"--replay-concurrency", "1", "--num-workers", "2", "--planner-config", `{"mode":"agg","optimization_target":"throughput"}`},
			figures: map[string]float64{"completed_requests": 3, "duration_ms": 3 * (10 + 1), "max_ttft_ms": 10},
		},
		{
			name: "agents and a time cap: the replay stops at the cap", report: "dynamo#10944",
			text:    request("p1", agent("p", ""), 0, 64, "[1]") + request("p2", agent("p", ""), 5000, 128, "[1,2]"),
			args:    []string{"--max-sim-time-seconds", "1"},
			figures: map[string]float64{"num_requests": 1, "completed_requests": 1},
		},
		{
			name: "one row without a timestamp", report: "dynamo#8998",
			text:    `{"input_length":512,"output_length":2,"hash_ids":[1]}`,
			problem: "has no timestamp", refused: true,
		},
		{
			name: "many more lanes than plays", report: "dynamo#13586",
			text: request("a", agent("p", ""), 0, 64, "[1]") + request("b", agent("q", ""), 0, 64, "[2]"), args: []string{"--replay-concurrency", "1000000000"},
			figures: map[string]float64{"completed_requests": 2, "max_ttft_ms": 10},
		},
		{
			name: "captured requests that overlap run side by side", report: "dynamo#13897",
			text: request("a", "", 1000, 64, "[1]") + request("b", "", 1001, 64, "[2]"),
			// The second waits for the pass of the first one's prompt, not for its answer, and shares its own pass with a decode.
			figures: map[string]float64{"duration_ms": 10 + 11 + 4, "max_ttft_ms": 10 + 11 - 1},
		},
		{
			name: "an id that is a partial block in one turn and a full one in the next", report: "aiperf#1208, aiperf#1219",
			text: `{"session_id":"s","timestamp":0,"input_length":700,"output_length":2,"hash_ids":[1,2]}
{"session_id":"s","input_length":1024,"output_length":2,"hash_ids":[1,2]}`,
			figures: map[string]float64{"completed_requests": 2, "total_input_tokens": 1724, "prefix_cache_reused_ratio": 640.0 / 1724},
		},
		{
			name: "timestamps make an open loop", report: "aiperf#273",
			text: `{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1]}
{"timestamp":3000,"input_length":512,"output_length":1,"hash_ids":[2]}`,
			figures: map[string]float64{"duration_ms": 3010},
		},
		{
			name: "subagents of subagents", report: "aiperf#1209, aiperf#1132, aiperf#1226",
			text: request("p1", agent("p", ""), 0, 64, "[1]") + request("c1", agent("c", "p"), 150, 64, "[2]") + request("g1", agent("g", "c"), 300, 64, "[3]") +
				request("p2", agent("p", ""), 600, 128, "[1,4]"),
			figures: map[string]float64{"completed_requests": 4},
		},
		{
			name: "speed-up of an open loop", report: "aiperf#1129",
			text: `{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1]}
{"timestamp":3000,"input_length":512,"output_length":1,"hash_ids":[2]}`,
			args: []string{"--arrival-speedup-ratio", "3"}, figures: map[string]float64{"duration_ms": 1010},
		},
		{
			name: "the same trace as a closed loop", report: "aiperf#1129, inference-sim#880",
			text: `{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1]}
{"timestamp":3000,"input_length":512,"output_length":1,"hash_ids":[2]}`,
			args: []string{"--replay-concurrency", "1"}, figures: map[string]float64{"duration_ms": 20},
		},
		{
			name: "20 tokens with 2 ids", report: "guidellm#948",
			text:    `{"timestamp":0,"input_length":20,"output_length":1,"hash_ids":[1,2]}`,
			figures: map[string]float64{"total_input_tokens": 20},
		},
		{
			name: "lengths are those of the trace, not of its ids", report: "sglang#20461, inference-sim#1605",
			text:    `{"timestamp":0,"input_length":600,"output_length":7,"hash_ids":[1,2]}`,
			figures: map[string]float64{"total_input_tokens": 600, "total_output_tokens": 7},
		},
		{
			name: "a prompt that is longer than its ids", report: "own find 24",
			text:    `{"timestamp":0,"input_length":2000,"output_length":7,"hash_ids":[1]}`,
			problem: "input_length is 2000: exceeds the 512 tokens that 1 hash_ids", refused: true,
		},
		{
			name: "no output", report: "own find 24",
			text:    `{"timestamp":0,"input_length":512,"output_length":0,"hash_ids":[1]}`,
			figures: map[string]float64{"completed_requests": 1, "total_output_tokens": 0},
		},
		{
			name: "a branch that is not in the trace", report: "own find 24",
			text:    `{"request_id":"a","input_length":512,"output_length":1,"hash_ids":[1],"branches":["ghost"]}`,
			problem: `ghost`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Log(test.report)
			dir := t.TempDir()
			path := filepath.Join(dir, "trace.jsonl")
			if test.file != "" {
				path = filepath.Join(dir, test.file)
			}
			if err := os.WriteFile(path, []byte(test.text), 0o666); err != nil {
				t.Fatal(err)
			}
			report := filepath.Join(dir, "report.json")
			args := append([]string{"replay", path, "--timing", fixed, "--report-json", report}, test.args...)
			got := runCommand(t, args...)
			if (got.code != exitOK) != test.refused {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			if !strings.Contains(got.stderr, test.problem) {
				t.Errorf("the message %q does not hold %q", got.stderr, test.problem)
			}
			if !test.refused {
				compareReport(t, report, test.figures, 1e-9)
			}
		})
	}
}

// TestLostRecords finds what a capture lost without a trace, once it is told what was sent (dynamo#13385, dynamo#13433: a
// plain file of which records went missing under load).
func TestLostRecords(t *testing.T) {
	record := func(id string) string {
		return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1100,"request":{"request_id":%q,"output_tokens":5,"request_received_ms":1000,"total_time_ms":100,"replay":{"trace_block_size":64,"input_length":64,"input_sequence_hashes":[1]}}}`, id) + "\n"
	}
	path := filepath.Join(t.TempDir(), "capture.jsonl")
	if err := os.WriteFile(path, []byte(record("a")+record("c")), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := runCommand(t, "trace", "check", path, "--requests", "2"); got.code != exitOK {
		t.Errorf("a whole capture: exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	if got := runCommand(t, "trace", "check", path, "--requests", "3"); got.code == exitOK || !strings.Contains(got.stdout+got.stderr, "3") {
		t.Errorf("a request is missing: exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
}

// truncated is a gzip stream without its end.
func truncated(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()[:out.Len()-20]
}
