// Package metrics turns what a simulation recorded into exact figures.
//
// Read report.go for the figures and their definitions, summary.go for how distributions are summarised, and
// recorder.go for how samples are collected while a simulation runs.
package metrics

import (
	"cmp"
	"math"
	"slices"
)

// Summary describes one distribution with the reference's definitions: a percentile q is the sample at rank
// round((n-1)*q/100) of the sorted samples, without interpolation; Std is the population deviation. All are 0
// when there are no samples.
type Summary struct {
	Mean, Min, Max, Median, P75, P90, P95, P99, Std float64
}

// Report is the outcome of one simulation. It holds no wall-clock figure, so equal inputs give equal reports.
type Report struct {
	// NumRequests counts the requests that arrived; Completed those that produced their output; Rejected those
	// that could never fit; Truncated those whose output was cut to the context length; Unfinished those still
	// queued or running at the simulated-time cap.
	NumRequests, CompletedRequests, RejectedRequests, TruncatedRequests, UnfinishedRequests int64
	// LeftOutRecords counts the damaged records and files of the trace that salvaging left out.
	LeftOutRecords int64
	// Preemptions counts how often a running request lost its KV blocks.
	Preemptions int64
	// Passes counts the engine's passes, and ExtrapolatedPassRatio is the share of them that lie outside of the data
	// behind the timing model.
	Passes                int64
	ExtrapolatedPassRatio float64
	// TotalInputTokens and TotalOutputTokens sum the lengths of completed requests.
	TotalInputTokens, TotalOutputTokens int64
	// DurationMs is the time of the last token, or of the last prompt that is followed by none, in simulated ms.
	DurationMs float64
	// Throughputs over the duration.
	RequestThroughputRPS, InputThroughputTokS, OutputThroughputTokS, TotalThroughputTokS float64
	// PrefixCacheReusedRatio is the share of input tokens that came from the prefix cache, taking each request's
	// best admission; FirstAdmissionReusedRatio takes the first one.
	PrefixCacheReusedRatio, FirstAdmissionReusedRatio float64
	// Worker time and GPUs. An aggregated deployment reports its workers under decode.
	PrefillWorkerSeconds, DecodeWorkerSeconds float64
	PrefillGPUsPerWorker, DecodeGPUsPerWorker int64
	// PrefillUtilisation and DecodeUtilisation are the shares of that time in which passes were under way.
	PrefillUtilisation, DecodeUtilisation float64
	// GPUHours is worker time times GPUs per worker.
	GPUHours float64
	// MeanGPUs is the number of GPUs that workers occupied, those that started or drained included, mean over time.
	MeanGPUs float64
	// PeakGPUs is the most that they occupied at a time.
	PeakGPUs int64
	// OutputThroughputTokSPerGPU is OutputThroughputTokS divided by the GPUs of the deployment, or output tokens per second of
	// GPU time where their number changes.
	OutputThroughputTokSPerGPU float64
	// The latency distributions, in ms: per request, except ITL which pools every gap between two tokens.
	TTFT, TTST, TPOT, ITL, E2ELatency Summary
	// OutputTokenThroughputPerUser pools 1000/gap over every gap above 0, in tokens/s.
	OutputTokenThroughputPerUser Summary
	// LatencyParts is where the time of E2ELatency goes, a mean over requests; nil when none was completed.
	LatencyParts *LatencyParts
	// Limited is what kept workers from admitting requests.
	Limited Limited
	// RouterQueue is set for routers that keep requests: how long completed requests waited there, in ms.
	RouterQueue *Summary
	// Handoff is set for disaggregated deployments: the time from a prompt's end on the prefill worker until the decode
	// worker had its KV cache and was idle, in ms.
	Handoff *Summary
	// Tiers is set for deployments with memory tiers below that of GPUs.
	Tiers *Tiers
	// Scaling is set for deployments whose number of workers an autoscaler changes.
	Scaling *Scaling
	// Planning is set for runs with a planner.
	Planning *Planning
	// AgentX is set for the AgentX scenario.
	AgentX *AgentX
	// Live is set for requests that were sent to an endpoint instead of being simulated.
	Live *Live
	// Goodput is set when the SLA has a bound.
	Goodput *Goodput
	// GoodputByPriority and GoodputByPolicyClass are set when the SLA has a bound and requests tell the router anything;
	// in the order of the classes.
	GoodputByPriority, GoodputByPolicyClass []ClassGoodput
	// Cost is set when the GPU is known; see [Report.WithCost].
	Cost *Cost `json:"-"`
	// SimulatorVersion names the semantics that produced the figures, WorkloadDigest the work that was replayed.
	SimulatorVersion, WorkloadDigest string
}

