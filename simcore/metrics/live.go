package metrics

import (
	"math"
	"slices"
	"strings"
)

// Live is what a report has to tell of requests that were sent to an endpoint, and which of the other figures are known: what
// only a simulation can know of the engine is not.
type Live struct {
	// PlannedRequests is how many requests the schedule had; -1 when it had no end of its own.
	PlannedRequests int64
	// FailedRequests ended in an error, CancelledRequests were ended by the run.
	FailedRequests, CancelledRequests int64
	// OutputMismatches counts completed requests whose answer had another length than the workload states.
	OutputMismatches int64
	// ScheduleLag is how long after its time a request was sent, in ms.
	ScheduleLag Summary
	// KnowsDeployment says that the deployment behind the endpoint was stated, KnowsReuse that the endpoint said how many
	// prompt tokens were in its prefix cache, KnowsGaps that the gaps between tokens were recorded, and KnowsPreemptions that
	// the endpoint counted them.
	KnowsDeployment, KnowsReuse, KnowsGaps, KnowsPreemptions bool
}

// knows reports whether a figure is known that every simulation has.
func (l *Live) knows(name string) bool {
	switch name {
	case "preemptions":
		return l.KnowsPreemptions
	case "prefix_cache_reused_ratio":
		return l.KnowsReuse
	case "gpu_hours", "mean_gpus", "peak_gpus", "output_throughput_tok_s_per_gpu", "total_throughput_tok_s_per_gpu", "input_throughput_tok_s_per_gpu",
		"prefill_worker_seconds", "decode_worker_seconds", "prefill_gpus_per_worker", "decode_gpus_per_worker":
		return l.KnowsDeployment
	case "truncated_requests", "passes", "extrapolated_pass_ratio", "first_admission_prefix_cache_reused_ratio", "prefill_worker_utilisation", "decode_worker_utilisation":
		return false
	}
	switch {
	case strings.HasPrefix(name, "limited_by_"):
		return false
	case strings.HasSuffix(name, "_itl_ms"):
		return l.KnowsGaps
	}
	return true
}

// OfLive reports whether only reports of live runs have a figure.
func OfLive(name string) bool {
	return slices.ContainsFunc(liveFields(), func(f Field) bool { return f.Name == name })
}

// liveFields lists the figures of requests that were sent to an endpoint.
func liveFields() []Field {
	count := func(name, doc string, better Direction, get func(*Live) int64) Field {
		return Field{Name: name, Unit: "requests", Doc: doc, Integer: true, Better: better, Optional: true,
			get: func(r *Report) (float64, bool) {
				if r.Live == nil || get(r.Live) < 0 {
					return 0, false
				}
				return float64(get(r.Live)), true
			}}
	}
	fs := []Field{
		count("planned_requests", "Requests of the schedule of a live run; null when the schedule has no end of its own.", Neutral, func(l *Live) int64 { return l.PlannedRequests }),
		count("failed_requests", "Requests of a live run that ended in an error.", LowerIsBetter, func(l *Live) int64 { return l.FailedRequests }),
		count("cancelled_requests", "Requests that a live run ended itself, such as at the end of its window.", Neutral, func(l *Live) int64 { return l.CancelledRequests }),
		count("output_length_mismatches", "Completed requests of a live run whose answer had another length than the workload states.", LowerIsBetter, func(l *Live) int64 { return l.OutputMismatches }),
	}
	lag := func(r *Report) *Summary {
		if r.Live == nil {
			return &Summary{}
		}
		return &r.Live.ScheduleLag
	}
	for _, f := range summaryFields("schedule_lag_ms", "ms", "time by which a live run sent a request after it was due", LowerIsBetter, lag) {
		if slices.ContainsFunc([]string{"mean_", "median_", "p90_", "p99_", "max_"}, func(s string) bool { return strings.HasPrefix(f.Name, s) }) {
			get := f.get
			f.Optional, f.Sampled = true, false
			f.get = func(r *Report) (float64, bool) {
				v, _ := get(r)
				return v, r.Live != nil
			}
			fs = append(fs, f)
		}
	}
	return fs
}

// Figures lays a report out with one value for every entry of [Fields], in that order; NaN where the report does not have it.
// Figures of a distribution over completed requests are NaN too when there are none.
func Figures(r *Report) []float64 {
	m := make([]float64, len(fields))
	for i, f := range fields {
		v, ok := f.Value(r)
		if !ok || f.Sampled && r.CompletedRequests == 0 {
			v = math.NaN()
		}
		m[i] = v
	}
	return m
}
