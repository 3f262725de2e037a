package calibrate

import (
	"context"
	"math"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// simulated is what a simulation has in place of each sample, in ms; NaN for requests that did not complete.
type simulated []float64

// simulate simulates the run's requests with some values of the terms.
func (o *observations) simulate(ctx context.Context, cfg simcore.Config, v values) (simulated, error) {
	out := make(simulated, len(o.samples))
	for i := range out {
		out[i] = math.NaN()
	}
	_, err := simcore.Run(ctx, v.apply(cfg), o.timed, simcore.Options{Records: func(r simcore.RequestRecord) {
		life := &r.Life
		if life.State != engine.Completed {
			return
		}
		at := &o.samplesOf[r.Request]
		if at[ttft] >= 0 && life.Tokens > 0 {
			out[at[ttft]] = life.FirstTokenMs - life.ArrivalMs + o.movedMs[r.Request]
		}
		if at[itl] >= 0 && life.Tokens > 1 {
			out[at[itl]] = (life.LastTokenMs - life.FirstTokenMs) / float64(life.Tokens-1)
		}
	}})
	return out, err
}

// residual is how far a simulation is off in a sample, measured by its scale. A request that was not simulated is off by all.
func (o *observations) residual(s simulated, i int) float64 {
	if math.IsNaN(s[i]) {
		return 1
	}
	return (s[i] - o.samples[i].ms) / o.samples[i].scale
}

// loss is the mean size of the residuals that are fitted, of both kinds together. Sizes and not squares, since some requests of a
// real run always are far off.
func (o *observations) loss(s simulated) float64 {
	var sum, n [kinds]float64
	for i := range o.samples {
		if sample := &o.samples[i]; !sample.heldOut {
			sum[sample.kind] += math.Abs(o.residual(s, i))
			n[sample.kind]++
		}
	}
	total := 0.0
	for kind := range sum {
		if n[kind] > 0 {
			total += sum[kind] / n[kind]
		}
	}
	return total
}

// part sums up one part of the samples.
func (o *observations) part(before, after simulated, heldOut bool) Part {
	place := 0
	if heldOut {
		place = 1
	}
	return Part{Requests: o.requests[place], TTFT: o.errors(before, after, ttft, heldOut), ITL: o.errors(before, after, itl, heldOut)}
}

// errors is nil where a part has no such sample.
func (o *observations) errors(before, after simulated, kind int, heldOut bool) *Errors {
	var measured, n float64
	var mean, apart [2]float64
	for i, s := range o.samples {
		if s.kind != kind || s.heldOut != heldOut || math.IsNaN(before[i]) || math.IsNaN(after[i]) {
			continue
		}
		n++
		measured += s.ms
		for k, ms := range []float64{before[i], after[i]} {
			mean[k] += ms
			apart[k] += math.Abs(ms - s.ms)
		}
	}
	if n == 0 || measured == 0 {
		return nil
	}
	of := func(k int) Error {
		return Error{SimulatedMs: mean[k] / n, Bias: mean[k]/measured - 1, MeanAbsolute: apart[k] / measured}
	}
	return &Errors{MeasuredMs: measured / n, Before: of(0), After: of(1)}
}
