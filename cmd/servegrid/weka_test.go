package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestWekaHitFraction replays the public conversations one request at a time without a limit to the cache: what is reused
// is what their publishers counted, as leading blocks that were seen before (spec/workloads.md §9 C20).
func TestWekaHitFraction(t *testing.T) {
	folder := filepath.Join(sharedData(t), "traces/weka")
	if !exists(folder) {
		t.Skip("needs the public conversations: set SHARED_DATA_DIR to the folder that holds traces/weka")
	}
	data, err := os.ReadFile(filepath.Join(folder, "STATS.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	columns := map[string]int{}
	for i, name := range strings.Split(lines[0], "\t") {
		columns[name] = i
	}
	for _, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		name := fields[columns["file"]]
		t.Run(name, func(t *testing.T) {
			want, err := strconv.ParseFloat(fields[columns["hit_frac"]], 64)
			if err != nil {
				t.Fatal(err)
			}
			requests := filepath.Join(t.TempDir(), "requests.jsonl")
			mustRun(t, "replay", filepath.Join(folder, name), "--replay-concurrency", "1", "--timing", `{"source":"fixed","prefill_ms":1,"decode_ms":1}`,
				"--extra-engine-args", `{"block_size":64,"num_gpu_blocks":4000000,"max_num_batched_tokens":2000000,"context_length":2000000}`,
				"--report-json", filepath.Join(t.TempDir(), "report.json"), "--report-jsonl", requests)
			reused, blocks, n := 0.0, 0.0, 0
			for _, r := range readRequests(t, requests) {
				reused += math.Floor(r[6] / 64)
				blocks += math.Floor(r[1] / 64)
				n++
			}
			if want := fields[columns["requests"]]; strconv.Itoa(n) != want {
				t.Errorf("%d requests, want %s", n, want)
			}
			if got := reused / blocks; math.Abs(got-want) > 1e-3 {
				t.Errorf("%.4f of the blocks are reused, want %.4f", got, want)
			}
		})
	}
}
