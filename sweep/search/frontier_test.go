package search

import (
	"fmt"
	"slices"
	"testing"
)

// byName makes the strategies that look for a frontier.
var byName = map[string]func(space Space, points int, seed uint64) Strategy{
	"random": func(space Space, _ int, seed uint64) Strategy { return NewRandom(space, seed) },
	"refine": func(space Space, points int, seed uint64) Strategy {
		return NewRefine(space, RefineOptions{Points: points}, seed)
	},
	"bayes": func(space Space, points int, seed uint64) Strategy {
		return NewBayes(space, BayesOptions{Points: points}, seed)
	},
	"evolve": func(space Space, points int, seed uint64) Strategy {
		return NewEvolve(space, EvolveOptions{Points: points}, seed)
	},
}

// of makes a strategy for a table, by traffic.
func (tb *table) strategy(name string, points int, seed uint64) Strategy {
	each := points / int(tb.space.Parts(tb.along))
	return NewSplit(tb.space, tb.along, func(space Space, part int) Strategy {
		return byName[name](space, each, seed+uint64(part))
	})
}

// TestFrontierIsFound is the promise of the documentation: with 15 % of the points every strategy but random finds a
// frontier of at least 99 % of the hypervolume of the true one, on each space and with each seed. docs/search.md shows the
// figures that it prints with -v -seeds 5.
func TestFrontierIsFound(t *testing.T) {
	for _, name := range []string{"gpus", "disaggregated", "search"} {
		tb := readTable(t, name)
		truth := tb.whole()
		points := tb.points * 15 / 100
		for _, strategy := range []string{"refine", "evolve", "bayes", "random"} {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				if *seeds == 1 && strategy != "refine" && name != "gpus" {
					t.Skip("takes seconds; run with -seeds 5")
				}
				least, reached := 1.0, []int{}
				for seed := range uint64(*seeds) {
					found, at := tb.search(t, tb.strategy(strategy, points, 1000*seed), points, truth)
					least, reached = min(least, found.share(truth)), append(reached, at)
				}
				t.Logf("%d of %d points: at least %.2f %%; 99 %% after %s", points, tb.points, 100*least, reachedText(reached, tb.points))
				if least < 0.99 && strategy != "random" {
					t.Errorf("it found a frontier of %.2f %% of the hypervolume, want 99 %%", 100*least)
				}
			})
		}
	}
}

// reachedText says after which share of the points 99 % were reached, at best and at worst.
func reachedText(reached []int, points int) string {
	if slices.Contains(reached, 0) {
		return "more"
	}
	return fmt.Sprintf("%.1f %% to %.1f %%", 100*float64(slices.Min(reached))/float64(points), 100*float64(slices.Max(reached))/float64(points))
}
