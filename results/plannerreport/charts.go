package plannerreport

import (
	"fmt"
	"math"
	"slices"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/results/timeplot"
)

// charts are the plots of the page; those without a figure are left out.
func (v *view) charts() []timeplot.Chart {
	var all []timeplot.Chart
	for pool := range v.Pools {
		all = append(all, v.replicaChart(pool))
	}
	all = append(all, v.rateChart(), v.latencyChart("Time to first token", v.Config.TTFTMs,
		func(l planner.Load) float64 { return l.TTFTMs }, func(p planner.PoolTick) float64 { return p.EstimatedTTFTMs }),
		v.latencyChart("Inter-token latency", v.Config.ITLMs,
			func(l planner.Load) float64 { return l.ITLMs }, func(p planner.PoolTick) float64 { return p.EstimatedITLMs }))
	for pool := range v.Pools {
		for _, c := range []timeplot.Chart{v.prefillLoadChart(pool), v.decodeLoadChart(pool)} {
			if len(v.Pools) == 1 || hasLoad(c) { // a pool of its own may never have the other kind
				all = append(all, c)
			}
		}
	}
	all = append(all, v.capacityChart(),
		v.loadChart("Input length", "tokens", func(l planner.Load) float64 { return l.InputTokens }),
		v.loadChart("Output length", "tokens", func(l planner.Load) float64 { return l.OutputTokens }),
		v.hitRateChart(), v.gpuHoursChart())
	return slices.DeleteFunc(all, func(c timeplot.Chart) bool {
		return !slices.ContainsFunc(c.Series, func(s timeplot.Series) bool {
			return slices.ContainsFunc(s.Values, func(v float64) bool { return !math.IsNaN(v) })
		})
	})
}

// ofPool names a chart of a pool where there are several.
func (v *view) ofPool(name string, pool int) string {
	if len(v.Pools) == 1 {
		return name
	}
	return fmt.Sprintf("%s, %s", name, v.Pools[pool])
}

// known are the ticks that have a figure, joined by lines: what the windows of the traffic tell.
func (v *view) known(name string, colour int, look timeplot.Look, of func(t *planner.Tick) float64) timeplot.Series {
	s := timeplot.Series{Name: name, Colour: colour, Look: look}
	for i := range v.Ticks {
		if figure := of(&v.Ticks[i]); !math.IsNaN(figure) {
			s.AtSeconds, s.Values = append(s.AtSeconds, v.at[i]), append(s.Values, figure)
		}
	}
	return s
}

// looked are the ticks that looked at the engines; one without a figure is a gap.
func (v *view) looked(name string, colour int, of func(t *planner.Tick) float64) timeplot.Series {
	s := timeplot.Series{Name: name, Colour: colour, Look: timeplot.Line, AtSeconds: v.lookedAt}
	for i := range v.Ticks {
		if t := &v.Ticks[i]; looksAtEngines(t) {
			s.Values = append(s.Values, of(t))
		}
	}
	return s
}

func looksAtEngines(t *planner.Tick) bool {
	return t.LoadScaling || slices.ContainsFunc(t.Pools, func(p planner.PoolTick) bool { return len(p.Workers) > 0 })
}

func (v *view) replicaChart(pool int) timeplot.Chart {
	r := v.replicas[pool]
	steps := func(name string, colour int, values []float64) timeplot.Series {
		return timeplot.Series{Name: name, Colour: colour, Look: timeplot.Steps, AtSeconds: r.at, Values: values}
	}
	c := timeplot.Chart{Title: v.ofPool("Workers", pool), Note: "a diamond is a number that was asked for", Series: []timeplot.Series{
		steps("ready", 0, r.ready), steps("starting", 4, someOf(r.starting)), steps("draining", 6, someOf(r.draining)),
	}}
	bound := v.known("lower bound of throughput scaling", 3, timeplot.DashedSteps, func(t *planner.Tick) float64 { return float64(t.Pools[pool].LowerBound) })
	if slices.ContainsFunc(bound.Values, func(b float64) bool { return b > 1 }) {
		c.Series = append(c.Series, bound)
	}
	c.Series = append(c.Series, v.known("asked for", 1, timeplot.Marks, func(t *planner.Tick) float64 {
		p := &t.Pools[pool]
		if p.Target < 0 || p.Target == p.Ready+p.Starting {
			return math.NaN()
		}
		return float64(p.Target)
	}))
	return c
}

