package simcore

import (
	"context"
	"fmt"
	"math"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// SemanticVersion names the behaviour of the simulator. It changes whenever the same configuration and workload
// give other figures, and is part of every content ID.
const SemanticVersion = "6"

// Report is the outcome of one simulation.
type Report = metrics.Report

// StuckError reports a request that can make no progress, ever.
type StuckError = engine.StuckError

// Options are what a run may do besides returning its report.
type Options struct {
	// Records, when set, receives the record of every request that arrived, in order of arrival.
	Records func(RequestRecord)
	// Autoscaler, when set, changes how many workers there are.
	Autoscaler Autoscaler
	// Restarted returns the autoscaler of a simulation that begins anew, so that all that was told before is void. Only the
	// AgentX scenario does that, when its users play more conversations than were planned; without Restarted it then fails.
	Restarted func() (Autoscaler, error)
	// ScalingEvents, when set, hears of each worker that comes or goes, as it does.
	ScalingEvents func(ScalingEvent)
	// Bounds end the run with a [*LostError] as soon as one of them can no longer hold, whatever happens after. A run that
	// is not ended by them is as it is without.
	Bounds []Bound
	// everyPass simulates each pass by itself, for tests that compare with the faster way.
	everyPass bool
	// plan changes how conversations are expanded to those of a scenario, for tests.
	plan func(*workload.AgentXPlan)
	// oneClock simulates all workers on one clock even when nothing couples them, for tests that compare both.
	oneClock bool
	// model replaces the timing model that the configuration selects, for tests.
	model perfmodel.Model
}

// Run simulates one configuration on one workload. It is deterministic and single-threaded, and returns early
// with the context's error when ctx is cancelled. An invalid configuration is a [problem.List]; a workload that
// can make no progress is a [*StuckError].
func Run(ctx context.Context, cfg Config, w *workload.Workload, opt Options) (*Report, error) {
	cfg, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		return nil, err
	}
	s, err := simulateResolved(ctx, cfg, w, opt)
	if err != nil {
		return nil, err
	}
	defer s.free()
	s.emitRecords()
	r := s.report()
	if s.scenario != nil {
		r.WorkloadDigest = s.scenario.base.Digest()
		r.AgentX, err = s.totals.agentX.report(Scenario{s.scenario, s.workload}, r, s.totals.warmUps, cfg.Stages()[0].Engine.BlockSize, r.MeanGPUs)
	}
	return r, err
}

// simulateResolved runs a resolved configuration: as it is, or on the conversations of its scenario.
func simulateResolved(ctx context.Context, cfg Config, w *workload.Workload, opt Options) (*simulation, error) {
	if cfg.AgentX.Enabled() {
		return simulateAgentX(ctx, cfg, w, opt)
	}
	s, err := newSimulation(ctx, cfg, w, opt)
	if err != nil {
		return nil, err
	}
	return s, s.run()
}

// free leaves the room of distributions that have been reported to the runs that come.
func (s *simulation) free() {
	s.totals.free()
	s.gaps.Free()
}

// run lets time pass until nothing more happens.
func (s *simulation) run() error {
	switch {
	case s.cfg.Deployment.Mode == ModeDisaggregated:
		return s.runDisaggregated()
	case s.independent() && !s.opt.oneClock:
		return s.runAlone()
	}
	return s.runCluster()
}

// simulation is the state of one run.
type simulation struct {
	released
	ctx   context.Context
	rules rules.Set
	opt   Options
	env   engine.Environment // of the workers of an aggregated deployment
	gaps  *metrics.GapRecorder

	overheadMs   float64 // between a request's arrival and the router
	arrived      int64
	preemptions  int64
	passes       int64
	extrapolated int64   // passes outside of the data behind the timing model
	endMs        float64 // when the last event happened
	// busy is how long the workers of each pool were busy, in ns and in the order of [Config.Stages]: what they begin takes
	// off when it starts, and adds when it ends. Sums of whole numbers do not depend on their order.
	busy     [2]int64
	limited  engine.LimitedTimes // what kept workers from admitting requests
	capped   bool                // something was left to happen after the time cap
	stuck    error               // the first dead end, where it may be beyond the cap
	totals   totals
	emit     func(RequestRecord)
	records  []RequestRecord
	handoffs []Handoff // of each request of a disaggregated deployment
	tiers    *tiers.Hierarchy
	scaling  *scaling  // nil when the number of workers does not change
	watch    *watch    // nil without bounds
	measured *Measured // nil where requests are simulated
	online   *Online   // nil when all requests are known beforehand
}

// checkEvery is how many steps go by between two looks at the context.
const checkEvery = 1024

