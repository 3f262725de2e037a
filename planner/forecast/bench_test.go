package forecast

import (
	"fmt"
	"math"
	"testing"
)

// BenchmarkForecast measures a forecast after one more value of a long series.
func BenchmarkForecast(b *testing.B) {
	for _, kind := range kinds {
		for _, n := range []int{50, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				cfg := defaults(kind)
				cfg.ProphetWindow = min(n, 1000)
				p := newPredictor(b, cfg)
				value := func(i int) float64 { return 100 + 40*math.Sin(float64(i)/9) + 7*math.Sin(float64(i*i)) }
				for i := range n {
					p.Add(value(i))
				}
				p.Forecast()
				b.ReportAllocs()
				for i := n; b.Loop(); i++ {
					p.Add(value(i))
					p.Forecast()
				}
			})
		}
	}
}

// BenchmarkSelection measures the selection of an ARIMA order.
func BenchmarkSelection(b *testing.B) {
	for _, n := range []int{5, 15, 50, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			values := make([]float64, n)
			for i := range values {
				values[i] = 100 + 2*float64(i) + 40*math.Sin(float64(i)/9) + 7*math.Sin(float64(i*i))
			}
			b.ReportAllocs()
			for b.Loop() {
				selectARIMA(values)
			}
		})
	}
}
