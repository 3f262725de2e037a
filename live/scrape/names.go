package scrape

import (
	"fmt"
	"io"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/servegrid/servegrid/live"
)

// The metrics of vLLM and of SGLang, the newest name first. Some servers write an underscore for the colon.
var (
	runningNames      = []string{"vllm:num_requests_running", "sglang:num_running_reqs"}
	waitingNames      = []string{"vllm:num_requests_waiting", "sglang:num_queue_reqs"}
	usageNames        = []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"}
	cachedNames       = []string{"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total"}
	lookedUpNames     = []string{"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total", "sglang:prompt_tokens_total"}
	outputTokensNames = []string{"vllm:generation_tokens_total", "sglang:generation_tokens_total"}
	preemptionsNames  = []string{"vllm:num_preemptions_total", "sglang:num_retracted_requests_total"}
)

// Parse finds in a page of metrics what a sample holds; what the page does not have is NaN. The error says why it is no such page.
func Parse(page io.Reader) (live.Sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return live.Sample{}, fmt.Errorf("no page of Prometheus metrics: %w", err)
	}
	find := func(names []string, mean bool) float64 {
		for _, name := range names {
			for _, spelled := range []string{name, strings.Replace(name, ":", "_", 1)} {
				if family := families[spelled]; family != nil {
					return total(family, mean)
				}
			}
		}
		return math.NaN()
	}
	return live.Sample{
		Running: find(runningNames, false), Waiting: find(waitingNames, false), KVUsage: find(usageNames, true),
		CachedTokens: find(cachedNames, false), PromptTokens: find(lookedUpNames, false),
		OutputTokens: find(outputTokensNames, false), Preemptions: find(preemptionsNames, false),
	}, nil
}

// total is the sum or the mean of the series of a metric, one for each engine of a server.
func total(family *dto.MetricFamily, mean bool) float64 {
	sum, n := 0., 0
	for _, m := range family.Metric {
		switch {
		case m.Counter != nil:
			sum += m.Counter.GetValue()
		case m.Gauge != nil:
			sum += m.Gauge.GetValue()
		case m.Untyped != nil:
			sum += m.Untyped.GetValue()
		default:
			continue
		}
		n++
	}
	switch {
	case n == 0:
		return math.NaN()
	case mean:
		return sum / float64(n)
	}
	return sum
}
