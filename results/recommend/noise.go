package recommend

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// halfWidth is half the width of the 95 % confidence interval of a column's mean over the replicates of a configuration; 0
// where there are none.
func (s *scale) halfWidth(name string, row int) float64 {
	half := s.candidates.Interval(s.rows.Column(name), row)
	if !finite(half) {
		return 0
	}
	return half
}

// withinNoise reports whether replicates do not tell two configurations apart in the objective: the 95 % confidence
// interval of the mean difference of equal replicates, which served the same traffic, holds 0. Without at least two
// common replicates nothing is known about chance.
func (s *scale) withinNoise(a, b int) bool {
	replicate := s.rows.Column("replicate")
	if replicate == nil || !s.candidates.Replicated() {
		return false
	}
	values, err := s.rows.Column(s.request.Objective.Name).Float64s()
	if err != nil {
		return false
	}
	// The differences stand at the rows of a, so that they are figures of that configuration.
	differences := results.NewColumn("difference", gridspec.KindFloat, s.rows.Rows())
	sum, n := 0.0, 0
	for _, x := range s.candidates.Counted[a] {
		at := slices.IndexFunc(s.candidates.Counted[b], func(y int) bool { return sameValue(replicate, x, y) })
		if at < 0 {
			continue
		}
		if d := values[x] - values[s.candidates.Counted[b][at]]; finite(d) {
			differences.Set(x, gridspec.Value{Kind: gridspec.KindFloat, Float: d})
			sum, n = sum+d, n+1
		}
	}
	return n > 1 && math.Abs(sum/float64(n)) <= s.candidates.Interval(differences, a)
}
