package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Objective is a figure to optimise.
type Objective struct {
	// Name is the column.
	Name string `json:"name"`
	// Maximize says that more is better; otherwise less is.
	Maximize bool `json:"maximize"`
}

// DefaultObjectives are the two sides of every serving trade-off: throughput per GPU and speed per user.
func DefaultObjectives() []Objective {
	return []Objective{
		{Name: "output_throughput_tok_s_per_gpu", Maximize: true},
		{Name: "mean_output_token_throughput_per_user", Maximize: true},
	}
}

// Ties says what happens to rows that are equal in every objective.
type Ties int8

// The tie policies.
const (
	// KeepAll keeps all equal rows on the frontier.
	KeepAll Ties = iota
	// KeepFirst keeps the first of equal rows; the others count as dominated.
	KeepFirst
)

// Epsilon is the difference in one objective that does not matter: values in the same step of that size count as
// equal. The zero value compares exactly.
type Epsilon struct {
	// Size is the step: in the objective's unit, or as a share of the value when Relative is set (0.01: 1 %).
	Size float64
	// Relative makes the steps grow with the value.
	Relative bool
}

// FrontierOptions refine what [Frontier] keeps.
type FrontierOptions struct {
	// Ties is the policy for rows that are equal in every objective, after Epsilon.
	Ties Ties
	// Epsilon holds one entry an objective; nil compares all exactly.
	Epsilon []Epsilon
}

// Frontier marks the rows that no other row dominates. A row dominates another when it is at least as good in
// every objective and better in one. values holds one slice an objective, with one entry a row; a row with a NaN
// in any of them neither is on the frontier nor dominates. Infinities are ordinary values.
//
// One and two objectives cost O(n log n), more cost O(n log n + n·f) for a frontier of f rows.
func Frontier(objectives []Objective, values [][]float64, opt FrontierOptions) ([]bool, error) {
	if err := checkFrontier(objectives, values, opt); err != nil {
		return nil, err
	}
	on := make([]bool, len(values[0]))
	rows := completeRows(values)
	if len(rows) == 0 {
		return on, nil
	}
	ranks := rankRows(objectives, values, opt.Epsilon, rows)
	k := len(objectives)
	keep := sweep(k)
	if k > 2 {
		keep = skyline(k)
	}
	var previous []int32
	previousKept := false
	for _, i := range dominatorsFirst(ranks, k) {
		r := ranks[i*k : (i+1)*k]
		if previous != nil && slices.Equal(r, previous) {
			on[rows[i]] = previousKept && opt.Ties == KeepAll
			continue
		}
		previous, previousKept = r, keep(r)
		on[rows[i]] = previousKept
	}
	return on, nil
}

// sweep decides for one or two objectives whether a row is kept. Rows come sorted rank by rank and no two are
// equal, so a row is dominated unless its last rank is better than all before.
func sweep(k int) func(row []int32) bool {
	best := int32(math.MaxInt32)
	return func(row []int32) bool {
		if row[k-1] >= best {
			return false
		}
		best = row[k-1]
		return true
	}
}

// skyline decides for more objectives: rows come dominators first and no two are equal, so a row is dominated
// when a kept one is nowhere worse.
func skyline(k int) func(row []int32) bool {
	var kept []int32
	return func(row []int32) bool {
	next:
		for at := 0; at < len(kept); at += k {
			for j, r := range row {
				if kept[at+j] > r {
					continue next
				}
			}
			return false
		}
		kept = append(kept, row...)
		return true
	}
}

func checkFrontier(objectives []Objective, values [][]float64, opt FrontierOptions) error {
	if len(objectives) == 0 {
		return fmt.Errorf("a frontier needs at least one objective")
	}
	if len(values) != len(objectives) {
		return fmt.Errorf("%d objectives have %d lists of values", len(objectives), len(values))
	}
	for i, o := range objectives {
		if len(values[i]) != len(values[0]) {
			return fmt.Errorf("objective %s has %d values, %s has %d", o.Name, len(values[i]), objectives[0].Name, len(values[0]))
		}
	}
	if opt.Epsilon == nil {
		return nil
	}
	if len(opt.Epsilon) != len(objectives) {
		return fmt.Errorf("%d objectives have %d epsilons; give one each", len(objectives), len(opt.Epsilon))
	}
	for i, e := range opt.Epsilon {
		if !(e.Size >= 0) || math.IsInf(e.Size, 0) {
			return fmt.Errorf("objective %s: epsilon %v is not allowed; give 0 or more", objectives[i].Name, e.Size)
		}
	}
	return nil
}

// completeRows lists the rows that have a value in every objective.
func completeRows(values [][]float64) []int {
	rows := make([]int, 0, len(values[0]))
	for row := range values[0] {
		if !slices.ContainsFunc(values, func(v []float64) bool { return math.IsNaN(v[row]) }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// rankRows replaces every value by its rank among the objective's values, 0 the best, so that what follows
// compares small integers whatever the direction, step and range. Row i of the answer starts at i*objectives.
func rankRows(objectives []Objective, values [][]float64, epsilon []Epsilon, rows []int) []int32 {
	k := len(objectives)
	ranks := make([]int32, len(rows)*k)
	order := make([]int, len(rows))
	steps := make([]float64, len(rows))
	for o := range objectives {
		for i, row := range rows {
			order[i] = i
			steps[i] = values[o][row]
			if epsilon != nil {
				steps[i] = epsilon[o].floor(steps[i])
			}
			if objectives[o].Maximize {
				steps[i] = -steps[i]
			}
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(steps[a], steps[b]) })
		rank := int32(0)
		for n, i := range order {
			if n > 0 && steps[i] != steps[order[n-1]] {
				rank++
			}
			ranks[i*k+o] = rank
		}
	}
	return ranks
}

// floor returns the lower edge of the step that holds v.
func (e Epsilon) floor(v float64) float64 {
	switch {
	case e.Size == 0 || v == 0 || math.IsInf(v, 0):
		return v
	case !e.Relative:
		return math.Floor(v/e.Size) * e.Size
	}
	base := math.Log1p(e.Size)
	if v < 0 {
		return -math.Exp(math.Ceil(math.Log(-v)/base) * base)
	}
	return math.Exp(math.Floor(math.Log(v)/base) * base)
}

// dominatorsFirst orders the rows so that whoever dominates a row comes before it, and equal rows are neighbours:
// rank by rank, then by row; above two objectives by the sum of ranks first, since small sums dominate the most.
func dominatorsFirst(ranks []int32, k int) []int {
	n := len(ranks) / k
	order, sums := make([]int, n), make([]int64, n)
	for i := range order {
		order[i] = i
		for _, r := range ranks[i*k : (i+1)*k] {
			if k > 2 {
				sums[i] += int64(r)
			}
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(sums[a], sums[b]), slices.Compare(ranks[a*k:(a+1)*k], ranks[b*k:(b+1)*k]), cmp.Compare(a, b))
	})
	return order
}
