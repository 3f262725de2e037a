// Package exact adds floating-point numbers without rounding, so that a sum does not depend on the order or on how it was cut
// into parts.
package exact

import "math"

// Sum is an exact sum of finite numbers (Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
// Predicates", 1997). The zero value is 0.
type Sum struct {
	// parts sum to the value. No two overlap, and the largest comes last.
	parts []float64
}

// Add adds a number.
func (s *Sum) Add(x float64) {
	if x == 0 {
		return
	}
	kept := s.parts[:0]
	for _, p := range s.parts {
		if math.Abs(x) < math.Abs(p) {
			x, p = p, x
		}
		high := x + p
		if low := p - (high - x); low != 0 {
			kept = append(kept, low)
		}
		x = high
	}
	if x != 0 {
		kept = append(kept, x)
	}
	s.parts = kept
}

// AddTime adds the time between two others.
func (s *Sum) AddTime(from, to float64) {
	s.Add(to)
	s.Add(-from)
}

// AddSum adds another sum, times 1 or -1.
func (s *Sum) AddSum(other *Sum, sign float64) {
	for _, p := range other.parts {
		s.Add(sign * p)
	}
}

// Set makes the sum equal to another one.
func (s *Sum) Set(other *Sum) { s.parts = append(s.parts[:0], other.parts...) }

// Value is the number nearest to the sum, ties to even.
func (s *Sum) Value() float64 {
	n := len(s.parts)
	if n == 0 {
		return 0
	}
	n--
	high, low := s.parts[n], 0.0
	for n > 0 && low == 0 {
		n--
		x := high
		high = x + s.parts[n]
		low = s.parts[n] - (high - x)
	}
	// Where what is left lies just half-way between two numbers, the parts below decide.
	if n > 0 && math.Signbit(low) == math.Signbit(s.parts[n-1]) && low != 0 {
		if next := high + 2*low; next-high == 2*low {
			return next
		}
	}
	return high
}
