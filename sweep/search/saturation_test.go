package search

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drive asks and tells until a strategy is done, and returns how many trials it asked for. A place may be asked for once.
func drive(t rapid.TB, s Strategy, batch int, evaluate func(Trial) Result) (trials int) {
	t.Helper()
	asked := map[string]bool{}
	for {
		batch := s.Ask(batch)
		if len(batch) == 0 {
			return trials
		}
		told := make([]Result, len(batch))
		for i, trial := range batch {
			key := fmt.Sprint(trial)
			if asked[key] {
				t.Fatalf("%v is asked for twice", trial)
			}
			asked[key] = true
			told[i] = evaluate(trial)
			told[i].Trial = trial
		}
		trials += len(batch)
		s.Tell(told)
	}
}

// keeping is the result of a trial that keeps the one constraint or does not.
func keeping(keeps bool) Result {
	if keeps {
		return Result{OK: true, Objectives: []float64{1}, Margins: []float64{.1}}
	}
	return Result{OK: true, Objectives: []float64{math.NaN()}, Margins: []float64{-1}}
}

func numbers(n int, value func(int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = value(i)
	}
	return out
}

// TestSaturationFindsEdges checks on spaces with one edge a combination, in either direction, with values that rise or fall
// and with places that do not exist, that the edge is found and costs no more trials than bisection.
func TestSaturationFindsEdges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(rt, "values")
		others := rapid.IntRange(1, 5).Draw(rt, "combinations")
		falling, smallest := rapid.Bool().Draw(rt, "falling"), rapid.Bool().Draw(rt, "smallest")
		values := numbers(n, func(i int) float64 { return float64(i) })
		if falling {
			slices.Reverse(values)
		}
		gone := map[string]bool{}
		for range rapid.IntRange(0, n).Draw(rt, "excluded") {
			gone[fmt.Sprint([]int{rapid.IntRange(0, others-1).Draw(rt, "of"), rapid.IntRange(0, n-1).Draw(rt, "at")})] = true
		}
		limit := make([]float64, others)
		for i := range limit {
			limit[i] = float64(rapid.IntRange(-1, n).Draw(rt, "limit")) + .5
		}
		keeps := func(place []int) bool { return (values[place[1]] < limit[place[0]]) != smallest }
		space := Space{
			Dimensions: []Dimension{{Name: "other", Size: others}, {Name: "axis", Size: n, Values: values}},
			Allowed:    func(place []int) bool { return !gone[fmt.Sprint(place)] },
		}
		s := NewSaturation(space, SaturationOptions{Axis: "axis", Smallest: smallest}, 1)
		trials := drive(rt, s, rapid.IntRange(1, 7).Draw(rt, "batch"), func(trial Trial) Result {
			if !space.Allowed(trial.Place) || trial.Fidelity != 1 {
				rt.Fatalf("%v is asked for", trial)
			}
			return keeping(keeps(trial.Place))
		})
		if most := others * (1 + int(math.Ceil(math.Log2(float64(n+1))))); trials > most {
			rt.Fatalf("%d trials for %d combinations of %d values; want at most %d", trials, others, n, most)
		}
		found := map[int]Edge{}
		for _, e := range s.Edges() {
			found[e.Place[0]] = e
			if len(e.Dips)+len(e.Regained)+e.Failed > 0 || !e.Found {
				rt.Fatalf("%+v: the curve is monotone", e)
			}
		}
		for other := range others {
			kept, lost := math.Inf(-1), math.Inf(1) // in the direction in which it becomes harder
			any := false
			for at, v := range values {
				if place := []int{other, at}; space.Allowed(place) {
					any = true
					if smallest {
						v = -v
					}
					if keeps(place) {
						kept = max(kept, v)
					} else {
						lost = min(lost, v)
					}
				}
			}
			e, ok := found[other]
			if ok != any {
				rt.Fatalf("combination %d: found %v, exists %v", other, ok, any)
			}
			if !ok {
				continue
			}
			at, next := values[e.Place[1]], math.Inf(1)
			if e.Next >= 0 {
				next = values[e.Next]
			}
			if smallest {
				at = -at
				if e.Next >= 0 {
					next = -next
				}
			}
			if e.Holds != !math.IsInf(kept, -1) || e.Holds && at != kept || next != lost {
				rt.Fatalf("combination %d: %+v at %v, next %v; want %v, %v", other, e, at, next, kept, lost)
			}
		}
	})
}

