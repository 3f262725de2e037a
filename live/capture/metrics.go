package capture

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Collector returns the counts of a capture as Prometheus metrics, whose names begin with servegrid_capture_.
func (p *Proxy) Collector() prometheus.Collector { return &collector{p} }

type collector struct{ p *Proxy }

// family is one metric of a capture.
type family struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Counts) float64
}

func counter(name, help string, labels prometheus.Labels, value func(Counts) int64) family {
	return family{
		desc: prometheus.NewDesc("servegrid_capture_"+name, help, nil, labels), kind: prometheus.CounterValue,
		value: func(c Counts) float64 { return float64(value(c)) },
	}
}

func dropped(reason string, value func(Counts) int64) family {
	return counter("dropped_requests_total", "Requests that were answered and are not in the trace, by reason.", prometheus.Labels{"reason": reason}, value)
}

var captureFamilies = []family{
	counter("requests_total", "Requests for text that came.", nil, func(c Counts) int64 { return c.Requests }),
	counter("other_requests_total", "Requests for anything else, which are passed through only.", nil, func(c Counts) int64 { return c.Other }),
	counter("further_prompts_total", "Prompts of requests with several, beside the first of each, which count as requests in what is recorded.", nil, func(c Counts) int64 { return c.Further }),
	counter("recorded_requests_total", "Requests that are in the trace.", nil, func(c Counts) int64 { return c.Recorded }),
	counter("cut_requests_total", "Recorded requests that ended before the answer was complete.", nil, func(c Counts) int64 { return c.Cut }),
	counter("failed_requests_total", "Requests without an answer that has text.", nil, func(c Counts) int64 { return c.Failed }),
	counter("unreachable_requests_total", "Failed requests that the server did not answer at all.", nil, func(c Counts) int64 { return c.Unreachable }),
	dropped("memory", func(c Counts) int64 { return c.DroppedMemory }),
	dropped("queue", func(c Counts) int64 { return c.DroppedQueue }),
	dropped("too_large", func(c Counts) int64 { return c.DroppedLarge }),
	dropped("unreadable", func(c Counts) int64 { return c.DroppedUnread }),
	dropped("files", func(c Counts) int64 { return c.DroppedFiles }),
	counter("tool_calls_total", "Tool calls that are in the trace.", nil, func(c Counts) int64 { return c.Tools }),
	counter("written_bytes_total", "Bytes of the trace's files.", nil, func(c Counts) int64 { return c.Bytes }),
	counter("files_total", "Files of the trace that were begun.", nil, func(c Counts) int64 { return c.Files }),
	{
		desc: prometheus.NewDesc("servegrid_capture_running_requests", "Requests for text that are under way.", nil, nil), kind: prometheus.GaugeValue,
		value: func(c Counts) float64 { return float64(c.Running) },
	},
}

// Describe tells the metrics.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for i := range captureFamilies {
		descs <- captureFamilies[i].desc
	}
}

// Collect tells their values.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	counts := c.p.Counts()
	for i := range captureFamilies {
		f := &captureFamilies[i]
		metrics <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(counts))
	}
}
