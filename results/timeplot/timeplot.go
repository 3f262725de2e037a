// Package timeplot draws what happened over simulated time as one HTML page that opens offline: plots that share one axis
// of time, so that zoom and cursor apply to all of them, tracks of states with their reasons, and tables.
//
// Read timeplot.go for what a page holds and payload.go for how it goes into the page; plot.js, track.js and main.js draw it.
package timeplot

import (
	"embed"
	"fmt"
	"io"

	"github.com/servegrid/servegrid/results/htmlpage"
)

// Page is what a page shows.
type Page struct {
	// Title heads the page, Subtitle stands below it, Footer at its end.
	Title, Subtitle, Footer string
	// Cautions are what to know before trusting the figures.
	Cautions []string
	Tiles    []htmlpage.Tile
	// EndSeconds is where the axis of time ends; it starts at 0.
	EndSeconds float64
	Charts     []Chart
	Tracks     []Track
	// Linked says that series of equal names are the same thing in all charts: hiding one hides all.
	Linked bool
	Tables []Table
}

// Chart is a plot.
type Chart struct {
	Title, Note, Unit string
	Series            []Series
	Levels            []Level
}

// Look is how a series is drawn.
type Look string

// The looks of series.
const (
	// Line joins the values, DashedLine does with dashes; a gap ends them.
	Line       Look = "line"
	DashedLine Look = "dash"
	// Steps keeps each value until the next, DashedSteps does with dashes; a gap ends it.
	Steps       Look = "steps"
	DashedSteps Look = "dashsteps"
	// Marks draws each value as a diamond.
	Marks Look = "marks"
)

// Series is a figure over time.
type Series struct {
	// Name tells it from others of the chart.
	Name string
	// Colour numbers the colours of the page, from 0.
	Colour int
	Look   Look
	// AtSeconds and Values are the times, in order, and the figures; NaN is a gap.
	AtSeconds, Values []float64
}

// Level is a horizontal line, such as a bound.
type Level struct {
	Name  string
	Value float64
}

// Track is a band of states over time, one row above the other.
type Track struct {
	Title, Note string
	Rows        []TrackRow
}

// TrackRow is a row of a track: from each time on it has a state. An empty name means none.
type TrackRow struct {
	Name      string
	AtSeconds []float64
	States    []string
}

// Kind says how a state looks.
type Kind string

// The kinds of states.
const (
	KindUp      Kind = "up"
	KindDown    Kind = "down"
	KindHeld    Kind = "held"
	KindRefused Kind = "refused"
	KindQuiet   Kind = "quiet"
	KindWaiting Kind = "waiting"
	KindBlind   Kind = "blind"
	KindBroken  Kind = "broken"
)

// State is what a track can show.
type State struct {
	Name, Meaning string
	Kind          Kind
}

// Table is a table below the plots. AtSeconds has the time of each row, which its first cell leads to; nil means that
// the rows have none.
type Table struct {
	htmlpage.Table
	AtSeconds []float64
}

//go:embed body.html timeplot.css plot.js track.js main.js
var files embed.FS

// Write writes the page. States are described by those given. It holds no clock time, so equal pages give equal bytes.
func Write(w io.Writer, p Page, states []State) error {
	err := htmlpage.Write(w, htmlpage.Page{
		Title: p.Title, Subtitle: p.Subtitle, Files: files, Body: "body.html", Content: p,
		Styles: []string{"timeplot.css"}, Scripts: []string{"plot.js", "track.js", "main.js"}, Data: newPayload(p, states),
	})
	if err != nil {
		return fmt.Errorf("plots over time: %w", err)
	}
	return nil
}
