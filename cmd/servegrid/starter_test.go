package main

import (
	"path/filepath"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
)

// A first sweep shows what a sweep is for: several points worth running, and axes that matter.
func TestFirstSweeps(t *testing.T) {
	for name, spec := range map[string]string{
		"starter":    writeSpec(t, string(gridspec.Starter())),
		"quickstart": filepath.Join(repository, "examples/quickstart/grid.yaml"),
	} {
		dir := t.TempDir()
		got := mustRun(t, "sweep", spec, "-q", "-o", dir)
		if got.stderr != "" {
			t.Errorf("%s: %s", name, got.stderr)
		}
		table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
		frontier := 0
		for row := range table.Rows() {
			if table.Column("on_frontier").Bools[row] {
				frontier++
			}
		}
		if frontier < 3 {
			t.Errorf("%s: the frontier has %d rows", name, frontier)
		}
		outcomes := map[string]bool{}
		for row := range table.Rows() {
			outcome := ""
			for _, metric := range []string{"mean_ttft_ms", "p99_ttft_ms", "p99_tpot_ms", "output_throughput_tok_s_per_gpu"} {
				outcome += table.Column(metric).Text(row) + " "
			}
			outcomes[outcome] = true
		}
		if len(outcomes) < table.Rows()*9/10 {
			t.Errorf("%s: %d points have %d different outcomes", name, table.Rows(), len(outcomes))
		}
	}
}
