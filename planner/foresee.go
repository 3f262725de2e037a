package planner

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/workload"
)

// foresee looks for the cheapest staffing that keeps the SLA, by simulating. The constant part is exact as far as more
// workers keep the SLA no worse: the least number, or the cheapest pair, is found. From there, and from a few workers more,
// workers are taken away over ever shorter spans of time for as long as the SLA is kept and that is cheaper, so that the
// result takes never more GPU hours than the best constant number, and none of its intervals can do with a worker less.
func foresee(ctx context.Context, cfg simcore.Config, p Config, w *workload.Workload) (*staffing, error) {
	s := &search{ctx: ctx, cfg: cfg, config: p, workload: w, misses: math.MaxInt}
	if !cfg.AgentX.Enabled() {
		s.misses = int(math.Floor(float64(w.Requests())*(1-p.Foresight.Attainment) + 1e-9))
	}
	s.cfg.SLA = simcore.SLA{TTFTMs: p.TTFTMs, ITLMs: p.ITLMs}
	for i := range cfg.Stages() {
		gpus := p.gpusPerWorker(i, cfg)
		s.gpus = append(s.gpus, gpus)
	}
	if err := s.constant(); err != nil {
		return nil, err
	}
	if s.best == nil {
		return s.constantOf(s.greatest()), nil
	}
	if seconds := s.endMs / 1000; seconds > mostIntervals*p.Foresight.IntervalSeconds {
		var l problem.List
		l.Add("planner.foresight.interval_seconds", p.Foresight.IntervalSeconds, "the workload takes %.0f s, which would be more than %d intervals; give %g or more",
			seconds, mostIntervals, math.Ceil(1000*seconds/mostIntervals)/1000)
		return nil, l.Err()
	}
	if !p.Foresight.Variable {
		return s.best, nil
	}
	return s.best, s.vary()
}

// mostIntervals is the most intervals of a staffing.
const mostIntervals = 1 << 16

// search is a search for the cheapest staffing.
type search struct {
	ctx      context.Context
	cfg      simcore.Config
	config   Config
	workload *workload.Workload
	gpus     []int // of a worker of each pool
	misses   int   // requests that may miss the SLA
	endMs    float64
	runs     int       // simulations so far
	limit    int       // no more of them
	endFirst bool      // takes workers away at the end first
	best     *staffing // the cheapest that keeps the SLA; nil before there is one
}

// fits reports whether numbers of workers are within the budget.
func (s *search) fits(workers []int) bool {
	sum := 0
	for i, n := range workers {
		if n < s.config.MinEndpoint {
			return false
		}
		sum += n * s.gpus[i]
	}
	return (s.config.MaxGPUBudget < 0 || sum <= s.config.MaxGPUBudget) && sum >= s.config.MinGPUBudget
}

// mostWorkers is the most workers of a pool that foresight tries and target tracking asks for. Foresight tries numbers one by
// one up to firstTried more than the least, as many as a small deployment has.
const (
	mostWorkers = 1024
	firstTried  = 16
)

// most is the greatest number of workers of a pool within the budget, given those of the other.
func (s *search) most(pool int, workers []int) int {
	if s.config.MaxGPUBudget < 0 {
		return mostWorkers
	}
	left := s.config.MaxGPUBudget
	for i, n := range workers {
		if i != pool {
			left -= n * s.gpus[i]
		}
	}
	return min(left/s.gpus[pool], mostWorkers)
}

// greatest is what the budget allows.
func (s *search) greatest() []int {
	workers := make([]int, len(s.gpus))
	for i := range workers {
		workers[i] = s.config.MinEndpoint
	}
	for fits := true; fits; {
		fits = false
		for i := range workers {
			if workers[i] < s.most(i, workers) {
				workers[i]++
				fits = true
			}
		}
	}
	return workers
}

// constantOf is the staffing that never changes.
func (s *search) constantOf(workers []int) *staffing {
	return &staffing{intervalMs: s.config.Foresight.IntervalSeconds * 1000, workers: [][]int{workers}}
}

// constant finds the best staffing that never changes.
func (s *search) constant() error {
	if len(s.gpus) == 1 {
		return s.leastOf(nil)
	}
	if err := s.try(s.constantOf(s.greatest())); err != nil || s.best == nil {
		return err // if they do not keep the SLA, no fewer do
	}
	for prefill := s.config.MinEndpoint; prefill <= s.most(0, []int{0, s.config.MinEndpoint}); prefill++ {
		if s.best != nil && prefill*s.gpus[0]+s.config.MinEndpoint*s.gpus[1] > s.constantGPUs() {
			return nil // all that follow have more GPUs
		}
		if err := s.leastOf([]int{prefill}); err != nil {
			return err
		}
	}
	return nil
}

// constantGPUs is the number of GPUs of the best constant staffing.
func (s *search) constantGPUs() (gpus int) {
	for i, n := range s.best.workers[0] {
		gpus += n * s.gpus[i]
	}
	return gpus
}

// leastOf finds the least number of workers of the last pool, given those before, that keeps the SLA: one by one where there
// are few, by halves beyond.
func (s *search) leastOf(before []int) error {
	workers := append(before, 0)
	last := len(workers) - 1
	kept := func(n int) (done bool, err error) {
		if workers[last] = n; !s.fits(workers) {
			return false, nil
		}
		p := s.constantOf(slices.Clone(workers))
		err = s.try(p)
		return p.kept || s.dearer(workers), err
	}
	low, high := s.config.MinEndpoint, s.most(last, workers)
	few := min(high, low+firstTried)
	if few < high {
		if done, err := kept(high); err != nil || !done {
			return err
		}
	}
	for ; low <= few; low++ {
		if done, err := kept(low); err != nil || done {
			return err
		}
	}
	for low < high {
		middle := (low + high) / 2
		switch done, err := kept(middle); {
		case err != nil:
			return err
		case done:
			high = middle
		default:
			low = middle + 1
		}
	}
	return nil
}

