package aiperf

import (
	"math"
	"slices"
)

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

// Summarise computes the metrics of the records of one phase, as AIPerf does: failed requests count in those about errors only.
// The phase took so many seconds, over which throughputs and concurrency are; benchmark_duration is from the first request to
// the last answer. What no record says is left out.
func Summarise(records []Record, phase string, seconds float64) Summary {
	s, values, units := Summary{}, map[string][]float64{}, map[string]string{}
	var spans []span
	first, last, sent, failed := int64(math.MaxInt64), int64(math.MinInt64), 0, 0
	for i := range records {
		r := &records[i]
		if r.Metadata.BenchmarkPhase != phase {
			continue
		}
		if r.Metadata.WasCancelled {
			continue
		}
		if sent++; r.Error != nil {
			failed++
			continue
		}
		first, last = min(first, r.Metadata.RequestStartNs), max(last, r.Metadata.RequestEndNs)
		spans = append(spans, spanOf(r))
		for tag, m := range r.Metrics {
			values[tag], units[tag] = append(values[tag], m.Value.Numbers...), m.Unit
		}
		if due := r.Metadata.CreditIssuedNs; due > 0 {
			for _, f := range ofMetadata {
				end := r.Metadata.RequestStartNs
				if f.tag == "effective_latency" {
					end = r.Metadata.RequestEndNs
				}
				values[f.tag], units[f.tag] = append(values[f.tag], between(due, end)/1e6), f.unit
			}
		}
	}
	for tag, v := range values {
		if len(v) > 0 {
			s[tag] = statOf(v, units[tag])
		}
	}
	s.set("request_count", float64(sent-failed))
	s.set("completed_request_count", float64(sent))
	if sent > 0 {
		s.set("request_error_rate", 100*float64(failed)/float64(sent))
	}
	if sent > failed {
		s.set("benchmark_duration", between(first, last)/1e9)
		s.addTotals(seconds)
		s.addOverTime(spans, seconds)
	}
	return s
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

// statOf computes the statistics of at least one value.
func statOf(values []float64, unit string) Stat {
	values = slices.Clone(values)
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
