package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/results"
)

// sixtyPoints makes a spec of 60 points that replay so many requests each.
func sixtyPoints(requests int) string {
	return fmt.Sprintf(`
name: sixty
workload: {preset: {name: chat, requests: %d, seed: 1}}
sla: {ttft_ms: 2000, itl_ms: 40}
grid:
  deployment.workers: [1, 2, 3, 4, 5]
  engine.max_num_seqs: [4, 8, 16, 32]
  load.speedup: [0.5, 1, 2]
`, requests)
}

// writeSpec writes a spec into a folder of its own and returns its path.
func writeSpec(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grid.yaml")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// mustRun runs a command line that must succeed.
func mustRun(t *testing.T, args ...string) outcome {
	t.Helper()
	got := runCommand(t, args...)
	if got.code != exitOK {
		t.Fatalf("servegrid %s: exit code %d: %s", strings.Join(args, " "), got.code, got.stderr)
	}
	return got
}

func readResultsFile(t *testing.T, path string) *results.Table {
	t.Helper()
	table, err := results.ReadTable(path)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// rowsWithoutWallTime returns the cells of a results file, header first, except for the only column that may differ.
func rowsWithoutWallTime(t *testing.T, path string) [][]string {
	t.Helper()
	table := readResultsFile(t, path)
	out := make([][]string, table.Rows()+1)
	for _, c := range table.Columns {
		if c.Name == "wall_s" {
			continue
		}
		out[0] = append(out[0], c.Name)
		for row := range table.Rows() {
			out[row+1] = append(out[row+1], c.Text(row))
		}
	}
	return out
}

// The results do not depend on how many points run at once, or on the order in which they finish.
func TestJobsDoNotChangeResults(t *testing.T) {
	spec := writeSpec(t, sixtyPoints(300))
	one, eight := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "eight")
	mustRun(t, "sweep", spec, "-q", "--jobs", "1", "-o", one)
	mustRun(t, "sweep", spec, "-q", "--jobs", "8", "-o", eight)
	want := rowsWithoutWallTime(t, filepath.Join(one, "results.parquet"))
	if len(want) != 61 {
		t.Fatalf("%d rows, want 60", len(want)-1)
	}
	if diff := cmp.Diff(want, rowsWithoutWallTime(t, filepath.Join(eight, "results.parquet"))); diff != "" {
		t.Errorf("--jobs 8 differs from --jobs 1 (-1 +8):\n%s", diff)
	}
}

// Every column of a sweep's results is described in docs/results.md, or is one of the spec's own derived values.
func TestColumnsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|").FindAllSubmatch(page, -1) {
		documented[string(m[1])] = true
	}
	spec := writeSpec(t, sixtyPoints(100)+`
cases:
  small: {engine.num_gpu_blocks: 4096}
  large: {engine.num_gpu_blocks: 8192}
derive: {tokens: engine.num_gpu_blocks * engine.block_size}
execution: {replicates: 2}
`)
	dir := filepath.Join(t.TempDir(), "out")
	mustRun(t, "sweep", spec, "-q", "-o", dir, "--set", "grid={deployment.workers: [1, 2]}", "--format", "csv,json,arrow")
	own := map[string]bool{"workers": true, "case": true, "tokens": true, "engine_num_gpu_blocks": true}
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	if table.Rows() != 8 {
		t.Errorf("%d rows, want 8", table.Rows())
	}
	found := map[string]bool{}
	for _, c := range table.Columns {
		found[c.Name] = true
		if !documented[c.Name] && !own[c.Name] {
			t.Errorf("column %s is not in docs/results.md", c.Name)
		}
	}
	for _, name := range []string{"id", "status", "replicate", "gpus", "mean_ttft_ms", "sla_attainment", "goodput_request_throughput_rps",
		"output_throughput_tok_s_per_gpu", "gpu_hours", "timing_source", "on_frontier", "workers", "case", "tokens", "engine_num_gpu_blocks"} {
		if !found[name] {
			t.Errorf("column %s is missing", name)
		}
	}
	want := rowsWithoutWallTime(t, filepath.Join(dir, "results.parquet"))
	for _, format := range []string{"csv", "json"} {
		if diff := cmp.Diff(want, rowsWithoutWallTime(t, filepath.Join(dir, "results."+format))); diff != "" {
			t.Errorf("results.%s differs (-parquet +%s):\n%s", format, format, diff)
		}
	}
}

// Reading a spec costs little beside its points, also when there are many.
func TestManyPoints(t *testing.T) {
	spec := writeSpec(t, `
workload: {synthetic: {input_tokens: 10, output_tokens: 2, requests: 1}}
grid: {deployment.workers: {range: [1, 2000, 1]}}
`)
	dir := filepath.Join(t.TempDir(), "out")
	got := mustRun(t, "sweep", spec, "-o", dir)
	if want := fmt.Sprintf("%d points: %d ok, 0 failed, 0 skipped", 2000, 2000); !strings.Contains(got.stdout, want) {
		t.Errorf("no %q in:\n%s", want, got.stdout)
	}
}
