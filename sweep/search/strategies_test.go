package search

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// drawSpace draws a small space; some places do not exist.
func drawSpace(t *rapid.T) Space {
	var s Space
	for i := range rapid.IntRange(1, 4).Draw(t, "dimensions") {
		d := Dimension{Name: fmt.Sprint("d", i), Size: rapid.IntRange(1, 5).Draw(t, "size")}
		if rapid.Bool().Draw(t, "ordered") {
			for v := range d.Size {
				d.Values = append(d.Values, float64(v+1))
			}
		}
		s.Dimensions = append(s.Dimensions, d)
	}
	hole := rapid.IntRange(2, 9).Draw(t, "hole")
	s.Allowed = func(place []int) bool {
		sum := 0
		for _, p := range place {
			sum += p
		}
		return sum%hole != 1
	}
	return s
}

// madeUp is a function with two objectives and a constraint, with failures, missing figures and ties.
func madeUp(place []int) Result {
	x, y := 0.0, 0.0
	for i, p := range place {
		x += float64(p) * float64(i+1)
		y += float64(p*p) / float64(i+1)
	}
	r := Result{OK: int(x)%7 != 6, Objectives: []float64{x - 3, -y}, Margins: []float64{1 - x/10}}
	switch {
	case !r.OK:
		r.Objectives, r.Margins = nil, nil
	case int(y)%11 == 10:
		r.Objectives[1] = math.NaN()
	case int(y)%13 == 12:
		r.Objectives[0] = math.Inf(1)
	}
	return r
}

// ask runs a strategy to its end, or for so many trials, and returns them all.
func ask(t interface{ Fatalf(string, ...any) }, s Strategy, space Space, batch, most int) []Trial {
	var all []Trial
	seen := map[string]bool{}
	for len(all) < most {
		trials := s.Ask(batch)
		if len(trials) == 0 {
			break
		}
		if len(trials) > batch {
			t.Fatalf("%d trials, asked for %d", len(trials), batch)
		}
		var told []Result
		for _, trial := range trials {
			if key := keyOf(trial.Place); seen[key] || !space.Allowed(trial.Place) {
				t.Fatalf("asked for %v twice, or it does not exist", trial.Place)
			}
			seen[keyOf(trial.Place)] = true
			r := madeUp(trial.Place)
			r.Trial = trial
			told = append(told, r)
		}
		all = append(all, trials...)
		s.Tell(told)
	}
	return all
}

// TestStrategies checks what every strategy owes: no place twice, none that does not exist, in the end every one that
// does, and the same ones again with the same seed.
func TestStrategies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := drawSpace(t)
		exist := 0
		place := make([]int, len(space.Dimensions))
		for range int(space.size()) {
			if space.Allowed(place) {
				exist++
			}
			space.next(place)
		}
		name := rapid.SampledFrom([]string{"random", "refine", "bayes", "evolve"}).Draw(t, "strategy")
		along := []int{}
		for i := range space.Dimensions {
			if rapid.IntRange(0, 3).Draw(t, "split") == 0 && len(along) < len(space.Dimensions)-1 {
				along = append(along, i)
			}
		}
		seed := rapid.Uint64Range(0, 99).Draw(t, "seed")
		batch := rapid.IntRange(1, 9).Draw(t, "batch")
		points := rapid.IntRange(0, 50).Draw(t, "points")
		run := func(most int) []Trial {
			return ask(t, NewSplit(space, along, func(s Space, part int) Strategy { return byName[name](s, points, seed+uint64(part)) }), space, batch, most)
		}
		all := run(math.MaxInt)
		if len(all) != exist {
			t.Fatalf("%s asked for %d places of %d", name, len(all), exist)
		}
		if diff := cmp.Diff(all[:min(40, exist)], run(40)[:min(40, exist)], cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestHugeSpace checks that strategies cope with spaces that cannot be looked through, and find the far end of a line.
func TestHugeSpace(t *testing.T) {
	values := make([]float64, 100_000)
	for i := range values {
		values[i] = float64(i)
	}
	var space Space
	for i := range 4 {
		space.Dimensions = append(space.Dimensions, Dimension{Name: fmt.Sprint("d", i), Values: values, Size: len(values)})
	}
	for _, name := range []string{"random", "refine", "bayes", "evolve"} {
		s := byName[name](space, 150, 1)
		best := math.Inf(-1)
		for range 15 {
			var told []Result
			for _, trial := range s.Ask(10) {
				sum := 0.0
				for _, p := range trial.Place {
					d := float64(p)/float64(len(values)) - 0.7
					sum -= d * d
				}
				best = max(best, sum)
				told = append(told, Result{Trial: trial, OK: true, Objectives: []float64{sum}})
			}
			s.Tell(told)
		}
		if want := -1e-3; best < want && name != "random" {
			t.Errorf("%s found %v, want at least %v", name, best, want)
		}
	}
}

// TestInfeasible checks that strategies find the way to the few places that keep a constraint.
func TestInfeasible(t *testing.T) {
	values := make([]float64, 60)
	for i := range values {
		values[i] = float64(i)
	}
	space := Space{Dimensions: []Dimension{{Values: values, Size: 60}, {Values: values, Size: 60}, {Size: 4}}}
	for _, name := range []string{"refine", "bayes", "evolve"} {
		s := byName[name](space, 200, 3)
		feasible := 0
		for range 20 {
			var told []Result
			for _, trial := range s.Ask(10) {
				p := trial.Place
				far := math.Abs(float64(p[0]-50)) + math.Abs(float64(p[1]-8)) // 3 steps away at most: 25 of 3,600
				r := Result{Trial: trial, OK: true, Objectives: []float64{float64(p[0]), float64(p[2])}, Margins: []float64{1 - far/3}}
				if r.Feasible() {
					feasible++
				}
				told = append(told, r)
			}
			s.Tell(told)
		}
		if feasible < 10 {
			t.Errorf("%s found %d feasible places", name, feasible)
		}
	}
}

// BenchmarkAsk reports what a batch of 32 costs when much is known.
func BenchmarkAsk(b *testing.B) {
	tb := readTable(b, "search")
	for _, name := range []string{"refine", "bayes", "evolve"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			rounds := 0
			for b.Loop() {
				s := tb.strategy(name, 640, 1)
				for range 20 {
					told := []Result{}
					for _, trial := range s.Ask(32) {
						r := tb.results[keyOf(trial.Place)]
						r.Trial = trial
						told = append(told, r)
					}
					s.Tell(told)
					rounds++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(rounds), "ms/batch")
		})
	}
}
