package fidelity

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/metrics"
)

// Distribution sums up some values, in their unit. Percentiles are nearest-rank.
type Distribution struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// distributionOf sums up values; what is no number, and shares of next to nothing, which are infinite, are left out. Without any
// it is nil.
func distributionOf(values []float64) *Distribution {
	sorted := make([]float64, 0, len(values))
	sum := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sorted = append(sorted, v)
			sum += v
		}
	}
	n := len(sorted)
	if n == 0 {
		return nil
	}
	slices.Sort(sorted)
	at := func(percent int) float64 { return metrics.NearestRank(sorted, percent) }
	return &Distribution{Count: n, Mean: sum / float64(n), Min: sorted[0], P50: at(50), P90: at(90), P99: at(99), Max: sorted[n-1]}
}

// statistic returns a figure by its name in bounds, of those that statistics lists but the mean.
func (d *Distribution) statistic(name string) float64 {
	switch name {
	case "p50":
		return d.P50
	case "p90":
		return d.P90
	case "p99":
		return d.P99
	}
	return d.Max
}
