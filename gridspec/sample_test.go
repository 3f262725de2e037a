package gridspec

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSobolKnownPoints compares with the first points of the published generator for these direction numbers.
func TestSobolKnownPoints(t *testing.T) {
	want := [][]float64{
		{0, 0.5, 0.75, 0.25, 0.375, 0.875, 0.625, 0.125, 0.1875, 0.6875},
		{0, 0.5, 0.25, 0.75, 0.375, 0.875, 0.125, 0.625, 0.3125, 0.8125},
		{0, 0.5, 0.25, 0.75, 0.625, 0.125, 0.875, 0.375, 0.9375, 0.4375},
	}
	for dimension, points := range want {
		var got []float64
		for _, x := range sobolSequence(dimension, len(points)) {
			got = append(got, float64(x)/(1<<32))
		}
		if diff := cmp.Diff(points, got); diff != "" {
			t.Errorf("dimension %d: %s", dimension+1, diff)
		}
	}
}

// TestSobolDirections checks what makes the table a table of direction numbers: odd values in range and
// primitive polynomials, each once.
func TestSobolDirections(t *testing.T) {
	seen := map[uint32]bool{}
	for i, d := range sobolDirections() {
		degree := len(d.initial)
		polynomial := uint32(1)<<degree | d.coefficients<<1 | 1
		if seen[polynomial] || d.coefficients >= 1<<(degree-1) && degree > 1 {
			t.Errorf("dimension %d: polynomial %b", i+2, polynomial)
		}
		seen[polynomial] = true
		for k, m := range d.initial {
			if m%2 == 0 || m >= 2<<k {
				t.Errorf("dimension %d: number %d is %d", i+2, k+1, m)
			}
		}
		if order := orderOfX(polynomial, degree); order != 1<<degree-1 {
			t.Errorf("dimension %d: polynomial %b is not primitive, its order is %d", i+2, polynomial, order)
		}
	}
}

// orderOfX is the smallest power of x that is 1 modulo a polynomial over GF(2).
func orderOfX(polynomial uint32, degree int) int {
	x := uint32(1)
	for n := 1; ; n++ {
		if x <<= 1; x>>degree == 1 {
			x ^= polynomial
		}
		if x == 1 || n > 1<<degree {
			return n
		}
	}
}

// TestSobolBalance checks that 2^m points put exactly one into each of 2^m equal intervals of every axis, and that
// the first two dimensions are a (0,2)-sequence: exactly one in every elementary box.
func TestSobolBalance(t *testing.T) {
	const m = 8
	for axis := range sobolDimensions {
		counts := make([]int, 1<<m)
		for _, x := range shiftedSobol(rand.NewPCG(1, uint64(axis)), 1<<m, axis) {
			counts[int(x*(1<<m))]++
		}
		if slices.Min(counts) != 1 || slices.Max(counts) != 1 {
			t.Errorf("dimension %d is not balanced: %v", axis+1, counts)
		}
	}
	a, b := shiftedSobol(rand.NewPCG(1, 1), 1<<m, 0), shiftedSobol(rand.NewPCG(2, 2), 1<<m, 1)
	for split := range m + 1 {
		boxes := map[[2]int]int{}
		for i := range a {
			boxes[[2]int{int(a[i] * float64(int(1)<<split)), int(b[i] * float64(int(1)<<(m-split)))}]++
		}
		if len(boxes) != 1<<m {
			t.Errorf("split %d: %d of %d boxes are hit", split, len(boxes), 1<<m)
		}
	}
}

func TestLatinHypercubeStrata(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		column := latinHypercube(rand.NewPCG(seed, 1), n, 0)
		strata := make([]bool, n)
		for _, u := range column {
			i := int(u * float64(n))
			if u < 0 || u >= 1 || strata[i] {
				t.Fatalf("%v is outside, or in a stratum that has a number already", u)
			}
			strata[i] = true
		}
		if !slices.Equal(column, latinHypercube(rand.NewPCG(seed, 1), n, 0)) {
			t.Fatal("the same seed gives other samples")
		}
	})
}

