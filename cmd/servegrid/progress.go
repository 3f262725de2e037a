package main

import (
	"encoding/json"
	"fmt"
	"io"
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
	tracker *sweep.Tracker
	draw    drawer
}

// drawer is one way to show progress. update comes after every finished point.
type drawer interface {
	loading(label string)
	update(f sweep.Finished, p sweep.Progress)
	close(p sweep.Progress)
}

func newProgress(st *state, f *sweepFlags, total int, objectives []results.Objective) *progress {
	objective := sweep.Objective{Metric: objectives[0].Name, Better: metrics.LowerIsBetter}
	if objectives[0].Maximize {
		objective.Better = metrics.HigherIsBetter
	}
	p := &progress{tracker: sweep.NewTracker(total, objective, st.now)}
	switch {
	case f.jsonl:
		p.draw = &eventDrawer{out: json.NewEncoder(st.stdout)}
	case f.quiet:
		p.draw = noDrawer{}
	default:
		if width, ok := st.terminal(); ok {
			p.draw = newBarDrawer(st.stderr, width, total, objective.Metric, p.tracker)
		} else {
			p.draw = &lineDrawer{out: st.stderr, metric: objective.Metric, now: st.now, last: st.now()}
		}
	}
	return p
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

func (p *progress) close() { p.draw.close(p.tracker.Progress()) }

// noDrawer shows nothing.
type noDrawer struct{}

func (noDrawer) loading(string)                        {}
func (noDrawer) update(sweep.Finished, sweep.Progress) {}
func (noDrawer) close(sweep.Progress)                  {}

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
	d.what = "loading " + label
}

func (d *barDrawer) update(sweep.Finished, sweep.Progress) {
	d.mu.Lock()
	d.what = ""
	d.mu.Unlock()
	d.bar.Increment()
}

func (d *barDrawer) close(p sweep.Progress) {
	if p.Left > 0 {
		d.bar.Abort(false)
	}
	d.bars.Wait()
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
	text := fmt.Sprintf("%.1f/s", p.Rate)
	if p.ETAKnown && p.Left > 0 {
		text += fmt.Sprintf(", %s left", p.ETA.Round(time.Second))
	}
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	if p.Best != nil {
		text += fmt.Sprintf(", best %s %.4g", metric, p.BestValue)
	}
	return text
}

// lineDrawer prints a line now and then.
type lineDrawer struct {
	out    io.Writer
	metric string
	now    func() time.Time
	last   time.Time
}

func (d *lineDrawer) loading(label string) { fmt.Fprintf(d.out, "loading %s\n", label) }

func (d *lineDrawer) update(_ sweep.Finished, p sweep.Progress) {
	if now := d.now(); now.Sub(d.last) >= lineInterval {
		d.last = now
		d.line(p)
	}
}

func (d *lineDrawer) close(p sweep.Progress) { d.line(p) }

func (d *lineDrawer) line(p sweep.Progress) {
	fmt.Fprintf(d.out, "%d of %d points, %s\n", p.Done, p.Total, summaryLine(p, d.metric))
}

// eventDrawer prints one JSON object an event.
type eventDrawer struct{ out *json.Encoder }

// event is one line of --json.
type event struct {
	Event  string         `json:"event"`
	Label  string         `json:"label,omitempty"`
	ID     string         `json:"id,omitempty"`
	Index  *int           `json:"index,omitempty"`
	Axes   map[string]any `json:"axes,omitempty"`
	Status results.Status `json:"status,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Error  string         `json:"error,omitempty"`
	Reused bool           `json:"reused,omitempty"`
	Done   int            `json:"done,omitempty"`
	Failed int            `json:"failed,omitempty"`
	Left   int            `json:"left"`
}

func (d *eventDrawer) loading(label string) { _ = d.out.Encode(event{Event: "loading", Label: label}) }

func (d *eventDrawer) update(f sweep.Finished, p sweep.Progress) {
	axes := map[string]any{}
	for _, a := range f.Row.Point.Axes {
		axes[a.Column] = a.Value.Any()
	}
	_ = d.out.Encode(event{
		Event: "point", ID: f.Row.ID, Index: &f.Row.Point.Index, Axes: axes,
		Status: f.Row.Status, Reason: f.Row.Reason, Error: f.Row.Error, Reused: !f.Simulated,
		Done: p.Done, Failed: p.Failed, Left: p.Left,
	})
}

func (d *eventDrawer) close(p sweep.Progress) {
	_ = d.out.Encode(event{Event: "end", Done: p.Done, Failed: p.Failed, Left: p.Left})
}
