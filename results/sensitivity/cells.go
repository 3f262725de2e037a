package sensitivity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/results"
)

// cells are the points of a table, those with equal axes together, ordered by their levels: the order of the rows in the
// file then changes nothing, not even the last digit.
type cells struct {
	factors []factor
	// rows of the table, and place along each factor, by cell.
	rows  [][]int
	level [][]int
}

// factor is one axis, or several that move together.
type factor struct {
	name    string
	columns []*results.Column
	// ordered tells numbers from names.
	ordered bool
	// texts name the levels, in their order.
	texts []string
	// level of each row; -1 for rows that do not count.
	level []int
}

// newCells groups the rows that count by the axes.
func newCells(t *results.Table, rows []int, axes []*results.Column) (*cells, error) {
	c := &cells{}
	for _, axis := range axes {
		if f := newFactor(axis, rows); len(f.texts) > 1 {
			c.factors = append(c.factors, f)
		}
	}
	if len(c.factors) == 0 {
		return nil, errors.New("no axis has several values among the points that succeeded; there is nothing to compare")
	}
	c.mergeTwins(rows)
	place := map[string]int{}
	for _, row := range rows {
		levels := make([]int, len(c.factors))
		for i := range c.factors {
			levels[i] = c.factors[i].level[row]
		}
		key := fmt.Sprint(levels)
		at, known := place[key]
		if !known {
			at = len(c.rows)
			place[key] = at
			c.rows, c.level = append(c.rows, nil), append(c.level, levels)
		}
		c.rows[at] = append(c.rows[at], row)
	}
	c.sort()
	return c, nil
}

func (c *cells) sort() {
	order := c.all()
	slices.SortFunc(order, func(a, b int) int { return slices.Compare(c.level[a], c.level[b]) })
	rows, level := make([][]int, len(order)), make([][]int, len(order))
	for i, from := range order {
		rows[i], level[i] = c.rows[from], c.level[from]
	}
	c.rows, c.level = rows, level
}

// newFactor lays the values of a column out in order: numbers by size, names by the alphabet. A missing value is a level
// too, and takes the order from the numbers beside it.
func newFactor(axis *results.Column, rows []int) factor {
	f := factor{name: axis.Name, columns: []*results.Column{axis}, level: make([]int, axis.Len())}
	f.ordered = axis.Numeric()
	type value struct {
		text string
		size float64
	}
	numbers, err := axis.Float64s()
	if err != nil {
		numbers = make([]float64, axis.Len())
	}
	seen := map[string]bool{}
	var values []value
	for _, row := range rows {
		f.ordered = f.ordered && !axis.Null[row]
		v := value{text: levelText(axis, row), size: numbers[row]}
		if axis.Null[row] {
			v.size = math.Inf(-1)
		}
		if !seen[v.text] {
			seen[v.text] = true
			values = append(values, v)
		}
	}
	slices.SortFunc(values, func(a, b value) int { return cmp.Or(cmp.Compare(a.size, b.size), strings.Compare(a.text, b.text)) })
	place := map[string]int{}
	for i, v := range values {
		place[v.text] = i
		f.texts = append(f.texts, v.text)
	}
	for i := range f.level {
		f.level[i] = -1
	}
	for _, row := range rows {
		f.level[row] = place[levelText(axis, row)]
	}
	return f
}

// levelText names a value; a missing one looks like no other.
func levelText(c *results.Column, row int) string {
	if c.Null[row] {
		return "(none)"
	}
	return c.Text(row)
}

// mergeTwins joins axes of which each tells the other, such as those that a spec zips: no analysis can part them.
func (c *cells) mergeTwins(rows []int) {
	var kept []factor
	for _, g := range c.factors {
		at := slices.IndexFunc(kept, func(f factor) bool { return twins(&f, &g, rows) })
		if at < 0 {
			kept = append(kept, g)
			continue
		}
		f := &kept[at]
		f.name += "+" + g.name
		f.columns = append(f.columns, g.columns...)
		for level, text := range f.texts {
			f.texts[level] = text + "+" + g.texts[g.level[rowAt(f, rows, level)]]
		}
	}
	c.factors = kept
}

