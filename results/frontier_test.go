package results

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFrontier(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	more, less := Objective{Name: "a", Maximize: true}, Objective{Name: "b"}
	cases := []struct {
		name       string
		objectives []Objective
		values     [][]float64
		opt        FrontierOptions
		want       []bool
	}{
		{"one objective", []Objective{more}, [][]float64{{1, 3, 2}}, FrontierOptions{}, []bool{false, true, false}},
		{"one objective, ties", []Objective{less}, [][]float64{{1, 3, 1}}, FrontierOptions{}, []bool{true, false, true}},
		{"trade-off", []Objective{more, less}, [][]float64{{1, 2, 3, 2}, {1, 2, 3, 3}}, FrontierOptions{}, []bool{true, true, true, false}},
		{"equal in one", []Objective{more, less}, [][]float64{{2, 2, 1}, {5, 4, 4}}, FrontierOptions{}, []bool{false, true, false}},
		{"ties keep all", []Objective{more, less}, [][]float64{{2, 2, 1}, {1, 1, 1}}, FrontierOptions{}, []bool{true, true, false}},
		{"ties keep first", []Objective{more, less}, [][]float64{{2, 2, 1}, {1, 1, 1}}, FrontierOptions{Ties: KeepFirst}, []bool{true, false, false}},
		{"null is neither on nor dominates", []Objective{more, more}, [][]float64{{9, 1, nan}, {nan, 1, 9}}, FrontierOptions{}, []bool{false, true, false}},
		{"all null", []Objective{more}, [][]float64{{nan, nan}}, FrontierOptions{}, []bool{false, false}},
		{"no rows", []Objective{more}, [][]float64{{}}, FrontierOptions{}, []bool{}},
		{"infinities", []Objective{more, less}, [][]float64{{inf, 5, -inf}, {1, inf, -inf}}, FrontierOptions{}, []bool{true, false, true}},
		{"three", []Objective{more, more, less}, [][]float64{{1, 2, 3, 1}, {3, 2, 1, 1}, {1, 1, 1, 2}}, FrontierOptions{}, []bool{true, true, true, false}},
		{"absolute epsilon", []Objective{more, less}, [][]float64{{10.4, 10.1}, {5, 4}}, FrontierOptions{Epsilon: []Epsilon{{Size: 1}, {}}}, []bool{false, true}},
		{"relative epsilon", []Objective{more, less}, [][]float64{{104, 101}, {5, 4}}, FrontierOptions{Epsilon: []Epsilon{{Size: 0.1, Relative: true}, {}}}, []bool{false, true}},
		{"relative epsilon below 0", []Objective{less, less}, [][]float64{{-104, -101}, {5, 4}}, FrontierOptions{Epsilon: []Epsilon{{Size: 0.1, Relative: true}, {}}}, []bool{false, true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Frontier(c.objectives, c.values, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("frontier (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFrontierRefusesBadInput(t *testing.T) {
	a := []Objective{{Name: "a"}, {Name: "b"}}
	cases := map[string]struct {
		objectives []Objective
		values     [][]float64
		epsilon    []Epsilon
	}{
		"no objective":     {},
		"missing values":   {a, [][]float64{{1}}, nil},
		"ragged values":    {a, [][]float64{{1}, {1, 2}}, nil},
		"missing epsilon":  {a, [][]float64{{1}, {1}}, []Epsilon{{}}},
		"negative epsilon": {a, [][]float64{{1}, {1}}, []Epsilon{{}, {Size: -1}}},
		"NaN epsilon":      {a, [][]float64{{1}, {1}}, []Epsilon{{}, {Size: math.NaN()}}},
	}
	for name, c := range cases {
		if _, err := Frontier(c.objectives, c.values, FrontierOptions{Epsilon: c.epsilon}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestFrontierAgainstBruteForce draws few distinct values, so that ties, nulls and chains of dominance are common.
func TestFrontierAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(t, "objectives")
		n := rapid.IntRange(0, 60).Draw(t, "rows")
		value := rapid.SampledFrom([]float64{-3, -1.5, -1, 0, 0.5, 1, 1.04, 2, 3, 7, math.NaN(), math.Inf(1), math.Inf(-1)})
		objectives, values := make([]Objective, k), make([][]float64, k)
		opt := FrontierOptions{Ties: Ties(rapid.IntRange(0, 1).Draw(t, "ties"))}
		for i := range objectives {
			objectives[i] = Objective{Name: "o", Maximize: rapid.Bool().Draw(t, "maximize")}
			values[i] = rapid.SliceOfN(value, n, n).Draw(t, "values")
		}
		if rapid.Bool().Draw(t, "epsilon") {
			opt.Epsilon = make([]Epsilon, k)
			for i := range opt.Epsilon {
				opt.Epsilon[i] = Epsilon{Size: rapid.SampledFrom([]float64{0, 0.1, 2}).Draw(t, "size"), Relative: rapid.Bool().Draw(t, "relative")}
			}
		}
		got, err := Frontier(objectives, values, opt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bruteForceFrontier(objectives, values, opt), got); diff != "" {
			t.Fatalf("frontier (-want +got):\n%s", diff)
		}
	})
}

func bruteForceFrontier(objectives []Objective, values [][]float64, opt FrontierOptions) []bool {
	n := len(values[0])
	points := make([][]float64, n)
	for row := range n {
		p := make([]float64, len(objectives))
		for o := range objectives {
			p[o] = values[o][row]
			if opt.Epsilon != nil {
				p[o] = opt.Epsilon[o].floor(p[o])
			}
			if !objectives[o].Maximize {
				p[o] = -p[o]
			}
			if math.IsNaN(p[o]) {
				p = nil
				break
			}
		}
		points[row] = p
	}
	on := make([]bool, n)
	for i, p := range points {
		on[i] = p != nil
		for j, q := range points {
			if p == nil || q == nil || i == j {
				continue
			}
			better, worse := false, false
			for o := range p {
				better = better || q[o] > p[o]
				worse = worse || q[o] < p[o]
			}
			if !worse && (better || opt.Ties == KeepFirst && j < i) {
				on[i] = false
			}
		}
	}
	return on
}

func BenchmarkFrontier(b *testing.B) {
	for _, k := range []int{2, 3, 4} {
		objectives, values := make([]Objective, k), make([][]float64, k)
		rng := rand.New(rand.NewPCG(1, uint64(k)))
		for i := range values {
			objectives[i].Maximize = i%2 == 0
			values[i] = make([]float64, 10_000)
			for row := range values[i] {
				values[i][row] = rng.NormFloat64()
			}
		}
		b.Run(string(rune('0'+k))+"-objectives-10000-rows", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Frontier(objectives, values, FrontierOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
