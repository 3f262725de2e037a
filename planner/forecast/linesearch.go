package forecast

import "math"

// The settings of the line search of L-BFGS-B.
const (
	// sufficientDecrease and curvature are the constants of Wolfe's conditions.
	sufficientDecrease = 1e-3
	curvature          = 0.9
	// bracketTolerance ends the search when the interval is relatively shorter.
	bracketTolerance = 0.1
	// maxStepLength is the longest step, maxTrials the greatest number of steps that are tried.
	maxStepLength = 1e10
	maxTrials     = 20
)

// trial is a step length with the value and the slope of the function there.
type trial struct{ length, value, slope float64 }

// lineSearch finds a step length that decreases a function well enough and leaves it flat enough (Moré and Thuente, 1994).
type lineSearch struct {
	start trial
	// length is the step that is tried; at the end, the one that was found.
	length float64
	// best is the best step so far, other the far end of the interval with a minimum, once bracketed.
	best, other trial
	bracketed   bool
	// shortest and longest bound the next step.
	shortest, longest float64
	// width and widthBefore are the last lengths of the interval.
	width, widthBefore float64
	// auxiliary is set until a step has decreased the function enough and rises.
	auxiliary bool
}

// newLineSearch starts a search at a point with a value and a negative slope, with a first step to try.
func newLineSearch(value, slope, length float64) *lineSearch {
	start := trial{0, value, slope}
	return &lineSearch{
		start: start, length: length, best: start, other: start,
		longest: 5 * length, width: maxStepLength, widthBefore: 2 * maxStepLength, auxiliary: true,
	}
}

// run tries steps until one will do, and returns false where none does. The function gives value and slope at a step length.
func (s *lineSearch) run(at func(length float64) (value, slope float64)) bool {
	for range maxTrials {
		value, slope := at(s.length)
		if math.IsNaN(value) || math.IsNaN(slope) {
			return false
		}
		if s.done(trial{s.length, value, slope}) {
			return true
		}
	}
	return false
}

// done reports whether a step will do, or no better one is to be found; otherwise it chooses the next one.
func (s *lineSearch) done(t trial) bool {
	enough := s.start.slope * sufficientDecrease
	line := s.start.value + t.length*enough
	if s.auxiliary && t.value <= line && t.slope >= 0 {
		s.auxiliary = false
	}
	stuck := s.bracketed && (t.length <= s.shortest || t.length >= s.longest || s.longest-s.shortest <= bracketTolerance*s.longest)
	atEnd := t.length == maxStepLength && t.value <= line && t.slope <= enough || t.length == 0 && (t.value > line || t.slope >= enough)
	if stuck || atEnd || t.value <= line && math.Abs(t.slope) <= -curvature*s.start.slope {
		return true
	}
	if s.auxiliary && t.value <= s.best.value && t.value > line {
		// The function minus the line that a sufficient decrease follows has a minimum where the function itself need not.
		lower := func(t *trial, sign float64) {
			t.value -= sign * t.length * enough
			t.slope -= sign * enough
		}
		lower(&s.best, 1)
		lower(&s.other, 1)
		lower(&t, 1)
		s.next(t)
		lower(&s.best, -1)
		lower(&s.other, -1)
	} else {
		s.next(t)
	}
	s.narrow(t.length)
	return false
}

// narrow bounds the step that next chose.
func (s *lineSearch) narrow(tried float64) {
	if s.bracketed {
		interval := s.other.length - s.best.length
		if math.Abs(interval) >= 0.66*s.widthBefore {
			s.length = s.best.length + interval/2
		}
		s.widthBefore, s.width = s.width, math.Abs(interval)
		s.shortest, s.longest = min(s.best.length, s.other.length), max(s.best.length, s.other.length)
	} else {
		s.shortest = s.length + 1.1*(s.length-s.best.length)
		s.longest = s.length + 4*(s.length-s.best.length)
	}
	s.length = min(max(s.length, 0), maxStepLength)
	if s.bracketed && (s.length <= s.shortest || s.length >= s.longest || s.longest-s.shortest <= bracketTolerance*s.longest) {
		s.length = s.best.length
	}
}

