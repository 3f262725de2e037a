package planner

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
)

// recordedArgument finds an argument of a recorded command; JSON is in quotes.
func recordedArgument(t *testing.T, command, name string) string {
	t.Helper()
	found := regexp.MustCompile(`'?` + name + `'? '?(\{[^']*\}|[^'\s]+)'?`).FindStringSubmatch(command)
	if found == nil {
		return ""
	}
	return found[1]
}

// recordedStage reads the engine arguments of the reference. Those that name a GPU give a table to the planner.
func recordedStage(t *testing.T, text string) simcore.Stage {
	t.Helper()
	defaults := simcore.DefaultConfig()
	s := simcore.Stage{Engine: defaults.Engine, Timing: defaults.Timing}
	if err := json.Unmarshal([]byte(text), &s.Engine); err != nil {
		t.Fatal(err)
	}
	s.Timing.Source, s.Timing.Corrections = perfmodel.SourceTable, false
	s.Timing.GPU, s.Timing.Model = "h200_sxm", "meta-llama/Meta-Llama-3.1-8B"
	s.Timing.Backend, s.Timing.BackendVersion = "vllm", "0.14.0"
	return s
}

// recordedRun reads a recorded run of the reference 1.2.1.
func recordedRun(t *testing.T, dir, name string) (simcore.Config, Config, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "agg121", name, "command.txt"))
	if err != nil {
		t.Fatal(err)
	}
	command := string(text)
	workers := func(name string) int {
		n, err := strconv.Atoi(recordedArgument(t, command, name))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	cfg := simcore.DefaultConfig()
	cfg.Compat = rules.Dynamo12
	if prefill := recordedArgument(t, command, "--prefill-engine-args"); prefill != "" {
		cfg.Deployment = simcore.Deployment{
			Mode:           simcore.ModeDisaggregated,
			PrefillWorkers: workers("--num-prefill-workers"), DecodeWorkers: workers("--num-decode-workers"),
		}
		cfg.Prefill = recordedStage(t, prefill)
		cfg.Decode = recordedStage(t, recordedArgument(t, command, "--decode-engine-args"))
		for _, e := range []*engine.Config{&cfg.Prefill.Engine, &cfg.Decode.Engine} {
			if !strings.Contains(command, `"is_prefill":true`) { // nor does decode say so then (T29)
				e.WorkerType = engine.WorkerTypeAggregated
			}
		}
	} else {
		cfg.Deployment.Workers = workers("--num-workers")
		s := recordedStage(t, recordedArgument(t, command, "--extra-engine-args"))
		cfg.Engine, cfg.Timing = s.Engine, s.Timing
	}
	if recordedArgument(t, command, "--router-mode") == "kv_router" {
		cfg.Router.Policy, cfg.Router.RouterQueueThreshold = router.PolicyKVRouter, 4 // the default of that release
	}
	trace := regexp.MustCompile(`inputs/\S+\.jsonl`).FindString(command)
	return cfg, recordedConfig(t, recordedArgument(t, command, "--planner-config")), filepath.Join(dir, trace)
}

// TestBootstrapOfDynamo12 prices the passes that the reference knew at the start.
func TestBootstrapOfDynamo12(t *testing.T) {
	dir := sharedPlanner(t)
	for _, name := range []string{"a01_conv300_sla_both", "d01_wave_disagg_sla_both_startup30"} {
		cfg, p, _ := recordedRun(t, dir, name)
		resolved, problems := cfg.Resolve()
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		setups, err := poolSetups(resolved, &p, rulesFor(cfg.Compat))
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, "agg121", name, "ticks.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			Bootstrap map[string][]struct {
				Prefills      int64   `json:"num_prefill_requests"`
				PrefillTokens int64   `json:"sum_prefill_tokens"`
				Decodes       int64   `json:"num_decode_requests"`
				DecodeTokens  int64   `json:"sum_decode_kv_tokens"`
				Wall          float64 `json:"wall_time"`
			} `json:"bootstrap_fpms"`
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		lines.Scan()
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for _, s := range setups {
			want := head.Bootstrap[kindName(s.kind)]
			if len(s.known) != len(want) {
				t.Errorf("%s %s: %d passes, want %d", name, kindName(s.kind), len(s.known), len(want))
				continue
			}
			for i, w := range want {
				got := s.known[i]
				if got.prefills != w.Prefills || got.prefillTokens != w.PrefillTokens || got.decodes != w.Decodes || got.decodeTokens != w.DecodeTokens {
					t.Errorf("%s: pass %d is %+v, want %+v", name, i, got, w)
				}
				if d := got.wallSeconds/w.Wall - 1; math.Abs(d) > 0.015 { // the band of the tables in the batch
					t.Errorf("%s: pass %d of %+v takes %v s, want %v: %.2f %%", name, i, w, got.wallSeconds, w.Wall, 100*d)
				}
			}
		}
	}
}

// recordedEvent is a change of the number of workers as the reference prints it.
type recordedEvent struct {
	seconds  float64
	pool     string
	from, to int
}

var recordedEventLine = regexp.MustCompile(`(?m)^  t=([\d.]+)s \[(\w+)\]: (\d+) -> (\d+) workers`)

