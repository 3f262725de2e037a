package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// sent lists when each request was sent and ended, to the ms.
func sent(run *live.Run) string {
	var parts []string
	for i := range run.Records {
		r := &run.Records[i]
		text := fmt.Sprintf("%d@%.0f-%.0f", r.Call.Request, r.SentMs, r.EndMs)
		if r.Cancelled {
			text += "cancelled"
		}
		if r.Err != nil {
			text += string(r.Err.Kind)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

func TestSchedules(t *testing.T) {
	sessions := []workload.Request{
		{Session: "a", Input: 16, Output: 2, ArrivalMs: 1000}, {Session: "a", Input: 32, Output: 1, DelayMs: 50},
		{Session: "b", Input: 16, Output: 3, ArrivalMs: 1006}, {Session: "c", Input: 16, Output: 1, ArrivalMs: 3000},
	}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string
		most   int
	}{
		{"its own times", func(*Options) {}, "0@0-20 2@6-36 1@70-80 3@2000-2010", 2},
		{"twice as fast", func(o *Options) { o.Config.Load.Speedup = 2 }, "0@0-20 2@3-33 1@45-55 3@1000-1010", 2},
		{"a clock twice as fast", func(o *Options) { o.ClockRate = 2 }, "0@0-40 2@6-66 1@90-110 3@2000-2020", 2},
		{"closed loop", func(o *Options) { o.Config.Load.Mode, o.Config.Load.Concurrency = simcore.LoadConcurrency, 1 }, "0@0-20 1@70-80 2@80-110 3@110-120", 1},
		{"a rate", func(o *Options) { o.Config.Load.Mode, o.Config.Load.Rate = simcore.LoadRate, 100 }, "0@0-20 2@10-40 3@20-30 1@70-80", 2},
		{"a window", func(o *Options) { o.Window = simcore.Window{FromMs: 3, ToMs: 100} }, "2@3-33", 1},
		{"a duration", func(o *Options) { o.Duration = 75 * time.Millisecond }, "0@0-20 2@6-36 1@70-80", 2},
		{"a duration without grace", func(o *Options) { o.Duration, o.Grace = 75*time.Millisecond, 0 }, "0@0-20 2@6-36 1@70-75cancelled", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := steady(10)
				opt := options(target, made(t, sessions...))
				c.change(&opt)
				run := mustRun(t, t.Context(), opt)
				if got := sent(run); got != c.want || target.most != c.most || run.Interrupted {
					t.Errorf("sent %s, %d at a time; want %s, %d", got, target.most, c.want, c.most)
				}
			})
		})
	}
}

func TestRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &fakeTarget{answer: func(call *live.Call) ([]float64, error) {
			if call.Request == 2 {
				return []float64{5}, &live.Error{Kind: live.ErrServer, Message: "out of memory"}
			}
			return []float64{10, 12, 15}[:call.Output], nil
		}}
		w := made(t, workload.Request{ID: "x", Session: "a", Input: 16, Output: 3, Hashes: []uint64{7}}, workload.Request{ID: "y", Session: "a", Input: 16, Output: 1}, workload.Request{Session: "b", Input: 16, Output: 2, ArrivalMs: 40}, workload.Request{Input: 16, Output: 1, ArrivalMs: 100})
		opt := options(target, w)
		opt.Blocks = true
		var began time.Time
		var heard []string
		opt.Began = func(at time.Time) { began = at }
		opt.Sent = func(r *live.Record) { heard = append(heard, "sent "+r.Call.ID) }
		opt.Ended = func(r *live.Record) { heard = append(heard, "ended "+r.Call.ID) }
		var blocks atomic.Int64
		answer := target.answer
		target.answer = func(call *live.Call) ([]float64, error) {
			blocks.Add(int64(len(call.Blocks)))
			return answer(call)
		}
		run := mustRun(t, t.Context(), opt)
		made, alone := "00000000-0000-8000-8000-000000000002", "00000000-0000-8000-8000-000000000003"
		want := []live.Record{
			{Call: &live.Call{ID: "x", Session: "a", Input: 16, Output: 3}, FirstTokenMs: 10, SecondTokenMs: 12, LastTokenMs: 15, EndMs: 15, Chunks: 3, OutputTokens: 3, InputTokens: -1, CachedTokens: -1},
			{Call: &live.Call{Number: 1, Request: 1, ID: "y", Session: "a", Turn: 1, Input: 16, Output: 1, ScheduledMs: 15}, ScheduledMs: 15, SentMs: 15, FirstTokenMs: 25, SecondTokenMs: live.Never, LastTokenMs: 25, EndMs: 25, Chunks: 1, OutputTokens: 1, InputTokens: -1, CachedTokens: -1},
			{Call: &live.Call{Number: 2, Request: 2, ID: made, Session: "b", Input: 16, Output: 2, ScheduledMs: 40, Order: 1}, ScheduledMs: 40, SentMs: 40, FirstTokenMs: 45, SecondTokenMs: live.Never, LastTokenMs: 45, EndMs: 45, Chunks: 1, OutputTokens: 1, InputTokens: -1, CachedTokens: -1,
				Err: &live.Error{Kind: live.ErrServer, Message: "out of memory"}},
			{Call: &live.Call{Number: 3, Request: 3, ID: alone, Input: 16, Output: 1, ScheduledMs: 100, Order: 2}, ScheduledMs: 100, SentMs: 100, FirstTokenMs: 110, SecondTokenMs: live.Never, LastTokenMs: 110, EndMs: 110, Chunks: 1, OutputTokens: 1, InputTokens: -1, CachedTokens: -1},
		}
		if diff := cmp.Diff(want, run.Records, cmpopts.EquateApprox(0, 1e-3)); diff != "" {
			t.Errorf("records differ (-want +got):\n%s", diff)
		}
		if run.Planned != 4 || run.Started != began || run.Window != nil || math.Abs(run.EndMs-110) > 1e-3 {
			t.Errorf("the run is %+v", run)
		}
		if itl := run.Gaps.ITL(); math.Abs(itl.Mean-2.5) > 1e-3 || itl.Max != 3 {
			t.Errorf("gaps are %+v, want 2 and 3 ms", itl)
		}
		if got, want := strings.Join(heard, ", "), "sent x, ended x, sent y, ended y, sent "+made+", ended "+made+", sent "+alone+", ended "+alone; got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
		if blocks.Load() == 0 {
			t.Errorf("calls had %d blocks", blocks.Load())
		}
	})
}

// TestUsageOfNothing checks that the tokens that came count where a server states none.
func TestUsageOfNothing(t *testing.T) {
	f := &flight{clock: &clock{rate: 1}, record: live.Record{Call: &live.Call{}, OutputTokens: -1}}
	f.follow(t.Context(), func(_ context.Context, event func(live.Event)) error {
		event(live.Event{Tokens: 1})
		event(live.Event{Tokens: 1, Usage: &live.Usage{}})
		return nil
	})
	if f.record.OutputTokens != 2 {
		t.Errorf("the record has %d tokens, want 2", f.record.OutputTokens)
	}
}

// inOrder is a target that takes requests in order.
type inOrder struct {
	*fakeTarget
	order []int    // that were submitted
	heard []string // what was submitted and settled
}

func (o *inOrder) Submit(call *live.Call) func(context.Context, func(live.Event)) error {
	o.order = append(o.order, call.Request)
	o.heard = append(o.heard, fmt.Sprint(call.Request))
	return func(ctx context.Context, event func(live.Event)) error { return o.Send(ctx, call, event) }
}

func (o *inOrder) Settled(call *live.Call) {
	o.heard = append(o.heard, fmt.Sprint("settled ", call.Request))
}

func (o *inOrder) Until(ms float64) { o.heard = append(o.heard, fmt.Sprintf("until %.1f", ms)) }

