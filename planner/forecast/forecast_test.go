package forecast

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// defaults is the configuration of kind with the values of Dynamo's planner.
func defaults(kind Kind) Config {
	return Config{Kind: kind, IntervalSeconds: 20, ProphetWindow: 50, KalmanQLevel: 1, KalmanQTrend: 0.1, KalmanR: 10}
}

// newPredictor makes a predictor or ends the test.
func newPredictor(t testing.TB, cfg Config) Predictor {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// recorded reads the series that runs of the reference observed with a kind of predictor, by name of the quantity: pairs
// of what came and what was forecast then. They are those of planner specification §17: a05, a06 and a07.
func recorded(t *testing.T, kind Kind) map[string][][2]float64 {
	t.Helper()
	data, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[Kind]map[string][][2]float64
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all[kind]) == 0 {
		t.Fatalf("testdata/recorded.json has no series of %s", kind)
	}
	return all[kind]
}

// checkRecorded feeds the recorded series and compares each forecast with the reference's, relatively.
func checkRecorded(t *testing.T, kind Kind, tolerance func(quantity string, points int) float64) {
	t.Helper()
	for quantity, pairs := range recorded(t, kind) {
		p := newPredictor(t, defaults(kind))
		for i, pair := range pairs {
			p.Add(pair[0])
			got, want := p.Forecast(), pair[1]
			if limit := tolerance(quantity, i+1); math.Abs(got-want) > limit*math.Abs(want) {
				t.Errorf("%s after %d values: forecast %v, the reference's %v: off by %.2g, allowed %.2g", quantity, i+1, got, want, math.Abs(got-want)/want, limit)
			}
		}
	}
}

// TestSharedRules checks what all kinds have in common with series that the kind constant forecasts plainly.
func TestSharedRules(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		warm, values []float64
		want         float64
	}{
		"empty":                        {want: 0},
		"only zeros":                   {values: []float64{0, 0}, want: 0},
		"last":                         {values: []float64{0, 3, 5}, want: 5},
		"zero inside":                  {values: []float64{3, 0}, want: 0},
		"not a number":                 {values: []float64{3, nan}, want: 0},
		"not a number first":           {values: []float64{nan, 3}, want: 3},
		"infinite":                     {values: []float64{3, inf}, want: 0},
		"huge":                         {values: []float64{1e300}, want: MaxMagnitude},
		"negative":                     {values: []float64{-3}, want: 0},
		"warm":                         {warm: []float64{1, 2}, want: 2},
		"warm, quiet start skipped":    {warm: []float64{1, 2}, values: []float64{0, 0}, want: 2},
		"warm, zero after start":       {warm: []float64{1, 2}, values: []float64{0, 7, 0}, want: 0},
		"warm with nothing, then zero": {warm: []float64{0}, values: []float64{0, 4}, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPredictor(t, Config{Kind: Constant})
			p.Warm(c.warm)
			for _, v := range c.values {
				p.Add(v)
			}
			if got := p.Forecast(); got != c.want {
				t.Errorf("forecast %v, want %v", got, c.want)
			}
		})
	}
}

// TestRefusals checks that New says what it cannot work with.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Kind: "holt"}, "holt"},
		{Config{}, "constant, arima, kalman or prophet"},
		{Config{Kind: Prophet, ProphetWindow: 50}, "IntervalSeconds"},
		{Config{Kind: Prophet, IntervalSeconds: 1}, "ProphetWindow"},
		{Config{Kind: Kalman, KalmanR: math.NaN()}, "KalmanR"},
		{Config{Kind: Kalman, KalmanQTrend: math.Inf(1)}, "KalmanQTrend"},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one that has %q", c.cfg, err, c.want)
		}
	}
}

// FuzzForecast feeds bytes as numbers.
func FuzzForecast(f *testing.F) {
	series := func(values ...float64) []byte {
		var b []byte
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	for kind := range byte(len(kinds)) {
		f.Add(kind, false, series(24, 31, 37, 29, 62, 58))
		f.Add(kind, true, series(0, 1e12, 1e12, 0, 1e12, 1e-12, 5))
		f.Add(kind, false, series(1, math.NaN(), math.Inf(-1), 1e308, -1e308, 5e-324))
		f.Add(kind, true, series(-1, -2, -3, -4, -5, 7, 8, 9))
		f.Add(kind, false, series(7, 7, 7, 7, 7, 7, 7, 8))
	}
	f.Fuzz(func(t *testing.T, kind byte, log1p bool, data []byte) {
		cfg := defaults(kinds[int(kind)%len(kinds)])
		cfg.Log1p = log1p
		var values []float64
		for i := 0; i+8 <= min(len(data), 40*8); i += 8 {
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(data[i:])))
		}
		checkAnySeries(t, cfg, values)
	})
}

// TestAnySeries does the same with series of sizes that are seen, and ever greater ones.
func TestAnySeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := defaults(rapid.SampledFrom(kinds).Draw(t, "kind"))
		cfg.Log1p = rapid.Bool().Draw(t, "log1p")
		cfg.Reselect = rapid.Bool().Draw(t, "reselect")
		cfg.ProphetWindow = rapid.IntRange(1, 120).Draw(t, "window")
		cfg.IntervalSeconds = rapid.SampledFrom([]float64{1e-3, 1, 180, 21600, MaxIntervalSeconds}).Draw(t, "interval")
		scale := math.Pow(10, float64(rapid.IntRange(-12, 110).Draw(t, "scale")))
		shape := rapid.SampledFrom([]func(i int) float64{
			func(int) float64 { return 1 },
			func(i int) float64 { return float64(i) },
			func(i int) float64 { return float64(i * i) },
			func(i int) float64 { return float64(i % 2) },
			func(i int) float64 { return math.Exp(float64(i)) },
			func(i int) float64 { return math.Mod(float64(i)*math.Pi, 1) },
			func(i int) float64 { return -float64(i % 3) },
		}).Draw(t, "shape")
		values := make([]float64, rapid.IntRange(0, 40).Draw(t, "length"))
		for i := range values {
			values[i] = scale * shape(i)
		}
		for range rapid.IntRange(0, 3).Draw(t, "spikes") {
			if len(values) > 0 {
				values[rapid.IntRange(0, len(values)-1).Draw(t, "place")] = rapid.Float64().Draw(t, "spike")
			}
		}
		checkAnySeries(t, cfg, values)
	})
}

// checkAnySeries feeds values: whatever they are, forecasts are finite, the same the second time, and not negative where that
// is promised.
func checkAnySeries(t interface{ Fatalf(string, ...any) }, cfg Config, values []float64) {
	p, err := New(cfg)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for i, v := range values {
		p.Add(v)
		got := p.Forecast()
		if math.IsNaN(got) || math.IsInf(got, 0) {
			t.Fatalf("%s: forecast %v after %d values", cfg.Kind, got, i+1)
		}
		if got < 0 && (cfg.Kind != Kalman || cfg.Log1p) {
			t.Fatalf("%s: negative forecast %v after %d values", cfg.Kind, got, i+1)
		}
		if again := p.Forecast(); again != got {
			t.Fatalf("%s: forecast %v, and %v when asked again", cfg.Kind, got, again)
		}
	}
}

// kinds are all kinds of predictors.
var kinds = []Kind{Constant, ARIMA, Kalman, Prophet}
