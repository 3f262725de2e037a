package metrics

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestLiveFigures checks that a live run has the figures that it knows, and no other one.
func TestLiveFigures(t *testing.T) {
	onlySimulated := []string{"passes", "extrapolated_pass_ratio", "truncated_requests", "decode_worker_utilisation", "first_admission_prefix_cache_reused_ratio", "limited_by_compute_share"}
	for _, test := range []struct {
		name string
		live Live
		has  []string
		not  []string
	}{
		{"nothing but times", Live{PlannedRequests: -1}, []string{"mean_ttft_ms", "p99_e2e_latency_ms", "failed_requests", "p99_schedule_lag_ms", "output_throughput_tok_s", "mean_output_token_throughput_per_user"},
			[]string{"planned_requests", "gpu_hours", "output_throughput_tok_s_per_gpu", "mean_itl_ms", "prefix_cache_reused_ratio", "preemptions"}},
		{"all of it", Live{KnowsDeployment: true, KnowsReuse: true, KnowsGaps: true, KnowsPreemptions: true},
			[]string{"planned_requests", "gpu_hours", "output_throughput_tok_s_per_gpu", "mean_itl_ms", "mean_output_token_throughput_per_user", "prefix_cache_reused_ratio", "preemptions"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Report{CompletedRequests: 1, Live: &test.live}
			values := Figures(&r)
			known := func(name string) bool {
				i := slices.IndexFunc(Fields(), func(f Field) bool { return f.Name == name })
				if i < 0 {
					t.Fatalf("there is no field %s", name)
				}
				return !math.IsNaN(values[i])
			}
			for _, name := range test.has {
				if !known(name) {
					t.Errorf("%s is not known", name)
				}
			}
			for _, name := range slices.Concat(test.not, onlySimulated) {
				if known(name) {
					t.Errorf("%s is known", name)
				}
			}
		})
	}
	simulated := Report{CompletedRequests: 1}
	for i, v := range Figures(&simulated) {
		if f := Fields()[i]; OfLive(f.Name) && !math.IsNaN(v) {
			t.Errorf("a simulation has %s", f.Name)
		} else if strings.Contains(f.Name, "schedule_lag") != (OfLive(f.Name) && strings.HasSuffix(f.Name, "_ms")) {
			t.Errorf("%s: of live is %v", f.Name, OfLive(f.Name))
		}
	}
}
