package sensitivity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// made is a table of a function's values at some points.
func made(names []string, points [][]float64, f func(x []float64) float64) *results.Table {
	t := &results.Table{}
	for i, name := range names {
		c := results.NewColumn(name, gridspec.KindFloat, len(points))
		c.Role = results.RoleAxis
		for row, p := range points {
			c.Set(row, number(p[i]))
		}
		t.Add(c)
	}
	y := results.NewColumn("y", gridspec.KindFloat, len(points))
	y.Role = results.RoleMetric
	for row, p := range points {
		y.Set(row, number(f(p)))
	}
	t.Add(y)
	return t
}

func number(v float64) gridspec.Value { return gridspec.Value{Kind: gridspec.KindFloat, Float: v} }

// grid is all combinations of the middles of n equal parts of an interval, in k dimensions.
func grid(k, n int, low, high float64) [][]float64 {
	points := [][]float64{{}}
	for range k {
		var next [][]float64
		for _, p := range points {
			for i := range n {
				next = append(next, append(slices.Clone(p), low+(high-low)*(float64(i)+.5)/float64(n)))
			}
		}
		points = next
	}
	return points
}

// hypercube is a Latin hypercube of n points.
func hypercube(rng *rand.Rand, k, n int, low, high float64) [][]float64 {
	points := make([][]float64, n)
	for range k {
		for i, at := range rng.Perm(n) {
			points[i] = append(points[i], low+(high-low)*(float64(at)+rng.Float64())/float64(n))
		}
	}
	return points
}

func analysed(t testing.TB, table *results.Table, opt Options) Metric {
	t.Helper()
	a, err := Analyse(table, opt)
	if err != nil {
		t.Fatal(err)
	}
	return a.Metrics[0]
}

// known are functions whose indices have a closed form.
var known = []struct {
	name         string
	axes         []string
	low, high    float64
	f            func(x []float64) float64
	first, total []float64
	pair         map[[2]string]float64
	// sampled is how near a fit to 300 points must come; 0 where sums of polynomials of two axes cannot.
	sampled float64
}{
	{
		// Ishigami and Homma 1990 with a = 7, b = 0.1.
		name: "Ishigami", axes: []string{"a", "b", "c"}, low: -math.Pi, high: math.Pi,
		f: func(x []float64) float64 {
			return math.Sin(x[0]) + 7*math.Pow(math.Sin(x[1]), 2) + 0.1*math.Pow(x[2], 4)*math.Sin(x[0])
		},
		first: []float64{0.3139, 0.4424, 0}, total: []float64{0.5576, 0.4424, 0.2437},
		pair: map[[2]string]float64{{"a", "c"}: 0.2437}, sampled: 0.02,
	},
	{
		// The g-function of Sobol with a = 0, 1, 4.5, 9: V_i = 1 / (3 (1 + a_i)²), V = Π (1 + V_i) - 1.
		name: "g-function", axes: []string{"a", "b", "c", "d"}, low: 0, high: 1,
		f: func(x []float64) float64 {
			v := 1.0
			for i, a := range []float64{0, 1, 4.5, 9} {
				v *= (math.Abs(4*x[i]-2) + a) / (1 + a)
			}
			return v
		},
		first: gFirst(), total: gTotal(), sampled: 0.06,
	},
	{
		name: "sum", axes: []string{"a", "b", "c"}, low: 0, high: 1,
		f:     func(x []float64) float64 { return 3*x[0] - 2*x[1] + x[2] },
		first: []float64{9. / 14, 4. / 14, 1. / 14}, total: []float64{9. / 14, 4. / 14, 1. / 14}, sampled: 0.002,
	},
	{
		name: "product", axes: []string{"a", "b", "c"}, low: -1, high: 1,
		f:     func(x []float64) float64 { return x[0]*x[1] + 0*x[2] },
		first: []float64{0, 0, 0}, total: []float64{1, 1, 0}, pair: map[[2]string]float64{{"a", "b"}: 1}, sampled: 0.002,
	},
}

