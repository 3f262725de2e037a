package gridspec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
)

const sla = "planner: {policy: dynamo, optimization_target: sla, enable_load_scaling: true}\n"

// Settings of the planner count only where something looks at them.
func TestContentIDsOfPlanners(t *testing.T) {
	id := func(spec string) string { return expand(t, load(t, chat+spec))[0].ContentID("digest") }
	const half = "planner: {policy: dynamo, optimization_target: throughput, "
	for _, same := range [][]string{
		{"", "engine: {startup_time: 30}", "planner: {policy: static}", "planner: {ttft_ms: 100, min_endpoint: 3}",
			"deployment: {mode: aggregated}\nplanner: {load_predictor_warmup_trace: gone.jsonl}"},
		{half + "min_endpoint: 1}", half + "ttft_ms: 7}", half + "enable_throughput_scaling: false}", half + "decode_engine_num_gpu: 1}",
			half + "prefill_scale_up_queue_tokens: 5}", "planner: {policy: dynamo}"},
		{sla, strings.Replace(sla, "}", ", kalman_r: 3}", 1)},
	} {
		for _, spec := range same {
			if got, want := id(spec), id(same[0]); got != want {
				t.Errorf("%q: the ID differs from that of %q", spec, same[0])
			}
		}
	}
	seen := map[string]string{}
	for _, spec := range []string{
		"", half + "min_endpoint: 1}", half + "min_endpoint: 2}", half + "min_endpoint: 1}\nengine: {startup_time: 30}", sla,
		strings.Replace(sla, "}", ", ttft_ms: 100}", 1), strings.Replace(sla, "}", ", load_predictor: kalman}", 1),
	} {
		if twin, twice := seen[id(spec)]; twice {
			t.Errorf("%q has the ID of %q", spec, twin)
		}
		seen[id(spec)] = spec
	}
}

// A warm-up trace counts by what is in it, wherever it lies.
func TestContentIDOfWarmupTrace(t *testing.T) {
	dir := t.TempDir()
	at := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := gridspec.Load(gridspec.Source{Path: filepath.Join(dir, "grid.yaml"),
			Data: []byte(chat + strings.Replace(sla, "}", ", load_predictor_warmup_trace: "+name+"}", 1))})
		if err != nil {
			t.Fatal(err)
		}
		p := expand(t, s)[0]
		if p.Config.Planner.LoadPredictorWarmupTrace != path {
			t.Errorf("the path is %s", p.Config.Planner.LoadPredictorWarmupTrace)
		}
		return p.ContentID("digest")
	}
	if a, b, c := at("a", "1"), at("b", "1"), at("c", "2"); a != b || a == c {
		t.Errorf("IDs %s, %s and %s", a, b, c)
	}
}

func TestUnusedPlannerSettings(t *testing.T) {
	for _, tc := range []struct{ spec, want string }{
		{"planner: {ttft_ms: 100}", "planner.ttft_ms: it changes nothing: there is no planner without planner.policy"},
		{"engine: {startup_time: 30}", "engine.startup_time: it changes nothing: no worker starts without planner.policy"},
		{"planner: {policy: dynamo, ttft_ms: 100}", "planner.ttft_ms: it changes nothing: nothing looks at it with this planner.policy"},
		{"planner: {policy: static}", ""},
		{sla + "engine: {startup_time: 30}", ""},
		{"planner: {policy: dynamo, ttft_ms: 100}\ngrid: {planner.optimization_target: [latency, sla]}", ""},
		{"planner: {policy: dynamo}\ngrid: {planner.optimization_target: [latency, throughput], planner.ttft_ms: [1, 2]}", "grid.planner.ttft_ms: it changes nothing"},
		{"cases: {a: {planner.policy: dynamo}, b: {planner.optimization_target: sla, planner.ttft_ms: 3}}", "planner.ttft_ms: it changes nothing"},
		{"grid: {planner.policy: [static, dynamo], engine.startup_time: [0, 30]}", ""},
		{"grid: {planner.kalman_r: [1, 2], planner.load_predictor: [constant, kalman]}\n" + sla, ""},
	} {
		got := load(t, chat+"timing: {source: fixed, decode_ms: 1}\n"+tc.spec).Warnings()
		switch {
		case tc.want == "" && len(got) > 0:
			t.Errorf("%s: %v", tc.spec, got)
		case tc.want != "" && (len(got) == 0 || !strings.Contains(got.Error(), tc.want)):
			t.Errorf("%s: got %v, want %q", tc.spec, got, tc.want)
		}
	}
}

