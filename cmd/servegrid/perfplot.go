package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// latencyPlot is the SVG file of perf show: decode over batch and context beside prefill over new tokens and prefix.
// Equal deployments give equal bytes.
type latencyPlot struct {
	Title, Subtitle string
	Panels          []plotPanel
	Key             []plotKey
}

// The size of a panel's area and its place, in the units of the drawing.
const (
	panelWidth, panelHeight = 404.0, 380.0
	firstPanelX, panelY     = 62.0, 124.0
	panelDistance           = 548.0
	labelWidth, labelHeight = 60.0, 15.0
)

type plotPanel struct {
	X, Y, Width, Height float64
	Title, XLabel       string
	LinesBy             string
	XTicks, YTicks      []plotTick
	Lines               []*plotLine
}

// plotTick is a grid line; minor ones have no label.
type plotTick struct {
	At    float64
	Label string
	Minor bool
}

// plotLine is one context or prefix.
type plotLine struct {
	// Colour numbers the colours of the style sheet.
	Colour        int
	Name, Tooltip string
	// Measured and Extrapolated are the path data of the two parts of the line.
	Measured, Extrapolated string
	// EndX and EndY are where the line ends, Full because there is no memory for more.
	EndX, EndY float64
	Full       bool
	LabelX     float64
	LabelY     float64
	points     []plotPoint
}

// plotPoint is a priced pass; x is the batch or the new tokens.
type plotPoint struct {
	x, ms        float64
	extrapolated bool
}

// plotKey explains one kind of mark: "line", "dash" or "ring".
type plotKey struct {
	X    float64
	Mark string
	Text string
}

//go:embed perfplot.svg
var plotTemplateText string

var plotTemplate = template.Must(template.New("perfplot.svg").Funcs(template.FuncMap{
	"px":   func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"add":  func(a, b float64) float64 { return a + b },
	"text": func(s string) string { return template.HTMLEscapeString(visible(s)) },
}).Parse(plotTemplateText))

func (p *latencyPlot) write(w io.Writer) error { return plotTemplate.Execute(w, p) }

func newLatencyPlot(d *deployment) *latencyPlot {
	p := &latencyPlot{Title: d.title(), Subtitle: d.subtitle()}
	decode := plotPanel{Title: "Decode pass", XLabel: "batch: sequences that get a token", LinesBy: "context"}
	for i, context := range shownContexts {
		line := &plotLine{Colour: i, Name: count(context), Tooltip: fmt.Sprintf("context of %s tokens", count(context))}
		line.price(d, sampled(1, 512), func(batch int) (ms float64, extrapolated, fits bool) {
			p := d.decode(batch, context)
			return p.Ms, p.Extrapolated, p.Fits
		})
		decode.Lines = append(decode.Lines, line)
	}
	prefill := plotPanel{Title: "Prefill pass of one prompt", XLabel: "new tokens", LinesBy: "prefix"}
	for i, prefix := range shownPrefixes {
		line := &plotLine{Colour: i, Name: count(prefix), Tooltip: fmt.Sprintf("after %s tokens that exist already", count(prefix))}
		line.price(d, sampled(16, 32768), func(fresh int) (ms float64, extrapolated, fits bool) {
			p := d.prefill(fresh, prefix)
			return p.Ms, p.Extrapolated, p.Fits
		})
		prefill.Lines = append(prefill.Lines, line)
	}
	decode.lay(firstPanelX, 1, 512, 4)
	prefill.lay(firstPanelX+panelDistance, 16, 32768, 8)
	p.Panels = []plotPanel{decode, prefill}
	p.addKey(d)
	return p
}

// price adds the points of a line, as far as the KV cache has room for them unless the model does not fit at all.
func (l *plotLine) price(d *deployment, xs []int, of func(x int) (ms float64, extrapolated, fits bool)) {
	for _, x := range xs {
		ms, extrapolated, fits := of(x)
		if l.Full = d.full == nil && !fits; l.Full {
			return
		}
		l.points = append(l.points, plotPoint{float64(x), ms, extrapolated})
	}
}

// title is "llama-3.1-8b bf16 on H200 SXM 141GB".
func (d *deployment) title() string {
	gpu := d.timing.GPU
	if g, ok := gpuData(gpu); ok {
		gpu = g.Name
	}
	return fmt.Sprintf("%s %s on %s", d.timing.Model, d.timing.DType, gpu)
}

func (d *deployment) subtitle() string {
	p := d.provenance
	if d.timing.Source == perfmodel.SourceAnalytic {
		return fmt.Sprintf("%s · analytic estimate, ±%s %% in prefill, ±%s %% in decode", d.engineText(), errorPct(p.PrefillErrorPct), errorPct(p.DecodeErrorPct))
	}
	return fmt.Sprintf("%s · %s, generated %s · p99 error against it: prefill %s %%, decode %s %%",
		d.engineText(), d.row.Generator, d.row.Measured, errorPct(p.PrefillErrorPct), errorPct(p.DecodeErrorPct))
}

// sampled lists whole numbers from low to high: all small ones, then 24 an octave with every power of two.
func sampled(low, high int) []int {
	const perOctave = 24
	var out []int
	for n, k := low, 0; n <= high; k++ {
		if len(out) == 0 || n > out[len(out)-1] {
			out = append(out, n)
		}
		n = int(math.Round(float64(low) * math.Exp2(float64(k+1)/perOctave)))
	}
	return out
}

