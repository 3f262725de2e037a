package simcore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// TestStuck checks that requests which can make no progress end the simulation with an error that names one of
// them and says why, on every path through the simulator.
func TestStuck(t *testing.T) {
	both := []rules.Compat{rules.Default, rules.Dynamo13}
	for _, test := range []struct {
		name     string
		compat   []rules.Compat
		input    int
		output   int
		requests int
		change   func(*Config)
		want     string // in the error; empty for success
	}{
		{name: "prompt fills the pool", compat: both, input: 640, output: 4, requests: 1,
			change: func(c *Config) { c.Engine.NumGPUBlocks = 10 },
			want:   "of 4 output tokens need 11 KV blocks of 64 tokens, and the pool has 10 (engine.num_gpu_blocks)"},
		{name: "several prompts fill the pool", compat: both, input: 640, output: 4, requests: 3,
			change: func(c *Config) { c.Engine.NumGPUBlocks = 10 }, want: "need 11 KV blocks"},
		{name: "one block more", compat: both, input: 640, output: 4, requests: 3,
			change: func(c *Config) { c.Engine.NumGPUBlocks = 11 }},
		{name: "output outgrows the pool", compat: both, input: 64, output: 1000, requests: 2,
			change: func(c *Config) { c.Engine.NumGPUBlocks = 5 },
			want:   "of 1000 output tokens need 6 KV blocks of 64 tokens, and the pool has 5"},
		{name: "no output", compat: []rules.Compat{rules.Dynamo13}, input: 100, output: 0, requests: 1,
			change: func(*Config) {}, want: "0 output tokens, so it never completes"},
		{name: "no output beside others", compat: []rules.Compat{rules.Dynamo13}, input: 64, output: 0, requests: 3,
			change: func(c *Config) { c.Engine.NumGPUBlocks, c.Engine.EnablePrefixCaching = 4, false }, want: "never completes"},
		{name: "no output by default", compat: []rules.Compat{rules.Default}, input: 100, output: 0, requests: 2,
			change: func(*Config) {}},
		{name: "prompt above the budget", compat: both, input: 9000, output: 4, requests: 2,
			change: func(c *Config) { c.Engine.EnableChunkedPrefill = false },
			want:   "9000 input tokens exceed the budget of a pass, 8192 (engine.max_num_batched_tokens), and chunked prefill is off"},
	} {
		for _, compat := range test.compat {
			for _, path := range []struct {
				name   string
				opt    Options
				change func(*Config)
			}{
				{name: "lone", change: func(*Config) {}},
				{name: "two workers", change: func(c *Config) { c.Deployment.Workers = 2 }},
				{name: "one clock", opt: Options{oneClock: true}, change: func(*Config) {}},
				{name: "every pass", opt: Options{everyPass: true}, change: func(*Config) {}},
				{name: "growing decode", opt: Options{model: growing{}}, change: func(*Config) {}},
				{name: "closed loop", change: func(c *Config) { c.Load.Mode, c.Load.Concurrency = LoadConcurrency, 2 }},
			} {
				t.Run(strings.Join([]string{test.name, string(compat), path.name}, "/"), func(t *testing.T) {
					cfg := DefaultConfig()
					cfg.Compat = compat
					test.change(&cfg)
					path.change(&cfg)
					checkStuck(t, cfg, requestsOf(t, test.input, test.output, test.requests), path.opt, test.want)
				})
			}
		}
	}
}

func checkStuck(t *testing.T, cfg Config, w *workload.Workload, opt Options, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := Run(ctx, cfg, w, opt)
	if want == "" {
		if err != nil {
			t.Fatal(err)
		}
		if r.CompletedRequests != int64(w.Requests()) {
			t.Errorf("%d of %d requests completed", r.CompletedRequests, w.Requests())
		}
		return
	}
	var stuck *StuckError
	if !errors.As(err, &stuck) || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v (%T)\nwant a *StuckError with %q", err, err, want)
	}
	if stuck.Request < 0 || stuck.Request >= w.Requests() || stuck.Reason() != "dead_end" {
		t.Errorf("request is %d, reason %q", stuck.Request, stuck.Reason())
	}
}

