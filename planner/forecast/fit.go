package forecast

import (
	"math"
	"slices"
)

// arimaModel is an ARIMA model with the parameters that fit a series.
type arimaModel struct {
	order      order
	parameters []float64
}

// fitIterations is the number of iterations that a first fit may take; updateIterations that of one that goes on from the
// parameters of before, when few values are new.
const (
	fitIterations    = 50
	updateIterations = 5
)

// fit finds the parameters under which values are likeliest, from those of a least-squares estimate.
func (o order) fit(values []float64) arimaModel {
	return o.fitFrom(values, o.startParameters(values), fitIterations)
}

// update fits the model to a longer series, the last fresh values of which are new, in a few iterations from the parameters
// it has: what pmdarima's ARIMA.update does.
func (m arimaModel) update(values []float64, fresh int) arimaModel {
	return m.order.fitFrom(values, m.parameters, max(updateIterations, fresh/10))
}

// fitFrom finds the parameters under which values are likeliest from given ones, in so many iterations.
func (o order) fitFrom(values, parameters []float64, iterations int) arimaModel {
	free := o.unconstrain(parameters)
	minimise(withDifferences(func(free []float64) float64 {
		logLikelihood, _ := arimaModel{o, o.constrain(free)}.run(values)
		return -logLikelihood / float64(len(values))
	}), free, iterations)
	return arimaModel{o, o.constrain(free)}
}

// run returns the logarithm of the likelihood of values, and what the model expects after them.
func (m arimaModel) run(values []float64) (logLikelihood, next float64) {
	f := newARIMAFilter(m.order, m.order.split(m.parameters))
	logLikelihood = f.run(values)
	return logLikelihood, f.observed(&f.state)
}

// aic returns Akaike's information criterion for values: the less, the better. It is infinite when the model is so near to
// one that is not stationary, or not invertible, that it is not to be trusted.
func (m arimaModel) aic(values []float64) float64 {
	const greatestRoot = 0.99 // of the inverse roots; pmdarima looks at those of the moving average alone when there are any
	c := m.order.split(m.parameters)
	lags := c.ar
	if m.order.q > 0 {
		lags = negated(c.ma)
	}
	logLikelihood, _ := m.run(values)
	if math.IsNaN(logLikelihood) || !stable(lags, greatestRoot) {
		return math.Inf(1)
	}
	return 2*float64(m.order.parameters()) - 2*logLikelihood
}

// startParameters estimates the parameters by least squares, as statsmodels does (Hannan and Rissanen): residuals of a long
// autoregression stand in for the disturbances of the moving average. Coefficients that are not stationary, or not
// invertible, become zeros.
func (o order) startParameters(values []float64) []float64 {
	diffed := values
	for range o.d {
		diffed = differences(diffed)
	}
	parameters := make([]float64, o.parameters())
	regressors := o.parameters() - 1
	residuals := o.regress(diffed, parameters[:regressors])
	c := o.split(parameters)
	const edge = 1 - 1e-10
	if !stable(c.ar, edge) {
		clear(c.ar)
	}
	if !stable(negated(c.ma), edge) {
		clear(c.ma)
	}
	variance := dot(diffed, diffed) / float64(len(values))
	switch {
	case regressors == 0:
	case len(residuals) > max(1, o.q):
		residuals = residuals[o.q:]
		variance = dot(residuals, residuals) / float64(len(residuals))
	default:
		variance = populationVariance(diffed)
	}
	parameters[regressors] = max(1e-10, variance)
	return parameters
}

// regress estimates constant and coefficients from differenced values and returns the residuals.
func (o order) regress(values, estimates []float64) (residuals []float64) {
	if len(estimates) == 0 {
		return nil
	}
	long := 2 * o.q
	skip := max(long+o.q, o.p)
	if len(values) <= long || len(values) <= o.p || o.q > 0 && len(values)-long <= o.q {
		return append(make([]float64, 2*o.q), centred(values)...) // too few values: zeros for all
	}
	disturbances := leastSquares(len(values)-long, long, nil, func(row, column int) float64 { return values[long+row-column-1] }, values[long:])
	first := len(estimates) - o.p - o.q // 1 with a constant
	return leastSquares(max(0, len(values)-skip), len(estimates), estimates, func(row, column int) float64 {
		switch at := skip + row; {
		case column < first:
			return 1
		case column < first+o.p:
			return values[at-(column-first)-1]
		default:
			return disturbances[at-long-(column-first-o.p)-1]
		}
	}, values[min(skip, len(values)):])
}

