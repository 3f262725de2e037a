package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/live/report"
)

// recording is a conversation of three turns, of which the last comes after a long pause.
const recording = `{"id": "c", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "tool_tokens": 0, "system_tokens": 0, "requests": [
	{"t": 0, "type": "n", "model": "m", "in": 128, "out": 2, "hash_ids": [1, 2], "input_types": ["text"], "output_types": ["text"], "stop": "", "api_time": 0.01},
	{"t": 0.02, "type": "n", "model": "m", "in": 192, "out": 3, "hash_ids": [1, 2, 3], "input_types": ["text"], "output_types": ["text"], "stop": "", "api_time": 0.01},
	{"t": 500, "type": "n", "model": "m", "in": 256, "out": 2, "hash_ids": [1, 2, 3, 4], "input_types": ["text"], "output_types": ["text"], "stop": "", "api_time": 0.01}]}`

// A live run of the AgentX scenario tells of plays and cut idle time what a simulated one does.
func TestLiveAgentX(t *testing.T) {
	dir := t.TempDir()
	trace, out := filepath.Join(dir, "c.json"), filepath.Join(dir, "out")
	writeFile(t, trace, []byte(recording))
	got := runCommand(t, "live", trace, "--url", newLiveServer(t, nil).URL, "--output", out, "--replay-concurrency", "1",
		"--set", "agentx.preset=ix", "--set", "agentx.duration_s=1", "--set", "agentx.grace_s=5", "--set", "agentx.global_idle_cap_s=0.05", "--set", "engine.block_size=64")
	if got.code != exitOK || !strings.Contains(got.stdout, "plays completed") {
		t.Fatalf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	row := readResultsFile(t, filepath.Join(out, report.ResultsFile))
	figure := func(column string) float64 { return floats(t, row, column)[0] }
	started, completed, cuts := figure("started_plays"), figure("completed_plays"), figure("idle_cuts")
	if started < 2 || completed < 1 || completed > started || cuts < completed-1 || figure("idle_cut_ms") < 400_000*cuts/2 {
		t.Errorf("%v of %v plays completed, %v idle times cut by %v ms", completed, started, cuts, figure("idle_cut_ms"))
	}
	if hits := figure("theoretical_hit_ratio"); hits < .3 || hits > .7 || figure("median_play_latency_ms") <= 0 || figure("never_issued_requests") < 0 {
		t.Errorf("a cache without limit has %v; a play takes %v ms; %v requests were never issued", hits, figure("median_play_latency_ms"), figure("never_issued_requests"))
	}
	requests := readResultsFile(t, filepath.Join(out, report.RequestsFile))
	phase, play := requests.Column("phase"), requests.Column("play_index")
	plays := map[int64]int{}
	for i := range requests.Rows() {
		if profiled := phase.Text(i) == "profile"; profiled == play.Null[i] {
			t.Errorf("request %d of phase %s is of play %v", i, phase.Text(i), play.Text(i))
		} else if profiled {
			plays[play.Ints[i]]++
		}
	}
	if len(plays) > int(started) || len(plays) < int(completed) || plays[1] != 3 && started > 2 {
		t.Errorf("requests of plays: %v, of %v", plays, started)
	}
}
