package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTiersPage checks that the table of docs/tiers.md has the figures of the example.
func TestTiersPage(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, "sweep", filepath.Join(repository, "examples/tiers/grid.yaml"), "-q", "-o", dir)
	page, err := os.ReadFile(filepath.Join(repository, "docs/tiers.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	number := func(column string, row int) float64 {
		values, err := table.Column(column).Float64s()
		if err != nil {
			t.Fatal(err)
		}
		return values[row]
	}
	for i := range table.Rows() {
		host, bandwidth := grouped(number("num_g2_blocks", i)), fmt.Sprint(number("bandwidth_g2_to_g1_gbps", i))
		if host = strings.TrimSuffix(host, ".00"); host == "0" {
			bandwidth = "–"
		}
		want := fmt.Sprintf("| %v | %s | %s | %.0f ms | %.1f %% |", number("concurrency", i), host, bandwidth, number("mean_ttft_ms", i), 100*number("prefix_cache_reused_ratio", i))
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/tiers.md lacks %q", want)
		}
	}
}