// logScale maps values to a length, logarithmically.
type logScale struct{ low, high, length float64 }

func (s logScale) at(v float64) float64 { return s.length * math.Log(v/s.low) / math.Log(s.high/s.low) }

// lay places the panel and computes ticks, paths and labels; x labels stand at every step-th power of two.
func (p *plotPanel) lay(x, low, high, step float64) {
	p.X, p.Y, p.Width, p.Height = x, panelY, panelWidth, panelHeight
	p.Lines = slices.DeleteFunc(p.Lines, func(l *plotLine) bool { return len(l.points) == 0 })
	across := logScale{low, high, panelWidth}
	for v := low; v <= high; v *= 2 {
		labelled := math.Mod(math.Log2(v/low), math.Log2(step)) == 0
		tick := plotTick{At: across.at(v), Minor: !labelled}
		if labelled {
			tick.Label = count(int(v))
		}
		p.XTicks = append(p.XTicks, tick)
	}
	up, ticks := msScale(p.Lines)
	p.YTicks = ticks
	for _, l := range p.Lines {
		l.draw(across, up)
	}
	spreadLabels(p.Lines)
}

// msScale spans the times of all lines between two ticks.
func msScale(lines []*plotLine) (logScale, []plotTick) {
	least, most := math.Inf(1), 0.0
	for _, l := range lines {
		for _, pt := range l.points {
			least, most = min(least, pt.ms), max(most, pt.ms)
		}
	}
	if !(least > 0 && most < math.Inf(1)) {
		least, most = 1, 10
	}
	values := ticksAround(least, most)
	scale := logScale{values[0], values[len(values)-1], panelHeight}
	var ticks []plotTick
	for _, v := range values {
		ticks = append(ticks, plotTick{At: panelHeight - scale.at(v), Label: settingFigure(v)})
	}
	return scale, ticks
}

// ticksAround lists round numbers from at most low to at least high, more of a decade when there are few decades.
func ticksAround(low, high float64) []float64 {
	digits := []float64{1, 2, 5}
	if high/low < 20 {
		digits = []float64{1, 1.5, 2, 3, 5, 7}
	}
	var values []float64
	for decade := math.Floor(math.Log10(low)); decade <= math.Ceil(math.Log10(high)); decade++ {
		for _, digit := range digits {
			v := math.Round(digit*math.Pow(10, decade)*1e9) / 1e9 // powers are not exact on every machine
			if len(values) == 1 && v <= low {
				values = nil
			}
			if len(values) < 2 || values[len(values)-1] < high {
				values = append(values, v)
			}
		}
	}
	return values
}

// draw makes the paths of a line. A segment is extrapolated when one of its ends is.
func (l *plotLine) draw(across, up logScale) {
	var measured, extrapolated strings.Builder
	var last *strings.Builder
	for i, pt := range l.points {
		x, y := across.at(pt.x), up.length-up.at(pt.ms)
		if i > 0 {
			to := &measured
			if pt.extrapolated || l.points[i-1].extrapolated {
				to = &extrapolated
			}
			if to != last {
				fmt.Fprintf(to, "M%.1f %.1f", l.EndX, l.EndY)
				last = to
			}
			fmt.Fprintf(to, "L%.1f %.1f", x, y)
		}
		l.EndX, l.EndY = x, y
	}
	l.Measured, l.Extrapolated = measured.String(), extrapolated.String()
	l.LabelX, l.LabelY = l.EndX+9, l.EndY
}

// spreadLabels moves labels of lines that end close to each other apart, each as far as the other.
func spreadLabels(lines []*plotLine) {
	order := slices.Clone(lines)
	slices.SortStableFunc(order, func(a, b *plotLine) int { return cmp.Compare(a.LabelY, b.LabelY) })
	const rounds = 50 // far more than it takes to settle
	for range rounds {
		for i, lower := range order {
			for _, upper := range order[:i] {
				overlap := labelHeight - (lower.LabelY - upper.LabelY)
				if overlap > 0 && math.Abs(lower.LabelX-upper.LabelX) < labelWidth {
					upper.LabelY -= overlap / 2
					lower.LabelY += overlap / 2
				}
			}
		}
	}
}

// addKey explains the marks that occur.
func (p *latencyPlot) addKey(d *deployment) {
	var extrapolated, full bool
	for _, panel := range p.Panels {
		for _, l := range panel.Lines {
			extrapolated = extrapolated || l.Extrapolated != ""
			full = full || l.Full
		}
	}
	line := "inside of what was measured"
	if d.timing.Source == perfmodel.SourceAnalytic {
		line = "roofline"
	}
	x := firstPanelX
	add := func(mark, text string) {
		p.Key = append(p.Key, plotKey{x, mark, text})
		x += 66 + 6.6*float64(len(text))
	}
	add("line", line)
	if extrapolated {
		add("dash", "extrapolated")
	}
	if full {
		add("ring", "no memory for more KV cache")
	}
	if d.full != nil {
		add("", "The model does not fit into the memory of the GPU at these settings.")
	}
}