// TestUnfinishedEdges checks that a search which ends early does not take what it knows by then for edges.
func TestUnfinishedEdges(t *testing.T) {
	space := Space{Dimensions: []Dimension{{Name: "rate", Size: 100, Values: numbers(100, func(i int) float64 { return float64(i) })}}}
	s := NewSaturation(space, SaturationOptions{Axis: "rate"}, 0)
	for range 3 {
		trial := s.Ask(1)[0]
		r := keeping(trial.Place[0] < 70)
		r.Trial = trial
		s.Tell([]Result{r})
	}
	if e := s.Edges()[0]; e.Found || e.Place[0] >= 70 || e.Next < 70 {
		t.Errorf("edge %+v after 3 trials", e)
	}
}

// TestSaturationTolerance checks that the search ends when the values around the edge are near enough.
func TestSaturationTolerance(t *testing.T) {
	values := numbers(1000, func(i int) float64 { return math.Pow(10, float64(i)/250) })
	space := Space{Dimensions: []Dimension{{Name: "rate", Size: len(values), Values: values}}}
	evaluate := func(trial Trial) Result { return keeping(values[trial.Place[0]] <= 123) }
	exact := NewSaturation(space, SaturationOptions{Axis: "rate"}, 0)
	rough := NewSaturation(space, SaturationOptions{Axis: "rate", Tolerance: .05}, 0)
	most, fewer := drive(t, exact, 1, evaluate), drive(t, rough, 1, evaluate)
	if fewer >= most || most > 10 {
		t.Errorf("%d trials with a tolerance, %d without", fewer, most)
	}
	for _, s := range []*Saturation{exact, rough} {
		e := s.Edges()[0]
		low, high := values[e.Place[0]], values[e.Next]
		if low > 123 || high <= 123 || high > low*(1.0001+max(s.opt.Tolerance, .0093)) {
			t.Errorf("the edge is between %v and %v, want 123", low, high)
		}
	}
}

// TestSaturationNotesOtherEdges checks that values on the wrong side of the edge show when they are tried.
func TestSaturationNotesOtherEdges(t *testing.T) {
	space := Space{Dimensions: []Dimension{{Name: "rate", Size: 16, Values: numbers(16, func(i int) float64 { return float64(i) })}}}
	odd := map[int]bool{6: false, 10: true} // beside an edge between 7 and 8
	evaluate := func(trial Trial) Result {
		at := trial.Place[0]
		keeps, isOdd := odd[at]
		if at == 12 {
			return Result{} // it fails
		}
		return keeping(isOdd && keeps || !isOdd && at < 8)
	}
	s := NewSaturation(space, SaturationOptions{Axis: "rate", Checks: 2}, 0)
	trials := drive(t, s, 4, evaluate)
	e := s.Edges()[0]
	if e.Place[0] != 7 || e.Next != 8 || !slices.Equal(e.Regained, []int{10}) || !slices.Equal(e.Dips, []int{6}) || e.Trials != trials {
		t.Errorf("edge %+v of %d trials", e, trials)
	}
	for _, odd := range []Space{{}, {Dimensions: []Dimension{{Name: "rate"}}}, {Dimensions: []Dimension{{Name: "other", Size: 3}}}} {
		if n := drive(t, NewSaturation(odd, SaturationOptions{Axis: "rate"}, 0), 4, evaluate); n > 0 {
			t.Errorf("%d trials in a space without the axis", n)
		}
	}
}

// Saturation is also a strategy.
var _ Strategy = (*Saturation)(nil)
