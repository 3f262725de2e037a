package tracereport

import (
	"fmt"
	"math"
	"strings"
)

// chart is one plot: its data, and where everything is drawn once it is laid out.
type chart struct {
	Title, Note    string
	XLabel, YLabel string
	Series         []series
	XTicks, YTicks []tick
}

// The size of a plot's area in the units of the drawing; around it is room for labels.
const plotWidth, plotHeight = 600.0, 220.0

// Width and Height are the size of the area.
func (c chart) Width() float64 { return plotWidth }

// Height is the area's.
func (c chart) Height() float64 { return plotHeight }

// Named reports whether the series need a key.
func (c chart) Named() bool { return len(c.Series) > 1 }

// series is a line of a plot.
type series struct {
	Name   string
	Colour int
	// Steps draws each value up to the next one's place, Dots marks each value.
	Steps, Dots bool
	// Path is the line, Points are the dots.
	Path   string
	Points [][2]float64
	x, y   []float64
}

func (s *series) add(x, y float64) { s.x, s.y = append(s.x, x), append(s.y, y) }

// tick is a grid line with its label.
type tick struct {
	At    float64
	Label string
}

// scale maps values to a length.
type scale struct {
	low, high, length float64
	logarithmic       bool
}

const (
	linear      = false
	logarithmic = true
)

func (s scale) at(v float64) float64 {
	if s.logarithmic {
		return s.length * math.Log(math.Max(v, s.low)/s.low) / math.Log(s.high/s.low)
	}
	return s.length * (v - s.low) / (s.high - s.low)
}

// lay computes ticks and paths.
func (c *chart) lay(xLogarithmic, yLogarithmic bool) {
	lowX, highX := math.Inf(1), math.Inf(-1)
	highY := 0.0
	for _, s := range c.Series {
		for i := range s.x {
			lowX, highX, highY = min(lowX, s.x[i]), max(highX, s.x[i]), max(highY, s.y[i])
		}
	}
	var xValues []float64
	across := scale{lowX, highX, plotWidth, xLogarithmic}
	if xLogarithmic {
		across.low = max(lowX, .5)
		across.high = max(highX, 2*across.low)
		xValues = powers(across.low, across.high)
	} else {
		across.high = max(highX, lowX+1e-9)
		xValues = steps(across.low, across.high, 8)
	}
	yValues := steps(0, max(highY, 1e-9), 5)
	top := yValues[len(yValues)-1]
	if top < highY {
		top += yValues[1]
		yValues = append(yValues, top)
	}
	up := scale{0, top, plotHeight, yLogarithmic}
	for _, v := range xValues {
		c.XTicks = append(c.XTicks, tick{across.at(v), label(v)})
	}
	for _, v := range yValues {
		c.YTicks = append(c.YTicks, tick{plotHeight - up.at(v), label(v)})
	}
	for i := range c.Series {
		c.Series[i].draw(across, up)
	}
}

func (s *series) draw(across, up scale) {
	var path strings.Builder
	for i := range s.x {
		x, y := across.at(s.x[i]), plotHeight-up.at(s.y[i])
		switch {
		case i == 0:
			fmt.Fprintf(&path, "M%.1f %.1f", x, y)
		case s.Steps:
			fmt.Fprintf(&path, "H%.1fV%.1f", x, y)
		default:
			fmt.Fprintf(&path, "L%.1f %.1f", x, y)
		}
		if s.Dots {
			s.Points = append(s.Points, [2]float64{x, y})
		}
	}
	s.Path = path.String()
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
		if v >= unit.size {
			return fmt.Sprintf("%.4g%s", v/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.4g", v)
}
