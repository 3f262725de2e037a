package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/results"
)

// gpuSpec compares a GPU with tables and one without.
const gpuSpec = `
workload: {synthetic: {input_tokens: 256, output_tokens: 16, requests: 20}}
timing: {model: llama-3.1-8b}
grid: {timing.gpu: [h200, mi300x], deployment.workers: [1, 2]}
objectives: {minimize: [mean_ttft_ms, cost_usd_per_mtok_output]}
`

// TestNewPricesSimulateNothing checks that a sweep whose prices changed keeps its results and computes costs anew.
func TestNewPricesSimulateNothing(t *testing.T) {
	spec, dir := writeSpec(t, gpuSpec), filepath.Join(t.TempDir(), "out")
	mustRun(t, "sweep", spec, "-o", dir)
	before := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	if err := os.WriteFile(spec, []byte(gpuSpec+"prices: {H200: 1000}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, "sweep", spec, "-o", dir)
	if !strings.Contains(got.stdout, "0 simulated now, 4 reused") {
		t.Errorf("the sweep simulated again:\n%s", got.stdout)
	}
	after := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	for row := range after.Rows() {
		was, is := before.Column("cost_usd").Floats[row], after.Column("cost_usd").Floats[row]
		if gpu := after.Column("gpu").Text(row); gpu == "mi300x" && was != is {
			t.Errorf("the MI300X costs %v, then %v", was, is)
		} else if want := 1000 * after.Column("gpu_hours").Floats[row]; gpu == "h200_sxm" && math.Abs(is-want) > 1e-12*want {
			t.Errorf("the H200 costs %v, want %v", is, want)
		}
		if a, b := before.Column("mean_ttft_ms").Text(row), after.Column("mean_ttft_ms").Text(row); a != b {
			t.Errorf("row %d has a mean TTFT of %s, then %s", row, a, b)
		}
		if before.Column("id").Text(row) != after.Column("id").Text(row) {
			t.Errorf("row %d has another ID", row)
		}
	}
	again := filepath.Join(t.TempDir(), "again")
	mustRun(t, "sweep", filepath.Join(dir, "spec.yaml"), "-o", again)
	if text := readResultsFile(t, filepath.Join(again, "results.parquet")).Column("cost_usd").Text(0); text != after.Column("cost_usd").Text(0) {
		t.Errorf("the resolved spec has a cost of %s, want %s", text, after.Column("cost_usd").Text(0))
	}
}

// TestFrontierOfSeveralTimings checks what the terminal says of analytic points.
func TestFrontierOfSeveralTimings(t *testing.T) {
	spec, dir := writeSpec(t, gpuSpec), filepath.Join(t.TempDir(), "out")
	got := mustRun(t, "sweep", spec, "-o", dir)
	for _, part := range []string{"timing_source", "analytic", "with analytic timing, a roofline: ±40 % in prefill, ±40 % in decode."} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("%q is missing in\n%s", part, got.stdout)
		}
	}
	if tables := mustRun(t, "pareto", dir, "--where", "gpu == h200_sxm"); strings.Contains(tables.stdout, "roofline") {
		t.Errorf("no shown row is analytic:\n%s", tables.stdout)
	}
	plain := mustRun(t, "sweep", writeSpec(t, strings.Replace(gpuSpec, ", mi300x", "", 1)), "-o", filepath.Join(t.TempDir(), "out"))
	if strings.Contains(plain.stdout, "timing_source") || strings.Contains(plain.stdout, "roofline") {
		t.Errorf("all rows have tables:\n%s", plain.stdout)
	}
}

// TestSuspectTablesAreNamed checks the terminal's warning of rows from suspect tables.
func TestSuspectTablesAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.csv")
	writeText(t, path, "gpu,timing_anomaly,tokens_per_s,p99_ms\na,true,9,9\nb,false,5,5\n")
	got := mustRun(t, "pareto", path, "--maximize", "tokens_per_s", "--minimize", "p99_ms")
	if !strings.Contains(got.stdout, "1 row from tables whose source is suspect") {
		t.Errorf("no warning in\n%s", got.stdout)
	}
}

