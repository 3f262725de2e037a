package simcore

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

func load(t testing.TB, spec workload.Spec, cfg Config) *workload.Workload {
	t.Helper()
	set, err := rules.For(cfg.Compat)
	if err != nil {
		t.Fatal(err)
	}
	cfg, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	w, err := spec.Load(context.Background(), workload.Source{Rules: set, EngineBlockSize: cfg.Engine.BlockSize})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// synthetic is a number of equal requests, one a millisecond.
func synthetic(input, output, requests int) workload.Spec {
	s := workload.DefaultSyntheticSpec()
	s.InputTokens, s.OutputTokens, s.Requests = input, output, requests
	return workload.Spec{Synthetic: &s}
}

func dynamoConfig() Config {
	c := DefaultConfig()
	c.Compat = rules.Dynamo13
	return c
}

func mustRun(t testing.TB, cfg Config, w *workload.Workload) (*Report, []RequestRecord) {
	t.Helper()
	var records []RequestRecord
	r, err := Run(context.Background(), cfg, w, Options{Records: func(r RequestRecord) { records = append(records, r) }})
	if err != nil {
		t.Fatal(err)
	}
	return r, records
}

// figures returns the named figures of a report.
func figures(t testing.TB, r *Report, names map[string]float64) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for _, f := range metrics.Fields() {
		if _, ok := names[f.Name]; ok {
			got[f.Name], _ = f.Value(r)
		}
	}
	return got
}

// closeTo allows for the rounding of the digits that the worked examples print.
var closeTo = cmpopts.EquateApprox(0, 1e-9)

// TestThreeRequests follows three requests of 1000 + 10 tokens pass by pass.
//
// Pass 1 computes the first prompt, 32.105859 ms, and decodes it with 16 of 16384 blocks held, 5.792720 ms. Pass 2
// computes the other two, 48.552296 ms, and decodes all three with 48 blocks, 5.898011 ms, as passes 3 to 10 do.
// Pass 11 decodes the last two with 32 blocks, 5.845390 ms.
func TestThreeRequests(t *testing.T) {
	cfg := dynamoConfig()
	r, records := mustRun(t, cfg, load(t, synthetic(1000, 10, 3), cfg))
	want := map[string]float64{
		"num_requests":                          3,
		"completed_requests":                    3,
		"duration_ms":                           145.378364,
		"min_ttft_ms":                           37.898579,
		"mean_ttft_ms":                          (37.898579 + 91.348886 + 90.348886) / 3,
		"median_ttft_ms":                        90.348886,
		"max_ttft_ms":                           91.348886,
		"max_itl_ms":                            54.450307,
		"p99_itl_ms":                            54.450307,
		"median_itl_ms":                         5.898011,
		"min_itl_ms":                            5.845390,
		"mean_itl_ms":                           7.692346333333333,
		"std_itl_ms":                            9.170000856300273,
		"mean_ttst_ms":                          22.082109666666667,
		"std_tpot_ms":                           2.545841956274762,
		"max_e2e_latency_ms":                    144.378364,
		"output_throughput_tok_s":               206.35807952825775,
		"mean_output_token_throughput_per_user": 164.0623607340578,
		"total_input_tokens":                    3000,
		"total_output_tokens":                   30,
		"prefix_cache_reused_ratio":             0,
		"decode_worker_seconds":                 0.145378364,
		"gpu_hours":                             0.145378364 / 3600,
		"output_throughput_tok_s_per_gpu":       206.35807952825775,
		"p75_output_token_throughput_per_user":  169.5486834459957,
		"first_admission_prefix_cache_reused_ratio": 0,
	}
	if diff := cmp.Diff(want, figures(t, r, want), closeTo); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	type times struct{ Arrival, Admitted, First, Second, Last float64 }
	wantTimes := []times{
		{0, 0, 37.898579, 92.348886, 139.532974},
		{1, 37.898579, 92.348886, 98.246897, 145.378364},
		{2, 37.898579, 92.348886, 98.246897, 145.378364},
	}
	gotTimes := make([]times, len(records))
	for i, r := range records {
		l := r.Life
		gotTimes[i] = times{l.ArrivalMs, l.AdmittedMs, l.FirstTokenMs, l.SecondTokenMs, l.LastTokenMs}
	}
	if diff := cmp.Diff(wantTimes, gotTimes, closeTo); diff != "" {
		t.Errorf("times of requests (-want +got):\n%s", diff)
	}
}

