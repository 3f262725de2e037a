package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// coldStartSLA is the SLA by which docs/cold-start.md tells where the cliff is.
const coldStartSLA = "mean_ttft_ms <= 1500 && mean_itl_ms <= 50"

var coldStartColumns = []string{"mean_ttft_ms", "mean_itl_ms", "sla_attainment", "gpu_hours", "workers_added"}

// checkColdStart compares the table and the plot of docs/cold-start.md with the sweep.
func checkColdStart(t *testing.T, dir string) {
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	groups, means := meansOf(t, table, []string{"startup_time"}, coldStartColumns...)
	text := "| start-up | mean TTFT | mean ITL | requests within SLA | GPU hours | workers added |\n|--:|--:|--:|--:|--:|--:|\n"
	for _, g := range groups {
		if m := means[g]; slices.Contains([]string{"0", "10", "20", "30", "40", "60", "80", "120", "180", "240", "300"}, g) {
			text += fmt.Sprintf("| %s s | %s ms | %.0f ms | %.0f %% | %.2f | %.0f |\n", g, count(int(m[0]+.5)), m[1], 100*m[2], m[3], m[4])
		}
	}
	wantBlock(t, "cold-start.md", "study", text)
	wantBlock(t, "cold-start.md", "cliff", "```text\n"+cliffVerdicts(t, dir)+"```\n")
	wantPicture(t, "cold-start.svg", coldStartPlot(groups, means))
}

// cliffVerdicts are the lines of the command cliff that say where the SLA is lost.
func cliffVerdicts(t *testing.T, dir string) (verdicts string) {
	t.Helper()
	for line := range strings.Lines(mustRun(t, "cliff", dir, "--no-sla", "--where", coldStartSLA).stdout) {
		if strings.Contains(line, "lost from") || strings.Contains(line, "kept at all") {
			verdicts += line
		}
	}
	return verdicts
}

// checkColdStartMoves compares what moves the cliff.
func checkColdStartMoves(t *testing.T, dir string) {
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	groups, means := meansOf(t, table, []string{"case", "startup_time"}, coldStartColumns...)
	text := "| changed | mean TTFT at 20 s | at 60 s | at 120 s | within SLA at 60 s | GPU hours at 60 s |\n|---|--:|--:|--:|--:|--:|\n"
	for _, g := range groups {
		name, startup, _ := strings.Cut(g, " ")
		if startup != "0" {
			continue
		}
		at := func(startup string) []float64 { return means[name+" "+startup] }
		text += fmt.Sprintf("| `%s` | %s ms | %s ms | %s ms | %.0f %% | %.2f |\n", name, count(int(at("20")[0]+.5)), count(int(at("60")[0]+.5)), count(int(at("120")[0]+.5)),
			100*at("60")[2], at("60")[3])
	}
	wantBlock(t, "cold-start.md", "moves", text)
	wantBlock(t, "cold-start.md", "moved cliffs", "```text\n"+cliffVerdicts(t, dir)+"```\n")
}

// checkPolicies compares the table of policies.
func checkPolicies(t *testing.T, dir string) {
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	groups, means := meansOf(t, table, []string{"case"}, "mean_ttft_ms", "sla_attainment", "gpu_hours")
	text := "| policy | mean TTFT | requests within SLA | GPU hours |\n|---|--:|--:|--:|\n"
	for _, g := range groups {
		m := means[g]
		text += fmt.Sprintf("| `%s` | %s ms | %.0f %% | %.2f |\n", g, count(int(m[0]+.5)), 100*m[1], m[2])
		if strings.HasPrefix(g, "foresight") && m[1] < 0.9 {
			t.Errorf("%s keeps the SLA for %v of the requests", g, m[1])
		}
		if m[1] >= 0.9 && m[2] < means["foresight"][2]-1e-9 {
			t.Errorf("%s keeps the SLA with %v GPU hours, foresight takes %v", g, m[2], means["foresight"][2])
		}
	}
	wantBlock(t, "cold-start.md", "policies", text)
}

// coldStartPlot draws mean TTFT, attainment and GPU hours over the start-up time.
func coldStartPlot(groups []string, means map[string][]float64) string {
	of := func(colour string, column int, scale float64) []curve {
		c := curve{colour: colour}
		for _, g := range groups {
			var s float64
			fmt.Sscan(g, &s)
			c.x, c.y = append(c.x, s), append(c.y, means[g][column]*scale)
		}
		return []curve{c}
	}
	const axis = "start-up, s"
	return drawPanels(
		panel{title: "mean TTFT, s (SLA: 1.5)", axis: axis, right: 300, top: 16, bound: 1.5, curves: of("#c0392b", 0, 0.001)},
		panel{title: "requests within SLA, %", axis: axis, right: 300, top: 100, curves: of("#2471a3", 2, 100)},
		panel{title: "GPU hours", axis: axis, right: 300, top: 1, curves: of("#1e8449", 3, 1)},
	)
}

// TestColdStartConversation sweeps the start-up time on the real conversation trace: 31 points in 15 s on two cores. Its load
// hardly changes, so that there is no cliff: the slowest start costs less than a third more.
func TestColdStartConversation(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 31 hours of traffic")
	}
	trace := filepath.Join(sharedData(t), "traces/mooncake/conversation_trace.jsonl")
	if !exists(trace) {
		t.Skip("needs the conversation trace: set SHARED_DATA_DIR to the folder that holds traces/mooncake")
	}
	dir, begin := t.TempDir(), time.Now()
	mustRun(t, "sweep", filepath.Join(repository, "examples/cold-start/grid.yaml"), "-q", "-o", dir,
		"--set", fmt.Sprintf("workload={trace: {path: %q}}", trace), "--set", "execution.replicates=1")
	if took := time.Since(begin); took > time.Minute*slowdown {
		t.Errorf("the sweep takes %v", took)
	}
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	if table.Rows() != 31 {
		t.Fatalf("%d points", table.Rows())
	}
	ttft := floats(t, table, "mean_ttft_ms")
	if most := slices.Max(ttft); most > 4.0/3*ttft[0] {
		t.Errorf("mean TTFT rises from %.0f to %.0f ms", ttft[0], most)
	}
}
