package endpoint

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/simcore/engine"
)

// askSome sends three requests of 4 prompt and 10 output tokens.
func askSome(w *world) {
	for range 3 {
		_, _ = io.Copy(io.Discard, w.post("/v1/completions", `{"prompt":"abcd","max_tokens":10,"stream":true}`).Body)
	}
}

func TestVLLMMetrics(t *testing.T) {
	w := newWorld(t, newFake(15*time.Millisecond, 12*time.Millisecond), func(o *Options) { o.Config.Deployment.Workers = 2 })
	askSome(w)
	got := scrape(t, w)
	for _, want := range []string{
		`vllm:num_requests_running{engine="0",model_name="m"} 4`,
		`vllm:num_requests_waiting{engine="0",model_name="m"} 2`,
		`vllm:num_requests_waiting{engine="1",model_name="m"} 0`,
		`vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25`,
		`vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.25`,
		`vllm:num_preemptions_total{engine="0",model_name="m"} 6`,
		`vllm:cache_config_info{block_size="16",engine="0",model_name="m",num_gpu_blocks="100"} 1`,
		`vllm:prompt_tokens_total{engine="0",model_name="m"} 12`,
		`vllm:generation_tokens_total{engine="0",model_name="m"} 30`,
		`vllm:prefix_cache_queries_total{engine="0",model_name="m"} 12`,
		`vllm:prefix_cache_hits_total{engine="0",model_name="m"} 6`,
		`vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 3`,
		`vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 0`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 3`,
		`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="0.01"} 0`,
		`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="0.02"} 3`,
		`vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 27`,
		`vllm:inter_token_latency_seconds_bucket{engine="0",model_name="m",le="0.025"} 27`,
		`vllm:time_per_output_token_seconds_count{engine="0",model_name="m"} 27`,
		`vllm:e2e_request_latency_seconds_count{engine="0",model_name="m"} 3`,
		`vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 0.003`,
		`vllm:request_prompt_tokens_sum{engine="0",model_name="m"} 12`,
		`vllm:request_generation_tokens_sum{engine="0",model_name="m"} 30`,
		`servegrid_router_requests 3`,
		`servegrid_simulated_seconds_total 5`,
		`servegrid_lateness_seconds{quantile="0.99"} 0.004`,
		`servegrid_open_requests 0`,
	} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, aboutLike(got, want))
		}
	}
}

// A reader that was late counts the same gaps as one that was not.
func TestMetricsOfLateReaders(t *testing.T) {
	for name, come := range map[string][]realtime.Progress{
		"in time":    {{Tokens: 1, FirstMs: 10, AtMs: 10}, {Tokens: 1, FirstMs: 20, AtMs: 20}, {Tokens: 1, FirstMs: 30, AtMs: 30}},
		"late first": {{Tokens: 2, FirstMs: 10, AtMs: 20}, {Tokens: 1, FirstMs: 30, AtMs: 30}},
		"late":       {{Tokens: 1, FirstMs: 10, AtMs: 10}, {Tokens: 2, FirstMs: 20, AtMs: 30}},
		"all late":   {{Tokens: 3, FirstMs: 10, AtMs: 30}},
	} {
		w := newWorld(t, newFake(0, 0), nil)
		m := meter{metrics: w.server.metrics}
		for i := range come {
			m.came(&come[i], 5)
		}
		got := scrape(t, w)
		for _, want := range []string{`vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 2`, `vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 0.02`} {
			if !strings.Contains(got, "\n"+want+"\n") {
				t.Errorf("%s: no %s in\n%s", name, want, aboutLike(got, want))
			}
		}
	}
}

// Tokens count at the worker that made them, also before their request has ended.
func TestMetricsOfWorkers(t *testing.T) {
	fake := newFake(0, 0)
	fake.worker = 1
	w := newWorld(t, fake, func(o *Options) { o.Config.Deployment.Workers = 2 })
	askSome(w)
	got := scrape(t, w)
	for _, want := range []string{
		`vllm:generation_tokens_total{engine="0",model_name="m"} 0`,
		`vllm:generation_tokens_total{engine="1",model_name="m"} 30`,
		`vllm:prompt_tokens_total{engine="1",model_name="m"} 12`,
		`vllm:request_success_total{engine="1",finished_reason="length",model_name="m"} 3`,
	} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, aboutLike(got, want))
		}
	}
}

// aboutLike returns the lines of the same metric.
func aboutLike(text, want string) string {
	name, _, _ := strings.Cut(want, "{")
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestSGLangMetrics(t *testing.T) {
	w := newWorld(t, newFake(150*time.Millisecond, 12*time.Millisecond), func(o *Options) {
		o.Config.Engine.Type = engine.TypeSGLang
		o.Speedup = 10
	})
	askSome(w)
	got := scrape(t, w)
	for _, want := range []string{
		`sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m"} 4`,
		`sglang:num_queue_reqs{dp_rank="0",engine_type="unified",model_name="m"} 2`,
		`sglang:num_used_tokens{dp_rank="0",engine_type="unified",model_name="m"} 400`,
		`sglang:max_total_num_tokens{dp_rank="0",engine_type="unified",model_name="m"} 1600`,
		`sglang:token_usage{dp_rank="0",engine_type="unified",model_name="m"} 0.25`,
		`sglang:cache_hit_rate{dp_rank="0",engine_type="unified",model_name="m"} 0.25`,
		`sglang:num_retracted_requests_total{dp_rank="0",engine_type="unified",model_name="m"} 6`,
		`sglang:prompt_tokens_total{dp_rank="0",engine_type="unified",model_name="m"} 12`,
		`sglang:cached_tokens_total{dp_rank="0",engine_type="unified",model_name="m"} 6`,
		`sglang:generation_tokens_total{dp_rank="0",engine_type="unified",model_name="m"} 30`,
		`sglang:num_requests_total{dp_rank="0",engine_type="unified",model_name="m"} 3`,
		`sglang:num_aborted_requests_total{dp_rank="0",engine_type="unified",model_name="m"} 0`,
		// 150 simulated ms are 15 real ones.
		`sglang:time_to_first_token_seconds_bucket{dp_rank="0",engine_type="unified",model_name="m",le="0.1"} 3`,
		`sglang:e2e_request_latency_seconds_count{dp_rank="0",engine_type="unified",model_name="m"} 3`,
	} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, aboutLike(got, want))
		}
	}
	resp, err := w.client.Get(w.url + "/get_model_info")
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("/get_model_info: %v %v", resp, err)
	}
	_ = resp.Body.Close()
	if !strings.Contains(got, "sglang:gen_throughput{") || strings.Contains(got, "vllm:") {
		t.Error("other names than SGLang's")
	}
}

// What Prometheus' linter has to say is about the names, which are those of the engines, and nothing else.
func TestMetricsLint(t *testing.T) {
	w := newWorld(t, newFake(0, 0), nil)
	problems, err := testutil.GatherAndLint(w.server.metrics.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "vllm:") || !strings.Contains(p.Text, "should not contain ':'") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
