package sensitivity

import "math"

// mostUniformLevels bounds the levels that count the same: an axis with more was sampled, and the sample says how likely
// its values are.
const mostUniformLevels = 20

// Limits of the model that is fitted to a sample.
const (
	// mostDegree bounds the polynomials along one axis.
	mostDegree = 8
	// mostCandidates bounds the functions of two axes; their degree is lowered to it.
	mostCandidates = 600
)

// basis are functions of one factor that are uncorrelated with each other, have mean 0 and variance 1.
type basis struct {
	// values are those at each level, by function.
	values [][]float64
	// joint says that only all functions together mean something, as for names, which have no order.
	joint bool
}

// weights say how much each level counts.
func (d *design) weights(factor int) []float64 {
	w := make([]float64, d.levels[factor])
	if len(w) <= mostUniformLevels {
		for i := range w {
			w[i] = 1 / float64(len(w))
		}
		return w
	}
	for _, level := range d.level[factor] {
		w[level] += 1 / float64(len(d.y))
	}
	return w
}

// basis returns polynomials in the rank of an ordered factor: linear and logarithmic axes then look alike, and few levels
// are met exactly. A factor of names gets as many functions as it needs to tell all its levels apart.
func (d *design) basis(factor int, ordered bool) basis {
	w := d.weights(factor)
	out := basis{joint: !ordered}
	size, below := len(w), 0.0
	rank := make([]float64, size)
	for i := range rank {
		rank[i] = 2*(below+w[i]/2) - 1
		below += w[i]
	}
	functions := [][]float64{fill(size, 1)}
	last := functions[0]
	for k := 1; k < size && (k <= mostDegree || out.joint); k++ {
		next := make([]float64, size)
		for i := range next {
			if out.joint {
				next[i] = 0
			} else {
				next[i] = rank[i] * last[i]
			}
		}
		if out.joint {
			next[k] = 1
		}
		if !orthonormalise(next, functions, w) {
			if out.joint {
				continue // a name that the chosen points lack
			}
			break
		}
		functions, last = append(functions, next), next
	}
	out.values = functions[1:]
	return out
}

// orthonormalise takes what earlier functions explain out of one and scales it to variance 1; false when nothing is left.
func orthonormalise(f []float64, earlier [][]float64, w []float64) bool {
	before := math.Sqrt(product(f, f, w))
	for range 2 { // the second round takes out what rounding left
		for _, e := range earlier {
			along := product(f, e, w)
			for i := range f {
				f[i] -= along * e[i]
			}
		}
	}
	size := math.Sqrt(product(f, f, w))
	if !(size > 1e-9*before) {
		return false
	}
	for i := range f {
		f[i] /= size
	}
	return true
}

func product(a, b, w []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i] * w[i]
	}
	return sum
}

func fill(n int, v float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// block is functions that enter a model together: one polynomial, or all that part the names of a factor.
type block struct {
	// factors are one or two; the second is -1 for a function of one.
	factors [2]int
	// functions of each factor, as places in its basis.
	terms [][2]int
}

// blocks lists what a model may consist of: functions of one factor and products of those of two, up to a degree.
func blocks(bases []basis, degree int) []block {
	var out []block
	for i := range bases {
		for _, b := range parts(bases[i]) {
			if order(bases[i], b) > degree {
				continue
			}
			terms := make([][2]int, len(b))
			for n, k := range b {
				terms[n] = [2]int{k, -1}
			}
			out = append(out, block{factors: [2]int{i, -1}, terms: terms})
		}
	}
	for ; degree > 1; degree-- {
		if pairs := pairBlocks(bases, degree); len(pairs) <= mostCandidates || degree == 2 {
			return append(out, pairs...)
		}
	}
	return out
}

func pairBlocks(bases []basis, degree int) []block {
	var out []block
	for i := range bases {
		for j := i + 1; j < len(bases); j++ {
			for _, a := range parts(bases[i]) {
				for _, b := range parts(bases[j]) {
					if order(bases[i], a)+order(bases[j], b) > degree {
						continue
					}
					p := block{factors: [2]int{i, j}}
					for _, k := range a {
						for _, m := range b {
							p.terms = append(p.terms, [2]int{k, m})
						}
					}
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// parts are the functions of a basis that stand alone, or all of them where they do not.
func parts(b basis) [][]int {
	var out [][]int
	for k := range b.values {
		if b.joint && k > 0 {
			out[0] = append(out[0], k)
		} else {
			out = append(out, []int{k})
		}
	}
	return out
}

func order(b basis, functions []int) int {
	if b.joint {
		return 1
	}
	return functions[0] + 1
}
