package forecast

import "math"

// seasonalTrend is the model of the kind prophet (planner specification §7): Prophet's (Taylor and Letham, 2018) with its
// defaults, fitted anew for each forecast to the latest values. A trend, straight but for changes of slope that are
// expected to be few, plus seasons of a day, a week and a year where the values span two of them.
//
// As Prophet does, it looks for the likeliest parameters, by the same steps, which stop short of them; so its forecasts
// are those of Prophet 1.5 to many digits. From 100 values on Prophet takes other steps (L-BFGS), which stop earlier, at
// parameters that are a little less likely; this model does not, and differs from it by some percent there.
type seasonalTrend struct {
	intervalSeconds float64
	// window is the greatest number of values that are looked at.
	window int
	values []float64
	// gone is the number of values that left the window.
	gone int
	// next is what is expected after those that next was computed for, fittedTo of all that came.
	next     float64
	fittedTo int
}

// Prophet's defaults.
const (
	maxChangepoints    = 25
	changepointShare   = 0.8  // of the values that a change of slope may fall on
	changepointScale   = 0.05 // of the Laplace distribution of changes of slope
	seasonScale        = 10.0 // standard deviation of the coefficients of a season
	trendScale         = 5.0  // standard deviation of slope and offset
	noiseScale         = 0.5  // of the half-normal distribution of the noise's standard deviation
	daySeconds         = 86400.0
	firstDay           = 19723 // 1 January 2024, where Dynamo's planner begins to count, in days since 1970
	yearDays           = 365.25
	leastYearsSpanDays = 730
	leastWeeksSpanDays = 14
	leastDailySpanDays = 2
	yearlyOrder        = 10
	weeklyOrder        = 3
	dailyOrder         = 4
)

// prophetIterations is the number of steps that a search may take. It needs fewer than a hundred; Prophet allows 10,000, which
// only series without any noise use up, while the forecast has long settled and just the noise is still shrinking.
const prophetIterations = 300

// add takes a value.
func (m *seasonalTrend) add(value float64) {
	m.values = append(m.values, value)
	if len(m.values) > m.window {
		m.values = m.values[1:]
		m.gone++
	}
}

// forecast fits the model and returns what it expects.
func (m *seasonalTrend) forecast() (float64, bool) {
	if len(m.values) < minPoints {
		return 0, false
	}
	if all := m.gone + len(m.values); m.fittedTo != all {
		m.next, m.fittedTo = m.predict(), all
	}
	return m.next, true
}

// predict fits the values of the window and returns the next one.
func (m *seasonalTrend) predict() float64 {
	if allEqual(m.values) {
		return m.values[0]
	}
	scale := maxAbs(m.values)
	p := newPosterior(m.values, scale, seasons(len(m.values), m.gone, m.intervalSeconds))
	x := p.start()
	newtonAscent(p, x, prophetIterations)
	return p.expected(x, len(m.values)) * scale
}

// seasons returns the features of the seasons that n values are long enough for, the first of them the one numbered first:
// a row for each value, and one for the next.
func seasons(n, first int, intervalSeconds float64) [][]float64 {
	span := float64(n-1) * intervalSeconds / daySeconds
	interval := intervalSeconds / daySeconds
	features := make([][]float64, n+1)
	add := func(period float64, order int) {
		for i := range features {
			day := firstDay + float64(first+i)*intervalSeconds/daySeconds
			for k := 1; k <= order; k++ {
				sin, cos := math.Sincos(float64(k) / period * (2 * math.Pi * day))
				features[i] = append(features[i], sin, cos)
			}
		}
	}
	if span >= leastYearsSpanDays {
		add(yearDays, yearlyOrder)
	}
	if span >= leastWeeksSpanDays && interval < 7 {
		add(7, weeklyOrder)
	}
	if span >= leastDailySpanDays && interval < 1 {
		add(1, dailyOrder)
	}
	return features
}

// posterior is how likely parameters are, given values at equal intervals. Time goes from 0 at the first to 1 at the last,
// and values are scaled by the greatest. The parameters are slope and offset of the trend, its changes of slope, the
// logarithm of the noise's standard deviation, and the coefficients of the features.
type posterior struct {
	y []float64
	// times are those of the values and of the next one.
	times []float64
	// changes are the places of the values at which the slope may change.
	changes  []int
	features [][]float64
	// residuals is room for what the trend leaves.
	residuals []float64
	// columns are what a unit of each parameter adds (nothing, of the noise) to the expected values; products their
	// inner products. They are made when the curvature is first asked for.
	columns  [][]float64
	products *symmetric
}

// newPosterior makes the posterior for values, which it divides by scale.
func newPosterior(values []float64, scale float64, features [][]float64) *posterior {
	n := len(values)
	p := &posterior{y: make([]float64, n), times: make([]float64, n+1), features: features, residuals: make([]float64, n)}
	for i, v := range values {
		p.y[i] = v / scale
	}
	for i := range p.times {
		p.times[i] = float64(i) / float64(n-1)
	}
	candidates := int(changepointShare * float64(n))
	count := min(maxChangepoints, candidates-1)
	for i := 1; i <= count; i++ {
		p.changes = append(p.changes, int(math.RoundToEven(float64(i)*(float64(candidates-1)/float64(count)))))
	}
	return p
}

// start returns the parameters that the search begins with: a straight line from the first value to the last.
func (p *posterior) start() []float64 {
	x := make([]float64, 2+len(p.changes)+1+len(p.features[0]))
	x[0] = p.y[len(p.y)-1] - p.y[0]
	x[1] = p.y[0]
	return x
}

