package fidelity

import (
	"math"
)

// metric is something that pairs of requests are compared by.
type metric struct {
	name, title, unit string
	// of is its value; NaN when the run does not state it.
	of func(*Request) float64
	// ratio says that B ÷ A means something.
	ratio bool
	// rebase says that values count from the first pair's.
	rebase bool
}

func orNaN(count int) float64 {
	if count == Unknown {
		return math.NaN()
	}
	return float64(count)
}

// compared are the metrics, in the order in which they are shown.
var compared = []metric{
	{name: "arrival", title: "Arrival", unit: "ms", of: func(r *Request) float64 { return r.StartMs }, rebase: true},
	{name: "duration", title: "Duration", unit: "ms", of: func(r *Request) float64 { return r.E2EMs }, ratio: true},
	{name: "ttft", title: "TTFT", unit: "ms", of: func(r *Request) float64 { return r.TTFTMs }, ratio: true},
	{name: "itl", title: "ITL", unit: "ms", of: func(r *Request) float64 { return r.ITLMs }, ratio: true},
	{name: "input", title: "Input length", unit: "tokens", of: func(r *Request) float64 { return orNaN(r.Input) }},
	{name: "reuse", title: "Reuse", unit: "of the prompt", of: (*Request).reuse},
}

// Delta says how far one metric of pairs of requests is apart.
type Delta struct {
	// Metric is its name: arrival, duration, ttft, itl, input or reuse; Title is that for people, and Unit is of all but Relative and
	// Ratio.
	Metric string `json:"metric"`
	Title  string `json:"-"`
	Unit   string `json:"unit"`
	// A and B are the values of the pairs in each run. Arrivals count from the first one of a pair.
	A *Distribution `json:"a"`
	B *Distribution `json:"b"`
	// Signed is B − A, and Absolute its size.
	Signed   *Distribution `json:"signed"`
	Absolute *Distribution `json:"absolute"`
	// Relative is the size of B − A as a share of A, and Ratio is B ÷ A, of pairs with an A above 0; nil where that means nothing.
	Relative *Distribution `json:"relative,omitempty"`
	Ratio    *Distribution `json:"ratio,omitempty"`

	// a and b are the values, and places the pairs that they are of.
	a, b   []float64
	places []int
}

// MeanChange is the difference of the means, B − A, as a share of A's; NaN when A's is 0 or next to nothing.
func (d *Delta) MeanChange() float64 {
	change := (d.B.Mean - d.A.Mean) / math.Abs(d.A.Mean)
	if math.IsInf(change, 0) {
		return math.NaN()
	}
	return change
}

// deltasOf compares pairs by every metric that both runs state.
func deltasOf(a, b *Run, pairs []pair) []Delta {
	var out []Delta
	for _, m := range compared {
		if d, ok := deltaOf(m, a, b, pairs); ok {
			out = append(out, d)
		}
	}
	return out
}

func deltaOf(m metric, a, b *Run, pairs []pair) (Delta, bool) {
	d := Delta{Metric: m.name, Title: m.title, Unit: m.unit}
	for place, p := range pairs {
		x, y := m.of(&a.Requests[p.a]), m.of(&b.Requests[p.b])
		if !math.IsNaN(x) && !math.IsNaN(y) {
			d.a, d.b, d.places = append(d.a, x), append(d.b, y), append(d.places, place)
		}
	}
	if len(d.a) == 0 {
		return d, false
	}
	if m.rebase {
		rebase(d.a)
		rebase(d.b)
	}
	var signed, absolute, relative, ratio []float64
	for i, x := range d.a {
		change := d.b[i] - x
		signed, absolute = append(signed, change), append(absolute, math.Abs(change))
		if x > 0 {
			relative, ratio = append(relative, math.Abs(change)/x), append(ratio, d.b[i]/x)
		}
	}
	d.A, d.B = distributionOf(d.a), distributionOf(d.b)
	d.Signed, d.Absolute = distributionOf(signed), distributionOf(absolute)
	if m.ratio {
		d.Relative, d.Ratio = distributionOf(relative), distributionOf(ratio)
	}
	return d, true
}

// rebase makes times count from the first one.
func rebase(times []float64) {
	first := math.Inf(1)
	for _, t := range times {
		first = min(first, t)
	}
	for i := range times {
		times[i] -= first
	}
}

// lagOf is how much later than planned the requests of a run were sent; nil when it does not say.
func lagOf(r *Run) *Distribution {
	values := make([]float64, len(r.Requests))
	for i := range r.Requests {
		values[i] = r.Requests[i].LagMs
	}
	return distributionOf(values)
}