// TestThreeRequestsByDefault follows the same requests under the default rules: a first token needs no decode step.
func TestThreeRequestsByDefault(t *testing.T) {
	cfg := DefaultConfig()
	r, _ := mustRun(t, cfg, load(t, synthetic(1000, 10, 3), cfg))
	// 16 blocks of 64 tokens hold 1000 to 1024 tokens. Pass 2 decodes the first request at 48 of 16384 blocks.
	want := map[string]float64{
		"min_ttft_ms": 32.105859,
		"max_ttft_ms": 32.105859 + 48.552296 + 5.898011 - 1,
		"max_itl_ms":  48.552296 + 5.898011,
		"duration_ms": 32.105859 + 48.552296 + 9*5.898011 + 5.845390,
	}
	if diff := cmp.Diff(want, figures(t, r, want), closeTo); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGoodput checks the SLA figures of the three requests: the first misses the gap bound, the second that of the
// first token.
func TestGoodput(t *testing.T) {
	cfg := dynamoConfig()
	cfg.SLA = SLA{TTFTMs: 91, ITLMs: 8}
	r, _ := mustRun(t, cfg, load(t, synthetic(1000, 10, 3), cfg))
	want := &metrics.Goodput{
		CompletedRequests: 1, RequestThroughputRPS: 6.878602651, OutputThroughputTokS: 68.786026509, SLAAttainment: 1. / 3,
	}
	if diff := cmp.Diff(want, r.Goodput, closeTo); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSessions(t *testing.T) {
	cfg := dynamoConfig()
	trace := workload.DefaultTraceSpec()
	trace.Path = "testdata/sessions.jsonl"
	r, records := mustRun(t, cfg, load(t, workload.Spec{Trace: &trace}, cfg))
	want := []RequestRecord{
		{Request: 0, Session: 0, Turn: 0, Life: engine.Request{Input: 600, Output: 3, Tokens: 3,
			AdmittedMs: 0, ArrivalMs: 0, FirstTokenMs: 31.535999, SecondTokenMs: 54.482555, LastTokenMs: 60.258805},
			Parts: LatencyParts{PrefillMs: 31.535999, DecodeMs: 28.722806}},
		{Request: 2, Session: 1, Turn: 0, Life: engine.Request{Input: 300, Output: 2, Tokens: 2, ReusedFirst: 256, Reused: 256,
			ArrivalMs: 20, RoutedMs: 20, AdmittedMs: 31.535999, FirstTokenMs: 54.482555, SecondTokenMs: 60.258805, LastTokenMs: 60.258805},
			Parts: LatencyParts{QueueMs: 11.535999, PrefillMs: 22.946556, DecodeMs: 5.77625}},
		{Request: 1, Session: 0, Turn: 1, Life: engine.Request{Input: 1100, Output: 2, Tokens: 2, ReusedFirst: 576, Reused: 576,
			ArrivalMs: 110.258805, RoutedMs: 110.258805, AdmittedMs: 110.258805, FirstTokenMs: 140.63125, SecondTokenMs: 146.430556, LastTokenMs: 146.430556},
			Parts: LatencyParts{PrefillMs: 30.372445, DecodeMs: 5.799306}},
	}
	for i := range want {
		want[i].Play, want[i].Life.State, want[i].Life.Number = -1, engine.Completed, int32(want[i].Request)
	}
	if diff := cmp.Diff(want, records, closeTo, cmpopts.IgnoreUnexported(engine.Request{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.PrefixCacheReusedRatio != .416 || r.FirstAdmissionReusedRatio != .416 {
		t.Errorf("reused ratios are %v and %v, want 0.416", r.PrefixCacheReusedRatio, r.FirstAdmissionReusedRatio)
	}
}

// TestSyntheticSessions holds the worked examples of synthetic sessions and shared prefixes.
func TestSyntheticSessions(t *testing.T) {
	for _, test := range []struct {
		name     string
		groups   int
		ratio    float64
		requests int
		turns    int
		interval float64
		delay    float64
		want     map[string]float64
	}{
		{name: "three turns", requests: 2, turns: 3, interval: 10, delay: 20,
			want: map[string]float64{"duration_ms": 273.745107, "mean_ttft_ms": 44.672358166666666, "num_requests": 6}},
		{name: "no group", ratio: .5, requests: 6, turns: 1, interval: 50,
			want: map[string]float64{"mean_ttft_ms": 32.164218, "prefix_cache_reused_ratio": 0}},
		{name: "one group", ratio: .5, groups: 1, requests: 6, turns: 1, interval: 50,
			want: map[string]float64{"mean_ttft_ms": 28.007524666666665, "prefix_cache_reused_ratio": 5. * 320 / 3840, "duration_ms": 294.504936}},
		{name: "eight groups with one prefix", ratio: .5, groups: 8, requests: 6, turns: 1, interval: 50,
			want: map[string]float64{"mean_ttft_ms": 28.007524666666665, "prefix_cache_reused_ratio": 5. * 320 / 3840, "duration_ms": 294.504936}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := workload.DefaultSyntheticSpec()
			s.InputTokens, s.OutputTokens, s.Requests, s.TurnsPerSession = 640, 4, test.requests, test.turns
			s.ArrivalIntervalMs, s.InterTurnDelayMs = test.interval, test.delay
			s.SharedPrefixRatio, s.PrefixGroups = test.ratio, test.groups
			cfg := dynamoConfig()
			r, _ := mustRun(t, cfg, load(t, workload.Spec{Synthetic: &s}, cfg))
			if diff := cmp.Diff(test.want, figures(t, r, test.want), closeTo); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSyntheticRuns compares runs with many preemptions, without chunking and without scaling with what the
// reference reported for them.
func TestSyntheticRuns(t *testing.T) {
	for _, test := range []struct {
		name                    string
		input, output, requests int
		interval                float64
		change                  func(*Config)
		want                    map[string]float64
	}{
		{name: "preemption", input: 500, output: 300, requests: 200, interval: 5,
			change: func(c *Config) { c.Engine.BlockSize, c.Engine.NumGPUBlocks = 16, 1500 },
			want:   map[string]float64{"duration_ms": 62573.49671799995, "mean_ttft_ms": 23134.819594704997, "mean_itl_ms": 39.624841002228045, "max_itl_ms": 10100.527460999932, "std_e2e_latency_ms": 16686.940566159097, "prefix_cache_reused_ratio": 0.08388, "preemptions": 89}},
		{name: "no chunking", input: 3000, output: 20, requests: 100, interval: 3,
			change: func(c *Config) { c.Deployment.Workers, c.Engine.EnableChunkedPrefill = 2, false },
			want:   map[string]float64{"duration_ms": 3489.5648720000017, "mean_ttft_ms": 1564.4942455200005, "mean_itl_ms": 83.9977916168416, "max_itl_ms": 134.42109100000016, "std_e2e_latency_ms": 162.80033712390852, "prefix_cache_reused_ratio": 0.0}},
		{name: "unscaled", input: 300, output: 5, requests: 20, interval: 1,
			change: func(c *Config) { c.Engine.SpeedupRatio = 0 },
			want:   map[string]float64{"duration_ms": 173.90317499999998, "mean_ttft_ms": 134.00509730000002, "mean_itl_ms": 7.5238656375, "max_itl_ms": 122.79397399999999, "std_e2e_latency_ms": 5.407425894192258, "prefix_cache_reused_ratio": 0.0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := workload.DefaultSyntheticSpec()
			s.InputTokens, s.OutputTokens, s.Requests, s.ArrivalIntervalMs = test.input, test.output, test.requests, test.interval
			cfg := dynamoConfig()
			test.change(&cfg)
			r, _ := mustRun(t, cfg, load(t, workload.Spec{Synthetic: &s}, cfg))
			if diff := cmp.Diff(test.want, figures(t, r, test.want), cmpopts.EquateApprox(1e-11, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
