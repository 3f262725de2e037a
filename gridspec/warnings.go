package gridspec

import (
	"cmp"
	"slices"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// Warnings lists what a spec says that is allowed but hardly meant: environment variables that change nothing, and
// axes that the timing model cannot judge. A warning has the form of a problem.
func (s *Spec) Warnings() Problems { return slices.Clone(s.warnings()) }

// trap is a quantity that the polynomial timing model cannot judge.
type trap struct {
	keys    []string
	measure func(*simcore.Stage) int
	why     string
}

func traps() []trap {
	return []trap{
		{
			[]string{"timing.tp", "timing.dp"},
			func(c *simcore.Stage) int { return c.GPUsPerWorker() },
			"the polynomial timing model does not know it: more GPUs for one worker make nothing faster, so 1 always wins per GPU",
		},
		{
			[]string{"engine.num_gpu_blocks", "engine.block_size"},
			func(c *simcore.Stage) int {
				blockSize, _ := c.Engine.ResolvedBlockSize()
				return cmp.Or(c.Engine.NumGPUBlocks, engine.DefaultNumGPUBlocks) * blockSize
			},
			"with the polynomial timing model a decode step takes as long as the held share of the KV pool says, so a larger pool looks faster; " +
				"compare pools of the same number of tokens",
		},
	}
}

// timingWarnings finds the axes whose points the polynomial model makes look better or worse than they are, and planners whose
// figures it makes look like those of a GPU.
func (s *Spec) timingWarnings() Problems {
	if !s.usesPolynomial() {
		return nil
	}
	var out Problems
	for _, t := range traps() {
		for _, f := range s.factors {
			if at := s.variedBy(f, t); at != "" {
				p := Problem{Where: s.layers.parser.origins.where(at)}
				p.Path, p.Allowed = at, t.why
				out = append(out, p)
			}
		}
	}
	if at := s.plannedAt(); at != "" {
		p := Problem{Where: s.layers.parser.origins.where(at)}
		p.Path, p.Allowed = at, "the polynomial timing model is of no GPU and no model: what it gives per GPU, and GPU hours, compares policies with each other only; "+
			"timing.gpu and timing.model give those of a GPU"
		out = append(out, p)
	}
	return out
}

// plannedAt returns the place of the first key that selects a planner; empty when no point has one.
func (s *Spec) plannedAt() (at string) {
	if s.base.config.Planned() {
		return plannerPrefix + "policy"
	}
	s.eachRow(func(o option) {
		for _, a := range o.set {
			if at == "" && a.key.path == plannerPrefix+"policy" && planner.Policy(a.value.String()) != planner.PolicyStatic {
				at = a.at
			}
		}
	})
	return at
}

// usesPolynomial reports whether some point has the polynomial timing model.
func (s *Spec) usesPolynomial() bool {
	decides := func(a assignment) bool {
		return slices.Contains([]string{"timing.source", "timing.gpu", "timing.model", "timing.profile"}, commonPath(a.key.path))
	}
	for _, f := range s.factors {
		some, all := false, true
		for _, o := range f.rows {
			decided := slices.ContainsFunc(o.set, decides)
			if decided && !some {
				point := s.with(o)
				some = isPolynomial(&point)
			}
			all = all && decided
		}
		if some || all && len(f.rows) > 0 {
			return some
		}
	}
	point := s.with(option{})
	return isPolynomial(&point)
}

// with is a point of the base with one option.
func (s *Spec) with(o option) settings {
	point := s.base
	point.workload = cloneWorkload(point.workload)
	o.apply(&point)
	point.implyModes()
	point.settle()
	return point
}

// isPolynomial reports whether a pool of a point has the polynomial timing model.
func isPolynomial(s *settings) bool {
	return slices.ContainsFunc(s.config.Stages(), func(p simcore.Pool) bool {
		return p.Timing.ChosenSource() == perfmodel.SourcePolynomial
	})
}

// variedBy returns the place of the key by which a factor varies a quantity; empty when it does not.
func (s *Spec) variedBy(f factor, t trap) string {
	at := ""
	for _, o := range f.rows {
		for _, a := range o.set {
			if at == "" && slices.Contains(t.keys, commonPath(a.key.path)) {
				at = a.at[:len(a.at)-len(lastIndex(a.at))]
			}
		}
	}
	if at == "" || !s.varies(f, t) {
		return ""
	}
	return at
}

// varies reports whether a quantity differs between the rows of a factor.
func (s *Spec) varies(f factor, t trap) bool {
	var first []int
	for _, o := range f.rows {
		point := s.with(o)
		var measured []int
		for _, pool := range point.config.Stages() {
			measured = append(measured, t.measure(&pool.Stage))
		}
		if first == nil {
			first = measured
		} else if !slices.Equal(measured, first) {
			return true
		}
	}
	return false
}
