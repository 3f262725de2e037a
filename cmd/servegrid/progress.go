package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/sweep"
)

// lineInterval is the time between two progress lines when there is no terminal.
const lineInterval = 5 * time.Second

// progress shows how a sweep gets on: a live bar on a terminal, plain lines elsewhere, JSON events when asked.
type progress struct {
	sweep.NopObserver
	objective  sweep.Objective
	newTracker func(total int) *sweep.Tracker
	newDrawer  func(*sweep.Tracker, int) drawer
	tracker    *sweep.Tracker
	draw       drawer // nil until the sweep starts: a refused one shows no progress
}

// drawer is one way to show progress. update comes after every finished point. close returns the first error of what
// was asked for; what a person would just not see is none.
type drawer interface {
	loading(label string)
	update(f sweep.Finished, p sweep.Progress)
	close(p sweep.Progress) error
}

func newProgress(st *state, f *sweepFlags, objectives []results.Objective) *progress {
	objective := sweep.Objective{Metric: objectives[0].Name, Better: metrics.LowerIsBetter, Feasible: (*results.Row).KeepsSLA}
	if results.CountsSLA(objectives) {
		objective.Feasible = func(*results.Row) bool { return true }
	}
	if objectives[0].Maximize {
		objective.Better = metrics.HigherIsBetter
	}
	return &progress{
		objective:  objective,
		newTracker: func(total int) *sweep.Tracker { return sweep.NewTracker(total, objective, st.now) },
		newDrawer: func(tracker *sweep.Tracker, total int) drawer {
			switch width, terminal := st.terminal(); {
			case f.jsonl:
				return &eventDrawer{out: json.NewEncoder(st.stdout)}
			case f.quiet:
				return noDrawer{}
			case terminal:
				return newBarDrawer(st.stderr, width, total, objective.Metric, tracker)
			}
			return &lineDrawer{out: st.stderr, metric: objective.Metric, now: st.now, last: st.now(), loaded: map[string]bool{}}
		},
	}
}

// SweepStarted begins to draw.
func (p *progress) SweepStarted(total int) {
	p.tracker = p.newTracker(total)
	p.draw = p.newDrawer(p.tracker, total)
}

// WorkloadLoading shows which workload is read.
func (p *progress) WorkloadLoading(label string) { p.draw.loading(label) }

// PointStarted is of no interest to a person.
func (p *progress) PointStarted(gridspec.Point) {}

// PointFinished counts the point.
func (p *progress) PointFinished(f sweep.Finished) {
	p.tracker.Finished(f)
	p.draw.update(f, p.tracker.Progress())
}

// close ends the drawing and returns what went wrong with it.
func (p *progress) close() error {
	if p.draw == nil {
		return nil
	}
	return p.draw.close(p.tracker.Progress())
}

// noDrawer shows nothing.
type noDrawer struct{}

func (noDrawer) loading(string)                        {}
func (noDrawer) update(sweep.Finished, sweep.Progress) {}
func (noDrawer) close(sweep.Progress) error            { return nil }

// barDrawer draws a bar that moves.
type barDrawer struct {
	bars *mpb.Progress
	bar  *mpb.Bar
	mu   sync.Mutex
	what string
}

func newBarDrawer(w io.Writer, width, total int, metric string, tracker *sweep.Tracker) *barDrawer {
	d := &barDrawer{bars: mpb.New(mpb.WithOutput(w), mpb.WithWidth(min(width, 100)), mpb.WithAutoRefresh())}
	d.bar = d.bars.AddBar(int64(total),
		mpb.PrependDecorators(decor.CountersNoUnit("%d/%d points ")),
		mpb.AppendDecorators(
			decor.Percentage(decor.WC{W: 5}),
			decor.Any(func(decor.Statistics) string { return " " + d.tail(tracker.Progress(), metric) }),
		),
	)
	return d
}

func (d *barDrawer) loading(label string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.what = "loading " + cellText(label)
}

func (d *barDrawer) update(sweep.Finished, sweep.Progress) {
	d.mu.Lock()
	d.what = ""
	d.mu.Unlock()
	d.bar.Increment()
}

func (d *barDrawer) close(p sweep.Progress) error {
	if p.Left > 0 {
		d.bar.Abort(false)
	}
	d.bars.Wait()
	return nil
}

