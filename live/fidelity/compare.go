package fidelity

import (
	"fmt"
	"math"
	"slices"
)

// Comparison says how far two runs of one workload agree.
type Comparison struct {
	A *Run `json:"a"`
	B *Run `json:"b"`
	// Join says by what requests were paired, and Pairs how many are.
	Join  Join `json:"join"`
	Pairs int  `json:"pairs"`
	// Conditions are what ought to be equal for the rest to mean anything.
	Conditions []Check `json:"conditions"`
	// Checks must hold.
	Checks []Check `json:"checks"`
	// Deltas are how far the rest is apart, and Bounds how far it may be.
	Deltas []Delta `json:"deltas"`
	Bounds []Bound `json:"bounds,omitempty"`
	// LagA and LagB are how much later than planned the requests were sent, in ms; nil when the run does not say.
	LagA *Distribution `json:"lag_a,omitempty"`
	LagB *Distribution `json:"lag_b,omitempty"`
	// Worst are the requests that are furthest apart.
	Worst []Worst `json:"worst,omitempty"`
	// Verdict is all of it in words.
	Verdict Verdict `json:"verdict"`

	pairs []pair
}

// Worst is a request that is far apart in both runs.
type Worst struct {
	// Request is its name in A, and Metric the one by which it is apart: duration, or TTFT where runs state no durations.
	Request string  `json:"request"`
	Metric  string  `json:"metric"`
	A       float64 `json:"a"`
	B       float64 `json:"b"`
	Unit    string  `json:"unit"`
}

// Compare compares two runs. The error says why their requests cannot be paired.
func Compare(a, b *Run, how Join, bounds []Bound) (*Comparison, error) {
	pairs, used, err := join(a, b, how)
	if err != nil {
		return nil, err
	}
	c := &Comparison{
		A: a, B: b, Join: used, Pairs: len(pairs), pairs: pairs,
		Conditions: conditionsOf(a, b), Checks: checksOf(a, b, pairs), Deltas: deltasOf(a, b, pairs),
		LagA: lagOf(a), LagB: lagOf(b), Bounds: slices.Clone(bounds),
	}
	for i := range c.Bounds {
		c.Bounds[i].measure(c)
	}
	c.Worst = c.worst()
	c.Verdict = c.verdict()
	return c, nil
}

// conditionsOf compares the facts of two runs. They are no checks: a comparison of other conditions may be what is wanted.
func conditionsOf(a, b *Run) []Check {
	var out []Check
	for _, f := range []struct {
		name string
		of   func(Facts) string
	}{
		{"served model", func(f Facts) string { return f.Model }},
		{"simulated model", func(f Facts) string { return f.Timing }},
		{"tokenizer", func(f Facts) string { return f.Tokenizer }},
		{"block size", func(f Facts) string { return f.BlockSize }},
		{"topology", func(f Facts) string { return f.Topology }},
		{"cache at the start", func(f Facts) string { return f.Cache }},
		{"workload", func(f Facts) string { return f.Workload }},
	} {
		c := Check{Name: f.name, A: f.of(a.Facts), B: f.of(b.Facts), Outcome: NotStated}
		switch {
		case c.A == "" || c.B == "":
		case c.A == c.B:
			c.Outcome = Holds
		default:
			c.Outcome = Differs
		}
		out = append(out, c)
	}
	return out
}

// mostWorst bounds the list of requests that are furthest apart.
const mostWorst = 5

// worst are the pairs that are furthest apart by duration, or by what comes first of the latencies.
func (c *Comparison) worst() []Worst {
	at := slices.IndexFunc(c.Deltas, func(d Delta) bool { return d.Ratio != nil })
	if at < 0 {
		return nil
	}
	d := &c.Deltas[at]
	order := make([]int, len(d.a))
	for i := range order {
		order[i] = i
	}
	apart := func(i int) float64 { return math.Abs(d.b[i] - d.a[i]) }
	slices.SortStableFunc(order, func(i, k int) int {
		switch x, y := apart(i), apart(k); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	var out []Worst
	for _, i := range order[:min(len(order), mostWorst)] {
		if apart(i) == 0 {
			break
		}
		request := &c.A.Requests[c.pairs[d.places[i]].a]
		name := request.name()
		if request.Session != "" && request.Session != name {
			name += fmt.Sprintf(" (turn %d of %s)", request.Turn, request.Session)
		}
		out = append(out, Worst{Request: name, Metric: d.Title, A: d.a[i], B: d.b[i], Unit: d.Unit})
	}
	return out
}
