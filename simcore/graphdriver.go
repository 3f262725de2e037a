package simcore

import (
	"cmp"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/workload"
)

// graphDriver releases the requests of a graph: each when everything that it waits for has come, and the requests of a
// play from the play's start on. In open loop all plays start as the source says, with a rate one after another, and in
// closed loop one when another has settled.
type graphDriver struct {
	graph   *workload.Graph
	delayMs []float64
	speedup float64
	ready   timeHeap  // requests by when they are ready, then by rank
	waits   []int32   // how many triggers are still to come, of each request
	readyMs []float64 // when those that have come let it start
	order   []int32   // which comes first of those that start together, however early they are popped
	lanes   bool      // plays start when others settle
	unended []int32   // requests that have not ended, of each play
	members []int32   // requests by play
	first   []int32   // where each play's members start, then their number
	waiting int       // the next play to start
}

func newGraphDriver(s *released) *graphDriver {
	g, d := s.workload.Graph, newPlays(s)
	switch s.cfg.Load.Mode {
	case LoadConcurrency:
		for range min(s.cfg.Load.Concurrency, g.Plays()) {
			d.startNext(0)
		}
	case LoadRate:
		for i := range g.Plays() {
			d.startNext(float64(i) * 1000 / s.cfg.Load.Rate)
		}
	default:
		for i := range g.Plays() {
			d.start(i, 0)
		}
	}
	return d
}

// newPlays prepares the plays of a workload without starting any.
func newPlays(s *released) *graphDriver {
	w, n := s.workload, s.workload.Requests()
	d := &graphDriver{
		graph: w.Graph, delayMs: w.DelayMs, speedup: s.cfg.Load.Speedup, lanes: s.cfg.Load.Mode == LoadConcurrency,
		waits: make([]int32, n), readyMs: make([]float64, n), order: slices.Clone(w.Graph.Rank),
	}
	d.groupByPlay()
	return d
}

// groupByPlay finds the requests of each play, in order of rank.
func (d *graphDriver) groupByPlay() {
	plays, n := d.graph.Plays(), len(d.waits)
	d.first, d.unended, d.members = make([]int32, plays+1), make([]int32, plays), make([]int32, n)
	for _, play := range d.graph.Play {
		d.unended[play]++
	}
	for i, count := range d.unended {
		d.first[i+1] = d.first[i] + count
	}
	for r := range d.members {
		d.members[r] = int32(r)
	}
	slices.SortFunc(d.members, func(a, b int32) int {
		return cmp.Or(cmp.Compare(d.graph.Play[a], d.graph.Play[b]), cmp.Compare(d.graph.Rank[a], d.graph.Rank[b]))
	})
}

// startNext starts the next play, its first request at the given time at the earliest.
func (d *graphDriver) startNext(now float64) {
	if d.waiting == d.graph.Plays() {
		return
	}
	d.start(d.waiting, now-d.zero(d.waiting)/d.speedup)
	d.waiting++
}

// zero is the floor of the first request of a play.
func (d *graphDriver) zero(play int) float64 {
	zero := math.Inf(1)
	for _, r := range d.play(play) {
		if len(d.graph.Edges(r)) == 0 {
			zero = min(zero, max(0, d.graph.NotBeforeMs[r]))
		}
	}
	return zero
}

func (d *graphDriver) play(number int) []int32 { return d.members[d.first[number]:d.first[number+1]] }

// start lets the requests of a play wait for each other; floors count from the given zero.
func (d *graphDriver) start(play int, zero float64) {
	for _, r := range d.play(play) {
		d.readyMs[r] = max(0, zero, zero+d.graph.NotBeforeMs[r]/d.speedup)
		d.waits[r] = int32(len(d.graph.Edges(r)))
		if d.waits[r] == 0 {
			d.release(r)
		}
	}
}

func (d *graphDriver) release(r int32) {
	d.ready.push(timed{d.readyMs[r] + d.delayMs[r]/d.speedup, int64(d.graph.Rank[r]), r})
}

// orderOf is [Release.Order] of a request that has been popped.
func (d *graphDriver) orderOf(request int32) int32 { return d.order[request] }

// trigger tells the requests that wait for one that it was released or has ended. What starts together with the release that it
// waited for comes after that, also where its rank is lower.
func (d *graphDriver) trigger(request int32, moment workload.Trigger, now float64) {
	for _, e := range d.graph.Dependants(request) {
		if e.Trigger != moment {
			continue
		}
		at := now + e.DelayMs/d.speedup
		if at > d.readyMs[e.From] {
			d.readyMs[e.From], d.order[e.From] = at, d.graph.Rank[e.From]
		}
		if moment == workload.OnDispatch && at == now && at == d.readyMs[e.From] && d.delayMs[e.From] == 0 {
			d.order[e.From] = max(d.order[e.From], d.order[request])
		}
		if d.waits[e.From]--; d.waits[e.From] == 0 {
			d.release(e.From)
		}
	}
}

func (d *graphDriver) closed() bool { return d.lanes }

func (d *graphDriver) peek() float64 { return d.ready.soonest() }

func (d *graphDriver) pop() (request int32, readyMs float64) {
	next := d.ready.pop()
	d.trigger(next.id, workload.OnDispatch, next.atMs)
	return next.id, next.atMs
}

func (d *graphDriver) ended(request, _ int32, now float64) {
	d.trigger(request, workload.OnCompletion, now)
	play := d.graph.Play[request]
	if d.unended[play]--; d.unended[play] == 0 && d.lanes {
		d.startNext(now)
	}
}
