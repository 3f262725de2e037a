package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/servegrid/servegrid/results"
)

// coldStartSLA is the SLA by which docs/cold-start.md tells where the cliff is.
const coldStartSLA = "mean_ttft_ms <= 1500 && mean_itl_ms <= 50"

// wantBlock checks that a page has a text between two comments that name it, or writes it there.
func wantBlock(t *testing.T, page, name, text string) {
	t.Helper()
	path := filepath.Join(repository, "docs", page)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(old), "<!-- "+name+": from TestExamples -->\n")
	shown, after, ended := strings.Cut(rest, "<!-- end -->")
	switch {
	case !found || !ended:
		t.Fatalf("docs/%s has no block %s", page, name)
	case shown == text:
	case *update:
		whole := before + "<!-- " + name + ": from TestExamples -->\n" + text + "<!-- end -->" + after
		if err := os.WriteFile(path, []byte(whole), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/%s shows other figures; run go test -run TestExamples ./cmd/servegrid -update\n%s", page, text)
	}
}

// meansOf are the means of columns over the rows of which the axes have the same values, in the order of the first ones.
func meansOf(t *testing.T, table *results.Table, axes []string, columns ...string) (groups []string, means map[string][]float64) {
	t.Helper()
	means = map[string][]float64{}
	counts := map[string]float64{}
	for row := range table.Rows() {
		var words []string
		for _, axis := range axes {
			words = append(words, table.Column(axis).Text(row))
		}
		group := strings.Join(words, " ")
		if counts[group]++; counts[group] == 1 {
			groups = append(groups, group)
			means[group] = make([]float64, len(columns))
		}
		for i, column := range columns {
			means[group][i] += floats(t, table, column)[row]
		}
	}
	for group, sums := range means {
		for i := range sums {
			sums[i] /= counts[group]
		}
	}
	return groups, means
}

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
	plot := coldStartPlot(groups, means)
	path := filepath.Join(repository, "docs/cold-start.svg")
	if *update {
		if err := os.WriteFile(path, []byte(plot), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if shown, err := os.ReadFile(path); err != nil || string(shown) != plot {
		t.Errorf("docs/cold-start.svg is another plot (%v); run go test -run TestExamples ./cmd/servegrid -update", err)
	}
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
	const width, height, left, panel = 720, 300, 56, 200
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	for i, p := range []struct {
		title, colour string
		column        int
		scale, top    float64
		bound         float64
	}{
		{"mean TTFT, s (SLA: 1.5)", "#c0392b", 0, 0.001, 16, 1.5},
		{"requests within SLA, %", "#2471a3", 2, 100, 100, -1},
		{"GPU hours", "#1e8449", 3, 1, 1, -1},
	} {
		x0 := float64(left + i*(panel+32))
		x := func(s float64) float64 { return x0 + s/300*(panel-24) }
		y := func(v float64) float64 { return 250 - v/p.top*200 }
		fmt.Fprintf(&b, `<text x="%.0f" y="30" font-weight="bold">%s</text>`+"\n", x0, p.title)
		for k := range 5 {
			v := p.top * float64(k) / 4
			fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end" fill="#555">%g</text>`+"\n", x0, y(v), x(300), x0-5, y(v)+4, v)
		}
		for _, s := range []float64{0, 100, 200, 300} {
			fmt.Fprintf(&b, `<text x="%.1f" y="266" text-anchor="middle" fill="#555">%g</text>`+"\n", x(s), s)
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="284" text-anchor="middle" fill="#555">start-up, s</text>`+"\n", x(150))
		if p.bound > 0 {
			fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#888" stroke-dasharray="4 3"/>`+"\n", x0, y(p.bound), x(300))
		}
		var points []string
		for _, g := range groups {
			var s float64
			fmt.Sscan(g, &s)
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(s), y(math.Min(p.top, means[g][p.column]*p.scale))))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", p.colour, strings.Join(points, " "))
	}
	b.WriteString("</svg>\n")
	return b.String()
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
