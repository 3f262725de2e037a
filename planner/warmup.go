package planner

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// warm lets the predictors learn the traffic of the warm-up trace, if there is one (planner specification §15, P3).
func (c *core) warm(ctx context.Context) error {
	path := c.config.LoadPredictorWarmupTrace
	if path == "" || c.rules.WarmupIgnored || !c.throughputScaling() {
		return nil
	}
	past, err := pastTraffic(ctx, path, c.config.ThroughputAdjustmentIntervalSeconds)
	if err != nil {
		var l problem.List
		l.Add("planner.load_predictor_warmup_trace", path, "%v", err)
		return l.Err()
	}
	c.requests.Warm(past.requests)
	c.inputTokens.Warm(past.inputTokens)
	c.outputTokens.Warm(past.outputTokens)
	return nil
}

// past is the traffic of a trace, interval by interval: the number of requests and their mean lengths.
type past struct {
	requests, inputTokens, outputTokens []float64
}

// pastKey names what [pastTraffic] has read.
type pastKey struct {
	path    string
	seconds int
}

// pasts holds the traffic of the traces that were read, so that the points of a sweep share it.
var pasts sync.Map

// pastTraffic reads a trace of any format and cuts it into intervals, the first of which begins with the first request. A
// turn of a session counts as if it came its delay after the turn before, since nobody knows how long that took to serve.
func pastTraffic(ctx context.Context, path string, seconds int) (*past, error) {
	key := pastKey{path, seconds}
	if p, ok := pasts.Load(key); ok {
		return p.(*past), nil
	}
	set, err := rules.For("")
	if err != nil {
		return nil, err
	}
	trace := &workload.TraceSpec{Path: path, Format: workload.FormatAuto}
	w, err := workload.Spec{Trace: trace}.Load(ctx, workload.Source{Rules: set, EngineBlockSize: 64})
	if err != nil {
		return nil, err
	}
	p, err := cutTraffic(w, float64(seconds)*1000)
	if err != nil {
		return nil, err
	}
	pasts.Store(key, p)
	return p, nil
}

// maxPastIntervals bounds the number of intervals of a warm-up trace.
const maxPastIntervals = 1 << 20

// cutTraffic adds a workload up, interval by interval. Intervals without requests have the lengths of those before.
func cutTraffic(w *workload.Workload, intervalMs float64) (*past, error) {
	at := arrivals(w)
	first, last := math.Inf(1), math.Inf(-1)
	for _, ms := range at {
		if !math.IsNaN(ms) {
			first, last = min(first, ms), max(last, ms)
		}
	}
	if first > last {
		return nil, errors.New("no request of the trace says when it arrived")
	}
	n := int(min((last-first)/intervalMs, maxPastIntervals)) + 1
	if n > maxPastIntervals {
		return nil, errors.New("the trace is longer than 1,048,576 times throughput_adjustment_interval_seconds: give a shorter one")
	}
	p := &past{requests: make([]float64, n), inputTokens: make([]float64, n), outputTokens: make([]float64, n)}
	for i, ms := range at {
		if math.IsNaN(ms) {
			continue
		}
		interval := int((ms - first) / intervalMs)
		p.requests[interval]++
		p.inputTokens[interval] += float64(w.Input[i])
		p.outputTokens[interval] += float64(w.Output[i])
	}
	for i := range p.requests {
		switch {
		case p.requests[i] > 0:
			p.inputTokens[i] /= p.requests[i]
			p.outputTokens[i] /= p.requests[i]
		case i > 0:
			p.inputTokens[i], p.outputTokens[i] = p.inputTokens[i-1], p.outputTokens[i-1]
		}
	}
	return p, nil
}

// arrivals says when each request came, in ms; NaN if nothing tells.
func arrivals(w *workload.Workload) []float64 {
	at := make([]float64, w.Requests())
	for s := range w.Sessions() {
		ms := math.NaN()
		for r := w.SessionStart[s]; r < w.SessionStart[s+1]; r++ {
			if r == w.SessionStart[s] {
				ms = w.ArrivalMs[r]
			} else {
				ms += w.DelayMs[r]
			}
			at[r] = ms
		}
	}
	return at
}