func gVariances() (v []float64, total float64) {
	total = 1
	for _, a := range []float64{0, 1, 4.5, 9} {
		v = append(v, 1/(3*(1+a)*(1+a)))
		total *= 1 + v[len(v)-1]
	}
	return v, total - 1
}

func gFirst() []float64 {
	v, total := gVariances()
	for i := range v {
		v[i] /= total
	}
	return v
}

func gTotal() []float64 {
	v, total := gVariances()
	out := make([]float64, len(v))
	for i := range v {
		out[i] = v[i] * (total + 1) / (1 + v[i]) / total
	}
	return out
}

func TestKnownFunctions(t *testing.T) {
	for _, test := range known {
		t.Run(test.name, func(t *testing.T) {
			levels := map[int]int{3: 20, 4: 12}[len(test.axes)]
			whole := analysed(t, made(test.axes, grid(len(test.axes), levels, test.low, test.high), test.f), Options{})
			checkIndices(t, whole, test.first, test.total, test.pair, 0.012)
			if whole.Method != MethodExact || whole.Explained != 1 {
				t.Errorf("a full grid is %s, %v explained", whole.Method, whole.Explained)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			part := analysed(t, made(test.axes, hypercube(rng, len(test.axes), 300, test.low, test.high), test.f), Options{Resamples: 10})
			checkIndices(t, part, test.first, test.total, test.pair, test.sampled)
			if part.Method != MethodFitted || part.Explained < 0.9 {
				t.Errorf("a sample is %s, %v explained", part.Method, part.Explained)
			}
		})
	}
}

func checkIndices(t *testing.T, m Metric, first, total []float64, pair map[[2]string]float64, tolerance float64) {
	t.Helper()
	near := cmpopts.EquateApprox(0, tolerance)
	var gotFirst, gotTotal []float64
	for _, e := range m.Effects {
		gotFirst, gotTotal = append(gotFirst, e.First.Value), append(gotTotal, e.Total.Value)
	}
	if diff := cmp.Diff(first, gotFirst, near); diff != "" {
		t.Errorf("%s, first order (-want +got):\n%s", m.Method, diff)
	}
	if diff := cmp.Diff(total, gotTotal, near); diff != "" {
		t.Errorf("%s, total (-want +got):\n%s", m.Method, diff)
	}
	for _, i := range m.Interactions {
		if want, ok := pair[i.Axes]; (ok || pair != nil) && math.Abs(i.Share.Value-want) > tolerance {
			t.Errorf("%s: %v interact by %v; want %v", m.Method, i.Axes, i.Share.Value, want)
		}
	}
}

// What holds for every table of a full grid, checked against sums written out.
func TestFullGridsAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(2, 4), 2, 3).Draw(r, "sizes")
		points := [][]float64{{}}
		for _, n := range sizes {
			var next [][]float64
			for _, p := range points {
				for v := range n {
					next = append(next, append(slices.Clone(p), float64(v)))
				}
			}
			points = next
		}
		y := map[string]float64{}
		for _, p := range points {
			y[fmt.Sprint(p)] = rapid.Float64Range(-10, 10).Draw(r, "y")
		}
		f := func(p []float64) float64 { return y[fmt.Sprint(p)] }
		names := []string{"a", "b", "c"}[:len(sizes)]
		a, err := Analyse(made(names, points, f), Options{})
		if err != nil {
			r.Skip("the values are equal")
		}
		m := a.Metrics[0]
		meanWhere := func(keep func(q []float64) bool) float64 {
			sum, n := 0.0, 0.0
			for _, q := range points {
				if keep(q) {
					sum, n = sum+f(q), n+1
				}
			}
			return sum / n
		}
		all := meanWhere(func([]float64) bool { return true })
		// spread is the variance of the means over points that agree in some axes.
		spread := func(axes ...int) float64 {
			sum := 0.0
			for _, p := range points {
				v := meanWhere(func(q []float64) bool {
					return !slices.ContainsFunc(axes, func(i int) bool { return q[i] != p[i] })
				})
				sum += (v - all) * (v - all)
			}
			return sum / float64(len(points))
		}
		var every []int
		for i := range sizes {
			every = append(every, i)
		}
		total := spread(every...)
		for i := range sizes {
			if got, want := m.Effects[i].First.Value, spread(i)/total; math.Abs(got-want) > 1e-9 {
				r.Fatalf("axis %d alone has %v; want %v", i, got, want)
			}
			others := slices.DeleteFunc(slices.Clone(every), func(j int) bool { return i == j })
			if got, want := m.Effects[i].Total.Value, 1-spread(others...)/total; math.Abs(got-want) > 1e-9 {
				r.Fatalf("axis %d has %v in all; want %v", i, got, want)
			}
		}
		for _, pair := range m.Interactions {
			i, j := slices.Index(names, pair.Axes[0]), slices.Index(names, pair.Axes[1])
			if want := (spread(i, j) - spread(i) - spread(j)) / total; math.Abs(pair.Share.Value-want) > 1e-9 {
				r.Fatalf("%v interact by %v; want %v", pair.Axes, pair.Share.Value, want)
			}
		}
	})
}

