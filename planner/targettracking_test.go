package planner

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/simcore"
)

// tracked makes a pool of which worker n has the n-th number of waiting requests.
func tracked(c TargetTracking, target float64, waiting ...int) (*trackedPool, []int32) {
	p := &trackedPool{config: &c, metric: "waiting_requests", target: target, last: map[int32]*workerLoad{}}
	var ready []int32
	for i, n := range waiting {
		m := simcore.PassMetrics{Worker: int32(i)}
		m.QueuedPrefills = n
		p.observe(&m)
		ready = append(ready, int32(i))
	}
	return p, ready
}

// TestTrackedWorkers compares with worked examples of the algorithm: ceil(ready * metric / target), tolerance 0.1, workers
// that start count as idle when more are wanted.
func TestTrackedWorkers(t *testing.T) {
	for _, c := range []struct {
		name     string
		waiting  []int
		starting int
		want     int
	}{
		{"at the target", []int{10, 10}, 0, 2},
		{"within tolerance above", []int{11, 11}, 0, 2},
		{"within tolerance below", []int{9, 9}, 0, 2},
		{"twice the target", []int{20, 20}, 0, 4},
		{"rounded up", []int{12, 12}, 0, 3},
		{"mean of unequal ones", []int{30, 0}, 0, 3},
		{"half", []int{5, 5, 5, 5}, 0, 2},
		{"idle", []int{0, 0}, 0, 0},
		{"more, but enough on the way", []int{20, 20}, 2, 4},
		{"more, and not enough on the way", []int{30, 30}, 1, 6},
		{"more, turned round by those on the way", []int{12, 12}, 2, 4},
		{"fewer with some on the way", []int{5, 5}, 2, 1},
		{"within tolerance with some on the way", []int{10, 10}, 3, 5},
		{"no worker ready", nil, 2, 2},
	} {
		p, ready := tracked(defaultTargetTracking(), 10, c.waiting...)
		if got := p.wanted(ready, len(ready)+c.starting); got != c.want {
			t.Errorf("%s: %d workers, want %d", c.name, got, c.want)
		}
	}
}

