package search

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHalvingRounds checks the sizes of the rounds, that the best of each go on, and what all cost.
func TestHalvingRounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.IntRange(1, 12).Draw(rt, "a"), rapid.IntRange(1, 12).Draw(rt, "b")
		space := Space{Dimensions: []Dimension{{Name: "a", Size: a, Values: numbers(a, func(i int) float64 { return float64(i) })}, {Name: "b", Size: b}}}
		opt := HalvingOptions{
			Cost:        rapid.SampledFrom([]float64{0, 3, 10}).Draw(rt, "cost"),
			Eta:         rapid.SampledFrom([]float64{0, 2, 3, 4.5}).Draw(rt, "eta"),
			MinFidelity: rapid.SampledFrom([]float64{0, .01, .2, 1}).Draw(rt, "fidelity"),
		}
		rounds := map[float64][]Result{}
		var order []float64
		cost := 0.0
		drive(rt, NewHalving(space, opt, 7), rapid.IntRange(1, 9).Draw(rt, "batch"), func(trial Trial) Result {
			if rounds[trial.Fidelity] == nil {
				order = append(order, trial.Fidelity)
			}
			x := float64(trial.Place[0]) + trial.Fidelity
			r := Result{Trial: trial, OK: trial.Place[1] != 3, Objectives: []float64{x, -x * float64(trial.Place[1])}, Margins: []float64{x - 2}}
			rounds[trial.Fidelity] = append(rounds[trial.Fidelity], r)
			cost += trial.Fidelity
			return r
		})
		if !slices.IsSorted(order) || len(order) > 0 && order[len(order)-1] > 1 {
			rt.Fatalf("fidelities %v", order)
		}
		if opt.Cost > 0 && cost > opt.Cost+float64(len(order)) {
			rt.Fatalf("cost %v, want about %v at most", cost, opt.Cost)
		}
		if opt.Cost == 0 && len(rounds[order[0]]) != a*b {
			rt.Fatalf("%d of %d candidates begin", len(rounds[order[0]]), a*b)
		}
		for i := 1; i < len(order); i++ {
			before, after := rounds[order[i-1]], rounds[order[i]]
			ranked := rankResults(before)
			for k, r := range after {
				if !slices.Equal(r.Place, ranked[k].Place) {
					rt.Fatalf("round %d has %v, want %v", i, r.Place, ranked[k].Place)
				}
			}
			eta := opt.Eta
			if eta == 0 {
				eta = 3
			}
			if want := min(len(ranked), int(math.Ceil(float64(len(before))/eta))); len(after) != want {
				rt.Fatalf("%d of %d go on, want %d", len(after), len(before), want)
			}
		}
	})
}