// dearer reports whether constant numbers have more GPUs than the best ones.
func (s *search) dearer(workers []int) bool {
	gpus := 0
	for i, n := range workers {
		gpus += n * s.gpus[i]
	}
	return s.best != nil && gpus > s.constantGPUs()
}

// starts are where searches begin, and whether they take workers away at the end first. Above is a number of workers more
// than the best constant number: a peak may need more than that, if the rest can do with less.
var starts = []struct {
	above    int
	endFirst bool
}{{0, true}, {0, false}, {1, true}, {1, false}, {2, true}, {2, false}}

// vary improves on the best constant staffing.
func (s *search) vary() error {
	constant := s.best
	intervals := max(1, int(math.Ceil(s.endMs/constant.intervalMs)))
	s.runs = 0
	for i, from := range starts {
		p := s.raised(constant, intervals, from.above)
		if !s.fits(p.workers[0]) {
			return nil
		}
		// Each has half of the simulations that are left, since the first finds most.
		s.limit, s.endFirst = s.config.Foresight.MaxRuns-s.config.Foresight.MaxRuns>>(i+1), from.endFirst
		if err := s.shrink(p, from.above == 0); err != nil {
			return err
		}
	}
	return nil
}

// raised is a constant staffing with some workers more, in intervals. What it takes counts only without more.
func (s *search) raised(constant *staffing, intervals, above int) *staffing {
	p := &staffing{intervalMs: constant.intervalMs, kept: true, gpuHours: math.Inf(1)}
	if above == 0 {
		p.gpuHours = constant.gpuHours
	}
	for range intervals {
		w := append([]int(nil), constant.workers[0]...)
		for i := range w {
			w[i] += above
		}
		p.workers = append(p.workers, w)
	}
	return p
}

// shrink takes workers away from a staffing that keeps the SLA until there is no span in which it can do with one less. It
// begins with the whole or with the halves of it.
func (s *search) shrink(p *staffing, whole bool) error {
	for improved := true; improved && s.runs < s.limit; whole = true {
		improved = false
		for pool := range s.gpus {
			better, err := p, error(nil)
			if whole {
				better, err = s.shrinkSpan(p, pool, 0, len(p.workers))
			} else {
				better, err = s.shrinkHalves(p, pool, 0, len(p.workers))
			}
			if err != nil {
				return err
			}
			improved = improved || better != p
			p = better
		}
	}
	return nil
}

// shrinkSpan takes workers of a pool away over a span of intervals, then over its halves.
func (s *search) shrinkSpan(p *staffing, pool, from, to int) (*staffing, error) {
	for s.runs < s.limit {
		if !s.fitWithLess(p, pool, from, to) {
			break
		}
		less := p.changed(pool, from, to, -1)
		if err := s.try(less); err != nil {
			return p, err
		}
		if !less.kept || less.gpuHours >= p.gpuHours {
			break
		}
		p = less
	}
	return s.shrinkHalves(p, pool, from, to)
}

func (s *search) shrinkHalves(p *staffing, pool, from, to int) (*staffing, error) {
	if to-from < 2 {
		return p, nil
	}
	middle := (from + to) / 2
	halves := [][2]int{{from, middle}, {middle, to}}
	if s.endFirst {
		slices.Reverse(halves)
	}
	for _, half := range halves {
		var err error
		if p, err = s.shrinkSpan(p, pool, half[0], half[1]); err != nil {
			return p, err
		}
	}
	return p, nil
}

// fitWithLess reports whether a staffing is within the budget with a worker of a pool less in a span of intervals.
func (s *search) fitWithLess(p *staffing, pool, from, to int) bool {
	less := make([]int, len(s.gpus))
	for _, w := range p.workers[from:to] {
		copy(less, w)
		if less[pool]--; !s.fits(less) {
			return false
		}
	}
	return true
}

// errMissed ends a simulation that has missed the SLA.
var errMissed = errors.New("the SLA is missed")

// try simulates a staffing, and notes whether it keeps the SLA, and what it takes.
func (s *search) try(p *staffing) error {
	s.runs++
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	trial := &trial{foreseer: foreseer{plan: p, next: 1}, search: s, stop: stop}
	report, err := simcore.Run(ctx, p.with(s.cfg), s.workload, simcore.Options{Autoscaler: trial})
	switch {
	case err != nil && context.Cause(ctx) == errMissed && s.ctx.Err() == nil:
		return nil
	case err != nil:
		return err
	}
	// Without requests there is nothing to miss.
	attained := report.NumRequests == 0 || report.Goodput.SLAAttainment >= s.config.Foresight.Attainment-1e-12
	p.kept, p.gpuHours = attained, report.GPUHours
	if p.kept && (s.best == nil || p.gpuHours < s.best.gpuHours) {
		s.best = p
	}
	if p.kept {
		s.endMs = max(s.endMs, report.DurationMs)
	}
	return nil
}

// trial is a staffing in a simulation that ends when too many requests have missed the SLA.
type trial struct {
	foreseer
	search *search
	stop   context.CancelCauseFunc
	missed int
}

// Arrived implements [simcore.RequestObserver].
func (t *trial) Arrived(float64, *engine.Request) {}

// Completed implements [simcore.RequestObserver].
func (t *trial) Completed(_ float64, r *engine.Request) {
	if t.search.cfg.SLA.KeptBy(r) {
		return
	}
	if t.missed++; t.missed > t.search.misses {
		t.stop(errMissed)
	}
}
