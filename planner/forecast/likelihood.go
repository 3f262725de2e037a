package forecast

import "math"

// The greatest orders that are tried, and the number of states that these need.
const (
	maxOrder      = 5
	maxDifference = 2
	maxStates     = maxDifference + maxOrder + 1
)

// Settings of the Kalman filter of statsmodels' SARIMAX.
const (
	// unknownVariance is the variance of a level that nothing is known of.
	unknownVariance = 1e6
	// leastVariance is the variance of a forecast below which a value tells nothing new.
	leastVariance = 1e-12
	// steadyChange is the change of the covariance, its elements squared and added up, at which it counts as steady.
	steadyChange = 1e-19
	// roundingChange is the same as a share of the squared elements, small enough to be rounding.
	roundingChange = 1e-30
)

// order is that of an ARIMA model.
type order struct {
	// p autoregressive terms, d differences, q moving-average terms.
	p, d, q int
	// constant says that the differences have a mean other than 0.
	constant bool
}

// parameters returns the number of parameters: the constant, p and q coefficients, and the variance, in this order.
func (o order) parameters() int {
	n := o.p + o.q + 1
	if o.constant {
		n++
	}
	return n
}

// coefficients are the parameters of a model.
type coefficients struct {
	constant, variance float64
	ar, ma             []float64
}

// split names the parts of a list of parameters.
func (o order) split(parameters []float64) coefficients {
	var c coefficients
	if o.constant {
		c.constant, parameters = parameters[0], parameters[1:]
	}
	c.ar, c.ma, c.variance = parameters[:o.p], parameters[o.p:o.p+o.q], parameters[o.p+o.q]
	return c
}

// matrix holds the covariance of the states; just the first rows and columns are in use.
type matrix [maxStates][maxStates]float64

// arimaFilter is a Kalman filter for an ARIMA model in Harvey's form: d states for the levels that differences are taken
// of, then those of the stationary part (Durbin and Koopman, 2012, section 3.4).
type arimaFilter struct {
	d, states int
	// ar and noise are the coefficients of the stationary part, state by state; noise is that of what disturbs each.
	ar, noise          [maxOrder + 1]float64
	constant, variance float64
	state              [maxStates]float64
	cov                matrix
}

// newARIMAFilter starts a filter before the first value: nothing known of the levels, the stationary part as it is in the
// long run.
func newARIMAFilter(o order, c coefficients) *arimaFilter {
	f := &arimaFilter{d: o.d, states: o.d + max(o.p, o.q+1), constant: c.constant, variance: c.variance}
	copy(f.ar[:], c.ar)
	f.noise[0] = 1
	copy(f.noise[1:], c.ma)
	for i := range f.d {
		f.cov[i][i] = unknownVariance
	}
	f.startStationary()
	return f
}

// startStationary sets mean and covariance of the stationary part to those of the long run.
func (f *arimaFilter) startStationary() {
	n := f.states - f.d
	rest := 1.0
	for _, phi := range f.ar[:n] {
		rest -= phi
	}
	mean := f.constant / rest
	if math.Abs(f.constant) <= 1e-9 {
		mean = 0
	}
	var sum float64
	for i := n - 1; i >= 0; i-- {
		sum += f.ar[i] * mean
		f.state[f.d+i] = sum
	}
	f.state[f.d] = mean

	cov := f.stationaryCovariance(n)
	for i := range n {
		copy(f.cov[f.d+i][f.d:], cov[i][:n])
	}
}

// stationaryCovariance solves P = T·P·T' + Q for the n stationary states by doubling: each round sums twice as many terms of
// ΣTᵏ·Q·T'ᵏ as the one before.
func (f *arimaFilter) stationaryCovariance(n int) matrix {
	var sum, power, next matrix
	for i := range n {
		for j := range n {
			sum[i][j] = f.variance * f.noise[i] * f.noise[j]
		}
		power[i][0] = f.ar[i]
		if i+1 < n {
			power[i][i+1] = 1
		}
	}
	const rounds = 60 // enough for any T that rounding leaves stable
	for range rounds {
		greatest := 0.0
		product(&next, &power, &sum, n, false)
		var added matrix
		product(&added, &next, &power, n, true)
		for i := range n {
			for j := range n {
				sum[i][j] += added[i][j]
				greatest = max(greatest, math.Abs(power[i][j]))
			}
		}
		if !(greatest > 1e-20 && greatest < MaxMagnitude) {
			break
		}
		product(&next, &power, &power, n, false)
		power = next
	}
	return sum
}