// A target that wants it gets requests that are due together in the order of the schedule.
func TestSubmitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := make([]workload.Request, 100)
		for i := range requests {
			requests[i] = workload.Request{Input: 1, Output: 1, ArrivalMs: float64(i / 50)}
		}
		target := &inOrder{fakeTarget: steady(1)}
		run := mustRun(t, t.Context(), options(target, made(t, requests...)))
		if !slices.IsSorted(target.order) || len(target.order) != 100 || len(run.Records) != 100 {
			t.Errorf("the order is %v", target.order)
		}
		for i := range run.Records {
			if r := &run.Records[i]; math.Abs(r.SentMs-r.ScheduledMs) > 1e-3 || r.FirstTokenMs < r.SentMs {
				t.Errorf("request %d was due at %v, sent at %v, and answered at %v", i, r.ScheduledMs, r.SentMs, r.FirstTokenMs)
			}
		}
	})
}

// simulated is a target that tells of each call, later, that it ended at a simulated time of its own.
type simulated struct {
	*inOrder
	endsMs []float64
}

func (s *simulated) Submit(call *live.Call) func(context.Context, func(live.Event)) error {
	s.inOrder.Submit(call)
	return func(_ context.Context, event func(live.Event)) error {
		time.Sleep(100 * time.Millisecond)
		at := s.endsMs[call.Request]
		event(live.Event{AtMs: at, Tokens: call.Output})
		event(live.Event{AtMs: at, Ended: true})
		if call.Output == 2 {
			return &live.Error{Kind: live.ErrRejected}
		}
		return nil
	}
}

// What follows from the end of a request, in simulated time, is submitted before the target hears that this end is settled; and
// before that it hears when something is due next.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &simulated{&inOrder{}, []float64{1. / 3, 2. / 3, .9, 30, 220}}
		run := mustRun(t, t.Context(), options(target, made(t,
			workload.Request{Session: "a", Input: 1, Output: 1}, workload.Request{Session: "a", Input: 1, Output: 2},
			workload.Request{Session: "a", Input: 1, Output: 1}, workload.Request{Session: "a", Input: 1, Output: 1, DelayMs: 20},
			workload.Request{Session: "b", Input: 1, Output: 1, ArrivalMs: 210},
		)))
		heard := strings.Join(slices.Compact(target.heard), ", ")
		if want := "0, until 210.0, 1, until 210.0, settled 0, 2, until 210.0, settled 1, 4, until +Inf, 3, until +Inf, settled 2, until +Inf, settled 4, until +Inf, settled 3, until +Inf"; heard != want {
			t.Errorf("the target heard of %s, want %s", heard, want)
		}
		for i := range run.Records {
			r := &run.Records[i]
			i, want := r.Call.Request, []float64{0, 1. / 3, 2. / 3, 20.9, 210}[r.Call.Request]
			if r.ScheduledMs != want || r.EndMs != target.endsMs[i] || r.FirstTokenMs != r.EndMs {
				t.Errorf("request %d was due at %v and ended at %v, want %v and %v", i, r.ScheduledMs, r.EndMs, want, target.endsMs[i])
			}
		}
	})
}

// Ctrl-C ends the sending, gives what is under way some time, and keeps what was measured.
func TestInterrupt(t *testing.T) {
	requests := []workload.Request{{Input: 1, Output: 1}, {Input: 1, Output: 3, ArrivalMs: 10}, {Input: 1, Output: 30, ArrivalMs: 15}, {Input: 1, Output: 1, ArrivalMs: 1000}}
	for _, c := range []struct {
		grace time.Duration
		want  string
	}{{20 * time.Millisecond, "0@0-10 1@10-40 2@15-45cancelled"}, {0, "0@0-10 1@10-25cancelled 2@15-25cancelled"}, {time.Hour, "0@0-10 1@10-40 2@15-315"}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(25*time.Millisecond, cancel)
			opt := options(steady(10), made(t, requests...))
			opt.Grace = c.grace
			run := mustRun(t, ctx, opt)
			if got := sent(run); got != c.want || !run.Interrupted || run.Planned != 4 {
				t.Errorf("grace %s: %s, interrupted %v; want %s", c.grace, got, run.Interrupted, c.want)
			}
		})
	}
}

