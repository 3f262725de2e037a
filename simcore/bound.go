package simcore

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/simcore/engine"
)

// Bound is an upper bound on a latency of a report, such as p99_ttft_ms <= 1500, which a run may end for as soon as it can
// no longer hold; see [Options].Bounds.
type Bound struct {
	// Metric is the name of the figure in the report: mean, median, p75, p90, p95, p99 or max of ttft_ms, tpot_ms or
	// e2e_latency_ms. No run ends for any other figure, since it cannot be told from a part of the run.
	Metric string `json:"metric"`
	// Limit is the largest value that keeps the bound, in ms.
	Limit float64 `json:"limit"`
}

// String formats the bound as a constraint.
func (b Bound) String() string {
	return b.Metric + " <= " + strconv.FormatFloat(b.Limit, 'f', -1, 64)
}

// LostError reports a run that ended because a bound could no longer hold, however it would have gone on.
type LostError struct {
	// Bound is the bound that was lost.
	Bound Bound
	// TimeMs is where the simulated clock stood. Workers that nothing couples are simulated one after another, so it is
	// that of one of them.
	TimeMs float64
	// Beyond counts the requests that were beyond the limit by then, and Requests all that could count.
	Beyond, Requests int64
}

// Error names the bound, the time and the evidence.
func (e *LostError) Error() string {
	return fmt.Sprintf("%s%s: %d of %d requests were beyond %s ms after %s simulated s",
		e.Bound, cannotHold, e.Beyond, e.Requests, strconv.FormatFloat(e.Bound.Limit, 'f', -1, 64), strconv.FormatFloat(e.TimeMs/1000, 'f', 3, 64))
}

// cannotHold follows the bound in the message of a [LostError].
const cannotHold = " can no longer hold"

// LostBound returns the bound that the message of a [LostError] names, as results files keep it; false when the text is none.
func LostBound(message string) (Bound, bool) {
	bound, _, ok := strings.Cut(message, cannotHold)
	metric, limit, both := strings.Cut(bound, " <= ")
	ms, err := strconv.ParseFloat(limit, 64)
	return Bound{Metric: metric, Limit: ms}, ok && both && err == nil
}

// ReasonLost is the stable category of a [LostError] in results.
const ReasonLost = "sla_lost"

// Reason is the stable category of the error in results.
func (e *LostError) Reason() string { return ReasonLost }

// latency is a time of a request that bounds are about.
type latency int8

const (
	firstToken latency = iota
	perToken
	wholeRequest
)

// watched is a bound with what is needed to tell that it is lost.
//
// A percentile q of n samples is the one at rank round((n-1)*q/100), from 0, so it is beyond a limit when at least
// n - round((n-1)*q/100) samples are. That number does not fall as n grows, so with as many samples as there can be at
// most it is enough for any smaller number of them. A mean is the sum over n: with a lower bound of the sum and the most
// samples it is too small, never too large.
type watched struct {
	Bound
	of latency
	// most is the largest number of samples, needed how many of them must be beyond the limit; 0 for a mean.
	most, needed int64
	// beyond and sum are what workers that are done have given, beyondNow and sumNow with those that are not.
	beyond, beyondNow int64
	sum, sumNow       float64
}

// watch tells as early as it can that bounds are lost. It is nil when there are none to watch.
type watch struct {
	bounds []watched
	// next is the step at which it looks again, and every how many steps are between: a look at all requests shall cost
	// less than the steps since the one before.
	next, every int
	// capped says that requests may be left unfinished, so that only completed ones count.
	capped bool
	stages []Pool
}

// newWatch watches the bounds of the options. Those of a scenario are not, since it decides on its way what is measured.
func (s *simulation) newWatch() *watch {
	if len(s.opt.Bounds) == 0 || s.cfg.AgentX.Enabled() {
		return nil
	}
	w := &watch{capped: s.cfg.Load.MaxSimTimeSeconds > 0, stages: s.cfg.Stages()}
	for _, b := range s.opt.Bounds {
		if x, ok := newWatched(b, s.workload.Output); ok {
			w.bounds = append(w.bounds, x)
		}
	}
	if len(w.bounds) == 0 {
		return nil
	}
	w.restart(s.workload.Requests())
	return w
}

