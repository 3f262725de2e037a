package search

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProcessInterpolates checks that a process reproduces what it learnt from, expects something near the truth between,
// is surer there than far away, and learns which dimension matters.
func TestProcessInterpolates(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	truth := func(p []float64) float64 { return 10 + math.Sin(5*p[0]) + 2*p[2] }
	var places [][]float64
	var values []float64
	for range 60 {
		p := []float64{src.Float64(), src.Float64(), float64(src.IntN(2))}
		places, values = append(places, p), append(values, truth(p))
	}
	p := &process{noise: 1e-4, weights: []float64{1, 1, 1}, ordered: []bool{true, true, false}}
	p.learn(places, values)
	if math.IsNaN(p.fit(places, values)) {
		t.Fatal("the covariances are no matrix of them")
	}
	for i, place := range places {
		if mean, deviation := p.at(place); math.Abs(mean-values[i]) > 0.05 || deviation > 0.1 {
			t.Errorf("at %v it expects %v ± %v, told %v", place, mean, deviation, values[i])
		}
		if mean, _ := p.at(place); math.Abs(mean-p.expected(place)) > 1e-9 {
			t.Errorf("two expectations at %v", place)
		}
	}
	for range 30 {
		place := []float64{src.Float64(), src.Float64(), float64(src.IntN(2))}
		if mean, deviation := p.at(place); math.Abs(mean-truth(place)) > 0.2 || math.Abs(mean-truth(place)) > 4*deviation+0.02 {
			t.Errorf("at %v it expects %v ± %v, the truth is %v", place, mean, deviation, truth(place))
		}
	}
	if p.weights[1] > p.weights[0]/10 {
		t.Errorf("weights %v: the second dimension changes nothing", p.weights)
	}
	_, near := p.at(places[0])
	if _, far := p.at([]float64{5, 5, 0}); far < 5*near {
		t.Errorf("it is as sure far away (%v) as nearby (%v)", far, near)
	}
}

// TestProcessOfAlikes checks that a process copes with one value, equal values and equal places.
func TestProcessOfAlikes(t *testing.T) {
	for _, values := range [][]float64{{3}, {3, 3, 3}, {1, 2, 1}} {
		p := &process{noise: 1e-6, weights: []float64{1}, ordered: []bool{true}}
		places := make([][]float64, len(values))
		for i := range places {
			places[i] = []float64{0.5}
		}
		p.update(places, values)
		if mean, deviation := p.at([]float64{0.5}); math.IsNaN(mean) || math.IsNaN(deviation) || mean < 1 || mean > 3 {
			t.Errorf("%v: it expects %v ± %v", values, mean, deviation)
		}
	}
}
