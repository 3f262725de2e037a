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
	resolved, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		return nil, err
	}
	p, problems = p.Resolve(resolved)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if rulesFor(cfg.Compat).PolynomialEngines {
		cfg = polynomialEngines(cfg)
	}
	var plan *staffing
	if p.Policy == PolicyForesight {
		var err error
		if plan, err = foresee(ctx, cfg, p, w); err != nil {
			return nil, err
		}
		cfg, resolved = plan.with(cfg), plan.with(resolved)
	}
	record := &Record{Pools: poolNames(resolved), Config: p}
	gpus := newGPUClock(resolved, &p)
	listen := opt.ScalingEvents
	opt.ScalingEvents = func(e simcore.ScalingEvent) {
		gpus.note(e)
		record.Events = append(record.Events, e)
		if listen != nil {
			listen(e)
		}
	}
	switch p.Policy {
	case PolicyTargetTracking:
		opt.Autoscaler = newTracker(resolved, p, record, gpus)
	case PolicyForesight:
		opt.Autoscaler = newForeseer(resolved, plan, record, gpus)
	default:
		scaler, err := newDynamo(resolved, p, record, gpus)
		if err != nil {
			return nil, err
		}
		if err := scaler.core.warm(ctx); err != nil {
			return nil, err
		}
		opt.Autoscaler = scaler
	}
	report, err := simcore.Run(ctx, cfg, w, opt)
	if err != nil {
		return nil, err
	}
	report.Planning = record.planning()
	return &Outcome{Report: report, Record: record}, nil
}

// poolNames names the pools of a deployment.
func poolNames(cfg simcore.Config) []string {
	if cfg.Deployment.Mode == simcore.ModeDisaggregated {
		return []string{"prefill", "decode"}
	}
	return []string{"agg"}
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