// Prompts are there before their request is due, are not kept afterwards, and can be had again.
func TestPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 200 * time.Millisecond // to make one
		target := steady(1)
		answer := target.answer
		target.answer = func(call *live.Call) ([]float64, error) {
			for range 2 {
				if text := call.Prompt()[0].Text; text != fmt.Sprint(call.Request, " of 0") {
					t.Errorf("the prompt of request %d is %q", call.Request, text)
				}
			}
			return answer(call)
		}
		opt := options(target, made(t, workload.Request{Input: 1, Output: 1}, workload.Request{Input: 1, Output: 1, ArrivalMs: 300}))
		opt.Prompt = func(request int, salt uint64) []live.Message {
			time.Sleep(slow)
			return []live.Message{{Role: "user", Text: fmt.Sprint(request, " of ", salt)}}
		}
		run := mustRun(t, t.Context(), opt)
		for i := range run.Records {
			if r := &run.Records[i]; r.SentMs-r.ScheduledMs > 1e-3 || r.Call.Prompt != nil {
				t.Errorf("request %d was sent at %v, scheduled at %v", i, r.SentMs, r.ScheduledMs)
			}
		}
	})
}

// Only so many prompts are made ahead of their time.
func TestPromptsAheadAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests []workload.Request
		for i := range 40 {
			requests = append(requests, workload.Request{Input: aheadTokens / 4, Output: 1, ArrivalMs: float64(i)})
		}
		var ahead, most atomic.Int64
		target := steady(1)
		answer := target.answer
		target.answer = func(call *live.Call) ([]float64, error) {
			call.Prompt()
			ahead.Add(-1)
			return answer(call)
		}
		opt := options(target, made(t, requests...))
		opt.Prompt = func(int, uint64) []live.Message {
			most.Store(max(most.Load(), ahead.Add(1)))
			return []live.Message{{}}
		}
		run := mustRun(t, t.Context(), opt)
		if len(run.Records) != 40 || most.Load() > 5 || most.Load() < 2 {
			t.Errorf("%d requests were sent, and up to %d prompts made ahead", len(run.Records), most.Load())
		}
	})
}

func TestWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &fakeTarget{answer: func(call *live.Call) ([]float64, error) {
			if call.Prompt()[0].Text == "0" {
				t.Error("a prompt shares its text with those of the run")
			}
			if call.Request == 1 {
				return nil, &live.Error{Kind: live.ErrOverloaded, Message: "too much"}
			}
			return []float64{1}, nil
		}}
		w := made(t, workload.Request{Input: 1, Output: 1}, workload.Request{Input: 1, Output: 1}, workload.Request{Input: 1, Output: 1})
		prompt := func(_ int, salt uint64) []live.Message {
			return []live.Message{{Text: fmt.Sprint(salt)}}
		}
		failed, err := WarmUp(t.Context(), target, w, prompt, 5)
		if failed != 1 || err == nil || !strings.Contains(err.Error(), "too much") {
			t.Errorf("%d failed with %v, want 1 that was too much", failed, err)
		}
		if failed, err := WarmUp(t.Context(), target, w, prompt, 1); failed != 0 || err != nil {
			t.Errorf("%d failed with %v, want none", failed, err)
		}
	})
}

