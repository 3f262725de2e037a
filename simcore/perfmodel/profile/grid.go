package profile

import (
	"fmt"
	"slices"
)

// maxAxes is the number of axes of a grid. One that has fewer leaves the last ones nil.
const maxAxes = 3

// point is a place in a grid, one coordinate an axis.
type point [maxAxes]float64

// axis holds the coordinates along one axis of a grid, increasing. A nil axis does not exist; along an axis of one
// point values are constant, but only that point was measured.
type axis []float64

// grid is a function of up to three variables given by its values on a rectangular grid.
type grid struct {
	axes [maxAxes]axis
	// values are in ms, the last axis varies fastest.
	values []float64
}

// The bounds of what a grid may hold keep every interpolated and extrapolated value finite.
const (
	maxMs         = 9e12 // about 285 years, the longest pass of the clock
	maxCoordinate = 1e15 // tokens or requests
	minGap        = 1e-6 // between neighbours on an axis, tokens or requests
)

// at interpolates linearly along each axis and continues the outermost segments.
func (g *grid) at(p point) float64 {
	i, t := g.axes[0].segment(p[0])
	j, u := g.axes[1].segment(p[1])
	k, v := g.axes[2].segment(p[2])
	depth := max(1, len(g.axes[2]))
	row := max(1, len(g.axes[1])) * depth
	near := g.along(i*row+j*depth+k, len(g.axes[1]) > 1, depth, u, v)
	if len(g.axes[0]) < 2 {
		return near
	}
	return lerp(near, g.along((i+1)*row+j*depth+k, len(g.axes[1]) > 1, depth, u, v), t)
}

// along interpolates the last two axes from the corner at an index; next is the distance to the neighbour along the
// second axis, which need not exist.
func (g *grid) along(index int, neighbour bool, next int, u, v float64) float64 {
	near := g.last(index, v)
	if !neighbour {
		return near
	}
	return lerp(near, g.last(index+next, v), u)
}

func (g *grid) last(index int, v float64) float64 {
	if len(g.axes[2]) < 2 {
		return g.values[index]
	}
	return lerp(g.values[index], g.values[index+1], v)
}

// lerp is a at t = 0. The conversion keeps the compiler from fusing the product on some architectures.
func lerp(a, b, t float64) float64 { return a + float64(t*(b-a)) }

// segment returns the segment to use for x, the one it lies in or the outermost, and the position along it.
func (a axis) segment(x float64) (int, float64) {
	if len(a) < 2 {
		return 0, 0
	}
	low, high := 0, len(a)-1 // the segment starts at low or later, before high
	for high-low > 1 {
		if middle := int(uint(low+high) >> 1); a[middle] <= x {
			low = middle
		} else {
			high = middle
		}
	}
	return low, (x - a[low]) / (a[low+1] - a[low])
}

// covers reports whether a point lies within the grid.
func (g *grid) covers(p point) bool {
	for i, a := range g.axes {
		if len(a) > 0 && !(p[i] >= a[0] && p[i] <= a[len(a)-1]) {
			return false
		}
	}
	return true
}

// constantAlong reports that values do not change along an axis.
func (g *grid) constantAlong(which int) bool {
	stride := 1
	for _, a := range g.axes[which+1:] {
		stride *= max(1, len(a))
	}
	length := max(1, len(g.axes[which]))
	for i, v := range g.values {
		if i/stride%length > 0 && v != g.values[i-stride] {
			return false
		}
	}
	return true
}

// checkAxis says what keeps numbers from being the coordinates of an axis with segments.
func checkAxis(a []float64) error {
	if len(a) < 2 {
		return fmt.Errorf("has %d values; an axis needs 2 or more", len(a))
	}
	for i, x := range a {
		switch {
		case !(x >= 0 && x <= maxCoordinate):
			return fmt.Errorf("value %d is %v; give 0 or more, finite", i+1, x)
		case i > 0 && x-a[i-1] < minGap:
			return fmt.Errorf("value %d, %v, is not above value %d, %v; an axis must increase", i+1, x, i, a[i-1])
		}
	}
	return nil
}

// checkMs says which of a grid's values is no duration.
func checkMs(values []float64) error {
	if i := slices.IndexFunc(values, func(v float64) bool { return !(v >= 0 && v <= maxMs) }); i >= 0 {
		return fmt.Errorf("value %d is %v; give a duration in ms, 0 or more, finite", i+1, values[i])
	}
	return nil
}
