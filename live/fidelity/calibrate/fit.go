package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore"
)

// fitter looks for the values with the least loss: it changes each term a little to see what that does to every sample, solves for
// the change of all terms that would take the differences away, and goes on from there.
type fitter struct {
	ctx context.Context
	cfg simcore.Config
	*observations

	simulations int
	before      values
	free        []int // the terms that are fitted
	left        [termCount]string
	// shrink makes the steps smaller by which terms are changed.
	shrink float64
}

func (f *fitter) fit() (*Result, error) {
	f.before, f.shrink = valuesOf(&f.cfg), 1
	uncalibrated, err := f.run(f.before)
	if err != nil {
		return nil, err
	}
	at := state{f.before, uncalibrated, f.loss(uncalibrated)}
	if err := f.chooseTerms(at); err != nil {
		return nil, err
	}
	var errorOf values
	for {
		if at, err = f.descend(at); err != nil {
			return nil, err
		}
		if errorOf, err = f.standardErrors(at); err != nil {
			return nil, err
		}
		dropped := f.dropUntold(&at.values, errorOf)
		if !dropped {
			break
		}
		if at.simulated, err = f.run(at.values); err != nil {
			return nil, err
		}
		at.loss = f.loss(at.simulated)
	}
	for i := range at.values {
		at.values[i] = round(at.values[i])
	}
	if at.simulated, err = f.run(at.values); err != nil {
		return nil, err
	}
	out := &Result{
		Fitted: f.part(uncalibrated, at.simulated, false), HeldOut: f.part(uncalibrated, at.simulated, true),
		LeftOut: f.leftOut, Together: f.together, Simulations: f.simulations,
	}
	for i, t := range terms {
		out.Terms = append(out.Terms, Term{Key: t.key, Before: f.before[i], After: at.values[i], StandardError: errorOf[i], Left: f.left[i]})
	}
	return out, nil
}

// state is where the search is.
type state struct {
	values
	simulated
	loss float64
}

func (f *fitter) run(v values) (simulated, error) {
	f.simulations++
	return f.simulate(f.ctx, f.cfg, v)
}

// chooseTerms leaves out terms that change nothing.
func (f *fitter) chooseTerms(at state) error {
	for i := range terms {
		f.free = append(f.free, i)
	}
	effects, err := f.effects(at)
	if err != nil {
		return err
	}
	for i, t := range terms {
		const least = 1e-4 // of the latencies, of a step
		sum := 0.0
		for _, e := range effects[i] {
			sum += math.Abs(e * t.step)
		}
		if sum < least*float64(len(f.samples)) {
			f.leave(i, "it changes next to nothing that the run measured")
		}
	}
	return nil
}

// leave takes a term out of those that are fitted.
func (f *fitter) leave(term int, why string) {
	f.free = slices.DeleteFunc(f.free, func(i int) bool { return i == term })
	f.left[term] = why
}

// effects are what one more of each free term adds to the residual of every fitted sample; 0 for those that are held out.
func (f *fitter) effects(at state) (out [termCount][]float64, err error) {
	for _, term := range f.free {
		step := terms[term].step * f.shrink
		changed := at.values
		changed[term] += step
		s, err := f.run(changed)
		if err != nil {
			return out, err
		}
		out[term] = make([]float64, len(f.samples))
		for i := range f.samples {
			if !f.samples[i].heldOut {
				out[term][i] = (f.residual(s, i) - f.residual(at.simulated, i)) / step
			}
		}
	}
	return out, nil
}

// The limits of a search: how often all terms are changed, how often a change is tried shorter when it does not help, how much less
// the loss must be for the search to go on, and how small steps become.
const (
	mostRounds   = 20
	mostTries    = 5
	leastGain    = 1e-4
	leastShrink  = .2
	firstDamping = 1e-3
)

