// Package xyplot draws lines and dots over two axes as SVG, for pages that need no script. Read chart.go for what a plot holds,
// layout.go for where it goes, and html.go for how it becomes a part of a page.
package xyplot

// Chart is one plot: its data and, once it is laid out, where everything is drawn.
type Chart struct {
	// Title heads it, Note stands below that.
	Title, Note string
	// XLabel and YLabel say what the axes are, with their units.
	XLabel, YLabel string
	Series         []Series
	// Diagonal draws the line on which both axes have the same value.
	Diagonal bool

	xTicks, yTicks []tick
	diagonal       string
}

// Series is a line of a plot.
type Series struct {
	// Name tells it from the others, and Colour numbers the colours of the page: 0 or 1.
	Name   string
	Colour int
	// Steps draws each value up to the next one's place, Dots marks each value, and Apart leaves the line between values out.
	Steps, Dots, Apart bool

	x, y   []float64
	path   string
	points [][2]float64
}

// Add appends a value at a place.
func (s *Series) Add(x, y float64) { s.x, s.y = append(s.x, x), append(s.y, y) }

// tick is a grid line with its label.
type tick struct {
	At    float64
	Label string
}

// Scale says how an axis maps values to its length.
type Scale bool

// The scales of an axis. A logarithmic one shows what is not above 0 at its low end.
const (
	Linear      Scale = false
	Logarithmic Scale = true
)
