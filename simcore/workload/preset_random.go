package workload

import (
	"math"
	"math/rand/v2"
)

// quantileLevels are the probabilities at which every quantile table has a value.
var quantileLevels = [...]float64{
	0, .01, .025, .05, .1, .15, .2, .3, .4, .5, .6, .7, .8, .85, .9, .95, .975, .99, .995, .999, 1,
}

// quantiles is a distribution as its values at quantileLevels, linear between them.
type quantiles [len(quantileLevels)]float64

// at returns the value at probability u, 0 <= u <= 1. The conversion keeps compilers from fusing the product and
// the sum, whose result would then differ between processors.
func (q *quantiles) at(u float64) float64 {
	i := 1
	for i < len(quantileLevels)-1 && quantileLevels[i] < u {
		i++
	}
	part := (u - quantileLevels[i-1]) / (quantileLevels[i] - quantileLevels[i-1])
	return q[i-1] + float64((q[i]-q[i-1])*part)
}

// scaledTokens is a token count times the scale, rounded and at least the least.
func scaledTokens(tokens, scale float64, least int) int {
	return max(least, int(math.Round(tokens*scale)))
}

// streams are the independent random sequences of one seed, so that a change in what one of them is used for
// leaves the others as they are.
type streams struct{ arrivals, lengths, sharing *rand.Rand }

// phase selects a set of streams of a seed.
type phase uint64

const (
	workloadPhase phase = iota
	warmUpPhase
)

func (p phase) open(seed uint64) streams {
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(p)<<8|n)) }
	return streams{arrivals: stream(1), lengths: stream(2), sharing: stream(3)}
}

// pick returns the index of the weight that u, 0 <= u < 1, falls into.
func pick(u float64, weights []float64) int {
	var total float64
	for _, w := range weights {
		total += w
	}
	u *= total
	for i, w := range weights {
		if u < w {
			return i
		}
		u -= w
	}
	return len(weights) - 1
}

// arrivalFit is a Poisson process whose rate swells, ebbs and bursts, recorded in ticks.
type arrivalFit struct {
	// tickMs is the resolution of the times; a tick's arrivals have the same time. 0 means exact times.
	tickMs float64
	// swell is the relative amplitude of the rate's triangular swell, swellPeriodMs its period.
	swell, swellPeriodMs float64
	// startsLow lets workloads begin where the rate is least, otherwise anywhere.
	startsLow bool
	// burst is how many times the rate it is for burstMs, now and then: burstGapMs after the last burst on average, and
	// between half and one and a half times of it. 0 means no bursts.
	burst, burstMs, burstGapMs float64
}

// meanRate is the mean rate over time as a multiple of that outside of bursts.
func (f *arrivalFit) meanRate() float64 {
	if f.burst == 0 {
		return 1
	}
	return 1 + float64((f.burst-1)*f.burstMs/(f.burstMs+f.burstGapMs))
}

// arrivals draws the times of one workload.
type arrivals struct {
	fit     arrivalFit
	random  *rand.Rand
	meanMs  float64 // mean interval at the fitted rate
	stretch float64 // fitted rate / wanted rate
	phase   float64
	at      float64 // ms, at the fitted rate
	burstAt float64 // when the next burst begins, or the present one did
	started bool
}

func newArrivals(fit arrivalFit, fittedRate, rate float64, random *rand.Rand) *arrivals {
	a := &arrivals{fit: fit, random: random, meanMs: 1000 / fittedRate * fit.meanRate(), stretch: fittedRate / rate, phase: random.Float64()}
	if fit.startsLow {
		a.phase = 0.5
	}
	if fit.burst > 0 {
		a.burstAt = float64(fit.burstGapMs * random.Float64())
	}
	return a
}

// bursting reports whether there is a burst now.
func (a *arrivals) bursting() bool {
	for a.fit.burst > 0 && a.at >= a.burstAt+a.fit.burstMs {
		a.burstAt += a.fit.burstMs + float64(a.fit.burstGapMs*(0.5+a.random.Float64()))
	}
	return a.fit.burst > 0 && a.at >= a.burstAt
}

// next returns the next arrival in ms, to the microsecond; the first is 0.
func (a *arrivals) next() float64 {
	if a.started {
		step := float64(a.random.ExpFloat64() * a.meanMs)
		if a.fit.swell > 0 {
			turn := a.at/a.fit.swellPeriodMs + a.phase
			triangle := math.Abs(4*(turn-math.Floor(turn))-2) - 1
			step /= 1 + float64(a.fit.swell*triangle)
		}
		if a.bursting() {
			step /= a.fit.burst
		}
		a.at += step
	}
	a.started = true
	at := a.at
	if a.fit.tickMs > 0 {
		at = math.Floor(at/a.fit.tickMs) * a.fit.tickMs
	}
	return roundMs(at * a.stretch)
}

// roundMs rounds a time in ms to the microsecond.
func roundMs(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// mean is the mean of the distribution.
func (q *quantiles) mean() float64 {
	var sum float64
	for i := 1; i < len(q); i++ {
		sum += float64((q[i] + q[i-1]) / 2 * (quantileLevels[i] - quantileLevels[i-1]))
	}
	return sum
}