func newWatched(b Bound, outputs []int32) (watched, bool) {
	statistic, name, _ := strings.Cut(b.Metric, "_")
	of := slices.Index([]string{"ttft_ms", "tpot_ms", "e2e_latency_ms"}, name)
	percent, known := map[string]float64{"mean": math.NaN(), "median": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99, "max": 100}[statistic]
	if of < 0 || !known {
		return watched{}, false
	}
	w := watched{Bound: b, of: latency(of)}
	for _, tokens := range outputs {
		if tokens > 1 || tokens == 1 && w.of != perToken {
			w.most++
		}
	}
	if !math.IsNaN(percent) {
		w.needed = max(1, w.most-int64(math.Round(float64(w.most-1)*percent/100)))
	}
	return w, w.most > 0
}

// restart begins to count the steps anew, with so many requests to look at.
func (w *watch) restart(requests int) {
	if w != nil {
		w.every = max(16, requests/8)
		w.next = w.every
	}
}

// due reports whether it is time for a look.
func (w *watch) due(step int) bool { return w != nil && step >= w.next }

// look returns a [*LostError] when a bound is lost by what happened to the requests until now, and what is bound to
// happen to them after.
func (w *watch) look(requests []engine.Request, now float64) error {
	w.next += w.every
	w.count(requests, now)
	for i := range w.bounds {
		b := &w.bounds[i]
		lost := b.needed > 0 && b.beyondNow >= b.needed
		if b.needed == 0 { // sums are rounded, and in another order than that of the report
			lost = b.sumNow/float64(b.most) > b.Limit*(1+1e-9)
		}
		if lost {
			return &LostError{Bound: b.Bound, TimeMs: now, Beyond: b.beyondNow, Requests: b.most}
		}
	}
	return nil
}

// settle keeps what the requests of a worker gave that is done at the given time.
func (w *watch) settle(requests []engine.Request, now float64) {
	if w == nil {
		return
	}
	w.count(requests, now)
	for i := range w.bounds {
		b := &w.bounds[i]
		b.beyond, b.sum = b.beyondNow, b.sumNow
	}
}

// count adds up what the requests give at least.
func (w *watch) count(requests []engine.Request, now float64) {
	for i := range w.bounds {
		b := &w.bounds[i]
		b.beyondNow, b.sumNow = b.beyond, b.sum
	}
	for i := range requests {
		q := &requests[i]
		if !w.counts(q) {
			continue
		}
		for j := range w.bounds {
			b := &w.bounds[j]
			ms, ok := b.of.atLeast(q, now)
			if !ok {
				continue
			}
			b.sumNow += ms
			if ms > b.Limit {
				b.beyondNow++
			}
		}
	}
}

// counts reports whether a request is sure to be among the completed ones of the report, unless the run ends in an error.
func (w *watch) counts(q *engine.Request) bool {
	switch q.State {
	case engine.Completed:
		return true
	case engine.Pending, engine.Rejected, engine.Failed:
		return false
	}
	return !w.capped && w.fits(q)
}

// fits reports whether no worker can reject a request.
func (w *watch) fits(q *engine.Request) bool {
	for i := range w.stages {
		e := &w.stages[i].Engine
		// Schedulers keep up to a block for themselves, and round lengths up to whole ones.
		if int(q.Input)+int(q.Output)+2*e.BlockSize > e.NumGPUBlocks*e.BlockSize || e.ContextLength > 0 && int(q.Input) >= e.ContextLength {
			return false
		}
	}
	return true
}

// atLeast is what a request gives at least, in ms, when all that happened until now is known and what a pass under way
// does counts from its end. It is false when the request gives nothing, or nothing yet.
func (l latency) atLeast(q *engine.Request, now float64) (ms float64, ok bool) {
	last := now
	if q.State == engine.Completed {
		last = q.LastTokenMs
	}
	switch {
	case q.Output == 0:
		return 0, false
	case l == wholeRequest:
		return max(0, last-q.ArrivalMs), true
	case l == firstToken && q.FirstTokenMs != engine.Never:
		return max(0, q.FirstTokenMs-q.ArrivalMs), true
	case l == firstToken:
		return max(0, now-q.ArrivalMs), true
	case q.FirstTokenMs == engine.Never || q.Output < 2:
		return 0, false
	}
	return max(0, (last-q.FirstTokenMs)/float64(q.Output-1)), true
}
