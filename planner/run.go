package planner

import (
	"context"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Run simulates one configuration on one workload with the planner that p selects. An invalid configuration is a
// [problem.List], with the keys of the planner below "planner"; other errors are those of [simcore.Run].
func Run(ctx context.Context, cfg simcore.Config, p Config, w *workload.Workload, opt simcore.Options) (*Outcome, error) {
	if p.Policy == PolicyStatic {
		report, err := simcore.Run(ctx, cfg, w, opt)
		return &Outcome{Report: report}, err
	}
	r, cfg, err := newRunner(cfg, p)
	if err != nil {
		return nil, err
	}
	if r.config.Policy == PolicyForesight {
		if r.plan, err = foresee(ctx, cfg, r.config, w); err != nil {
			return nil, err
		}
		cfg, r.cfg = r.plan.with(cfg), r.plan.with(r.cfg)
	}
	listen := opt.ScalingEvents
	opt.ScalingEvents = func(e simcore.ScalingEvent) {
		r.gpus.note(e)
		r.record.Events = append(r.record.Events, e)
		if listen != nil {
			listen(e)
		}
	}
	opt.Restarted = func() (simcore.Autoscaler, error) { return r.begin(ctx) }
	if opt.Autoscaler, err = r.begin(ctx); err != nil {
		return nil, err
	}
	report, err := simcore.Run(ctx, cfg, w, opt)
	if err != nil {
		return nil, err
	}
	report.Planning = r.record.planning()
	return &Outcome{Report: report, Record: r.record}, nil
}

// runner has what a policy needs and leaves.
type runner struct {
	cfg    simcore.Config // resolved
	config Config
	plan   *staffing // of the policy foresight
	record *Record
	gpus   *gpuClock
}

// newRunner checks both configurations. It returns what is simulated, which by the rules of old releases differs from cfg.
func newRunner(cfg simcore.Config, p Config) (*runner, simcore.Config, error) {
	resolved, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		return nil, cfg, err
	}
	p, problems = p.Resolve(resolved)
	if err := problems.Err(); err != nil {
		return nil, cfg, err
	}
	if rulesFor(cfg.Compat).PolynomialEngines {
		cfg = polynomialEngines(cfg)
	}
	return &runner{cfg: resolved, config: p}, cfg, nil
}

// begin makes the policy, which knows nothing yet, and empty records.
func (r *runner) begin(ctx context.Context) (simcore.Autoscaler, error) {
	r.record = &Record{Pools: PoolNames(r.cfg), InitialWorkers: initialWorkers(r.cfg), Config: r.config}
	r.gpus = newGPUClock(r.cfg, &r.config)
	switch r.config.Policy {
	case PolicyTargetTracking:
		return newTracker(r.cfg, r.config, r.record, r.gpus), nil
	case PolicyForesight:
		return newForeseer(r.cfg, r.plan, r.record, r.gpus), nil
	}
	scaler, err := newDynamo(r.cfg, r.config, r.record, r.gpus)
	if err != nil {
		return nil, err
	}
	return scaler, scaler.core.warm(ctx)
}

// PoolNames names the pools of a deployment, in the order of [simcore.Config.Stages]: "agg", or "prefill" and "decode".
func PoolNames(cfg simcore.Config) []string {
	if cfg.Deployment.Mode == simcore.ModeDisaggregated {
		return []string{"prefill", "decode"}
	}
	return []string{"agg"}
}

// initialWorkers is the number of workers of each pool.
func initialWorkers(cfg simcore.Config) []int {
	var workers []int
	for _, pool := range cfg.Stages() {
		workers = append(workers, pool.Workers)
	}
	return workers
}

// polynomialEngines lets engines that have timing tables take as long as the default model says.
func polynomialEngines(cfg simcore.Config) simcore.Config {
	for _, t := range []*perfmodel.Config{&cfg.Timing, &cfg.Prefill.Timing, &cfg.Decode.Timing} {
		if t.Source == perfmodel.SourceTable || t.Source == perfmodel.SourceAuto {
			polynomial := perfmodel.DefaultConfig()
			polynomial.Source, polynomial.TP, polynomial.DP, polynomial.EP = perfmodel.SourcePolynomial, t.TP, t.DP, t.EP
			*t = polynomial
		}
	}
	return cfg
}
