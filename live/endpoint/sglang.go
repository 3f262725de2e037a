package endpoint

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/servegrid/servegrid/simcore"
)

// The bounds of SGLang's histograms, in seconds.
var (
	sglangFirstToken = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
	sglangBetween    = []float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8}
	sglangRequest    = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 800}
)

// sglang names the metrics; the labels are the kind of the pool and the worker's seat in it.
var sglang = named{"sglang:", []string{"engine_type", "dp_rank"}}

// sglangEngineType is what SGLang calls the workers of a pool.
func sglangEngineType(pool, pools int) string {
	switch {
	case pools == 1:
		return "unified"
	case pool == 0:
		return "prefill"
	}
	return "decode"
}

// sglangMetrics registers metrics with the names of SGLang, and returns what makes those of a worker that makes tokens.
func sglangMetrics(into prometheus.Registerer, s *Server, stages []simcore.Pool) (newEngine func(seat int) *engineMeters) {
	lengths := tokenBuckets(s.limit)
	var (
		prompt     = sglang.counters(into, "prompt_tokens_total", "Prompt tokens of requests whose first token has come.")
		generation = sglang.counters(into, "generation_tokens_total", "Tokens that were generated.")
		cached     = sglang.counters(into, "cached_tokens_total", "Prompt tokens that were found in the prefix cache.")
		ended      = sglang.counters(into, "num_requests_total", "Requests that have ended.")
		aborted    = sglang.counters(into, "num_aborted_requests_total", "Requests that were given up or refused.")
		first      = sglang.histograms(into, "time_to_first_token_seconds", "Time from arrival to the first token.", sglangFirstToken)
		between    = sglang.histograms(into, "inter_token_latency_seconds", "Time between two tokens.", sglangBetween)
		total      = sglang.histograms(into, "e2e_request_latency_seconds", "Time from arrival to the last token.", sglangRequest)
		queue      = sglang.histograms(into, "queue_time_seconds", "Time that a request waited until it was first scheduled.", sglangRequest)
		prompts    = sglang.histograms(into, "prompt_tokens_histogram", "Prompt tokens of a request.", lengths)
		outputs    = sglang.histograms(into, "generation_tokens_histogram", "Tokens that a request generated.", lengths)
	)
	kind := sglangEngineType(len(stages)-1, len(stages))
	into.MustRegister(newSGLangState(s, stages))
	return func(seat int) *engineMeters {
		labels := []string{kind, label(seat)}
		all, gone := ended.WithLabelValues(labels...), aborted.WithLabelValues(labels...)
		return &engineMeters{
			promptTokens: prompt.WithLabelValues(labels...), cachedTokens: cached.WithLabelValues(labels...), outputTokens: generation.WithLabelValues(labels...),
			finished: func(reason string) {
				all.Inc()
				if reason == reasonAbort || reason == reasonError {
					gone.Inc()
				}
			},
			firstToken: first.WithLabelValues(labels...), betweenTokens: between.WithLabelValues(labels...), total: total.WithLabelValues(labels...), queue: queue.WithLabelValues(labels...),
			prompt: prompts.WithLabelValues(labels...), generation: outputs.WithLabelValues(labels...),
		}
	}
}

// sglangState collects how the workers are.
type sglangState struct {
	server *Server
	stages []simcore.Pool
	running, queued, used, usage, size,
	throughput, hitRate, retracted, retractions *prometheus.Desc

	mu     sync.Mutex
	recent map[[2]int]*recentWork // of each worker, by pool and seat
}

// recentWork is what a worker did in the latest interval of a second or more between two looks.
type recentWork struct {
	at                  time.Time
	tokens, preemptions int64
	perSecond           float64
	retracted           int64
}

func newSGLangState(s *Server, stages []simcore.Pool) *sglangState {
	return &sglangState{
		server: s, stages: stages, recent: map[[2]int]*recentWork{},
		running:     sglang.desc("num_running_reqs", "Requests that run on a worker."),
		queued:      sglang.desc("num_queue_reqs", "Requests that wait at a worker."),
		used:        sglang.desc("num_used_tokens", "Tokens whose KV cache requests hold."),
		usage:       sglang.desc("token_usage", "Share of the KV cache that requests hold; 1 is all of it."),
		size:        sglang.desc("max_total_num_tokens", "Tokens for which the KV cache has room."),
		throughput:  sglang.desc("gen_throughput", "Tokens generated per second, between two looks at least a second apart."),
		hitRate:     sglang.desc("cache_hit_rate", "Share of the prompt tokens that were found in the prefix cache, since the start."),
		retracted:   sglang.desc("num_retracted_reqs", "Requests that lost their KV blocks while they ran, between two looks at least a second apart."),
		retractions: sglang.desc("num_retracted_requests_total", "Requests that lost their KV blocks while they ran."),
	}
}

// Describe is as Prometheus wants it.
func (v *sglangState) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{v.running, v.queued, v.used, v.usage, v.size, v.throughput, v.hitRate, v.retracted, v.retractions} {
		to <- d
	}
}

// Collect is as Prometheus wants it.
func (v *sglangState) Collect(to chan<- prometheus.Metric) {
	snapshot := v.server.opt.Deployment.Snapshot()
	hits := 0.0
	if snapshot.PromptTokens > 0 {
		hits = float64(snapshot.CachedTokens) / float64(snapshot.PromptTokens)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range snapshot.Workers {
		kind := sglangEngineType(w.Pool, len(v.stages))
		send := func(d *prometheus.Desc, kindOf prometheus.ValueType, value float64) {
			to <- prometheus.MustNewConstMetric(d, kindOf, value, kind, label(w.Seat))
		}
		recent := v.lookAt(w)
		send(v.running, prometheus.GaugeValue, float64(w.Running))
		send(v.queued, prometheus.GaugeValue, float64(w.Waiting))
		send(v.used, prometheus.GaugeValue, float64(w.HeldBlocks*v.server.block))
		send(v.usage, prometheus.GaugeValue, usage(w))
		send(v.size, prometheus.GaugeValue, float64(w.TotalBlocks*v.server.block))
		send(v.throughput, prometheus.GaugeValue, recent.perSecond)
		send(v.hitRate, prometheus.GaugeValue, hits)
		send(v.retracted, prometheus.GaugeValue, float64(recent.retracted))
		send(v.retractions, prometheus.CounterValue, float64(w.Preemptions))
	}
}

// lookAt brings what a worker did recently up to date, unless that was less than a second ago.
func (v *sglangState) lookAt(w simcore.OnlineWorker) *recentWork {
	at := [2]int{w.Pool, w.Seat}
	if v.recent[at] == nil {
		v.recent[at] = &recentWork{at: time.Now()}
	}
	r := v.recent[at]
	now := time.Now()
	if seconds := now.Sub(r.at).Seconds(); seconds >= 1 {
		tokens := int64(0)
		if w.Pool == len(v.stages)-1 {
			tokens = v.server.metrics.engine(w.Seat).output.Load()
		}
		r.perSecond, r.retracted = float64(tokens-r.tokens)/seconds, w.Preemptions-r.preemptions
		r.at, r.tokens, r.preemptions = now, tokens, w.Preemptions
	}
	return r
}
