package metrics

import "testing"

func TestNearestRank(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for percent, want := range map[int]float64{0: 1, 1: 1, 10: 1, 11: 2, 50: 5, 51: 6, 90: 9, 91: 10, 100: 10} {
		if got := NearestRank(ten, percent); got != want {
			t.Errorf("percentile %d is %g, not %g", percent, got, want)
		}
	}
	if got := NearestRank([]float64{7}, 50); got != 7 {
		t.Errorf("of one value it is %g", got)
	}
}
