package results

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/metrics"
)

// SetCost computes the cost figures of the row from its GPU-hours and tokens and the point's price, so that rows of an
// earlier run carry today's prices.
func (r *Row) SetCost() {
	if len(r.Metrics) != len(metrics.Fields()) {
		return
	}
	at := costMetrics
	report := metrics.Report{
		GPUHours:         r.Metrics[at.gpuHours],
		TotalInputTokens: count(r.Metrics[at.input]), TotalOutputTokens: count(r.Metrics[at.output]),
		MeanGPUs: max(0, r.Metrics[at.meanGPUs]),
	}.WithCost(r.Point.GPUPrice, r.Point.Config.GPUs())
	shared := true // with rows of equal points
	for _, i := range at.cost {
		v, ok := metrics.Fields()[i].Value(&report)
		if !ok {
			v = math.NaN()
		}
		if known := r.Metrics[i]; v == known || math.IsNaN(v) && math.IsNaN(known) {
			continue
		}
		if shared {
			r.Metrics, shared = slices.Clone(r.Metrics), false
		}
		r.Metrics[i] = v
	}
}

// count reads a count that is a metric; a row without metrics has none.
func count(v float64) int64 {
	if math.IsNaN(v) {
		return 0
	}
	return int64(v)
}

// IsCost reports whether a metric, by its place, follows from others and what a GPU costs and draws.
func IsCost(metric int) bool { return slices.Contains(costMetrics.cost, metric) }

// costMetrics holds the places of the metrics that cost is computed from and laid out in.
var costMetrics = func() (at struct {
	gpuHours, meanGPUs, input, output int
	cost                              []int
}) {
	place := func(name string) int {
		return slices.IndexFunc(metrics.Fields(), func(f metrics.Field) bool { return f.Name == name })
	}
	at.gpuHours, at.meanGPUs = place("gpu_hours"), place("mean_gpus")
	at.input, at.output = place("total_input_tokens"), place("total_output_tokens")
	priced := metrics.Report{GPUHours: 1, TotalInputTokens: 1, TotalOutputTokens: 1}
	with := priced.WithCost(metrics.GPUPrice{USDPerHour: 1, TDPWatts: 1}, 1)
	for i, f := range metrics.Fields() {
		_, before := f.Value(&priced)
		if _, after := f.Value(&with); after && !before {
			at.cost = append(at.cost, i)
		}
	}
	return at
}()