func (d *barDrawer) tail(p sweep.Progress, metric string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.what != "" && p.Done == 0 {
		return d.what
	}
	return summaryLine(p, metric)
}

// summaryLine says in a few words how a sweep gets on.
func summaryLine(p sweep.Progress, metric string) string {
	var parts []string
	if p.Shortened > 0 {
		parts = append(parts, fmt.Sprintf("%d of them on a part of the workload", p.Shortened))
	}
	if p.Done > p.Reused+p.Skipped { // nothing else took time
		parts = append(parts, figure(p.Rate)+"/s")
	}
	if p.ETAKnown && p.Left > 0 {
		parts = append(parts, fmt.Sprintf("%s left", p.ETA.Round(time.Second)))
	}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.Failed))
	}
	if p.Best != nil {
		parts = append(parts, fmt.Sprintf("best %s %s", metric, figure(p.BestValue)))
	}
	return strings.Join(parts, ", ")
}

// lineDrawer prints a line now and then.
type lineDrawer struct {
	out    io.Writer
	metric string
	now    func() time.Time
	last   time.Time
	loaded map[string]bool // the workloads of which a line told; a search comes back to them
}

func (d *lineDrawer) loading(label string) {
	if !d.loaded[label] {
		d.loaded[label] = true
		_ = printText(d.out, "loading %s\n", cellText(label))
	}
}

func (d *lineDrawer) update(_ sweep.Finished, p sweep.Progress) {
	if now := d.now(); now.Sub(d.last) >= lineInterval {
		d.last = now
		d.line(p)
	}
}

func (d *lineDrawer) close(p sweep.Progress) error {
	if p.Done > 0 {
		d.line(p)
	}
	return nil
}

func (d *lineDrawer) line(p sweep.Progress) {
	line := fmt.Sprintf("%d of %s", p.Done, plural(p.Total, "point"))
	if summary := summaryLine(p, d.metric); summary != "" {
		line += ", " + summary
	}
	_ = printText(d.out, "%s\n", line)
}

// eventDrawer prints one JSON object an event, until that fails.
type eventDrawer struct {
	out *json.Encoder
	err error
}

// The lines of --json. Every one has an event: loading, point or end.
type (
	loadingEvent struct {
		Event string `json:"event"`
		Label string `json:"label"`
	}
	pointEvent struct {
		Event     string         `json:"event"`
		ID        string         `json:"id"`
		Index     int            `json:"index"`
		Axes      map[string]any `json:"axes"`
		Status    results.Status `json:"status"`
		Reason    string         `json:"reason,omitempty"`
		Error     string         `json:"error,omitempty"`
		Simulated bool           `json:"simulated"`
		Shortened bool           `json:"shortened,omitempty"`
		eventCounts
	}
	endEvent struct {
		Event string `json:"event"`
		eventCounts
	}
	eventCounts struct {
		Done   int `json:"done"`
		Failed int `json:"failed"`
		Left   int `json:"left"`
	}
)

func newEventCounts(p sweep.Progress) eventCounts { return eventCounts{p.Done, p.Failed, p.Left} }

func (d *eventDrawer) print(event any) {
	if d.err == nil {
		d.err = d.out.Encode(event)
	}
}

func (d *eventDrawer) loading(label string) { d.print(loadingEvent{"loading", label}) }

func (d *eventDrawer) update(f sweep.Finished, p sweep.Progress) {
	d.print(pointEvent{
		Event: "point", ID: f.Row.ID, Index: f.Row.Point.Index, Axes: axesByColumn(f.Row.Point.Axes),
		Status: f.Row.Status, Reason: f.Row.Reason, Error: f.Row.Error, Simulated: f.Simulated, Shortened: f.Shortened,
		eventCounts: newEventCounts(p),
	})
}

func (d *eventDrawer) close(p sweep.Progress) error {
	d.print(endEvent{"end", newEventCounts(p)})
	return d.err
}

// axesByColumn returns the axis values of a point as JSON encodes them.
func axesByColumn(axes []gridspec.AxisValue) map[string]any {
	out := make(map[string]any, len(axes))
	for _, a := range axes {
		out[a.Column] = a.Value.Any()
	}
	return out
}