// split names the parts of the parameters.
func (p *posterior) split(x []float64) (changes []float64, logNoise *float64, season []float64) {
	n := 2 + len(p.changes)
	return x[2:n], &x[n], x[n+1:]
}

// expected returns the value that parameters expect at a place, that of the last changepoint or later.
func (p *posterior) expected(x []float64, place int) float64 {
	changes, _, season := p.split(x)
	t := p.times[place]
	value := x[0]*t + x[1] + dot(p.features[place], season)
	for j, change := range changes {
		value += change * (t - p.times[p.changes[j]])
	}
	return value
}

// value returns the logarithm of the posterior but for a constant, and negative infinity where that is not finite.
func (p *posterior) value(x []float64) float64 {
	changes, logNoise, season := p.split(x)
	noise := math.Exp(*logNoise)
	value := -float64(len(p.y))**logNoise - p.leave(x)/(2*noise*noise) - noise*noise/(2*noiseScale*noiseScale)
	value -= dot(x[:2], x[:2])/(2*trendScale*trendScale) + dot(season, season)/(2*seasonScale*seasonScale)
	for _, change := range changes {
		value -= math.Abs(change) / changepointScale
	}
	if math.IsNaN(value) || math.IsInf(value, 0) || noise == 0 {
		return math.Inf(-1)
	}
	return value
}

// slopes puts the derivatives of value at x into gradient.
func (p *posterior) slopes(x, gradient []float64) {
	changes, logNoise, season := p.split(x)
	gradChanges, gradLogNoise, gradSeason := p.split(gradient)
	variance := math.Exp(*logNoise) * math.Exp(*logNoise)
	squares := p.leave(x)
	*gradLogNoise = -float64(len(p.y)) + squares/variance - variance/(noiseScale*noiseScale)
	for j, b := range season {
		gradSeason[j] = -b / (seasonScale * seasonScale)
	}
	// Sums over the values from a changepoint on, taken from the end, serve all changepoints.
	var sum, moment float64
	next := len(changes) - 1
	for i := len(p.y) - 1; i >= 0; i-- {
		r := p.residuals[i] / variance
		sum += r
		moment += r * p.times[i]
		addScaled(gradSeason, r, p.features[i])
		for ; next >= 0 && p.changes[next] == i; next-- {
			gradChanges[next] = moment - p.times[i]*sum - sign(changes[next])/changepointScale
		}
	}
	gradient[0] = moment - x[0]/(trendScale*trendScale)
	gradient[1] = sum - x[1]/(trendScale*trendScale)
}

// curvature puts the second derivatives of value at x into second.
func (p *posterior) curvature(x []float64, second *symmetric) {
	if p.columns == nil {
		p.multiply()
	}
	changes, logNoise, _ := p.split(x)
	noise := math.Exp(*logNoise)
	squares := p.leave(x)
	own := 2 + len(changes) // the place of the noise
	for i, a := range p.columns {
		for j := i; j < len(p.columns); j++ {
			second.set(i, j, -p.products.at(i, j)/(noise*noise))
		}
		second.set(i, own, -2*dot(a, p.residuals)/(noise*noise))
		second.set(i, i, second.at(i, i)-p.priorCurvature(i, x[i]))
	}
	second.set(own, own, -2*squares/(noise*noise)-2*noise*noise/(noiseScale*noiseScale))
}

// priorCurvature returns how strongly the prior of a parameter, other than the noise, is curved downwards. For a change of slope it is what
// Stan takes it for, by differences over 1e-3 and 2e-3: nothing, unless the peak of Laplace's distribution is that close.
func (p *posterior) priorCurvature(parameter int, at float64) float64 {
	switch {
	case parameter < 2:
		return 1 / (trendScale * trendScale)
	case parameter > 2+len(p.changes):
		return 1 / (seasonScale * seasonScale)
	}
	const width = 1e-3
	difference := (sign(at-2*width)-sign(at+2*width))/12 - 2*(sign(at-width)-sign(at+width))/3
	return difference / width / changepointScale
}

// multiply makes columns and products.
func (p *posterior) multiply() {
	size := 2 + len(p.changes) + 1 + len(p.features[0])
	for i := range size {
		column := make([]float64, len(p.y))
		for place := range column {
			switch change := i - 2; {
			case i == 0:
				column[place] = p.times[place]
			case i == 1:
				column[place] = 1
			case change < len(p.changes):
				column[place] = max(0, p.times[place]-p.times[p.changes[change]])
			case change > len(p.changes):
				column[place] = p.features[place][change-len(p.changes)-1]
			}
		}
		p.columns = append(p.columns, column)
	}
	p.products = newSymmetric(size)
	for i := range size {
		for j := i; j < size; j++ {
			p.products.set(i, j, dot(p.columns[i], p.columns[j]))
		}
	}
}

// leave computes what parameters leave of the values and returns the sum of its squares.
func (p *posterior) leave(x []float64) (squares float64) {
	changes, _, season := p.split(x)
	slope, offset := x[0], x[1]
	next := 0
	for i, y := range p.y {
		for ; next < len(changes) && p.changes[next] <= i; next++ {
			slope += changes[next]
			offset -= changes[next] * p.times[p.changes[next]]
		}
		r := y - (slope*p.times[i] + offset) - dot(p.features[i], season)
		p.residuals[i] = r
		squares += r * r
	}
	return squares
}

// sign returns 1, 0 or -1.
func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}
