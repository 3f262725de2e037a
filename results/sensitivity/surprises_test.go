package sensitivity

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/results"
)

// checkedTable has the axes workers and depth, and a metric of any name.
func checkedTable(metric string, points [][]float64, f func(x []float64) float64) *results.Table {
	t := made([]string{"workers", "depth"}, points, f)
	t.Column("y").Name = metric
	return t
}

func TestCheck(t *testing.T) {
	points := [][]float64{{1, 0}, {2, 0}, {4, 0}, {8, 0}, {1, 1}, {2, 1}, {8, 1}}
	dip := func(x []float64) float64 {
		if x[0] == 8 && x[1] == 0 {
			return 380
		}
		return 100 * x[0]
	}
	got, err := Check(checkedTable("output_throughput_tok_s", points, dip), CheckOptions{Tolerance: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	e := Expectation{Axis: "workers", Metric: "output_throughput_tok_s"}
	change := -0.05
	want := &Checks{
		Checked: []Checked{{e, 5, 1}},
		Surprises: []Surprise{{Expectation: e, From: SurprisePoint{Axis: "4", Value: 400, Row: 2}, To: SurprisePoint{Axis: "8", Value: 380, Row: 3},
			Change: &change, Others: "depth=0", Reasons: []string{}}},
		Cautions: []string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := got.Surprises[0].Text(); text != "workers 4 → 8 lowered output_throughput_tok_s by 5 % (400 to 380) at depth=0" {
		t.Error(text)
	}
	if got, err := Check(checkedTable("output_throughput_tok_s", points, dip), CheckOptions{Tolerance: 0.06}); err != nil || len(got.Surprises) > 0 {
		t.Errorf("within the tolerance: %+v, %v", got, err)
	}
	// The same dip of a latency is no surprise, the rise elsewhere is.
	got, err = Check(checkedTable("p99_ttft_ms", points, dip), CheckOptions{})
	if err != nil || got.Checked[0].Surprises != 4 || *got.Surprises[0].Change != 3 {
		t.Errorf("a latency that rises: %+v, %v", got, err)
	}
}

func TestOwnExpectations(t *testing.T) {
	table := checkedTable("y", grid(2, 3, 0, 3), func(x []float64) float64 { return x[0] - x[1] })
	for text, want := range map[string]int{"depth lowers y": 0, "depth raises y": 6, "workers raises y": 0, "workers lowers y": 6} {
		e, err := ParseExpectation(text)
		if err != nil || e.String() != text {
			t.Fatalf("%s: %v, %v", text, e, err)
		}
		got, err := Check(table, CheckOptions{Expectations: []Expectation{e}})
		if err != nil || len(got.Surprises) != want {
			t.Errorf("%s: %d surprises, %v; want %d", text, len(got.Surprises), err, want)
		}
	}
	_, err := Check(table, CheckOptions{Expectations: []Expectation{{Axis: "width", Metric: "y"}, {Axis: "depth", Metric: "z"}}})
	for _, want := range []string{`unknown column "width"`, `unknown column "z"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
	for _, text := range []string{"", "workers", "workers improves y", "a raises b c", "raises raises"} {
		if _, err := ParseExpectation(text); err == nil {
			t.Errorf("%q is an expectation", text)
		}
	}
}

// Noise that replicates show is no surprise more often than chance has it; a real dip is.
func TestChecksKnowNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var points [][]float64
	for _, p := range grid(2, 10, 0, 10) {
		for range 5 {
			points = append(points, p)
		}
	}
	flat := checkedTable("output_throughput_tok_s", points, func([]float64) float64 { return 100 + rng.NormFloat64() })
	got, err := Check(flat, CheckOptions{})
	if err != nil || got.Checked[0].Surprises > 9 {
		t.Errorf("%d of %d pairs of noise surprise, %v", got.Checked[0].Surprises, got.Checked[0].Pairs, err)
	}
	dip := checkedTable("output_throughput_tok_s", points, func(x []float64) float64 { return 100 - 10*x[0] + rng.NormFloat64() })
	if got, err := Check(dip, CheckOptions{}); err != nil || got.Checked[0].Surprises != 90 {
		t.Errorf("%d of %d falls are found, %v", got.Checked[0].Surprises, got.Checked[0].Pairs, err)
	}
}

func TestColumnsOfAxes(t *testing.T) {
	for column, want := range map[string]bool{
		"workers": true, "deployment_workers": true, "max_workers": false, "prefill_workers": true, "coworkers": false, "gpu": false,
		"prefill_engine_num_gpu_blocks": true, "load_rate": true, "preset_rate": true, "workload_preset_rate": true, "error_rate": false,
	} {
		if got := len(builtInFor(column)) > 0; got != want {
			t.Errorf("something is expected of %s: %v", column, got)
		}
	}
}

// A metric that never moves the wrong way never surprises, and one that always does surprises at every pair.
func TestCheckProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(r, "values")
		var points [][]float64
		at := 0.0
		for range n {
			at += rapid.Float64Range(0.1, 10).Draw(r, "step")
			points = append(points, []float64{at, 0})
		}
		power := rapid.Float64Range(0.2, 3).Draw(r, "power")
		for sign, want := range map[float64]int{1: 0, -1: n - 1} {
			got, err := Check(checkedTable("output_throughput_tok_s", points, func(x []float64) float64 { return sign * math.Pow(x[0], power) }), CheckOptions{})
			if err != nil {
				r.Fatal(err)
			}
			if len(got.Surprises) != want {
				r.Fatalf("%d surprises; want %d", len(got.Surprises), want)
			}
		}
	})
}

func FuzzParseExpectation(f *testing.F) {
	f.Add("workers raises y")
	f.Add("  a\tlowers\nb ")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpectation(text)
		if err != nil {
			return
		}
		if again, err := ParseExpectation(e.String()); err != nil || again != e {
			t.Errorf("%q reads as %+v, that as %+v, %v", text, e, again, err)
		}
	})
}
