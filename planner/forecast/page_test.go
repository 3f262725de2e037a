package forecast

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestPredictorsPage checks the table of docs/predictors.md: by how much each kind misses the next value of some series, on
// average.
func TestPredictorsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/predictors.md")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 0))
	noise := func(deviation float64) float64 { return deviation * random.NormFloat64() }
	series := func(n int, f func(i int) float64) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = max(0, math.Round(f(i)))
		}
		return values
	}
	requests := recorded(t, ARIMA)["num_req"]
	for _, s := range []struct {
		name   string
		values []float64
	}{
		{"a recorded ramp of 13 intervals", series(len(requests), func(i int) float64 { return requests[i][0] })},
		{"a ramp, 5 more each", series(60, func(i int) float64 { return 20 + 5*float64(i) + noise(5) })},
		{"a wave of 31 intervals", series(60, func(i int) float64 { return 100 + 80*math.Sin(float64(i)/5) + noise(10) })},
		{"bursts, 3 of 12 intervals", series(60, func(i int) float64 { return 30 + 150*float64(max(0, 1-i%12/3)) + noise(5) })},
		{"noise around 100", series(60, func(int) float64 { return 100 + noise(20) })},
	} {
		_, row, found := strings.Cut(string(page), "| "+s.name+" |")
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(row, "|")
		if !found || len(cells) < 5 {
			t.Errorf("docs/predictors.md has no row of five figures for %s", s.name)
			continue
		}
		for i, cfg := range []Config{defaults(Constant), {Kind: ARIMA}, {Kind: ARIMA, Reselect: true}, defaults(Kalman), defaults(Prophet)} {
			got, err := strconv.ParseFloat(strings.TrimSpace(cells[i]), 64)
			// Rounding can turn the walk of a selection: the fifth or so of a unit is not to be relied on.
			if want := missed(t, cfg, s.values); err != nil || math.Abs(got-want) > max(0.3, 0.05*want) {
				t.Errorf("%s, %s, selected anew %v: docs/predictors.md says %q, want %.1f", s.name, cfg.Kind, cfg.Reselect, cells[i], want)
			}
		}
	}
}

// missed returns by how much forecasts miss the next value, on average, from the eighth value on.
func missed(t *testing.T, cfg Config, values []float64) float64 {
	p := newPredictor(t, cfg)
	var forecast, sum float64
	const first = 7
	for i, v := range values {
		if i >= first {
			sum += math.Abs(v - forecast)
		}
		p.Add(v)
		forecast = p.Forecast()
	}
	return sum / float64(len(values)-first)
}
