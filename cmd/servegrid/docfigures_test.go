package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/results"
)

// wantBlock checks that a page has a text between two comments that name it, or writes it there.
func wantBlock(t *testing.T, page, name, text string) {
	t.Helper()
	path := filepath.Join(repository, "docs", page)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(old), "<!-- "+name+": from TestExamples -->\n")
	shown, after, ended := strings.Cut(rest, "<!-- end -->")
	switch {
	case !found || !ended:
		t.Fatalf("docs/%s has no block %s", page, name)
	case shown == text:
	case *update:
		whole := before + "<!-- " + name + ": from TestExamples -->\n" + text + "<!-- end -->" + after
		if err := os.WriteFile(path, []byte(whole), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/%s shows other figures; run go test -run TestExamples ./cmd/servegrid -update\n%s", page, text)
	}
}

// meansOf are the means of columns over the rows of which the axes have the same values, in the order of the first ones.
func meansOf(t *testing.T, table *results.Table, axes []string, columns ...string) (groups []string, means map[string][]float64) {
	t.Helper()
	means = map[string][]float64{}
	counts := map[string]float64{}
	for row := range table.Rows() {
		var words []string
		for _, axis := range axes {
			words = append(words, table.Column(axis).Text(row))
		}
		group := strings.Join(words, " ")
		if counts[group]++; counts[group] == 1 {
			groups = append(groups, group)
			means[group] = make([]float64, len(columns))
		}
		for i, column := range columns {
			means[group][i] += floats(t, table, column)[row]
		}
	}
	for group, sums := range means {
		for i := range sums {
			sums[i] /= counts[group]
		}
	}
	return groups, means
}

// wantPicture checks that docs has a picture, or writes it there.
func wantPicture(t *testing.T, name, svg string) {
	t.Helper()
	path := filepath.Join(repository, "docs", name)
	if *update {
		if err := os.WriteFile(path, []byte(svg), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if shown, err := os.ReadFile(path); err != nil || string(shown) != svg {
		t.Errorf("docs/%s is another picture (%v); run go test -run TestExamples ./cmd/servegrid -update", name, err)
	}
}

// curve is a line of a panel. Curves with a label are named beside the last panel.
type curve struct {
	label, colour string
	x, y          []float64
}

// panel is one plot of a picture: from 0 to right along its axis, and from 0 to top, where curves are cut off. A bound above 0
// is a dashed line.
type panel struct {
	title, axis       string
	right, top, bound float64
	curves            []curve
}

// drawPanels draws plots side by side as an SVG file.
func drawPanels(panels ...panel) string {
	const height, left, wide, gap = 300, 56, 176, 56
	legend := 0
	for _, c := range panels[len(panels)-1].curves {
		if c.label != "" {
			legend = 96
		}
	}
	width := left + len(panels)*(wide+gap) - gap + 24 + legend
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	for i, p := range panels {
		p.draw(&b, float64(left+i*(wide+gap)), wide)
	}
	for i, c := range panels[len(panels)-1].curves {
		if c.label != "" {
			y := 56 + 18*i
			fmt.Fprintf(&b, `<path d="M%d %dh16" stroke="%s" stroke-width="2"/><text x="%d" y="%d">%s</text>`+"\n", width-legend, y-4, c.colour, width-legend+20, y, c.label)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p *panel) draw(b *strings.Builder, x0, wide float64) {
	x := func(v float64) float64 { return x0 + v/p.right*wide }
	y := func(v float64) float64 { return 250 - v/p.top*200 }
	fmt.Fprintf(b, `<text x="%.0f" y="30" font-weight="bold">%s</text>`+"\n", x0, p.title)
	for k := range 5 {
		v := p.top * float64(k) / 4
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end" fill="#555">%g</text>`+"\n", x0, y(v), x(p.right), x0-5, y(v)+4, v)
	}
	for k := range 5 {
		v := p.right * float64(k) / 4
		fmt.Fprintf(b, `<text x="%.1f" y="266" text-anchor="middle" fill="#555">%g</text>`+"\n", x(v), v)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="284" text-anchor="middle" fill="#555">%s</text>`+"\n", x(p.right/2), p.axis)
	if p.bound > 0 {
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#888" stroke-dasharray="4 3"/>`+"\n", x0, y(p.bound), x(p.right))
	}
	for _, c := range p.curves {
		var points []string
		for i := range c.x {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(c.x[i]), y(math.Min(p.top, c.y[i]))))
		}
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", c.colour, strings.Join(points, " "))
	}
}