// Neither the order of the rows nor the names of policies nor the scale of an axis change anything.
func TestOrderAndNamesDoNotMatter(t *testing.T) {
	for _, points := range []int{60, 47} { // a full grid and a part of it
		rng := rand.New(rand.NewPCG(3, uint64(points)))
		order := rng.Perm(60)[:points]
		build := func(order []int, names []string, scale func(float64) float64) *results.Table {
			t := &results.Table{}
			policy := results.NewColumn("policy", gridspec.KindString, len(order))
			size := results.NewColumn("size", gridspec.KindFloat, len(order))
			depth := results.NewColumn("depth", gridspec.KindInt, len(order))
			y := results.NewColumn("y", gridspec.KindFloat, len(order))
			for row, at := range order {
				p, s, d := at%3, at/3%5, at/15
				policy.Set(row, gridspec.Value{Kind: gridspec.KindString, Str: names[p]})
				size.Set(row, number(scale(float64(s+1))))
				depth.Set(row, gridspec.Value{Kind: gridspec.KindInt, Int: int64(d)})
				y.Set(row, number(float64(s)*[]float64{1, -1, 3}[p]+math.Sqrt(float64(d))+math.Sin(float64(7*at))/10))
			}
			for _, c := range []*results.Column{policy, size, depth} {
				c.Role = results.RoleAxis
				t.Add(c)
			}
			y.Role = results.RoleMetric
			t.Add(y)
			return t
		}
		same := func(x float64) float64 { return x }
		want := analysed(t, build(order, []string{"a", "b", "c"}, same), Options{Seed: 7})
		slices.SortFunc(order, func(a, b int) int { return a*37%61 - b*37%61 })
		got := analysed(t, build(order, []string{"a", "b", "c"}, same), Options{Seed: 7})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d points in another order (-want +got):\n%s", points, diff)
		}
		renamed := analysed(t, build(order, []string{"z", "b", "a"}, func(x float64) float64 { return math.Pow(10, x) }), Options{Seed: 7, Resamples: -1})
		for i := range want.Effects {
			a, b := want.Effects[i], renamed.Effects[i]
			// The parts of the cross-validation are others, and shares are scaled to what it explains.
			scale := want.Explained / renamed.Explained
			if math.Abs(a.Total.Value-scale*b.Total.Value) > 1e-9 || math.Abs(a.First.Value-scale*b.First.Value) > 1e-9 || a.Direction != b.Direction {
				t.Errorf("%d points under other names: %+v becomes %+v", points, a, b)
			}
		}
		if want.Explained < 0.95 {
			t.Errorf("%d points: %v explained", points, want.Explained)
		}
	}
}

