package replay

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/workload"
)

// fakeTarget answers as it is told, in the time of the bubble of a test.
type fakeTarget struct {
	// answer says when tokens come, in ms after the request, and how the request ends.
	answer func(call *live.Call) (tokensMs []float64, err error)

	mu       sync.Mutex
	underWay int
	most     int // requests under way at a time
}

func (f *fakeTarget) count(by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underWay += by
	f.most = max(f.most, f.underWay)
}

func (f *fakeTarget) Send(ctx context.Context, call *live.Call, event func(live.Event)) error {
	f.count(1)
	defer f.count(-1)
	tokens, err := f.answer(call)
	began := time.Now()
	for _, ms := range tokens {
		select {
		case <-time.After(time.Until(began.Add(time.Duration(ms * 1e6)))):
			event(live.Event{At: time.Now(), Tokens: 1, Data: []byte(call.ID)})
		case <-ctx.Done():
			return &live.Error{Kind: live.ErrDropped, Message: "cancelled"}
		}
	}
	return err
}

// steady answers each request with its tokens, ms apart.
func steady(ms float64) *fakeTarget {
	return &fakeTarget{answer: func(call *live.Call) ([]float64, error) {
		tokens := make([]float64, call.Output)
		for i := range tokens {
			tokens[i] = float64(i+1) * ms
		}
		return tokens, nil
	}}
}

// made builds a workload.
func made(t testing.TB, requests ...workload.Request) *workload.Workload {
	t.Helper()
	b := workload.NewBuilder("made", 16)
	for _, r := range requests {
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func options(target live.Target, w *workload.Workload) Options {
	cfg := simcore.DefaultConfig()
	cfg.Engine.BlockSize = 16
	return Options{Target: target, Config: cfg, Workload: w, Grace: time.Second}
}

func mustRun(t testing.TB, ctx context.Context, opt Options) *live.Run {
	t.Helper()
	run, err := Run(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// recordedGaps keeps gaps as they come, in ms.
type recordedGaps []float64

func (r *recordedGaps) RecordGaps(gap perfmodel.Nanoseconds, count int64) {
	for range count {
		*r = append(*r, float64(gap)/1e6)
	}
}
