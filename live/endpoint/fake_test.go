package endpoint

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// fakeDeployment gives each request its first token after firstToken and one more each between.
type fakeDeployment struct {
	firstToken, between time.Duration
	// full refuses requests, and most is how many it can ever have together, if not 0; state is how requests end.
	full  bool
	most  int
	state engine.State
	// worker makes the tokens.
	worker int

	started   time.Time
	mu        sync.Mutex
	requests  []simcore.OnlineRequest
	cancelled atomic.Int64
	closed    chan struct{}
}

func newFake(firstToken, between time.Duration) *fakeDeployment {
	return &fakeDeployment{firstToken: firstToken, between: between, state: engine.Completed, started: time.Now(), closed: make(chan struct{})}
}

func (d *fakeDeployment) Submit(requests ...simcore.OnlineRequest) ([]Stream, error) {
	switch {
	case d.full:
		return nil, realtime.ErrFull
	case d.most > 0 && len(requests) > d.most:
		return nil, realtime.ErrTooMany
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var streams []Stream
	for _, r := range requests {
		d.requests = append(d.requests, r)
		streams = append(streams, &fakeStream{d: d, r: r, submitted: time.Now(), given: make(chan struct{})})
	}
	return streams, nil
}

// last is the request that came last.
func (d *fakeDeployment) last() simcore.OnlineRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests[len(d.requests)-1]
}

func (d *fakeDeployment) Snapshot() realtime.Snapshot {
	return realtime.Snapshot{
		NowMs: 5000, PromptTokens: 200, CachedTokens: 50, OutputTokens: 70, Kept: 3,
		Workers:  []simcore.OnlineWorker{{Running: 4, Waiting: 2, HeldBlocks: 25, CachedBlocks: 50, TotalBlocks: 100, Preemptions: 6}, {Worker: 1, Seat: 1, TotalBlocks: 100}},
		Pools:    []simcore.OnlinePool{{Ready: 2, Starting: 1}},
		Lateness: realtime.Lateness{Events: 10, Sum: 20 * time.Millisecond, P50: time.Millisecond, P99: 4 * time.Millisecond, Max: 5 * time.Millisecond},
	}
}

type fakeStream struct {
	d         *fakeDeployment
	r         simcore.OnlineRequest
	submitted time.Time
	told      int
	once      sync.Once
	given     chan struct{}
}

// at is when the i-th token comes, from 0.
func (s *fakeStream) at(i int) time.Time {
	return s.submitted.Add(s.d.firstToken + time.Duration(i)*s.d.between)
}

func (s *fakeStream) ms(t time.Time) float64 { return t.Sub(s.d.started).Seconds() * 1000 }

func (s *fakeStream) Cancel() {
	s.once.Do(func() {
		s.d.cancelled.Add(1)
		close(s.given)
	})
}

func (s *fakeStream) Next(ctx context.Context) (realtime.Progress, error) {
	timer := time.NewTimer(time.Until(s.at(s.told)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return realtime.Progress{}, ctx.Err()
	case <-s.d.closed:
		return realtime.Progress{}, realtime.ErrClosed
	case <-s.given:
		return realtime.Progress{Seat: s.d.worker, Ended: true, AtMs: s.ms(time.Now()), Record: s.record(engine.State(100))}, nil
	case <-timer.C:
	}
	if s.d.state != engine.Completed {
		return realtime.Progress{Ended: true, AtMs: s.ms(s.at(0)), Record: s.record(s.d.state)}, nil
	}
	come := s.r.Output
	if s.d.between > 0 {
		come = min(s.r.Output, 1+int(time.Since(s.at(0))/s.d.between))
	}
	p := realtime.Progress{Tokens: come - s.told, Cached: s.r.Input / 2, Seat: s.d.worker, FirstMs: s.ms(s.at(s.told)), AtMs: s.ms(s.at(come - 1))}
	s.told = come
	if come == s.r.Output {
		p.Ended, p.Record = true, s.record(engine.Completed)
	}
	return p, nil
}

func (s *fakeStream) record(state engine.State) *simcore.RequestRecord {
	r := &simcore.RequestRecord{Life: engine.Request{
		Input: int32(s.r.Input), Output: int32(s.r.Output), Tokens: int32(s.told), State: state, Worker: int32(s.d.worker), ArrivalMs: s.ms(s.submitted), RoutedMs: engine.Never,
		FirstTokenMs: s.ms(s.at(0)), LastTokenMs: s.ms(s.at(max(0, s.told-1))),
	}}
	r.Parts.QueueMs = 1
	return r
}
