package results

import (
	"cmp"
	"math"
	"slices"
)

// NoiseColumn marks the rows that are on the frontier, or that their replicates do not tell from it; [MarkFrontier] adds
// it when configurations are replicated.
const NoiseColumn = "within_noise_of_frontier"

const noiseDoc = "Whether the point is on the frontier or may belong there: no other feasible point is better in every objective by more than " +
	"the square root of the summed squares of both 95 % t-intervals of the mean over the replicates. Only with replicates."

// Interval returns half the width of the 95 % t-interval of a column's mean over the counted rows of a candidate. It is 0
// when there is just one number, and NaN when there is none.
func (c *Candidates) Interval(column *Column, candidate int) float64 {
	values, err := column.Float64s()
	if err != nil {
		return math.NaN()
	}
	return intervalOf(values, c.Counted[candidate])
}

func intervalOf(values []float64, rows []int) float64 {
	mean, sum, n := meanOf(values, rows), 0.0, 0
	for _, row := range rows {
		if v := values[row]; !math.IsNaN(v) {
			sum, n = sum+(v-mean)*(v-mean), n+1
		}
	}
	switch n {
	case 0:
		return math.NaN()
	case 1:
		return 0
	}
	return tFactor(n) * math.Sqrt(sum/float64(n-1)/float64(n))
}

// tQuantiles are the 97.5 % quantiles of Student's t distribution with 1, 2, … degrees of freedom.
var tQuantiles = [...]float64{
	12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
	2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963,
	2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230, 2.042272,
}

// tFactor is the quantile for the mean of n numbers; 0 for fewer than two, which have no interval. Beyond the table it is
// the expansion around the normal quantile (Abramowitz and Stegun 26.7.5).
func tFactor(n int) float64 {
	if n < 2 {
		return 0
	}
	df := n - 1
	if df <= len(tQuantiles) {
		return tQuantiles[df-1]
	}
	const z = 1.959964
	const z3 = z * z * z
	const z5 = z3 * z * z
	const z7 = z5 * z * z
	v := float64(df)
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}

// noisyFigures are the objectives of candidates, more being better, with the halves of their intervals.
type noisyFigures struct{ means, halves [][]float64 }

// withinNoise marks the feasible candidates that no other is clearly better than, and those on the frontier. t holds the
// rows, the candidates' table the means.
func (c *Candidates) withinNoise(t *Table, a Analysis, feasible, on []bool) ([]bool, error) {
	var f noisyFigures
	for _, o := range a.Objectives {
		means, err := c.Table.objective(o)
		if err != nil {
			return nil, err
		}
		values, err := t.objective(o)
		if err != nil {
			return nil, err
		}
		halves := make([]float64, len(means))
		for i, rows := range c.Counted {
			if half := intervalOf(values, rows); !math.IsNaN(half) { // infinite figures have no interval
				halves[i] = half
			}
			if !o.Maximize {
				means[i] = -means[i]
			}
		}
		f.means, f.halves = append(f.means, means), append(f.halves, halves)
	}
	groups, err := c.Table.Groups(a.By)
	if err != nil {
		return nil, err
	}
	near, ended := make([]bool, len(on)), c.okMarks()
	for _, group := range groups {
		comparable := slices.DeleteFunc(slices.Clone(group), func(i int) bool { return !feasible[i] || !ended[i] || !f.complete(i) })
		f.markNear(near, comparable, on)
	}
	return near, nil
}

func (f noisyFigures) complete(i int) bool {
	return !slices.ContainsFunc(f.means, func(means []float64) bool { return math.IsNaN(means[i]) })
}

// markNear compares candidates of one traffic. Those on the frontier come first, since they beat most of the others; who
// is worse in the first objective beats nobody.
func (f noisyFigures) markNear(near []bool, candidates []int, on []bool) {
	order := slices.SortedStableFunc(slices.Values(candidates), func(a, b int) int { return cmp.Compare(f.means[0][b], f.means[0][a]) })
	front := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return !on[i] })
	for _, i := range candidates {
		near[i] = on[i] || !f.beaten(i, front) && !f.beaten(i, order)
	}
}

// beaten reports whether one of the others, best in the first objective first, is clearly better.
func (f noisyFigures) beaten(i int, others []int) bool {
	for _, j := range others {
		if f.means[0][j] < f.means[0][i] {
			return false
		}
		if f.clearlyBetter(j, i) {
			return true
		}
	}
	return false
}

// clearlyBetter reports whether j is better than i in every objective by the margin of both intervals, and in one by
// more. Without any noise that is dominance. The margin is the interval of a difference by Zou and Donner (2008).
func (f noisyFigures) clearlyBetter(j, i int) bool {
	more := false
	for o, means := range f.means {
		lead, margin := 0.0, math.Hypot(f.halves[o][i], f.halves[o][j])
		if means[i] != means[j] { // of two infinities there is no difference
			lead = means[j] - means[i]
		}
		if !(lead >= margin) {
			return false
		}
		more = more || lead > margin
	}
	return more
}
