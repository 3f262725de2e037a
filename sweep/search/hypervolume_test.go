package search

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestHypervolume(t *testing.T) {
	for _, test := range []struct {
		points    [][]float64
		reference []float64
		want      float64
	}{
		{nil, []float64{0, 0}, 0},
		{[][]float64{{3}, {5}}, []float64{1}, 4},
		{[][]float64{{1, 3}, {2, 2}, {3, 1}}, []float64{0, 0}, 6},
		{[][]float64{{1, 3}, {1, 1}, {-1, 9}, {math.NaN(), 9}}, []float64{0, 0}, 3},
		{[][]float64{{1, 1, 3}, {2, 2, 1}}, []float64{0, 0, 0}, 6},
		{[][]float64{{1, 2, 3}, {3, 2, 1}, {2, 3, 2}}, []float64{0, 0, 0}, 16},
		{[][]float64{{1, 1, 1, 1}, {2, 1, 1, 1}}, []float64{0, 0, 0, 0}, 2},
	} {
		if got := Hypervolume(test.points, test.reference); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%v above %v dominate %v, want %v", test.points, test.reference, got, test.want)
		}
	}
}

// drawPoints draws points on a small lattice of cells.
func drawPoints(t *rapid.T, dimensions, cells int) [][]float64 {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []float64 {
		p := make([]float64, dimensions)
		for i := range p {
			p[i] = float64(rapid.IntRange(0, cells).Draw(t, "coordinate"))
		}
		return p
	}), 0, 12).Draw(t, "points")
}

// TestHypervolumeCountsCells compares the volume with a count of the unit cells that a point covers.
func TestHypervolumeCountsCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 4
		k := rapid.IntRange(1, 4).Draw(t, "dimensions")
		points := drawPoints(t, k, cells)
		want := 0.0
		s := Space{}
		for range k {
			s.Dimensions = append(s.Dimensions, Dimension{Size: cells})
		}
		cell := make([]int, k)
		for range int(s.size()) {
			for _, p := range points {
				covered := true
				for i, c := range cell {
					covered = covered && p[i] >= float64(c+1)
				}
				if covered {
					want++
					break
				}
			}
			s.next(cell)
		}
		if got := Hypervolume(points, make([]float64, k)); got != want {
			t.Fatalf("%v cover %v cells, want %v", points, got, want)
		}
	})
}

// TestImprovementIsTheDifference checks that what a point adds is the difference of two hypervolumes.
func TestImprovementIsTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 3).Draw(t, "objectives")
		points := drawPoints(t, k, 6)
		if len(points) < 2 {
			return
		}
		p, front := points[0], points[1:]
		m := newImprovement(front)
		want := m.box.Volume(points) - m.box.Volume(front)
		// Volumes are above a reference that may be far away, and so may the rounding be.
		if got := m.of(p); math.Abs(got-want) > 1e-9*max(1, m.box.Volume(points)) {
			t.Fatalf("%v adds %v to %v, want %v", p, got, front, want)
		}
	})
}

// TestFrontKeepsTheBest checks a frontier against its definition, and that gains are shares.
func TestFrontKeepsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Front
		var all []Result
		for _, p := range drawPoints(t, 2, 5) {
			r := Result{OK: rapid.IntRange(0, 9).Draw(t, "ok") > 0, Objectives: p, Margins: []float64{rapid.Float64Range(-1, 3).Draw(t, "margin")}}
			all = append(all, r)
			if gain := f.Add([]Result{r}); !(gain >= 0 && gain <= 1) {
				t.Fatalf("a gain of %v", gain)
			}
		}
		for _, m := range f.Members() {
			if !m.Feasible() {
				t.Fatalf("%+v is on the frontier", m)
			}
		}
		for _, r := range all {
			if !r.Feasible() {
				continue
			}
			covered := false
			for _, m := range f.Members() {
				covered = covered || noWorse(m.Objectives, r.Objectives, 2)
				if dominates(r.Objectives, m.Objectives) {
					t.Fatalf("%v dominates %v on the frontier", r.Objectives, m.Objectives)
				}
			}
			if !covered {
				t.Fatalf("%v is missing on the frontier", r.Objectives)
			}
		}
	})
}

// TestFrontTowardsFeasible checks the gain while nothing is feasible.
func TestFrontTowardsFeasible(t *testing.T) {
	var f Front
	at := func(margin float64) Result {
		return Result{OK: true, Objectives: []float64{1, 1}, Margins: []float64{margin}}
	}
	for i, test := range []struct{ margin, want float64 }{{-2, 0}, {-3, 0}, {-1, 1}, {math.NaN(), 0}, {0.1, 1}, {0.2, 0}} {
		if got := f.Add([]Result{at(test.margin)}); got != test.want {
			t.Errorf("step %d gains %v, want %v", i, got, test.want)
		}
	}
}
