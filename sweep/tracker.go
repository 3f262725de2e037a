package sweep

import (
	"math"
	"sync"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// Objective is one figure that is to be as good as possible.
type Objective struct {
	// Metric is the name of a field of metrics.Fields.
	Metric string
	// Better says which way it gets better.
	Better metrics.Direction
	// Feasible says which rows can be the best; nil takes all.
	Feasible func(*results.Row) bool
}

// rateMemory is how far the rate looks back: what happened this long ago counts 1/e.
const rateMemory = 20 * time.Second

// Tracker turns finished points into progress. It prints nothing. It is safe for concurrent use, so that one
// goroutine can draw while another observes.
type Tracker struct {
	mu        sync.Mutex
	now       func() time.Time
	total     int
	objective Objective
	metric    int // the place of the objective in a row, or -1

	start, last time.Time
	recent      float64 // simulated points, fading
	progress    Progress
}

// Progress is the state of a sweep at one moment.
type Progress struct {
	// Total is the number of points; Done, those with a row, and Left add up to it.
	Total, Done, Left int
	// Failed, Skipped and Reused count done points. A reused point was not simulated this time.
	Failed, Skipped, Reused int
	// Shortened counts the done points that replayed a part of the workload. None of them is the best.
	Shortened int
	// Rate is the number of simulated points per second lately; 0 when there was none yet.
	Rate float64
	// Elapsed is the time since the tracker was made. ETA is how long the points that are left take at this
	// rate; it is meaningful when ETAKnown is set.
	Elapsed, ETA time.Duration
	ETAKnown     bool
	// Best is the best feasible row by the objective so far, and BestValue its value; nil when there is none.
	Best      *results.Row
	BestValue float64
}

// NewTracker starts to track a sweep of total points. Now is the clock. An objective without a metric leaves
// Progress.Best out.
func NewTracker(total int, objective Objective, now func() time.Time) *Tracker {
	t := &Tracker{now: now, total: total, objective: objective, metric: -1, start: now()}
	t.last = t.start
	for i, f := range metrics.Fields() {
		if f.Name == objective.Metric {
			t.metric = i
		}
	}
	return t
}

// Finished adds a point.
func (t *Tracker) Finished(f Finished) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fade(t.now())
	p := &t.progress
	p.Done++
	switch f.Row.Status {
	case results.StatusFailed:
		p.Failed++
	case results.StatusSkipped:
		p.Skipped++
	}
	if f.Simulated {
		t.recent++
	} else if f.Row.Status != results.StatusSkipped {
		p.Reused++
	}
	if f.Shortened {
		p.Shortened++
		return
	}
	t.consider(f.Row)
}

// Progress returns the state at this moment.
func (t *Tracker) Progress() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.fade(now)
	p := t.progress
	p.Total, p.Left, p.Elapsed = t.total, max(t.total-p.Done, 0), now.Sub(t.start)
	// The window is the weight of all the time since the start; it grows to rateMemory.
	window := rateMemory.Seconds() * -math.Expm1(-p.Elapsed.Seconds()/rateMemory.Seconds())
	if window > 0 {
		p.Rate = t.recent / window
	}
	switch {
	case p.Left == 0:
		p.ETAKnown = true
	case p.Rate > 0:
		if s := float64(p.Left) / p.Rate; s < math.MaxInt64/float64(2*time.Second) {
			p.ETA, p.ETAKnown = time.Duration(s*float64(time.Second)), true
		}
	}
	return p
}

// fade lets what happened before now count less.
func (t *Tracker) fade(now time.Time) {
	if past := now.Sub(t.last); past > 0 {
		t.recent *= math.Exp(-past.Seconds() / rateMemory.Seconds())
		t.last = now
	}
}

// consider keeps the row when it is the best so far. Of equal rows the first in the expansion stays, so that the
// answer does not depend on which point was faster.
func (t *Tracker) consider(row results.Row) {
	if t.metric < 0 || row.Status != results.StatusOK || t.metric >= len(row.Metrics) {
		return
	}
	v := row.Metrics[t.metric]
	if math.IsNaN(v) || t.objective.Feasible != nil && !t.objective.Feasible(&row) {
		return
	}
	p := &t.progress
	better := v > p.BestValue
	if t.objective.Better == metrics.LowerIsBetter {
		better = v < p.BestValue
	}
	tie := p.Best != nil && v == p.BestValue && row.Point.Index < p.Best.Point.Index
	if p.Best == nil || better || tie {
		best := row // only a better row goes to the heap
		p.Best, p.BestValue = &best, v
	}
}
