package planner

import (
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/problem"
)

// TargetTracking is the section `planner.target_tracking` of a spec: how the policy of that name keeps a metric near a
// target. Algorithm and defaults are those of the horizontal pod autoscaler of Kubernetes (autoscaling/v2): the wanted
// number of workers is the present one times metric/target, rounded up.
type TargetTracking struct {
	// Metric is what is kept near the target, a mean over the ready workers: "waiting_requests" and "waiting_tokens" (of
	// prompts not begun), "concurrency" (requests that wait or run) or "kv_utilization" (KV cache in use, in percent). It is
	// that of decode workers, or of all workers of an aggregated deployment.
	Metric string `json:"metric"`
	// Target is the value to keep; 0 (null in a spec) means 1 waiting request, 8192 waiting tokens, 16 requests or 70 %.
	Target float64 `json:"target"`
	// PrefillMetric is the metric of prefill workers.
	PrefillMetric string `json:"prefill_metric"`
	// PrefillTarget is the value to keep for prefill workers; 0 (null in a spec) means as for target.
	PrefillTarget float64 `json:"prefill_target"`
	// SyncPeriodSeconds is the time between two looks.
	SyncPeriodSeconds float64 `json:"sync_period_seconds"`
	// Tolerance is the relative distance from the target within which nothing changes.
	Tolerance float64 `json:"tolerance"`
	// ScaleUpStabilizationSeconds is how long more workers must have been wanted all the time before they are asked for.
	ScaleUpStabilizationSeconds float64 `json:"scale_up_stabilization_seconds"`
	// ScaleDownStabilizationSeconds is how long fewer workers must have been wanted all the time before any is removed.
	ScaleDownStabilizationSeconds float64 `json:"scale_down_stabilization_seconds"`
	// ScaleUpWorkers is the number of workers that may be added within a period, if scale_up_percent is not more.
	ScaleUpWorkers int `json:"scale_up_workers"`
	// ScaleUpPercent is the same as a share of the workers at the beginning of the period.
	ScaleUpPercent float64 `json:"scale_up_percent"`
	// ScaleDownPercent is the share of the workers at the beginning of a period that may be removed within it.
	ScaleDownPercent float64 `json:"scale_down_percent"`
	// RatePeriodSeconds is the length of the period of these limits.
	RatePeriodSeconds float64 `json:"rate_period_seconds"`
}

// The metrics of the policy target_tracking, with their targets when none is given.
var trackedMetrics = []trackedMetric{{"waiting_requests", 1}, {"waiting_tokens", 8192}, {"concurrency", 16}, {"kv_utilization", 70}}

type trackedMetric struct {
	name   string
	target float64
}

// defaultTargetTracking is what a horizontal pod autoscaler does unless told otherwise.
func defaultTargetTracking() TargetTracking {
	return TargetTracking{
		Metric: "concurrency", PrefillMetric: "waiting_tokens",
		SyncPeriodSeconds: 15, Tolerance: 0.1, ScaleDownStabilizationSeconds: 300,
		ScaleUpWorkers: 4, ScaleUpPercent: 100, ScaleDownPercent: 100, RatePeriodSeconds: 15,
	}
}

// TrackedMetrics lists the metrics of the policy target_tracking.
func TrackedMetrics() (names []string) {
	for _, m := range trackedMetrics {
		names = append(names, m.name)
	}
	return names
}

// resolve fills in the targets, and reports settings that make no sense.
func (t TargetTracking) resolve(pools []simcore.Pool) (TargetTracking, problem.List) {
	var l problem.List
	if len(pools) == 1 {
		defaults := defaultTargetTracking()
		t.PrefillMetric, t.PrefillTarget = defaults.PrefillMetric, defaults.PrefillTarget
	} else {
		l = append(l, resolveTarget("prefill_", t.PrefillMetric, &t.PrefillTarget, pools[0])...)
	}
	l = append(l, resolveTarget("", t.Metric, &t.Target, pools[len(pools)-1])...)
	for _, n := range []struct {
		key          string
		value, least float64
		what         string
	}{
		{"sync_period_seconds", t.SyncPeriodSeconds, leastSeconds, "a number of seconds, 0.001 or more"},
		{"tolerance", t.Tolerance, 0, "a share of 0 or more, such as 0.1"},
		{"scale_up_stabilization_seconds", t.ScaleUpStabilizationSeconds, 0, "a number of seconds, 0 or more"},
		{"scale_down_stabilization_seconds", t.ScaleDownStabilizationSeconds, 0, "a number of seconds, 0 or more"},
		{"scale_up_workers", float64(t.ScaleUpWorkers), 0, "a number of workers, 0 or more"},
		{"scale_up_percent", t.ScaleUpPercent, 0, "a share in percent, 0 or more"},
		{"scale_down_percent", t.ScaleDownPercent, 0, "a share in percent, 0 or more"},
		{"rate_period_seconds", t.RatePeriodSeconds, 0, "a number of seconds, 0 or more"},
	} {
		if !(n.value >= n.least) || math.IsInf(n.value, 0) {
			l.Add(n.key, n.value, "give %s", n.what)
		}
	}
	if t.ScaleUpWorkers == 0 && t.ScaleUpPercent == 0 {
		l.Add("scale_up_workers", 0, "scale_up_percent is 0 too, so that no worker would ever be added; set one of them above 0")
	}
	return t, l
}

