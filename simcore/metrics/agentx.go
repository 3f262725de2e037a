package metrics

import "slices"

// AgentX is what the AgentX scenario has to tell beyond the report of its measured window, in which all other figures are
// taken (spec/workloads.md §3).
type AgentX struct {
	// WarmUpRequests filled the cache before the window; they count in no other figure of requests.
	WarmUpRequests int64
	// StartMs is when the window began, in simulated ms.
	StartMs float64
	// NeverIssued counts the requests of the users' plays that were not released before the window ended.
	NeverIssued int64
	// StartedPlays counts the plays of conversations that users started, CompletedPlays those that went to their end.
	StartedPlays, CompletedPlays int64
	// IdleCuts counts the idle times that were cut short, and IdleCutMs is by how much together.
	IdleCuts  int64
	IdleCutMs float64
	// TheoreticalHitRatio is the share of the input tokens of completed requests that a cache without limit would have had when
	// each was released, warm-up included.
	TheoreticalHitRatio float64
	// TotalThroughputTokSPerGPU and InputThroughputTokSPerGPU divide throughputs by the mean number of GPUs.
	TotalThroughputTokSPerGPU, InputThroughputTokSPerGPU float64
	// E2EPerToken is the request latency divided by the output tokens, in ms.
	E2EPerToken Summary
	// PlayLatency is the time from the first release of a play to its last token, in ms, for completed plays.
	PlayLatency Summary
}

// OfAgentX reports whether only reports of the AgentX scenario have a figure.
func OfAgentX(name string) bool {
	return slices.ContainsFunc(agentXFields(), func(f Field) bool { return f.Name == name })
}

// agentXFields lists the figures of the scenario.
func agentXFields() []Field {
	field := func(name, unit, doc string, integer bool, better Direction, get func(*AgentX) float64) Field {
		return Field{Name: name, Unit: unit, Doc: doc, Integer: integer, Better: better, Optional: true,
			get: func(r *Report) (float64, bool) {
				if r.AgentX == nil {
					return 0, false
				}
				return get(r.AgentX), true
			}}
	}
	fs := []Field{
		field("warm_up_requests", "requests", "Requests that filled the cache before the measured window of the AgentX scenario; no other figure of requests counts them.", true, Neutral,
			func(a *AgentX) float64 { return float64(a.WarmUpRequests) }),
		field("window_start_ms", "ms", "When the measured window of the AgentX scenario began.", false, Neutral, func(a *AgentX) float64 { return a.StartMs }),
		field("never_issued_requests", "requests", "Requests of the users' plays that were not released before the window ended.", true, Neutral,
			func(a *AgentX) float64 { return float64(a.NeverIssued) }),
		field("started_plays", "plays", "Plays of conversations that users started in the window.", true, Neutral, func(a *AgentX) float64 { return float64(a.StartedPlays) }),
		field("completed_plays", "plays", "Plays of conversations that went to their end in the window.", true, HigherIsBetter, func(a *AgentX) float64 { return float64(a.CompletedPlays) }),
		field("idle_cuts", "events", "How often idle time was cut short.", true, Neutral, func(a *AgentX) float64 { return float64(a.IdleCuts) }),
		field("idle_cut_ms", "ms", "Idle time that was cut out.", false, Neutral, func(a *AgentX) float64 { return a.IdleCutMs }),
		field("theoretical_hit_ratio", "ratio", "Share of the input tokens of completed requests that a cache without limit would have had when each was released.", false, Neutral,
			func(a *AgentX) float64 { return a.TheoreticalHitRatio }),
		field("total_throughput_tok_s_per_gpu", "tokens/s/GPU", "Input and output throughput divided by `mean_gpus`.", false, HigherIsBetter,
			func(a *AgentX) float64 { return a.TotalThroughputTokSPerGPU }),
		field("input_throughput_tok_s_per_gpu", "tokens/s/GPU", "Input throughput divided by `mean_gpus`.", false, HigherIsBetter,
			func(a *AgentX) float64 { return a.InputThroughputTokSPerGPU }),
	}
	fs = append(fs, agentXSummary("e2e_per_output_token_ms", "request latency divided by the output tokens", func(a *AgentX) *Summary { return &a.E2EPerToken })...)
	fs = append(fs, agentXSummary("play_latency_ms", "time from the first release of a completed play to its last token", func(a *AgentX) *Summary { return &a.PlayLatency })...)
	fs = append(fs, interactivityFields("interactivity", "time per output token", func(r *Report) *Summary { return &r.TPOT })...)
	return append(fs, interactivityFields("e2e_normalised_interactivity", "request latency divided by the output tokens", func(r *Report) *Summary { return &r.AgentX.E2EPerToken })...)
}

// agentXSummary lists the statistics of a distribution that people compare.
func agentXSummary(name, what string, of func(*AgentX) *Summary) []Field {
	var out []Field
	for _, f := range summaryFields(name, "ms", what, LowerIsBetter, func(r *Report) *Summary { return of(r.AgentX) }) {
		if slices.Contains([]string{"min_" + name, "max_" + name, "std_" + name}, f.Name) {
			continue
		}
		get := f.get
		f.Optional = true
		f.get = func(r *Report) (float64, bool) {
			if r.AgentX == nil {
				return 0, false
			}
			return get(r)
		}
		out = append(out, f)
	}
	return out
}

// interactivityFields are tokens per second as a user sees them: 1000 divided by a percentile of a time per token, as
// InferenceX has it, so that 90 of 100 requests are at least as fast as the 90th percentile says.
func interactivityFields(name, of string, summary func(*Report) *Summary) []Field {
	var fs []Field
	for _, stat := range []struct {
		key, doc string
		get      func(*Summary) float64
	}{
		{"mean", "mean", func(s *Summary) float64 { return s.Mean }},
		{"median", "median", func(s *Summary) float64 { return s.Median }},
		{"p75", "75th percentile", func(s *Summary) float64 { return s.P75 }},
		{"p90", "90th percentile", func(s *Summary) float64 { return s.P90 }},
		{"p95", "95th percentile", func(s *Summary) float64 { return s.P95 }},
		{"p99", "99th percentile", func(s *Summary) float64 { return s.P99 }},
	} {
		fs = append(fs, Field{
			Name: stat.key + "_" + name, Unit: "tokens/s", Doc: "1000 / the " + stat.doc + " of the " + of + ".", Better: HigherIsBetter, Optional: true, Sampled: true,
			get: func(r *Report) (float64, bool) {
				if r.AgentX == nil {
					return 0, false
				}
				if v := stat.get(summary(r)); v > 0 {
					return 1000 / v, true
				}
				return 0, true
			},
		})
	}
	return fs
}