// product sets dst to a·b, or to a·b' with transposed.
func product(dst, a, b *matrix, n int, transposed bool) {
	for i := range n {
		for j := range n {
			var sum float64
			for k := range n {
				if transposed {
					sum += a[i][k] * b[j][k]
				} else {
					sum += a[i][k] * b[k][j]
				}
			}
			dst[i][j] = sum
		}
	}
}

// observed returns how the value that is seen depends on the states: the sum of the levels and the first stationary one.
func (f *arimaFilter) observed(state *[maxStates]float64) (sum float64) {
	for _, s := range state[:f.d+1] {
		sum += s
	}
	return sum
}

// run feeds values and returns the logarithm of their likelihood, those left out that settle the levels.
func (f *arimaFilter) run(values []float64) (logLikelihood float64) {
	steady := false
	var gain [maxStates]float64
	var variance, logVariance float64
	for t, value := range values {
		surprise := value - f.observed(&f.state)
		if !steady {
			for i := range f.states {
				gain[i] = f.observed(&f.cov[i])
			}
			variance = f.observed(&gain)
			logVariance = math.Log(2*math.Pi) + math.Log(variance)
		}
		if !(variance < leastVariance) {
			for i := range f.states {
				f.state[i] += gain[i] * (surprise / variance)
			}
			if t >= f.d {
				logLikelihood -= (logVariance + surprise*surprise/variance) / 2
			}
		}
		f.advanceState()
		if !steady {
			steady = f.advanceCovariance(&gain, variance) && t > 0
		}
	}
	return logLikelihood
}

// advanceState moves the mean of the states to the next interval.
func (f *arimaFilter) advanceState() {
	seen := f.state[f.d]
	for i := range f.d {
		var sum float64
		for _, s := range f.state[i : f.d+1] {
			sum += s
		}
		f.state[i] = sum
	}
	for i := f.d; i < f.states; i++ {
		f.state[i] = f.ar[i-f.d] * seen
		if i+1 < f.states {
			f.state[i] += f.state[i+1]
		}
	}
	f.state[f.d] += f.constant
}

// advanceCovariance takes what a value told off the covariance and moves it to the next interval. It reports whether that
// changed nothing to speak of.
func (f *arimaFilter) advanceCovariance(gain *[maxStates]float64, variance float64) (steady bool) {
	n := f.states
	before := f.cov
	if !(variance < leastVariance) {
		for i := range n {
			for j := range n {
				f.cov[i][j] -= gain[i] * gain[j] / variance
			}
		}
	}
	f.transition()
	var change, size float64
	for i := range n {
		for j := i; j < n; j++ {
			moved := f.cov[i][j]
			if i >= f.d {
				moved += f.variance * f.noise[i-f.d] * f.noise[j-f.d]
			}
			f.cov[i][j], f.cov[j][i] = moved, moved
			weight := 2.0
			if i == j {
				weight = 1
			}
			change += weight * (moved - before[i][j]) * (moved - before[i][j])
			size += weight * moved * moved
		}
	}
	// With a constant statsmodels takes the model for one that changes with time, and goes on; a covariance that just rounding
	// still moves can be kept all the same.
	return change <= roundingChange*size || f.constant == 0 && change < steadyChange
}

// transition turns the covariance P into T·P·T', T being what moves the states by an interval.
func (f *arimaFilter) transition() {
	n := f.states
	p := &f.cov
	// Rows, top down: each new row needs old rows from its own one on, and the first stationary one.
	first := p[f.d]
	for i := range f.d {
		for k := i + 1; k <= f.d; k++ {
			for j := range n {
				p[i][j] += p[k][j]
			}
		}
	}
	for i := f.d; i < n; i++ {
		for j := range n {
			moved := f.ar[i-f.d] * first[j]
			if i+1 < n {
				moved += p[i+1][j]
			}
			p[i][j] = moved
		}
	}
	// Columns likewise.
	for i := range n {
		row := &p[i]
		seen := row[f.d]
		for j := range f.d {
			for k := j + 1; k <= f.d; k++ {
				row[j] += row[k]
			}
		}
		for j := f.d; j < n; j++ {
			moved := f.ar[j-f.d] * seen
			if j+1 < n {
				moved += row[j+1]
			}
			row[j] = moved
		}
	}
}
