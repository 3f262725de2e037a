package sensitivity

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Limits of a fit, which bound its time.
const (
	// mostFitted bounds the cells that a model is fitted to; a seeded choice stands for more of them.
	mostFitted = 1000
	// mostTerms bounds the functions of a model.
	mostTerms = 60
	// patience is how many blocks in a row may fail to improve a model before the search for more ends.
	patience = 6
	// fewCells is the number of cells below which all degrees are tried.
	fewCells = 300
	// folds is the number of parts that each get predicted from the others.
	folds = 5
)

// fit is a sum of functions of one and two factors, fitted to a sample by least squares: a polynomial chaos expansion over
// the axes' own distributions (Sudret 2008). Its functions are chosen one after another by what they still explain, until
// the leave-one-out error of the model grows (Blatman and Sudret 2011).
type fit struct {
	d      *design
	bases  []basis
	chosen []block
	// columns are the chosen functions at each cell, coefficients their weights after the mean.
	columns      [][]float64
	coefficients []float64
}

// predictors are the values of blocks at the cells.
type predictors struct {
	blocks []block
	// columns of each block, by cell.
	columns [][][]float64
}

func (d *design) predictors(bases []basis, degree int) predictors {
	p := predictors{}
	for _, b := range blocks(bases, degree) {
		if 3*len(b.terms) > len(d.y) {
			continue // too few cells to tell so many functions apart
		}
		columns := make([][]float64, len(b.terms))
		for n, term := range b.terms {
			columns[n] = make([]float64, len(d.y))
			for cell := range columns[n] {
				columns[n][cell] = b.value(bases, term, d, cell)
			}
		}
		p.blocks, p.columns = append(p.blocks, b), append(p.columns, columns)
	}
	return p
}

// value is a function of a block at a cell.
func (b *block) value(bases []basis, term [2]int, d *design, cell int) float64 {
	v := bases[b.factors[0]].values[term[0]][d.level[b.factors[0]][cell]]
	if b.factors[1] >= 0 {
		v *= bases[b.factors[1]].values[term[1]][d.level[b.factors[1]][cell]]
	}
	return v
}

// choose picks blocks for the cells named by use, best first, and returns their places.
func (p *predictors) choose(y []float64, use []int) []int {
	q := newOrthogonal(y, use)
	best, bestAt, since := q.error(), 0, 0
	var chosen []int
	taken := make([]bool, len(p.blocks))
	sizes := p.sizes(use)
	for since < patience && len(q.columns) < mostTerms {
		at := p.strongest(q, use, sizes, taken)
		if at < 0 {
			break
		}
		taken[at] = true
		before := len(q.columns)
		if before+len(p.columns[at]) >= len(use) {
			continue
		}
		for _, column := range p.columns[at] {
			q.add(column, use)
		}
		if len(q.columns) == before {
			continue // it is a sum of those before
		}
		chosen = append(chosen, at)
		if e := q.error(); e < best {
			best, bestAt, since = e, len(chosen), 0
		} else {
			since++
		}
	}
	return chosen[:bestAt]
}

// sizes are the sums of squares of the functions over the cells named by use.
func (p *predictors) sizes(use []int) [][]float64 {
	out := make([][]float64, len(p.columns))
	for i, columns := range p.columns {
		out[i] = make([]float64, len(columns))
		for n, column := range columns {
			for _, cell := range use {
				out[i][n] += column[cell] * column[cell]
			}
		}
	}
	return out
}

// strongest is the block that explains the most of what is left, by each of its functions.
func (p *predictors) strongest(q *orthogonal, use []int, sizes [][]float64, taken []bool) int {
	best, at := 0.0, -1
	for i, columns := range p.columns {
		if taken[i] {
			continue
		}
		gain := 0.0
		for n, column := range columns {
			along := 0.0
			for at, cell := range use {
				along += column[cell] * q.residual[at]
			}
			if size := sizes[i][n]; size > 0 {
				gain += along * along / size
			}
		}
		if gain /= float64(len(columns)); gain > best*(1+1e-12) {
			best, at = gain, i
		}
	}
	if best <= 1e-24*q.size {
		return -1 // what is left is rounding
	}
	return at
}

