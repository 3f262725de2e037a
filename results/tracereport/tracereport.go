// Package tracereport shows what is in a trace as one HTML page that opens offline: lengths, arrivals, what is in flight
// over time, what a prefix cache could reuse, gaps and subagents. Read tracereport.go, then charts.go for what is drawn.
package tracereport

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/results/htmlpage"
	"github.com/servegrid/servegrid/results/xyplot"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Summary is what is known of a trace; its JSON is what `servegrid trace stats --json` prints.
type Summary struct {
	// Name, Format and Digest say which trace it is, Detected how its format shows, if nobody named it.
	Name     string `json:"name"`
	Format   string `json:"format"`
	Detected string `json:"detected,omitempty"`
	Digest   string `json:"digest"`
	// LeftOut counts what of it was damaged and left out; Warnings are those of the loader.
	LeftOut  int      `json:"left_out_records"`
	Warnings []string `json:"warnings,omitempty"`
	workload.Statistics
	Histograms workload.Histograms `json:"histograms"`
	// Timeline is made with Rates where the trace does not say how long requests took.
	Timeline workload.Timeline     `json:"timeline"`
	Rates    workload.ServiceRates `json:"service_rates"`
}

// ServiceText says where the duration of requests comes from.
func (s Summary) ServiceText() string {
	assumed := fmt.Sprintf("assuming %s prompt tokens and %s output tokens per second", htmlpage.Number(s.Rates.PrefillTokensPerSecond), htmlpage.Number(s.Rates.DecodeTokensPerSecond))
	switch {
	case s.Timeline.Recorded == 1:
		return "with the recorded durations"
	case s.Timeline.Recorded == 0:
		return assumed
	}
	return fmt.Sprintf("with the recorded durations of %s %% of the requests, for the others %s", htmlpage.Number(100*s.Timeline.Recorded), assumed)
}

//go:embed body.html
var files embed.FS

// Write writes the page. It holds no clock time, so equal data gives equal bytes.
func Write(w io.Writer, s Summary) error {
	described := "Trace in the format " + s.Format
	if s.Detected != "" {
		described = s.Detected
	}
	charts, err := xyplot.HTML(s.charts())
	if err != nil {
		return fmt.Errorf("trace page: %w", err)
	}
	err = htmlpage.Write(w, htmlpage.Page{
		Title: s.Name, Subtitle: described, Files: files, Body: "body.html", Style: xyplot.Style(),
		Content: struct {
			Digest   string
			Cautions []string
			Tiles    []htmlpage.Tile
			Tables   []htmlpage.Table
			Charts   template.HTML
		}{s.Digest, s.cautions(), s.tiles(), s.tables(), charts},
	})
	if err != nil {
		return fmt.Errorf("trace page: %w", err)
	}
	return nil
}

func (s Summary) cautions() []string {
	if s.LeftOut > 0 {
		return append([]string{htmlpage.Whole(s.LeftOut) + " damaged records or files of the trace are left out."}, s.Warnings...)
	}
	return s.Warnings
}

func (s Summary) tiles() []htmlpage.Tile {
	tiles := []htmlpage.Tile{
		{Label: "Requests", Figure: htmlpage.Whole(s.Requests), Note: fmt.Sprintf("in %s sessions of %s turns on average", htmlpage.Whole(s.Sessions), htmlpage.Number(s.Turns.Mean))},
		{Label: "Input", Figure: htmlpage.Number(s.InputTokens.Mean), Unit: "tokens, mean", Note: fmt.Sprintf("half above %s, at most %s", htmlpage.Number(s.InputTokens.P50), htmlpage.Number(s.InputTokens.Max))},
		{Label: "Output", Figure: htmlpage.Number(s.OutputTokens.Mean), Unit: "tokens, mean", Note: fmt.Sprintf("half above %s, at most %s", htmlpage.Number(s.OutputTokens.P50), htmlpage.Number(s.OutputTokens.Max))},
	}
	if a := s.Arrivals; a != nil && a.SpanMs > 0 {
		tiles = append(tiles, htmlpage.Tile{Label: "Starts", Figure: htmlpage.Number(a.Rate), Unit: "per second", Note: fmt.Sprintf("over %s s; dispersion in 10 s %s", htmlpage.Number(a.SpanMs/1000), htmlpage.Number(a.Dispersion10s))})
	}
	tiles = append(tiles, htmlpage.Tile{Label: "In flight", Figure: htmlpage.Whole(s.Timeline.PeakRequests), Unit: "requests at most", Note: htmlpage.Whole(s.Timeline.PeakTokens) + " tokens at most"})
	if r := s.Reuse; r != nil {
		tiles = append(tiles, htmlpage.Tile{Label: "Reuse", Figure: htmlpage.Number(100 * r.Ideal), Unit: "% without a limit", Note: fmt.Sprintf("%s blocks of %d tokens, %s of them different", htmlpage.Whole(r.Blocks), r.BlockSize, htmlpage.Whole(r.UniqueBlocks))})
	}
	if a := s.Agents; a != nil {
		tiles = append(tiles, htmlpage.Tile{Label: "Subagents", Figure: htmlpage.Whole(a.Subagents), Note: fmt.Sprintf("with %s requests, in %s plays", htmlpage.Whole(a.SubagentRequests), htmlpage.Whole(a.Plays))})
	}
	return tiles
}

func (s Summary) tables() []htmlpage.Table {
	lengths := htmlpage.Table{Title: "Distributions", Note: "percentiles are nearest-rank", Head: []string{"", "mean", "min", "p10", "p25", "p50", "p75", "p90", "p99", "max"}}
	for _, row := range []struct {
		name  string
		of    workload.Distribution
		scale float64
	}{
		{"input tokens", s.InputTokens, 1}, {"output tokens", s.OutputTokens, 1}, {"turns of a session", s.Turns, 1},
		{"gap between turns, s", s.DelayMs, .001}, {"interval of starts, s", s.intervals(), .001},
	} {
		if d := row.of; d.Count > 0 {
			cells := []string{row.name}
			for _, v := range []float64{d.Mean, d.Min, d.P10, d.P25, d.P50, d.P75, d.P90, d.P99, d.Max} {
				cells = append(cells, htmlpage.Number(v*row.scale))
			}
			lengths.Rows = append(lengths.Rows, cells)
		}
	}
	tables := []htmlpage.Table{lengths}
	if a := s.Agents; a != nil {
		agents := htmlpage.Table{Title: "Sessions that wait for each other", Head: []string{"", "count"}}
		for _, relation := range slices.Sorted(maps.Keys(a.Edges)) {
			agents.Rows = append(agents.Rows, []string{strings.ReplaceAll(relation, "_", " ") + " edges", htmlpage.Whole(a.Edges[relation])})
		}
		agents.Rows = append(agents.Rows, []string{"subagents that a later request waits for", htmlpage.Whole(a.Joined)}, []string{"deepest nesting", htmlpage.Whole(a.Depth)},
			[]string{"most subagents in a play", htmlpage.Number(a.PerPlay.Max)}, []string{"input tokens of subagents", htmlpage.Whole(a.SubagentInputTokens)})
		for _, name := range slices.Sorted(maps.Keys(a.Models)) {
			agents.Rows = append(agents.Rows, []string{"requests of " + name, htmlpage.Whole(a.Models[name])})
		}
		tables = append(tables, agents)
	}
	return tables
}

func (s Summary) intervals() workload.Distribution {
	if s.Arrivals == nil {
		return workload.Distribution{}
	}
	return s.Arrivals.IntervalMs
}
