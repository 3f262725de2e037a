package online

import (
	gocmp "cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// turns are sessions that share prefixes, with a few turns each that come a delay after each other.
func turns(t testing.TB, sessions, each int, delayMs float64) *workload.Workload {
	t.Helper()
	b := workload.NewBuilder("turns", 16)
	for s := range sessions {
		for turn := range each {
			hashes := []uint64{1, 2, 3}
			for i := range 4 * (turn + 1) {
				hashes = append(hashes, uint64(1000*s+i+10))
			}
			r := workload.Request{Session: string(rune('a' + s)), Input: 16 * len(hashes), Output: 5 + 11*(s%3), Hashes: hashes, ArrivalMs: math.NaN(), DelayMs: delayMs}
			if turn == 0 {
				r.ArrivalMs, r.DelayMs = float64(397*(s/2)), 0 // as long as a prompt takes
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

// many are short sessions, and behind them more long prompts than are made ready ahead of their time.
func many(t testing.TB) *workload.Workload {
	t.Helper()
	b := workload.NewBuilder("many", 16)
	for i := range 500 {
		r := workload.Request{Session: fmt.Sprint(i), Input: 30_000, Output: 2, ArrivalMs: float64(5000 + 100*i)}
		if i >= 20 {
			b.Add(r)
			continue
		}
		for turn := range 3 {
			r.Input, r.ArrivalMs, r.DelayMs = 100, float64(10*i), 0
			if turn > 0 {
				r.ArrivalMs, r.DelayMs = math.NaN(), float64(turn-1)*50
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

// agents are plays in which a root waits for what its branches do, all at once.
func agents(t testing.TB, plays int) *workload.Workload {
	t.Helper()
	b := workload.NewGraphBuilder("agents", 16)
	for play := range plays {
		request := func(name string, blocks int) int32 {
			hashes := []uint64{1}
			for i := range blocks {
				hashes = append(hashes, uint64(100*play+i+2))
			}
			id := fmt.Sprint(play, name)
			return b.Add(workload.GraphRequest{
				Request:     workload.Request{ID: id, Session: id, Input: 16 * len(hashes), Output: 2 + blocks%3, Hashes: hashes},
				NotBeforeMs: math.Inf(-1), Play: fmt.Sprint(play),
			})
		}
		root := request("root", 2)
		last := request("last", 9)
		for child := range 3 {
			c := request(fmt.Sprint("child", child), 3+child)
			b.AddEdge(c, workload.Edge{From: root, DelayMs: float64(child/2) * 101, Trigger: workload.OnCompletion})
			b.AddEdge(last, workload.Edge{From: c, Trigger: workload.OnCompletion})
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// overlapping are plays with requests that start with the one before them, though the source names them first, while others end and
// start.
func overlapping(t testing.TB, plays int) *workload.Workload {
	t.Helper()
	b := workload.NewGraphBuilder("overlapping", 16)
	for play := range plays {
		ids := map[string]int32{}
		for i, name := range []string{"grandchild", "child", "other child", "follower", "other", "later", "root"} {
			id := fmt.Sprint(play, name)
			r := workload.GraphRequest{
				Request:     workload.Request{ID: id, Session: id, Input: 16 * (i + 1), Output: 1 + (play+i)%4, Hashes: []uint64{}},
				NotBeforeMs: math.Inf(-1), Play: fmt.Sprint(play),
			}
			for block := range i + 1 {
				r.Hashes = append(r.Hashes, uint64(100*play+10*i+block))
			}
			switch name {
			case "root", "other":
				r.NotBeforeMs = 397 * float64(play/2) // as long as a prompt takes
			}
			ids[name] = b.Add(r)
		}
		b.AddEdge(ids["child"], workload.Edge{From: ids["root"], Trigger: workload.OnDispatch})
		b.AddEdge(ids["other child"], workload.Edge{From: ids["root"], Trigger: workload.OnDispatch})
		b.AddEdge(ids["grandchild"], workload.Edge{From: ids["child"], Trigger: workload.OnDispatch})
		b.AddEdge(ids["later"], workload.Edge{From: ids["grandchild"], DelayMs: 397, Trigger: workload.OnDispatch})
		b.AddEdge(ids["follower"], workload.Edge{From: ids["other"], Trigger: workload.OnCompletion})
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// windowS is how long the window of the AgentX scenario is.
const windowS = 30

// TestOnlineEqualsOffline checks, in the time of a bubble, that requests fare in real time just as in a simulation: also those that
// come when others end, or at one time, or while a pass begins or ends, or are sent late.
func TestOnlineEqualsOffline(t *testing.T) {
	pools := func(c *simcore.Config) {
		c.Deployment.Mode, c.Deployment.PrefillWorkers, c.Deployment.DecodeWorkers = simcore.ModeDisaggregated, 1, 2
		c.Prefill.Engine, c.Prefill.Timing, c.Decode.Engine, c.Decode.Timing = c.Engine, c.Timing, c.Engine, c.Timing
	}
	two := func(c *simcore.Config) { c.Deployment.Workers = 2 }
	closed := func(c *simcore.Config) { c.Load.Mode, c.Load.Concurrency = simcore.LoadConcurrency, 3 }
	for _, test := range []struct {
		name     string
		workload *workload.Workload
		changes  []func(*simcore.Config)
		speedup  float64
	}{
		{"one worker", turns(t, 6, 3, 1130), nil, 1},
		{"round robin", turns(t, 6, 3, 1130), []func(*simcore.Config){two}, 5},
		{"what follows at once", turns(t, 6, 3, 0), []func(*simcore.Config){two}, 3},
		{"what follows soon", turns(t, 6, 3, 101), []func(*simcore.Config){two}, 1000},
		{"KV router", turns(t, 8, 3, 202), []func(*simcore.Config){func(c *simcore.Config) { c.Deployment.Workers, c.Router.Policy = 3, router.PolicyKVRouter }}, 5},
		{"prefill and decode", turns(t, 6, 3, 0), []func(*simcore.Config){pools}, 5},
		{"closed loop", turns(t, 8, 2, 0), []func(*simcore.Config){two, closed}, 7},
		{"little memory", turns(t, 16, 3, 0), []func(*simcore.Config){two, func(c *simcore.Config) { c.Engine.NumGPUBlocks = 18 }}, 5},
		{"what never fits", turns(t, 6, 4, 50), []func(*simcore.Config){func(c *simcore.Config) { c.Engine.NumGPUBlocks = 14 }}, 5},
		{"overhead of requests", turns(t, 6, 3, 0), []func(*simcore.Config){two, func(c *simcore.Config) { c.Timing.RequestOverheadMs = 7 }}, 5},
		{"much ahead", many(t), []func(*simcore.Config){two, func(c *simcore.Config) { c.Engine.NumGPUBlocks = 1 << 20 }}, 100},
		{"agents", agents(t, 5), []func(*simcore.Config){two}, 5},
		{"AgentX", agents(t, 5), []func(*simcore.Config){two, closed, func(c *simcore.Config) {
			c.AgentX.Preset, c.AgentX.DurationS, c.AgentX.Seed = simcore.AgentXRFC, windowS, 1
		}}, 5},
		{"what starts together", overlapping(t, 8), []func(*simcore.Config){two}, 5},
		{"agents in lanes", agents(t, 5), []func(*simcore.Config){two, closed}, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := deployment(t, func(c *simcore.Config) {
				for _, change := range test.changes {
					change(c)
				}
			})
			var lives []simcore.RequestRecord
			want, err := simcore.Run(context.Background(), cfg, test.workload, simcore.Options{Records: func(r simcore.RequestRecord) { lives = append(lives, kept(r)) }})
			if err != nil {
				t.Fatal(err)
			}
			for _, late := range []time.Duration{0, 300 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					// What is due meanwhile is sent late.
					got, err := Run(t.Context(), cfg, test.workload, Options{Speedup: test.speedup, Began: func(time.Time) { time.Sleep(late) }})
					if err != nil {
						t.Fatal(err)
					}
					if lag := got.Report.Live.ScheduleLag.Max; math.Abs(lag-test.speedup*float64(late.Milliseconds())) > .01 && test.workload.Graph == nil {
						t.Errorf("a request was sent %v ms late, want %v", lag, late)
					}
					compare(t, got, want, lives)
				})
			}
		})
	}
}

// kept is a record that stays valid.
func kept(r simcore.RequestRecord) simcore.RequestRecord {
	if r.Handoff != nil {
		handoff := *r.Handoff
		r.Handoff = &handoff
	}
	return r
}

// compare compares a run in real time with a simulation, request by request.
func compare(t *testing.T, got *Outcome, want *simcore.Report, lives []simcore.RequestRecord) {
	t.Helper()
	byNumber := func(a, b simcore.RequestRecord) int {
		return gocmp.Or(gocmp.Compare(a.Play, b.Play), gocmp.Compare(a.Request, b.Request))
	}
	records, lives := slices.Clone(got.Records), slices.Clone(lives)
	slices.SortFunc(records, byNumber)
	slices.SortFunc(lives, byNumber)
	for i := range min(len(records), len(lives)) {
		if a := want.AgentX; a != nil && lives[i].Life.LastTokenMs > a.StartMs+1000*windowS {
			// A simulation completes the passes that have begun, and this gives up what is under way.
			for _, r := range []*simcore.RequestRecord{&lives[i], &records[i]} {
				*r = simcore.RequestRecord{Request: r.Request, Play: r.Play, Life: engine.Request{ArrivalMs: r.Life.ArrivalMs}}
			}
			continue
		}
		lives[i].Life.Number = int32(lives[i].Request) // AgentX has numbers of its own
		if h := records[i].Handoff; h != nil && h.SourceReleasedMs == engine.Never {
			h.SourceReleasedMs = lives[i].Handoff.SourceReleasedMs // it may be released after the request has ended
		}
	}
	if diff := cmp.Diff(lives, records, cmpopts.IgnoreUnexported(engine.Request{}, simcore.Handoff{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("requests (-offline +online):\n%s", diff)
	}
	if want.AgentX != nil {
		return // the figures are of those, too
	}
	r := got.Report
	for _, f := range []struct {
		name            string
		got, want, near float64
	}{
		{"mean TTFT", r.TTFT.Mean, want.TTFT.Mean, 1e-9}, {"mean end-to-end time", r.E2ELatency.Mean, want.E2ELatency.Mean, 1e-9},
		{"mean ITL", r.ITL.Mean, want.ITL.Mean, 1e-5}, // gaps are kept to the µs
		{"duration", r.DurationMs, want.DurationMs, 1e-9}, {"reuse", r.PrefixCacheReusedRatio, want.PrefixCacheReusedRatio, 1e-9},
	} {
		if math.Abs(f.got-f.want) > f.near*f.want {
			t.Errorf("%s is %v online and %v offline", f.name, f.got, f.want)
		}
	}
	if r.CompletedRequests != want.CompletedRequests || r.RejectedRequests != want.RejectedRequests || r.TotalOutputTokens != want.TotalOutputTokens || r.GPUHours <= 0 {
		t.Errorf("online %+v\noffline %+v", r, want)
	}
}

// TestOnlineInterrupted checks that a run that is ended keeps what it has.
func TestOnlineInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := 0
	got, err := Run(ctx, deployment(t, nil), turns(t, 6, 3, 1130), Options{Speedup: 20, Ended: func(r *live.Record) {
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
	if _, err := Run(context.Background(), deployment(t, func(c *simcore.Config) { c.Load.MaxSimTimeSeconds = 1 }), turns(t, 1, 1, 0), Options{}); err == nil {
		t.Error("a limit of simulated time is accepted")
	}
	began := false
	got, err := Run(context.Background(), deployment(t, func(c *simcore.Config) { c.Engine.NumGPUBlocks = 4 }), turns(t, 1, 1, 0), Options{Speedup: 20, Began: func(time.Time) { began = true }})
	if err != nil {
		t.Fatal(err)
	}
	if got.Report.RejectedRequests != 1 || !began {
		t.Errorf("report %+v", got.Report)
	}
}
