package aiperf

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Totals are what the records of a run come to.
type Totals struct {
	// Profiling are the metrics of what was measured, WarmUp those of what came before; nil without such records.
	Profiling, WarmUp Summary
	errors            []errorCount
}

// errorCount is a kind of error with how often it came.
type errorCount struct {
	Details ErrorDetails `json:"error_details"`
	Count   int          `json:"count"`
}

// TotalsOf sums the records of a run up. It looks at them once, and keeps a few numbers of each meanwhile.
func TotalsOf(records iter.Seq[*Record], f Facts) Totals {
	profiling, warm := newSummer(), newSummer()
	errors := map[ErrorDetails]int{}
	for r := range records {
		switch r.Metadata.BenchmarkPhase {
		case PhaseProfiling:
			profiling.add(r)
		case PhaseWarmUp:
			warm.add(r)
		}
		if r.Error != nil {
			errors[*r.Error]++
		}
	}
	t := Totals{Profiling: profiling.summary(f.ProfilingSeconds), errors: []errorCount{}}
	if warm.any {
		t.WarmUp = warm.summary(f.WarmUpSeconds)
	}
	for e, n := range errors {
		t.errors = append(t.errors, errorCount{e, n})
	}
	slices.SortFunc(t.errors, func(a, b errorCount) int { // the most frequent first
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Details.Code, b.Details.Code), cmp.Compare(a.Details.Type, b.Details.Type), cmp.Compare(a.Details.Message, b.Details.Message))
	})
	return t
}

// Summary holds the metrics of a run by AIPerf's names.
type Summary map[string]Stat

// Stat is one metric of a run.
type Stat struct {
	Unit string
	// Single says that there is one value for the whole run, which is Avg.
	Single bool
	Avg    float64
	// Weighted says that values count by how long they held, so that there is no sum, and percentiles are from the 50th on.
	Weighted bool
	// Min and all that follows are of metrics with a value for each request. Percentiles are interpolated as numpy does, Std is
	// that of the population.
	Min, Max, Sum, Std                        float64
	P1, P5, P10, P25, P50, P75, P90, P95, P99 float64
	Count                                     int
}

// percentiles are those of a Stat, in the order of the files.
var percentiles = []struct {
	name    string
	percent float64
	of      func(*Stat) *float64
}{
	{"p1", 1, func(s *Stat) *float64 { return &s.P1 }}, {"p5", 5, func(s *Stat) *float64 { return &s.P5 }}, {"p10", 10, func(s *Stat) *float64 { return &s.P10 }},
	{"p25", 25, func(s *Stat) *float64 { return &s.P25 }}, {"p50", 50, func(s *Stat) *float64 { return &s.P50 }}, {"p75", 75, func(s *Stat) *float64 { return &s.P75 }},
	{"p90", 90, func(s *Stat) *float64 { return &s.P90 }}, {"p95", 95, func(s *Stat) *float64 { return &s.P95 }}, {"p99", 99, func(s *Stat) *float64 { return &s.P99 }},
}

// summer takes in the records of one phase for their metrics.
type summer struct {
	values      map[string]*valuesOf
	spans       []span
	first, last int64 // of the times of completed requests
	sent        int
	failed      int
	any         bool // there are records
}

// valuesOf are all values of a metric.
type valuesOf struct {
	unit   string
	values []float64
}

func newSummer() *summer {
	return &summer{values: map[string]*valuesOf{}, first: math.MaxInt64, last: math.MinInt64}
}

// add takes a record in. Failed requests count in the metrics about errors only.
func (s *summer) add(r *Record) {
	s.any = true
	if r.Metadata.WasCancelled {
		return
	}
	if s.sent++; r.Error != nil {
		s.failed++
		return
	}
	s.first, s.last = min(s.first, r.Metadata.RequestStartNs), max(s.last, r.Metadata.RequestEndNs)
	s.spans = append(s.spans, spanOf(r))
	for tag, m := range r.Metrics {
		s.of(tag, m.Unit, m.Value.Numbers...)
	}
	if due := r.Metadata.CreditIssuedNs; due > 0 {
		for _, f := range ofMetadata {
			end := r.Metadata.RequestStartNs
			if f.tag == "effective_latency" {
				end = r.Metadata.RequestEndNs
			}
			s.of(f.tag, f.unit, between(due, end)/1e6)
		}
	}
}

