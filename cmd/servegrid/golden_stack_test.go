package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stackCase is one run of the reference with a KV router, in a disaggregated deployment, or with another engine than
// vLLM.
type stackCase struct {
	Name, Family string
	Args         []string
	// Trace is the content of the trace when it belongs to the case alone.
	Trace string
	// Expected is the report. Where the reference breaks ties at random, Runs holds several.
	Expected map[string]float64
	Runs     []map[string]float64
	Refused  string
}

// TestGoldenStack replays recorded runs of the reference: families with ties inside its spread, all others exactly.
func TestGoldenStack(t *testing.T) {
	var cases []stackCase
	readGzipJSON(t, "testdata/golden/stack.json.gz", &cases)
	if len(cases) < 80 {
		t.Fatalf("%d cases, want 80 or more", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Family+"/"+c.Name, func(t *testing.T) {
			path := replayGolden(t, c.arguments(t), c.Refused)
			if path == "" {
				return
			}
			if len(c.Runs) > 0 {
				compareSpread(t, path, c.Runs)
			} else {
				compareReport(t, path, c.Expected, 1e-6)
			}
		})
	}
}

func (c stackCase) arguments(t *testing.T) []string {
	args := append([]string{"replay", "--compat", "dynamo-1.3"}, c.Args...)
	if trace := args[3]; c.Trace != "" {
		args[3] = filepath.Join(t.TempDir(), trace)
		if err := os.WriteFile(args[3], []byte(c.Trace), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if !strings.HasPrefix(trace, "--") {
		args[3] = goldenTrace(t, trace)
	}
	return args
}

// compareSpread compares a report with runs of the reference that differ: counts are equal, figures inside the spread
// widened by half of it and 2 %.
func compareSpread(t *testing.T, path string, runs []map[string]float64) {
	t.Helper()
	var got map[string]any
	readJSON(t, path, &got)
	for _, name := range []string{"completed_requests", "num_requests", "total_input_tokens", "total_output_tokens"} {
		if got[name] != runs[0][name] {
			t.Errorf("%s = %v, want %v", name, got[name], runs[0][name])
		}
	}
	for _, name := range []string{"mean_ttft_ms", "p90_ttft_ms", "mean_itl_ms", "mean_tpot_ms", "mean_e2e_latency_ms", "p90_e2e_latency_ms",
		"output_throughput_tok_s", "prefix_cache_reused_ratio", "duration_ms"} {
		values := make([]float64, len(runs))
		for i, run := range runs {
			values[i] = run[name]
		}
		least, most := slices.Min(values), slices.Max(values)
		slack := .5*(most-least) + .02*max(math.Abs(least), math.Abs(most)) + 1e-9
		if v, ok := got[name].(float64); !ok || v < least-slack || v > most+slack {
			t.Errorf("%s = %v, want %v to %v", name, got[name], least-slack, most+slack)
		}
	}
}
