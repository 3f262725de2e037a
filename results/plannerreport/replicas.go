package plannerreport

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore"
)

// replicas are the numbers of workers of a pool over time: each holds until the next.
type replicas struct {
	// at are the times in seconds, starting at 0.
	at                        []float64
	ready, starting, draining []float64
}

// replicasOf follows the events of a pool, so that what happens between two ticks is seen; a record without events has
// what the ticks saw.
func (v *view) replicasOf(pool int) replicas {
	var r replicas
	if len(v.Events) == 0 {
		for i, t := range v.Ticks {
			p := t.Pools[pool]
			at := v.at[i]
			if i == 0 {
				at = 0
			}
			r.add(at, p.Ready, p.Starting, p.Draining)
		}
		return r
	}
	ready, starting, draining := v.InitialWorkers[pool], 0, 0
	r.add(0, ready, starting, draining)
	for _, e := range v.Events {
		if e.Pool != pool {
			continue
		}
		switch e.Kind {
		case simcore.WorkerRequested:
			starting++
		case simcore.WorkerReady:
			starting, ready = starting-1, ready+1
		case simcore.WorkerCancelled:
			starting--
		case simcore.WorkerDraining:
			ready, draining = ready-1, draining+1
		case simcore.WorkerRemoved:
			draining--
		}
		r.add(e.AtMs/1000, ready, starting, draining)
	}
	return r
}

// add replaces what an earlier event at the same time left.
func (r *replicas) add(at float64, ready, starting, draining int) {
	if n := len(r.at); n > 0 && r.at[n-1] == at {
		r.at, r.ready, r.starting, r.draining = r.at[:n-1], r.ready[:n-1], r.starting[:n-1], r.draining[:n-1]
	}
	r.at = append(r.at, at)
	r.ready = append(r.ready, float64(ready))
	r.starting = append(r.starting, float64(starting))
	r.draining = append(r.draining, float64(draining))
}

func (r *replicas) mostReady() int {
	most := 0.0
	for _, n := range r.ready {
		most = max(most, n)
	}
	return int(most)
}

func (r *replicas) meanReady(end float64) float64 { return integral(r.at, r.ready, end) / end }

// integral sums steps up to the end.
func integral(at, values []float64, end float64) float64 {
	sum := 0.0
	for i, v := range values {
		until := end
		if i+1 < len(at) {
			until = at[i+1]
		}
		sum += v * (until - at[i])
	}
	return sum
}

// none replaces a figure that never is above zero by gaps, so that it is not drawn.
func none(values []float64) []float64 {
	if slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
		return values
	}
	return someOf(values)
}

// someOf replaces zeros by gaps.
func someOf(values []float64) []float64 {
	out := slices.Clone(values)
	for i, v := range out {
		if v == 0 {
			out[i] = math.NaN()
		}
	}
	return out
}