// Goodput counts the requests that kept every bound of the SLA.
type Goodput struct {
	// CompletedRequests is the number of good requests.
	CompletedRequests int64
	// RequestThroughputRPS and OutputThroughputTokS are those of the good requests over the whole duration.
	RequestThroughputRPS, OutputThroughputTokS float64
	// SLAAttainment is the share of all arrived requests that were good.
	SLAAttainment float64
}

// ClassGoodput is the goodput of a class of requests: those of a priority, or those that name a policy class, where
// the empty name stands for none.
type ClassGoodput struct {
	Class string
	// Requests counts those that arrived.
	Requests int64
	Goodput
}

// GPUPrice is what one GPU costs and draws.
type GPUPrice struct {
	// USDPerHour is the price of a GPU-hour; 0 when it is not known.
	USDPerHour float64
	// TDPWatts is the thermal design power; 0 when it is not known.
	TDPWatts float64
}

// Cost is what the GPU-hours of a simulation cost and draw. A figure whose price or power is not known is 0.
type Cost struct {
	// USD is the price of all GPU-hours, USDPerGPU that of one GPU.
	USD, USDPerGPU float64
	// USDPerMtokInput and USDPerMtokOutput divide the whole price by a million tokens in, and out.
	USDPerMtokInput, USDPerMtokOutput float64
	// MaxEnergyKWh is the energy of all GPUs at their thermal design power, which no GPU exceeds for long;
	// MaxEnergyKWhPerGPU that of one GPU.
	MaxEnergyKWh, MaxEnergyKWhPerGPU float64
	// MaxEnergyJPerOutputToken divides that energy by the output tokens.
	MaxEnergyJPerOutputToken float64
}

// WithCost returns the report with the cost of its GPU-hours on a deployment of so many GPUs, or of as many as there were in
// the mean where their number changes.
func (r Report) WithCost(price GPUPrice, gpus int) Report {
	mean := float64(gpus)
	if r.MeanGPUs > 0 {
		mean = r.MeanGPUs
	}
	usd, kwh := r.GPUHours*price.USDPerHour, r.GPUHours*price.TDPWatts/1000
	const million, jPerKWh = 1e6, 3.6e6
	r.Cost = &Cost{
		USD: usd, USDPerGPU: usd / mean,
		USDPerMtokInput:  usd / float64(r.TotalInputTokens) * million,
		USDPerMtokOutput: usd / float64(r.TotalOutputTokens) * million,
		MaxEnergyKWh:     kwh, MaxEnergyKWhPerGPU: kwh / mean,
		MaxEnergyJPerOutputToken: kwh * jPerKWh / float64(r.TotalOutputTokens),
	}
	return r
}

// Direction says which way a figure gets better.
type Direction int8

// The directions.
const (
	Neutral Direction = iota
	HigherIsBetter
	LowerIsBetter
)

// Field describes one figure of a report: the key of the report file and the column of a result table.
type Field struct {
	// Name is the key, which is the reference's where the reference has the figure.
	Name string
	// Unit is the unit of the value, such as "ms" or "tokens/s".
	Unit string
	// Doc says what the figure means, in one sentence.
	Doc string
	// Integer marks counts.
	Integer bool
	// Sampled marks figures of a distribution over completed requests. Without any the reference reports 0, which is no
	// latency to compare.
	Sampled bool
	// Better says which way the figure gets better.
	Better Direction
	// Optional marks figures that only some configurations have, such as goodput.
	Optional bool

	get func(*Report) (float64, bool)
}

// Value returns the figure, and false when this report does not have it.
func (f Field) Value(r *Report) (float64, bool) {
	if r.Live != nil && !r.Live.knows(f.Name) {
		return 0, false
	}
	return f.get(r)
}

