package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestPlannerWithEveryFormat replays a trace of each format with a planner, and checks that every request is served.
func TestPlannerWithEveryFormat(t *testing.T) {
	dynamo := `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1100,"agent_context":{"session_id":"s"},"request":{"request_id":"a","output_tokens":5,"request_received_ms":1000,"total_time_ms":100,"replay":{"trace_block_size":64,"input_length":64,"input_sequence_hashes":[1]}}}
{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":9100,"agent_context":{"session_id":"s"},"request":{"request_id":"b","output_tokens":5,"request_received_ms":9000,"total_time_ms":100,"replay":{"trace_block_size":64,"input_length":128,"input_sequence_hashes":[1,2]}}}
`
	weka := `{"id":"w","models":["m"],"block_size":64,"hash_id_scope":"local","tool_tokens":0,"system_tokens":0,"requests":[{"t":0.0,"type":"s","model":"m","in":200,"out":20,"hash_ids":[1,2,3],"input_types":["text"],"output_types":["text"],"stop":"","api_time":0.5,"think_time":0.0},{"t":9.0,"type":"s","model":"m","in":260,"out":20,"hash_ids":[1,2,3,4],"input_types":["text"],"output_types":["text"],"stop":"","api_time":0.5,"think_time":8.0}]}`
	for _, test := range []struct {
		format, file, text string
		requests           float64
	}{
		{"mooncake", "t.jsonl", `{"timestamp":0,"input_length":512,"output_length":2,"hash_ids":[1]}` + "\n" + `{"timestamp":9000,"input_length":512,"output_length":2,"hash_ids":[2]}`, 2},
		{"agentic mooncake", "t.jsonl", `{"request_id":"a","timestamp":0,"input_length":512,"output_length":2,"hash_ids":[1]}` + "\n" + `{"request_id":"b","wait_for":["a"],"delay":9000,"input_length":512,"output_length":2,"hash_ids":[1]}`, 2},
		{"dynamo", "t.jsonl", dynamo, 2},
		{"weka", "t.json", weka, 2},
		{"aiperf", "t.jsonl", `{"session_id":"a","timestamp":0,"text_input":"one two three","output_length":3}` + "\n" + `{"session_id":"b","timestamp":9000,"input_length":99,"output_length":3}`, 2},
		{"azure", "t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9,4808,10\n2023-11-16 18:17:14.0,3180,2\n", 2},
		{"burstgpt", "t.csv", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n15,GPT-4,1087,230,1317,API log\n", 2},
		{"qwen-bailian", "t.jsonl", `{"chat_id":1,"parent_chat_id":-1,"timestamp":61,"input_length":33,"output_length":5,"type":"text","turn":1,"hash_ids":[7,8,9]}` + "\n" + `{"chat_id":2,"parent_chat_id":1,"timestamp":70.5,"input_length":40,"output_length":6,"turn":2,"hash_ids":[7,8,10]}`, 2},
	} {
		t.Run(test.format, func(t *testing.T) {
			dir := t.TempDir()
			path, report := filepath.Join(dir, test.file), filepath.Join(dir, "report.json")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := runCommand(t, "replay", path, "--num-workers", "2", "--report-json", report, "--planner-output", filepath.Join(dir, "planner"),
				"--planner-config", `{"mode":"agg","optimization_target":"throughput","load_adjustment_interval":1}`)
			if got.code != exitOK {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			data, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			var figures map[string]any
			if err := json.Unmarshal(data, &figures); err != nil {
				t.Fatal(err)
			}
			if figures["completed_requests"] != test.requests || figures["planner_ticks"].(float64) < 5 || figures["scale_downs"] != 1.0 {
				t.Errorf("%v requests, %v ticks, %v workers given up; want %v, 5 or more, 1",
					figures["completed_requests"], figures["planner_ticks"], figures["scale_downs"], test.requests)
			}
		})
	}
}
