package results

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteInferenceX writes the points that succeeded as a JSON array with the keys of InferenceX's aggregated results
// (spec/workloads.md §3.3), an object a line: times in s, throughputs per GPU, interactivity as 1 / a percentile of a time per
// token. Figures that a point does not have are left out. Percentiles are those of the table: nearest-rank, not interpolated.
func WriteInferenceX(w io.Writer, t *Table) error {
	out := bufio.NewWriter(w)
	out.WriteByte('[')
	first := true
	for row := range t.Rows() {
		if t.value(row, "status") != "ok" {
			continue
		}
		line, err := json.Marshal(inferenceXRow(t, row))
		if err != nil {
			return fmt.Errorf("inferencex: row %d: %w", row+1, err)
		}
		if !first {
			out.WriteByte(',')
		}
		first = false
		out.WriteByte('\n')
		out.Write(line)
	}
	out.WriteString("\n]\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("inferencex: %w", err)
	}
	return nil
}

// inferenceXKeys are the keys that are one figure or setting of ours, with what it is multiplied by.
var inferenceXKeys = []struct {
	key, from string
	scale     float64 // 0 for text and for what is taken as it is
}{
	{"hw", "timing.gpu", 0}, {"model", "timing.model", 0}, {"framework", "timing.backend", 0}, {"precision", "timing.dtype", 0},
	{"conc", "load.concurrency", 0}, {"tp", "timing.tp", 0}, {"ep", "timing.ep", 0}, {"dp", "timing.dp", 0}, {"scenario", "agentx.preset", 0},
	{"num_gpus", "gpus", 0}, {"qps", "request_throughput_rps", 1},
	{"tput_per_gpu", "total_throughput_tok_s_per_gpu", 1}, {"input_tput_per_gpu", "input_throughput_tok_s_per_gpu", 1},
	{"output_tput_per_gpu", "output_throughput_tok_s_per_gpu", 1},
	{"theoretical_cache_hit_rate", "theoretical_hit_ratio", 1}, {"server_cache_hit_rate", "prefix_cache_reused_ratio", 1},
	{"server_gpu_cache_hit_rate", "g1_hit_ratio", 1}, {"server_cpu_cache_hit_rate", "g2_hit_ratio", 1},
	{"cost_per_million_output_tokens", "cost_usd_per_mtok_output", 1}, {"cost_per_million_input_tokens", "cost_usd_per_mtok_input", 1},
	{"duration", "duration_ms", .001},
}

// inferenceXTimes are latencies: InferenceX's name of each, and ours.
var inferenceXTimes = [][2]string{
	{"ttft", "ttft_ms"}, {"e2el", "e2e_latency_ms"}, {"itl", "itl_ms"}, {"tpot", "tpot_ms"},
	{"intvty", "tpot_ms"}, {"e2e_norm_intvty", "e2e_per_output_token_ms"},
}

// inferenceXStatistics are statistics: InferenceX's name of each, and ours.
var inferenceXStatistics = [][2]string{{"mean", "mean"}, {"p50", "median"}, {"p75", "p75"}, {"p90", "p90"}, {"p95", "p95"}, {"p99", "p99"}, {"std", "std"}}

func inferenceXRow(t *Table, row int) map[string]any {
	out := map[string]any{}
	for _, k := range inferenceXKeys {
		v := t.value(row, k.from)
		if n, ok := number(v); ok && k.scale != 0 {
			v = n * k.scale
		}
		if v != nil && v != "" {
			out[k.key] = v
		}
	}
	for _, time := range inferenceXTimes {
		for _, stat := range inferenceXStatistics {
			ms, ok := number(t.value(row, stat[1]+"_"+time[1]))
			switch perSecond := strings.HasSuffix(time[0], "intvty"); {
			case !ok:
			case !perSecond:
				out[stat[0]+"_"+time[0]] = ms / 1000
			case ms > 0 && stat[0] != "std": // a deviation of times is none of rates
				out[stat[0]+"_"+time[0]] = 1000 / ms
			}
		}
	}
	accounting := map[string]any{}
	for _, k := range [][2]string{
		{"issued", "num_requests"}, {"completed", "completed_requests"}, {"failed", "rejected_requests"}, {"cancelled", "unfinished_requests"},
		{"overflow", "truncated_requests"}, {"never_issued", "never_issued_requests"},
	} {
		if v := t.value(row, k[1]); v != nil {
			accounting[k[0]] = v
		}
	}
	out["request_accounting"] = accounting
	return out
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	}
	return 0, false
}

// value is a figure of a row, or a setting by its key path: an axis, or one that is equal at all points. It is nil where there is none.
func (t *Table) value(row int, path string) any {
	for _, name := range []string{path[strings.LastIndexByte(path, '.')+1:], strings.ReplaceAll(path, ".", "_")} {
		if c := t.Column(name); c != nil {
			return c.plain(row)
		}
	}
	return t.Metadata.Constants[path]
}
