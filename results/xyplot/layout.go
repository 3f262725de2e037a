package xyplot

import (
	"fmt"
	"math"
	"strings"
)

// The size of a plot's area in the units of the drawing; around it is room for labels.
const width, height = 600.0, 220.0

// axis maps values to a length.
type axis struct {
	low, high, length float64
	scale             Scale
}

func (a axis) at(v float64) float64 {
	if a.scale == Logarithmic {
		return a.length * math.Log(math.Max(v, a.low)/a.low) / math.Log(a.high/a.low)
	}
	return a.length * (v - a.low) / (a.high - a.low)
}

// extent is the range of some values.
type extent struct{ low, high float64 }

func newExtent() extent { return extent{math.Inf(1), math.Inf(-1)} }

func (e *extent) add(v float64) { e.low, e.high = min(e.low, v), max(e.high, v) }

// Lay computes where everything is drawn. The vertical axis starts at 0, or below where values do.
func (c *Chart) Lay(horizontal, vertical Scale) {
	xs, ys := newExtent(), newExtent()
	for _, s := range c.Series {
		for i := range s.x {
			xs.add(s.x[i])
			ys.add(s.y[i])
		}
	}
	across, xValues := horizontalAxis(xs, horizontal)
	up, yValues := verticalAxis(ys, vertical)
	for _, v := range xValues {
		c.xTicks = append(c.xTicks, tick{across.at(v), label(v)})
	}
	for _, v := range yValues {
		c.yTicks = append(c.yTicks, tick{height - up.at(v), label(v)})
	}
	for i := range c.Series {
		c.Series[i].draw(across, up)
	}
	if from, to := max(across.low, up.low), min(across.high, up.high); c.Diagonal && from < to {
		c.diagonal = fmt.Sprintf("M%.1f %.1fL%.1f %.1f", across.at(from), height-up.at(from), across.at(to), height-up.at(to))
	}
}

func horizontalAxis(of extent, scale Scale) (axis, []float64) {
	a := axis{of.low, of.high, width, scale}
	if scale == Logarithmic {
		a.low = max(of.low, .5)
		a.high = max(of.high, 2*a.low)
		return a, powers(a.low, a.high)
	}
	a.high = max(of.high, of.low+1e-9)
	return a, steps(a.low, a.high, 8)
}

func verticalAxis(of extent, scale Scale) (axis, []float64) {
	if scale == Logarithmic {
		a := axis{max(of.low, .5), 0, height, scale}
		a.high = max(of.high, 2*a.low)
		return a, powers(a.low, a.high)
	}
	low := min(of.low, 0)
	values := steps(low, max(of.high, low+1e-9), 5)
	step := values[1] - values[0]
	if top := values[len(values)-1]; top < of.high {
		values = append(values, top+step)
	}
	if values[0] > low {
		values = append([]float64{values[0] - step}, values...)
	}
	return axis{values[0], values[len(values)-1], height, scale}, values
}

func (s *Series) draw(across, up axis) {
	var path strings.Builder
	for i := range s.x {
		x, y := across.at(s.x[i]), height-up.at(s.y[i])
		switch {
		case s.Apart:
		case i == 0:
			fmt.Fprintf(&path, "M%.1f %.1f", x, y)
		case s.Steps:
			fmt.Fprintf(&path, "H%.1fV%.1f", x, y)
		default:
			fmt.Fprintf(&path, "L%.1f %.1f", x, y)
		}
		if s.Dots {
			s.points = append(s.points, [2]float64{x, y})
		}
	}
	s.path = path.String()
}

// steps lists about n multiples of 1, 2 or 5 times a power of ten that lie from low to high.
func steps(low, high float64, n int) []float64 {
	raw := (high - low) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw {
			step = m * power
			break
		}
	}
	var out []float64
	for k := math.Ceil(low / step); k*step <= high*(1+1e-9) || len(out) < 2; k++ {
		out = append(out, k*step)
	}
	return out
}

// powers lists powers of ten from low to high, or of two when there are few of those.
func powers(low, high float64) []float64 {
	base := 10.0
	if high/low < 1000 {
		base = 2
	}
	var out []float64
	for k := math.Ceil(math.Log(low) / math.Log(base)); math.Pow(base, k) <= high*(1+1e-9); k++ {
		out = append(out, math.Pow(base, k))
	}
	return out
}

// label is a tick's value: 1,000 is 1k.
func label(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.size {
			return fmt.Sprintf("%.4g%s", v/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.4g", v)
}
