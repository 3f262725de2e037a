package endpoint

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
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

// A worker keeps its number, whatever workers come: those of the start are numbered pool by pool.
func TestVLLMEngineNumbers(t *testing.T) {
	one := []simcore.Pool{{Workers: 2}}
	two := []simcore.Pool{{Workers: 2}, {Workers: 3}}
	for _, c := range []struct {
		stages []simcore.Pool
		pool   int
		want   []int // by seat
	}{
		{one, 0, []int{0, 1, 2, 3, 4}},
		{two, 0, []int{0, 1, 5, 7, 9}},
		{two, 1, []int{2, 3, 4, 6, 8}},
	} {
		for seat, want := range c.want {
			if got := vllmEngine(c.stages, c.pool, seat); got != want {
				t.Errorf("pool %d of %d, seat %d: number %d, want %d", c.pool, len(c.stages), seat, got, want)
			}
		}
	}
}

// toldPlanner is a planner in some state.
type toldPlanner struct {
	policy planner.Policy
	state  planner.OnlineState
}

func (p toldPlanner) Policy() planner.Policy     { return p.policy }
func (p toldPlanner) State() planner.OnlineState { return p.state }

func TestPlannerMetrics(t *testing.T) {
	unknown := planner.Load{DurationSeconds: math.NaN(), Requests: math.NaN(), InputTokens: math.NaN(), OutputTokens: math.NaN(), TTFTMs: math.NaN(), ITLMs: math.NaN()}
	state := planner.OnlineState{
		Ticks:    7,
		Observed: planner.Load{DurationSeconds: 60, Requests: 90, InputTokens: 1000, OutputTokens: 50, TTFTMs: 300, ITLMs: 12}, Predicted: unknown,
		LoadReason: "scale_up",
		Latest: planner.Tick{GPUHours: 1.5, Pools: []planner.PoolTick{
			{Ready: 2, Workers: []planner.WorkerTick{{Worker: 4, QueuedPrefillTokens: 11}}},
			{Ready: 3, Starting: 1, Workers: []planner.WorkerTick{{Worker: 4, QueuedDecodeKVTokens: 12, DecodeKVTokens: 13}}},
		}},
		Pools: []planner.OnlinePool{
			{Name: "prefill", Wanted: 2, EstimatedTTFTMs: 250, EstimatedITLMs: math.NaN(), RequestsPerSecond: math.NaN()},
			{Name: "decode", Wanted: 4, EstimatedTTFTMs: math.NaN(), EstimatedITLMs: 14, RequestsPerSecond: 2.5, ScaleUps: 5, ScaleDowns: 2, Added: 6, Removed: 3},
		},
	}
	alone := state
	alone.Latest.Pools, alone.Pools = []planner.PoolTick{{Ready: 3, Starting: 1}}, []planner.OnlinePool{{Name: "agg", Wanted: 5, EstimatedTTFTMs: 250, EstimatedITLMs: 14, RequestsPerSecond: 2}}
	for _, c := range []struct {
		name       string
		told       toldPlanner
		want, none []string
	}{
		{"dynamo", toldPlanner{planner.PolicyDynamo, state}, []string{
			`servegrid_planner_ticks_total 7`,
			`servegrid_planner_decisions_total{direction="up",pool="decode"} 5`,
			`servegrid_planner_decisions_total{direction="down",pool="decode"} 2`,
			`servegrid_workers_added_total{pool="decode"} 6`,
			`servegrid_workers_removed_total{pool="decode"} 3`,
			`servegrid_workers{pool="agg",state="starting"} 1`, // as the deployment says
			`dynamo_planner_num_prefill_replicas 2`,
			`dynamo_planner_num_decode_replicas 3`,
			`dynamo_planner_predicted_num_prefill_replicas 2`,
			`dynamo_planner_predicted_num_decode_replicas 4`,
			`dynamo_planner_observed_requests_per_second 1.5`,
			`dynamo_planner_observed_input_sequence_tokens 1000`,
			`dynamo_planner_observed_ttft_ms 300`,
			`dynamo_planner_estimated_ttft_ms 250`,
			`dynamo_planner_estimated_itl_ms 14`,
			`dynamo_planner_engine_decode_capacity_requests_per_second 2.5`,
			`dynamo_planner_gpu_hours 1.5`,
			`dynamo_planner_load_scaling_decision{dynamo_planner_load_scaling_decision="scale_up"} 1`,
			`dynamo_planner_load_scaling_decision{dynamo_planner_load_scaling_decision="no_change"} 0`,
			`dynamo_planner_throughput_scaling_decision{dynamo_planner_throughput_scaling_decision="unset"} 1`,
			`dynamo_planner_engine_queued_prefill_tokens{dp_rank="0",worker_id="prefill-4"} 11`,
			`dynamo_planner_engine_inflight_decode_kv_tokens{dp_rank="0",worker_id="decode-4"} 13`,
		}, []string{"dynamo_planner_predicted_requests_per_second ", "dynamo_planner_engine_prefill_capacity_requests_per_second ", "kube_"}},
		{"one pool", toldPlanner{planner.PolicyDynamo, alone}, []string{
			`dynamo_planner_num_decode_replicas 3`,
			`dynamo_planner_engine_decode_capacity_requests_per_second 2`,
		}, []string{"dynamo_planner_num_prefill_replicas "}},
		{"target tracking", toldPlanner{planner.PolicyTargetTracking, alone}, []string{
			`kube_horizontalpodautoscaler_status_current_replicas{horizontalpodautoscaler="agg"} 4`,
			`kube_horizontalpodautoscaler_status_desired_replicas{horizontalpodautoscaler="agg"} 5`,
		}, []string{"dynamo_"}},
		{"before the first tick", toldPlanner{planner.PolicyDynamo, planner.OnlineState{Pools: alone.Pools}}, []string{`servegrid_planner_ticks_total 0`}, []string{"dynamo_"}},
	} {
		w := newWorld(t, newFake(0, 0), func(o *Options) { o.Planner = c.told })
		got := scrape(t, w)
		for _, want := range c.want {
			if !strings.Contains(got, "\n"+want+"\n") {
				t.Errorf("%s: no %s in\n%s", c.name, want, aboutLike(got, want))
			}
		}
		for _, none := range c.none {
			if strings.Contains(got, "\n"+none) {
				t.Errorf("%s: there is %s", c.name, none)
			}
		}
		problems, err := testutil.GatherAndLint(w.server.metrics.registry)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "servegrid_") {
				t.Errorf("%s: %s: %s", c.name, p.Metric, p.Text)
			}
		}
	}
}

// A worker that came later has its counters before it has done anything.
func TestMetricsOfNewWorkers(t *testing.T) {
	w := newWorld(t, newFake(0, 0), nil) // of one worker, and there are two
	scrape(t, w)
	if got, want := scrape(t, w), `vllm:generation_tokens_total{engine="1",model_name="m"} 0`; !strings.Contains(got, "\n"+want+"\n") {
		t.Errorf("no %s in\n%s", want, aboutLike(got, want))
	}
}
