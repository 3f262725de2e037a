package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Role says what a column is about.
type Role string

// The roles of columns.
const (
	// RolePoint columns identify a point and say how it ended.
	RolePoint Role = "point"
	// RoleAxis columns hold what the sweep varied.
	RoleAxis Role = "axis"
	// RoleDerived columns hold what the spec computes from the axes.
	RoleDerived Role = "derived"
	// RoleConfig columns hold resolved settings that differ between points without being an axis.
	RoleConfig Role = "config"
	// RoleMetric columns hold what the simulation measured.
	RoleMetric Role = "metric"
)

// Column is one typed column of a [Table]. Of the four value slices only the one that Kind names is set; it has
// one entry a row, which is the zero value where Null is true.
type Column struct {
	// Name is unique in the table.
	Name string
	// Unit is the unit of the values, such as "ms"; it is empty when they have none.
	Unit string
	// Doc says what the column means.
	Doc string
	// Role says what the column is about.
	Role Role
	// Path is the spec's key of an axis, such as "load.speedup"; it is empty for other columns and in files that do not say it.
	Path string
	// Kind is the type of the values.
	Kind gridspec.Kind
	// Null marks the rows without a value.
	Null []bool

	Strings []string
	Ints    []int64
	Floats  []float64
	Bools   []bool
}

// NewColumn returns a column of n nulls.
func NewColumn(name string, kind gridspec.Kind, n int) *Column {
	c := &Column{Name: name, Kind: kind, Null: make([]bool, n)}
	for i := range c.Null {
		c.Null[i] = true
	}
	switch kind {
	case gridspec.KindString:
		c.Strings = make([]string, n)
	case gridspec.KindInt:
		c.Ints = make([]int64, n)
	case gridspec.KindFloat:
		c.Floats = make([]float64, n)
	case gridspec.KindBool:
		c.Bools = make([]bool, n)
	}
	return c
}

// Len is the number of rows.
func (c *Column) Len() int { return len(c.Null) }

// Set stores a value, converted to the column's kind: an int becomes a float, anything becomes a string. A value
// that does not fit leaves the row null.
func (c *Column) Set(row int, v gridspec.Value) {
	switch {
	case c.Kind == gridspec.KindString:
		c.Strings[row] = formatValue(v)
	case c.Kind == gridspec.KindInt && v.Kind == gridspec.KindInt:
		c.Ints[row] = v.Int
	case c.Kind == gridspec.KindBool && v.Kind == gridspec.KindBool:
		c.Bools[row] = v.Bool
	case c.Kind == gridspec.KindFloat && v.Kind == gridspec.KindInt:
		c.Floats[row] = float64(v.Int)
	case c.Kind == gridspec.KindFloat && v.Kind == gridspec.KindFloat && !math.IsNaN(v.Float):
		c.Floats[row] = v.Float
	default:
		return
	}
	c.Null[row] = false
}

// grow makes room for n more rows.
func (c *Column) grow(n int) {
	c.Null = slices.Grow(c.Null, n)
	switch c.Kind {
	case gridspec.KindString:
		c.Strings = slices.Grow(c.Strings, n)
	case gridspec.KindInt:
		c.Ints = slices.Grow(c.Ints, n)
	case gridspec.KindFloat:
		c.Floats = slices.Grow(c.Floats, n)
	case gridspec.KindBool:
		c.Bools = slices.Grow(c.Bools, n)
	}
}

// appendNull adds a row without a value.
func (c *Column) appendNull() {
	c.Null = append(c.Null, true)
	switch c.Kind {
	case gridspec.KindString:
		c.Strings = append(c.Strings, "")
	case gridspec.KindInt:
		c.Ints = append(c.Ints, 0)
	case gridspec.KindFloat:
		c.Floats = append(c.Floats, 0)
	case gridspec.KindBool:
		c.Bools = append(c.Bools, false)
	}
}

// Value returns the value of a row, and false when it is null.
func (c *Column) Value(row int) (gridspec.Value, bool) {
	if c.Null[row] {
		return gridspec.Value{}, false
	}
	v := gridspec.Value{Kind: c.Kind}
	switch c.Kind {
	case gridspec.KindString:
		v.Str = c.Strings[row]
	case gridspec.KindInt:
		v.Int = c.Ints[row]
	case gridspec.KindFloat:
		v.Float = c.Floats[row]
	case gridspec.KindBool:
		v.Bool = c.Bools[row]
	}
	return v, true
}

// Text formats the value of a row so that it reads back as the same value; a null is empty.
func (c *Column) Text(row int) string {
	v, ok := c.Value(row)
	if !ok {
		return ""
	}
	return formatValue(v)
}