func newSimulation(ctx context.Context, cfg Config, w *workload.Workload, opt Options) (*simulation, error) {
	set, err := rules.For(cfg.Compat)
	if err != nil {
		return nil, err
	}
	if err := cfg.suits(w, set); err != nil {
		return nil, err
	}
	s := &simulation{released: released{cfg: cfg, workload: w, stop: math.Inf(1)}, ctx: ctx, rules: set, opt: opt, emit: opt.Records, gaps: &metrics.GapRecorder{}}
	s.overheadMs = cfg.RequestOverheadMs()
	s.totals.grow(w.Requests())
	if cfg.Load.MaxSimTimeSeconds > 0 {
		s.stop = math.Nextafter(cfg.Load.MaxSimTimeSeconds*1000, math.Inf(1))
	}
	s.scaling, s.watch = s.newScaling(), s.newWatch()
	if cfg.Deployment.Mode == ModeAggregated {
		if s.env, err = s.environment(Stage{cfg.Engine, cfg.Timing}, engine.Aggregated); err != nil {
			return nil, err
		}
		s.newTiers(cfg.Deployment.Workers, &s.env)
	}
	return s, nil
}

// suits reports requests that cannot be replayed under the configuration's load and deployment.
func (c Config) suits(w *workload.Workload, set rules.Set) error {
	if ok, session := w.HasArrivals(); c.Load.Mode == LoadTrace && !ok {
		return fmt.Errorf("load.mode: trace needs the start of every session, and the first turn of session %s of %s has no timestamp; use mode concurrency or rate",
			w.SessionName(session), w.Name)
	}
	pools := c.Deployment.Mode == ModeDisaggregated && set.NoGraphPools
	switch {
	case w.Graph != nil && c.Load.Mode != LoadTrace && set.NoGraphLanes:
		return fmt.Errorf("load.mode: the requests of %s wait for each other, and with compat %s they are replayed with mode trace only; leave compat out", w.Name, c.Compat)
	case w.Graph != nil && pools:
		return fmt.Errorf("deployment.mode: the requests of %s wait for each other, and with compat %s they are replayed with mode aggregated only; leave compat out", w.Name, c.Compat)
	case w.Format == workload.FormatMooncakeDelta && pools:
		return fmt.Errorf("deployment.mode: %s is of format %s, which is replayed with mode aggregated only under compat %s; leave compat out", w.Name, w.Format, c.Compat)
	}
	return nil
}

// environment is what the workers of a pool share, apart from their requests.
func (s *simulation) environment(stage Stage, role engine.Role) (engine.Environment, error) {
	model := s.opt.model
	if model == nil {
		var err error
		if model, err = perfmodel.New(stage.Timing); err != nil {
			return engine.Environment{}, err
		}
	}
	blocks, err := s.workload.Blocks(stage.Engine.BlockSize, stage.Engine.SharesPrefixes(s.rules))
	if err != nil {
		return engine.Environment{}, err
	}
	env := engine.Environment{
		Config:      stage.workerLimits(s.rules),
		Rules:       s.rules,
		Model:       model,
		Blocks:      blocks,
		Gaps:        s.gaps,
		Capped:      s.cfg.Load.MaxSimTimeSeconds > 0 || s.cfg.AgentX.Enabled(),
		Role:        role,
		RoleUnknown: stage.Engine.WorkerType == engine.WorkerTypeAggregated,
		EveryPass:   s.opt.everyPass || blocks.KnownOutputs,
	}
	if s.scaling != nil {
		env.Passes = s.scaling.log
	}
	if role == engine.Decode {
		env.Pool = 1
	}
	if s.online != nil {
		env.Gaps, env.Capped = noGaps{}, true
	}
	return env, nil
}

// workerLimits is the engine's configuration with the limits of all data-parallel ranks of a worker, which one
// scheduler fills.
func (s Stage) workerLimits(set rules.Set) engine.Config {
	e := s.Engine
	if !set.SharedRankLimits {
		e.MaxNumSeqs *= s.Timing.Ranks()
		e.MaxNumBatchedTokens *= s.Timing.Ranks()
	}
	return e
}

// newRequest prepares the life of a request before it arrives.
func (s *simulation) newRequest(number int32, cfg *engine.Config) engine.Request {
	r := engine.Request{
		Number: number, Input: s.workload.Input[number], Output: s.workload.Output[number],
		ArrivalMs: engine.Never, RoutedMs: engine.Never, AdmittedMs: engine.Never,
		FirstTokenMs: engine.Never, SecondTokenMs: engine.Never, LastTokenMs: engine.Never,
	}
	if limit := cfg.ContextLength; limit > 0 && int(r.Input) < limit && int(r.Input)+int(r.Output) > limit {
		r.Output = int32(limit) - r.Input
		r.Truncated = true
	}
	if room, limited := cfg.OutputRoom(int(r.Input)); limited && room > 0 && int(r.Output) > room {
		r.Output = int32(room)
		r.Truncated = true
	}
	return r
}

// independent reports whether nothing couples the workers: who serves a request then depends on nothing but its
// place in the order of arrival, and the workers can be simulated one after another.
func (s *simulation) independent() bool {
	return s.tiers == nil && s.scaling == nil && s.cfg.Router.Policy == router.PolicyRoundRobin && s.cfg.Load.Mode != LoadConcurrency &&
		s.workload.SingleTurn() && s.workload.Graph == nil
}
