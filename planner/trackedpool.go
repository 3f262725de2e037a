package planner

import (
	"math"

	"github.com/servegrid/servegrid/simcore"
)

// trackedPool is a pool of workers as the policy target_tracking sees it.
type trackedPool struct {
	config   *TargetTracking
	metric   string
	target   float64
	kvTokens int64 // of a worker
	gpus     int   // of a worker
	// last is what the workers did last, since the last look; those that did nothing are not in it.
	last map[int32]*workerLoad
	// advice holds what was wanted within the stabilisation windows, changes what was done within the rate period.
	advice, changes []timedCount
}

// timedCount is a number of workers, or a change of it, at a time in seconds.
type timedCount struct {
	at      float64
	workers int
}

// workerLoad is what a worker does.
type workerLoad struct {
	waiting, waitingTokens, queuedDecodeTokens   int64
	prompts, promptTokens, decodes, decodeTokens int64
}

// observe takes a pass into account. Some engines compute prompts and decode in turn; what decodes is then that of the
// last pass that decoded.
func (p *trackedPool) observe(m *simcore.PassMetrics) {
	w := p.last[m.Worker]
	if w == nil {
		w = &workerLoad{}
		p.last[m.Worker] = w
	}
	w.waiting = int64(m.QueuedPrefills + m.QueuedDecodes)
	w.waitingTokens, w.queuedDecodeTokens = m.QueuedPrefillTokens, m.QueuedDecodeKVTokens
	w.prompts, w.promptTokens = int64(m.PrefillRequests), m.PrefillTokens+m.PrefillKVTokens
	if m.DecodeRequests > 0 {
		w.decodes, w.decodeTokens = int64(m.DecodeRequests), m.DecodeKVTokens
	}
}

// value is the metric of a worker.
func (p *trackedPool) value(worker int32) float64 {
	w := p.last[worker]
	if w == nil {
		return 0
	}
	switch p.metric {
	case "waiting_requests":
		return float64(w.waiting)
	case "waiting_tokens":
		return float64(w.waitingTokens + w.queuedDecodeTokens)
	case "concurrency":
		return float64(w.waiting + w.prompts + w.decodes)
	}
	return 100 * min(1, float64(w.promptTokens+w.decodeTokens)/float64(p.kvTokens))
}

// forget begins a new look.
func (p *trackedPool) forget() { clear(p.last) }

// wanted is the number of workers that the metric asks for, when so many are asked for already. Workers that are not ready
// count as idle when the metric asks for more, so that those on their way are not asked for again; when that turns the
// answer round, nothing changes.
func (p *trackedPool) wanted(ready []int32, asked int) int {
	if len(ready) == 0 {
		return asked
	}
	sum := 0.0
	for _, worker := range ready {
		sum += p.value(worker)
	}
	ratio := sum / float64(len(ready)) / p.target
	if math.Abs(ratio-1) <= p.config.Tolerance+1e-9 {
		return asked
	}
	if ratio < 1 || asked == len(ready) {
		return workersFor(ratio * float64(len(ready)))
	}
	ratio = sum / float64(asked) / p.target
	if ratio <= 1+p.config.Tolerance+1e-9 {
		return asked
	}
	return max(asked, workersFor(ratio*float64(asked)))
}

// workersFor rounds a number of workers up, unless it is a whole number but for rounding; no pool has more than maxWorkers.
func workersFor(n float64) int { return int(min(math.Ceil(n-1e-9), maxWorkers)) }

// advise notes what is wanted.
func (p *trackedPool) advise(now float64, workers int) {
	window := max(p.config.ScaleUpStabilizationSeconds, p.config.ScaleDownStabilizationSeconds)
	p.advice = append(since(p.advice, now-window), timedCount{now, workers})
}

// since drops what was at a time or before.
func since(counts []timedCount, at float64) []timedCount {
	for len(counts) > 0 && counts[0].at <= at {
		counts = counts[1:]
	}
	return counts
}

// stabilised is the number of workers to go to when so many are wanted: as many more as were wanted all the time of one
// window, as many fewer as were wanted all the time of the other.
func (p *trackedPool) stabilised(now float64, asked, wanted int) int {
	p.advise(now, wanted)
	up, down := wanted, wanted
	for _, a := range p.advice {
		if a.at > now-p.config.ScaleUpStabilizationSeconds {
			up = min(up, a.workers)
		}
		if a.at > now-p.config.ScaleDownStabilizationSeconds {
			down = max(down, a.workers)
		}
	}
	return min(max(asked, up), down)
}

// limited is the number of workers to go to now, as the rates allow, and why.
func (p *trackedPool) limited(now float64, asked, wanted int) (workers int, reason string) {
	p.changes = since(p.changes, now-p.config.RatePeriodSeconds)
	up, down := 0, 0
	for _, c := range p.changes {
		up += max(0, c.workers)
		down += max(0, -c.workers)
	}
	start := float64(asked - up + down)
	switch {
	case wanted > asked:
		most := max(start+float64(p.config.ScaleUpWorkers), math.Ceil(start*(1+p.config.ScaleUpPercent/100)))
		return min(wanted, max(asked, workersFor(most))), "scale_up"
	case wanted < asked:
		least := start * max(0, 1-p.config.ScaleDownPercent/100)
		return max(wanted, min(asked, int(least))), "scale_down"
	}
	return asked, "no_change"
}

// change notes how many workers are added, or removed when negative.
func (p *trackedPool) change(now float64, workers int) {
	if workers != 0 {
		p.changes = append(p.changes, timedCount{now, workers})
	}
}

// note records what the ready workers did last.
func (p *trackedPool) note(t *PoolTick, ready []int32) {
	for _, worker := range ready {
		seen := WorkerTick{Worker: worker}
		if w := p.last[worker]; w != nil {
			seen.QueuedPrefillTokens, seen.QueuedDecodeKVTokens, seen.DecodeKVTokens = w.waitingTokens, w.queuedDecodeTokens, w.decodeTokens
		}
		t.Workers = append(t.Workers, seen)
	}
}
