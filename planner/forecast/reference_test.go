package forecast

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// referenceCase is a series that the predictors of the reference were fed, as made for this test: forecasts are those after
// the value numbered First and each later one, from 1; a value that is null is not a number.
type referenceCase struct {
	Name            string
	Kind            Kind
	Log1p           bool
	IntervalSeconds float64 `json:"interval_seconds"`
	Window, First   int
	Values          []*float64
	Forecasts       []float64
	// Order is that of the ARIMA model: p, d, q, and 1 with a constant.
	Order []int
}

// play feeds the series to a predictor of ours and returns it with the greatest relative difference of a forecast.
func (c referenceCase) play(t *testing.T) (p Predictor, worst float64) {
	cfg := defaults(c.Kind)
	cfg.Log1p, cfg.IntervalSeconds, cfg.ProphetWindow = c.Log1p, c.IntervalSeconds, c.Window
	p = newPredictor(t, cfg)
	for i, v := range c.Values {
		if v == nil {
			p.Add(math.NaN())
		} else {
			p.Add(*v)
		}
		if i+1 < c.First {
			continue
		}
		want := c.Forecasts[i+1-c.First]
		if got := p.Forecast(); got != want {
			worst = max(worst, math.Abs(got-want)/math.Abs(want))
		}
	}
	return p, worst
}

// TestReference compares with the reference on made series: ramps, noise, bursts, waves, walks, counts, quiet starts, huge
// values, shares, and some that are degenerate.
func TestReference(t *testing.T) {
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []referenceCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	worsts := map[Kind][]float64{}
	for _, c := range cases {
		p, worst := c.play(t)
		worsts[c.Kind] = append(worsts[c.Kind], worst)
		limit := map[Kind]float64{Kalman: 1e-11, ARIMA: 2e-2, Prophet: 1e-6}[c.Kind]
		if c.Kind == Prophet && c.First > 99 {
			limit = 0.1 // Prophet searches by other steps there
		}
		if worst > limit {
			t.Errorf("%s, %s, logarithms %v, %d values: forecast off by %.2g, allowed %.2g", c.Kind, c.Name, c.Log1p, c.First, worst, limit)
		}
		if m, ok := p.(*predictor).model.(*autoARIMA); ok && c.Order != nil {
			constant := 0
			if m.fitted.order.constant {
				constant = 1
			}
			if o := m.fitted.order; !slices.Equal(c.Order, []int{o.p, o.d, o.q, constant}) {
				t.Errorf("%s, logarithms %v, %d values: order %+v, the reference's %v", c.Name, c.Log1p, c.First, o, c.Order)
			}
		}
	}
	for _, kind := range []Kind{Kalman, ARIMA, Prophet} {
		w := slices.Sorted(slices.Values(worsts[kind]))
		if len(w) < 20 {
			t.Fatalf("%d series of %s, want 20 and more", len(w), kind)
		}
		t.Logf("%s: %d series, forecasts off by %.1g in the median, %.1g at the ninth tenth, %.1g at most", kind, len(w), w[len(w)/2], w[len(w)*9/10], w[len(w)-1])
	}
	if w := slices.Sorted(slices.Values(worsts[ARIMA])); w[len(w)*4/5] > 1e-4 {
		t.Errorf("a fifth of the ARIMA forecasts are off by %.2g and more", w[len(w)*4/5])
	}
}
