package search

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

type scratchTable struct {
	Name       string
	Dimensions []struct {
		Name   string
		Values []float64
		Size   int
	}
	Results []struct {
		P []int
		O []*float64
		M []float64
	}
}

func TestScratch(t *testing.T) {
	for _, fn := range strings.Split(os.Getenv("T"), ",") {
		data, err := os.ReadFile("/tmp/search/" + fn + ".json")
		if err != nil {
			continue
		}
		var tb scratchTable
		if err := json.Unmarshal(data, &tb); err != nil {
			t.Fatal(err)
		}
		space := Space{}
		for _, d := range tb.Dimensions {
			space.Dimensions = append(space.Dimensions, Dimension{d.Name, d.Values, d.Size})
		}
		all := map[string]Result{}
		var front Front
		for _, r := range tb.Results {
			res := Result{Trial: Trial{Place: r.P}, OK: true, Margins: r.M}
			for _, o := range r.O {
				v := 0.0
				if o != nil {
					v = *o
				} else {
					res.Margins = append(res.Margins, -1)
				}
				res.Objectives = append(res.Objectives, v)
			}
			all[keyOf(r.P)] = res
			front.Add([]Result{res})
		}
		space.Allowed = func(p []int) bool { _, ok := all[keyOf(p)]; return ok }
		box := BoxOf(front.points())
		truth := box.Volume(front.points())
		n := len(tb.Results)
		fmt.Printf("%s: %d points, frontier %d\n", tb.Name, n, front.Size())
		strategies := map[string]func(budget int, seed uint64) Strategy{
			"random": func(b int, s uint64) Strategy { return NewRandom(space, s) },
			"evolve": func(b int, s uint64) Strategy { return NewEvolve(space, EvolveOptions{Points: b}, s) },
			"refine": func(b int, s uint64) Strategy { return NewRefine(space, RefineOptions{Points: b}, s) },
			"bayes":  func(b int, s uint64) Strategy { return NewBayes(space, BayesOptions{Points: b}, s) },
		}
		for _, name := range strings.Split(os.Getenv("S"), ",") {
			make := strategies[name]
			fmt.Printf("  %-8s", name)
			spent := time.Duration(0)
			for seed := range uint64(8) {
				budget := n * 15 / 100
				s := make(budget, seed)
				var f Front
				asked, first99 := 0, 0
				start := time.Now()
				for asked < budget {
					batch := max(4, min(budget/30, 64))
					trials := s.Ask(min(batch, budget-asked))
					if len(trials) == 0 {
						break
					}
					asked += len(trials)
					var told []Result
					for _, tr := range trials {
						r := all[keyOf(tr.Place)]
						r.Trial = tr
						told = append(told, r)
					}
					s.Tell(told)
					f.Add(told)
					if first99 == 0 && box.Volume(f.points()) >= .99*truth {
						first99 = asked
					}
				}
				if v := box.Volume(f.points())/truth; v < .985 && os.Getenv("V") != "" {
					fmt.Println()
					m := surrogate{space: space}
					h := s.(*bayes).h
					m.update(h)
					for o, p := range m.objectives { fmt.Println(o, p.weights, p.noise) }
					for o, p := range m.margins { fmt.Println("margin", o, p.weights, p.noise) }
					for _, r := range front.members {
						_, got := h.resultAt(r.Place)
						e := m.expect(r.Place)
						fmt.Println(got, r.Place, r.Objectives, m.objective(0, e.mean[0]), m.objective(1, e.mean[1]), e.deviation, e.probability, r.Margins)
					}
				}
				fmt.Printf("  %6.4f (%5.2f%%)", box.Volume(f.points())/truth, 100*float64(first99)/float64(n))
				spent += time.Since(start)
			}
			fmt.Println(spent.Round(time.Millisecond))
		}
	}
}
