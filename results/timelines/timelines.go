// Package timelines says what happened over the time of a simulation, in windows of equal length: requests, queue,
// latencies and workers. It needs no planner, so runs with and without one compare.
//
// Read timelines.go for the figures and page.go for how the timelines of several points are laid over each other.
package timelines

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// Folder holds the timelines of a sweep beside its results: a file a point, named by its ID.
const Folder = "timelines"

// Source is what a simulation recorded.
type Source struct {
	// Records are the lives of all requests.
	Records []simcore.RequestRecord
	// Events are the changes of the workers, in order of time.
	Events []simcore.ScalingEvent
	// Pools are those of [simcore.Config.Stages], in their order.
	Pools []Pool
	// SLA says which requests are good.
	SLA simcore.SLA
	// EndedMs is when each request ended, where records are those of a live run: then how it ended does not tell, and nobody
	// knows which requests wait.
	EndedMs []float64
}

// Pool is a pool at the start.
type Pool struct {
	// Name is "agg", "prefill" or "decode".
	Name string
	// Workers is the number of workers at the start, GPUsPerWorker what each takes.
	Workers, GPUsPerWorker int
}

// mostWindows bounds the windows of a timeline.
const mostWindows = 240

// Table returns the timeline with one row a window. The ID of the point joins it with the results.
func Table(id string, s Source) *results.Table {
	endMs := s.endMs()
	windowMs := windowLength(endMs)
	w := &windows{ms: windowMs, n: max(1, int(math.Ceil(endMs/windowMs))), endMs: endMs}
	t := &results.Table{}
	names := results.NewColumn("id", gridspec.KindString, w.n)
	names.Doc, names.Role = "Content ID of the point.", results.RolePoint
	at, length := make([]float64, w.n), make([]float64, w.n)
	for i := range w.n {
		names.Set(i, gridspec.Value{Kind: gridspec.KindString, Str: id})
		at[i], length[i] = float64(i)*windowMs, min(windowMs, max(endMs-float64(i)*windowMs, 0))
	}
	t.Add(names)
	addFloats(t, "at_ms", "ms", "When the window begins.", at)
	addFloats(t, "window_ms", "ms", "How long it is.", length)
	w.addRequests(t, s)
	w.addWorkers(t, s)
	return t
}

// endMs is when the last thing happens.
func (s Source) endMs() float64 {
	end := 0.0
	for i := range s.Records {
		r := &s.Records[i].Life
		end = max(end, r.ArrivalMs, r.LastTokenMs)
	}
	for _, e := range s.Events {
		end = max(end, e.AtMs)
	}
	return end
}

// windowLength is a round time that makes at most mostWindows windows.
func windowLength(spanMs float64) float64 {
	least := max(spanMs/mostWindows, 1)
	for _, ms := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 1.2e5, 3e5, 6e5, 9e5, 1.8e6, 3.6e6} {
		if ms >= least {
			return ms
		}
	}
	return 3.6e6 * math.Ceil(least/3.6e6)
}

func addFloats(t *results.Table, name, unit, doc string, values []float64) {
	c := results.NewColumn(name, gridspec.KindFloat, len(values))
	c.Unit, c.Doc, c.Role = unit, doc, results.RoleMetric
	for i, v := range values {
		c.Set(i, gridspec.Value{Kind: gridspec.KindFloat, Float: v}) // NaN stays null
	}
	t.Add(c)
}

// windows divide the time from 0 on.
type windows struct {
	ms, endMs float64
	n         int
}

// of is the window of a time.
func (w *windows) of(ms float64) int { return max(0, min(w.n-1, int(ms/w.ms))) }

// spread adds a quantity that lasts from a to b to the time integrals of the windows.
func (w *windows) spread(into []float64, a, b, quantity float64) {
	for i := w.of(a); i < w.n && float64(i)*w.ms < b; i++ {
		into[i] += quantity * (min(b, float64(i+1)*w.ms) - max(a, float64(i)*w.ms))
	}
}

// means turn time integrals into means.
func (w *windows) means(integrals []float64) []float64 {
	for i := range integrals {
		if length := min(w.ms, w.endMs-float64(i)*w.ms); length > 0 {
			integrals[i] /= length
		}
	}
	return integrals
}