func (v *view) rateChart() timeplot.Chart {
	return timeplot.Chart{Title: "Requests", Unit: "per second", Note: "over the window that a tick looks back on; the prediction is for the next", Series: []timeplot.Series{
		v.known("observed", 0, timeplot.Line, func(t *planner.Tick) float64 { return rate(t.Observed.Requests, t.Observed.DurationSeconds) }),
		v.known("predicted", 1, timeplot.DashedLine, func(t *planner.Tick) float64 {
			if !(t.Predicted.DurationSeconds > 0) {
				return rate(t.Predicted.Requests, t.Observed.DurationSeconds)
			}
			return rate(t.Predicted.Requests, t.Predicted.DurationSeconds)
		}),
	}}
}

// rate is NaN without a window.
func rate(requests, seconds float64) float64 {
	if !(seconds > 0) {
		return math.NaN()
	}
	return requests / seconds
}

// latencyChart compares what was observed with what was estimated of the slowest worker of each pool.
func (v *view) latencyChart(name string, bound float64, observed func(planner.Load) float64, estimated func(planner.PoolTick) float64) timeplot.Chart {
	c := timeplot.Chart{Title: name, Unit: "ms", Series: []timeplot.Series{
		v.known("observed, mean", 0, timeplot.Line, func(t *planner.Tick) float64 { return positive(observed(t.Observed)) }),
	}}
	for pool := range v.Pools {
		c.Series = append(c.Series, v.looked(v.ofPool("estimated, slowest worker", pool), 1+pool, func(t *planner.Tick) float64 { return estimated(t.Pools[pool]) }))
	}
	if v.keepsLatencies() {
		c.Levels = []timeplot.Level{{Name: "SLA", Value: bound}}
	}
	return c
}

// positive makes a latency of nothing a gap.
func positive(ms float64) float64 {
	if ms > 0 {
		return ms
	}
	return math.NaN()
}

func (v *view) prefillLoadChart(pool int) timeplot.Chart {
	c := timeplot.Chart{Title: v.ofPool("Queued prompts", pool), Unit: "tokens"}
	c.Series, c.Note = v.workerSeries(pool, func(w planner.WorkerTick) int64 { return w.QueuedPrefillTokens })
	return c
}

func (v *view) decodeLoadChart(pool int) timeplot.Chart {
	c := timeplot.Chart{Title: v.ofPool("KV cache of decoding requests", pool), Unit: "tokens"}
	c.Series, c.Note = v.workerSeries(pool, func(w planner.WorkerTick) int64 { return w.QueuedDecodeKVTokens + w.DecodeKVTokens })
	if pool < len(v.KVCapacityTokens) && v.KVCapacityTokens[pool] > 0 {
		c.Levels = []timeplot.Level{{Name: "KV capacity", Value: float64(v.KVCapacityTokens[pool])}}
	}
	return c
}

// hasLoad reports whether any figure of a chart is above zero.
func hasLoad(c timeplot.Chart) bool {
	return slices.ContainsFunc(c.Series, func(s timeplot.Series) bool {
		return slices.ContainsFunc(s.Values, func(v float64) bool { return v > 0 })
	})
}

// mostWorkers bounds how many workers have a line of their own.
const mostWorkers = 16

// workerSeries is a figure of each worker, or its extremes and mean where there are many workers.
func (v *view) workerSeries(pool int, of func(planner.WorkerTick) int64) ([]timeplot.Series, string) {
	var ids []int32
	for _, t := range v.Ticks {
		for _, w := range t.Pools[pool].Workers {
			if at, known := slices.BinarySearch(ids, w.Worker); !known {
				ids = slices.Insert(ids, at, w.Worker)
			}
		}
	}
	if len(ids) > mostWorkers {
		return v.workerExtremes(pool, of), fmt.Sprintf("of %d workers, as their latest pass tells", len(ids))
	}
	var out []timeplot.Series
	for i, id := range ids {
		out = append(out, v.looked(fmt.Sprintf("worker %d", id), i, func(t *planner.Tick) float64 {
			workers := t.Pools[pool].Workers
			at := slices.IndexFunc(workers, func(w planner.WorkerTick) bool { return w.Worker == id })
			if at < 0 {
				return math.NaN()
			}
			return float64(of(workers[at]))
		}))
	}
	return out, "as the latest pass of each worker tells"
}