// Fields lists every figure of a report in a fixed order.
func Fields() []Field { return fields }

var fields = buildFields()

func buildFields() []Field {
	count := func(name, unit, doc string, better Direction, get func(*Report) int64) Field {
		return Field{Name: name, Unit: unit, Doc: doc, Integer: true, Better: better,
			get: func(r *Report) (float64, bool) { return float64(get(r)), true }}
	}
	real := func(name, unit, doc string, better Direction, get func(*Report) float64) Field {
		return Field{Name: name, Unit: unit, Doc: doc, Better: better,
			get: func(r *Report) (float64, bool) { return get(r), true }}
	}
	cost := func(name, unit, doc string, get func(*Cost) float64) Field {
		return Field{Name: name, Unit: unit, Doc: doc, Better: LowerIsBetter, Optional: true,
			get: func(r *Report) (float64, bool) {
				if r.Cost == nil {
					return 0, false
				}
				v := get(r.Cost)
				return v, v > 0 && !math.IsInf(v, 0)
			}}
	}
	good := func(name, unit, doc string, integer bool, get func(*Goodput) float64) Field {
		return Field{Name: name, Unit: unit, Doc: doc, Integer: integer, Better: HigherIsBetter, Optional: true,
			get: func(r *Report) (float64, bool) {
				if r.Goodput == nil {
					return 0, false
				}
				return get(r.Goodput), true
			}}
	}
	fs := []Field{
		count("num_requests", "requests", "Requests that arrived.", Neutral, func(r *Report) int64 { return r.NumRequests }),
		count("completed_requests", "requests", "Requests that produced their output.", HigherIsBetter, func(r *Report) int64 { return r.CompletedRequests }),
		count("rejected_requests", "requests", "Requests that could never fit and were dropped.", LowerIsBetter, func(r *Report) int64 { return r.RejectedRequests }),
		count("truncated_requests", "requests", "Requests whose output was cut to the context length.", LowerIsBetter, func(r *Report) int64 { return r.TruncatedRequests }),
		count("unfinished_requests", "requests", "Requests that the simulated-time cap left queued or running and that do not count as completed.", LowerIsBetter, func(r *Report) int64 { return r.UnfinishedRequests }),
		count("left_out_records", "records", "Damaged records and files of the trace that `workload.trace.salvage` left out, so that less is replayed; 0 when it was whole.", Neutral, func(r *Report) int64 { return r.LeftOutRecords }),
		count("preemptions", "events", "How often a running request lost its KV blocks.", LowerIsBetter, func(r *Report) int64 { return r.Preemptions }),
		count("passes", "passes", "Forward passes of all workers.", Neutral, func(r *Report) int64 { return r.Passes }),
		real("extrapolated_pass_ratio", "ratio", "Share of the passes that lie outside of the data behind the timing model.", LowerIsBetter, func(r *Report) float64 { return r.ExtrapolatedPassRatio }),
		count("total_input_tokens", "tokens", "Input tokens of completed requests.", Neutral, func(r *Report) int64 { return r.TotalInputTokens }),
		count("total_output_tokens", "tokens", "Requested output tokens of completed requests.", Neutral, func(r *Report) int64 { return r.TotalOutputTokens }),
		real("duration_ms", "ms", "Simulated time of the last token, or of the last prompt of a request that asks for no output, if that is later.", LowerIsBetter, func(r *Report) float64 { return r.DurationMs }),
		real("request_throughput_rps", "requests/s", "Completed requests per second of duration.", HigherIsBetter, func(r *Report) float64 { return r.RequestThroughputRPS }),
		real("input_throughput_tok_s", "tokens/s", "Input tokens per second of duration.", HigherIsBetter, func(r *Report) float64 { return r.InputThroughputTokS }),
		real("output_throughput_tok_s", "tokens/s", "Output tokens per second of duration.", HigherIsBetter, func(r *Report) float64 { return r.OutputThroughputTokS }),
		real("total_throughput_tok_s", "tokens/s", "Input and output tokens per second of duration.", HigherIsBetter, func(r *Report) float64 { return r.TotalThroughputTokS }),
		real("output_throughput_tok_s_per_gpu", "tokens/s/GPU", "Output throughput divided by `mean_gpus`.", HigherIsBetter, func(r *Report) float64 { return r.OutputThroughputTokSPerGPU }),
		real("prefix_cache_reused_ratio", "ratio", "Share of input tokens found in the prefix cache, each request's best admission.", HigherIsBetter, func(r *Report) float64 { return r.PrefixCacheReusedRatio }),
		real("first_admission_prefix_cache_reused_ratio", "ratio", "Share of input tokens found in the prefix cache at the first admission.", HigherIsBetter, func(r *Report) float64 { return r.FirstAdmissionReusedRatio }),
		real("prefill_worker_seconds", "s", "Time of prefill workers; 0 when aggregated.", LowerIsBetter, func(r *Report) float64 { return r.PrefillWorkerSeconds }),
		real("decode_worker_seconds", "s", "Time of decode workers, or of all workers when aggregated.", LowerIsBetter, func(r *Report) float64 { return r.DecodeWorkerSeconds }),
		count("prefill_gpus_per_worker", "GPUs", "GPUs of a prefill worker; 0 when aggregated.", Neutral, func(r *Report) int64 { return r.PrefillGPUsPerWorker }),
		count("decode_gpus_per_worker", "GPUs", "GPUs of a decode worker, or of any worker when aggregated.", Neutral, func(r *Report) int64 { return r.DecodeGPUsPerWorker }),
		{Name: "prefill_worker_utilisation", Unit: "ratio", Doc: "Share of the time of prefill workers in which passes were under way.", Optional: true,
			get: func(r *Report) (float64, bool) { return r.PrefillUtilisation, r.PrefillGPUsPerWorker > 0 }},
		real("decode_worker_utilisation", "ratio", "Share of the time of decode workers, or of all workers when aggregated, in which passes were under way.", Neutral, func(r *Report) float64 { return r.DecodeUtilisation }),
		real("gpu_hours", "GPU-hours", "Worker time multiplied by GPUs per worker.", LowerIsBetter, func(r *Report) float64 { return r.GPUHours }),
		real("mean_gpus", "GPUs", "GPUs that workers occupied, mean over time: `gpus`, or what a planner made of them, with workers that started or drained.", LowerIsBetter, func(r *Report) float64 { return r.MeanGPUs }),
		count("peak_gpus", "GPUs", "The most GPUs that workers occupied at a time: `gpus`, or what a planner made of them, with workers that started or drained.", LowerIsBetter, func(r *Report) int64 { return r.PeakGPUs }),
	}
	for _, d := range []struct {
		name, what string
		of         func(*Report) *Summary
	}{
		{"ttft", "time from arrival to first token", func(r *Report) *Summary { return &r.TTFT }},
		{"ttst", "time from first to second token", func(r *Report) *Summary { return &r.TTST }},
		{"tpot", "time per output token after the first, a mean for each request", func(r *Report) *Summary { return &r.TPOT }},
		{"itl", "time between two successive tokens, pooled over all requests", func(r *Report) *Summary { return &r.ITL }},
		{"e2e_latency", "time from arrival to last token", func(r *Report) *Summary { return &r.E2ELatency }},
	} {
		fs = append(fs, summaryFields(d.name+"_ms", "ms", d.what, LowerIsBetter, d.of)...)
	}
	fs = append(fs, optionalSummary("router_queue_ms", "time from arrival until the router sent the request to a worker", func(r *Report) *Summary { return r.RouterQueue })...)
	fs = append(fs, optionalSummary("handoff_ms", "time from the end of a prompt on its prefill worker until a decode worker had its KV cache and was idle", func(r *Report) *Summary { return r.Handoff })...)
	fs = append(fs, summaryFields("output_token_throughput_per_user", "tokens/s", "1000 / gap over every gap between tokens, pooled",
		HigherIsBetter, func(r *Report) *Summary { return &r.OutputTokenThroughputPerUser })...)
	fs = append(fs, breakdownFields()...)
	fs = append(fs, tierFields()...)
	fs = append(fs, scalingFields()...)
	fs = append(fs, planningFields()...)
	fs = append(fs, agentXFields()...)
	fs = append(fs, liveFields()...)
	return append(fs,
		good("goodput_completed_requests", "requests", "Requests that kept every SLA bound.", true, func(g *Goodput) float64 { return float64(g.CompletedRequests) }),
		good("goodput_request_throughput_rps", "requests/s", "Good requests per second of duration.", false, func(g *Goodput) float64 { return g.RequestThroughputRPS }),
		good("goodput_output_throughput_tok_s", "tokens/s", "Output tokens of good requests per second of duration.", false, func(g *Goodput) float64 { return g.OutputThroughputTokS }),
		good("sla_attainment", "ratio", "Share of arrived requests that kept every SLA bound.", false, func(g *Goodput) float64 { return g.SLAAttainment }),
		cost("cost_usd", "USD", "GPU-hours at the price of the GPU.", func(c *Cost) float64 { return c.USD }),
		cost("cost_usd_per_gpu", "USD/GPU", "Cost divided by `mean_gpus`.", func(c *Cost) float64 { return c.USDPerGPU }),
		cost("cost_usd_per_mtok_input", "USD/Mtoken", "Cost of the whole deployment divided by a million input tokens.", func(c *Cost) float64 { return c.USDPerMtokInput }),
		cost("cost_usd_per_mtok_output", "USD/Mtoken", "Cost of the whole deployment divided by a million output tokens.", func(c *Cost) float64 { return c.USDPerMtokOutput }),
		cost("max_energy_kwh", "kWh", "Upper bound of the energy: GPU-hours at the GPU's thermal design power.", func(c *Cost) float64 { return c.MaxEnergyKWh }),
		cost("max_energy_kwh_per_gpu", "kWh/GPU", "Upper bound of the energy divided by `mean_gpus`.", func(c *Cost) float64 { return c.MaxEnergyKWhPerGPU }),
		cost("max_energy_j_per_output_token", "J/token", "Upper bound of the energy divided by the output tokens.", func(c *Cost) float64 { return c.MaxEnergyJPerOutputToken }),
	)
}

