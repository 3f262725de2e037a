package forecast

import (
	"math"
	"slices"
)

// symmetric is a symmetric matrix.
type symmetric struct {
	size   int
	values []float64 // row by row
}

func newSymmetric(size int) *symmetric { return &symmetric{size, make([]float64, size*size)} }

func (m *symmetric) at(i, j int) float64 { return m.values[i*m.size+j] }

func (m *symmetric) set(i, j int, v float64) {
	m.values[i*m.size+j], m.values[j*m.size+i] = v, v
}

// finite reports whether it has just finite numbers.
func (m *symmetric) finite() bool {
	for _, v := range m.values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// solve puts the solution of m x = right into x by Cholesky's decomposition; ok is false when m is not positive definite.
func (m *symmetric) solve(right, x []float64) (ok bool) {
	n := m.size
	low := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			v := m.at(i, j) - dot(low[i*n:i*n+j], low[j*n:j*n+j])
			if i != j {
				low[i*n+j] = v / low[j*n+j]
				continue
			}
			if !(v > 0) || math.IsInf(v, 0) {
				return false
			}
			low[i*n+i] = math.Sqrt(v)
		}
	}
	for i := range n {
		x[i] = (right[i] - dot(low[i*n:i*n+i], x[:i])) / low[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			x[i] -= low[j*n+i] * x[j]
		}
		x[i] /= low[i*n+i]
	}
	return true
}

// divide puts right, divided along each principal direction of a finite matrix by its magnitude there, into x.
func (m *symmetric) divide(right, x []float64) {
	columns := make([][]float64, m.size)
	for i := range columns {
		columns[i] = slices.Clone(m.values[i*m.size : (i+1)*m.size])
	}
	clear(x)
	for k, direction := range orthogonalise(columns) {
		magnitude := math.Sqrt(dot(columns[k], columns[k]))
		addScaled(x, dot(direction, right)/magnitude, direction)
	}
}

// sweeps is how often [orthogonalise] goes over all pairs at most; ten are usual.
const sweeps = 60

// orthogonalise rotates columns, pair by pair, until all are at right angles (Hestenes, 1958), and returns the columns of
// the rotation: what was columns·rotation is now in columns, each as long as a singular value.
func orthogonalise(columns [][]float64) (rotation [][]float64) {
	rotation = make([][]float64, len(columns))
	for i := range rotation {
		rotation[i] = make([]float64, len(columns))
		rotation[i][i] = 1
	}
	for range sweeps {
		turned := false
		for i := range columns {
			for j := i + 1; j < len(columns); j++ {
				a, b := columns[i], columns[j]
				aa, bb, ab := dot(a, a), dot(b, b), dot(a, b)
				if math.Abs(ab) <= 0x1p-52*math.Sqrt(aa)*math.Sqrt(bb) || math.IsNaN(ab) {
					continue
				}
				turned = true
				zeta := (bb - aa) / (2 * ab)
				t := math.Copysign(1/(math.Abs(zeta)+math.Hypot(1, zeta)), zeta)
				cos := 1 / math.Hypot(1, t)
				rotate(a, b, cos, cos*t)
				rotate(rotation[i], rotation[j], cos, cos*t)
			}
		}
		if !turned {
			break
		}
	}
	return rotation
}

// rotate turns two columns in their plane.
func rotate(a, b []float64, cos, sin float64) {
	for i, v := range a {
		a[i], b[i] = cos*v-sin*b[i], sin*v+cos*b[i]
	}
}
