package sensitivity

// decomposition holds how much of the variance each axis and each pair of axes makes up.
type decomposition struct {
	// total is the variance of the cells, explained the share of it that the decomposition knows.
	total, explained float64
	// first is what an axis does by itself, all what it does together with others as well; both as variances.
	first, all []float64
	// pair holds the interactions of two axes, i < j.
	pair [][]float64
	// curve holds the mean at each level, by factor.
	curve [][]float64
}

// scaled takes a part of every share for unknown.
func (d decomposition) scaled(explained float64) decomposition {
	total := d.total
	d = d.times(explained)
	d.total, d.explained = total, explained
	return d
}

// times scales all variances.
func (d decomposition) times(factor float64) decomposition {
	d.total *= factor
	for i := range d.first {
		d.first[i] *= factor
		d.all[i] *= factor
		for j := range d.pair[i] {
			d.pair[i][j] *= factor
		}
	}
	return d
}

// decompose is the analysis of variance of a complete grid with every level counting the same: the means over all else
// tell what an axis does (Sobol 1993; Saltelli et al., Global Sensitivity Analysis, 2008, §4.5).
func (d *design) decompose(y []float64) decomposition {
	k := len(d.levels)
	out := decomposition{total: variance(y), explained: 1, first: make([]float64, k), all: make([]float64, k), pair: make([][]float64, k), curve: make([][]float64, k)}
	for i := range k {
		out.curve[i] = groupMeans(y, d.level[i], nil, d.levels[i], 1)
		out.first[i] = variance(out.curve[i])
		out.all[i] = max(0, out.total-variance(d.withoutFactor(y, i)))
	}
	for i := range k {
		out.pair[i] = make([]float64, k)
		for j := i + 1; j < k; j++ {
			both := variance(groupMeans(y, d.level[i], d.level[j], d.levels[i], d.levels[j]))
			out.pair[i][j] = max(0, both-out.first[i]-out.first[j])
		}
	}
	return out
}

// groupMeans are the means over the cells with equal places along one or two factors.
func groupMeans(y []float64, a, b []int, sizeA, sizeB int) []float64 {
	sums, n := make([]float64, sizeA*sizeB), len(y)/(sizeA*sizeB)
	for cell, v := range y {
		at := a[cell] * sizeB
		if b != nil {
			at += b[cell]
		}
		sums[at] += v - y[0]
	}
	for i := range sums {
		sums[i] = y[0] + sums[i]/float64(n)
	}
	return sums
}

// withoutFactor are the means over one factor with all others as they are. Cells are ordered by their levels, so the place
// of a cell says them.
func (d *design) withoutFactor(y []float64, factor int) []float64 {
	stride := 1
	for _, l := range d.levels[factor+1:] {
		stride *= l
	}
	levels := d.levels[factor]
	sums := make([]float64, len(y)/levels)
	for cell, v := range y {
		sums[cell/(stride*levels)*stride+cell%stride] += v - y[0]
	}
	for i := range sums {
		sums[i] = y[0] + sums[i]/float64(levels)
	}
	return sums
}
