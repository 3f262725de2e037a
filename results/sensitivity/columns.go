package sensitivity

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// everyMetric asks for all that was measured.
const everyMetric = "all"

// mostMetrics bounds the metrics of a file that names none that we know.
const mostMetrics = 12

// columns are what an analysis reads.
type columns struct {
	axes, metrics []*results.Column
	// rows are those of points that succeeded.
	rows     []int
	cautions []string
}

func chooseColumns(t *results.Table, metrics, axes []string) (*columns, error) {
	c := &columns{cautions: []string{}}
	c.rows, c.cautions = succeeded(t)
	if len(c.rows) == 0 {
		return nil, errors.New("no point succeeded; there is nothing to compare")
	}
	var problems [2]error
	c.axes, problems[0] = chooseAxes(t, axes, metrics)
	c.metrics, problems[1] = c.chooseMetrics(t, metrics)
	return c, errors.Join(problems[:]...)
}

// succeeded lists the rows of points that succeeded; those of a file without a status all did.
func succeeded(t *results.Table) (rows []int, cautions []string) {
	status := t.Column("status")
	for row := range t.Rows() {
		if status == nil || status.Text(row) == string(results.StatusOK) {
			rows = append(rows, row)
		}
	}
	cautions = []string{}
	if left := t.Rows() - len(rows); left > 0 {
		cautions = append(cautions, fmt.Sprintf("%d of %d points did not succeed and are left out.", left, t.Rows()))
	}
	return rows, cautions
}

// chooseAxes are those named, else all axes, else what else tells points apart. A column that is asked for as a metric is none;
// one with the name of a known axis is one, where a file does not say.
func chooseAxes(t *results.Table, names, metrics []string) ([]*results.Column, error) {
	if len(names) > 0 {
		return lookUp(t, "axis", names)
	}
	for _, role := range []results.Role{results.RoleAxis, results.RoleConfig} {
		var out []*results.Column
		for _, c := range t.Columns {
			is := c.Role == role || t.GuessedRoles && len(builtInFor(c.Name)) > 0
			if is && !slices.Contains(metrics, c.Name) {
				out = append(out, c)
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, errors.New("the file has no axes; name the columns that were varied with --axis")
}

func (c *columns) chooseMetrics(t *results.Table, names []string) ([]*results.Column, error) {
	everything := slices.Equal(names, []string{everyMetric})
	if len(names) > 0 && !everything {
		return lookUp(t, "metric", names)
	}
	var out []*results.Column
	if !everything {
		for _, name := range t.UsualMetrics() {
			out = c.add(out, t.Column(name))
		}
	}
	if len(out) == 0 {
		for _, column := range t.Columns {
			if column.Role == results.RoleMetric && (everything || len(out) < mostMetrics) {
				out = c.add(out, column)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the file has no figures that vary; name some with --metric")
	}
	return out, nil
}

// add appends a column of numbers that vary, unless it is an axis or there already.
func (c *columns) add(to []*results.Column, column *results.Column) []*results.Column {
	if column == nil || slices.Contains(to, column) || slices.Contains(c.axes, column) || column.Kind == gridspec.KindString {
		return to
	}
	first := ""
	for _, row := range c.rows {
		text := column.Text(row)
		if text == "" {
			continue
		}
		if first != "" && text != first {
			return append(to, column)
		}
		first = text
	}
	return to
}

func lookUp(t *results.Table, what string, names []string) ([]*results.Column, error) {
	var out []*results.Column
	var problems []error
	for _, name := range names {
		column, err := t.Lookup(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %s: %w", what, gridspec.Excerpt(name), err))
		} else if !slices.Contains(out, column) {
			out = append(out, column)
		}
	}
	return out, errors.Join(problems...)
}

func joinColumns(columns []*results.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = gridspec.Excerpt(c.Name)
	}
	return strings.Join(names, ", ")
}

// Bounds of the cautions.
const (
	// wide is the ratio from which a few points make up the variance of a metric.
	wide = 1000
	// poor is the share from which on a model explains enough.
	poor = 0.8
)

// cautions are what to know before trusting an analysis.
func (a *analyst) cautions(metrics []Metric) []string {
	var out, spread, unexplained []string
	methods := map[string]bool{}
	for _, m := range metrics {
		methods[m.Method] = true
		if m.Explained < poor {
			unexplained = append(unexplained, fmt.Sprintf("%s %s", m.Name, results.WholePercent(m.Explained)))
		}
		if !m.Log && m.Lowest > 0 && m.Highest > wide*m.Lowest {
			spread = append(spread, m.Name)
		}
	}
	if methods[MethodFilled] {
		out = append(out, fmt.Sprintf("Not every combination of the axes has a value (%d of %s): a model fills the gaps.", len(a.cells.rows), a.combinations()))
	}
	if methods[MethodFitted] {
		out = append(out, "The points are a sample, so all shares are those of a model fitted to it.")
	}
	if bound := a.bound(); bound != "" {
		out = append(out, bound)
	}
	if len(unexplained) > 0 {
		out = append(out, fmt.Sprintf("Only a part of the variance is accounted for: %s. The rest is of no axis: jumps, interactions of three and more, noise.", strings.Join(unexplained, ", ")))
	}
	if len(spread) > 0 {
		out = append(out, fmt.Sprintf("A few points make up most of the variance of %s, which spans more than three decades; --log compares ratios instead.", strings.Join(spread, ", ")))
	}
	return out
}

// combinations is how many there are.
func (a *analyst) combinations() string {
	n := 1.0
	for i := range a.cells.factors {
		n *= float64(len(a.cells.factors[i].texts))
	}
	if n < 1e15 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.0e", n)
}

// bound names the pairs of axes with few values of which some never occur together: their shares reach beyond the points.
func (a *analyst) bound() string {
	var pairs []string
	for i := range a.cells.factors {
		for j := i + 1; j < len(a.cells.factors); j++ {
			f, g := &a.cells.factors[i], &a.cells.factors[j]
			if max(len(f.texts), len(g.texts)) > mostUniformLevels {
				continue
			}
			seen := map[[2]int]bool{}
			for _, level := range a.cells.level {
				seen[[2]int{level[i], level[j]}] = true
			}
			all := len(f.texts) * len(g.texts)
			if expected := float64(all) * (1 - math.Exp(-float64(len(a.cells.rows))/float64(all))); float64(len(seen)) < 0.9*expected {
				pairs = append(pairs, fmt.Sprintf("%s and %s (%d of %d pairs of values)", f.name, g.name, len(seen), all))
			}
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	return "Some axes do not vary freely, and what they do cannot be told apart well: " + strings.Join(pairs, ", ") + "."
}
