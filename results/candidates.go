package results

import (
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// replicateColumn numbers the repetitions of one configuration.
const replicateColumn = "replicate"

// Candidates are the configurations of a table. The rows that differ only in their replicate are one candidate.
type Candidates struct {
	// Table has one row a candidate: measured figures are the mean of its counted rows, all else is that of the first.
	// It is the table itself when nothing is replicated.
	Table *Table
	// Rows holds the rows of each candidate. Counted are those among them that are ok; all of them when none is. Where a
	// simulation was stopped because it could no longer keep the SLA, only such rows count: the mean of the others would
	// be one of the lucky ones.
	Rows, Counted [][]int
	// Of is the candidate of each row.
	Of []int
}

// Candidates finds the configurations of the table. Rows are replicates of one when all axes, settings, GPUs and the
// workload are equal, and where the figures come from. When two of them have the same replicate number the columns do not tell the configurations
// apart, and every row is taken for one.
func (t *Table) Candidates() *Candidates {
	replicate := t.Column(replicateColumn)
	if replicate == nil || replicate.constant() {
		return t.singles()
	}
	var key []*Column
	for _, c := range t.Columns {
		if c.Role == RoleAxis || c.Role == RoleDerived || c.Role == RoleConfig || c.Name == "workload" || c.Name == "gpus" || c.Name == SourceColumn {
			key = append(key, c)
		}
	}
	c := &Candidates{Rows: groupRows(t.Rows(), key), Of: make([]int, t.Rows())}
	for i, rows := range c.Rows {
		if repeated(replicate, rows) {
			return t.singles()
		}
		for _, row := range rows {
			c.Of[row] = i
		}
	}
	c.Counted = t.counted(c.Rows)
	c.Table = c.condense(t)
	return c
}

func (t *Table) singles() *Candidates {
	c := &Candidates{Table: t, Rows: make([][]int, t.Rows()), Of: make([]int, t.Rows())}
	for row := range c.Rows {
		c.Rows[row], c.Of[row] = []int{row}, row
	}
	c.Counted = c.Rows
	return c
}

// Replicated reports whether some candidate has more than one row.
func (c *Candidates) Replicated() bool { return len(c.Rows) < len(c.Of) }

// repeated reports whether two of the rows have the same value.
func repeated(c *Column, rows []int) bool {
	seen := map[gridspec.Value]bool{}
	for _, row := range rows {
		v, _ := c.Value(row)
		if seen[v] {
			return true
		}
		seen[v] = true
	}
	return false
}

func (t *Table) counted(groups [][]int) [][]int {
	status := t.Column("status")
	if status == nil || status.Kind != gridspec.KindString {
		return groups
	}
	out := make([][]int, len(groups))
	for i, rows := range groups {
		of := func(s Status) (found []int) {
			for _, row := range rows {
				if status.Strings[row] == string(s) {
					found = append(found, row)
				}
			}
			return found
		}
		if out[i] = of(StatusStopped); out[i] == nil {
			out[i] = of(StatusOK)
		}
		if out[i] == nil {
			out[i] = rows
		}
	}
	return out
}

func (c *Candidates) condense(t *Table) *Table {
	first := make([]int, len(c.Rows))
	for i, rows := range c.Counted {
		first[i] = rows[0]
	}
	out := t.Select(first)
	for i, column := range t.Columns {
		if column.Role == RoleMetric && column.Numeric() || column.Kind == gridspec.KindFloat {
			out.Columns[i] = c.mean(column)
		}
	}
	return out
}

// mean returns the column with one value a candidate.
func (c *Candidates) mean(column *Column) *Column {
	out := NewColumn(column.Name, gridspec.KindFloat, len(c.Rows))
	out.Unit, out.Doc, out.Role, out.Path = column.Unit, column.Doc, column.Role, column.Path
	values, err := column.Float64s()
	if err != nil {
		return out
	}
	for i, rows := range c.Counted {
		out.Set(i, float(meanOf(values, rows)))
	}
	return out
}

// meanOf adds differences from the first value, so that the mean of equal values is exactly that value.
func meanOf(values []float64, rows []int) float64 {
	first, sum, n := math.NaN(), 0.0, 0.0
	for _, row := range rows {
		v := values[row]
		switch {
		case math.IsNaN(v):
			continue
		case n == 0:
			first = v
		default:
			sum += v - first
		}
		n++
	}
	return first + sum/max(n, 1)
}

// spread gives every row the mark of its candidate.
func (c *Candidates) spread(marks []bool) []bool { return pick(marks, c.Of) }

// groupRows splits n rows by the values of columns, in order of first appearance.
func groupRows(n int, columns []*Column) [][]int {
	var groups [][]int
	place := map[string]int{}
	var key strings.Builder
	for row := range n {
		key.Reset()
		for _, c := range columns {
			if !c.Null[row] {
				key.WriteString(c.Text(row))
				key.WriteByte(1)
			}
			key.WriteByte(0)
		}
		at, known := place[key.String()]
		if !known {
			at = len(groups)
			place[key.String()] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], row)
	}
	return groups
}

// pick returns the values at some places.
func pick[T any](values []T, places []int) []T {
	if values == nil {
		return nil
	}
	out := make([]T, len(places))
	for i, at := range places {
		out[i] = values[at]
	}
	return out
}

// Select returns a table of some of the rows, in the order given.
func (t *Table) Select(rows []int) *Table {
	out := *t
	out.Columns = make([]*Column, len(t.Columns))
	for i, c := range t.Columns {
		selected := *c
		selected.Null = pick(c.Null, rows)
		selected.Strings, selected.Ints = pick(c.Strings, rows), pick(c.Ints, rows)
		selected.Floats, selected.Bools = pick(c.Floats, rows), pick(c.Bools, rows)
		out.Columns[i] = &selected
	}
	return &out
}

// deleteColumns removes columns by name.
func (t *Table) deleteColumns(names ...string) {
	t.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c *Column) bool { return slices.Contains(names, c.Name) })
}
