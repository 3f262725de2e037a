package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/results"
)

// agentXRows are the rows of a table in docs/agentx.md: what a sweep gives for some numbers of users.
func agentXRows(t *testing.T, dir string, ofUsers ...float64) []string {
	t.Helper()
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	number := func(column string, row int) float64 { return floats(t, table, column)[row] }
	var rows []string
	for i := range table.Rows() {
		users, host := number("concurrency", i), count(int(number("num_g2_blocks", i)))
		if !slices.Contains(ofUsers, users) {
			continue
		}
		rows = append(rows, fmt.Sprintf("| %s | %.0f | %s | %s | %.1f | %s ms | %.1f %% | %.1f %% |", strings.ToUpper(strings.TrimSuffix(table.Column("gpu").Text(i), "_sxm")), users, host,
			count(int(number("total_throughput_tok_s_per_gpu", i)+.5)), number("p90_e2e_normalised_interactivity", i), count(int(number("p90_ttft_ms", i)+.5)),
			100*number("prefix_cache_reused_ratio", i), 100*number("theoretical_hit_ratio", i)))
		if reused, most := number("prefix_cache_reused_ratio", i), number("theoretical_hit_ratio", i); reused > most {
			t.Errorf("row %d reuses %v, a cache without limit %v", i, reused, most)
		}
		if issued := number("completed_requests", i) + number("unfinished_requests", i) + number("rejected_requests", i); issued != number("num_requests", i) {
			t.Errorf("row %d: %v of %v requests ended somewhere", i, issued, number("num_requests", i))
		}
	}
	return rows
}

func floats(t *testing.T, table *results.Table, column string) []float64 {
	t.Helper()
	values, err := table.Column(column).Float64s()
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// wantOnAgentXPage checks that docs/agentx.md has all rows.
func wantOnAgentXPage(t *testing.T, rows []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "docs/agentx.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range rows {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/agentx.md lacks %q", want)
		}
	}
}

// TestAgentXPage checks that the table of docs/agentx.md has the figures of the example, and what InferenceX's file says.
func TestAgentXPage(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, "sweep", filepath.Join(repository, "examples/agentx/grid.yaml"), "-q", "-o", dir, "--format", "inferencex")
	wantOnAgentXPage(t, agentXRows(t, dir, 1, 8, 16, 32))
	text, err := os.ReadFile(filepath.Join(dir, "inferencex.json"))
	if err != nil {
		t.Fatal(err)
	}
	var points []map[string]any
	if err := json.Unmarshal(text, &points); err != nil || len(points) != 32 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	for _, key := range []string{"hw", "model", "framework", "precision", "conc", "tp", "num_gpus", "scenario", "tput_per_gpu", "input_tput_per_gpu", "output_tput_per_gpu", "qps",
		"theoretical_cache_hit_rate", "server_cache_hit_rate", "request_accounting", "mean_ttft", "p50_e2el", "p75_itl", "p90_tpot", "p95_intvty", "p90_e2e_norm_intvty", "std_ttft"} {
		if points[0][key] == nil {
			t.Errorf("inferencex.json lacks %s", key)
		}
	}
}

// TestAgentXRecordings checks that the second table of docs/agentx.md has the figures of the sweep that it names. tools/agentx.py
// checks the time of that sweep, and the shape of its curves.
func TestAgentXRecordings(t *testing.T) {
	folder := filepath.Join(sharedData(t), "traces/weka")
	if !exists(folder) {
		t.Skip("needs the public conversations: set SHARED_DATA_DIR to the folder that holds traces/weka")
	}
	dir := t.TempDir()
	mustRun(t, "sweep", filepath.Join(repository, "examples/agentx/grid.yaml"), "-q", "-o", dir, "--set", "workload.trace.path="+folder, "--set", "timing.tp=8",
		"--set", "grid.load.concurrency=[1, 2, 4, 8, 16, 32, 64]", "--set", "grid.tiers.num_g2_blocks=[0, 131072]")
	wantOnAgentXPage(t, agentXRows(t, dir, 1, 16, 32, 64))
}
