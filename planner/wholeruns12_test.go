package planner

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// recordedArgument finds an argument of a recorded command; JSON is in quotes.
func recordedArgument(t *testing.T, command, name string) string {
	t.Helper()
	found := regexp.MustCompile(`'?` + name + `'? '?(\{[^']*\}|[^' ]+)'?`).FindStringSubmatch(command)
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
	} else {
		cfg.Deployment.Workers = workers("--num-workers")
		s := recordedStage(t, recordedArgument(t, command, "--extra-engine-args"))
		cfg.Engine, cfg.Timing = s.Engine, s.Timing
	}
	if recordedArgument(t, command, "--router-mode") == "kv_router" {
		cfg.Router.Policy = router.PolicyKVRouter
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

// TestWholeRunsOfDynamo12 simulates the recorded runs of 1.2.1.
func TestWholeRunsOfDynamo12(t *testing.T) {
	dir := sharedPlanner(t)
	names, err := filepath.Glob(filepath.Join(dir, "agg121", "*"))
	if err != nil || len(names) != 19 {
		t.Fatalf("%d runs (%v)", len(names), err)
	}
	for _, path := range names {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			cfg, p, trace := recordedRun(t, dir, name)
			out := simulateRecorded(t, cfg, p, trace)
			text, err := os.ReadFile(filepath.Join(path, "stdout.txt"))
			if err != nil {
				t.Skip(err)
			}
			want := eventLine.FindAllString(string(text), -1)
			t.Logf("%d events, want %d; TTFT %v", len(out.Record.events()), len(want), out.Report)
		})
	}
}
