package forecast

import "math"

// differencing returns how often differences are to be taken until a series has a steady level, 2 at most: until the test
// of Kwiatkowski, Phillips, Schmidt and Shin (1992) no longer rejects that at 5 %, or the differences are all equal.
func differencing(values []float64) int {
	for d := range maxDifference {
		if allEqual(values) || !drifts(values) {
			return d
		}
		values = differences(values)
	}
	return maxDifference
}

// drifts reports whether the test rejects a steady level. Its long-run variance has Bartlett weights for as many lags as
// pmdarima takes.
func drifts(values []float64) bool {
	const critical = 0.463 // at 5 %
	n := float64(len(values))
	e := centred(values)
	var walked, eta float64
	for _, v := range e {
		walked += v
		eta += walked * walked
	}
	lags := int(4 * math.Pow(n/100, 0.25))
	var weighted float64
	for lag := 1; lag <= lags && lag < len(e); lag++ {
		weighted += dot(e[lag:], e[:len(e)-lag]) * (1 - float64(lag)/float64(lags+1))
	}
	variance := (dot(e, e) + 2*weighted) / n
	return eta/(n*n)/variance > critical
}

// differences returns by how much each value is greater than the one before.
func differences(values []float64) []float64 {
	d := make([]float64, max(0, len(values)-1))
	for i := range d {
		d[i] = values[i+1] - values[i]
	}
	return d
}

// allEqual reports whether all values are the same.
func allEqual(values []float64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}
