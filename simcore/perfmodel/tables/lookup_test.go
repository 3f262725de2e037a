package tables

import (
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// drawKnots draws an axis.
func drawKnots(t *rapid.T, name string) []float64 {
	x := []float64{float64(rapid.IntRange(1, 3).Draw(t, name+" first"))}
	for _, step := range rapid.SliceOfN(rapid.IntRange(1, 5000), 1, 30).Draw(t, name+" steps") {
		x = append(x, x[len(x)-1]+float64(step))
	}
	return x
}

// naiveSegment is the reading rule of spec perfmodel.md §2, word for word.
func naiveSegment(x []float64, v int) (int, float64) {
	i := 0
	for i+2 < len(x) && x[i+1] <= float64(v) {
		i++
	}
	return i, max(0, (float64(v)-x[i])/(x[i+1]-x[i]))
}

// naiveBetween is the rule's interpolation, which beyond the last knot never falls.
func naiveBetween(a, b, t float64) float64 {
	if t > 1 {
		return max(b, a+t*(b-a))
	}
	return a + t*(b-a)
}

func close(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestCurveFollowsReadingRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawKnots(t, "x")
		y := rapid.SliceOfN(rapid.Float64Range(-1, 100), len(x), len(x)).Draw(t, "y")
		v := rapid.IntRange(1, int(x[len(x)-1])*2).Draw(t, "v")
		i, u := naiveSegment(x, v)
		if got, want := newCurve(x, y).at(v), naiveBetween(y[i], y[i+1], u); !close(got, want) {
			t.Errorf("curve at %d is %v, want %v", v, got, want)
		}
	})
}

func TestGridFollowsReadingRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &grid{batch: newAxis(drawKnots(t, "b")), length: newAxis(drawKnots(t, "s"))}
		g.square = rapid.Bool().Draw(t, "square")
		width := len(g.length.knots)
		count := len(g.batch.knots) * width
		g.values = rapid.SliceOfN(rapid.Float64Range(0.01, 100), count, count).Draw(t, "roots or values")
		b := rapid.IntRange(1, int(g.batch.knots[len(g.batch.knots)-1])*2).Draw(t, "b")
		s := rapid.IntRange(1, int(g.length.knots[width-1])*2).Draw(t, "s")
		i, u := naiveSegment(g.batch.knots, b)
		j, v := naiveSegment(g.length.knots, s)
		row := func(i int) float64 {
			w := g.values[i*width : (i+1)*width]
			r := naiveBetween(w[j], w[j+1], v)
			if g.square {
				return r * r
			}
			return r
		}
		if got, want := g.at(b, s), naiveBetween(row(i), row(i+1), u); !close(got, want) {
			t.Errorf("grid at %d, %d is %v, want %v", b, s, got, want)
		}
	})
}

// exampleTable is a table whose prices can be computed in the head.
func exampleTable() *Table {
	flat := func(kind string, us float64) *grid {
		root := us
		if kind == kindPrefill {
			root = math.Sqrt(us)
		}
		return &grid{
			kind: kind, square: kind == kindPrefill, batch: newAxis([]float64{1, 2, 4}), length: newAxis([]float64{1, 100, 1000}),
			values: slices.Repeat([]float64{root}, 9), measuredLength: []float64{1000, 100, 50},
		}
	}
	return &Table{
		tokens: newCurve([]float64{1, 10, 100}, []float64{1, 10, 100}), requests: newCurve([]float64{1, 8}, []float64{2, 2}),
		generation: newCurve([]float64{1, 8}, []float64{3, 10}),
		prefill:    []term{{flat(kindPrefill, 100), 10e-3, 5}, {flat(kindPrefill, 200), 10e-3, 0}},
		decode:     []term{{flat(kindDecode, 50), 20e-3, 0}}, correctionMs: 0.5,
	}
}

