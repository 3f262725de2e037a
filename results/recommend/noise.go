package recommend

import (
	"math"
	"slices"
)

// quantile95 holds the two-sided 95 % quantiles of Student's t distribution for 1, 2, … degrees of freedom (any table of
// it, such as NIST/SEMATECH e-Handbook of Statistical Methods §1.3.6.7.2).
var quantile95 = []float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
	2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// halfWidth95 is half the width of the 95 % confidence interval of the mean of some samples; 0 for fewer than two.
func halfWidth95(samples []float64) (mean, halfWidth float64) {
	for _, v := range samples {
		mean += v / float64(len(samples))
	}
	if len(samples) < 2 {
		return mean, 0
	}
	sum := 0.0
	for _, v := range samples {
		sum += (v - mean) * (v - mean)
	}
	freedom := len(samples) - 1
	quantile := quantile95[min(freedom, len(quantile95))-1]
	return mean, quantile * math.Sqrt(sum/float64(freedom)/float64(len(samples)))
}

// halfWidth is that of a column's mean over the replicates of a configuration.
func (s *scale) halfWidth(name string, row int) float64 {
	_, h := halfWidth95(s.samples(name, s.candidates.Counted[row]))
	if !finite(h) {
		return 0
	}
	return h
}

// samples are the finite values of a column in some rows of the original table.
func (s *scale) samples(name string, rows []int) []float64 {
	if len(rows) < 2 {
		return nil
	}
	values, err := s.rows.Column(name).Float64s()
	if err != nil {
		return nil
	}
	var out []float64
	for _, row := range rows {
		if finite(values[row]) {
			out = append(out, values[row])
		}
	}
	return out
}

// withinNoise reports whether replicates do not tell two configurations apart in the objective: the 95 % confidence
// interval of the mean difference of equal replicates, which served the same traffic, holds 0. Without at least two
// common replicates nothing is known about chance.
func (s *scale) withinNoise(a, b int) bool {
	replicate, err := s.replicates()
	if err != nil || replicate == nil {
		return false
	}
	values, err := s.rows.Column(s.request.Objective.Name).Float64s()
	if err != nil {
		return false
	}
	var differences []float64
	for _, x := range s.candidates.Counted[a] {
		at := slices.IndexFunc(s.candidates.Counted[b], func(y int) bool { return replicate[x] == replicate[y] })
		if at < 0 {
			continue
		}
		if d := values[x] - values[s.candidates.Counted[b][at]]; finite(d) {
			differences = append(differences, d)
		}
	}
	mean, half := halfWidth95(differences)
	return len(differences) > 1 && math.Abs(mean) <= half
}

// replicates numbers the repetitions of the original rows; nil when nothing is repeated.
func (s *scale) replicates() ([]float64, error) {
	c := s.rows.Column("replicate")
	if c == nil || !s.candidates.Replicated() {
		return nil, nil
	}
	return c.Float64s()
}
