package results

import (
	"math"
	"strconv"
	"strings"
)

// Miss is a constraint that a row does not keep.
type Miss struct {
	Constraint Constraint
	// Value is what the row has instead.
	Value float64
}

// String formats the miss as "p99_ttft_ms 6114 > 1000".
func (m Miss) String() string {
	negated := map[string]string{"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}[m.Constraint.Operator]
	bound := m.Constraint.boundText()
	digits := 0
	for size := math.Abs(m.Value); size < 1000 && digits < 4 && m.Value != math.Trunc(m.Value); size *= 10 {
		digits++
	}
	value := strconv.FormatFloat(m.Value, 'f', digits, 64)
	if v, err := strconv.ParseFloat(value, 64); err == nil && compareFloats(m.Constraint.Operator, v, m.Constraint.size()) {
		value = strconv.FormatFloat(m.Value, 'g', -1, 64) // rounded it would keep the bound
	}
	return m.Constraint.Column + " " + value + " " + negated + " " + bound
}

// size is the bound as a number, and NaN for other bounds.
func (c Constraint) size() float64 { return c.Bound.Float64() }

// excess says by how much the value misses the bound, as a share of the bound.
func (m Miss) excess() float64 {
	bound := m.Constraint.size()
	return math.Abs(m.Value-bound) / max(math.Abs(bound), 1e-9)
}

// JoinMisses joins misses by "and".
func JoinMisses(misses []Miss) string {
	parts := make([]string, len(misses))
	for i, m := range misses {
		parts[i] = m.String()
	}
	return strings.Join(parts, " and ")
}

// Closest returns, of rows that all miss some constraint, the one whose largest miss is the smallest in proportion to
// its bound, and what it misses. Rows without a value in an objective do not count, nor do those that miss a bound
// that is no number; the misses are nil when no row is left.
func (a Analysis) Closest(t *Table, rows []int) (row int, misses []Miss) {
	best := math.Inf(1)
	for _, r := range rows {
		found, worst := a.misses(t, r)
		if worst < best {
			row, misses, best = r, found, worst
		}
	}
	return row, misses
}

// misses lists the numeric bounds that a row misses and its largest excess, which is infinite for a row that does not
// count.
func (a Analysis) misses(t *Table, row int) (found []Miss, worst float64) {
	for _, o := range a.Objectives {
		if c := t.Column(o.Name); c == nil || c.Null[row] {
			return nil, math.Inf(1)
		}
	}
	for _, b := range a.Constraints {
		c := t.Column(b.Column)
		if c == nil {
			return nil, math.Inf(1)
		}
		holds, err := b.predicate(c)
		switch {
		case err != nil || c.Null[row]:
			return nil, math.Inf(1)
		case holds(row):
			continue
		case !c.Numeric():
			return nil, math.Inf(1)
		}
		m := Miss{Constraint: b, Value: c.number(row)}
		found, worst = append(found, m), max(worst, m.excess())
	}
	return found, worst
}
