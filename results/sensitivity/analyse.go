package sensitivity

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// Options say what to analyse.
type Options struct {
	// Metrics are names of numeric columns; none means objectives, constraints and the usual figures, and the single name
	// "all" every measured figure that varies.
	Metrics []string
	// Axes are names of columns; none means all axes. What else varies counts as noise.
	Axes []string
	// Log analyses the logarithm of each metric, for figures that span decades. Values that are not above 0 are left out.
	Log bool
	// Seed is that of the resampling, and of the choice of points where there are too many.
	Seed uint64
	// Resamples is the number of resampled sets behind each interval; 0 means 100, a negative number none.
	Resamples int
}

// Analysis is what the axes of a table do to its metrics.
type Analysis struct {
	// Axes are the names; those that always change together are one, joined by "+".
	Axes []string `json:"axes"`
	// Points is the number of points that succeeded.
	Points int `json:"points"`
	// Metrics are those that vary, in the order asked for.
	Metrics []Metric `json:"metrics"`
	// Cautions are what one must know before trusting the figures, a sentence each.
	Cautions []string `json:"cautions"`
}

// The ways to get at the shares.
const (
	// MethodExact is the analysis of variance of a full grid.
	MethodExact = "exact"
	// MethodFilled is that of a grid whose gaps are filled by a model fitted to the points.
	MethodFilled = "filled"
	// MethodFitted is that of the model itself, for samples of axes with many values.
	MethodFitted = "fitted"
)

// Metric is how the variance of one metric comes about.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Log says that shares are those of the logarithm.
	Log bool `json:"log"`
	// Method is [MethodExact], [MethodFilled] or [MethodFitted].
	Method string `json:"method"`
	// Points is the number of different points with a value.
	Points int `json:"points"`
	// Lowest and Highest bound the values.
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	// Explained is the share of the variance between points that is accounted for: 1 when exact, what the model predicts of
	// points that it has not seen when fitted, and in between for a grid with gaps. All shares are scaled to it.
	Explained float64 `json:"explained"`
	// Noise is the share of the variance that is between runs of the same point; nil without replicates.
	Noise *float64 `json:"noise"`
	// Effects are those of each axis, in the order of Analysis.Axes.
	Effects []Effect `json:"effects"`
	// Interactions are those of pairs, largest first.
	Interactions []Interaction `json:"interactions"`
}

// Effect is what one axis does.
type Effect struct {
	Axis string `json:"axis"`
	// First is the share of the variance that the axis makes up by itself (the first-order Sobol index); Total adds all that it
	// does together with others (the total index). Totals add up to more than 1 where axes interact.
	First Share `json:"first"`
	Total Share `json:"total"`
	// Direction is empty for an axis of names.
	Direction Direction `json:"direction,omitempty"`
	// Curve is the mean of the metric at each level of the axis over all else, in its own unit; with Log the geometric mean.
	Curve []LevelMean `json:"curve"`
}

// LevelMean is the mean of a metric where an axis has one value.
type LevelMean struct {
	Value string  `json:"value"`
	Mean  float64 `json:"mean"`
}

// Interaction is what two axes do together beyond what each does by itself.
type Interaction struct {
	Axes  [2]string `json:"axes"`
	Share Share     `json:"share"`
}

// Share is a part of the variance, with the interval that holds it with 90 % confidence. Low and High are nil where nothing is uncertain.
type Share struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// Analyse says how the axes of a table make up the variance of its metrics, every value of an axis counting the same, or
// as often as it was sampled where there are more than 20. Points that failed do not count. The error lists every unknown column.
func Analyse(t *results.Table, opt Options) (*Analysis, error) {
	columns, err := chooseColumns(t, opt.Metrics, opt.Axes)
	if err != nil {
		return nil, err
	}
	c, err := newCells(t, columns.rows, columns.axes)
	if err != nil {
		return nil, err
	}
	a := analyst{cells: c, opt: opt}
	for i := range c.factors {
		a.neighbours = append(a.neighbours, c.neighbours(i))
	}
	out := &Analysis{Points: len(columns.rows), Cautions: columns.cautions}
	for i := range c.factors {
		out.Axes = append(out.Axes, c.factors[i].name)
	}
	for _, column := range columns.metrics {
		m, ok, err := a.metric(column)
		if err != nil {
			return nil, err
		}
		if ok {
			out.Metrics = append(out.Metrics, m)
		}
	}
	if len(out.Metrics) == 0 {
		return nil, fmt.Errorf("no metric varies between points with different axes: %s", joinColumns(columns.metrics))
	}
	out.Cautions = append(out.Cautions, a.cautions(out.Metrics)...)
	return out, nil
}