// Most of a grid, its gaps filled, agrees with the grid; and a model of nothing says so.
func TestIncompleteGrid(t *testing.T) {
	f := func(x []float64) float64 { return 100*x[0] + 20*x[1]*x[1] + 30*x[0]*x[1] }
	points := grid(3, 5, 0, 1)
	whole := analysed(t, made([]string{"a", "b", "c"}, points, f), Options{})
	part := slices.DeleteFunc(slices.Clone(points), func(p []float64) bool { return p[0] < .2 && p[1] > .5 })
	got := analysed(t, made([]string{"a", "b", "c"}, part, f), Options{})
	for i := range whole.Effects {
		if a, b := whole.Effects[i], got.Effects[i]; math.Abs(a.Total.Value-b.Total.Value) > 1e-6 || math.Abs(a.First.Value-b.First.Value) > 1e-6 {
			t.Errorf("the grid says %+v, most of it %+v", a, b)
		}
	}
	if got.Method != MethodFilled || got.Explained < 1-1e-9 {
		t.Errorf("%s, %v explained", got.Method, got.Explained)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	noise := analysed(t, made([]string{"a", "b", "c"}, hypercube(rng, 3, 100, 0, 1), func([]float64) float64 { return rng.NormFloat64() }), Options{})
	if noise.Explained > 0.15 {
		t.Errorf("%v of pure noise is explained", noise.Explained)
	}
}

// Replicates give the share of the noise, and intervals of which nine in ten hold the truth.
func TestNoise(t *testing.T) {
	var points [][]float64
	for _, p := range grid(2, 4, 0, 4) {
		for range 5 {
			points = append(points, p)
		}
	}
	// The variance of a is 1.25, that of the noise 1.
	const studies, share = 60, 1.25 / 2.25
	held, noise := 0, 0.0
	for seed := range uint64(studies) {
		rng := rand.New(rand.NewPCG(seed, 9))
		m := analysed(t, made([]string{"a", "b"}, points, func(x []float64) float64 { return x[0] + rng.NormFloat64() }), Options{})
		noise += *m.Noise / studies
		if e := m.Effects[0].First; *e.Low <= share && share <= *e.High {
			held++
		}
	}
	if math.Abs(noise-(1-share)) > 0.05 {
		t.Errorf("noise %v; want about %v", noise, 1-share)
	}
	if held < studies*8/10 {
		t.Errorf("%d of %d intervals hold the truth", held, studies)
	}
}

// A tenth of a grid, as a search leaves it, gives nearly the shares of all of it.
func TestSparseGrid(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	f := func(x []float64) float64 { return 100/(1+x[0]) + 40*x[1]*x[2] + 10*x[3] }
	points := grid(5, 4, 0, 1)
	whole := analysed(t, made(names, points, f), Options{})
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		part := analysed(t, made(names, points[:100], f), Options{Seed: seed, Resamples: 20})
		if part.Method != MethodFilled || part.Explained < 0.95 {
			t.Errorf("%s, %v explained", part.Method, part.Explained)
		}
		for i := range whole.Effects {
			if a, b := whole.Effects[i].Total.Value, part.Effects[i].Total.Value; math.Abs(a-b) > 0.03 {
				t.Errorf("%s makes up %v of the grid and %v of a part", names[i], a, b)
			}
		}
	}
}

