package sensitivity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/compare"
)

// CheckOptions say what to check.
type CheckOptions struct {
	// Expectations are checked besides what one expects of the axes of serving.
	Expectations []Expectation
	// Axes are names of columns; none means all axes. Rows that agree in all of them count as runs of one point.
	Axes []string
	// Tolerance is the relative change in the unexpected direction that does not matter: 0.01 is 1 %. With replicates a change
	// also has to exceed twice its standard error.
	Tolerance float64
}

// Checks are what a table was checked for and what it shows against expectation.
type Checks struct {
	// Checked are the expectations that some pairs of points put to the test.
	Checked []Checked `json:"checked"`
	// Surprises are the pairs that contradict, the largest relative change first.
	Surprises []Surprise `json:"surprises"`
	// Cautions are what one must know before trusting the rest, a sentence each.
	Cautions []string `json:"cautions"`
}

// Checked is an expectation and how it fared.
type Checked struct {
	Expectation
	// Pairs is the number of pairs of points that differ in the axis alone, by its next value, and have the metric.
	Pairs int `json:"pairs"`
	// Surprises is the number of those that contradict.
	Surprises int `json:"surprises"`
}

// Surprise is a pair of points that contradicts an expectation.
type Surprise struct {
	Expectation
	From SurprisePoint `json:"from"`
	To   SurprisePoint `json:"to"`
	// Change is relative to From; nil where that is 0.
	Change *float64 `json:"change"`
	// Others are the other axes, as "policy=kv_router concurrency=8".
	Others string `json:"others"`
	// Reasons say what is behind the change, as far as the table knows.
	Reasons []string `json:"reasons"`
}

// SurprisePoint is one end of the pair.
type SurprisePoint struct {
	// Axis is the value of the axis, Value that of the metric, the mean of replicates.
	Axis  string  `json:"axis"`
	Value float64 `json:"value"`
	// Row is that of the first replicate, from 0, and ID its content ID; empty in files without.
	Row int    `json:"row"`
	ID  string `json:"id,omitempty"`
}

// Check looks for pairs of points that differ in one axis only, by its next value, and whose metrics move against what one
// expects of the axis. The error lists every unknown column and every expectation that nothing can test.
func Check(t *results.Table, opt CheckOptions) (*Checks, error) {
	out := &Checks{Checked: []Checked{}, Surprises: []Surprise{}, Cautions: []string{}}
	rows, cautions := succeeded(t)
	out.Cautions = append(out.Cautions, cautions...)
	if len(rows) == 0 {
		return nil, errors.New("no point succeeded; there is nothing to check")
	}
	if err := refuseUnknown(t, opt.Expectations); err != nil {
		return nil, err
	}
	axes, err := chooseAxes(t, opt.Axes, nil)
	if len(opt.Axes) == 0 {
		axes, err = withExpected(t, axes, opt.Expectations), nil
	}
	if err != nil {
		return nil, err
	}
	c, err := newCells(t, rows, axes)
	if err != nil {
		return nil, err
	}
	k := checker{table: t, cells: c, tolerance: opt.Tolerance, neighbours: map[int][][2]int{}}
	expectations, err := k.expectations(opt.Expectations)
	if err != nil {
		return nil, err
	}
	for _, e := range expectations {
		checked, surprises, err := k.check(e)
		if err != nil {
			return nil, err
		}
		if checked.Pairs > 0 {
			out.Checked, out.Surprises = append(out.Checked, checked), append(out.Surprises, surprises...)
		}
	}
	slices.SortStableFunc(out.Surprises, func(a, b Surprise) int { return cmp.Compare(b.size(), a.size()) })
	return out, nil
}

// refuseUnknown refuses expectations of columns that the table lacks, all at once.
func refuseUnknown(t *results.Table, expectations []Expectation) error {
	var problems []error
	for _, e := range expectations {
		for _, name := range []string{e.Axis, e.Metric} {
			if _, err := t.Lookup(name); err != nil {
				problems = append(problems, fmt.Errorf("expectation %s: %w", e, err))
			}
		}
	}
	return errors.Join(problems...)
}

// withExpected adds the columns that expectations name as axes, which a file of others may not know for such.
func withExpected(t *results.Table, axes []*results.Column, expectations []Expectation) []*results.Column {
	for _, e := range expectations {
		if c := t.Column(e.Axis); c != nil && !slices.Contains(axes, c) {
			axes = append(slices.Clone(axes), c)
		}
	}
	metric := func(c *results.Column) bool {
		return slices.ContainsFunc(expectations, func(e Expectation) bool { return e.Metric == c.Name })
	}
	return slices.DeleteFunc(slices.Clone(axes), metric)
}

// size orders surprises; a figure that leaves 0 comes first.
func (s *Surprise) size() float64 {
	if s.Change == nil {
		return math.Inf(1)
	}
	return math.Abs(*s.Change)
}

// checker checks the expectations of one table.
type checker struct {
	table     *results.Table
	cells     *cells
	tolerance float64
	// neighbours are the pairs of cells along a factor, once they were asked for.
	neighbours map[int][][2]int
}

