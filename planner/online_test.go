package planner

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// noted is an online policy whose state is kept after each tick.
type noted struct {
	*Online
	states []OnlineState
}

func (n *noted) Tick(nowMs float64, pools []simcore.PoolState) []int {
	targets := n.Online.Tick(nowMs, pools)
	n.states = append(n.states, n.State())
	return targets
}

const testBlock = 64

// waves is requests whose rate rises and falls, up to so many a second, for so long in seconds. Some share the beginnings of
// their prompts.
func waves(t *testing.T, perSecond, seconds float64) *workload.Workload {
	t.Helper()
	b := workload.NewBuilder("waves", testBlock)
	for i, at := 0, 0.0; at < seconds; i++ {
		r := workload.Request{Session: fmt.Sprint(i), ArrivalMs: at * 1000, Input: 200 + i*337%4000, Output: 20 + i*13%250}
		for block := range r.Input / testBlock {
			r.Hashes = append(r.Hashes, uint64(i%7*1000+block+i*block/20*1_000_000))
		}
		b.Add(r)
		at += 1 / (.2 + perSecond*math.Pow(math.Sin(at/100), 2))
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// playOnline submits the requests of a workload to an online deployment with a policy, and goes on for so long, in s, in steps
// of some length.
func playOnline(t *testing.T, cfg simcore.Config, p Config, w *workload.Workload, seconds, stepMs float64) (n *noted, records []simcore.RequestRecord, events []simcore.ScalingEvent) {
	t.Helper()
	o, simulated, err := NewOnline(context.Background(), cfg, p)
	if err != nil {
		t.Fatal(err)
	}
	n = &noted{Online: o}
	records = make([]simcore.RequestRecord, w.Requests())
	of := map[int32]int{}
	d, err := simcore.NewOnline(simulated, w.Requests(), func(e simcore.OnlineEvent) {
		if e.Ended {
			r := *e.Record
			if r.Handoff != nil {
				handoff := *r.Handoff
				r.Handoff = &handoff
			}
			records[of[e.Request]] = r
		}
	}, simcore.OnlineOptions{Autoscaler: n, ScalingEvents: func(e simcore.ScalingEvent) {
		events = append(events, e)
		o.ScalingEvent(e)
	}})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := w.Blocks(testBlock, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Requests() {
		r := simcore.OnlineRequest{Input: int(w.Input[i]), Output: int(w.Output[i]), Session: w.SessionName(i)}
		for _, s := range blocks.Segments(i) {
			for id := s.Start; id < s.Start+s.Len; id++ {
				r.Blocks = append(r.Blocks, uint64(id))
			}
		}
		number, ok := d.Submit(w.ArrivalMs[i], r)
		if !ok {
			t.Fatalf("no room for request %d", i)
		}
		of[number] = i
	}
	for now := 0.0; now < seconds*1000; {
		now += stepMs
		if err := d.Advance(now); err != nil {
			t.Fatal(err)
		}
	}
	return n, records, events
}

// TestOnlineDecidesAsRun checks that a policy sees and decides the same of requests that come one by one as in a simulation that
// knows them all, and that they fare the same.
func TestOnlineDecidesAsRun(t *testing.T) {
	sla := testSLA()
	sla.TTFTMs, sla.ITLMs, sla.LoadAdjustmentIntervalSeconds = 400, 12, 5
	both := sla
	both.EnableThroughputScaling, both.ThroughputAdjustmentIntervalSeconds, both.LoadPredictor = true, 60, "kalman"
	byTraffic := both
	byTraffic.EnableLoadScaling = false
	tracking := DefaultConfig()
	tracking.Policy = PolicyTargetTracking
	tracking.TargetTracking.Metric, tracking.TargetTracking.Target, tracking.TargetTracking.ScaleDownStabilizationSeconds = "concurrency", 5, 45
	pools := func(c *simcore.Config) {
		c.Deployment = simcore.Deployment{Mode: simcore.ModeDisaggregated, PrefillWorkers: 1, DecodeWorkers: 2}
		c.Prefill, c.Decode = simcore.Stage{Engine: c.Engine, Timing: c.Timing}, simcore.Stage{Engine: c.Engine, Timing: c.Timing}
	}
	for _, c := range []struct {
		name   string
		plan   Config
		change func(*simcore.Config)
		// changes is how often workers come or go at the least.
		changes int
	}{
		{"load", sla, func(*simcore.Config) {}, 10},
		{"load and traffic", both, func(c *simcore.Config) { c.Router.Policy = router.PolicyKVRouter }, 10},
		{"traffic", byTraffic, func(c *simcore.Config) { c.Engine.Type = engine.TypeSGLang }, 6},
		{"pools", both, pools, 10},
		{"pools by load", sla, func(c *simcore.Config) { pools(c); c.Router.Policy = router.PolicyKVRouter }, 10},
		{"target tracking", tracking, func(*simcore.Config) {}, 10},
		{"the oldest release", both, func(c *simcore.Config) { c.Compat = rules.Dynamo12 }, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := simcore.DefaultConfig()
			cfg.Deployment.Workers = 2
			cfg.Timing.Source = perfmodel.SourcePolynomial
			cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks, cfg.Engine.StartupTime = testBlock, 4000, 17
			c.change(&cfg)
			const seconds = 400
			w := waves(t, 8, seconds)
			var want []simcore.RequestRecord
			out, err := Run(context.Background(), cfg, c.plan, w, simcore.Options{Records: func(r simcore.RequestRecord) { want = append(want, r) }})
			if err != nil {
				t.Fatal(err)
			}
			n, got, events := playOnline(t, cfg, c.plan, w, seconds+200, 777.7)
			near := cmp.Options{
				cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 0), cmpopts.IgnoreUnexported(engine.Request{}, simcore.Handoff{}),
				cmpopts.IgnoreFields(simcore.RequestRecord{}, "Request", "Session", "Turn"), cmpopts.IgnoreFields(engine.Request{}, "Number"),
				cmpopts.IgnoreFields(simcore.Handoff{}, "SourceReleasedMs"), // which may be after the end
			}
			if diff := cmp.Diff(want, got, near); diff != "" {
				t.Errorf("requests (-run +online):\n%s", beginning(diff))
			}
			// Online it goes on when all requests have ended.
			if len(events) < len(out.Record.Events) || len(out.Record.Events) < c.changes {
				t.Fatalf("%d events, and %d in Run", len(events), len(out.Record.Events))
			}
			if diff := cmp.Diff(out.Record.Events, events[:len(out.Record.Events)], near); diff != "" {
				t.Errorf("events (-run +online):\n%s", beginning(diff))
			}
			if len(n.states) < len(out.Record.Ticks) || out.Record.TickCount != len(out.Record.Ticks) {
				t.Fatalf("%d ticks, and %d of %d in Run", len(n.states), len(out.Record.Ticks), out.Record.TickCount)
			}
			for i, tick := range out.Record.Ticks {
				if diff := cmp.Diff(tick, n.states[i].Latest, near); diff != "" {
					t.Fatalf("tick %d (-run +online):\n%s", i, beginning(diff))
				}
			}
			var ups, downs int64
			for _, p := range n.states[len(out.Record.Ticks)-1].Pools {
				ups, downs = ups+p.ScaleUps, downs+p.ScaleDowns
			}
			if planned := out.Report.Planning; ups != planned.ScaleUps || downs != planned.ScaleDowns || ups == 0 || downs == 0 {
				t.Errorf("%d decisions up and %d down, and in Run %+v", ups, downs, planned)
			}
		})
	}
}

// beginning is the beginning of a text.
func beginning(text string) string {
	lines := strings.SplitAfterN(text, "\n", 40)
	return strings.Join(lines[:min(len(lines), 39)], "")
}

// TestOnlineState checks what is told of a policy: at the start, and of what it looked at last.
func TestOnlineState(t *testing.T) {
	p := testSLA()
	p.EnableThroughputScaling, p.ThroughputAdjustmentIntervalSeconds, p.LoadAdjustmentIntervalSeconds = true, 60, 5
	cfg := simcore.DefaultConfig()
	cfg.Engine.BlockSize = testBlock
	o, _, err := NewOnline(context.Background(), cfg, p)
	if err != nil {
		t.Fatal(err)
	}
	if s := o.State(); s.Ticks != 0 || len(s.Pools) != 1 || s.Pools[0].Name != "agg" || s.Pools[0].Wanted != 1 || !math.IsNaN(s.Observed.Requests) || !math.IsNaN(s.Pools[0].EstimatedITLMs) {
		t.Errorf("at the start: %+v", s)
	}
	n, _, _ := playOnline(t, cfg, p, waves(t, 5, 70), 70, 1000)
	atTraffic, after := n.states[11], n.states[12] // 60 s, 65 s
	if !atTraffic.Latest.ThroughputScaling || after.Latest.ThroughputScaling || after.Ticks != 13 {
		t.Fatalf("tick 12 is %+v, tick 13 %+v", atTraffic.Latest, after.Latest)
	}
	if math.IsNaN(after.Observed.Requests) || after.Observed != atTraffic.Observed || after.Predicted.Requests != atTraffic.Predicted.Requests || after.ThroughputReason != reasonBound ||
		math.IsNaN(after.Pools[0].RequestsPerSecond) {
		t.Errorf("after the look at the traffic: %+v", after)
	}
}

// TestOnlineRefuses checks the policies that cannot plan requests which are not known beforehand.
func TestOnlineRefuses(t *testing.T) {
	for policy, want := range map[Policy]string{PolicyStatic: "decides nothing", PolicyForesight: "knows all requests beforehand", "magic": "use one of"} {
		p := DefaultConfig()
		p.Policy = policy
		if _, _, err := NewOnline(context.Background(), simcore.DefaultConfig(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", policy, err)
		}
	}
}
