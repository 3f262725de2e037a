package fidelity

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bound is how far two runs may be apart by one metric.
type Bound struct {
	// Metric is that of a [Delta], or "lag", how much later than planned requests of either run were sent.
	Metric string `json:"metric"`
	// Statistic is mean, by how much the means may differ, or p50, p90, p99 or max of the differences of the pairs; of the lag, all
	// are of its values.
	Statistic string `json:"statistic"`
	// Limit is in the metric's unit, or a share of A's value if Relative.
	Limit    float64 `json:"limit"`
	Relative bool    `json:"relative"`
	// Value is what there is, in the same unit. It is nil, which misses the bound, when a run does not state the metric, and when it
	// would be a share of 0.
	Value *float64 `json:"value"`
	Kept  bool     `json:"kept"`
}

const lagMetric = "lag"

var statistics = []string{"mean", "p50", "p90", "p99", "max"}

// boundedMetrics are the names that bounds may have.
func boundedMetrics() []string {
	var names []string
	for _, m := range compared {
		names = append(names, m.name)
	}
	return append(names, lagMetric)
}

// ParseBound reads METRIC[.STATISTIC]=LIMIT[%], such as ttft=5% or arrival.p99=10; without a statistic it is the mean.
func ParseBound(text string) (Bound, error) {
	const shape = "give METRIC=LIMIT or METRIC.STATISTIC=LIMIT, such as ttft=5%, which is of A's mean, or arrival.p99=10, in ms"
	name, limit, ok := strings.Cut(text, "=")
	if !ok {
		return Bound{}, fmt.Errorf("%q has no limit; %s", text, shape)
	}
	b := Bound{Statistic: "mean"}
	var statistic string
	if b.Metric, statistic, ok = strings.Cut(name, "."); ok {
		b.Statistic = statistic
	}
	var problems []error
	if !slices.Contains(boundedMetrics(), b.Metric) {
		problems = append(problems, fmt.Errorf("%q: %q is no metric; give one of %s", text, b.Metric, strings.Join(boundedMetrics(), ", ")))
	}
	if !slices.Contains(statistics, b.Statistic) {
		problems = append(problems, fmt.Errorf("%q: %q is no statistic; give one of %s", text, b.Statistic, strings.Join(statistics, ", ")))
	}
	number, percent := strings.CutSuffix(limit, "%")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !(value >= 0) || math.IsInf(value, 0) {
		problems = append(problems, fmt.Errorf("%q: %q is no limit; %s", text, limit, shape))
	}
	b.Limit = value
	if percent {
		b.Relative, b.Limit = true, value/100
		if b.Metric == lagMetric {
			problems = append(problems, fmt.Errorf("%q: the lag is a share of nothing; give a limit in ms", text))
		}
	}
	return b, errors.Join(problems...)
}

// String is the bound as people write it.
func (b Bound) String() string {
	limit := strconv.FormatFloat(b.Limit, 'g', 6, 64)
	if b.Relative {
		limit = strconv.FormatFloat(100*b.Limit, 'g', 6, 64) + "%"
	}
	return b.Metric + "." + b.Statistic + "=" + limit
}

// measure fills in what a comparison has of what the bound is about.
func (b *Bound) measure(c *Comparison) {
	value := math.NaN()
	if b.Metric == lagMetric {
		for _, lag := range []*Distribution{c.LagA, c.LagB} {
			if lag != nil {
				v := lag.statistic(b.Statistic)
				if b.Statistic == "mean" {
					v = lag.Mean
				}
				value = max(v, orZero(value))
			}
		}
	}
	for i := range c.Deltas {
		if d := &c.Deltas[i]; d.Metric == b.Metric {
			value = d.apart(b.Statistic, b.Relative)
		}
	}
	b.Value, b.Kept = nil, false
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		b.Value, b.Kept = &value, value <= b.Limit
	}
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// apart is how far the runs are apart by a statistic, as a share of A if relative.
func (d *Delta) apart(statistic string, relative bool) float64 {
	switch {
	case statistic == "mean" && relative && d.A.Mean == 0 && d.B.Mean == 0:
		return 0
	case statistic == "mean" && relative:
		return math.Abs(d.MeanChange())
	case statistic == "mean":
		return math.Abs(d.B.Mean - d.A.Mean)
	case !relative:
		return d.Absolute.statistic(statistic)
	}
	shares := make([]float64, len(d.a))
	for i, x := range d.a {
		if change := math.Abs(d.b[i] - x); change > 0 {
			shares[i] = min(change/math.Abs(x), math.MaxFloat64) // of 0 it is more than any limit
		}
	}
	return distributionOf(shares).statistic(statistic)
}