// rowAt is a row that has a level of a factor.
func rowAt(f *factor, rows []int, level int) int {
	return rows[slices.IndexFunc(rows, func(row int) bool { return f.level[row] == level })]
}

// twins reports whether the levels of two factors correspond one to one. Where no value repeats, as in a random sample,
// any two columns would; then their order must agree as well.
func twins(f, g *factor, rows []int) bool {
	if len(f.texts) != len(g.texts) {
		return false
	}
	other := make([]int, len(f.texts))
	for i := range other {
		other[i] = -1
	}
	for _, row := range rows {
		switch at := &other[f.level[row]]; *at {
		case -1:
			*at = g.level[row]
		case g.level[row]:
		default:
			return false
		}
	}
	sorted := slices.Clone(other)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(other) {
		return false
	}
	if 2*len(f.texts) <= len(rows) || !f.ordered || !g.ordered {
		return true
	}
	rising := slices.IsSorted(other)
	slices.Reverse(other)
	return rising || slices.IsSorted(other)
}

// design is the cells that have one metric, with its values.
type design struct {
	// cells are the places of its cells among all.
	cells []int
	// levels is the number of levels of each factor that occur, level the place among them by factor and cell.
	levels []int
	level  [][]int
	// names are the places of those levels in the factor's texts.
	names [][]int
	// y is the mean of each cell, runs its single values.
	y    []float64
	runs [][]float64
}

// all are the places of all cells.
func (c *cells) all() []int { return upTo(len(c.rows)) }

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// design picks the cells in which the metric is a number.
func (c *cells) design(values []float64) *design {
	d := &design{}
	var used [][]int
	for i := range c.rows {
		var runs []float64
		for _, row := range c.rows[i] {
			if v := values[row]; !math.IsNaN(v) && !math.IsInf(v, 0) {
				runs = append(runs, v)
			}
		}
		if len(runs) == 0 {
			continue
		}
		slices.Sort(runs) // so that the order of the rows does not decide the last digit
		d.cells, d.runs, d.y, used = append(d.cells, i), append(d.runs, runs), append(d.y, mean(runs)), append(used, c.level[i])
	}
	for f := range c.factors {
		present := make([]int, len(c.factors[f].texts))
		for _, levels := range used {
			present[levels[f]] = 1
		}
		var names []int
		for at := range present {
			if present[at] == 1 {
				present[at] = len(names)
				names = append(names, at)
			}
		}
		places := make([]int, len(used))
		for i, levels := range used {
			places[i] = present[levels[f]]
		}
		d.levels, d.names, d.level = append(d.levels, len(names)), append(d.names, names), append(d.level, places)
	}
	return d
}

// part is a design with some of the cells and the same levels.
func (d *design) part(cells []int) *design {
	out := &design{levels: d.levels, names: d.names}
	for _, at := range cells {
		out.cells, out.y, out.runs = append(out.cells, d.cells[at]), append(out.y, d.y[at]), append(out.runs, d.runs[at])
	}
	for _, level := range d.level {
		places := make([]int, len(cells))
		for i, at := range cells {
			places[i] = level[at]
		}
		out.level = append(out.level, places)
	}
	return out
}

// complete reports whether every combination of the levels is there.
func (d *design) complete() bool {
	n := 1
	for _, l := range d.levels {
		if n *= l; n > len(d.y) {
			return false
		}
	}
	return n == len(d.y)
}

// within is the mean variance of the runs within a cell, and noise what one run more would add: the unbiased variance.
func (d *design) within() (within, noise float64) {
	sum, free := 0.0, 0.0
	for _, runs := range d.runs {
		v := variance(runs)
		within += v / float64(len(d.runs))
		sum += v * float64(len(runs))
		free += float64(len(runs) - 1)
	}
	return within, sum / max(free, 1)
}

// repeated reports whether some cell has several runs.
func (d *design) repeated() bool {
	return slices.ContainsFunc(d.runs, func(runs []float64) bool { return len(runs) > 1 })
}

// mean adds differences from the first value, so that the mean of equal values is exactly that value.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v - values[0]
	}
	return values[0] + sum/float64(len(values))
}

// variance is that of the population.
func variance(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(values))
}
