package replay

import (
	"container/heap"
	"context"
	"math"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// scheduler sends requests when they are due.
type scheduler struct {
	opt      Options
	releases *simcore.Releases
	names    names
	clock    clock
	makers   *makers
	teller   *teller

	due            dueHeap // known and not sent
	dueTokens      int     // in their prompts
	popped         int     // releases so far
	underWay       int
	ended          chan *flight
	unsettled      []*live.Call // that have ended
	records        []live.Record
	gaps, evenGaps metrics.GapRecorder

	life        context.Context // of all requests under way
	cancel      context.CancelCauseFunc
	stopped     bool    // nothing more is sent
	giveUpMs    float64 // when what is under way is cancelled
	interrupted bool
	timer       *time.Timer
}

func newScheduler(opt Options, releases *simcore.Releases) *scheduler {
	return &scheduler{
		opt: opt, releases: releases, names: newNames(opt.Workload), clock: clock{rate: opt.ClockRate},
		ended: make(chan *flight, 256), giveUpMs: math.Inf(1), timer: time.NewTimer(time.Hour),
	}
}

// run sends everything and returns when nothing is under way any more. The error says why requests could not be described.
func (s *scheduler) run(ctx context.Context) error {
	s.life, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.cancel(nil)
	s.makers = startMakers()
	defer s.makers.stop()
	s.teller = startTeller(s.opt.Sent, s.opt.Ended)
	defer s.teller.close()
	defer s.timer.Stop()
	if err := s.lookAhead(0); err != nil {
		return err
	}
	for i := range s.due { // the clock must not run while the first prompts are made
		if f := s.due[i]; f.prompt != nil && f.release.ReadyMs <= 0 {
			f.prompt.make()
		}
	}
	s.clock.started = time.Now()
	if s.opt.Began != nil {
		s.opt.Began(s.clock.started)
	}
	err := s.loop(ctx)
	if err != nil {
		s.giveUp(s.clock.ms(time.Now()))
	}
	for s.settle(); s.underWay > 0; s.settle() {
		s.end(<-s.ended)
	}
	return err
}

// loop sends, and returns when nothing more is to be sent and nothing is under way.
func (s *scheduler) loop(ctx context.Context) error {
	interrupt := ctx.Done()
	for {
		now := s.clock.ms(time.Now())
		if s.opt.Duration > 0 && !s.stopped && now >= s.durationMs() {
			s.stop(now)
		}
		if over := min(s.giveUpMs, s.releases.StopMs()); now >= over {
			s.giveUp(over)
		}
		for sent := true; sent && !s.stopped; {
			s.endMore()
			now = s.clock.ms(time.Now())
			if err := s.lookAhead(now); err != nil {
				return err
			}
			sent = s.sendDue(now)
		}
		s.settle()
		if s.underWay == 0 && (s.stopped || s.nextMs() == math.Inf(1)) {
			return nil
		}
		s.timer.Reset(s.wait())
		select {
		case f := <-s.ended:
			s.end(f)
			s.endMore()
		case <-s.timer.C:
		case <-interrupt:
			interrupt = nil
			s.interrupted = true
			s.stop(s.clock.ms(time.Now()))
		}
	}
}

func (s *scheduler) durationMs() float64 {
	return float64(s.opt.Duration) / float64(time.Millisecond) * s.clock.rate
}

// stop ends the sending; what is under way has the time of grace.
func (s *scheduler) stop(now float64) {
	s.stopped = true
	s.due = nil
	s.giveUpMs = min(s.giveUpMs, now+float64(s.opt.Grace)/float64(time.Millisecond)*s.clock.rate)
}

// giveUp cancels everything under way, which is given up since a time.
func (s *scheduler) giveUp(sinceMs float64) {
	s.stopped, s.giveUpMs = true, math.Inf(1)
	s.due = nil
	s.cancel(&live.GaveUp{AtMs: sinceMs})
}

// nextMs is when the next request is to be sent, as far as that is known.
func (s *scheduler) nextMs() float64 {
	next := s.releases.PeekMs()
	if len(s.due) > 0 {
		next = min(next, s.due[0].release.ReadyMs)
	}
	return next
}

// wait is how long there is nothing to do unless a request ends.
func (s *scheduler) wait() time.Duration {
	next := s.giveUpMs
	if s.life.Err() == nil {
		next = min(next, s.releases.StopMs())
	}
	if !s.stopped {
		if s.opt.Duration > 0 {
			next = min(next, s.durationMs())
		}
		if len(s.due) > 0 {
			next = min(next, s.due[0].release.ReadyMs)
		}
		ahead := 0.0
		if s.hasRoom() {
			ahead = aheadMs * s.clock.rate
		}
		next = min(next, s.releases.PeekMs()-ahead)
	}
	if math.IsInf(next, 1) {
		return time.Hour
	}
	return max(0, min(s.clock.until(next), time.Hour))
}

// hasRoom reports whether a further request may be made ready ahead of its time.
func (s *scheduler) hasRoom() bool {
	return len(s.due) == 0 || len(s.due) < aheadRequests && s.dueTokens < aheadTokens
}

// lookAhead takes from the schedule what is due, and what is to be sent soon as far as there is room, and lets its prompts be made.
func (s *scheduler) lookAhead(now float64) error {
	for s.releases.PeekMs() <= now || s.hasRoom() && s.releases.PeekMs() <= now+aheadMs*s.clock.rate {
		f, err := s.newFlight(s.releases.Pop())
		if err != nil {
			return err
		}
		f.popped = s.popped
		s.popped++
		heap.Push(&s.due, f)
		s.dueTokens += f.release.Input
		if f.prompt != nil {
			s.makers.add(f.prompt)
		}
	}
	return nil
}

func (s *scheduler) newFlight(release simcore.Release) (*flight, error) {
	session, parent := s.names.sessions(&release)
	call := &live.Call{
		Number: release.Number, Request: int(release.Request), ID: s.names.request(&release), Session: session, ParentSession: parent, Turn: release.Turn,
		Input: release.Input, Output: release.Output, ScheduledMs: release.ReadyMs, Order: release.Order,
	}
	f := &flight{release: release, clock: &s.clock, event: s.opt.Event, record: live.Record{
		Call: call, Phase: s.phase(&release), ScheduledMs: release.ReadyMs,
		FirstTokenMs: live.Never, SecondTokenMs: live.Never, LastTokenMs: live.Never, EndMs: live.Never, OutputTokens: -1, InputTokens: -1, CachedTokens: -1,
	}}
	if s.opt.Prompt != nil {
		f.prompt = newPrompt(func() []live.Message { return s.opt.Prompt(int(release.Request), release.Salt) })
		call.Prompt = f.prompt.take
	}
	if s.opt.Blocks {
		var err error
		if call.Blocks, err = s.releases.AppendBlocks(nil, release.Number); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (s *scheduler) phase(release *simcore.Release) string {
	switch {
	case release.Play < 0:
		return ""
	case release.WarmUp:
		return live.PhaseWarmUp
	}
	return live.PhaseProfile
}

// sendDue sends what is due, and reports whether that was anything.
func (s *scheduler) sendDue(now float64) (sent bool) {
	for len(s.due) > 0 && s.due[0].release.ReadyMs <= now {
		f := heap.Pop(&s.due).(*flight)
		s.dueTokens -= f.release.Input
		s.send(f)
		sent = true
	}
	return sent
}

func (s *scheduler) send(f *flight) {
	f.record.SentMs = live.Never
	wait := f.submit(s.opt.Target)
	if !s.opt.Unkept {
		f.index = len(s.records)
		s.records = append(s.records, f.record)
	}
	s.underWay++
	s.teller.add(&f.record, false)
	go func() {
		f.follow(s.life, wait)
		s.ended <- f
	}()
}

// end notes that a request has ended.
func (s *scheduler) end(f *flight) {
	s.underWay--
	if !s.opt.Unkept {
		s.records[f.index] = f.record
	}
	if r := &f.record; r.Err == nil && !r.Cancelled && r.Phase != live.PhaseWarmUp {
		f.gaps.record(&s.gaps, r.OutputTokens)
		f.gaps.even().record(&s.evenGaps, r.OutputTokens)
	}
	s.releases.Ended(f.release.Number, f.record.EndMs)
	s.unsettled = append(s.unsettled, f.record.Call)
	s.teller.add(&f.record, true)
}

// settle tells a target in this process that what follows from the calls that have ended has been sent, and when something is to
// be done next.
func (s *scheduler) settle() {
	if target, ok := s.opt.Target.(live.Submitter); ok {
		next := s.giveUpMs
		if s.life.Err() == nil {
			next = min(next, s.releases.StopMs())
		}
		if !s.stopped {
			next = min(next, s.nextMs())
		}
		target.Until(next)
		for _, call := range s.unsettled {
			target.Settled(call)
		}
	}
	clear(s.unsettled)
	s.unsettled = s.unsettled[:0]
}

// endMore notes all that have ended by now.
func (s *scheduler) endMore() {
	for {
		select {
		case f := <-s.ended:
			s.end(f)
		default:
			return
		}
	}
}

// result is the run when it is over.
func (s *scheduler) result() *live.Run {
	run := &live.Run{
		Started: s.clock.started, Records: s.records, Planned: s.releases.Requests(), EndMs: s.clock.ms(time.Now()), Interrupted: s.interrupted,
		Gaps: &s.gaps, EvenGaps: &s.evenGaps,
	}
	if s.opt.Config.AgentX.Enabled() {
		run.Planned = -1
	}
	if start, end, ok := s.releases.WindowMs(); ok {
		run.Window, run.Scenario = &live.Window{StartMs: start, EndMs: end}, s.releases.Scenario()
	}
	return run
}

// dueHeap holds requests that are to be sent, the first one first.
type dueHeap []*flight

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(a, b int) bool {
	if h[a].release.ReadyMs != h[b].release.ReadyMs {
		return h[a].release.ReadyMs < h[b].release.ReadyMs
	}
	if h[a].release.Order != h[b].release.Order {
		return h[a].release.Order < h[b].release.Order
	}
	return h[a].popped < h[b].popped
}
func (h dueHeap) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *dueHeap) Push(f any)   { *h = append(*h, f.(*flight)) }
func (h *dueHeap) Pop() any {
	old := *h
	f := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return f
}
