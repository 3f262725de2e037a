package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// tableCase is one whole run with the timing tables of a GPU: of the reference 1.2.1, by its arguments, or of the newest
// peer, by its configuration.
type tableCase struct {
	Name, By string
	Args     []string
	Config   struct {
		Traffic struct{ Source struct{ Paths []string } }
		Engine  struct {
			Model, Hardware, Backend string
			Workers                  struct {
				Aggregated struct {
					Parallelism struct{ Replicas, Tensor int }
					Scheduler   struct {
						MaxBatchedTokens int `json:"max_batched_tokens"`
						MaxSequences     int `json:"max_sequences"`
					}
					KVCache struct {
						BlockSize int `json:"block_size"`
					} `json:"kv_cache"`
				}
			}
		}
	}
	Expected map[string]json.RawMessage
}

// arguments are those of a replay that does the same.
func (c tableCase) arguments(t *testing.T) []string {
	if c.By == "REF121" {
		args := append([]string{"replay", "--compat", "dynamo-1.2"}, c.Args...)
		args[3] = goldenTrace(t, args[3])
		return args
	}
	e := c.Config.Engine
	w := e.Workers.Aggregated
	timing, err := json.Marshal(map[string]any{"gpu": e.Hardware, "model": e.Model, "backend": e.Backend, "tp": w.Parallelism.Tensor})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"replay", goldenTrace(t, c.Config.Traffic.Source.Paths[0]), "--num-workers", fmt.Sprint(w.Parallelism.Replicas),
		"--timing", string(timing), "--extra-engine-args", fmt.Sprintf(`{"engine_type":%q,"block_size":%d,"max_num_seqs":%d,"max_num_batched_tokens":%d}`,
			e.Backend, w.KVCache.BlockSize, w.Scheduler.MaxSequences, w.Scheduler.MaxBatchedTokens)}
}

// tolerance is the relative deviation that the noise of tables explains (perfmodel specification §7.2); minima and
// deep percentiles jump with a single request and are not compared.
func (c tableCase) tolerance(metric string) (relative float64, compared bool) {
	preempts := c.Name == "conv500-qwen32b-h200_sxm-tp2-w2"
	pick := func(calm, preempting float64) (float64, bool) {
		if preempts {
			return preempting, true
		}
		return calm, true
	}
	switch {
	case strings.HasSuffix(metric, "throughput_tok_s"), metric == "request_throughput_rps", metric == "duration_ms":
		return pick(.001, .005)
	case metric == "mean_itl_ms", metric == "mean_e2e_latency_ms":
		return pick(.01, .015)
	case metric == "p90_itl_ms":
		return pick(.015, .015)
	case metric == "mean_ttft_ms":
		return pick(.02, .03)
	case metric == "p90_ttft_ms":
		return pick(.05, .05)
	case metric == "completed_requests", metric == "total_input_tokens", metric == "total_output_tokens":
		return 0, true
	case metric == "prefix_cache_reused_ratio", metric == "first_admission_prefix_cache_reused_ratio":
		return pick(1e-9, .08)
	}
	return 0, false
}

// TestGoldenTables replays the recorded whole runs with timing tables.
func TestGoldenTables(t *testing.T) {
	var cases []tableCase
	readJSON(t, "testdata/golden/tables/cases.json", &cases)
	if len(cases) != 14 {
		t.Fatalf("%d cases, want 14", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report.json")
			if got := runCommand(t, append(c.arguments(t), "--report-json", path)...); got.code != exitOK {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			var got map[string]any
			readJSON(t, path, &got)
			compared := 0
			for metric, text := range c.Expected {
				relative, ok := c.tolerance(metric)
				if !ok {
					continue
				}
				compared++
				var want float64
				if err := json.Unmarshal(text, &want); err != nil {
					t.Fatal(err)
				}
				v, ok := got[metric].(float64)
				if !ok || math.Abs(v-want) > relative*math.Abs(want) {
					t.Errorf("%s = %v, want %v within %g %% (off by %.3g %%)", metric, got[metric], want, 100*relative, 100*(v/want-1))
				} else if testing.Verbose() {
					t.Logf("%s off by %.3g %%", metric, 100*(v/want-1))
				}
			}
			if compared < 9 {
				t.Errorf("only %d figures were compared", compared)
			}
		})
	}
}