// recordedEvents reads the changes that the reference printed.
func recordedEvents(t *testing.T, text string) (events []recordedEvent) {
	t.Helper()
	for _, m := range recordedEventLine.FindAllStringSubmatch(text, -1) {
		var e recordedEvent
		if _, err := fmt.Sscan(m[1]+" "+m[2]+" "+m[3]+" "+m[4], &e.seconds, &e.pool, &e.from, &e.to); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// TestWholeRunsOfDynamo12 simulates the recorded runs of 1.2.1. The one with the KV router, which takes any of several equally
// good workers, was run six times: all have the same changes, and mean latencies that differ by up to 0.2 %.
func TestWholeRunsOfDynamo12(t *testing.T) {
	dir := sharedPlanner(t)
	paths, err := filepath.Glob(filepath.Join(dir, "agg121", "*", "report.json"))
	if err != nil || len(paths) != 19 {
		t.Fatalf("%d runs (%v)", len(paths), err)
	}
	for _, path := range paths {
		path = filepath.Dir(path)
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			cfg, p, trace := recordedRun(t, dir, name)
			if cfg.Router.Policy != router.PolicyKVRouter {
				compareRecorded(t, simulateRecorded(t, cfg, p, trace), path, 1e-9)
				return
			}
			for cfg.Router.Seed = range 8 {
				compareRecorded(t, simulateRecorded(t, cfg, p, trace), path, 0.002)
			}
		})
	}
}

// compareRecorded checks that the same changes were decided at the same times, and the mean latencies, which may be off by a
// share.
func compareRecorded(t *testing.T, out *Outcome, dir string, share float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "stdout.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := recordedEvents(t, string(text))
	if len(want) != len(out.Record.Decisions) {
		t.Errorf("%d changes, want %d", len(out.Record.Decisions), len(want))
	}
	for i := range min(len(want), len(out.Record.Decisions)) {
		d := out.Record.Decisions[i]
		got := recordedEvent{d.AtMs / 1000, out.Record.Pools[d.Pool], d.From, d.To}
		rounded := got
		rounded.seconds = want[i].seconds
		if rounded != want[i] || math.Abs(got.seconds-want[i].seconds) > 0.0501 {
			t.Errorf("change %d is %+v, want %+v", i, got, want[i])
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	for key, got := range map[string]float64{"mean_ttft_ms": out.Report.TTFT.Mean, "mean_itl_ms": out.Report.ITL.Mean} {
		if want := report[key].(float64); math.Abs(got/want-1) > share {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

// TestColdStartSweepsOfDynamo12 simulates the two recorded sweeps of the start-up time.
func TestColdStartSweepsOfDynamo12(t *testing.T) {
	dir := sharedPlanner(t)
	conversation := filepath.Join(t.TempDir(), "conv1200.jsonl")
	firstLines(t, filepath.Join(dir, "..", "..", "traces", "mooncake", "conversation_trace.jsonl"), conversation, 1200)
	for _, sweep := range []struct{ name, trace string }{
		{"sweep_wave1200", filepath.Join(dir, "inputs", "wave1200.jsonl")},
		{"sweep_conv1200", conversation},
	} {
		for _, want := range readSummary(t, filepath.Join(dir, sweep.name, "summary.csv")) {
			t.Run(fmt.Sprintf("%s/%03.0f", sweep.name, want["startup_s"]), func(t *testing.T) {
				cfg, p, _ := recordedRun(t, dir, "a20_wave1200_startup40_ticks")
				cfg.Engine.StartupTime = want["startup_s"]
				compareSummary(t, simulateRecorded(t, cfg, p, sweep.trace), want)
			})
		}
	}
}

// compareSummary checks a point of a sweep, to the last digit that was recorded.
func compareSummary(t *testing.T, out *Outcome, want map[string]float64) {
	t.Helper()
	ups, greatest, transitions, hours, last := 0, 0, 0, 0.0, out.Record.Ticks[0]
	for _, d := range out.Record.Decisions {
		greatest = max(greatest, d.To)
		if d.To > d.From {
			ups++
		}
	}
	for _, tick := range out.Record.Ticks { // as the reference reckons: ready workers at each tick
		if tick.Pools[0].Ready != last.Pools[0].Ready {
			transitions++
		}
		hours += float64(tick.Pools[0].Ready) * (tick.NowMs - last.NowMs) / 3.6e6
		last = tick
	}
	for _, c := range []struct {
		key           string
		got, rounding float64
	}{
		{"events", float64(len(out.Record.Decisions)), 0},
		{"ups", float64(ups), 0},
		{"max_target", float64(greatest), 0},
		{"html_transitions", float64(transitions), 0},
		{"ticks", float64(out.Record.TickCount), 0},
		{"html_gpu_hours", hours, 0.00501},
		{"mean_ttft_ms", out.Report.TTFT.Mean, 0.00501},
		{"p90_ttft_ms", out.Report.TTFT.P90, 0.00501},
		{"p99_ttft_ms", out.Report.TTFT.P99, 0.00501},
		{"mean_itl_ms", out.Report.ITL.Mean, 0.000501},
		{"p90_itl_ms", out.Report.ITL.P90, 0.000501},
	} {
		if w, ok := want[c.key]; !ok || math.Abs(c.got-w) > c.rounding {
			t.Errorf("%s is %v, want %v", c.key, c.got, w)
		}
	}
}

// readSummary reads the figures of a recorded sweep.
func readSummary(t *testing.T, path string) (points []map[string]float64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 3 {
		t.Fatalf("%s: %d rows (%v)", path, len(rows), err)
	}
	for _, row := range rows[1:] {
		point := map[string]float64{}
		for i, name := range rows[0] {
			if v, err := strconv.ParseFloat(row[i], 64); err == nil {
				point[name] = v
			}
		}
		points = append(points, point)
	}
	return points
}

// firstLines copies the beginning of a file.
func firstLines(t *testing.T, from, to string, n int) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Skip("no shared traces: ", err)
	}
	end := 0
	for range n {
		end += bytes.IndexByte(data[end:], '\n') + 1
	}
	if err := os.WriteFile(to, data[:end], 0o600); err != nil {
		t.Fatal(err)
	}
}
