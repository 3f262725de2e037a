package calibrate

// normal is a system of as many linear equations as there are terms, with a symmetric matrix.
type normal struct {
	matrix [termCount]values
	vector values
}

// leastOwn is the share of a term's effect that no sum of the others may have, for the term to be told from them.
const leastOwn = 1e-6

// solve returns the solution for some terms, the others being 0, and the diagonal of the inverse matrix. When the equations do not
// tell them apart, ok is false. The diagonal is made larger by a share.
func (n *normal) solve(free []int, damping float64) (solution, inverse values, ok bool) {
	k := len(free)
	rows := make([][]float64, k) // the matrix, the vector and the unit matrix side by side
	for i, a := range free {
		rows[i] = make([]float64, 2*k+1)
		for j, b := range free {
			rows[i][j] = n.matrix[a][b]
		}
		rows[i][i] *= 1 + damping
		rows[i][k], rows[i][k+1+i] = n.vector[a], 1
	}
	for i, a := range free {
		// What is left of the diagonal is what the terms before cannot explain.
		if !(rows[i][i] > leastOwn*n.matrix[a][a]) {
			return solution, inverse, false
		}
		for r := range rows {
			if r == i {
				continue
			}
			factor := rows[r][i] / rows[i][i]
			for c := range rows[r] {
				rows[r][c] -= factor * rows[i][c]
			}
		}
	}
	for i, a := range free {
		solution[a], inverse[a] = rows[i][k]/rows[i][i], rows[i][k+1+i]/rows[i][i]
	}
	return solution, inverse, true
}