func requestsOf(t testing.TB, input, output, n int) *workload.Workload {
	t.Helper()
	requests := make([]workload.Request, n)
	for i := range requests {
		requests[i] = workload.Request{ArrivalMs: float64(i), Input: input, Output: output}
	}
	return build(t, 0, requests)
}

// TestStuckRequestIsNamed checks that of several requests the one at fault is named.
func TestStuckRequestIsNamed(t *testing.T) {
	w := build(t, 0, []workload.Request{
		{ArrivalMs: 0, Input: 100, Output: 5},
		{ArrivalMs: 1, Input: 9000, Output: 5},
		{ArrivalMs: 2, Input: 100, Output: 5},
	})
	cfg := DefaultConfig()
	cfg.Engine.EnableChunkedPrefill = false
	_, err := Run(context.Background(), cfg, w, Options{})
	var stuck *StuckError
	if !errors.As(err, &stuck) || stuck.Request != 1 {
		t.Errorf("got %v, want request 1", err)
	}
}

func TestRejection(t *testing.T) {
	for _, compat := range []rules.Compat{rules.Default, rules.Dynamo13} {
		cfg := DefaultConfig()
		cfg.Compat = compat
		cfg.Engine.NumGPUBlocks = 10
		cfg.Engine.ContextLength = 600
		w := build(t, 0, []workload.Request{
			{Session: "a", ArrivalMs: 0, Input: 641, Output: 3}, // exceeds the pool
			{Session: "a", DelayMs: 5, Input: 64, Output: 3},    // follows a rejected turn
			{Session: "b", ArrivalMs: 2, Input: 600, Output: 3}, // leaves no room in the context
			{Session: "c", ArrivalMs: 3, Input: 590, Output: 50},
		})
		r, records := mustRun(t, cfg, w)
		want := sums{Arrived: 4, Completed: 2, Rejected: 2, Truncated: 1, Input: 654, Output: 13, LastMs: r.DurationMs}
		if diff := cmp.Diff(want, sumsOf(r)); diff != "" {
			t.Errorf("%q: (-want +got):\n%s", compat, diff)
		}
		for _, record := range records {
			if rejected := record.Life.State == engine.Rejected; rejected != (record.Request == 0 || record.Request == 2) {
				t.Errorf("%q: request %d: rejected is %v", compat, record.Request, rejected)
			}
		}
		// A rejected turn ends in the pass that looks at it, so the next one is ready 5 ms later.
		if at := records[len(records)-1].Life; records[len(records)-1].Request != 1 || at.ArrivalMs != 5 {
			t.Errorf("%q: the turn after the rejected one arrives at %v ms, want 5", compat, at.ArrivalMs)
		}
	}
}

// Under a time cap a stuck worker is no error while another goes on until the cap, as in the reference.
func TestStuckBesideTheCap(t *testing.T) {
	b := workload.NewBuilder("two", 512)
	b.Add(workload.Request{ArrivalMs: 0, Input: 1024, Output: 5, Hashes: []uint64{1, 2}})
	b.Add(workload.Request{ArrivalMs: 0, Input: 10, Output: 50, Hashes: []uint64{3}})
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Compat = rules.Dynamo13
	cfg.Deployment.Workers = 2
	cfg.Engine.EnableChunkedPrefill, cfg.Engine.MaxNumBatchedTokens = false, 512
	for cap, stuck := range map[float64]bool{0.05: false, 10: true, 0: true} {
		cfg.Load.MaxSimTimeSeconds = cap
		for _, opt := range []Options{{}, {oneClock: true}} {
			r, err := Run(t.Context(), cfg, w, opt)
			var dead *StuckError
			switch {
			case stuck && !errors.As(err, &dead):
				t.Errorf("cap %v s: err = %v", cap, err)
			case !stuck && (err != nil || r.CompletedRequests != 1 || r.DurationMs != 51.113072):
				t.Errorf("cap %v s: %+v, %v", cap, r, err)
			}
		}
	}
}
