package results

import (
	"errors"
	"fmt"
	"math"

	"github.com/servegrid/servegrid/gridspec"
)

// The columns that [MarkFrontier] adds.
const (
	// FrontierColumn marks the rows that no other feasible row dominates.
	FrontierColumn = "on_frontier"
	// FeasibleColumn marks the rows that keep every constraint.
	FeasibleColumn = "feasible"
)

// MarkFrontier adds the boolean column on_frontier to the table and, when there are constraints, feasible. Only
// feasible rows can be on the frontier or dominate; a row without a value in an objective never is. The error
// lists every unknown column of the objectives and constraints.
func MarkFrontier(t *Table, objectives []Objective, constraints []Constraint, opt FrontierOptions) error {
	feasible, err := Feasible(t, constraints)
	problems := []error{err}
	values := make([][]float64, len(objectives))
	for i, o := range objectives {
		values[i], err = t.objective(o)
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	for _, v := range values {
		for row, ok := range feasible {
			if !ok {
				v[row] = math.NaN()
			}
		}
	}
	on, err := Frontier(objectives, values, opt)
	if err != nil {
		return err
	}
	if len(constraints) > 0 {
		t.Add(boolColumn(FeasibleColumn, "Whether the point keeps every constraint.", feasible))
	}
	t.Add(boolColumn(FrontierColumn, "Whether no other feasible point is at least as good in every objective and better in one.", on))
	return nil
}

func (t *Table) objective(o Objective) ([]float64, error) {
	c, err := t.Lookup(o.Name)
	if err != nil {
		return nil, fmt.Errorf("objective %s: %w", o.Name, err)
	}
	values, err := c.Float64s()
	if err != nil {
		return nil, fmt.Errorf("objective %s: %w", o.Name, err)
	}
	return values, nil
}

func boolColumn(name, doc string, values []bool) *Column {
	c := NewColumn(name, gridspec.KindBool, len(values))
	c.Doc, c.Role = doc, RolePoint
	for i, v := range values {
		c.Set(i, gridspec.Value{Kind: gridspec.KindBool, Bool: v})
	}
	return c
}