func TestTable(t *testing.T) {
	table := exampleTable()
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"tokens", table.Tokens(7), 7},
		{"tokens beyond", table.Tokens(1000), 1000},
		{"no tokens", table.Tokens(0), 0},
		{"negative tokens", table.Tokens(-5), 0},
		{"requests", table.Requests(3), 2},
		{"no requests", table.Requests(0), 0},
		{"generation", table.Generation(2), 4},
		{"no generation", table.Generation(0), 0},
		{"prefill attention", table.PrefillAttention(2, 64, 0), 1 + 5 + 2},
		{"with half of it cached", table.PrefillAttention(2, 64, 32), 0.75*3 + 5},
		{"all cached", table.PrefillAttention(2, 64, 64), 0},
		{"more cached than there is", table.PrefillAttention(2, 64, 65), 0},
		{"negative prefix counts as none", table.PrefillAttention(2, 64, -1), 8},
		{"no prompts", table.PrefillAttention(0, 64, 0), 0},
		{"decode attention", table.GenerationAttention(2, 64), 1.5},
		{"no sequences", table.GenerationAttention(0, 64), 0},
		{"no context", table.GenerationAttention(2, 0), 0},
	} {
		if !close(test.got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
}

func TestMeasured(t *testing.T) {
	table := exampleTable()
	for _, test := range []struct {
		name      string
		got, want bool
	}{
		{"first knot", table.MeasuredTokens(1), true},
		{"last knot", table.MeasuredTokens(100), true},
		{"beyond", table.MeasuredTokens(101), false},
		{"no tokens", table.MeasuredTokens(0), false},
		{"a line's frontier", table.MeasuredPrefill(1, 1000), true},
		{"beyond it", table.MeasuredPrefill(1, 1001), false},
		{"the second line's", table.MeasuredPrefill(2, 100), true},
		{"beyond that", table.MeasuredPrefill(2, 101), false},
		{"between lines the nearer frontier counts", table.MeasuredPrefill(3, 51), false},
		{"within both", table.MeasuredPrefill(3, 50), true},
		{"last line", table.MeasuredPrefill(4, 50), true},
		{"beyond the last line", table.MeasuredPrefill(5, 1), false},
		{"more requests than the logits have", table.MeasuredPrefill(9, 1), false},
		{"decode", table.MeasuredDecode(2, 100), true},
		{"decode beyond", table.MeasuredDecode(2, 101), false},
		{"decode of nothing", table.MeasuredDecode(0, 1), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v", test.name, test.got)
		}
	}
}

// TestExtremes prices arguments that nobody means, with every row: no panic, no NaN.
func TestExtremes(t *testing.T) {
	extremes := []int{math.MinInt, -1, 0, 1, 2, 15, 16, 17, 65536, 262144, math.MaxInt32, math.MaxInt32 + 1, math.MaxInt}
	configs, err := Embedded().Configs("l40s")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs {
		table, err := Embedded().Load(c, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range extremes {
			table.MeasuredTokens(a)
			for _, b := range extremes {
				table.MeasuredPrefill(a, b)
				table.MeasuredDecode(a, b)
				sum := table.Tokens(a) + table.Requests(a) + table.Generation(a) + table.GenerationAttention(a, b) +
					table.PrefillAttention(a, b, 0) + table.PrefillAttention(a, math.MaxInt, b)
				if math.IsNaN(sum) || math.IsInf(sum, 0) {
					t.Fatalf("%s: %v with arguments %d and %d", c, sum, a, b)
				}
			}
		}
	}
}

// TestCorrections checks that decode passes get the missing operator, and nothing else changes.
func TestCorrections(t *testing.T) {
	for model, us := range map[string]float64{"qwen3-32b": 26.41, "llama-3.1-8b": 0} {
		c, problems := Embedded().Find(Query{System: "h200_sxm", Backend: "sglang", Model: model, DType: "bf16", TP: 2, DP: 1, Corrections: true})
		if problems != nil {
			t.Fatal(problems)
		}
		with, err := Embedded().Load(c, true)
		if err != nil {
			t.Fatal(err)
		}
		without, err := Embedded().Load(c, false)
		if err != nil {
			t.Fatal(err)
		}
		want := us * float64(c.Layers) / 1000
		if got := with.GenerationAttention(8, 1000) - without.GenerationAttention(8, 1000); math.Abs(got-want) > 0.02*want+1e-12 {
			t.Errorf("%s: corrections add %v ms to a decode pass, want about %v", model, got, want)
		}
		if math.Abs(with.CorrectionMs()-want) > 0.02*want || without.CorrectionMs() != 0 {
			t.Errorf("%s: corrections are %v and %v ms, want about %v and 0", model, with.CorrectionMs(), without.CorrectionMs(), want)
		}
		if with.PrefillAttention(1, 1000, 0) != without.PrefillAttention(1, 1000, 0) || with.Generation(8) != without.Generation(8) || with.Tokens(9) != without.Tokens(9) {
			t.Errorf("%s: corrections change more than decode attention", model)
		}
	}
}

// TestConcurrentUse has several goroutines read a fresh set.
func TestConcurrentUse(t *testing.T) {
	set := newSet(Embedded().files, false)
	prices := make([]float64, 8)
	var group sync.WaitGroup
	for i := range prices {
		group.Go(func() {
			c, problems := set.Find(Query{System: "a100_sxm", Backend: "vllm", Model: "llama-3.1-8b", TP: 1, DP: 1})
			if problems != nil {
				t.Error(problems)
				return
			}
			table, err := set.Load(c, true)
			if err != nil {
				t.Error(err)
				return
			}
			prices[i] = table.Tokens(1000)
		})
	}
	group.Wait()
	for _, p := range prices {
		if p != prices[0] || p <= 0 {
			t.Errorf("prices are %v", prices)
		}
	}
}
