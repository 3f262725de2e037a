package sensitivity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// Expectation says what a metric should never do when an axis grows and all else stays.
type Expectation struct {
	// Axis and Metric are names of columns.
	Axis   string `json:"axis"`
	Metric string `json:"metric"`
	// Lowers says that the metric must not rise; otherwise it must not fall.
	Lowers bool `json:"lowers"`
}

// String writes the expectation as [ParseExpectation] reads it.
func (e Expectation) String() string {
	verb := raises
	if e.Lowers {
		verb = lowers
	}
	return e.Axis + " " + verb + " " + e.Metric
}

// The verbs of expectations.
const (
	raises = "raises"
	lowers = "lowers"
)

// ParseExpectation reads "AXIS raises METRIC" or "AXIS lowers METRIC": the metric never moves the other way.
func ParseExpectation(text string) (Expectation, error) {
	words := strings.Fields(text)
	if len(words) != 3 || words[1] != raises && words[1] != lowers {
		return Expectation{}, fmt.Errorf("expectation %q: write AXIS raises METRIC or AXIS lowers METRIC, such as 'workers lowers p99_ttft_ms'", gridspec.Excerpt(text))
	}
	return Expectation{Axis: words[0], Metric: words[2], Lowers: words[1] == lowers}, nil
}

// The figures that expectations are about.
var (
	throughputs   = []string{"output_throughput_tok_s"}
	firstTokens   = []string{"mean_ttft_ms", "p99_ttft_ms"}
	laterTokens   = []string{"mean_tpot_ms"}
	latencies     = []string{"mean_ttft_ms", "p99_ttft_ms", "mean_e2e_latency_ms"}
	reuse         = []string{"prefix_cache_reused_ratio"}
	slaAttainment = []string{"sla_attainment"}
)

// builtIn is what one expects of the axes of serving, by the last part of their key paths: more of a resource never makes
// anything slower, and more load never makes it faster.
var builtIn = []struct {
	axes           []string
	raises, lowers []string
}{
	{axes: []string{"workers", "prefill_workers", "decode_workers"}, raises: slices.Concat(throughputs, slaAttainment), lowers: latencies},
	{axes: []string{"tp"}, raises: throughputs, lowers: slices.Concat(laterTokens, firstTokens)},
	{axes: []string{"rate", "speedup"}, raises: slices.Concat(latencies, laterTokens), lowers: slaAttainment},
	{axes: []string{"concurrency"}, raises: slices.Concat(throughputs, latencies, laterTokens), lowers: slaAttainment},
	{axes: []string{"arrival_interval_ms"}, raises: slaAttainment, lowers: latencies},
	{axes: []string{"num_gpu_blocks", "gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction", "num_g2_blocks", "num_g3_blocks", "num_g4_blocks"},
		raises: slices.Concat(throughputs, reuse), lowers: latencies},
	{axes: []string{"max_num_seqs"}, raises: throughputs, lowers: firstTokens},
	{axes: []string{"kv_transfer_bandwidth", "bandwidth_g1_to_g2_gbps", "bandwidth_g2_to_g1_gbps", "bandwidth_g2_to_g3_gbps", "bandwidth_g3_to_g2_gbps", "bandwidth_g2_to_g4_gbps", "bandwidth_g4_to_g2_gbps"},
		raises: slaAttainment, lowers: latencies},
	{axes: []string{"speedup_ratio"}, raises: slices.Concat(throughputs, slaAttainment), lowers: slices.Concat(latencies, laterTokens)},
	{axes: []string{"startup_time"}, raises: latencies, lowers: slaAttainment},
	{axes: []string{"input_tokens"}, raises: latencies},
	{axes: []string{"output_tokens"}, raises: []string{"mean_e2e_latency_ms"}},
}

// sections are the beginnings of the key paths of those axes, as columns have them where the last part alone would not do.
var sections = []string{"deployment", "load", "engine", "timing", "tiers", "preset", "synthetic", "workload_preset", "workload_synthetic"}

// builtInFor are the expectations of an axis that a column holds.
func builtInFor(column string) []Expectation {
	var out []Expectation
	for _, rule := range builtIn {
		if !slices.ContainsFunc(rule.axes, func(axis string) bool { return names(column, axis) }) {
			continue
		}
		for _, metric := range rule.raises {
			out = append(out, Expectation{Axis: column, Metric: metric})
		}
		for _, metric := range rule.lowers {
			out = append(out, Expectation{Axis: column, Metric: metric, Lowers: true})
		}
	}
	return out
}

// names reports whether a column holds an axis: by its name alone, or by a section before it, that of a stage included.
func names(column, axis string) bool {
	section, ok := strings.CutSuffix(column, axis)
	if !ok || section == "" {
		return ok
	}
	section = strings.TrimSuffix(section, "_")
	section = strings.TrimPrefix(strings.TrimPrefix(section, "prefill_"), "decode_")
	return slices.Contains(sections, section)
}