// Without a planner there is one point for all its settings, and it shows what was written.
func TestPlannerAxes(t *testing.T) {
	ps := expand(t, load(t, chat+"grid: {planner.policy: [static, dynamo], engine.startup_time: [30, 60], planner.min_endpoint: [2, 3]}"))
	if diff := cmp.Diff([]string{"static", "dynamo", "dynamo", "dynamo", "dynamo"}, column(t, ps, "planner_policy")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"30", "30", "30", "60", "60"}, column(t, ps, "startup_time")); diff != "" {
		t.Error(diff)
	}
	ps = expand(t, load(t, chat+sla+"sla: {ttft_ms: 100}\nderive: {x: ttft_ms, y: planner.ttft_ms}"))
	if got := column(t, ps, "x")[0] + " " + column(t, ps, "y")[0]; got != "100 500" {
		t.Errorf("expressions see %s", got)
	}
}

func TestPlannerProblems(t *testing.T) {
	dynamo := func(settings string) string { return chat + "planner: {policy: dynamo, " + settings + "}" }
	for _, tc := range []struct{ spec, want string }{
		{"planner: {policy: hpa}", "planner.policy: hpa is not allowed; use one of: static, dynamo, target_tracking, foresight"},
		{"planner: {polcy: dynamo}", "planner.polcy: unknown key; the nearest is policy"},
		{"ttft_ms: 0", "planner.ttft_ms: 0 is not allowed; give a latency in ms above 0"},
		{"itl_ms: -1", "planner.itl_ms: -1 is not allowed; give a latency in ms above 0"},
		{"fpm_sample_bucket_size: 15", "planner.fpm_sample_bucket_size: 15 is not allowed; give a square such as 16"},
		{"load_adjustment_interval_seconds: 0", "planner.load_adjustment_interval_seconds: 0 is not allowed; give a whole number of seconds, 1 or more"},
		{"optimization_target: sla, enable_throughput_scaling: false", "planner.enable_load_scaling: false is not allowed; enable_throughput_scaling is false too"},
		{"optimization_target: sla, enable_load_scaling: true, load_adjustment_interval_seconds: 180", "give less than throughput_adjustment_interval_seconds, 180"},
		{"optimization_target: load", "planner.decode_scale_up_kv_rate: "},
		{"optimization_target: load, decode_scale_up_kv_rate: 20, decode_scale_down_kv_rate: 20", "give more than decode_scale_down_kv_rate, 20"},
		{"optimization_target: load, decode_scale_up_kv_rate: 120, decode_scale_down_kv_rate: 20", "give a share in percent"},
		{"load_scaling_down_sensitivity: 120", "give a share in percent, 0 to 100"},
		{"scale_interval_seconds: 3", "it does not divide load_adjustment_interval_seconds, 5"},
		{"scale_interval_seconds: 0", "planner.scale_interval_seconds: 0 is not allowed; give a number above 0, or null"},
		{"decode_engine_num_gpu: 4", "a worker has 1 GPUs by timing.tp and timing.dp"},
		{"max_gpu_budget: 1, min_endpoint: 2", "min_endpoint alone takes 2 GPUs"},
		{"max_gpu_budget: 3, min_gpu_budget: 4", "planner.min_gpu_budget: 4 is not allowed; it is above max_gpu_budget, 3"},
		{"min_endpoint: 0", "give a number of workers, 1 or more"},
		{"optimization_target: sla, load_predictor: oracle", "use one of: constant, arima, kalman, prophet"},
	} {
		text := dynamo(tc.spec)
		if strings.HasPrefix(tc.spec, "planner:") {
			text = chat + tc.spec
		}
		s, err := gridspec.Load(gridspec.Source{Data: []byte(text)})
		if err == nil {
			_, err = s.Expand(gridspec.ExpandOptions{})
		}
		checkProblems(t, err, []string{tc.want})
	}
	for _, spec := range []string{
		"compat: dynamo-1.3\nplanner: {policy: dynamo, load_scaling_down_sensitivity: 120, decode_engine_num_gpu: 4, min_endpoint: 0}",
		"planner: {policy: dynamo, max_gpu_budget: -1, optimization_target: load, decode_scale_up_kv_rate: 60, decode_scale_down_kv_rate: 20}",
		"deployment: {prefill_workers: 1, decode_workers: 1}\nprefill: {timing: {tp: 2}}\nplanner: {policy: dynamo, prefill_engine_num_gpu: 2, decode_engine_num_gpu: 1}",
	} {
		expand(t, load(t, chat+spec))
	}
}
