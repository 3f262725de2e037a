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
			Cost:        rapid.SampledFrom([]float64{0, 1, 3, 10}).Draw(rt, "cost"),
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
		if opt.Cost > 0 && cost > opt.Cost+1e-9 {
			rt.Fatalf("cost %v, want %v at most", cost, opt.Cost)
		}
		if len(order) == 0 || order[len(order)-1] != 1 {
			rt.Fatalf("rounds of the fidelities %v: nothing came to the end", order)
		}
		if opt.Cost == 0 && len(rounds[order[0]]) != a*b {
			rt.Fatalf("%d of %d candidates begin", len(rounds[order[0]]), a*b)
		}
		for i := 1; i < len(order); i++ {
			before, after := rounds[order[i-1]], rounds[order[i]]
			ranked := rankResults(before)
			if len(ranked) == 0 { // all failed, and some come to the end to show it
				if order[i] != 1 || len(after) > len(before) {
					rt.Fatalf("all failed, then came %v", after)
				}
				continue
			}
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

// TestHalvingFindsTheFrontier is the promise of docs/search.md: for 15 % of the work of all points the frontier has 99 % of
// the hypervolume of the true one.
func TestHalvingFindsTheFrontier(t *testing.T) {
	whole := readTable(t, "halving-1")
	tables := []*table{readTable(t, "halving-27"), readTable(t, "halving-9"), readTable(t, "halving-3"), whole}
	truth, found := whole.whole(), fronts{}
	budget := .15 * float64(whole.points)
	for seed := range uint64(*seeds) {
		s := NewSplit(whole.space, whole.along, func(space Space, part int) Strategy {
			return NewHalving(space, HalvingOptions{Cost: budget / whole.space.Parts(whole.along)}, seed+uint64(part))
		})
		cost := 0.0
		drive(t, s, 64, func(trial Trial) Result {
			cost += trial.Fidelity
			round := int(math.Round(math.Log(27*trial.Fidelity) / math.Log(3)))
			r, ok := tables[round].results[keyOf(trial.Place)]
			if !ok {
				t.Fatalf("%v does not exist", trial)
			}
			if r.Trial = trial; trial.Fidelity == 1 {
				found.add(whole.along, r)
			}
			return r
		})
		share := found.share(truth)
		t.Logf("cost %.1f of %d: %.2f %%", cost, whole.points, 100*share)
		if share < .99 || cost > budget {
			t.Errorf("seed %d: %.2f %% of the hypervolume for a cost of %.1f, want 99 %% for %.1f", seed, 100*share, cost, budget)
		}
	}
}