// descend goes on while the loss becomes less.
func (f *fitter) descend(at state) (state, error) {
	damping := firstDamping
	f.shrink = 1
	for range mostRounds {
		if len(f.free) == 0 {
			break
		}
		effects, err := f.effects(at)
		if err != nil {
			return at, err
		}
		system := f.system(at, effects, true)
		next := at
		for range mostTries {
			v := f.change(at.values, &system, damping)
			s, err := f.run(v)
			if err != nil {
				return at, err
			}
			if loss := f.loss(s); loss < next.loss {
				next = state{v, s, loss}
				damping /= 10
				break
			}
			damping = max(damping, firstDamping) * 10
		}
		gained := at.loss - next.loss
		at = next
		if gained > leastGain*at.loss {
			continue
		}
		if f.shrink *= .5; f.shrink < leastShrink {
			break
		}
		damping = firstDamping
	}
	return at, nil
}

// system are the equations whose solution takes away the residuals, as far as the effects of the terms are linear. Robust, each
// sample counts the less the further it is off, so that the solution makes the sum of the sizes least.
func (f *fitter) system(at state, effects [termCount][]float64, robust bool) normal {
	const near = 1e-3 // residuals below this count alike
	var n normal
	for i := range f.samples {
		if f.samples[i].heldOut {
			continue
		}
		r, weight := f.residual(at.simulated, i), 1.0
		if robust {
			weight = 1 / max(math.Abs(r), near)
		}
		for _, a := range f.free {
			n.vector[a] -= weight * effects[a][i] * r
			for _, b := range f.free {
				n.matrix[a][b] += weight * effects[a][i] * effects[b][i]
			}
		}
	}
	return n
}

// change is the values after a step. A term at its least value stays there when the step leads below it, and the others make up
// for that; a term that cannot be told from those before it stays where it is.
func (f *fitter) change(v values, n *normal, damping float64) values {
	moving := slices.Clone(f.free)
	for len(moving) > 0 {
		step, _, ok := n.solve(moving, damping)
		if !ok {
			moving = moving[:len(moving)-1]
			continue
		}
		blocked := slices.IndexFunc(moving, func(i int) bool { return v[i] <= terms[i].least && step[i] < 0 })
		if blocked >= 0 {
			moving = slices.Delete(moving, blocked, blocked+1)
			continue
		}
		for _, i := range moving {
			v[i] = max(v[i]+step[i], terms[i].least)
		}
		break
	}
	return v
}

// standardErrors says how exactly the samples tell each term: +Inf when they do not.
func (f *fitter) standardErrors(at state) (values, error) {
	f.shrink = 1
	effects, err := f.effects(at)
	if err != nil {
		return values{}, err
	}
	system := f.system(at, effects, false)
	var sizes []float64
	for i := range f.samples {
		if !f.samples[i].heldOut {
			sizes = append(sizes, math.Abs(f.residual(at.simulated, i)))
		}
	}
	slices.Sort(sizes)
	// The spread of residuals without the outliers, and how much less exact a fit of sizes is than one of squares.
	const spreadOfMedian, lossOfSizes = 1.4826, 1.2533
	spread := spreadOfMedian * lossOfSizes * sizes[len(sizes)/2]
	var out values
	told := slices.Clone(f.free)
	for len(told) > 0 {
		_, inverse, ok := system.solve(told, 0)
		if !ok {
			last := told[len(told)-1]
			out[last], told = math.Inf(1), told[:len(told)-1]
			continue
		}
		for _, i := range told {
			out[i] = spread * math.Sqrt(inverse[i])
		}
		break
	}
	return out, nil
}

// leastTold is how many standard errors a term must be from what it was to be told from that.
const leastTold = 2

// dropUntold leaves the term that the run tells least as it was, if there is one that it does not tell.
func (f *fitter) dropUntold(v *values, errorOf values) bool {
	told := func(i int) float64 {
		switch distance := math.Abs(v[i] - f.before[i]); {
		case distance == 0:
			return 0
		case errorOf[i] == 0:
			return math.Inf(1)
		default:
			return distance / errorOf[i]
		}
	}
	if len(f.free) == 0 {
		return false
	}
	worst := slices.MinFunc(f.free, func(a, b int) int { return cmp.Or(cmp.Compare(told(a), told(b)), cmp.Compare(b, a)) })
	if told(worst) >= leastTold {
		return false
	}
	why := "the run does not tell it from the other terms"
	if !math.IsInf(errorOf[worst], 0) {
		why = fmt.Sprintf("what fits best, %.3g ± %.2g, is not told from what it was", v[worst], errorOf[worst])
	}
	f.leave(worst, why)
	v[worst] = f.before[worst]
	return true
}
