package endpoint

import (
	"context"
	"time"

	"github.com/servegrid/servegrid/live/endpoint/fault"
	"github.com/servegrid/servegrid/live/realtime"
)

// withFaults makes a stream as late as a plan says.
func withFaults(stream Stream, plan fault.Plan, speedup float64) Stream {
	if plan.Slow > 0 {
		stream = &slowStream{Stream: stream, factor: plan.Slow, after: plan.SlowAfter, speedup: speedup}
	}
	if plan.Stall > 0 {
		stream = &stalledStream{Stream: stream, after: plan.StallAfter, pause: plan.Stall}
	}
	return stream
}

// stalledStream gives nothing for a while once some tokens have come.
type stalledStream struct {
	Stream
	after, came int
	pause       time.Duration
	stalled     bool
}

// Cancel ends the pause too.
func (s *stalledStream) Cancel() {
	s.stalled = true
	s.Stream.Cancel()
}

func (s *stalledStream) Next(ctx context.Context) (realtime.Progress, error) {
	p, err := s.Stream.Next(ctx)
	if err != nil || s.stalled || s.came+p.Tokens <= s.after {
		s.came += p.Tokens
		return p, err
	}
	s.stalled = true
	return p, sleep(ctx, s.pause)
}

// slowStream gives tokens one by one, at times that are several times as far apart as they came.
type slowStream struct {
	Stream
	factor, speedup float64
	after, came     int
	// begun is when the first slow token was given, firstMs its simulated time.
	begun   time.Time
	firstMs float64
	// held is what has come and was not given yet.
	held realtime.Progress
}

// Cancel gives what is held at once.
func (s *slowStream) Cancel() {
	s.factor = 0
	s.Stream.Cancel()
}

func (s *slowStream) Next(ctx context.Context) (realtime.Progress, error) {
	if s.held.Tokens == 0 && !s.held.Ended {
		p, err := s.Stream.Next(ctx)
		if err != nil || s.came+p.Tokens <= s.after {
			s.came += p.Tokens
			return p, err
		}
		s.held = p
	}
	p := s.take()
	if s.begun.IsZero() {
		s.begun, s.firstMs = time.Now(), p.AtMs
		return p, nil
	}
	due := s.begun.Add(time.Duration(s.factor * (p.AtMs - s.firstMs) / s.speedup * float64(time.Millisecond)))
	return p, sleep(ctx, time.Until(due))
}

// take returns the first token of what is held, with the end if it is the last one. Several that came together are as if they
// had come evenly.
func (s *slowStream) take() realtime.Progress {
	p := s.held
	if p.Tokens <= 1 {
		s.held = realtime.Progress{}
		s.came += p.Tokens
		return p
	}
	gap := (p.AtMs - p.FirstMs) / float64(p.Tokens-1)
	s.held.Tokens--
	s.held.FirstMs += gap
	s.came++
	p.Tokens, p.AtMs, p.Ended, p.Record = 1, p.FirstMs, false, nil
	return p
}

// sleep waits for a while, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