// optionalSummary lists the mean, the maximum and two percentiles of a distribution that not every report has.
func optionalSummary(name, what string, of func(*Report) *Summary) []Field {
	var out []Field
	for _, f := range summaryFields(name, "ms", what, LowerIsBetter, func(r *Report) *Summary { return cmp.Or(of(r), &Summary{}) }) {
		if slices.Contains([]string{"mean_" + name, "median_" + name, "p99_" + name, "max_" + name}, f.Name) {
			get := f.get
			f.Optional = true
			f.get = func(r *Report) (float64, bool) {
				v, _ := get(r)
				return v, of(r) != nil
			}
			out = append(out, f)
		}
	}
	return out
}

func summaryFields(name, unit, what string, better Direction, of func(*Report) *Summary) []Field {
	stats := []struct {
		key, doc string
		get      func(*Summary) float64
	}{
		{"mean", "Mean of the ", func(s *Summary) float64 { return s.Mean }},
		{"min", "Smallest ", func(s *Summary) float64 { return s.Min }},
		{"max", "Largest ", func(s *Summary) float64 { return s.Max }},
		{"median", "Median of the ", func(s *Summary) float64 { return s.Median }},
		{"p75", "75th percentile of the ", func(s *Summary) float64 { return s.P75 }},
		{"p90", "90th percentile of the ", func(s *Summary) float64 { return s.P90 }},
		{"p95", "95th percentile of the ", func(s *Summary) float64 { return s.P95 }},
		{"p99", "99th percentile of the ", func(s *Summary) float64 { return s.P99 }},
		{"std", "Population standard deviation of the ", func(s *Summary) float64 { return s.Std }},
	}
	fs := make([]Field, len(stats))
	for i, st := range stats {
		b := better
		if st.key == "std" {
			b = LowerIsBetter
		}
		fs[i] = Field{Name: st.key + "_" + name, Unit: unit, Doc: st.doc + what + ".", Better: b, Sampled: true,
			get: func(r *Report) (float64, bool) { return st.get(of(r)), true }}
	}
	return fs
}
