package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore/workload"
)

// liveProgress shows how a run in real time gets on: a bar on a terminal, lines elsewhere.
type liveProgress struct {
	out     io.Writer
	quiet   bool
	width   int // 0 without a terminal
	now     func() time.Time
	started time.Time
	last    time.Time
	total   int // -1 when nobody knows

	bars *mpb.Progress
	bar  *mpb.Bar

	nSent, nEnded, nFailed, tokens atomic.Int64
}

func newLiveProgress(st *state, quiet bool, total int) *liveProgress {
	p := &liveProgress{out: st.stderr, quiet: quiet, now: st.now, total: total}
	if width, terminal := st.terminal(); terminal {
		p.width = width
	}
	return p
}

// plannedRequests is how many requests of a workload a point sends; -1 for a scenario, whose users go on.
func plannedRequests(point *gridspec.Point, w *workload.Workload) int {
	if point.Config.AgentX.Enabled() {
		return -1
	}
	return w.Requests()
}

// begin begins to draw.
func (p *liveProgress) begin() {
	p.started, p.last = p.now(), p.now()
	if p.quiet || p.width == 0 {
		return
	}
	p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(min(p.width, 100)), mpb.WithAutoRefresh())
	p.bar = p.bars.AddBar(int64(max(0, p.total)), // one without an end shows how much was done
		mpb.PrependDecorators(decor.CountersNoUnit("%d/%d requests ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + p.summary() })),
	)
}

// sent counts a request that was sent.
func (p *liveProgress) sent(*live.Record) { p.nSent.Add(1) }

// ended counts a request that has ended.
func (p *liveProgress) ended(r *live.Record) {
	p.nEnded.Add(1)
	p.tokens.Add(int64(r.OutputTokens))
	if r.Err != nil {
		p.nFailed.Add(1)
	}
	if p.bar != nil {
		if p.total < 0 {
			p.bar.SetTotal(p.nSent.Load()+1, false) // never complete by itself
		}
		p.bar.Increment()
		return
	}
	if now := p.now(); !p.quiet && now.Sub(p.last) >= lineInterval {
		p.last = now
		_ = printText(p.out, "%s\n", p.line())
	}
}

// warn says at once, above the bar, that something has gone wrong which does not end the run.
func (p *liveProgress) warn(err error) {
	var out io.Writer = p.out
	if p.bars != nil {
		out = p.bars
	}
	_ = printText(out, "Warning: %v\n", err)
}

// close ends the drawing.
func (p *liveProgress) close() {
	switch {
	case p.bar != nil:
		p.bar.Abort(false)
		p.bars.Wait()
	case !p.quiet && p.nEnded.Load() > 0:
		_ = printText(p.out, "%s\n", p.line())
	}
}

func (p *liveProgress) line() string {
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %d", p.total)
	}
	return fmt.Sprintf("%d%s requests done, %s", p.nEnded.Load(), of, p.summary())
}

// summary says in a few words how the run gets on.
func (p *liveProgress) summary() string {
	parts := []string{fmt.Sprintf("%d under way", p.nSent.Load()-p.nEnded.Load())}
	if seconds := p.now().Sub(p.started).Seconds(); seconds > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens/s", figure(float64(p.tokens.Load())/seconds)))
	}
	if failed := p.nFailed.Load(); failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	return strings.Join(parts, ", ")
}
