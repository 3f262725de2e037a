package forecast

import (
	"math"
	"testing"
)

// TestProphetRecorded compares with the forecasts of a run of the reference, whose optimiser writes its result with nine
// digits or so.
func TestProphetRecorded(t *testing.T) {
	checkRecorded(t, Prophet, func(string, int) float64 { return 1e-7 })
}

// TestProphetWindow checks that what left the window is forgotten.
func TestProphetWindow(t *testing.T) {
	cfg := defaults(Prophet)
	cfg.ProphetWindow = 10
	long, short := newPredictor(t, cfg), newPredictor(t, cfg)
	for i := range 30 {
		v := 50 + 20*math.Sin(float64(i))
		long.Add(v)
		if i >= 20 {
			short.Add(v)
		}
	}
	if a, b := long.Forecast(), short.Forecast(); a != b {
		t.Errorf("forecast %v after 30 values, %v after the last 10", a, b)
	}
}

// TestProphetSeasons checks that a day's wave is met once two days were seen, and not before.
func TestProphetSeasons(t *testing.T) {
	cfg := defaults(Prophet)
	cfg.IntervalSeconds, cfg.ProphetWindow = 3600, 90
	p := newPredictor(t, cfg)
	wave := func(hour int) float64 { return 100 + 50*math.Sin(2*math.Pi*float64(hour)/24) }
	for hour := range 90 {
		p.Add(wave(hour))
		if hour%10 != 0 || hour < 40 {
			continue
		}
		got, want := p.Forecast(), wave(hour+1)
		if off := math.Abs(got - want); (off < 1) != (hour >= 48) {
			t.Errorf("hour %d: forecast %v, what came was %v", hour+1, got, want)
		}
	}
}

// TestProphetManyValues checks a great window: a ramp with a bend is found.
func TestProphetManyValues(t *testing.T) {
	cfg := defaults(Prophet)
	cfg.ProphetWindow = 200
	p := newPredictor(t, cfg)
	for i := range 200 {
		p.Add(max(100, 3*float64(i)-200) + math.Sin(float64(i)))
	}
	if got, want := p.Forecast(), 3*200.0-200; math.Abs(got-want) > 0.01*want {
		t.Errorf("forecast %v, want %v", got, want)
	}
}
