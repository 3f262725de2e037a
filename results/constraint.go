package results

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
)

// Constraint is a bound on one column, such as p99_ttft_ms <= 1500 or status == "ok".
type Constraint struct {
	// Column is the name of the bounded column.
	Column string
	// Operator is one of <, <=, >, >=, == and !=.
	Operator string
	// Bound is the number, string or boolean on the right.
	Bound gridspec.Value
}

// String formats the constraint as users write it.
func (c Constraint) String() string {
	name, bound := c.Column, c.boundText()
	if !plainName(name) {
		name = "`" + name + "`"
	}
	if c.Bound.Kind == gridspec.KindString {
		bound = strconv.Quote(bound)
	}
	return name + " " + c.Operator + " " + bound
}

// boundText writes the bound out in full: a number has no exponent unless it is very large or small.
func (c Constraint) boundText() string {
	v := c.Bound.Float
	if size := math.Abs(v); c.Bound.Kind == gridspec.KindFloat && size >= 1e-6 && size < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return formatValue(c.Bound)
}

// MarshalText formats the constraint as String does.
func (c Constraint) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads one constraint as [ParseConstraints] does.
func (c *Constraint) UnmarshalText(expression []byte) error {
	all, err := ParseConstraints(string(expression))
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return fmt.Errorf("constraint %q: one is needed; it holds %d", expression, len(all))
	}
	*c = all[0]
	return nil
}

// SLAConstraints bounds the 99th percentiles by an SLA: the time to first token, the time per output token, which
// is how an SLA bounds inter-token latency, and the request latency.
func SLAConstraints(sla simcore.SLA) []Constraint {
	var out []Constraint
	for _, b := range []struct {
		column string
		ms     float64
	}{{"p99_ttft_ms", sla.TTFTMs}, {"p99_tpot_ms", sla.ITLMs}, {"p99_e2e_latency_ms", sla.E2EMs}} {
		if b.ms > 0 {
			out = append(out, Constraint{Column: b.column, Operator: "<=", Bound: float(b.ms)})
		}
	}
	return out
}

// SLABounds are the bounds of [SLAConstraints] as a simulation may watch them.
func SLABounds(sla simcore.SLA) []simcore.Bound {
	var out []simcore.Bound
	for _, c := range SLAConstraints(sla) {
		out = append(out, simcore.Bound{Metric: c.Column, Limit: c.Bound.Float})
	}
	return out
}

// ParseConstraints reads constraints joined by "&&". A side is a column name (in backquotes when it is no plain
// word), an operator, and a number, true, false or a string, which needs quotes when it is no plain word. A name alone
// asks that a boolean column is true.
func ParseConstraints(expression string) ([]Constraint, error) {
	l := constraintLexer{text: expression}
	var out []Constraint
	for {
		c, err := l.constraint()
		if err != nil {
			return nil, fmt.Errorf("constraint %q, column %d: %w", gridspec.Excerpt(expression), l.at+1, err)
		}
		out = append(out, c)
		l.skipSpace()
		if l.at == len(expression) {
			return out, nil
		}
		if !strings.HasPrefix(expression[l.at:], "&&") {
			return nil, fmt.Errorf(`constraint %q, column %d: unexpected %q; join constraints by "&&"`, gridspec.Excerpt(expression), l.at+1, gridspec.Excerpt(expression[l.at:]))
		}
		l.at += len("&&")
	}
}

// Feasible marks the rows that keep every constraint. A null keeps none. The error lists every column that does
// not exist or is of another type than its bound.
func Feasible(t *Table, constraints []Constraint) ([]bool, error) {
	ok := make([]bool, t.Rows())
	for i := range ok {
		ok[i] = true
	}
	var problems []error
	for _, c := range constraints {
		column, err := t.Lookup(c.Column)
		if err != nil {
			problems = append(problems, fmt.Errorf("constraint %s: %w", c, err))
			continue
		}
		holds, err := c.predicate(column)
		if err != nil {
			problems = append(problems, fmt.Errorf("constraint %s: %w", c, err))
			continue
		}
		for row := range ok {
			ok[row] = ok[row] && holds(row)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return ok, nil
}

// predicate returns whether a row of the column keeps the constraint.
func (c Constraint) predicate(column *Column) (func(row int) bool, error) {
	if column.Kind == gridspec.KindString {
		if c.Bound.Kind != gridspec.KindString {
			return nil, fmt.Errorf("column %s holds text; compare it with text in quotes", c.Column)
		}
		return func(row int) bool {
			return !column.Null[row] && compares(c.Operator, strings.Compare(column.Strings[row], c.Bound.Str))
		}, nil
	}
	bound, err := c.number(column)
	if err != nil {
		return nil, err
	}
	values, err := column.Float64s()
	if err != nil {
		return nil, err
	}
	return func(row int) bool { return compareFloats(c.Operator, values[row], bound) }, nil
}

func (c Constraint) number(column *Column) (float64, error) {
	isBool := column.Kind == gridspec.KindBool
	switch {
	case c.Bound.Kind == gridspec.KindBool && isBool:
		if c.Bound.Bool {
			return 1, nil
		}
		return 0, nil
	case isBool:
		return 0, fmt.Errorf("column %s holds booleans; compare it with true or false", c.Column)
	case c.Bound.Kind == gridspec.KindInt:
		return float64(c.Bound.Int), nil
	case c.Bound.Kind == gridspec.KindFloat:
		return c.Bound.Float, nil
	}
	return 0, fmt.Errorf("column %s holds numbers; compare it with a number", c.Column)
}

func compares(operator string, order int) bool {
	return compareFloats(operator, float64(order), 0)
}

// compareFloats is false for every operator when a side is NaN.
func compareFloats(operator string, a, b float64) bool {
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "==":
		return a == b
	}
	return a < b || a > b
}