// resolveTarget checks the metric of a pool and gives it its target.
func resolveTarget(prefix, metric string, target *float64, pool simcore.Pool) (l problem.List) {
	at := slices.IndexFunc(trackedMetrics, func(m trackedMetric) bool { return m.name == metric })
	switch {
	case at < 0:
		l.Add(prefix+"metric", metric, "use one of: %s", strings.Join(TrackedMetrics(), ", "))
	case *target < 0 || math.IsNaN(*target) || math.IsInf(*target, 0):
		l.Add(prefix+"target", *target, "give a value above 0, or null for %v", trackedMetrics[at].target)
	case *target == 0:
		*target = trackedMetrics[at].target
	}
	if metric == "kv_utilization" && limitsOf(pool.Stage).kvTokens == 0 {
		l.Add(prefix+"metric", metric, "the size of the KV cache is not known; set engine.num_gpu_blocks, or use another metric")
	}
	return l
}

// tracker is the policy target_tracking at work.
type tracker struct {
	config  Config
	record  *Record
	gpus    *gpuClock
	pools   []*trackedPool
	traffic traffic
	nextMs  float64
}

var (
	_ simcore.Autoscaler      = (*tracker)(nil)
	_ simcore.PassObserver    = (*tracker)(nil)
	_ simcore.RequestObserver = (*tracker)(nil)
)

// newTracker makes the policy for a resolved configuration.
func newTracker(cfg simcore.Config, config Config, record *Record, gpus *gpuClock) *tracker {
	c := &config.TargetTracking
	t := &tracker{config: config, record: record, gpus: gpus, nextMs: c.SyncPeriodSeconds * 1000, traffic: traffic{prompts: newMovingAverage(1)}}
	stages := cfg.Stages()
	for i, stage := range stages {
		p := &trackedPool{
			config: c, metric: c.Metric, target: c.Target, kvTokens: limitsOf(stage.Stage).kvTokens,
			gpus: config.gpusPerWorker(i, cfg), last: map[int32]*workerLoad{},
		}
		if len(stages) == 2 && i == 0 {
			p.metric, p.target = c.PrefillMetric, c.PrefillTarget
		}
		p.advise(0, stage.Workers)
		t.pools = append(t.pools, p)
		record.KVCapacityTokens = append(record.KVCapacityTokens, p.kvTokens)
	}
	return t
}

// NextTickMs implements [simcore.Autoscaler].
func (t *tracker) NextTickMs() float64 { return t.nextMs }

// Pass implements [simcore.PassObserver].
func (t *tracker) Pass(p *simcore.PassMetrics) { t.pools[p.Pool].observe(p) }

// Arrived implements [simcore.RequestObserver].
func (t *tracker) Arrived(_ float64, r *engine.Request) { t.traffic.arrive(r) }

// Completed implements [simcore.RequestObserver].
func (t *tracker) Completed(_ float64, r *engine.Request) { t.traffic.complete(r) }

// Routed implements [simcore.RequestObserver]; a pod autoscaler does not ask the router.
func (t *tracker) Routed(float64, int, int) {}

// Tick implements [simcore.Autoscaler].
func (t *tracker) Tick(nowMs float64, pools []simcore.PoolState) []int {
	now := nowMs / 1000
	wanted := make([]int, len(pools))
	reasons := make([]string, len(pools))
	for i, p := range t.pools {
		asked := len(pools[i].Ready) + pools[i].Starting
		wanted[i], reasons[i] = p.limited(now, asked, p.stabilised(now, asked, p.wanted(pools[i].Ready, asked)))
	}
	t.keepBudget(wanted)
	tick := newPlainTick(t.nextMs, nowMs, pools, &t.traffic, t.gpus)
	changed := false
	for i, p := range t.pools {
		asked := len(pools[i].Ready) + pools[i].Starting
		p.change(now, wanted[i]-asked)
		p.note(&tick.Pools[i], pools[i].Ready)
		p.forget()
		tick.Pools[i].Target, tick.Pools[i].LoadReason = wanted[i], reasons[i]
		if wanted[i] != asked {
			changed = true
			t.record.Decisions = append(t.record.Decisions, Decision{
				AtMs: nowMs, Pool: i, From: asked, To: wanted[i], Reason: reasons[i],
			})
		}
	}
	tick.LoadReason = strings.Join(slices.Compact(reasons), ", ")
	t.record.TickCount++
	t.record.Ticks = append(t.record.Ticks, tick)
	t.nextMs += t.config.TargetTracking.SyncPeriodSeconds * 1000
	if !changed {
		return nil
	}
	return wanted
}

// keepBudget changes numbers of workers so that they are within the budget of GPUs: workers beyond the least ones are taken
// from, or given to, the pool that has the most, or the fewest, GPUs.
func (t *tracker) keepBudget(wanted []int) {
	gpus := func() (sum int) {
		for i, p := range t.pools {
			sum += wanted[i] * p.gpus
		}
		return sum
	}
	for i := range wanted {
		wanted[i] = max(min(wanted[i], mostWorkers), t.config.MinEndpoint)
	}
	for t.config.MinGPUBudget >= 0 && gpus() < t.config.MinGPUBudget {
		fewest := 0
		for i, p := range t.pools {
			if wanted[i]*p.gpus < wanted[fewest]*t.pools[fewest].gpus {
				fewest = i
			}
		}
		wanted[fewest]++
	}
	for t.config.MaxGPUBudget >= 0 && gpus() > t.config.MaxGPUBudget {
		most := -1
		for i, p := range t.pools {
			if wanted[i] > t.config.MinEndpoint && (most < 0 || wanted[i]*p.gpus > wanted[most]*t.pools[most].gpus) {
				most = i
			}
		}
		if most < 0 {
			return
		}
		wanted[most]--
	}
}
