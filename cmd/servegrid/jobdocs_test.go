package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// palette colours the curves of pictures that have several.
var palette = []string{"#2471a3", "#c0392b", "#1e8449", "#b9770e", "#7d3c98", "#212f3d", "#17a589"}

// curvesOf are the means of a metric along an axis, a curve for each value of another column, in order of first appearance.
func curvesOf(t *testing.T, dir, by, axis, metric string, scale float64) []curve {
	t.Helper()
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	groups, means := meansOf(t, table, []string{by, axis}, axis, metric)
	var out []curve
	for _, g := range groups {
		label := g[:strings.LastIndexByte(g, ' ')]
		at := slices.IndexFunc(out, func(c curve) bool { return c.label == label })
		if at < 0 {
			at, out = len(out), append(out, curve{label: label, colour: palette[len(out)%len(palette)]})
		}
		out[at].x, out[at].y = append(out[at].x, means[g][0]), append(out[at].y, means[g][1]*scale)
	}
	return out
}

// rowsOfCurves lays curves with the same x out as a table, with a format for each figure.
func rowsOfCurves(head, format string, curves []curve) string {
	text := "| " + head
	for _, x := range curves[0].x {
		text += fmt.Sprintf(" | %g", x)
	}
	text += " |\n|---" + strings.Repeat("|--:", len(curves[0].x)) + "|\n"
	for _, c := range curves {
		text += "| " + c.label
		for _, y := range c.y {
			text += fmt.Sprintf(" | "+format, y)
		}
		text += " |\n"
	}
	return text
}

// only keeps the curves with these labels, in their order, and colours them anew.
func only(curves []curve, labels ...string) []curve {
	var out []curve
	for _, label := range labels {
		c := curves[slices.IndexFunc(curves, func(c curve) bool { return c.label == label })]
		c.colour = palette[len(out)]
		out = append(out, c)
	}
	return out
}

func checkParallelism(t *testing.T, dir string) {
	attained := curvesOf(t, dir, "case", "load_rate", "sla_attainment", 100)
	speed := curvesOf(t, dir, "case", "load_rate", "mean_output_token_throughput_per_user", 1)
	wantBlock(t, "parallelism.md", "layouts", rowsOfCurves("requests within the SLA at … sessions/s", "%.0f %%", attained))
	shown := []string{"tp1 x 8", "tp2 x 4", "tp4 x 2", "tp8 x 1", "tp1 6p+2d", "tp2 3p+1d"}
	wantPicture(t, "parallelism.svg", drawPanels(
		panel{title: "requests within the SLA, %", axis: "sessions/s", right: 20, top: 100, curves: only(attained, shown...)},
		panel{title: "tokens/s for each user", axis: "sessions/s", right: 20, top: 160, curves: only(speed, shown...)},
	))
}

func checkCapacity(t *testing.T, dir string) {
	attained := curvesOf(t, dir, "workers", "load_rate", "sla_attainment", 100)
	wantBlock(t, "capacity.md", "capacity", rowsOfCurves("workers \\ sessions/s", "%.1f %%", attained))
	edges := mustRun(t, "cliff", dir, "--axis", "load_rate", "--no-sla", "--where", "sla_attainment >= 0.99").stdout
	wantBlock(t, "capacity.md", "edges", "```text\n"+edges[strings.IndexByte(edges, '\n')+1:]+"```\n")
	for i := range attained {
		attained[i].label += " workers"
	}
	wantPicture(t, "capacity.svg", drawPanels(panel{title: "requests within the SLA, %", axis: "sessions/s", right: 32, top: 100, curves: attained}))
}

func checkRouterTuning(t *testing.T, dir string) {
	text := mustRun(t, "sensitivity", dir, "--metric", "mean_ttft_ms,p99_itl_ms,prefix_cache_reused_ratio").stdout
	wantBlock(t, "routing.md", "tuning", "```text\n"+text+"```\n")
	curves := curvesOf(t, dir, "overlap_score_credit", "router_temperature", "mean_ttft_ms", 1)
	for i := range curves {
		curves[i].label = "credit " + curves[i].label
	}
	wantPicture(t, "routing.svg", drawPanels(panel{title: "mean TTFT, ms", axis: "temperature", right: 1, top: 400, curves: curves}))
}

func checkGPUs(t *testing.T, dir string) {
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	cost, ttft, speed := floats(t, table, "cost_usd_per_mtok_output"), floats(t, table, "p99_ttft_ms"), floats(t, table, "mean_output_token_throughput_per_user")
	best := map[string]int{}
	var order []string
	for row := range table.Rows() {
		name := table.Column("model").Text(row) + " | " + table.Column("gpu").Text(row)
		if !(ttft[row] <= 2000 && speed[row] >= 60) {
			continue
		}
		known, ok := best[name]
		if !ok {
			order = append(order, name)
		}
		if !ok || cost[row] < cost[known] {
			best[name] = row
		}
	}
	text := "| model | GPU | TP | workers | users | USD per million output tokens | tokens/s for each user | p99 TTFT |\n|---|---|--:|--:|--:|--:|--:|--:|\n"
	for _, name := range order {
		row := best[name]
		at := func(column string) string { return table.Column(column).Text(row) }
		text += fmt.Sprintf("| %s | %s | %s | %s | %.2f | %.0f | %s ms |\n", name, at("tp"), at("workers"), at("concurrency"), cost[row], speed[row], count(int(ttft[row]+.5)))
	}
	wantBlock(t, "gpus.md", "gpus", text)
}
