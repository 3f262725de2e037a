package forecast

// ascended is a function to maximise by Newton's method.
type ascended interface {
	// value returns the value at x; negative infinity where there is none.
	value(x []float64) float64
	// slopes puts the derivatives at x into gradient.
	slopes(x, gradient []float64)
	// curvature puts the second derivatives at x into second.
	curvature(x []float64, second *symmetric)
}

// newtonAscent moves x uphill by the steps of Stan's optimiser "newton", for at most so many iterations, until one gains next
// to nothing. These are not quite Newton's: Stan multiplies differences by their width, 1e-3, where it should divide by it, so
// that a step starts out a million times too long and is halved until it gains anything, typically at nearly twice the right
// length. Where Prophet's search ends depends on it.
func newtonAscent(f ascended, x []float64, iterations int) {
	const leastGain = 1e-8
	s := newtonSearch{f: f, x: x, gradient: make([]float64, len(x)), there: make([]float64, len(x)), second: newSymmetric(len(x))}
	value := f.value(x)
	for range iterations {
		direction := s.uphill()
		if direction == nil {
			return
		}
		before := value
		if value = s.climb(direction, before); value-before <= leastGain {
			return
		}
	}
}

// newtonSearch is where an ascent is, with room to work in.
type newtonSearch struct {
	f                  ascended
	x, gradient, there []float64
	second             *symmetric
}

// climb moves along direction by the first of the lengths 1e6, 1e6/2, 1e6/4, … that does not lose, and returns the value there.
func (s *newtonSearch) climb(direction []float64, value float64) float64 {
	const longest, shortest = 1e6, 1e6 * 1e-50
	for length := longest; length >= shortest; length /= 2 {
		for i, at := range s.x {
			s.there[i] = at + length*direction[i]
		}
		if reached := s.f.value(s.there); reached >= value {
			copy(s.x, s.there)
			return reached
		}
	}
	return value
}

// uphill returns the direction of a step: the gradient divided by the magnitudes of the curvature along each of its principal
// directions. It returns nil when these cannot be found.
func (s *newtonSearch) uphill() []float64 {
	s.f.slopes(s.x, s.gradient)
	s.f.curvature(s.x, s.second)
	n := len(s.x)
	for i, v := range s.second.values {
		s.second.values[i] = -v
	}
	direction := make([]float64, n)
	if s.second.solve(s.gradient, direction) { // curved downwards in all directions
		return direction
	}
	if !s.second.finite() {
		return nil
	}
	s.second.divide(s.gradient, direction)
	return direction
}