func (v *view) workerExtremes(pool int, of func(planner.WorkerTick) int64) []timeplot.Series {
	reduce := func(combine func(values []float64) float64) func(t *planner.Tick) float64 {
		return func(t *planner.Tick) float64 {
			var values []float64
			for _, w := range t.Pools[pool].Workers {
				values = append(values, float64(of(w)))
			}
			if len(values) == 0 {
				return math.NaN()
			}
			return combine(values)
		}
	}
	return []timeplot.Series{
		v.looked("most", 1, reduce(slices.Max)), v.looked("mean", 0, reduce(mean)), v.looked("least", 5, reduce(slices.Min)),
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func (v *view) capacityChart() timeplot.Chart {
	c := timeplot.Chart{Title: "Capacity of a worker", Unit: "requests per second", Note: "that it is reckoned to serve within the SLA"}
	for pool := range v.Pools {
		c.Series = append(c.Series, v.known(v.Pools[pool], pool, timeplot.Line, func(t *planner.Tick) float64 { return t.Pools[pool].RequestsPerSecond }))
	}
	return c
}

// loadChart compares an observed figure of the traffic with the predicted one.
func (v *view) loadChart(name, unit string, of func(planner.Load) float64) timeplot.Chart {
	return timeplot.Chart{Title: name, Unit: unit, Note: "mean over the window", Series: []timeplot.Series{
		v.known("observed", 0, timeplot.Line, func(t *planner.Tick) float64 { return of(t.Observed) }),
		v.known("predicted", 1, timeplot.DashedLine, func(t *planner.Tick) float64 { return of(t.Predicted) }),
	}}
}

func (v *view) hitRateChart() timeplot.Chart {
	c := timeplot.Chart{Title: "Prefix hits", Unit: "% of prompt blocks", Series: []timeplot.Series{
		v.known("observed", 0, timeplot.Line, func(t *planner.Tick) float64 { return 100 * t.Observed.KVHitRate }),
		v.known("reckoned with", 1, timeplot.DashedLine, func(t *planner.Tick) float64 { return 100 * t.KVHitRate }),
	}}
	for i := range c.Series {
		c.Series[i].Values = none(c.Series[i].Values)
	}
	return c
}

func (v *view) gpuHoursChart() timeplot.Chart {
	s := v.known("all workers", 0, timeplot.Line, func(t *planner.Tick) float64 { return t.GPUHours })
	if n := len(s.AtSeconds); v.Report != nil && n > 0 && s.AtSeconds[n-1] < v.end {
		s.AtSeconds, s.Values = append(s.AtSeconds, v.end), append(s.Values, v.Report.GPUHours)
	}
	return timeplot.Chart{Title: "Cumulative GPU-hours", Series: []timeplot.Series{s}}
}

// tracks are both ways of scaling, with the reasons of what they decided.
func (v *view) tracks() []timeplot.Track {
	load := timeplot.Track{Title: "Load scaling", Note: "by what the engines have queued"}
	if v.Config.Policy != planner.PolicyDynamo {
		load = timeplot.Track{Title: "Decisions", Note: "of the policy " + string(v.Config.Policy)}
	}
	return slices.DeleteFunc([]timeplot.Track{
		{Title: load.Title, Note: load.Note, Rows: v.trackRows(
			func(t *planner.Tick) bool { return t.LoadScaling },
			func(t *planner.Tick) string { return t.LoadReason }, func(p *planner.PoolTick) string { return p.LoadReason })},
		{Title: "Throughput scaling", Note: "for the predicted load", Rows: v.trackRows(
			func(t *planner.Tick) bool { return t.ThroughputScaling },
			func(t *planner.Tick) string { return t.ThroughputReason }, func(p *planner.PoolTick) string { return p.ThroughputReason })},
	}, func(t timeplot.Track) bool { return len(t.Rows) == 0 })
}

// trackRows are the reasons of the ticks at which a look was due: one row for the deployment, and one for each pool that
// has reasons of its own.
func (v *view) trackRows(due func(*planner.Tick) bool, whole func(*planner.Tick) string, ofPool func(*planner.PoolTick) string) []timeplot.TrackRow {
	rows := []timeplot.TrackRow{v.trackRow("all", due, whole)}
	for pool, name := range v.Pools {
		rows = append(rows, v.trackRow(name, due, func(t *planner.Tick) string { return ofPool(&t.Pools[pool]) }))
	}
	rows = slices.DeleteFunc(rows, func(r timeplot.TrackRow) bool {
		return !slices.ContainsFunc(r.States, func(reason string) bool { return reason != "" })
	})
	if len(v.Pools) == 1 && len(rows) > 1 {
		return rows[1:] // a single pool is the deployment
	}
	return rows
}

func (v *view) trackRow(name string, due func(*planner.Tick) bool, reason func(*planner.Tick) string) timeplot.TrackRow {
	row := timeplot.TrackRow{Name: name}
	for i := range v.Ticks {
		if t := &v.Ticks[i]; due(t) {
			row.AtSeconds, row.States = append(row.AtSeconds, v.at[i]), append(row.States, reason(t))
		}
	}
	return row
}