// A model never runs away in a corner without points: what it fills in lies between the neighbours.
func TestGapsLieBetweenTheirNeighbours(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var points [][]float64
		var y []float64
		for _, p := range grid(2, 5, 0, 5) {
			if v := rapid.Float64Range(0, 100).Draw(r, "y"); p[0] > 1 || p[1] > 1 {
				if rapid.Bool().Draw(r, "kept") {
					points, y = append(points, p), append(y, v)
				}
			}
		}
		at := -1
		a, err := Analyse(made([]string{"a", "b"}, points, func([]float64) float64 { at++; return y[at] }), Options{Resamples: 3})
		if err != nil {
			r.Skip("too few points")
		}
		for _, e := range a.Metrics[0].Effects {
			for _, level := range e.Curve {
				if low, high := slices.Min(y), slices.Max(y); level.Mean < low-1e-9 || level.Mean > high+1e-9 {
					r.Fatalf("%s at %s has the mean %v; all points lie between %v and %v", e.Axis, level.Value, level.Mean, low, high)
				}
			}
		}
	})
}

func TestAxesThatMoveTogether(t *testing.T) {
	points := [][]float64{{1, 10, 0}, {2, 20, 0}, {4, 40, 0}, {1, 10, 1}, {2, 20, 1}, {4, 40, 1}}
	a, err := Analyse(made([]string{"a", "b", "c"}, points, func(x []float64) float64 { return x[0] + x[2] }), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(a.Axes, " "); got != "a+b c" {
		t.Errorf("axes %q", got)
	}
	if got := a.Metrics[0].Effects[0].Curve[1]; got != (LevelMean{Value: "2+20", Mean: 2.5}) {
		t.Errorf("the second value is %+v", got)
	}
}

func TestDirections(t *testing.T) {
	for want, f := range map[Direction]func(x []float64) float64{
		Rises:       func(x []float64) float64 { return x[0] * x[0] },
		Falls:       func(x []float64) float64 { return 1 / (1 + x[0]) },
		Mixed:       func(x []float64) float64 { return math.Sin(x[0]) },
		MostlyRises: func(x []float64) float64 { return map[bool]float64{true: x[0] - 3, false: x[0]}[x[0] == 10.5] },
		Flat:        func(x []float64) float64 { return x[1] },
	} {
		m := analysed(t, made([]string{"a", "b"}, grid(2, 20, 0, 20), f), Options{})
		if got := m.Effects[0].Direction; got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	one := analysed(t, made([]string{"a"}, hypercube(rand.New(rand.NewPCG(1, 1)), 1, 40, 0, 1), func(x []float64) float64 { return -x[0] }), Options{})
	if got := one.Effects[0].Direction; got != Falls {
		t.Errorf("a line falls, and it says %q", got)
	}
}

func TestLogComparesRatios(t *testing.T) {
	f := func(x []float64) float64 { return math.Pow(10, 3*x[0]) * math.Pow(10, x[1]) }
	table := made([]string{"a", "b"}, grid(2, 8, 0, 1), f)
	plain, log := analysed(t, table, Options{}), analysed(t, table, Options{Log: true})
	if got := log.Effects[0].Total.Value; math.Abs(got-0.9) > 1e-9 || plain.Effects[0].Total.Value > 0.89 {
		t.Errorf("a makes up %v of the logarithm and %v of the figure", got, plain.Effects[0].Total.Value)
	}
	if got, want := log.Effects[1].Curve[0].Mean, math.Pow(10, 1.5+.0625); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("the geometric mean is %v; want %v", got, want)
	}
}

// Of many points that are equal but for one, those that the model is fitted to may all be equal: it explains nothing then.
func TestEqualSampleExplainsNothing(t *testing.T) {
	points := hypercube(rand.New(rand.NewPCG(1, 1)), 2, 3*mostFitted, 0, 1)
	outlier := points[7][0]
	f := func(x []float64) float64 {
		if x[0] == outlier {
			return 1
		}
		return 0
	}
	equal := 0
	for seed := range uint64(8) {
		a, err := Analyse(made([]string{"a", "b"}, points, f), Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		m := a.Metrics[0]
		if m.Explained == 0 {
			equal++
		}
		shares := []float64{m.Explained, m.Interactions[0].Share.Value}
		for _, e := range m.Effects {
			shares = append(shares, e.First.Value, e.Total.Value, *e.Total.Low, *e.Total.High)
		}
		for _, share := range shares {
			if !(share >= 0 && share <= 1) {
				t.Errorf("seed %d: shares %v, want 0 to 1", seed, shares)
				break
			}
		}
	}
	if equal == 0 {
		t.Error("no seed chose equal points only; this tests nothing")
	}
}

// TestRefusals: what cannot be analysed is said, all problems at once.
func TestRefusals(t *testing.T) {
	table := made([]string{"a", "b"}, grid(2, 3, 0, 1), func(x []float64) float64 { return x[0] })
	for _, test := range []struct {
		opt  Options
		want []string
	}{
		{Options{Metrics: []string{"why"}, Axes: []string{"aa"}}, []string{`metric why: unknown column "why"; known columns: a, b, y`, `axis aa: unknown column "aa"; did you mean a?`}},
		{Options{Axes: []string{"y"}, Metrics: []string{"y"}}, nil},
		{Options{Metrics: []string{"b"}, Axes: []string{"a"}}, []string{"no metric varies between points with different axes: b"}},
	} {
		_, err := Analyse(table, test.opt)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %v; want %q", test.opt, err, want)
			}
		}
	}
	if _, err := Analyse(&results.Table{}, Options{}); err == nil {
		t.Error("an empty table is analysed")
	}
}