// of takes values of a metric in.
func (s *summer) of(tag, unit string, values ...float64) {
	v := s.values[tag]
	if v == nil {
		v = &valuesOf{unit: unit}
		s.values[tag] = v
	}
	v.values = append(v.values, values...)
}

// summary computes the metrics, as AIPerf does. The phase took so many seconds, over which throughputs and concurrency are;
// benchmark_duration is from the first request to the last answer. What no record says is left out. Nothing is to be added
// after that.
func (s *summer) summary(seconds float64) Summary {
	out := Summary{}
	for tag, v := range s.values {
		if len(v.values) > 0 {
			out[tag] = statOf(v.values, v.unit)
		}
		delete(s.values, tag) // room for what follows
	}
	out.set("request_count", float64(s.sent-s.failed))
	out.set("completed_request_count", float64(s.sent))
	if s.sent > 0 {
		out.set("request_error_rate", 100*float64(s.failed)/float64(s.sent))
	}
	if s.sent > s.failed {
		out.set("benchmark_duration", between(s.first, s.last)/1e9)
		out.addTotals(seconds)
		out.addOverTime(s.spans, seconds)
	}
	return out
}

// between is the time between two ns since 1970. AIPerf subtracts them as reals, which are multiples of 256 ns there, and so
// does this.
func between(from, to int64) float64 { return float64(to) - float64(from) }

// addTotals adds the sums over all requests, and what follows from them and the duration of the phase in seconds.
func (s Summary) addTotals(seconds float64) {
	for total, of := range map[string]string{
		"total_isl": inputLength, "total_osl": outputLength, "total_output_tokens": outputCount, "total_usage_prompt_tokens": usagePrompt,
		"total_usage_completion_tokens": usageCompletion, "total_usage_total_tokens": usageTotal, "total_usage_prompt_cache_read_tokens": usageCached,
	} {
		if stat, ok := s[of]; ok {
			s.set(total, stat.Sum)
		}
	}
	if prompt := s["total_usage_prompt_tokens"].Avg; prompt > 0 && s["total_usage_prompt_cache_read_tokens"].Unit != "" {
		s.set("overall_usage_prompt_cache_read_pct", 100*s["total_usage_prompt_cache_read_tokens"].Avg/prompt)
	}
	if seconds > 0 {
		s.set("request_throughput", s["request_count"].Avg/seconds)
		s.set("output_token_throughput", s["total_osl"].Avg/seconds)
		s.set("input_token_throughput", s["total_isl"].Avg/seconds)
		s.set("total_token_throughput", (s["total_isl"].Avg+s["total_osl"].Avg)/seconds)
	}
}

// set sets a metric with one value.
func (s Summary) set(tag string, v float64) {
	at := slices.IndexFunc(single, func(f figure) bool { return f.tag == tag })
	s[tag] = Stat{Unit: single[at].unit, Single: true, Avg: v}
}

// statOf computes the statistics of at least one value, and sorts them.
func statOf(values []float64, unit string) Stat {
	slices.Sort(values)
	n := float64(len(values))
	s := Stat{Unit: unit, Min: values[0], Max: values[len(values)-1], Count: len(values)}
	for _, v := range values {
		s.Sum += v
	}
	s.Avg = s.Sum / n
	for _, v := range values {
		s.Std += (v - s.Avg) * (v - s.Avg)
	}
	s.Std = math.Sqrt(s.Std / n)
	for _, p := range percentiles {
		*p.of(&s) = percentile(values, p.percent)
	}
	return s
}

// percentile interpolates between the two nearest of sorted values.
func percentile(sorted []float64, percent float64) float64 {
	at := float64(len(sorted)-1) * percent / 100
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (sorted[above]-sorted[below])*(at-float64(below))
}
