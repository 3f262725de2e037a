package search

import (
	"math"
)

// process is a Gaussian process over the places of a space: what a figure is expected to be at a place that was not
// tried, and how sure that is. Ordered dimensions count by the distance of their places, others by being equal or not,
// and how much a dimension counts is learnt. See C. Rasmussen, C. Williams, "Gaussian Processes for Machine Learning",
// MIT Press, 2006, algorithm 2.1.
type process struct {
	places  [][]float64
	ordered []bool
	// weights says how fast the figure changes along each dimension; noise is the share of its variance that no place
	// explains.
	weights []float64
	noise   float64
	mean    float64
	scale   float64
	// factor is the lower triangle of the Cholesky factor, alpha the weights of the values.
	factor [][]float64
	alpha  []float64
}

// coordinates gives a place numbers that the kernel compares: 0 to 1 along ordered dimensions.
func (s Space) coordinates(place []int) []float64 {
	out := make([]float64, len(place))
	for i, d := range s.Dimensions {
		out[i] = float64(place[i])
		if d.Values != nil && d.Size > 1 {
			out[i] /= float64(d.Size - 1)
		}
	}
	return out
}

// covariance is the Matérn kernel with smoothness 5/2.
func (p *process) covariance(a, b []float64) float64 {
	r2 := 0.0
	for i, w := range p.weights {
		switch {
		case p.ordered[i]:
			d := a[i] - b[i]
			r2 += w * d * d
		case a[i] != b[i]:
			r2 += w
		}
	}
	r := math.Sqrt(5 * r2)
	return (1 + r + r*r/3) * math.Exp(-r)
}

// fit learns from values at places and returns the log likelihood, up to a constant; NaN when the places are too much
// alike for their number.
func (p *process) fit(places [][]float64, values []float64) float64 {
	n := len(values)
	p.places = places
	p.mean, p.scale = meanAndDeviation(values)
	p.factor = make([][]float64, n)
	for i := range p.factor {
		row := make([]float64, i+1)
		for j := range i {
			row[j] = p.covariance(places[i], places[j])
		}
		row[i] = 1 + p.noise
		p.factor[i] = row
	}
	if !cholesky(p.factor) {
		return math.NaN()
	}
	p.alpha = make([]float64, n)
	for i, v := range values {
		p.alpha[i] = (v - p.mean) / p.scale
	}
	forward(p.factor, p.alpha)
	likelihood := 0.0
	for i, v := range p.alpha {
		likelihood -= v*v/2 + math.Log(p.factor[i][i])
	}
	backward(p.factor, p.alpha)
	return likelihood
}

func meanAndDeviation(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values))
	}
	if deviation = math.Sqrt(deviation); !(deviation > 1e-12*(1+math.Abs(mean))) {
		deviation = 1
	}
	return mean, deviation
}

// at returns the expected value at a place and its deviation.
func (p *process) at(place []float64) (mean, deviation float64) {
	k := make([]float64, len(p.places))
	for i, other := range p.places {
		k[i] = p.covariance(place, other)
		mean += k[i] * p.alpha[i]
	}
	forward(p.factor, k)
	variance := 1 + p.noise
	for _, v := range k {
		variance -= v * v
	}
	return p.mean + p.scale*mean, p.scale * math.Sqrt(max(variance, 0))
}

// expected is the mean alone, which is cheaper.
func (p *process) expected(place []float64) float64 {
	mean := 0.0
	for i, other := range p.places {
		mean += p.covariance(place, other) * p.alpha[i]
	}
	return p.mean + p.scale*mean
}

// learn finds the weights under which the values are the most likely, one dimension after another and from those that
// the process has.
func (p *process) learn(places [][]float64, values []float64) {
	score := func() float64 {
		l := p.fit(places, values)
		for _, w := range p.weights {
			x := math.Log(w) / weightSpread
			l -= x * x / 2
		}
		return l
	}
	best := score()
	try := func(set func(), undo func()) bool {
		set()
		if l := score(); l > best || math.IsNaN(best) && !math.IsNaN(l) {
			best = l
			return true
		}
		undo()
		return false
	}
	for range learnRounds {
		for i := range p.weights {
			was := p.weights[i]
			for _, factor := range []float64{3, 1. / 3} {
				w := was
				for steps := 0; steps < 2; steps++ {
					next := min(max(w*factor, 1e-3), 1e3)
					if !try(func() { p.weights[i] = next }, func() { p.weights[i] = w }) {
						break
					}
					w = next
				}
				if w != was {
					break
				}
			}
		}
		was := p.noise
		for _, next := range []float64{was * 4, was / 4} {
			next = min(max(next, 1e-6), .3)
			if try(func() { p.noise = next }, func() { p.noise = was }) {
				break
			}
		}
	}
}

// weightSpread is the deviation of the logarithm of a weight that is expected before anything is known.
const weightSpread = 1.5

// learnRounds is how often learn goes through the dimensions.
const learnRounds = 2

// cholesky replaces the lower triangle of a positive definite matrix by its factor; false when it is not one.
func cholesky(a [][]float64) bool {
	for i := range a {
		for j := range i + 1 {
			sum := a[i][j]
			ai, aj := a[i][:j], a[j][:j]
			for k, v := range ai {
				sum -= v * aj[k]
			}
			switch {
			case j < i:
				a[i][j] = sum / a[j][j]
			case !(sum > 0):
				return false
			default:
				a[i][i] = math.Sqrt(sum)
			}
		}
	}
	return true
}

// forward solves L x = b in place.
func forward(l [][]float64, b []float64) {
	for i := range b {
		sum := b[i]
		for k, v := range l[i][:i] {
			sum -= v * b[k]
		}
		b[i] = sum / l[i][i]
	}
}

// backward solves Lᵀ x = b in place.
func backward(l [][]float64, b []float64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] /= l[i][i]
		for k, v := range l[i][:i] {
			b[k] -= v * b[i]
		}
	}
}