// next chooses a step from what polynomials through the best one and the one that was tried say, and keeps the better of
// the two with the interval around a minimum.
func (s *lineSearch) next(t trial) {
	best := s.best
	opposite := t.slope*math.Copysign(1, best.slope) < 0
	switch {
	case t.value > best.value:
		cubic, quadratic := cubicMinimum(best, t), best.length+best.slope/((best.value-t.value)/(t.length-best.length)+best.slope)/2*(t.length-best.length)
		s.length = cubic
		if math.Abs(cubic-best.length) >= math.Abs(quadratic-best.length) {
			s.length = cubic + (quadratic-cubic)/2
		}
		s.bracketed = true
		s.other = t
		return
	case opposite:
		cubic, secant := cubicMinimum(t, best), secantMinimum(t, best)
		s.length = secant
		if math.Abs(cubic-t.length) > math.Abs(secant-t.length) {
			s.length = cubic
		}
		s.bracketed = true
		s.other = best
	case math.Abs(t.slope) < math.Abs(best.slope):
		s.length = s.flatter(best, t)
	case s.bracketed:
		s.length = cubicMinimum(t, s.other)
	default:
		s.length = s.bound(t.length > best.length)
	}
	s.best = t
}

// flatter chooses a step where the slope has the same sign as before and is less steep.
func (s *lineSearch) flatter(best, t trial) float64 {
	secant := secantMinimum(t, best)
	cubic, ok := cubicMinimumBeyond(t, best)
	if !ok {
		cubic = s.bound(t.length > best.length)
	}
	cubicCloser := math.Abs(cubic-t.length) < math.Abs(secant-t.length)
	if s.bracketed {
		length := secant
		if cubicCloser {
			length = cubic
		}
		if limit := t.length + 0.66*(s.other.length-t.length); t.length > best.length {
			return min(limit, length)
		} else {
			return max(limit, length)
		}
	}
	length := cubic
	if cubicCloser || cubic == secant {
		length = secant
	}
	return max(s.shortest, min(s.longest, length))
}

// bound returns the longest step, or the shortest.
func (s *lineSearch) bound(long bool) float64 {
	if long {
		return s.longest
	}
	return s.shortest
}

// cubicMinimum returns where the cubic through two steps has its minimum, reckoned from a.
func cubicMinimum(a, b trial) float64 {
	theta, gamma := cubicTerms(a, b)
	p, q := gamma-a.slope+theta, gamma-a.slope+gamma+b.slope
	return a.length + p/q*(b.length-a.length)
}

// cubicMinimumBeyond is [cubicMinimum] where that need not lie between the two; ok is false when it lies on the wrong side of a.
func cubicMinimumBeyond(a, b trial) (length float64, ok bool) {
	theta, gamma := cubicTerms(a, b)
	p, q := gamma-a.slope+theta, gamma+(b.slope-a.slope)+gamma
	r := p / q
	return a.length + r*(b.length-a.length), r < 0 && gamma != 0
}

// cubicTerms returns the two terms of the cubic through two steps, scaled so that squares don't overflow.
func cubicTerms(a, b trial) (theta, gamma float64) {
	theta = 3*(a.value-b.value)/(b.length-a.length) + a.slope + b.slope
	scale := max(math.Abs(theta), math.Abs(a.slope), math.Abs(b.slope))
	gamma = scale * math.Sqrt(max(0, (theta/scale)*(theta/scale)-(a.slope/scale)*(b.slope/scale)))
	if b.length < a.length {
		gamma = -gamma
	}
	return theta, gamma
}

// secantMinimum returns where the slopes of two steps, taken as linear, vanish.
func secantMinimum(a, b trial) float64 {
	return a.length + a.slope/(a.slope-b.slope)*(b.length-a.length)
}