// TestAnyTable: whatever is in a file, there is an answer or an error, and shares are shares.
func TestAnyTable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(r, "rows")
		table := &results.Table{}
		for i := range rapid.IntRange(1, 5).Draw(r, "columns") {
			kind := rapid.SampledFrom([]gridspec.Kind{gridspec.KindInt, gridspec.KindFloat, gridspec.KindString, gridspec.KindBool}).Draw(r, "kind")
			c := results.NewColumn(fmt.Sprint("c", i), kind, n)
			c.Role = rapid.SampledFrom([]results.Role{results.RoleAxis, results.RoleMetric, results.RoleConfig}).Draw(r, "role")
			for row := range n {
				v := gridspec.Value{Kind: kind, Int: rapid.Int64Range(-3, 3).Draw(r, "int"), Str: rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "text"), Bool: rapid.Bool().Draw(r, "bool")}
				v.Float = rapid.SampledFrom([]float64{0, 1, -1, 1e300, -1e300, 1e-300, math.Inf(1), 2.5}).Draw(r, "float")
				if rapid.IntRange(0, 5).Draw(r, "null") > 0 {
					c.Set(row, v)
				}
			}
			table.Add(c)
		}
		for _, log := range []bool{false, true} {
			a, err := Analyse(table, Options{Metrics: []string{"all"}, Log: log, Resamples: 5})
			if err != nil {
				continue
			}
			for _, m := range a.Metrics {
				for _, e := range m.Effects {
					for _, s := range []Share{e.First, e.Total} {
						if !(s.Value >= 0 && s.Value <= 1+1e-9) {
							r.Fatalf("%s of %s: %+v", e.Axis, m.Name, s)
						}
					}
				}
			}
		}
	})
}

func BenchmarkAnalyseGrid(b *testing.B) {
	table := made([]string{"a", "b", "c", "d", "e"}, grid(5, 10, 0, 1), func(x []float64) float64 { return x[0]*x[1] + x[2] + math.Sin(9*x[3]) })
	for b.Loop() {
		analysed(b, table, Options{})
	}
}

func BenchmarkAnalyseSample(b *testing.B) {
	table := made([]string{"a", "b", "c", "d", "e"}, hypercube(rand.New(rand.NewPCG(1, 1)), 5, 1000, 0, 1), func(x []float64) float64 { return x[0]*x[1] + x[2] + math.Sin(9*x[3]) })
	for b.Loop() {
		analysed(b, table, Options{})
	}
}
