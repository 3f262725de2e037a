package planner

import "math"

// normalEquations fits a plane as ai-dynamo 1.3 does: by Gauss-Jordan elimination of the normal equations, whose digits
// decide there whether a slope of nothing is just below zero and the fit refused. Where the samples leave the plane open, a
// little of the size of all loads keeps the slopes small.
func normalEquations(samples []sample, dims int) plane {
	unknowns := dims + 1
	var m [3][4]float64
	for _, s := range samples {
		row := [3]float64{1, s.x[0], s.x[1]}
		for i := range unknowns {
			for j := range unknowns {
				m[i][j] += row[i] * row[j]
			}
			m[i][3] += row[i] * s.y
		}
	}
	open := m
	v, ok := eliminate(open, unknowns)
	if !ok {
		trace := 0.0
		for i := range unknowns {
			trace += m[i][i]
		}
		for i := 1; i < unknowns; i++ {
			m[i][i] += 1e-9 * trace
		}
		if v, ok = eliminate(m, unknowns); !ok {
			return plane{slope: [2]float64{math.NaN(), math.NaN()}}
		}
	}
	return plane{intercept: v[0], slope: [2]float64{v[1], v[2]}}
}

// eliminate solves linear equations whose right side is the last column; ok is false if they leave a solution open.
func eliminate(m [3][4]float64, unknowns int) (v [3]float64, ok bool) {
	for c := range unknowns {
		pivot := c
		for r := c + 1; r < unknowns; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[pivot][c]) {
				pivot = r
			}
		}
		if math.Abs(m[pivot][c]) < 1e-12 {
			return v, false
		}
		m[c], m[pivot] = m[pivot], m[c]
		by := m[c][c]
		for k := c; k < 4; k++ {
			m[c][k] /= by
		}
		for r := range unknowns {
			if r == c {
				continue
			}
			factor := m[r][c]
			for k := c; k < 4; k++ {
				m[r][k] -= float64(factor * m[c][k])
			}
		}
	}
	for i := range unknowns {
		v[i] = m[i][3]
	}
	return v, true
}