// analyst analyses the metrics of one table.
type analyst struct {
	cells *cells
	opt   Options
	// neighbours are the pairs of cells along each factor.
	neighbours [][][2]int
	// exponent is the power of two that the values of the metric at hand are divided by.
	exponent int
}

// metric analyses one column; false when it does not vary.
func (a *analyst) metric(column *results.Column) (Metric, bool, error) {
	values, err := column.Float64s()
	if err != nil {
		return Metric{}, false, fmt.Errorf("metric %s: %w", column.Name, err)
	}
	a.transform(values)
	d := a.cells.design(values)
	if len(d.y) < 2 || variance(d.y) <= unmoved*unmoved*math.Abs(mean(d.y))*math.Abs(mean(d.y)) {
		return Metric{}, false, nil
	}
	rng := rand.New(rand.NewPCG(a.opt.Seed, 0))
	m := Metric{Name: column.Name, Unit: column.Unit, Log: a.opt.Log, Points: len(d.y), Method: MethodExact}
	m.Lowest, m.Highest = a.back(slices.Min(d.y)), a.back(slices.Max(d.y))
	directions := a.directions(d)
	var s samples
	if d.complete() {
		s = a.exact(d, rng)
	} else {
		m.Method = MethodFitted
		s = a.fitted(d, rng)
		if s.filled {
			m.Method = MethodFilled
		}
	}
	a.describe(&m, d, s, directions)
	return m, true, nil
}

// samples are a decomposition and what it would be with resampled data.
type samples struct {
	decomposition
	d *design
	// filled says that a model stands for the gaps of a grid only.
	filled     bool
	resampled  []decomposition
	directions []Direction
}

// resamples bounds the number of resampled sets by the work that each takes.
func (a *analyst) resamples(work int) int {
	const mostWork, fewest = 2_000_000_000, 20
	n := cmp.Or(a.opt.Resamples, 100)
	return max(0, min(n, max(fewest, mostWork/max(work, 1))))
}

// exact decomposes a full grid; only replicates make it uncertain, and they are drawn again.
func (a *analyst) exact(d *design, rng *rand.Rand) samples {
	s := samples{decomposition: d.decompose(d.y), d: d}
	if !d.repeated() {
		return s
	}
	y := make([]float64, len(d.y))
	k := len(d.levels)
	for range a.resamples(len(y) * k * k * 10) {
		for cell, runs := range d.runs {
			drawn := make([]float64, len(runs))
			for i := range drawn {
				drawn[i] = runs[rng.IntN(len(runs))]
			}
			y[cell] = mean(drawn)
		}
		s.resampled = append(s.resampled, d.decompose(y))
	}
	return s
}

// fitted fits a model, which fills the gaps of a grid and stands for a sample altogether; the points are drawn again for its
// uncertainty.
func (a *analyst) fitted(d *design, rng *rand.Rand) samples {
	whole := d
	if len(d.y) > mostFitted {
		among := rng.Perm(len(d.y))[:mostFitted]
		slices.Sort(among)
		d = d.part(among)
	}
	ordered := make([]bool, len(a.cells.factors))
	for i := range ordered {
		ordered[i] = a.cells.factors[i].ordered
	}
	f, predicted := d.fit(ordered, rng)
	decompose, cells := func(coefficients []float64) decomposition {
		return f.decompose(coefficients, variance(d.y), predicted)
	}, 0
	s := samples{d: whole, filled: whole.fillable()}
	if s.filled {
		grid := whole.filling()
		cells = len(grid.y)
		missing := float64(len(grid.gaps)) / float64(cells)
		decompose = func(coefficients []float64) decomposition {
			return grid.grid.decompose(grid.values(f, coefficients)).scaled(1 - missing*(1-predicted))
		}
	}
	s.decomposition = decompose(f.coefficients)
	for i := range s.curve {
		s.directions = append(s.directions, curveDirection(s.curve[i]))
	}
	use := make([]int, len(d.y))
	for range a.resamples(len(d.y)*len(f.columns)*len(f.columns) + cells*(len(f.columns)+len(d.levels)*len(d.levels))) {
		for i := range use {
			use[i] = rng.IntN(len(d.y))
		}
		s.resampled = append(s.resampled, decompose(leastSquares(f.columns, d.y, use)))
	}
	return s
}