// fit fits the design, and says which share of the variance it predicts in cells that it has not seen.
func (d *design) fit(ordered []bool, rng *rand.Rand) (*fit, float64) {
	f := &fit{d: d}
	for i := range d.levels {
		f.bases = append(f.bases, d.basis(i, ordered[i]))
	}
	order := rng.Perm(len(d.y))
	var p predictors
	explained := -1.0
	for _, degree := range d.degrees() {
		tried := d.predictors(f.bases, degree)
		if predicted := d.crossValidate(&tried, order); predicted > explained {
			p, explained = tried, predicted
		}
	}
	everything := upTo(len(d.y))
	for _, at := range p.choose(d.y, everything) {
		f.chosen = append(f.chosen, p.blocks[at])
		f.columns = append(f.columns, p.columns[at]...)
	}
	f.coefficients = leastSquares(f.columns, d.y, everything)
	return f, explained
}

// degrees are those to choose from. A small sample carries simple models only, and few points make trying them cheap.
func (d *design) degrees() []int {
	if len(d.y) < fewCells {
		return []int{1, 2, 3, 4, 6, mostDegree}
	}
	return []int{4, mostDegree}
}

// crossValidate fits models without one part of the cells and predicts that: the share of the variance that they get right,
// choice of the functions included.
func (d *design) crossValidate(p *predictors, order []int) float64 {
	missed := 0.0
	for part := range min(folds, len(order)) {
		var use, hidden []int
		for i, cell := range order {
			if i%folds == part {
				hidden = append(hidden, cell)
			} else {
				use = append(use, cell)
			}
		}
		slices.Sort(use)
		var columns [][]float64
		for _, at := range p.choose(d.y, use) {
			columns = append(columns, p.columns[at]...)
		}
		coefficients := leastSquares(columns, d.y, use)
		for _, cell := range hidden {
			e := d.y[cell] - predict(columns, coefficients, cell)
			missed += e * e
		}
	}
	all := variance(d.y) * float64(len(d.y))
	if all == 0 {
		return 0 // the cells that were chosen from many are all equal: they predict nothing of the others
	}
	return min(1, max(0, 1-missed/all))
}

func predict(columns [][]float64, coefficients []float64, cell int) float64 {
	v := coefficients[0]
	for i, column := range columns {
		v += coefficients[i+1] * column[cell]
	}
	return v
}

// decompose reads the variance off the coefficients, since the functions are uncorrelated over the axes' distributions.
// Shares are scaled to what the model predicts of unseen cells.
func (f *fit) decompose(coefficients []float64, total, explained float64) decomposition {
	k := len(f.d.levels)
	out := decomposition{explained: 1, first: make([]float64, k), all: make([]float64, k), pair: make([][]float64, k)}
	for i := range k {
		out.pair[i] = make([]float64, k)
	}
	sum, at := 0.0, 1
	for _, b := range f.chosen {
		for range b.terms {
			v := coefficients[at] * coefficients[at]
			at++
			sum += v
			i, j := b.factors[0], b.factors[1]
			out.all[i] += v
			if j < 0 {
				out.first[i] += v
				continue
			}
			out.all[j] += v
			out.pair[i][j] += v
		}
	}
	out.curve, out.total = f.curves(coefficients), sum
	out = out.scaled(explained)
	if sum > 0 {
		out = out.times(total / sum)
	}
	return out
}

// curves are the model's means at each level of each factor.
func (f *fit) curves(coefficients []float64) [][]float64 {
	out := make([][]float64, len(f.bases))
	for i, size := range f.d.levels {
		out[i] = fill(size, coefficients[0])
	}
	at := 1
	for _, b := range f.chosen {
		for _, term := range b.terms {
			if i := b.factors[0]; b.factors[1] < 0 {
				for level := range out[i] {
					out[i][level] += coefficients[at] * f.bases[i].values[term[0]][level]
				}
			}
			at++
		}
	}
	return out
}