// leastSquares regresses target on the columns of a matrix, with the shortest coefficients where several fit as well. It puts
// them into coefficients, unless that is nil, and returns the residuals.
func leastSquares(rows, columns int, coefficients []float64, at func(row, column int) float64, target []float64) (residuals []float64) {
	residuals = append(residuals, target...)
	if rows == 0 || columns == 0 {
		return residuals
	}
	x := make([][]float64, columns)
	for j := range x {
		x[j] = make([]float64, rows)
		for i := range x[j] {
			x[j][i] = at(i, j)
		}
	}
	turned := make([][]float64, columns)
	for j := range turned {
		turned[j] = slices.Clone(x[j])
	}
	rotation := orthogonalise(turned)
	greatest := 0.0
	for _, column := range turned {
		greatest = max(greatest, dot(column, column))
	}
	solution := make([]float64, columns)
	for k, column := range turned {
		if square := dot(column, column); square > 1e-30*greatest {
			addScaled(solution, dot(column, target)/square, rotation[k])
		}
	}
	for j, c := range solution {
		addScaled(residuals, -c, x[j])
	}
	copy(coefficients, solution)
	return residuals
}

// constrain turns free parameters into ones of a stationary, invertible model with positive variance (Monahan, 1984).
func (o order) constrain(free []float64) []float64 {
	parameters := append([]float64(nil), free...)
	c := o.split(parameters)
	fromPartial(c.ar)
	fromPartial(c.ma)
	for i := range c.ma {
		c.ma[i] = -c.ma[i]
	}
	last := len(parameters) - 1
	parameters[last] *= parameters[last]
	return parameters
}

// unconstrain is the inverse of constrain.
func (o order) unconstrain(parameters []float64) []float64 {
	free := append([]float64(nil), parameters...)
	c := o.split(free)
	for i := range c.ma {
		c.ma[i] = -c.ma[i]
	}
	toPartial(c.ar)
	toPartial(c.ma)
	last := len(free) - 1
	free[last] = math.Sqrt(free[last])
	return free
}

// fromPartial turns free numbers in place into coefficients of a stationary autoregression: the numbers squeezed between -1
// and 1 are taken for its partial autocorrelations, with the sign turned.
func fromPartial(x []float64) {
	var before [maxOrder]float64
	for k := range x {
		r := x[k] / math.Sqrt(1+x[k]*x[k])
		copy(before[:], x[:k])
		for i := range k {
			x[i] = before[i] + r*before[k-i-1]
		}
		x[k] = r
	}
	for i := range x {
		x[i] = -x[i]
	}
}

// toPartial is the inverse of fromPartial.
func toPartial(x []float64) {
	for i := range x {
		x[i] = -x[i]
	}
	var before [maxOrder]float64
	for k := len(x) - 1; k >= 0; k-- {
		r := x[k]
		copy(before[:], x[:k])
		for i := range k {
			x[i] = (before[i] - r*before[k-i-1]) / (1 - r*r)
		}
		x[k] = r / math.Sqrt(1-r*r)
	}
}

// stable reports whether all inverse roots of the polynomial 1 - Σ lags[i]·zⁱ⁺¹ are smaller than radius: whether all partial
// autocorrelations are smaller than 1 once the roots are scaled by it.
func stable(lags []float64, radius float64) bool {
	x := make([]float64, len(lags))
	scale := 1.0
	for i, c := range lags {
		scale *= radius
		x[i] = c / scale
	}
	before := make([]float64, len(lags))
	for k := len(x) - 1; k >= 0; k-- {
		r := x[k]
		if !(math.Abs(r) < 1) {
			return false
		}
		copy(before, x[:k])
		for i := range k {
			x[i] = (before[i] + r*before[k-i-1]) / (1 - r*r)
		}
	}
	return true
}

// negated returns -a.
func negated(a []float64) []float64 {
	n := make([]float64, len(a))
	for i, v := range a {
		n[i] = -v
	}
	return n
}

// centred returns values less their mean.
func centred(values []float64) []float64 {
	var mean float64
	for _, v := range values {
		mean += v / float64(len(values))
	}
	c := make([]float64, len(values))
	for i, v := range values {
		c[i] = v - mean
	}
	return c
}

// populationVariance returns the mean square of the deviations.
func populationVariance(values []float64) float64 {
	c := centred(values)
	return dot(c, c) / float64(len(c))
}
