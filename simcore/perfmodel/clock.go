package perfmodel

import "math"

// Nanoseconds is a simulated duration in whole nanoseconds.
type Nanoseconds int64

// Quantise turns a model's ms into whole nanoseconds: the nearest to the exact value, ties to even, then divided
// by the speed ratio and rounded again. A ratio of 0 or less leaves the duration as it is.
func Quantise(ms, ratio float64) Nanoseconds {
	n := nearest(ms / 1000)
	if ratio > 0 && n > 0 && ratio != 1 {
		n = nearest(n.seconds() / ratio)
	}
	return n
}

// Ms is the duration in ms as the clock adds it: seconds as a double, times 1000.
func (n Nanoseconds) Ms() float64 { return n.seconds() * 1000 }

func (n Nanoseconds) seconds() float64 {
	if n < 1e9 {
		return float64(n) / 1e9
	}
	whole, rest := n/1e9, n%1e9
	return float64(whole) + float64(rest)/1e9
}

// maxSeconds bounds a pass; about 292 years would overflow the nanoseconds.
const maxSeconds = 9e9

// nearest rounds seconds to whole nanoseconds, to the nearest of the exact value with ties to even. Rounding the
// double product alone is off by one on real ties, so its rounding error is taken into account.
func nearest(seconds float64) Nanoseconds {
	if !(seconds > 0) {
		return 0
	}
	seconds = min(seconds, maxSeconds)
	whole := int64(seconds)
	fraction := seconds - float64(whole) // exact
	product := fraction * 1e9
	low := int64(product)
	rest := (product - float64(low)) - 0.5 // exact: both are below 2^53 with the product's grid
	if rest == 0 {
		if residue := math.FMA(fraction, 1e9, -product); residue > 0 || residue == 0 && low%2 == 1 {
			low++
		}
	} else if rest > 0 {
		low++
	}
	return Nanoseconds(whole*1e9 + low)
}
