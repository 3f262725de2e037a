package online

import (
	"context"
	"sync"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
)

// target lets calls arrive at a simulated deployment in this process. Events have the simulated times, whenever they are told.
type target struct {
	deployment *realtime.Deployment
	workload   *workload.Workload
	rate       float64   // simulated ms in a real one
	zero       time.Time // when the deployment's time was 0
	beganMs    float64   // when the run began, in simulated ms

	mu      sync.Mutex
	records map[int32]*simcore.RequestRecord // of calls that have ended, by number
}

func newTarget(d *realtime.Deployment, w *workload.Workload, rate float64) *target {
	t := &target{deployment: d, workload: w, rate: rate, records: map[int32]*simcore.RequestRecord{}}
	now := time.Now()
	t.zero = now.Add(-t.real(d.NowMs()))
	return t
}

// real is how long simulated ms take.
func (t *target) real(ms float64) time.Duration {
	return time.Duration(ms / t.rate * float64(time.Millisecond))
}

// at is a simulated time of the deployment.
func (t *target) at(ms float64) time.Time { return t.zero.Add(t.real(ms)) }

// Send submits a call and tells what comes of it.
func (t *target) Send(ctx context.Context, call *live.Call, event func(live.Event)) error {
	return t.Submit(call)(ctx, event)
}

// Submit lets a call arrive when it was due, if that is not simulated yet, and as soon as it can otherwise.
func (t *target) Submit(call *live.Call) (wait func(ctx context.Context, event func(live.Event)) error) {
	stream, err := t.deployment.SubmitAt(simcore.OnlineRequest{
		Input: call.Input, Output: call.Output, Blocks: call.Blocks, Session: call.Session, Hints: t.workload.Hints(call.Request),
	}, t.beganMs+call.ScheduledMs)
	if err != nil {
		return func(context.Context, func(live.Event)) error {
			return &live.Error{Kind: live.ErrOverloaded, Message: err.Error()}
		}
	}
	return func(ctx context.Context, event func(live.Event)) error { return t.follow(ctx, call, stream, event) }
}

// follow tells what comes of a call.
func (t *target) follow(ctx context.Context, call *live.Call, stream *realtime.Stream, event func(live.Event)) error {
	for {
		p, err := stream.Next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			t.giveUp(call, stream)
			return ctx.Err()
		case err != nil:
			return &live.Error{Kind: live.ErrDropped, Message: err.Error()}
		}
		t.tell(&p, event)
		if p.Ended {
			return t.ended(call, &p, event)
		}
	}
}

// giveUp cancels a call, and waits for its end to keep what became of it.
func (t *target) giveUp(call *live.Call, stream *realtime.Stream) {
	stream.Cancel()
	for {
		p, err := stream.Next(context.Background())
		if err != nil {
			return
		}
		if p.Ended {
			t.keep(call, p.Record)
			return
		}
	}
}

// tell tells of tokens: the first of those that came together by itself, since it is at another time than the last.
func (t *target) tell(p *realtime.Progress, event func(live.Event)) {
	tokens := p.Tokens
	if tokens > 1 && p.FirstMs < p.AtMs {
		event(live.Event{At: t.at(p.FirstMs), Tokens: 1})
		tokens--
	}
	if tokens > 0 {
		event(live.Event{At: t.at(p.AtMs), Tokens: tokens})
	}
}

// ended keeps what became of a call, and says how long it was or why it failed.
func (t *target) ended(call *live.Call, p *realtime.Progress, event func(live.Event)) error {
	t.keep(call, p.Record)
	switch life := &p.Record.Life; life.State {
	case engine.Completed:
		at := p.AtMs
		if life.Tokens > 0 {
			at = life.LastTokenMs
		}
		event(live.Event{At: t.at(at), Usage: &live.Usage{Input: call.Input, Cached: int(reused(p.Record)), Output: int(life.Tokens)}})
		return nil
	case engine.Rejected:
		return &live.Error{Kind: live.ErrRejected, Message: "it can never fit on a worker"}
	}
	return &live.Error{Kind: live.ErrServer, Message: "no decode worker can ever hold it"}
}

func (t *target) keep(call *live.Call, record *simcore.RequestRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records[call.Number] = record
}

// reused counts the prompt tokens that were in the prefix cache.
func reused(r *simcore.RequestRecord) int32 {
	if r.Handoff != nil {
		return r.Handoff.PrefillReused
	}
	return r.Life.Reused
}