// curveDirection is the direction of a fitted curve, where no two points differ in one axis only.
func curveDirection(curve []float64) Direction {
	steps := make([][2]float64, 0, len(curve))
	for i := 1; i < len(curve); i++ {
		steps = append(steps, [2]float64{curve[i-1], curve[i]})
	}
	return direction(steps)
}

// directions are those over the pairs of points that differ in one axis; empty where there is no such pair.
func (a *analyst) directions(d *design) []Direction {
	y := make([]float64, len(a.cells.rows))
	for i := range y {
		y[i] = math.NaN()
	}
	for i, cell := range d.cells {
		y[cell] = d.y[i]
	}
	out := make([]Direction, len(a.neighbours))
	for i, pairs := range a.neighbours {
		var steps [][2]float64
		for _, p := range pairs {
			if step := [2]float64{y[p[0]], y[p[1]]}; !math.IsNaN(step[0]) && !math.IsNaN(step[1]) {
				steps = append(steps, step)
			}
		}
		out[i] = direction(steps)
	}
	return out
}

// describe turns variances into shares.
func (a *analyst) describe(m *Metric, d *design, s samples, directions []Direction) {
	within, noise := d.within()
	if d.repeated() {
		share := min(1, noise/(variance(d.y)+within))
		m.Noise = &share
	}
	m.Explained = s.explained
	of := func(get func(*decomposition) float64) Share {
		share := Share{Value: part(get(&s.decomposition), s.total+within)}
		if len(s.resampled) == 0 {
			return share
		}
		drawn := make([]float64, len(s.resampled))
		for i := range s.resampled {
			drawn[i] = part(get(&s.resampled[i]), s.resampled[i].total+within)
		}
		slices.Sort(drawn)
		// Drawing again adds noise to all means, and so lowers every share; the interval has that taken out.
		bias := mean(drawn) - share.Value
		low := min(share.Value, max(0, metrics.NearestRank(drawn, 5)-bias))
		high := max(share.Value, min(1, metrics.NearestRank(drawn, 95)-bias))
		share.Low, share.High = &low, &high
		return share
	}
	for i := range a.cells.factors {
		e := Effect{Axis: a.cells.factors[i].name,
			First: of(func(d *decomposition) float64 { return d.first[i] }),
			Total: of(func(d *decomposition) float64 { return d.all[i] })}
		if a.cells.factors[i].ordered {
			e.Direction = directions[i]
			if e.Direction == "" && s.directions != nil {
				e.Direction = s.directions[i]
			}
		}
		for level, v := range s.curve[i] {
			e.Curve = append(e.Curve, LevelMean{Value: a.cells.factors[i].texts[s.d.names[i][level]], Mean: a.back(v)})
		}
		m.Effects = append(m.Effects, e)
		for j := i + 1; j < len(a.cells.factors); j++ {
			m.Interactions = append(m.Interactions, Interaction{
				Axes:  [2]string{a.cells.factors[i].name, a.cells.factors[j].name},
				Share: of(func(d *decomposition) float64 { return d.pair[i][j] })})
		}
	}
	slices.SortStableFunc(m.Interactions, func(x, y Interaction) int { return cmp.Compare(y.Share.Value, x.Share.Value) })
}

// part is a share of a whole, of which nothing has none.
func part(of, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return of / whole
}

// transform takes the logarithm where it is asked for, and else divides by a power of two, so that no square overflows.
func (a *analyst) transform(values []float64) {
	most := 0.0
	for i, v := range values {
		if a.opt.Log {
			values[i] = math.Log10(v)
		} else if !math.IsInf(v, 0) && math.Abs(v) > most { // never for NaN
			most = math.Abs(v)
		}
	}
	_, a.exponent = math.Frexp(most)
	for i, v := range values {
		values[i] = math.Ldexp(v, -a.exponent)
	}
}

// back undoes transform.
func (a *analyst) back(v float64) float64 {
	if a.opt.Log {
		return math.Pow(10, v)
	}
	return math.Ldexp(v, a.exponent)
}
