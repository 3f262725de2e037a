package results

import (
	"errors"
	"fmt"
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// mostValues bounds how many values of a column an error lists.
const mostValues = 12

// Bind returns the constraints as the table has them: the name of a column where a key of the spec stands, the ID of a
// GPU for any of its names, and each constraint once. The error lists every setting that is compared with a text that no
// row has, with the values that there are: such a constraint chooses nothing or everything.
func (t *Table) Bind(constraints []Constraint) ([]Constraint, error) {
	var out []Constraint
	var problems []error
	said := map[string]bool{}
	for _, c := range constraints {
		c.Column = t.ColumnName(c.Column)
		if column := t.Column(c.Column); column != nil && column.setting() {
			if err := c.bindText(column); err != nil {
				problems = append(problems, err)
			}
		}
		if text := c.String(); !said[text] {
			said[text] = true
			out = append(out, c)
		}
	}
	return out, errors.Join(problems...)
}

// setting reports whether the column holds what was chosen rather than what came out.
func (c *Column) setting() bool {
	return c.Role == RoleAxis || c.Role == RoleDerived || c.Role == RoleConfig
}

// bindText makes the bound one of the texts of the column, where it has any.
func (c *Constraint) bindText(column *Column) error {
	compared := c.Operator == "==" || c.Operator == "!="
	if !compared || column.Kind != gridspec.KindString || c.Bound.Kind != gridspec.KindString || column.allNull() {
		return nil
	}
	if column.hasText(c.Bound.Str) {
		return nil
	}
	if gpu, err := catalogue.FindGPU(c.Bound.Str); err == nil && column.hasText(gpu.ID) {
		c.Bound.Str = gpu.ID
		return nil
	}
	var values []string
	for row, s := range column.Strings {
		if !column.Null[row] && !slices.Contains(values, s) {
			values = append(values, s)
		}
	}
	more := ""
	if n := len(values) - mostValues; n > 0 {
		values, more = values[:mostValues], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("constraint %s: no row has this value of %s; there are: %s%s", *c, c.Column, joinNames(values), more)
}

// hasText reports whether some row has the text.
func (c *Column) hasText(text string) bool {
	for row, s := range c.Strings {
		if s == text && !c.Null[row] {
			return true
		}
	}
	return false
}
