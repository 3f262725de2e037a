package online

import (
	"context"
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deployment has passes of tens of ms, so that a ms of real time is little.
func deployment(t testing.TB, change func(*simcore.Config)) simcore.Config {
	t.Helper()
	cfg := simcore.DefaultConfig()
	cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 4096
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 397, 101
	if change != nil {
		change(&cfg)
	}
	cfg, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// turns are sessions that share prefixes, with a few turns each.
func turns(t testing.TB, sessions, each int) *workload.Workload {
	t.Helper()
	b := workload.NewBuilder("turns", 16)
	for s := range sessions {
		for turn := range each {
			hashes := []uint64{1, 2, 3}
			for i := range 4 * (turn + 1) {
				hashes = append(hashes, uint64(1000*s+i+10))
			}
			r := workload.Request{Session: string(rune('a' + s)), Input: 16 * len(hashes), Output: 5 + s%3, Hashes: hashes, ArrivalMs: math.NaN(), DelayMs: 1130}
			if turn == 0 {
				r.ArrivalMs, r.DelayMs = float64(370*s), 0
			}
			b.Add(r)
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestOnlineAgreesWithOffline compares the figures of a run in real time with those of a simulation. No request arrives just when a
// pass begins: in real time it would come a moment later, and wait for the next one.
func TestOnlineAgreesWithOffline(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*simcore.Config)
	}{
		{"one worker", nil},
		{"KV router", func(c *simcore.Config) { c.Deployment.Workers, c.Router.Policy = 3, router.PolicyKVRouter }},
		{"prefill and decode", func(c *simcore.Config) {
			c.Deployment.Mode, c.Deployment.PrefillWorkers, c.Deployment.DecodeWorkers = simcore.ModeDisaggregated, 1, 2
			c.Prefill.Engine, c.Prefill.Timing, c.Decode.Engine, c.Decode.Timing = c.Engine, c.Timing, c.Engine, c.Timing
		}},
		{"closed loop", func(c *simcore.Config) { c.Load.Mode, c.Load.Concurrency = simcore.LoadConcurrency, 1 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg, w := deployment(t, test.change), turns(t, 6, 3)
			want, err := simcore.Run(context.Background(), cfg, w, simcore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Run(context.Background(), cfg, w, Options{Speedup: 5})
			if err != nil {
				t.Fatal(err)
			}
			r := got.Report
			for _, f := range []struct {
				name      string
				got, want float64
			}{
				{"mean TTFT", r.TTFT.Mean, want.TTFT.Mean}, {"mean ITL", r.ITL.Mean, want.ITL.Mean}, {"duration", r.DurationMs, want.DurationMs},
				{"reuse", r.PrefixCacheReusedRatio, want.PrefixCacheReusedRatio},
			} {
				if math.Abs(f.got-f.want) > .1*f.want { // a loaded machine wakes up late; tools/live.py measures how near they are
					t.Errorf("%s is %v online and %v offline", f.name, f.got, f.want)
				}
			}
			if r.CompletedRequests != want.CompletedRequests || r.TotalOutputTokens != want.TotalOutputTokens || r.GPUHours <= 0 || r.Live.PlannedRequests != int64(w.Requests()) {
				t.Errorf("online %+v", r)
			}
			if len(got.Records) != w.Requests() {
				t.Fatalf("%d records", len(got.Records))
			}
			for _, record := range got.Records {
				if life := record.Life; life.State != engine.Completed || life.ArrivalMs < 0 || life.FirstTokenMs <= life.ArrivalMs || life.Tokens != life.Output {
					t.Errorf("request %d: %+v", record.Request, life)
				}
			}
		})
	}
}

// TestOnlineInterrupted checks that a run that is ended keeps what it has.
func TestOnlineInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := 0
	got, err := Run(ctx, deployment(t, nil), turns(t, 6, 3), Options{Speedup: 20, Ended: func(r *live.Record) {
		if ended++; ended == 3 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Interrupted || got.Report.CompletedRequests < 3 || got.Report.CompletedRequests == 18 {
		t.Errorf("interrupted %v, %d completed", got.Interrupted, got.Report.CompletedRequests)
	}
}

// TestOnlineRefusals checks what real time does not do, and requests that can never be served.
func TestOnlineRefusals(t *testing.T) {
	if _, err := Run(context.Background(), deployment(t, func(c *simcore.Config) { c.Load.MaxSimTimeSeconds = 1 }), turns(t, 1, 1), Options{}); err == nil {
		t.Error("a limit of simulated time is accepted")
	}
	began := false
	got, err := Run(context.Background(), deployment(t, func(c *simcore.Config) { c.Engine.NumGPUBlocks = 4 }), turns(t, 1, 1), Options{Speedup: 20, Began: func(time.Time) { began = true }})
	if err != nil {
		t.Fatal(err)
	}
	if got.Report.RejectedRequests != 1 || !began {
		t.Errorf("report %+v", got.Report)
	}
}
