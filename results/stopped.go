package results

import (
	"fmt"
	"slices"

	"github.com/servegrid/servegrid/simcore"
)

// undecided lists the candidates whose simulation was stopped for a bound that says nothing about these constraints, such
// as one of a stricter SLA: whether they keep them nobody knows. What breaks a constraint on a column that has a value all
// the same, such as an axis, is decided.
func (c *Candidates) undecided(constraints []Constraint) []int {
	return slices.DeleteFunc(c.withStatus(StatusStopped), func(row int) bool {
		return c.Table.loses(row, constraints) || c.Table.breaks(row, constraints)
	})
}

// loses reports whether the bound that a stopped row lost is at least as wide as one of the constraints, so that this is
// lost too. The row's error names the bound; a file without it means those of its metadata, and one without either the
// constraints asked for.
func (t *Table) loses(row int, constraints []Constraint) bool {
	if message := t.Column("error"); message != nil {
		if lost, ok := simcore.LostBound(message.Text(row)); ok {
			return slices.ContainsFunc(constraints, func(c Constraint) bool { return c.within(lost.Metric, lost.Limit) })
		}
	}
	for _, known := range t.Metadata.Constraints {
		if !slices.ContainsFunc(constraints, func(c Constraint) bool { return c.within(known.Column, known.size()) }) {
			return false
		}
	}
	return true
}

// within reports whether a value beyond an upper limit of a column breaks the constraint.
func (c Constraint) within(column string, limit float64) bool {
	return c.Column == column && (c.Operator == "<=" || c.Operator == "<") && c.size() <= limit
}

// breaks reports whether a row has a value that does not keep one of the constraints.
func (t *Table) breaks(row int, constraints []Constraint) bool {
	return slices.ContainsFunc(constraints, func(c Constraint) bool {
		column := t.Column(c.Column)
		if column == nil || column.Null[row] {
			return false
		}
		holds, err := c.predicate(column)
		return err == nil && !holds(row)
	})
}

// stops says how many candidates are left out because they were stopped, and how to run them to their end.
func (c *Candidates) stops(constraints []Constraint) string {
	n := len(c.undecided(constraints))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("Stopped under a stricter SLA than is asked for here, and so left out, though they may keep it: %s. "+
		"To know, sweep again with this SLA, or, unless it is a saturation search, with --set execution.stop_when_sla_lost=false.", points(n))
}

// WiderLimits says what a comparison with wider limits than these lacks: the figures of the candidates that were stopped. It
// is empty where there are none, or [Candidates.Cautions] speaks of them already.
func (c *Candidates) WiderLimits(constraints []Constraint) string {
	n := len(c.withStatus(StatusStopped))
	if n == 0 || len(c.undecided(constraints)) > 0 {
		return ""
	}
	return fmt.Sprintf("Stopped as soon as they lost the SLA, and so without figures: %s. What wider limits would allow there is not known.", points(n))
}
