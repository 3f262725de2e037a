package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recordedPlannerRuns are command lines of the reference with a planner, and the rules that they follow. Missing are another run
// of b04, in which it is random, and the one that another program ran.
var recordedPlannerRuns = map[string][]string{
	"dynamo-1.2": {
		"agg121/a01_conv300_sla_both", "agg121/a02_wave_sla_both_startup40", "agg121/a03_wave_loadonly_startup30",
		"agg121/a04_wave_tponly_constant_startup90", "agg121/a05_wave_tponly_kalman", "agg121/a06_wave_tponly_arima",
		"agg121/a07_wave_tponly_prophet", "agg121/a08_wave_easy_throughput", "agg121/a09_wave_easy_latency_startup20",
		"agg121/a10_wave_none_numgpu_trap", "agg121/a11_wave_maxbudget2", "agg121/a12_wave_minendpoint2_minbudget3",
		randomPlannerRun,
		"agg121/d01_wave_disagg_sla_both_startup30", "agg121/d02_wave_disagg_easy_throughput",
		"agg121/d03_conv_disagg_sla_tponly", "agg121/d04_wave_disagg_easy_latency_startup20_cancels",
		"agg121/d05_no_role_flags",
	},
	"dynamo-1.3": {
		"v131/b01_agg_sla_both_run1", "v131/b02_agg_sla_loadonly_startup30", "v131/b03_agg_loadtarget",
		"v131/b04_disagg_sla_both_startup30_run2", "v131/b05_disagg_throughput", "v131/b06_disagg_loadtarget_startup20",
		"v131/b07_disagg_sla_tponly",
	},
}

// randomPlannerRun has the KV router, which takes any of several equally good workers: in six runs of the reference all scaling
// events are the same, and mean latencies differ by up to 0.2 %.
const randomPlannerRun = "agg121/a13_wave_kvrouter_sla_both"

// TestGoldenPlannerOutput runs the reference's command lines with a planner and compares what they print about scaling, to
// the character, and the latencies.
func TestGoldenPlannerOutput(t *testing.T) {
	folder := filepath.Join(sharedData(t), "golden/planner")
	if !exists(folder) {
		t.Skip("needs the recorded runs: set SHARED_DATA_DIR to the folder that holds golden/planner")
	}
	for compat, runs := range recordedPlannerRuns {
		for _, run := range runs {
			t.Run(run, func(t *testing.T) {
				command, err := os.ReadFile(filepath.Join(folder, run, "command.txt"))
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(filepath.Join(folder, run, "stdout.txt"))
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				got := runCommand(t, recordedArgs(string(command), compat, folder, run, dir)...)
				if got.code != exitOK || got.stderr != "" {
					t.Fatalf("exit code %d: %s", got.code, got.stderr)
				}
				if a, b := planningLines(got.stdout), planningLines(string(want)); a != b {
					t.Errorf("it prints\n%s\nwant\n%s", a, b)
				}
				var report map[string]any
				readJSON(t, filepath.Join(folder, run, "report.json"), &report)
				figures := map[string]float64{}
				for _, name := range []string{"mean_ttft_ms", "p90_ttft_ms", "mean_itl_ms", "p90_itl_ms", "duration_ms", "completed_requests"} {
					figures[name] = report[name].(float64)
				}
				share := 1e-6
				if run == randomPlannerRun {
					share = 0.002
					maps.DeleteFunc(figures, func(name string, _ float64) bool { return strings.HasPrefix(name, "p90") })
				}
				compareReport(t, filepath.Join(dir, "report.json"), figures, share)
				if page := filepath.Join(dir, "report.html"); !exists(page) || !strings.Contains(got.stdout, "Planner diagnostics report: "+page) {
					t.Errorf("there is no page %s", page)
				}
			})
		}
	}
}

var quotedWords = regexp.MustCompile(`'[^']*'|[^\s']+`)

// recordedArgs are the arguments of a recorded command line, with its traces in a folder and its reports in another.
func recordedArgs(command, compat, folder, run, dir string) []string {
	_, line, _ := strings.Cut(command, "-m dynamo.replay ")
	line = strings.ReplaceAll(line, "golden/planner/"+run, dir)
	line = strings.ReplaceAll(line, "golden/planner/inputs", filepath.Join(folder, "inputs"))
	args := []string{"replay", "--compat", compat}
	for _, word := range quotedWords.FindAllString(line, -1) {
		args = append(args, strings.Trim(word, "'"))
	}
	return args
}

// planningLines are the lines about scaling events and ticks.
func planningLines(stdout string) string {
	var out []string
	for _, line := range strings.Split(stdout, "\n") {
		if line == "Scaling events:" || strings.HasPrefix(line, "  t=") || strings.HasPrefix(line, "Planner ticks: ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