func sampledColumns(t *testing.T, text string) map[string][]Value {
	t.Helper()
	s, err := Load(Source{Data: []byte("workload: {preset: {name: chat}}\n" + text)})
	if err != nil {
		t.Fatal(err)
	}
	ps, err := s.Expand(ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]Value{}
	for _, p := range ps {
		for _, a := range p.Axes {
			out[a.Column] = append(out[a.Column], a.Value)
		}
	}
	return out
}

const space = `space: {load.speedup: {uniform: [2, 4]}, sla.ttft_ms: {loguniform: [1, 100]},
  engine.max_num_seqs: {int: [10, 19]}, engine.preemption_mode: {choices: [lifo, fifo]}, timing.tp: {powers: [2, 0, 1]},
  sla.itl_ms: {uniform: [1, 9], round: true}}`

func TestSamplesFollowTheirDistribution(t *testing.T) {
	for _, method := range []string{"random", "lhs", "sobol"} {
		columns := sampledColumns(t, method+": {samples: 4096, "+space+"}")
		mean := func(column string, f func(Value) float64) float64 {
			sum := 0.0
			for _, v := range columns[column] {
				sum += f(v)
			}
			return sum / float64(len(columns[column]))
		}
		is := func(text string) func(Value) float64 {
			return func(v Value) float64 {
				if v.String() == text {
					return 1
				}
				return 0
			}
		}
		for _, c := range []struct {
			what      string
			got, want float64
			tolerance float64
		}{
			{"uniform", mean("speedup", func(v Value) float64 { return v.Float }), 3, 0.05},
			{"loguniform", mean("ttft_ms", func(v Value) float64 { return math.Log10(v.Float) }), 1, 0.05},
			{"int", mean("max_num_seqs", func(v Value) float64 { return float64(v.Int) }), 14.5, 0.2},
			{"lowest int", mean("max_num_seqs", is("10")), 0.1, 0.02},
			{"highest int", mean("max_num_seqs", is("19")), 0.1, 0.02},
			{"choice", mean("preemption_mode", is("lifo")), 0.5, 0.04},
			{"generator", mean("tp", is("2")), 0.5, 0.04},
			{"round", mean("itl_ms", func(v Value) float64 { return v.Float - math.Trunc(v.Float) }), 0, 0},
		} {
			if math.Abs(c.got-c.want) > c.tolerance {
				t.Errorf("%s, %s: mean %v, want %v", method, c.what, c.got, c.want)
			}
		}
	}
}

func TestSamplesAreSeeded(t *testing.T) {
	for _, method := range []string{"random", "lhs", "sobol"} {
		text := method + ": {samples: 8, space: {load.speedup: {uniform: [1, 2]}, sla.ttft_ms: {uniform: [1, 2]}}}\n"
		first := sampledColumns(t, text)
		if diff := cmp.Diff(first, sampledColumns(t, text)); diff != "" {
			t.Errorf("%s: %s", method, diff)
		}
		other := sampledColumns(t, text+"execution: {seed: 5}")
		if slices.Equal(first["speedup"], other["speedup"]) {
			t.Errorf("%s does not depend on the seed", method)
		}
		if slices.Equal(first["speedup"], first["ttft_ms"]) {
			t.Errorf("%s gives two axes the same samples", method)
		}
	}
	// More samples, or another axis after it, keep what random and sobol drew before.
	for _, method := range []string{"random", "sobol"} {
		few := sampledColumns(t, method+": {samples: 8, space: {load.speedup: {uniform: [1, 2]}}}")
		many := sampledColumns(t, method+": {samples: 16, space: {load.speedup: {uniform: [1, 2]}, sla.ttft_ms: {uniform: [1, 2]}}}")
		if !slices.Equal(few["speedup"], many["speedup"][:8]) {
			t.Errorf("%s: more samples changed the first", method)
		}
	}
}

func TestSobolAxesAreBounded(t *testing.T) {
	var axes []string
	for _, k := range configKeys.leaves {
		axes = append(axes, k.path+": [1]")
	}
	if len(axes) <= sobolDimensions {
		t.Skip("there are fewer settings than dimensions")
	}
	_, err := Load(Source{Data: []byte("sobol: {samples: 2, space: {" + strings.Join(axes, ", ") + "}}")})
	if err == nil || !strings.Contains(err.Error(), "sobol takes at most 32, lhs any number") {
		t.Errorf("got %v", err)
	}
}
