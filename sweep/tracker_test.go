package sweep

import (
	"math"
	"testing"
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/metrics"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

func TestTrackerRate(t *testing.T) {
	c := &clock{at: time.Unix(0, 0)}
	tr := NewTracker(1000, Objective{}, c.now)
	if p := tr.Progress(); p.Rate != 0 || p.ETAKnown || p.Left != 1000 {
		t.Errorf("at the start: %+v", p)
	}
	run := func(n int, every time.Duration) {
		for range n {
			c.advance(every)
			tr.Finished(Finished{Row: results.Row{Status: results.StatusOK}, Simulated: true})
		}
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > want/20 {
			t.Errorf("%s = %v, want about %v", what, got, want)
		}
	}
	run(40, 100*time.Millisecond)
	p := tr.Progress()
	near("rate", p.Rate, 10)
	near("ETA", p.ETA.Seconds(), 96)
	run(200, 500*time.Millisecond) // slower now: the rate follows
	near("rate", tr.Progress().Rate, 2)
	c.advance(time.Minute) // nothing finishes: the rate falls
	if r := tr.Progress().Rate; r > 0.3 {
		t.Errorf("rate after a minute without a point: %v", r)
	}
	run(760, time.Millisecond)
	if p := tr.Progress(); p.Left != 0 || p.ETA != 0 || !p.ETAKnown {
		t.Errorf("at the end: %+v", p)
	}
}

func TestTrackerCounts(t *testing.T) {
	c := &clock{at: time.Unix(0, 0)}
	tr := NewTracker(6, Objective{}, c.now)
	c.advance(time.Second)
	for _, f := range []Finished{
		{Row: results.Row{Status: results.StatusOK}, Simulated: true},
		{Row: results.Row{Status: results.StatusOK}},
		{Row: results.Row{Status: results.StatusFailed}, Simulated: true},
		{Row: results.Row{Status: results.StatusSkipped}},
	} {
		tr.Finished(f)
	}
	p := tr.Progress()
	p.Rate, p.ETA, p.ETAKnown, p.Elapsed = 0, 0, false, 0
	if want := (Progress{Total: 6, Done: 4, Left: 2, Failed: 1, Skipped: 1, Reused: 1}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

func TestTrackerBest(t *testing.T) {
	value := func(index int, v float64) Finished {
		m := noMetrics()
		m[8] = v
		return Finished{Row: results.Row{Status: results.StatusOK, Point: &gridspec.Point{Index: index}, Metrics: m}}
	}
	name := metrics.Fields()[8].Name
	for _, tt := range []struct {
		better metrics.Direction
		want   int
	}{{metrics.LowerIsBetter, 2}, {metrics.HigherIsBetter, 4}} {
		tr := NewTracker(9, Objective{Metric: name, Better: tt.better}, time.Now)
		if tr.Progress().Best != nil {
			t.Error("a best row before there is any")
		}
		tr.Finished(Finished{Row: results.Row{Status: results.StatusFailed, Metrics: noMetrics()}})
		for _, f := range []Finished{value(1, 5), value(3, -1), value(2, -1), value(7, math.NaN()), value(4, 9), value(6, 9)} {
			tr.Finished(f)
		}
		if best := tr.Progress().Best; best == nil || best.Point.Index != tt.want {
			t.Errorf("best = %+v, want point %d", best, tt.want)
		}
	}
}

// A row that is not feasible is never the best.
func TestTrackerBestIsFeasible(t *testing.T) {
	metric := metrics.Fields()[0].Name
	tr := NewTracker(2, Objective{Metric: metric, Better: metrics.HigherIsBetter, Feasible: func(r *results.Row) bool { return r.ID == "good" }}, time.Now)
	for id, value := range map[string]float64{"good": 1, "bad": 2} {
		row := results.Row{ID: id, Status: results.StatusOK, Metrics: noMetrics()}
		row.Metrics[0] = value
		tr.Finished(Finished{Row: row})
	}
	if p := tr.Progress(); p.Best == nil || p.Best.ID != "good" {
		t.Errorf("the best is %+v", p.Best)
	}
}
