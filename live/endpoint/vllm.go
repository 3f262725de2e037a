package endpoint

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/servegrid/servegrid/simcore"
)

// The bounds of vLLM's histograms, in seconds.
var (
	vllmFirstToken = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	vllmBetween    = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	vllmRequest    = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

// vllm names the metrics; engine is the number of a worker.
var vllm = named{"vllm:", []string{"engine"}}

// vllmEngine numbers the seat of a worker: those of the first workers, prefill workers first, then those of the pools in turn.
func vllmEngine(stages []simcore.Pool, pool, seat int) int {
	first, all := 0, 0
	for i, p := range stages {
		if i < pool {
			first += p.Workers
		}
		all += p.Workers
	}
	if seat < stages[pool].Workers {
		return first + seat
	}
	return all + len(stages)*(seat-stages[pool].Workers) + pool
}

// vllmMetrics registers metrics with the names of vLLM, and returns what makes those of a worker that makes tokens.
func vllmMetrics(into prometheus.Registerer, s *Server, stages []simcore.Pool) (newEngine func(seat int) *engineMeters) {
	lengths := tokenBuckets(s.limit)
	var (
		prompt     = vllm.counters(into, "prompt_tokens_total", "Prompt tokens of requests whose first token has come.")
		generation = vllm.counters(into, "generation_tokens_total", "Tokens that were generated.")
		queries    = vllm.counters(into, "prefix_cache_queries_total", "Prompt tokens that were looked for in the prefix cache.")
		hits       = vllm.counters(into, "prefix_cache_hits_total", "Prompt tokens that were found in the prefix cache.")
		success    = vllm.counters(into, "request_success_total", "Requests that have ended, by reason.", "finished_reason")
		first      = vllm.histograms(into, "time_to_first_token_seconds", "Time from arrival to the first token.", vllmFirstToken)
		between    = vllm.histograms(into, "inter_token_latency_seconds", "Time between two tokens.", vllmBetween)
		between2   = vllm.histograms(into, "time_per_output_token_seconds", "Time between two tokens, under its older name.", vllmBetween)
		mean       = vllm.histograms(into, "request_time_per_output_token_seconds", "Mean time between two tokens of a request.", vllmBetween)
		total      = vllm.histograms(into, "e2e_request_latency_seconds", "Time from arrival to the last token.", vllmRequest)
		queue      = vllm.histograms(into, "request_queue_time_seconds", "Time that a request waited until it was first scheduled.", vllmRequest)
		prefill    = vllm.histograms(into, "request_prefill_time_seconds", "Time that a request spent in prefill.", vllmRequest)
		decode     = vllm.histograms(into, "request_decode_time_seconds", "Time that a request spent in decode.", vllmRequest)
		inference  = vllm.histograms(into, "request_inference_time_seconds", "Time that a request spent after it was first scheduled.", vllmRequest)
		prompts    = vllm.histograms(into, "request_prompt_tokens", "Prompt tokens of a request.", lengths)
		outputs    = vllm.histograms(into, "request_generation_tokens", "Tokens that a request generated.", lengths)
	)
	into.MustRegister(newVLLMState(s, stages))
	return func(seat int) *engineMeters {
		name := label(vllmEngine(stages, len(stages)-1, seat))
		finished := success.MustCurryWith(prometheus.Labels{"engine": name})
		for _, reason := range []string{"stop", "length", reasonAbort, reasonError} {
			finished.WithLabelValues(reason)
		}
		return &engineMeters{
			promptTokens: prompt.WithLabelValues(name), cachedTokens: hits.WithLabelValues(name), queries: queries.WithLabelValues(name), outputTokens: generation.WithLabelValues(name),
			finished:   func(reason string) { finished.WithLabelValues(reason).Inc() },
			firstToken: first.WithLabelValues(name), betweenTokens: both{between.WithLabelValues(name), between2.WithLabelValues(name)}, meanBetween: mean.WithLabelValues(name),
			total: total.WithLabelValues(name), queue: queue.WithLabelValues(name), prefill: prefill.WithLabelValues(name), decode: decode.WithLabelValues(name), inference: inference.WithLabelValues(name),
			prompt: prompts.WithLabelValues(name), generation: outputs.WithLabelValues(name),
		}
	}
}

// both are two histograms of the same.
type both [2]prometheus.Observer

// Observe adds to both.
func (b both) Observe(v float64) {
	b[0].Observe(v)
	b[1].Observe(v)
}

// vllmState collects how the workers are.
type vllmState struct {
	server                                   *Server
	stages                                   []simcore.Pool
	running, waiting, usage, oldUsage, evict *prometheus.Desc
	config                                   *prometheus.Desc
}

func newVLLMState(s *Server, stages []simcore.Pool) *vllmState {
	return &vllmState{
		server: s, stages: stages,
		running:  vllm.desc("num_requests_running", "Requests that run on a worker."),
		waiting:  vllm.desc("num_requests_waiting", "Requests that wait at a worker."),
		usage:    vllm.desc("kv_cache_usage_perc", "Share of the KV cache that requests hold; 1 is all of it."),
		oldUsage: vllm.desc("gpu_cache_usage_perc", "The same under its older name."),
		evict:    vllm.desc("num_preemptions_total", "Requests that lost their KV blocks while they ran."),
		config:   vllm.desc("cache_config_info", "Always 1; the labels say how the KV cache is made.", "block_size", "num_gpu_blocks"),
	}
}

// Describe is as Prometheus wants it.
func (v *vllmState) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{v.running, v.waiting, v.usage, v.oldUsage, v.evict, v.config} {
		to <- d
	}
}

// Collect is as Prometheus wants it.
func (v *vllmState) Collect(to chan<- prometheus.Metric) {
	for _, w := range v.server.opt.Deployment.Snapshot().Workers {
		name := label(vllmEngine(v.stages, w.Pool, w.Seat))
		if w.Pool == len(v.stages)-1 {
			v.server.metrics.engine(w.Seat) // its counters are there before it has done anything
		}
		send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
			to <- prometheus.MustNewConstMetric(d, kind, value, append([]string{name}, more...)...)
		}
		used := usage(w)
		send(v.running, prometheus.GaugeValue, float64(w.Running))
		send(v.waiting, prometheus.GaugeValue, float64(w.Waiting))
		send(v.usage, prometheus.GaugeValue, used)
		send(v.oldUsage, prometheus.GaugeValue, used)
		send(v.evict, prometheus.CounterValue, float64(w.Preemptions))
		send(v.config, prometheus.GaugeValue, 1, label(v.server.block), label(w.TotalBlocks))
	}
}

// usage is the share of a worker's KV blocks that requests hold.
func usage(w simcore.OnlineWorker) float64 {
	if w.TotalBlocks == 0 {
		return 0
	}
	return float64(w.HeldBlocks) / float64(w.TotalBlocks)
}