// TestTrackedStabilisation goes through what is wanted every 15 s, and what is done then.
func TestTrackedStabilisation(t *testing.T) {
	for _, c := range []struct {
		name         string
		up, down     float64
		wanted, want []int
	}{
		{"up at once, down after all that wanted more is 60 s ago", 0, 60, []int{4, 2, 2, 1, 1, 1, 1}, []int{4, 4, 4, 4, 2, 2, 1}},
		{"no windows", 0, 0, []int{4, 2, 3, 1}, []int{4, 2, 3, 1}},
		{"up when wanted for 30 s", 30, 0, []int{2, 4, 5, 4, 4}, []int{2, 2, 4, 4, 4}},
	} {
		config := defaultTargetTracking()
		config.ScaleUpStabilizationSeconds, config.ScaleDownStabilizationSeconds = c.up, c.down
		p := &trackedPool{config: &config}
		asked := 2
		p.advise(0, asked)
		var got []int
		for i, wanted := range c.wanted {
			asked = p.stabilised(float64(15*(i+1)), asked, wanted)
			got = append(got, asked)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestTrackedRates goes through changes every 5 s, of which a period of 15 s sees three.
func TestTrackedRates(t *testing.T) {
	for _, c := range []struct {
		name                 string
		asked                int
		workers              int
		percent, downPercent float64
		wanted, want         []int
	}{
		{"four workers or twice as many", 2, 4, 100, 100, []int{20, 20, 20, 20, 20}, []int{6, 6, 6, 12, 12}},
		{"one worker a period", 2, 1, 0, 100, []int{9, 9, 9, 9, 9, 9, 9}, []int{3, 3, 3, 4, 4, 4, 5}},
		{"all down at once", 8, 4, 100, 100, []int{1, 1}, []int{1, 1}},
		{"half down a period", 8, 4, 100, 50, []int{1, 1, 1, 1}, []int{4, 4, 4, 2}},
		{"never down", 8, 4, 100, 0, []int{1, 1}, []int{8, 8}},
	} {
		config := defaultTargetTracking()
		config.ScaleUpWorkers, config.ScaleUpPercent, config.ScaleDownPercent = c.workers, c.percent, c.downPercent
		p := &trackedPool{config: &config}
		asked := c.asked
		var got []int
		for i, wanted := range c.wanted {
			now := float64(5 * i)
			n, _ := p.limited(now, asked, wanted)
			p.change(now, n-asked)
			asked = n
			got = append(got, n)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestTrackedBudget(t *testing.T) {
	for _, c := range []struct {
		name         string
		gpus         []int
		least        int
		min, max     int
		wanted, want []int
	}{
		{"within", []int{1}, 1, -1, 8, []int{3}, []int{3}},
		{"least workers", []int{1}, 2, -1, 8, []int{0}, []int{2}},
		{"too many", []int{2}, 1, -1, 8, []int{9}, []int{4}},
		{"no limit", []int{2}, 1, -1, -1, []int{9}, []int{9}},
		{"too few", []int{2}, 1, 5, 8, []int{1}, []int{3}},
		{"from the larger pool", []int{1, 1}, 1, -1, 8, []int{8, 4}, []int{4, 4}},
		{"by GPUs", []int{4, 1}, 1, -1, 8, []int{2, 4}, []int{1, 4}},
		{"no less than the least", []int{4, 4}, 1, -1, 6, []int{2, 2}, []int{1, 1}},
	} {
		tr := &tracker{config: Config{MinEndpoint: c.least, MinGPUBudget: c.min, MaxGPUBudget: c.max}}
		for _, g := range c.gpus {
			tr.pools = append(tr.pools, &trackedPool{gpus: g})
		}
		tr.keepBudget(c.wanted)
		if diff := cmp.Diff(c.want, c.wanted); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestTrackedMetrics checks every metric of a worker that computes a prompt, decodes and has a queue.
func TestTrackedMetrics(t *testing.T) {
	m := simcore.PassMetrics{Worker: 3}
	m.PrefillRequests, m.PrefillTokens, m.PrefillKVTokens = 1, 100, 200
	m.DecodeRequests, m.DecodeKVTokens = 4, 1700
	m.QueuedPrefills, m.QueuedPrefillTokens, m.QueuedDecodes, m.QueuedDecodeKVTokens = 5, 5000, 1, 300
	for metric, want := range map[string]float64{
		"waiting_requests": 6, "waiting_tokens": 5300, "concurrency": 11, "kv_utilization": 20,
	} {
		config := defaultTargetTracking()
		p := &trackedPool{config: &config, metric: metric, kvTokens: 10_000, last: map[int32]*workerLoad{}}
		p.observe(&m)
		if got := p.value(3); got != want {
			t.Errorf("%s: %v, want %v", metric, got, want)
		}
		if got := p.value(2); got != 0 {
			t.Errorf("%s of a worker without a pass: %v", metric, got)
		}
	}
}

// TestTargetTrackingRuns lets the policy add workers under load and remove them after it.
func TestTargetTrackingRuns(t *testing.T) {
	cfg, p, w := slowWorkers(10), foresightConfig(), bursts(t, 3, 12)
	p.Policy, p.TargetTracking.Metric, p.TargetTracking.Target = PolicyTargetTracking, "concurrency", 2
	p.TargetTracking.ScaleDownStabilizationSeconds = 30
	out, err := Run(context.Background(), cfg, p, w, simcore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := out.Report.Scaling.Decode
	if s.PeakReady < 2 || s.WorkersRemoved == 0 || out.Record.TickCount != len(out.Record.Ticks) || len(out.Record.Decisions) < 2 {
		t.Errorf("scaling %+v, %d decisions in %d ticks", s, len(out.Record.Decisions), out.Record.TickCount)
	}
	if last := out.Record.Ticks[len(out.Record.Ticks)-1]; last.GPUHours <= 0 || last.GPUHours > out.Report.GPUHours {
		t.Errorf("GPU hours %v at the last tick, %v in all", last.GPUHours, out.Report.GPUHours)
	}
	again, err := Run(context.Background(), cfg, p, w, simcore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out.Record.Decisions, again.Record.Decisions); diff != "" {
		t.Errorf("two runs differ: %s", diff)
	}
}

func TestTargetTrackingSettings(t *testing.T) {
	for _, c := range []struct {
		change func(*TargetTracking)
		want   string
	}{
		{func(c *TargetTracking) { c.Metric = "qps" }, "target_tracking.metric"},
		{func(c *TargetTracking) { c.Target = -1 }, "target_tracking.target"},
		{func(c *TargetTracking) { c.SyncPeriodSeconds = 0 }, "target_tracking.sync_period_seconds"},
		{func(c *TargetTracking) { c.Tolerance = -0.1 }, "target_tracking.tolerance"},
		{func(c *TargetTracking) { c.ScaleUpWorkers, c.ScaleUpPercent = 0, 0 }, "target_tracking.scale_up_workers"},
		{func(c *TargetTracking) { c.PrefillMetric = "ignored" }, ""},
		{func(c *TargetTracking) { c.Metric = "kv_utilization" }, ""},
	} {
		p := foresightConfig()
		p.Policy = PolicyTargetTracking
		c.change(&p.TargetTracking)
		cfg, problems := slowWorkers(0).Resolve()
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		_, problems = p.Resolve(cfg)
		if got := ""; len(problems) > 0 {
			if got = problems.Err().Error(); c.want == "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("no problem, want one of %s", c.want)
		}
	}
}

// TestTargetTrackingIsBounded asks for no absurd numbers of workers, whatever the target.
func TestTargetTrackingIsBounded(t *testing.T) {
	for budget, want := range map[int]int{-1: mostWorkers, 8: 8} {
		c := DefaultConfig()
		c.MaxGPUBudget = budget
		tracker := &tracker{config: c, pools: []*trackedPool{{gpus: 1}}}
		wanted := []int{1 << 40}
		if tracker.keepBudget(wanted); wanted[0] != want {
			t.Errorf("budget %d: %d workers, want %d", budget, wanted[0], want)
		}
	}
	if n := workersFor(1e300); n != maxWorkers {
		t.Errorf("1e300 are %d workers", n)
	}
}
