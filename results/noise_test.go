package results

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The quantiles must leave 2.5 % of the density of Student's t distribution above them.
func TestTFactors(t *testing.T) {
	for _, df := range []int{1, 2, 3, 7, 29, 30, 31, 50, 1000} {
		v := float64(df)
		lower, _ := math.Lgamma(v / 2)
		upper, _ := math.Lgamma((v + 1) / 2)
		density := func(x float64) float64 {
			return math.Exp(upper-lower-(v+1)/2*math.Log1p(x*x/v)) / math.Sqrt(v*math.Pi)
		}
		const steps = 20000
		end := tFactor(df + 1)
		sum := density(0) + density(end)
		for i := 1; i < steps; i++ {
			sum += float64(2+2*(i%2)) * density(end*float64(i)/steps)
		}
		if got := sum * end / steps / 3; math.Abs(got-.475) > 1e-6 {
			t.Errorf("%d degrees of freedom: %v lies between 0 and the factor; want 0.475", df, got)
		}
	}
	if tFactor(0) != 0 || tFactor(1) != 0 {
		t.Error("a single number has an interval")
	}
}

// replicatedTable returns a table of configurations with up to three replicates each, some of them failed or without a
// figure.
func replicatedTable(t *rapid.T) *Table {
	var csv strings.Builder
	csv.WriteString("policy,replicate,status,traffic,rate,latency\n")
	n := rapid.IntRange(1, 12).Draw(t, "configurations")
	figure := rapid.IntRange(0, 12)
	for i := range n {
		noisy := rapid.IntRange(0, 2).Draw(t, "noise")
		rate, latency := figure.Draw(t, "rate"), figure.Draw(t, "latency")
		for r := range rapid.IntRange(1, 3).Draw(t, "replicates") {
			status := rapid.SampledFrom([]string{"ok", "ok", "ok", "failed"}).Draw(t, "status")
			value := func(v int) string {
				if rapid.IntRange(0, 15).Draw(t, "null") == 0 {
					return ""
				}
				return fmt.Sprint(float64(v) + .25*float64(noisy*rapid.IntRange(-1, 1).Draw(t, "draw")))
			}
			fmt.Fprintf(&csv, "p%d,%d,%s,t%d,%s,%s\n", i, r, status, i%2, value(rate), value(latency))
		}
	}
	table, err := readCSV(strings.NewReader(csv.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Columns {
		c.Role = RoleAxis
		if c.Name == "rate" || c.Name == "latency" {
			c.Role = RoleMetric
		}
		if c.Name == "replicate" || c.Name == "status" {
			c.Role = RolePoint
		}
	}
	return table
}

// Compares the marks with the definition, applied to every pair.
func TestNoiseOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := replicatedTable(t)
		if c := table.Column("rate"); c == nil || !c.Numeric() || !table.Column("latency").Numeric() {
			return // nothing but nulls
		}
		a := Analysis{Objectives: []Objective{{Name: "rate", Maximize: true}, {Name: "latency"}}, By: []string{"traffic"}}
		a.Constraints = []Constraint{{Column: "latency", Operator: "<=", Bound: integer(9)}}
		if err := MarkFrontier(table, a); err != nil {
			t.Fatal(err)
		}
		near, c := table.Column(NoiseColumn), table.Candidates()
		if !c.Replicated() {
			if near != nil {
				t.Fatal("without replicates there is no noise to be within")
			}
			return
		}
		want := make([]bool, table.Rows())
		for row, i := range c.Of {
			want[row] = table.Column(FrontierColumn).Bools[row] || comparable(c, table, a, i) && !slices.ContainsFunc(c.Of, func(j int) bool { return beats(c, table, a, j, i) })
		}
		if diff := cmp.Diff(want, near.Bools); diff != "" {
			t.Fatalf("marks (-want +got):\n%s", diff)
		}
	})
}

func comparable(c *Candidates, t *Table, a Analysis, i int) bool {
	row := c.Rows[i][0]
	return t.Column(FeasibleColumn).Bools[row] && c.Table.Column("status").Text(i) == string(StatusOK) && !slices.ContainsFunc(a.Objectives, func(o Objective) bool { return c.Table.Column(o.Name).Null[i] })
}

func beats(c *Candidates, t *Table, a Analysis, j, i int) bool {
	if !comparable(c, t, a, i) || !comparable(c, t, a, j) || c.Table.Column("traffic").Text(i) != c.Table.Column("traffic").Text(j) {
		return false
	}
	enough, more := true, false
	for _, o := range a.Objectives {
		lead := c.Table.Column(o.Name).Floats[j] - c.Table.Column(o.Name).Floats[i]
		if !o.Maximize {
			lead = -lead
		}
		margin := math.Hypot(c.Interval(t.Column(o.Name), i), c.Interval(t.Column(o.Name), j))
		enough, more = enough && lead >= margin, more || lead > margin
	}
	return enough && more
}

// A point that is worse by less than the noise is marked, one that is worse by more is not.
func TestNoise(t *testing.T) {
	table := readContent(t, `policy,replicate,rate
a,0,100
a,1,102
a,2,98
b,0,99
b,1,97
b,2,101
c,0,50
c,1,51
c,2,49
`)
	table.Column("rate").Role = RoleMetric
	table.Column("replicate").Role = RolePoint
	if err := MarkFrontier(table, Analysis{Objectives: []Objective{{Name: "rate", Maximize: true}}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, true, true, true, true, true, false, false, false}, table.Column(NoiseColumn).Bools); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{true, true, true, false, false, false, false, false, false}, table.Column(FrontierColumn).Bools); diff != "" {
		t.Errorf("frontier (-want +got):\n%s", diff)
	}
}

// Many candidates whose noise hides every difference are the worst case.
func BenchmarkNoise(b *testing.B) {
	const n = 10_000
	f := noisyFigures{means: [][]float64{make([]float64, n), make([]float64, n)}, halves: [][]float64{make([]float64, n), make([]float64, n)}}
	candidates, on := make([]int, n), make([]bool, n)
	for i := range n {
		candidates[i] = i
		f.means[0][i], f.means[1][i] = float64(i*7919%n), float64(i*104729%n)
		f.halves[0][i], f.halves[1][i] = n, n
	}
	for b.Loop() {
		f.markNear(make([]bool, n), candidates, on)
	}
}
