package realtime

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// jumping is a clock that is wherever the deployment waits for, as soon as it waits.
type jumping struct {
	mu  sync.Mutex
	now time.Duration
	// lateBy is how much later than it is told to it wakes up.
	lateBy time.Duration
}

func (c *jumping) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// pass lets time pass.
func (c *jumping) pass(t time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += t
}

func (c *jumping) wait(until time.Duration, wake <-chan struct{}) {
	select {
	case <-wake:
		return
	default:
	}
	if until == forever {
		<-wake
		return
	}
	c.mu.Lock()
	c.now = max(c.now, until+c.lateBy)
	c.mu.Unlock()
}

// config is one vLLM-style worker that computes a prompt in 100 ms and a token in 20.
func config() simcore.Config {
	c := simcore.DefaultConfig()
	c.Timing.Source, c.Timing.PrefillMs, c.Timing.DecodeMs = perfmodel.SourceFixed, 100, 20
	return c
}

// start starts a deployment, which a test closes.
func start(t testing.TB, cfg simcore.Config, opt Options, c clock) *Deployment {
	t.Helper()
	d, err := newDeployment(cfg, opt, c)
	if err != nil {
		t.Fatal(err)
	}
	go d.run()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// submit submits a request that must be taken.
func submit(t testing.TB, d *Deployment, r simcore.OnlineRequest) *Stream {
	t.Helper()
	s, err := d.Submit(r)
	if err != nil {
		t.Fatal(err)
	}
	return s[0]
}

// readAll reads a stream to its end.
func readAll(t testing.TB, s *Stream) (tokens int, last Progress) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		p, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		tokens += p.Tokens
		if p.Ended {
			return tokens, p
		}
	}
}

// TestTokensComeWhenTheyAreDue checks, in real time, that a request is served as simulated and not before its time.
func TestTokensComeWhenTheyAreDue(t *testing.T) {
	d := start(t, config(), Options{Speedup: 2}, newRealClock(time.Now()))
	begun := time.Now()
	s := submit(t, d, simcore.OnlineRequest{Input: 100, Output: 5})
	first, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 50*time.Millisecond {
		t.Errorf("the first token came after %v, and the prompt takes 50 ms", took)
	}
	tokens, last := 0, first
	if !first.Ended { // a busy machine may wake the reader when all is over
		tokens, last = readAll(t, s)
	}
	if took := time.Since(begun); took < 90*time.Millisecond || took > 3*time.Second {
		t.Errorf("all took %v, and 90 ms were simulated", took)
	}
	life := last.Record.Life
	if first.Tokens+tokens != 5 || life.State != engine.Completed || math.Abs(life.LastTokenMs-life.ArrivalMs-180) > 1e-6 {
		t.Errorf("%d tokens, %+v", first.Tokens+tokens, life)
	}
	if _, err := s.Next(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestLateTimersDelayNothingElse checks that simulated times are the same however late the clock is, and that the lateness is
// counted.
func TestLateTimersDelayNothingElse(t *testing.T) {
	for _, late := range []time.Duration{0, 3 * time.Millisecond, 70 * time.Millisecond} {
		d := start(t, config(), Options{}, &jumping{lateBy: late})
		tokens, last := readAll(t, submit(t, d, simcore.OnlineRequest{Input: 100, Output: 10}))
		if life := last.Record.Life; tokens != 10 || life.FirstTokenMs != 100 || life.LastTokenMs != 280 {
			t.Errorf("late by %v: %d tokens, %+v", late, tokens, life)
		}
		if l := d.Snapshot().Lateness; l.Events != 10 || l.Max < late || l.Max > late+time.Microsecond || l.Sum > 10*l.Max || l.P99 > l.Max {
			t.Errorf("late by %v: %+v", late, l)
		}
	}
}

// TestFull checks that a deployment takes no more requests than it has room for, and takes more when some have ended.
func TestFull(t *testing.T) {
	clock := &jumping{}
	d, err := newDeployment(config(), Options{MaxRequests: 2}, clock)
	if err != nil {
		t.Fatal(err)
	}
	r := simcore.OnlineRequest{Input: 10, Output: 3}
	a := submit(t, d, r)
	if _, err := d.Submit(r, r); !errors.Is(err, ErrFull) {
		t.Errorf("two requests where there is room for one: %v", err)
	}
	b := submit(t, d, r)
	if _, err := d.Submit(r); !errors.Is(err, ErrFull) {
		t.Errorf("the third request: %v", err)
	}
	if _, err := d.Submit(r, r, r); !errors.Is(err, ErrTooMany) {
		t.Errorf("three requests together: %v", err)
	}
	go d.run()
	readAll(t, a)
	readAll(t, b)
	readAll(t, submit(t, d, r))
	s := d.Snapshot()
	if s.Submitted != 3 || s.Completed != 3 || s.UnderWay != 0 || s.OutputTokens != 9 || s.PromptTokens != 30 {
		t.Errorf("%+v", s)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.Submit(simcore.OnlineRequest{Input: 10, Output: 3}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestTogether checks that requests which are submitted together arrive together.
func TestTogether(t *testing.T) {
	d := start(t, config(), Options{}, newRealClock(time.Now()))
	r := simcore.OnlineRequest{Input: 10, Output: 3}
	streams, err := d.Submit(r, r, r)
	if err != nil {
		t.Fatal(err)
	}
	arrived := map[float64]int{}
	for _, s := range streams {
		_, last := readAll(t, s)
		arrived[last.Record.Life.ArrivalMs]++
	}
	if len(arrived) != 1 {
		t.Errorf("they arrive at %v", arrived)
	}
}

// TestCloseEndsStreams checks that readers do not wait for requests of a closed deployment.
func TestCloseEndsStreams(t *testing.T) {
	d, err := New(config(), Options{Speedup: .001})
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for range 20 {
		s := submit(t, d, simcore.OnlineRequest{Input: 1000, Output: 10})
		readers.Go(func() {
			if _, err := s.Next(context.Background()); !errors.Is(err, ErrClosed) {
				t.Errorf("Next: %v", err)
			}
		})
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	readers.Wait()
}

// TestReadersMayGiveUp checks that Next ends with its context, that a cancelled request ends, and that what it shares stays.
func TestReadersMayGiveUp(t *testing.T) {
	d := start(t, config(), Options{}, newRealClock(time.Now()))
	s := submit(t, d, simcore.OnlineRequest{Input: 1000, Output: 100_000})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Next: %v", err)
	}
	s.Cancel()
	s.Cancel()
	_, last := readAll(t, s)
	if last.Record.Life.State != engine.Cancelled {
		t.Errorf("%+v", last.Record.Life)
	}
	if snapshot := d.Snapshot(); snapshot.Cancelled != 1 || snapshot.Workers[0].Running != 0 || snapshot.Workers[0].HeldBlocks != 0 {
		t.Errorf("%+v", snapshot)
	}
}
