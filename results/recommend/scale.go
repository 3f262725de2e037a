package recommend

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// HourlyCostColumn is what a configuration costs an hour, in USD. It is computed where a table does not have it.
const HourlyCostColumn = "usd_per_hour"

const (
	gpusColumn = "gpus"
	// peakGPUsColumn differs from gpus where a planner changes the number of workers.
	peakGPUsColumn = "peak_gpus"
)

// scale orders the configurations of a table.
type scale struct {
	request    Request
	candidates *results.Candidates
	// rows is the table as it was, with the computed columns; table has one row a configuration.
	rows, table *results.Table
	// ran marks the configurations that were simulated to an end, ok those of them that have a value in the objective.
	ran, ok []bool
	// objective holds the objective of each configuration, turned so that more is better.
	objective []float64
	// usd and gpus hold what each costs an hour and uses; NaN where the table does not say.
	usd, gpus []float64
	// keeps says for each constraint of limits and budget which configurations keep it, kept which rows do.
	keeps, kept [][]bool
	// varied are the columns that tell configurations apart.
	varied []*results.Column
}

func newScale(t *results.Table, r Request) (*scale, error) {
	s := &scale{request: r}
	s.rows = withComputed(t)
	s.candidates = s.rows.Candidates()
	s.table = s.candidates.Table
	values, err := s.values(r.Objective.Name)
	problems := []error{err}
	for _, name := range r.By {
		if _, err := s.table.Lookup(name); err != nil {
			problems = append(problems, fmt.Errorf("traffic by %s: %w", name, err))
		}
	}
	for _, c := range s.constraints() {
		keeps, err := results.Feasible(s.table, []results.Constraint{c})
		if err != nil {
			problems = append(problems, err)
			continue
		}
		kept, err := results.Feasible(s.rows, []results.Constraint{c})
		problems = append(problems, err)
		s.keeps, s.kept = append(s.keeps, keeps), append(s.kept, kept)
	}
	if err := errors.Join(append(problems, s.candidates.Check(s.analysis()))...); err != nil {
		return nil, err
	}
	s.objective = values
	if !r.Objective.Maximize {
		for i := range s.objective {
			s.objective[i] = -s.objective[i]
		}
	}
	s.usd, s.gpus = s.optional(HourlyCostColumn), s.optional(gpusColumn)
	s.ran, s.ok = s.simulated()
	s.varied = s.variedColumns()
	return s, nil
}

// constraints are limits and budget, in this order.
func (s *scale) constraints() []results.Constraint {
	return slices.Concat(s.request.Limits, s.request.Budget)
}

func (s *scale) analysis() results.Analysis {
	return results.Analysis{Objectives: []results.Objective{s.request.Objective}, Constraints: s.constraints(), By: s.request.By}
}

// values are those of a column of numbers.
func (s *scale) values(name string) ([]float64, error) {
	c, err := s.table.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("objective %s: %w", name, err)
	}
	values, err := c.Float64s()
	if err != nil {
		return nil, fmt.Errorf("objective %s: %w", name, err)
	}
	return values, nil
}

// optional are the values of a column, all NaN when there are none.
func (s *scale) optional(name string) []float64 {
	if c := s.table.Column(name); c != nil {
		if values, err := c.Float64s(); err == nil {
			return values
		}
	}
	return slices.Repeat([]float64{math.NaN()}, s.table.Rows())
}

// simulated marks the configurations that ran to an end, and those of them that have a finite objective.
func (s *scale) simulated() (ran, ok []bool) {
	status := s.table.Column("status")
	ran, ok = make([]bool, s.table.Rows()), make([]bool, s.table.Rows())
	for row := range ran {
		ran[row] = status == nil || status.Text(row) == string(results.StatusOK)
		ok[row] = ran[row] && finite(s.objective[row])
	}
	return ran, ok
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// first returns the best of some configurations, of which there must be one: among those that the tolerance does not tell
// from the best objective the cheapest, then the one with the fewest GPUs, then the one farthest from its limits.
func (s *scale) first(rows []int) int {
	top := math.Inf(-1)
	for _, row := range rows {
		top = max(top, s.objective[row])
	}
	least := top - s.request.Tolerance*math.Abs(top)
	ties := slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return s.objective[row] < least })
	return slices.MinFunc(ties, s.prefer)
}

// prefer orders configurations whose objectives are as good as equal. It depends on what they are, never on their place.
func (s *scale) prefer(a, b int) int {
	return cmp.Or(
		compareKnown(rounded(s.usd[a]), rounded(s.usd[b])),
		compareKnown(s.gpus[a], s.gpus[b]),
		cmp.Compare(s.leastHeadroom(b), s.leastHeadroom(a)),
		cmp.Compare(s.objective[b], s.objective[a]),
		strings.Compare(s.label(a), s.label(b)),
	)
}

// compareKnown orders numbers, what is not known last.
func compareKnown(a, b float64) int {
	switch x, y := math.IsNaN(a), math.IsNaN(b); {
	case x && y:
		return 0
	case x:
		return 1
	case y:
		return -1
	}
	return cmp.Compare(a, b)
}

// rounded takes off what arithmetic leaves, so that equal prices compare as equal.
func rounded(usd float64) float64 { return math.Round(usd*1e6) / 1e6 }

// label names a configuration by all that tells it from others.
func (s *scale) label(row int) string {
	var b strings.Builder
	for _, c := range s.varied {
		b.WriteString(c.Text(row) + "\x00")
	}
	return b.String() + s.text("id", row)
}

// text is a value of a column of text; empty when there is none.
func (s *scale) text(name string, row int) string {
	if c := s.table.Column(name); c != nil && c.Kind == gridspec.KindString {
		return c.Text(row)
	}
	return ""
}

// leastHeadroom is the distance to the nearest bound; infinite without any.
func (s *scale) leastHeadroom(row int) float64 {
	least := math.Inf(1)
	for _, c := range s.request.Limits {
		if v, ok := s.measured(c, row); ok {
			least = min(least, headroom(c, v))
		}
	}
	return least
}

// selects reports whether a constraint chooses rows rather than bounding a figure with a distance: it asks for one value,
// or is about what was varied.
func (s *scale) selects(c results.Constraint) bool {
	column := s.table.Column(c.Column)
	if c.Operator == "==" || c.Operator == "!=" || math.IsNaN(c.Bound.Float64()) {
		return true
	}
	return column.Role == results.RoleAxis && !s.table.GuessedRoles || !column.Numeric()
}

// measured returns the value that a bound with a distance has at a configuration.
func (s *scale) measured(c results.Constraint, row int) (float64, bool) {
	if s.selects(c) {
		return 0, false
	}
	column := s.table.Column(c.Column)
	switch {
	case column.Null[row]:
		return 0, false
	case column.Kind == gridspec.KindInt:
		return float64(column.Ints[row]), true
	}
	return column.Floats[row], finite(column.Floats[row])
}

// headroom is how far a value is within a bound, as a share of the bound, and of 1 where that is 0.
func headroom(c results.Constraint, value float64) float64 {
	bound := c.Bound.Float64()
	distance := bound - value
	if c.Operator == ">" || c.Operator == ">=" {
		distance = -distance
	}
	if bound != 0 {
		distance /= math.Abs(bound)
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, distance))
}
