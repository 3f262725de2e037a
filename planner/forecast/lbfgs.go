package forecast

import "math"

// objective is a function to minimise: it returns the value at x and puts its derivatives into gradient.
type objective func(x, gradient []float64) (value float64)

// The settings of SciPy's fmin_l_bfgs_b, which the order and the forecasts of ARIMA models depend on in the reference, where
// few iterations are allowed.
const (
	// lbfgsMemory is the number of steps that the curvature is learnt from.
	lbfgsMemory = 10
	// lbfgsGradientTolerance ends the search when no derivative is greater, lbfgsValueTolerance when a step gains relatively less.
	lbfgsGradientTolerance = 1e-5
	lbfgsValueTolerance    = 1e7 * 0x1p-52
	// differenceStep is the step of the forward differences that stand in for derivatives.
	differenceStep = 1e-5
)

// lbfgs minimises a function without bounds by the method of Broyden, Fletcher, Goldfarb and Shanno with limited memory (Byrd,
// Lu, Nocedal and Zhu, 1995).
type lbfgs struct {
	f objective
	// x is where the search is, value and gradient what it is like there.
	x, gradient []float64
	value       float64
	// steps and bends are the latest changes of x and of the gradient, oldest first.
	steps, bends [][]float64
}

// minimise searches from x, which it moves to the best point it finds in so many iterations.
func minimise(f objective, x []float64, iterations int) {
	s := &lbfgs{f: f, x: x, gradient: make([]float64, len(x))}
	s.value = f(s.x, s.gradient)
	for done := 0; done < iterations && maxAbs(s.gradient) > lbfgsGradientTolerance; done++ {
		before := s.value
		if !s.step(done == 0) || before-s.value <= lbfgsValueTolerance*max(math.Abs(before), math.Abs(s.value), 1) {
			return
		}
	}
}

// step moves to a better point along the quasi-Newton direction; where that fails, what was learnt of the curvature is
// forgotten and the gradient is followed. It returns false where no better point is found even so.
func (s *lbfgs) step(first bool) bool {
	n := len(s.x)
	x, gradient := make([]float64, n), make([]float64, n)
	for {
		direction := s.direction()
		for i, at := range s.x { // what rounding leaves of it, which is what counts where numbers are great and steps are small
			direction[i] = (at + direction[i]) - at
		}
		slope := dot(s.gradient, direction)
		if slope < 0 {
			length := 1.0
			if first {
				length = min(1/math.Sqrt(dot(direction, direction)), maxStepLength)
			}
			var value float64
			search := newLineSearch(s.value, slope, length)
			found := search.run(func(length float64) (float64, float64) {
				for i := range x {
					x[i] = s.x[i] + length*direction[i]
				}
				value = s.f(x, gradient)
				return value, dot(gradient, direction)
			})
			if found {
				s.remember(direction, search.length, gradient, slope)
				copy(s.x, x)
				copy(s.gradient, gradient)
				s.value = value
				return true
			}
		}
		if len(s.steps) == 0 {
			return false
		}
		s.steps, s.bends = s.steps[:0], s.bends[:0]
	}
}

// remember keeps what a step along a direction, with a slope at its start and a gradient at its end, tells of the curvature,
// unless that is not positive.
func (s *lbfgs) remember(direction []float64, length float64, gradient []float64, slope float64) {
	if dot(gradient, direction)-slope <= 0x1p-52*-slope {
		return
	}
	step, bend := make([]float64, len(direction)), make([]float64, len(direction))
	for i := range direction {
		step[i] = length * direction[i]
		bend[i] = gradient[i] - s.gradient[i]
	}
	if len(s.steps) == lbfgsMemory {
		s.steps, s.bends = s.steps[1:], s.bends[1:]
	}
	s.steps, s.bends = append(s.steps, step), append(s.bends, bend)
}

// direction returns where to go: down the gradient, turned by the inverse of the curvature that was learnt (Nocedal's two
// loops).
func (s *lbfgs) direction() []float64 {
	d := make([]float64, len(s.gradient))
	for i, g := range s.gradient {
		d[i] = -g
	}
	last := len(s.steps) - 1
	if last < 0 {
		return d
	}
	var along [lbfgsMemory]float64
	for k := last; k >= 0; k-- {
		along[k] = dot(s.steps[k], d) / dot(s.steps[k], s.bends[k])
		addScaled(d, -along[k], s.bends[k])
	}
	scale := dot(s.steps[last], s.bends[last]) / dot(s.bends[last], s.bends[last])
	for i := range d {
		d[i] *= scale
	}
	for k := range s.steps {
		addScaled(d, along[k]-dot(s.bends[k], d)/dot(s.steps[k], s.bends[k]), s.steps[k])
	}
	return d
}

// withDifferences makes an objective of a function whose derivatives are not known: forward differences stand in for them.
func withDifferences(f func(x []float64) float64) objective {
	return func(x, gradient []float64) float64 {
		value := f(x)
		for i, at := range x {
			beside := at + differenceStep
			if beside == at { // differenceStep is lost beside numbers this great
				beside = at + math.Copysign(0x1p-26*max(1, math.Abs(at)), at)
			}
			x[i] = beside
			gradient[i] = (f(x) - value) / (beside - at)
			x[i] = at
		}
		return value
	}
}

// dot returns the inner product.
func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// addScaled adds scale times b to a.
func addScaled(a []float64, scale float64, b []float64) {
	for i := range a {
		a[i] += scale * b[i]
	}
}

// maxAbs returns the greatest magnitude.
func maxAbs(a []float64) (greatest float64) {
	for _, v := range a {
		greatest = max(greatest, math.Abs(v))
	}
	return greatest
}
