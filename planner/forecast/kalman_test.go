package forecast

import (
	"math"
	"testing"
)

// TestKalmanRecorded compares with the forecasts of a run of the reference.
func TestKalmanRecorded(t *testing.T) {
	checkRecorded(t, Kalman, func(string, int) float64 { return 1e-12 })
}

// TestKalmanWithoutForecasts checks that a value which no forecast came before is predicted first all the same.
func TestKalmanWithoutForecasts(t *testing.T) {
	asked, unasked := newPredictor(t, defaults(Kalman)), newPredictor(t, defaults(Kalman))
	for _, v := range []float64{3, 5, 9, 2, 7} {
		asked.Add(v)
		asked.Forecast()
		unasked.Add(v)
	}
	if a, b := asked.Forecast(), unasked.Forecast(); a != b {
		t.Errorf("forecast %v when asked each time, %v when asked once", a, b)
	}
}

// TestKalmanSign checks that a falling series is followed below zero, and with logarithms is not.
func TestKalmanSign(t *testing.T) {
	cfg := defaults(Kalman)
	for _, c := range []struct {
		log1p    bool
		min, max float64
	}{{false, -20, -5}, {true, 0, 1}} {
		cfg.Log1p = c.log1p
		p := newPredictor(t, cfg)
		for v := 30.0; v >= 0; v -= 10 {
			p.Add(v)
		}
		if got := p.Forecast(); got < c.min || got > c.max {
			t.Errorf("log1p %v: forecast %v, want one from %v to %v", c.log1p, got, c.min, c.max)
		}
	}
}

// TestKalmanRamp checks that a straight ramp is met ever better.
func TestKalmanRamp(t *testing.T) {
	p := newPredictor(t, defaults(Kalman))
	for i := range 200 {
		p.Add(100 + 3*float64(i))
	}
	if got, want := p.Forecast(), 100+3*200.0; math.Abs(got-want) > 1e-3 {
		t.Errorf("forecast %v, want %v", got, want)
	}
}
