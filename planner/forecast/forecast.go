// Package forecast predicts the next value of a series of numbers that come at equal intervals, such as the requests of
// each interval of a planner: the load predictors of NVIDIA Dynamo's planner (planner specification §7, §19 C5).
//
// Read forecast.go for what all predictors share, then kalman.go, arima.go with its parts stepwise.go (which order),
// stationarity.go (how often to take differences), fit.go (the best parameters), likelihood.go (how well they fit), lbfgs.go
// with linesearch.go (the search for them), and prophet.go with its search, newton.go.
//
// All predictors are deterministic, take any input, and give finite forecasts. None is safe for concurrent use.
package forecast

import (
	"fmt"
	"math"
)

// Predictor predicts the next value of a series.
type Predictor interface {
	// Add takes the value of one more interval. A value that is not a number, or infinite, counts as 0; zeros before the first
	// other value are no part of the series.
	Add(value float64)
	// Warm takes values of the past, oldest first, as Add does. Afterwards zeros are skipped again until another value comes, so
	// that the quiet start of what follows does not spoil what was learnt.
	Warm(values []float64)
	// Forecast returns the value that is expected of the next interval; 0 for an empty series. It is finite, and not negative
	// unless Config says so.
	Forecast() float64
}

// Kind names how a predictor works.
type Kind string

// The kinds of predictors.
const (
	// Constant expects the last value again.
	Constant Kind = "constant"
	// ARIMA fits an autoregressive integrated moving-average model, whose order it selects at the fifth value.
	ARIMA Kind = "arima"
	// Kalman follows a level and a trend with a Kalman filter.
	Kalman Kind = "kalman"
	// Prophet fits a piecewise linear trend with daily, weekly and yearly seasons where the series is long enough for them.
	Prophet Kind = "prophet"
)

// Config says what predictor to make.
type Config struct {
	// Kind is how it works.
	Kind Kind
	// Log1p makes it learn log(1+value) instead of value; values below 0 count as 0 then, and no forecast is negative. It makes
	// no difference to the kind constant.
	Log1p bool
	// Reselect makes the kind arima select its order anew when a fifth more values have come since, instead of once and for all
	// at the fifth value, as the reference does: of five values of a ramp it sees just the mean, and lags behind for ever.
	Reselect bool
	// IntervalSeconds is the time between two values, in seconds; the kind prophet needs it for its seasons.
	IntervalSeconds float64
	// ProphetWindow is the number of latest values that the kind prophet looks at.
	ProphetWindow int
	// KalmanQLevel, KalmanQTrend and KalmanR are the variances of the level, of the trend and of what is measured, of the kind
	// kalman. Its forecasts may be negative without Log1p.
	KalmanQLevel, KalmanQTrend, KalmanR float64
}

// minPoints is the number of values from which ARIMA and Prophet fit a model. Before that they expect the last value.
const minPoints = 5

// MaxIntervalSeconds is the longest time between two values that the kind prophet takes, in seconds: a year.
const MaxIntervalSeconds = 366 * 86400

// MaxMagnitude is what greater values are cut to, so that sums of squares stay finite, and the greatest variance of the kind kalman.
const MaxMagnitude = 1e100

// New makes a predictor. Errors name the field of cfg that it cannot work with.
func New(cfg Config) (Predictor, error) {
	var m model
	switch cfg.Kind {
	case Constant:
		m = &lastValue{}
	case Kalman:
		for _, q := range []struct {
			name  string
			value float64
		}{{"KalmanQLevel", cfg.KalmanQLevel}, {"KalmanQTrend", cfg.KalmanQTrend}, {"KalmanR", cfg.KalmanR}} {
			if math.IsNaN(q.value) || math.Abs(q.value) > MaxMagnitude {
				return nil, fmt.Errorf("forecast: %s is %v: give a variance, a finite number", q.name, q.value)
			}
		}
		m = newLevelTrend(cfg.KalmanQLevel, cfg.KalmanQTrend, cfg.KalmanR)
	case ARIMA:
		m = &autoARIMA{straight: cfg.Log1p, reselect: cfg.Reselect}
	case Prophet:
		if !(cfg.IntervalSeconds > 0) || cfg.IntervalSeconds > MaxIntervalSeconds {
			return nil, fmt.Errorf("forecast: IntervalSeconds is %v: the kind prophet needs the time between two values, more than 0 and at most %g s", cfg.IntervalSeconds, float64(MaxIntervalSeconds))
		}
		if cfg.ProphetWindow < 1 {
			return nil, fmt.Errorf("forecast: ProphetWindow is %d: give the number of values that the kind prophet looks at, at least 1", cfg.ProphetWindow)
		}
		m = &seasonalTrend{intervalSeconds: cfg.IntervalSeconds, window: cfg.ProphetWindow}
	default:
		return nil, fmt.Errorf("forecast: unknown kind of predictor %q: give constant, arima, kalman or prophet", cfg.Kind)
	}
	return &predictor{model: m, log1p: cfg.Log1p && cfg.Kind != Constant, signed: cfg.Kind == Kalman && !cfg.Log1p}, nil
}

// model is what differs between the kinds. It works on the scale on which it is to learn, logarithms included.
type model interface {
	// add takes the next value.
	add(value float64)
	// forecast predicts the one after; ok is false when it cannot, and the last value stands in for it.
	forecast() (value float64, ok bool)
}

// predictor is the part that all kinds share: what counts as a value, and which forecasts are let through.
type predictor struct {
	model model
	// log1p makes the model learn logarithms; signed lets negative forecasts through.
	log1p, signed bool
	// begun is set from the first value that is not zero.
	begun bool
	// last is the last value, as it was given.
	last float64
}

// Add implements [Predictor].
func (p *predictor) Add(value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		value = 0
	}
	if value == 0 && !p.begun {
		return
	}
	p.begun = true
	p.last = min(max(value, -MaxMagnitude), MaxMagnitude)
	if p.log1p {
		p.model.add(math.Log1p(max(0, p.last)))
		return
	}
	p.model.add(p.last)
}

// Warm implements [Predictor].
func (p *predictor) Warm(values []float64) {
	for _, v := range values {
		p.Add(v)
	}
	p.begun = false
}

// Forecast implements [Predictor].
func (p *predictor) Forecast() float64 {
	value, ok := p.model.forecast()
	if ok && p.log1p {
		value = math.Expm1(value)
	}
	if !ok || math.IsNaN(value) || math.IsInf(value, 0) {
		value = p.last
	}
	if p.signed {
		return value
	}
	return max(0, value)
}

// lastValue is the model of the kind constant: whatever came last.
type lastValue struct{}

func (*lastValue) add(float64) {}

func (*lastValue) forecast() (float64, bool) { return 0, false }
