// Package exact adds floating-point numbers without rounding, so that a sum does not depend on the order or on how it was cut
// into parts.
package exact

import (
	"math"
	"math/big"
)

// Sum is an exact sum of finite numbers, fewer than 2^30 of them. The zero value is 0.
type Sum struct {
	// digits are those of the sum to the base 2^32, of which the first one counts multiples of 2^-1074, the least number. They
	// are not carried over, and may be negative.
	digits [digits]int64
}

const (
	digitBits = 32
	digitMask = 1<<digitBits - 1
	digits    = (2046+52)/digitBits + 3
	// fractionBits is the length of a number's fraction as it is stored, below the bit that is always set.
	fractionBits = 52
	leastBit     = 1074
)

// Add adds a number.
func (s *Sum) Add(x float64) {
	if x == 0 {
		return
	}
	bits := math.Float64bits(x)
	fraction, exponent := bits&(1<<fractionBits-1), bits>>fractionBits&2047
	if exponent > 0 {
		fraction |= 1 << fractionBits
		exponent--
	}
	at, shift := exponent/digitBits, exponent%digitBits
	low, high := fraction&digitMask<<shift, fraction>>digitBits<<shift
	first, second, third := int64(low&digitMask), int64(low>>digitBits+high&digitMask), int64(high>>digitBits)
	if x < 0 {
		first, second, third = -first, -second, -third
	}
	d := s.digits[at : at+3]
	d[0] += first
	d[1] += second
	d[2] += third
}

// AddTime adds the time between two others.
func (s *Sum) AddTime(from, to float64) {
	s.Add(to)
	s.Add(-from)
}

// AddSum adds another sum, times 1 or -1.
func (s *Sum) AddSum(other *Sum, sign int64) {
	for i, d := range other.digits {
		s.digits[i] += sign * d
	}
}

// Value is the number nearest to the sum, ties to even.
func (s *Sum) Value() float64 {
	sum, digit := new(big.Int), new(big.Int)
	for i := len(s.digits) - 1; i >= 0; i-- {
		sum.Add(sum.Lsh(sum, digitBits), digit.SetInt64(s.digits[i]))
	}
	exact := new(big.Float).SetInt(sum)
	value, _ := exact.SetMantExp(exact, -leastBit).Float64()
	return value
}
