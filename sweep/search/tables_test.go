package search

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"testing"
)

// table is a space that was simulated as a whole; see TestRecordedTables of package sweep.
type table struct {
	space   Space
	along   []int // the dimensions of the traffic
	results map[string]Result
	// points is the number of combinations that exist.
	points int
}

// readTable reads a recorded table.
func readTable(t testing.TB, name string) *table {
	t.Helper()
	file, err := os.Open("testdata/" + name + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Dimensions []Dimension
		Along      []int
		Objectives int
		// Figures has an entry for each combination, the last dimension fastest: objectives, then margins; null for one that
		// does not exist, and for a figure that there is none of.
		Figures [][]*float64
	}
	if err := json.NewDecoder(unzipped).Decode(&recorded); err != nil {
		t.Fatal(err)
	}
	out := &table{space: Space{Dimensions: recorded.Dimensions}, along: recorded.Along, results: map[string]Result{}}
	place := make([]int, len(recorded.Dimensions))
	for _, figures := range recorded.Figures {
		if figures != nil {
			values := make([]float64, len(figures))
			for i, v := range figures {
				values[i] = math.NaN()
				if v != nil {
					values[i] = *v
				}
			}
			out.results[keyOf(place)] = Result{OK: true, Objectives: values[:recorded.Objectives], Margins: values[recorded.Objectives:]}
			out.points++
		}
		out.space.next(place)
	}
	out.space.Allowed = func(place []int) bool { _, ok := out.results[keyOf(place)]; return ok }
	return out
}

// fronts holds what is on the frontier of each traffic.
type fronts map[string]*Front

func (f fronts) add(along []int, results ...Result) {
	for _, r := range results {
		var key []int
		for _, d := range along {
			key = append(key, r.Place[d])
		}
		if f[keyOf(key)] == nil {
			f[keyOf(key)] = &Front{}
		}
		f[keyOf(key)].Add([]Result{r})
	}
}

// whole returns the frontiers of the whole table.
func (tb *table) whole() fronts {
	out := fronts{}
	place := make([]int, len(tb.space.Dimensions))
	for range int(tb.space.size()) {
		if r, ok := tb.results[keyOf(place)]; ok {
			r.Place = append([]int(nil), place...)
			out.add(tb.along, r)
		}
		tb.space.next(place)
	}
	return out
}

// share is the least share of the hypervolume of the true frontiers that others have, each in the box of the true one.
func (f fronts) share(truth fronts) float64 {
	least := 1.0
	for key, front := range truth {
		box := BoxOf(front.points())
		found := 0.0
		if own := f[key]; own != nil {
			found = box.Volume(own.points())
		}
		least = min(least, found/box.Volume(front.points()))
	}
	return least
}

// search runs a strategy for so many trials and returns what it found, and after how many trials it had 99 % of the
// truth; 0 when it never had.
func (tb *table) search(t testing.TB, s Strategy, points int, truth fronts) (found fronts, reached int) {
	t.Helper()
	found = fronts{}
	asked := map[string]bool{}
	for len(asked) < points {
		trials := s.Ask(min(max(points/30, 4), points-len(asked)))
		if len(trials) == 0 {
			break
		}
		told := make([]Result, len(trials))
		for i, trial := range trials {
			key := keyOf(trial.Place)
			r, ok := tb.results[key]
			if !ok || asked[key] {
				t.Fatalf("asked for %v, which does not exist or was asked for before", trial.Place)
			}
			asked[key] = true
			r.Trial = trial
			told[i] = r
		}
		s.Tell(told)
		found.add(tb.along, told...)
		if reached == 0 && found.share(truth) >= 0.99 {
			reached = len(asked)
		}
	}
	return found, reached
}
