package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// The columns that [MarkFrontier] adds.
const (
	// FrontierColumn marks the rows that no other feasible row dominates.
	FrontierColumn = "on_frontier"
	// FeasibleColumn marks the rows that keep every constraint.
	FeasibleColumn = "feasible"
)

// Analysis says which rows of a table are the best.
type Analysis struct {
	// Objectives are what the frontier optimises.
	Objectives []Objective
	// Constraints say which rows are feasible.
	Constraints []Constraint
	// By names the columns whose every combination of values has a frontier of its own. They hold the traffic, since
	// configurations that served different traffic do not compare. Empty compares all rows.
	By []string
	FrontierOptions
}

// Analysis returns the analysis that the table's metadata asks for; without objectives it has the default ones.
func (t *Table) Analysis() Analysis {
	a := Analysis{Objectives: t.Metadata.Objectives, Constraints: t.Metadata.Constraints, By: t.Metadata.FrontierBy}
	if len(a.Objectives) == 0 {
		a.Objectives = DefaultObjectives()
	}
	return a
}

// MarkFrontier adds the boolean column on_frontier to the table and, when there are constraints, feasible, and, when there
// are replicates, within_noise_of_frontier, and notes in the metadata which analysis they follow. Only feasible rows can be on the frontier or dominate; a row without a
// value in an objective never is. Replicates of one configuration count once, with the mean of their figures, and
// share their marks. The error lists every unknown column.
func MarkFrontier(t *Table, a Analysis) error {
	t.takeForMetrics(a)
	c := t.Candidates()
	if err := c.Check(a); err != nil {
		return err
	}
	feasible, on, err := a.mark(c)
	if err != nil {
		return err
	}
	var near []bool
	if c.Replicated() {
		if near, err = c.withinNoise(t, a, feasible, on); err != nil {
			return err
		}
	}
	t.deleteColumns(FeasibleColumn, FrontierColumn, NoiseColumn)
	if len(a.Constraints) > 0 {
		t.Add(MarkColumn(FeasibleColumn, c.spread(feasible)))
	}
	t.Add(MarkColumn(FrontierColumn, c.spread(on)))
	if near != nil {
		t.Add(MarkColumn(NoiseColumn, c.spread(near)))
	}
	t.Metadata.Objectives, t.Metadata.Constraints, t.Metadata.FrontierBy = a.Objectives, a.Constraints, a.By
	return nil
}

// Check refuses an analysis that tells replicates of one configuration apart.
func (c *Candidates) Check(a Analysis) error {
	bounds := slices.ContainsFunc(a.Constraints, func(b Constraint) bool { return b.Column == replicateColumn })
	if c.Replicated() && (bounds || slices.Contains(a.By, replicateColumn)) {
		return fmt.Errorf("column %s neither bounds nor splits a frontier: replicates of a configuration count together, with their mean", replicateColumn)
	}
	return nil
}

// mark computes both marks of the candidates. Only those that were simulated to their end can be on the frontier, whatever
// figures a file has for the others.
func (a Analysis) mark(c *Candidates) (feasible, on []bool, err error) {
	t := c.Table
	feasible, err = Feasible(t, a.Constraints)
	problems := []error{err}
	groups, err := t.Groups(a.By)
	problems = append(problems, err)
	values := make([][]float64, len(a.Objectives))
	for i, o := range a.Objectives {
		values[i], err = t.objective(o)
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, nil, err
	}
	ended := c.okMarks()
	for _, v := range values {
		for row, ok := range feasible {
			if !ok || !ended[row] {
				v[row] = math.NaN()
			}
		}
	}
	if len(groups) == 0 { // an empty table has no groups, but the analysis must make sense all the same
		_, err := Frontier(a.Objectives, values, a.FrontierOptions)
		return feasible, []bool{}, err
	}
	on = make([]bool, t.Rows())
	for _, rows := range groups {
		own := make([][]float64, len(values))
		for i, v := range values {
			own[i] = pick(v, rows)
		}
		marks, err := Frontier(a.Objectives, own, a.FrontierOptions)
		if err != nil {
			return nil, nil, err
		}
		for i, row := range rows {
			on[row] = marks[i]
		}
	}
	return feasible, on, nil
}

// Groups splits the rows by the values of some columns, in order of first appearance. Without columns all rows are
// one group. The error lists every unknown column.
func (t *Table) Groups(by []string) ([][]int, error) {
	columns := make([]*Column, len(by))
	var problems []error
	for i, name := range by {
		var err error
		if columns[i], err = t.Lookup(name); err != nil {
			problems = append(problems, fmt.Errorf("frontier by %s: %w", name, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return groupRows(t.Rows(), columns), nil
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

// takeForMetrics corrects the guessed roles of a file that states none: what is optimised or bounded was measured.
func (t *Table) takeForMetrics(a Analysis) {
	if !t.GuessedRoles {
		return
	}
	for _, c := range t.Columns {
		optimised := slices.ContainsFunc(a.Objectives, func(o Objective) bool { return o.Name == c.Name })
		bounded := slices.ContainsFunc(a.Constraints, func(b Constraint) bool { return b.Column == c.Name })
		if c.Role == RoleAxis && c.Numeric() && (optimised || bounded) {
			c.Role = RoleMetric
		}
	}
}
