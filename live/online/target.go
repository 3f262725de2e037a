package online

import (
	"context"
	"errors"
	"sync"

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

	mu      sync.Mutex
	streams map[int32]*realtime.Stream       // of calls whose end is not settled, by number
	records map[int32]*simcore.RequestRecord // of calls that have ended, by number
}

func newTarget(d *realtime.Deployment, w *workload.Workload) *target {
	return &target{deployment: d, workload: w, streams: map[int32]*realtime.Stream{}, records: map[int32]*simcore.RequestRecord{}}
}

// Send submits a call and tells what comes of it.
func (t *target) Send(ctx context.Context, call *live.Call, event func(live.Event)) error {
	return t.Submit(call)(ctx, event)
}

// Submit lets a call arrive when it was due, however late it is. The run began when the deployment's time was 0.
func (t *target) Submit(call *live.Call) (wait func(ctx context.Context, event func(live.Event)) error) {
	stream, err := t.deployment.SubmitAt(simcore.OnlineRequest{
		Input: call.Input, Output: call.Output, Blocks: call.Blocks, Session: call.Session, Hints: t.workload.Hints(call.Request), Order: call.Order,
	}, call.ScheduledMs)
	if err != nil {
		return func(context.Context, func(live.Event)) error {
			return &live.Error{Kind: live.ErrOverloaded, Message: err.Error()}
		}
	}
	t.mu.Lock()
	t.streams[call.Number] = stream
	t.mu.Unlock()
	return func(ctx context.Context, event func(live.Event)) error { return t.follow(ctx, call, stream, event) }
}

// Settled lets the deployment go on after the end of a call.
func (t *target) Settled(call *live.Call) {
	t.mu.Lock()
	stream := t.streams[call.Number]
	delete(t.streams, call.Number)
	t.mu.Unlock()
	if stream != nil {
		stream.Settled()
	}
}

// Until lets the deployment go on until something is due.
func (t *target) Until(ms float64) { t.deployment.Until(ms) }

// follow tells what comes of a call. When ctx is done it gives the call up, and still tells its end.
func (t *target) follow(ctx context.Context, call *live.Call, stream *realtime.Stream, event func(live.Event)) error {
	waiting := ctx
	for {
		p, err := stream.Next(waiting)
		switch {
		case err != nil && waiting.Err() != nil:
			t.giveUp(ctx, stream)
			waiting = context.WithoutCancel(ctx)
			continue
		case err != nil:
			return &live.Error{Kind: live.ErrDropped, Message: err.Error()}
		}
		t.tell(&p, event)
		if p.Ended {
			return t.ended(ctx, call, &p, event)
		}
	}
}

// giveUp cancels a call since the run is over.
func (t *target) giveUp(ctx context.Context, stream *realtime.Stream) {
	var over *live.GaveUp
	if errors.As(context.Cause(ctx), &over) {
		stream.CancelAt(over.AtMs)
		return
	}
	stream.Cancel()
}

// tell tells of tokens: the first of those that came together by itself, since it is at another time than the last.
func (t *target) tell(p *realtime.Progress, event func(live.Event)) {
	tokens := p.Tokens
	if tokens > 1 && p.FirstMs < p.AtMs {
		event(live.Event{AtMs: p.FirstMs, Tokens: 1})
		tokens--
	}
	if tokens > 0 {
		event(live.Event{AtMs: p.AtMs, Tokens: tokens})
	}
}

// ended keeps what became of a call, and says how long it was or why it failed.
func (t *target) ended(ctx context.Context, call *live.Call, p *realtime.Progress, event func(live.Event)) error {
	t.keep(call, p.Record)
	end, life := live.Event{AtMs: p.EndMs, Ended: true}, &p.Record.Life
	if life.State == engine.Completed {
		end.Usage = &live.Usage{Input: call.Input, Cached: int(reused(p.Record)), Output: int(life.Tokens)}
	}
	event(end)
	switch life.State {
	case engine.Completed:
		return nil
	case engine.Rejected:
		return &live.Error{Kind: live.ErrRejected, Message: "it can never fit on a worker"}
	case engine.Cancelled:
		return ctx.Err()
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
