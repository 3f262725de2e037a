package sensitivity

import "math"

// mostFilled bounds the combinations of a grid that a model fills.
const mostFilled = 200_000

// fillable reports whether the cells are a part of a grid: few values along each axis, and not too many combinations.
func (d *design) fillable() bool {
	n := 1
	for _, l := range d.levels {
		if n *= l; l > mostUniformLevels || n > mostFilled {
			return false
		}
	}
	return true
}

// filling is a grid with gaps, which a model fills.
type filling struct {
	grid *design
	// y are the values of the grid, gaps its cells without one.
	y    []float64
	gaps []gap
}

// gap is a combination without a value. What a model predicts there is believed within bounds only, since polynomials run away
// where there are no points: those of its nearest neighbours along each axis where most combinations have a value, and of all values
// in a sparse grid, whose neighbours are far.
type gap struct {
	cell      int
	low, high float64
}

func (d *design) filling() *filling {
	size := 1
	for _, l := range d.levels {
		size *= l
	}
	f := &filling{grid: &design{levels: d.levels, names: d.names, level: make([][]int, len(d.levels))}, y: fill(size, math.NaN())}
	stride := size
	strides := make([]int, len(d.levels))
	for i, l := range d.levels {
		stride /= l
		strides[i] = stride
		f.grid.level[i] = make([]int, size)
		for cell := range size {
			f.grid.level[i][cell] = cell / stride % l
		}
	}
	sparse := 2*len(d.y) < size
	lowest, highest := math.Inf(1), math.Inf(-1)
	for cell, v := range d.y {
		at := 0
		for i := range d.levels {
			at += d.level[i][cell] * strides[i]
		}
		f.y[at], lowest, highest = v, min(lowest, v), max(highest, v)
	}
	for cell, v := range f.y {
		if !math.IsNaN(v) {
			continue
		}
		g := gap{cell: cell, low: math.Inf(1), high: math.Inf(-1)}
		for i, l := range d.levels {
			if sparse {
				break
			}
			f.reach(&g, cell, strides[i], l-1-f.grid.level[i][cell])
			f.reach(&g, cell, -strides[i], f.grid.level[i][cell])
		}
		if g.low > g.high {
			g.low, g.high = lowest, highest
		}
		f.gaps = append(f.gaps, g)
	}
	return f
}

// reach widens the bounds of a gap by the first value in one direction, which has so many cells.
func (f *filling) reach(g *gap, cell, step, cells int) {
	for range cells {
		if cell += step; !math.IsNaN(f.y[cell]) {
			g.low, g.high = min(g.low, f.y[cell]), max(g.high, f.y[cell])
			return
		}
	}
}

// values are those of the grid with its gaps filled by a model.
func (f *filling) values(m *fit, coefficients []float64) []float64 {
	y := make([]float64, len(f.y))
	copy(y, f.y)
	for _, g := range f.gaps {
		v, at := coefficients[0], 1
		for _, b := range m.chosen {
			for _, term := range b.terms {
				v += coefficients[at] * b.value(m.bases, term, f.grid, g.cell)
				at++
			}
		}
		y[g.cell] = max(g.low, min(g.high, v))
	}
	return y
}