// expectations are those of the axes and those given, each once. The error lists the given ones that nothing can test.
func (k *checker) expectations(given []Expectation) ([]Expectation, error) {
	var out []Expectation
	var problems []error
	for _, e := range given {
		if at := k.factor(e.Axis); at < 0 {
			problems = append(problems, fmt.Errorf("expectation %s: %s does not vary by itself among the points that succeeded, or is no number", e, e.Axis))
		} else {
			out = append(out, e)
		}
	}
	for i := range k.cells.factors {
		f := &k.cells.factors[i]
		if len(f.columns) > 1 {
			continue // axes that move together may pull in different directions
		}
		for _, e := range builtInFor(f.name) {
			if k.table.Column(e.Metric) != nil && k.factor(e.Axis) >= 0 && !slices.ContainsFunc(out, func(o Expectation) bool { return o.Axis == e.Axis && o.Metric == e.Metric }) {
				out = append(out, e)
			}
		}
	}
	return out, errors.Join(problems...)
}

// factor is the place of a column that varies in numbers by itself; -1 when there is none.
func (k *checker) factor(column string) int {
	return slices.IndexFunc(k.cells.factors, func(f factor) bool { return f.name == column && f.ordered })
}

// check tests one expectation at all its pairs.
func (k *checker) check(e Expectation) (Checked, []Surprise, error) {
	checked := Checked{Expectation: e}
	values, err := k.table.Column(e.Metric).Float64s()
	if err != nil {
		return checked, nil, fmt.Errorf("expectation %s: %w", e, err)
	}
	d := k.cells.design(values)
	place := make([]int, len(k.cells.rows))
	for i := range place {
		place[i] = -1
	}
	for i, cell := range d.cells {
		place[cell] = i
	}
	at := k.factor(e.Axis)
	if k.neighbours[at] == nil {
		k.neighbours[at] = k.cells.neighbours(at)
	}
	var surprises []Surprise
	for _, pair := range k.neighbours[at] {
		a, b := place[pair[0]], place[pair[1]]
		if a < 0 || b < 0 {
			continue
		}
		checked.Pairs++
		wrong := d.y[a] - d.y[b]
		if e.Lowers {
			wrong = -wrong
		}
		if wrong > k.tolerance*max(math.Abs(d.y[a]), math.Abs(d.y[b])) && wrong > 2*standardError(d.runs[a], d.runs[b]) {
			surprises = append(surprises, k.surprise(e, at, pair, d.y[a], d.y[b]))
		}
	}
	checked.Surprises = len(surprises)
	return checked, surprises, nil
}

// standardError is that of the difference of two means, 0 without replicates.
func standardError(a, b []float64) float64 {
	free := float64(len(a) + len(b) - 2)
	if free == 0 {
		return 0
	}
	pooled := (variance(a)*float64(len(a)) + variance(b)*float64(len(b))) / free
	return math.Sqrt(pooled * (1/float64(len(a)) + 1/float64(len(b))))
}

func (k *checker) surprise(e Expectation, factor int, pair [2]int, before, after float64) Surprise {
	s := Surprise{Expectation: e, From: k.point(factor, pair[0], before), To: k.point(factor, pair[1], after)}
	if before != 0 {
		if change := (after - before) / math.Abs(before); !math.IsInf(change, 0) {
			s.Change = &change
		}
	}
	var others []string
	for i := range k.cells.factors {
		if i != factor {
			f := &k.cells.factors[i]
			others = append(others, f.name+"="+f.texts[k.cells.level[pair[0]][i]])
		}
	}
	s.Others = strings.Join(others, " ")
	s.Reasons = compare.Reasons(k.table, s.From.Row, k.table, s.To.Row, e.Metric)
	return s
}

func (k *checker) point(factor, cell int, value float64) SurprisePoint {
	p := SurprisePoint{Axis: k.cells.factors[factor].texts[k.cells.level[cell][factor]], Value: value, Row: k.cells.rows[cell][0]}
	if id := k.table.Column("id"); id != nil {
		p.ID = id.Text(p.Row)
	}
	return p
}

// Text says in words what happened: "workers 4 → 8 lowered output_throughput_tok_s by 3 % (812 to 788) at policy=kv_router".
func (s *Surprise) Text() string {
	verb := "lowered"
	if s.To.Value > s.From.Value {
		verb = "raised"
	}
	by := ""
	if s.Change != nil {
		by = fmt.Sprintf(" by %.3g %%", 100*math.Abs(*s.Change))
	}
	text := fmt.Sprintf("%s %s → %s %s %s%s (%s to %s)", s.Axis, s.From.Axis, s.To.Axis, verb, s.Metric, by, digits(s.From.Value), digits(s.To.Value))
	if s.Others != "" {
		text += " at " + s.Others
	}
	return text
}

// digits shows four digits of a figure.
func digits(v float64) string { return results.FormatNumber(v, 4) }