// Float64s returns the values as numbers, with NaN for nulls, 0 and 1 for booleans. A string column is an error,
// which names the first value that is no number.
func (c *Column) Float64s() ([]float64, error) {
	if c.Kind == gridspec.KindString {
		for row, s := range c.Strings {
			if _, number := parseFloat(s); !number && !c.Null[row] {
				return nil, fmt.Errorf("column %s holds text, such as %q in row %d; numbers are needed", c.Name, s, row+1)
			}
		}
		if c.allNull() {
			return nil, fmt.Errorf("column %s is empty; numbers are needed", c.Name)
		}
		return nil, fmt.Errorf("column %s holds text; numbers are needed", c.Name)
	}
	out := make([]float64, c.Len())
	for i := range out {
		out[i] = c.number(i)
	}
	return out, nil
}

// number is the value of a row that is no string, NaN for a null.
func (c *Column) number(row int) float64 {
	switch {
	case c.Null[row]:
		return math.NaN()
	case c.Kind == gridspec.KindInt:
		return float64(c.Ints[row])
	case c.Kind == gridspec.KindFloat:
		return c.Floats[row]
	case c.Bools[row]:
		return 1
	}
	return 0
}

// Numeric reports whether the column holds integers or reals.
func (c *Column) Numeric() bool { return c.Kind.Numeric() }

// constant reports whether all rows are equal, nulls included.
func (c *Column) constant() bool {
	for i := 1; i < c.Len(); i++ {
		a, okA := c.Value(0)
		b, okB := c.Value(i)
		if okA != okB || a != b {
			return false
		}
	}
	return true
}

// allNull reports whether no row has a value.
func (c *Column) allNull() bool {
	for _, null := range c.Null {
		if !null {
			return false
		}
	}
	return true
}

func formatValue(v gridspec.Value) string {
	switch v.Kind {
	case gridspec.KindInt:
		return strconv.FormatInt(v.Int, 10)
	case gridspec.KindFloat:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	case gridspec.KindBool:
		return strconv.FormatBool(v.Bool)
	}
	return v.Str
}

// Table is a set of equally long columns, in the order in which files show them.
type Table struct {
	Columns []*Column
	// Metadata is what the file says about the whole sweep; it is empty for files that servegrid did not write.
	Metadata Metadata
	// Notes says what a reader left out and why.
	Notes []string
	// GuessedRoles is set when the file states no roles, so that they follow from names and values.
	GuessedRoles bool
}

// Rows is the number of rows.
func (t *Table) Rows() int {
	if len(t.Columns) == 0 {
		return 0
	}
	return t.Columns[0].Len()
}

// Column returns the column of that name, or nil.
func (t *Table) Column(name string) *Column {
	for _, c := range t.Columns {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// columnOf is the column of that name. Where no column has the name, the key of a spec names its axis or setting:
// load.speedup, or load_speedup, is the column speedup.
func (t *Table) columnOf(name string) *Column {
	if c := t.Column(name); c != nil {
		return c
	}
	flat := flatName(name)
	for _, c := range t.Columns {
		if c.Path != "" && flatName(c.Path) == flat || flat != name && c.Name == flat {
			return c
		}
	}
	return nil
}

// ColumnName returns the name of the column that [Table.Lookup] finds, and the name itself when it finds none.
func (t *Table) ColumnName(name string) string {
	if c := t.columnOf(name); c != nil {
		return c.Name
	}
	return name
}

// Lookup returns the column of that name, or of that key of a spec; the error of an unknown one names the nearest ones.
func (t *Table) Lookup(name string) (*Column, error) {
	if c := t.columnOf(name); c != nil {
		return c, nil
	}
	return nil, unknownColumn(name, t.names())
}

// Add appends a column, or replaces the one of the same name in its place.
func (t *Table) Add(c *Column) {
	for i, old := range t.Columns {
		if old.Name == c.Name {
			t.Columns[i] = c
			return
		}
	}
	t.Columns = append(t.Columns, c)
}

func (t *Table) names() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// mostNamed bounds how many columns an error lists.
const mostNamed = 5

// unknownColumn is the error for a column that does not exist. It names the nearest known ones.
func unknownColumn(name string, known []string) error {
	if len(known) == 0 {
		return fmt.Errorf("unknown column %q: the table has no columns", name)
	}
	hint := ";"
	if n := problem.Nearest(name, known); n != "" {
		hint = "; did you mean " + joinNames([]string{n}) + "?"
	}
	if len(known) > mostNamed {
		near := problem.Closest(name, known, mostNamed)
		return fmt.Errorf("unknown column %q%s the nearest of %d columns: %s", gridspec.Excerpt(name), hint, len(known), joinNames(near))
	}
	return fmt.Errorf("unknown column %q%s known columns: %s", gridspec.Excerpt(name), hint, joinNames(known))
}

// joinNames lists names in one line, each as far as an error repeats it. Files of others may have any names.
func joinNames(names []string) string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = gridspec.Excerpt(strings.ReplaceAll(name, "\n", `\n`))
	}
	return strings.Join(short, ", ")
}