func TestChunkWriter(t *testing.T) {
	var file bytes.Buffer
	c := NewChunkWriter(&file)
	now := time.Now()
	c.Begin(now)
	c.Add(&live.Call{ID: "a\"b"}, live.Event{At: now.Add(1500 * time.Microsecond), Data: []byte("{\"x\":1}\n\x00")})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := gzip.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	if want := `{"ms":1.500,"request_id":"a\"b","data":"{\"x\":1}\n\u0000"}` + "\n"; string(got) != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestOptionsAreRefused(t *testing.T) {
	_, err := Run(t.Context(), Options{Duration: -1, Grace: -1, ClockRate: math.NaN()})
	for _, want := range []string{"target and a workload", "duration is -1ns", "grace is -1ns", "clock rate is NaN"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
	opt := options(steady(1), made(t, workload.Request{Input: 1, Output: 1}))
	opt.Config.AgentX.Preset, opt.Config.Load.Mode, opt.Config.Load.Concurrency = simcore.AgentXRFC, simcore.LoadConcurrency, 1
	if _, err := Run(t.Context(), opt); err == nil {
		t.Error("a scenario without conversations was not refused")
	}
}

func TestEvenGaps(t *testing.T) {
	for name, c := range map[string]struct{ gaps, want gaps }{
		"none":                           {nil, nil},
		"one":                            {gaps{20_000}, gaps{20_000}},
		"even":                           {gaps{20_000, 21_000, 19_000}, gaps{20_000, 21_000, 19_000}},
		"a prompt in between":            {gaps{20_000, 300_000, 20_000, 20_000, 20_000}, gaps{20_000, 300_000, 20_000, 20_000, 20_000}},
		"read late":                      {gaps{20_000, 60_000, 10, 20, 20_000, 20_000, 20_000, 20_000, 20_000}, gaps{20_000, 20_010, 20_010, 20_010, 20_000, 20_000, 20_000, 20_000, 20_000}},
		"the first one read late":        {gaps{4_000, 20_000, 20_000, 20_000}, gaps{12_000, 12_000, 20_000, 20_000}},
		"a fast engine":                  {gaps{500, 500, 900, 100, 500, 500}, gaps{500, 500, 500, 500, 500, 500}},
		"several tokens in each pass":    {gaps{30_000, 0, 0, 30_000, 0, 0}, gaps{10_000, 10_000, 10_000, 10_000, 10_000, 10_000}},
		"no faster than a common server": {gaps{100_000, 20_000, 100_000, 100_000}, gaps{100_000, 20_000, 100_000, 100_000}},
	} {
		given := slices.Clone(c.gaps)
		if diff := cmp.Diff(c.want, c.gaps.even()); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if !slices.Equal(given, c.gaps) {
			t.Errorf("%s: the gaps themselves changed to %v", name, c.gaps)
		}
	}
}

func TestGaps(t *testing.T) {
	for _, c := range []struct {
		name   string
		chunks [][2]float64 // tokens and ms after the chunk before
		tokens int
		want   []float64 // gaps in ms, sorted
	}{
		{"a token a chunk", [][2]float64{{1, 0}, {1, 2}, {1, 4}}, 3, []float64{2, 4}},
		{"several in a chunk", [][2]float64{{1, 0}, {3, 6}, {1, 4}}, 5, []float64{2, 2, 2, 4}},
		{"several in the first chunk", [][2]float64{{2, 0}, {1, 4}}, 3, []float64{0, 4}},
		{"more than the chunks say", [][2]float64{{1, 0}, {1, 4}, {1, 8}}, 5, []float64{2, 2, 4, 4}},
		{"fewer than the chunks say", [][2]float64{{1, 0}, {1, 4}}, 1, []float64{4}},
		{"one", [][2]float64{{1, 0}}, 1, nil},
	} {
		var g gaps
		total := 0
		for _, chunk := range c.chunks {
			g.add(total, int(chunk[0]), chunk[1])
			total += int(chunk[0])
		}
		var recorded recordedGaps
		g.record(&recorded, c.tokens)
		if diff := cmp.Diff(c.want, []float64(recorded)); diff != "" {
			t.Errorf("%s: gaps differ (-want +got):\n%s", c.name, diff)
		}
	}
}
