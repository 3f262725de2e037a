package xyplot

import (
	"embed"
	"html/template"
	"strings"
)

//go:embed charts.html
var files embed.FS

var charts = template.Must(template.ParseFS(files, "charts.html"))

//go:embed xyplot.css
var style string

// Style is the style sheet of plots.
func Style() string { return style }

// HTML is a grid of plots that are laid out, for a page with the style sheet.
func HTML(list []Chart) (template.HTML, error) {
	type line struct {
		Name, Path string
		Colour     int
		Points     [][2]float64
	}
	type plot struct {
		Chart
		XTicks, YTicks []tick
		Equal          string
		Width, Height  float64
		Named          bool
		Lines          []line
	}
	var plots []plot
	for _, c := range list {
		p := plot{Chart: c, XTicks: c.xTicks, YTicks: c.yTicks, Equal: c.diagonal, Width: width, Height: height, Named: len(c.Series) > 1}
		for _, s := range c.Series {
			p.Lines = append(p.Lines, line{s.Name, s.path, s.Colour, s.points})
		}
		plots = append(plots, p)
	}
	var b strings.Builder
	err := charts.Execute(&b, plots)
	return template.HTML(b.String()), err
}
