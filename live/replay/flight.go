package replay

import (
	"context"
	"errors"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
)

// flight is a request from when the schedule knows it until it has ended.
type flight struct {
	release simcore.Release
	popped  int     // how many were before it
	prompt  *prompt // nil without prompts
	record  live.Record
	index   int // of the record in the run
	tokens  int // that came in events
	gaps    gaps
	lastMs  float64
	over    bool // lastMs is the end
	clock   *clock
	event   func(*live.Call, live.Event)
}

// clock is the time of a run.
type clock struct {
	started time.Time
	rate    float64
}

// ms is a time in ms of the schedule.
func (c *clock) ms(t time.Time) float64 {
	return float64(t.Sub(c.started)) / float64(time.Millisecond) * c.rate
}

// until is how long it takes until a time in ms of the schedule is over, to the ns.
func (c *clock) until(ms float64) time.Duration {
	at := c.started.Add(time.Duration(ms/c.rate*float64(time.Millisecond)) + 1)
	if c.ms(at) < ms { // by a rounding
		at = at.Add(1)
	}
	return time.Until(at)
}

// submit hands the request over in the order of the schedule, where the target wants it.
func (f *flight) submit(target live.Target) (wait func(context.Context, func(live.Event)) error) {
	submitter, ok := target.(live.Submitter)
	if !ok {
		return func(ctx context.Context, event func(live.Event)) error {
			if f.prompt != nil {
				f.prompt.make() // so that it is not measured as time of the target
			}
			f.record.SentMs = f.clock.ms(time.Now())
			return target.Send(ctx, f.record.Call, event)
		}
	}
	f.record.SentMs = f.clock.ms(time.Now())
	return submitter.Submit(f.record.Call)
}

// follow notes what comes back. life is the life of all requests under way.
func (f *flight) follow(life context.Context, wait func(context.Context, func(live.Event)) error) {
	err := wait(life, f.note)
	f.record.EndMs = f.clock.ms(time.Now())
	if f.over || err == nil && f.lastMs > 0 {
		f.record.EndMs = f.lastMs // what comes after the answer is of no interest
	}
	switch known := (*live.Error)(nil); {
	case err == nil:
	case life.Err() != nil:
		f.record.Cancelled = true
	case errors.As(err, &known):
		f.record.Err = known
	default:
		f.record.Err = &live.Error{Kind: live.ErrServer, Message: err.Error()}
	}
	if f.record.OutputTokens < 1 { // none is not what a server means that sent some
		f.record.OutputTokens = f.tokens
	}
	f.record.Call.Prompt, f.record.Call.Blocks, f.prompt = nil, nil, nil
}

// note notes something that came back.
func (f *flight) note(e live.Event) {
	at := e.AtMs
	if !e.At.IsZero() {
		at = f.clock.ms(e.At)
	}
	f.lastMs, f.over = at, e.Ended
	if e.Tokens > 0 {
		if f.tokens == 0 {
			f.record.FirstTokenMs = at
		}
		if f.tokens < 2 && f.tokens+e.Tokens >= 2 {
			f.record.SecondTokenMs = at
		}
		f.gaps.add(f.tokens, e.Tokens, at-f.record.LastTokenMs)
		f.record.LastTokenMs = at
		f.record.Chunks++
		f.tokens += e.Tokens
	}
	if u := e.Usage; u != nil {
		f.record.InputTokens, f.record.CachedTokens, f.record.OutputTokens = u.Input, u.Cached, u.Output
	}
	if f.event != nil {
		f.event(f.record.Call, e)
	}
}