// addRequests adds what is known of the requests, by the window in which they arrive.
func (w *windows) addRequests(t *results.Table, s Source) {
	arrived, completed, waiting, inFlight := make([]float64, w.n), make([]float64, w.n), make([]float64, w.n), make([]float64, w.n)
	good := make([]float64, w.n)
	ttft, tpot := make([][]float64, w.n), make([][]float64, w.n)
	for i := range s.Records {
		r := &s.Records[i].Life
		if s.Records[i].WarmUp || r.ArrivalMs < 0 {
			continue
		}
		at, done := w.of(r.ArrivalMs), r.State == engine.Completed
		arrived[at]++
		until, admitted := w.endMs, w.endMs
		if done {
			until = max(r.LastTokenMs, r.ArrivalMs)
			completed[w.of(until)]++
			if s.SLA.KeptBy(r) {
				good[at]++
			}
		} else if r.State == engine.Rejected {
			until = r.ArrivalMs
		}
		if s.EndedMs != nil {
			until = s.EndedMs[i]
		}
		if r.AdmittedMs >= 0 {
			admitted = r.AdmittedMs
		}
		w.spread(waiting, r.ArrivalMs, min(admitted, until), 1)
		w.spread(inFlight, r.ArrivalMs, until, 1)
		if r.FirstTokenMs >= 0 {
			ttft[at] = append(ttft[at], r.FirstTokenMs-r.ArrivalMs)
		}
		if done && r.Tokens > 1 {
			tpot[at] = append(tpot[at], (r.LastTokenMs-r.FirstTokenMs)/float64(r.Tokens-1))
		}
	}
	addFloats(t, "arrived", "requests", "Requests that arrive.", arrived)
	addFloats(t, "completed", "requests", "Requests that have all their output.", completed)
	if s.EndedMs == nil {
		addFloats(t, "waiting", "requests", "Mean number of requests that no worker has admitted yet.", w.means(waiting))
	}
	addFloats(t, "in_flight", "requests", "Mean number of requests that have arrived and not ended.", w.means(inFlight))
	addFloats(t, "mean_ttft_ms", "ms", "Mean time to first token of the requests that arrive.", each(ttft, mean))
	addFloats(t, "p90_ttft_ms", "ms", "90th percentile of the time to first token of the requests that arrive.", each(ttft, p90))
	addFloats(t, "mean_tpot_ms", "ms", "Mean time per output token after the first of the requests that arrive.", each(tpot, mean))
	if s.SLA.Set() {
		for i, n := range arrived {
			good[i] /= n // NaN where none arrives
		}
		addFloats(t, "sla_attainment", "ratio", "Share of the requests that arrive that keep every SLA bound.", good)
	}
}

func each(samples [][]float64, of func([]float64) float64) []float64 {
	out := make([]float64, len(samples))
	for i, s := range samples {
		out[i] = math.NaN()
		if len(s) > 0 {
			out[i] = of(s)
		}
	}
	return out
}

func mean(samples []float64) float64 {
	sum := 0.0
	for _, v := range samples {
		sum += v
	}
	return sum / float64(len(samples))
}

// p90 is nearest-rank, as the percentiles of a report are.
func p90(samples []float64) float64 {
	slices.Sort(samples)
	return samples[int(math.Round(float64(len(samples)-1)*.9))]
}

// addWorkers adds the mean numbers of workers.
func (w *windows) addWorkers(t *results.Table, s Source) {
	gpus := make([]float64, w.n)
	var columns []func()
	for pool, p := range s.Pools {
		ready, starting, draining := w.pool(s, pool)
		for i := range gpus {
			gpus[i] += float64(p.GPUsPerWorker) * (ready[i] + starting[i] + draining[i])
		}
		prefix, of := "", "workers"
		if len(s.Pools) > 1 {
			prefix, of = p.Name+"_", p.Name+" workers"
		}
		columns = append(columns, func() {
			addFloats(t, prefix+"ready_workers", "workers", "Mean number of "+of+" that take requests.", ready)
			addFloats(t, prefix+"starting_workers", "workers", "Mean number of "+of+" that were asked for and are not ready yet.", starting)
			addFloats(t, prefix+"draining_workers", "workers", "Mean number of "+of+" that only finish what they have.", draining)
		})
	}
	if len(s.Pools) > 0 {
		addFloats(t, "gpus", "GPUs", "Mean number of GPUs of all workers, those that start or drain included.", gpus)
	}
	for _, add := range columns {
		add()
	}
}

// pool follows the events of a pool.
func (w *windows) pool(s Source, pool int) (ready, starting, draining []float64) {
	ready, starting, draining = make([]float64, w.n), make([]float64, w.n), make([]float64, w.n)
	now, counts := 0.0, [3]int{s.Pools[pool].Workers}
	pass := func(until float64) {
		for i, into := range [][]float64{ready, starting, draining} {
			if counts[i] > 0 {
				w.spread(into, now, min(until, w.endMs), float64(counts[i]))
			}
		}
		now = until
	}
	for _, e := range s.Events {
		if e.Pool != pool {
			continue
		}
		pass(e.AtMs)
		switch e.Kind {
		case simcore.WorkerRequested:
			counts[1]++
		case simcore.WorkerReady:
			counts[0], counts[1] = counts[0]+1, counts[1]-1
		case simcore.WorkerCancelled:
			counts[1]--
		case simcore.WorkerDraining:
			counts[0], counts[2] = counts[0]-1, counts[2]+1
		case simcore.WorkerRemoved:
			counts[2]--
		}
	}
	pass(w.endMs)
	return w.means(ready), w.means(starting), w.means(draining)
}