// TestFrontierCautions checks what the terminal says of points whose figures are not what they seem.
func TestFrontierCautions(t *testing.T) {
	for name, test := range map[string]struct {
		spec          string
		parts, absent []string
	}{
		"rejections": {
			"workload: {synthetic: {input_tokens: 900, output_tokens: 16, requests: 20}}\ngrid: {engine.context_length: [0, 800]}\nobjectives: {minimize: [gpu_hours]}",
			[]string{"│ rejected_requests │", "Requests are rejected at 1 point, 1 of them on the frontier (up to 20 of 20: prompts longer than the context or the KV pool); see rejected_requests.\n"},
			[]string{"Without"},
		},
		"no price": {
			strings.Replace(gpuSpec, "mi300x", "gb300", 1),
			[]string{"Without cost_usd_per_mtok_output and so not compared: 2 points (no price of gb300; set prices.gb300).\n"},
			[]string{"rejected_requests"},
		},
		"extrapolated": {
			"workload: {synthetic: {input_tokens: 256, output_tokens: 16, requests: 2}}\ntiming: {profile: p.csv}\ngrid: {deployment.workers: [1, 2]}",
			[]string{"More than half of the passes lie outside of what was measured at 2 points, up to 100 % (extrapolated_pass_ratio).\n"},
			[]string{"rejected_requests", "Without"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec, dir := writeSpec(t, test.spec), filepath.Join(t.TempDir(), "out")
			writeText(t, filepath.Join(filepath.Dir(spec), "p.csv"), "phase,new_tokens,batch,context,ms\nprefill,1,,,10\nprefill,4,,,50\ndecode,,1,1,2\ndecode,,1,3,3\ndecode,,9,1,4\ndecode,,9,3,6\n")
			got := mustRun(t, "sweep", spec, "-o", dir)
			again := mustRun(t, "pareto", dir)
			report := mustRun(t, "report", dir, "-o", filepath.Join(dir, "again.html"))
			for _, part := range test.parts {
				if !strings.Contains(got.stdout, part) || !strings.Contains(again.stdout, part) {
					t.Errorf("%q is missing in\n%s%s", part, got.stdout, again.stdout)
				}
			}
			if caution := test.parts[len(test.parts)-1]; report.stderr != caution {
				t.Errorf("report says %q, want %q", report.stderr, caution)
			}
			for _, part := range test.absent {
				if strings.Contains(got.stdout, part) {
					t.Errorf("%q is in\n%s", part, got.stdout)
				}
			}
		})
	}
}

func TestErrorPct(t *testing.T) {
	for pct, want := range map[float64]string{0: "0", 1e-9: "<0.001", .0012: "0.0012", .27: "0.27", 9.97: "10", 40: "40", 137.2: "137"} {
		if got := errorPct(pct); got != want {
			t.Errorf("%v is %s, want %s", pct, got, want)
		}
	}
}

// TestReproduceOnGPUs checks that the commands of points with a resolved timing give the figures of their rows.
func TestReproduceOnGPUs(t *testing.T) {
	spec := writeSpec(t, `
workload: {synthetic: {input_tokens: 256, output_tokens: 16, requests: 20}}
cases:
  table: {timing: {gpu: h200, model: Qwen/Qwen3-32B-FP8, backend: sglang, tp: 2}}
  analytic: {timing: {gpu: mi300x, model: llama-3.1-8b, mode: serial-exact}}
  own: {timing: {profile: p.csv}}
  reference: {compat: dynamo-1.2, timing: {gpu: h200, model: llama-3.1-8b}}
`)
	dir := filepath.Join(t.TempDir(), "out")
	writeText(t, filepath.Join(filepath.Dir(spec), "p.csv"), "phase,new_tokens,batch,context,ms\nprefill,100,,,10\nprefill,400,,,50\ndecode,,1,100,2\ndecode,,1,310,3\ndecode,,9,100,4\ndecode,,9,310,6\n")
	mustRun(t, "sweep", spec, "-o", dir)
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	for row, command := range reportCommands(t, filepath.Join(dir, "report.html")) {
		checkReproduced(t, table, row, command)
	}
	sources := map[string]bool{}
	for row := range table.Rows() {
		sources[table.Column("timing_source").Text(row)] = true
		if c := table.Column("timing_data"); c.Role != results.RolePoint || c.Null[row] {
			t.Errorf("row %d has no data", row)
		}
	}
	if len(sources) != 3 {
		t.Errorf("sources %v", sources)
	}
}
