package realtime

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// TestManyClients checks that clients who come, read, read slowly and go at any time lose nothing, and leave nothing behind.
func TestManyClients(t *testing.T) {
	cfg := config()
	cfg.Deployment.Workers, cfg.Engine.NumGPUBlocks = 3, 64
	d := start(t, cfg, Options{Speedup: 100, MaxRequests: 100}, newRealClock(time.Now()))
	var clients sync.WaitGroup
	for client := range 60 {
		rng := rand.New(rand.NewPCG(1, uint64(client)))
		clients.Go(func() {
			for range 8 {
				s, err := d.Submit(simcore.OnlineRequest{Input: 1 + rng.IntN(500), Output: 1 + rng.IntN(40), Blocks: []uint64{1, 2, rng.Uint64N(3)}})
				if err != nil {
					t.Error(err)
					return
				}
				readSomehow(t, s[0], rng)
			}
		})
	}
	clients.Wait()
	s := d.Snapshot()
	if s.Submitted != 60*8 || s.Completed+s.Cancelled != s.Submitted || s.UnderWay != 0 || s.Cancelled == 0 || s.Completed == 0 {
		t.Errorf("%+v", s)
	}
	for _, w := range s.Workers {
		if w.Running+w.Waiting+w.HeldBlocks > 0 {
			t.Errorf("%+v", w)
		}
	}
}

// readSomehow reads a stream to its end, and perhaps gives the request up before.
func readSomehow(t *testing.T, s *Stream, rng *rand.Rand) {
	until, tokens := rng.IntN(30), 0
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rng.IntN(3))*time.Millisecond)
		p, err := s.Next(ctx)
		cancel()
		if err != nil {
			if rng.IntN(20) == 0 {
				s.Cancel()
			}
			continue
		}
		if tokens += p.Tokens; tokens > until {
			s.Cancel()
		}
		if !p.Ended {
			continue
		}
		if life := p.Record.Life; life.State == engine.Completed && (tokens != int(life.Output) || p.AtMs != life.LastTokenMs) {
			t.Errorf("%d tokens of %+v", tokens, life)
		}
		return
	}
}

// TestStreamsTellWhatIsSimulated checks that what readers get is what an online deployment without a clock tells, whenever the
// clock lets them have it.
func TestStreamsTellWhatIsSimulated(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := config()
		cfg.Deployment.Workers = rapid.IntRange(1, 3).Draw(rt, "workers")
		cfg.Engine.NumGPUBlocks = rapid.IntRange(8, 40).Draw(rt, "blocks")
		var requests []simcore.OnlineRequest
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			requests = append(requests, simcore.OnlineRequest{
				Input: rapid.IntRange(1, 600).Draw(rt, "input"), Output: rapid.IntRange(1, 20).Draw(rt, "output"),
				Blocks: rapid.SliceOfN(rapid.Uint64Range(0, 1), 0, 4).Draw(rt, "blocks"),
			})
		}
		var want []engine.Request
		number := map[int32]int{}
		o, err := simcore.NewOnline(cfg, len(requests), func(e simcore.OnlineEvent) {
			if e.Ended {
				want[number[e.Request]] = *e.Life
			}
		}, simcore.OnlineOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		want = make([]engine.Request, len(requests))
		d, err := newDeployment(cfg, Options{}, &jumping{lateBy: time.Duration(rapid.IntRange(0, 50_000_000).Draw(rt, "late"))})
		if err != nil {
			rt.Fatal(err)
		}
		var streams []*Stream
		for i, r := range requests {
			slot, _ := o.Submit(0, r)
			number[slot] = i
			s, err := d.Submit(r)
			if err != nil {
				rt.Fatal(err)
			}
			streams = append(streams, s...)
		}
		if err := o.Advance(1e9); err != nil {
			rt.Fatal(err)
		}
		go d.run()
		for i, s := range streams {
			tokens, last := readAll(t, s)
			life := last.Record.Life
			if life.State != want[i].State || tokens != int(want[i].Tokens) || life.FirstTokenMs != want[i].FirstTokenMs ||
				life.LastTokenMs != want[i].LastTokenMs || life.Reused != want[i].Reused {
				rt.Fatalf("request %d: %d tokens, %+v\nwant %+v", i, tokens, life, want[i])
			}
		}
		if err := d.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}