// orthogonal is a least-squares fit that grows column by column (modified Gram-Schmidt).
type orthogonal struct {
	columns  [][]float64
	residual []float64
	// leverage is the diagonal of the hat matrix.
	leverage []float64
	// size is the sum of squares before the fit.
	size float64
}

// newOrthogonal fits the mean.
func newOrthogonal(y []float64, use []int) *orthogonal {
	n := len(use)
	q := &orthogonal{residual: make([]float64, n), leverage: fill(n, 1/float64(n))}
	for i, cell := range use {
		q.residual[i] = y[cell]
	}
	m := mean(q.residual)
	for i := range q.residual {
		q.residual[i] -= m
		q.size += q.residual[i] * q.residual[i]
	}
	return q
}

// add takes one more column into the fit, unless it is a sum of those before.
func (q *orthogonal) add(column []float64, use []int) {
	v := make([]float64, len(use))
	for i, cell := range use {
		v[i] = column[cell]
	}
	before := dot(v, v)
	for range 2 {
		m := mean(v)
		for i := range v {
			v[i] -= m
		}
		for _, c := range q.columns {
			along := dot(v, c)
			for i := range v {
				v[i] -= along * c[i]
			}
		}
	}
	size := math.Sqrt(dot(v, v))
	if !(size > 1e-8*math.Sqrt(before)) {
		return
	}
	for i := range v {
		v[i] /= size
	}
	along := dot(v, q.residual)
	for i := range v {
		q.residual[i] -= along * v[i]
		q.leverage[i] += v[i] * v[i]
	}
	q.columns = append(q.columns, v)
}

// error is the mean squared leave-one-out error with the correction for models that are large for their sample
// (Chapelle, Vapnik and Bengio 2002), as a share of the variance.
func (q *orthogonal) error() float64 {
	n, k := float64(len(q.residual)), float64(len(q.columns)+1)
	if q.size == 0 || n <= k {
		return math.Inf(1)
	}
	sum := 0.0
	for i, r := range q.residual {
		left := max(1-q.leverage[i], 1e-9)
		sum += r / left * (r / left)
	}
	return sum / q.size * n / (n - k) * (1 + k/n)
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// leastSquares returns the mean and the weight of each column for the cells named by use, which may name a cell more than
// once. A column that is a sum of those before has weight 0.
func leastSquares(columns [][]float64, y []float64, use []int) []float64 {
	all := make([][]float64, 0, len(columns)+1)
	all = append(all, fill(len(y), 1))
	all = append(all, columns...)
	k := len(all)
	q, r := make([][]float64, k), make([][]float64, k)
	residual, along := make([]float64, len(use)), make([]float64, k)
	for i, cell := range use {
		residual[i] = y[cell]
	}
	for j, column := range all {
		v := make([]float64, len(use))
		for i, cell := range use {
			v[i] = column[cell]
		}
		r[j] = make([]float64, k)
		before := dot(v, v)
		for i := range j {
			if q[i] == nil {
				continue
			}
			r[i][j] = dot(v, q[i])
			for n := range v {
				v[n] -= r[i][j] * q[i][n]
			}
		}
		size := math.Sqrt(dot(v, v))
		if !(size > 1e-7*math.Sqrt(before)) {
			continue
		}
		r[j][j] = size
		for n := range v {
			v[n] /= size
		}
		q[j] = v
		along[j] = dot(v, residual)
		for n := range v {
			residual[n] -= along[j] * v[n]
		}
	}
	out := make([]float64, k)
	for j := k - 1; j >= 0; j-- {
		if q[j] == nil {
			continue
		}
		v := along[j]
		for i := j + 1; i < k; i++ {
			v -= r[j][i] * out[i]
		}
		out[j] = v / r[j][j]
	}
	return out
}
