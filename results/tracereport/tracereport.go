// Package tracereport shows what is in a trace as one HTML page that opens offline: lengths, arrivals, what is in flight
// over time, what a prefix cache could reuse, gaps and subagents. Read tracereport.go, then charts.go for what is drawn
// and plot.go for how.
package tracereport

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Summary is what is known of a trace; its JSON is what `servegrid trace stats --json` prints.
type Summary struct {
	// Name, Format and Digest say which trace it is, Detected how its format shows, if nobody named it.
	Name     string `json:"name"`
	Format   string `json:"format"`
	Detected string `json:"detected,omitempty"`
	Digest   string `json:"digest"`
	// Partial says that some of its requests could not be read; Warnings are those of the loader.
	Partial  bool     `json:"partial"`
	Warnings []string `json:"warnings,omitempty"`
	workload.Statistics
	Histograms workload.Histograms `json:"histograms"`
	// Timeline is made with Rates where the trace does not say how long requests took.
	Timeline workload.Timeline     `json:"timeline"`
	Rates    workload.ServiceRates `json:"service_rates"`
}

// ServiceText says where the duration of requests comes from.
func (s Summary) ServiceText() string {
	assumed := fmt.Sprintf("assuming %s prompt tokens and %s output tokens per second", number(s.Rates.PrefillTokensPerSecond), number(s.Rates.DecodeTokensPerSecond))
	switch {
	case s.Timeline.Recorded == 1:
		return "with the recorded durations"
	case s.Timeline.Recorded == 0:
		return assumed
	}
	return fmt.Sprintf("with the recorded durations of %s %% of the requests, for the others %s", number(100*s.Timeline.Recorded), assumed)
}

//go:embed page.html page.css
var files embed.FS

// Write writes the page. It holds no clock time, so equal data gives equal bytes.
func Write(w io.Writer, s Summary) error {
	shared, err := results.PageStyle()
	if err != nil {
		return fmt.Errorf("trace page: %w", err)
	}
	own, err := files.ReadFile("page.css")
	if err != nil {
		return fmt.Errorf("trace page: %w", err)
	}
	page, err := template.ParseFS(files, "page.html")
	if err != nil {
		return fmt.Errorf("trace page: %w", err)
	}
	err = page.Execute(w, struct {
		Summary
		Style  template.CSS
		Tiles  []tile
		Tables []figures
		Charts []chart
	}{s, template.CSS(shared) + template.CSS(own), s.tiles(), s.tables(), s.charts()})
	if err != nil {
		return fmt.Errorf("trace page: %w", err)
	}
	return nil
}

// tile is a key figure.
type tile struct{ Label, Figure, Unit, Note string }

func (s Summary) tiles() []tile {
	tiles := []tile{
		{"Requests", whole(s.Requests), "", fmt.Sprintf("in %s sessions of %s turns on average", whole(s.Sessions), number(s.Turns.Mean))},
		{"Input", number(s.InputTokens.Mean), "tokens, mean", fmt.Sprintf("half above %s, at most %s", number(s.InputTokens.P50), number(s.InputTokens.Max))},
		{"Output", number(s.OutputTokens.Mean), "tokens, mean", fmt.Sprintf("half above %s, at most %s", number(s.OutputTokens.P50), number(s.OutputTokens.Max))},
	}
	if a := s.Arrivals; a != nil && a.SpanMs > 0 {
		tiles = append(tiles, tile{"Starts", number(a.Rate), "per second", fmt.Sprintf("over %s s; dispersion in 10 s %s", number(a.SpanMs/1000), number(a.Dispersion10s))})
	}
	tiles = append(tiles, tile{"In flight", whole(s.Timeline.PeakRequests), "requests at most", whole(s.Timeline.PeakTokens) + " tokens at most"})
	if r := s.Reuse; r != nil {
		tiles = append(tiles, tile{"Reuse", number(100 * r.Ideal), "% without a limit", fmt.Sprintf("%s blocks of %d tokens, %s of them different", whole(r.Blocks), r.BlockSize, whole(r.UniqueBlocks))})
	}
	if a := s.Agents; a != nil {
		tiles = append(tiles, tile{"Subagents", whole(a.Subagents), "", fmt.Sprintf("with %s requests, in %s plays", whole(a.SubagentRequests), whole(a.Plays))})
	}
	return tiles
}

// figures is a table of the page.
type figures struct {
	Title, Note string
	Head        []string
	Rows        [][]string
}

func (s Summary) tables() []figures {
	lengths := figures{Title: "Distributions", Note: "percentiles are nearest-rank", Head: []string{"", "mean", "min", "p10", "p25", "p50", "p75", "p90", "p99", "max"}}
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
				cells = append(cells, number(v*row.scale))
			}
			lengths.Rows = append(lengths.Rows, cells)
		}
	}
	tables := []figures{lengths}
	if a := s.Agents; a != nil {
		agents := figures{Title: "Sessions that wait for each other", Head: []string{"", "count"}}
		for _, relation := range slices.Sorted(maps.Keys(a.Edges)) {
			agents.Rows = append(agents.Rows, []string{strings.ReplaceAll(relation, "_", " ") + " edges", whole(a.Edges[relation])})
		}
		agents.Rows = append(agents.Rows, []string{"subagents that a later request waits for", whole(a.Joined)}, []string{"deepest nesting", whole(a.Depth)},
			[]string{"most subagents in a play", number(a.PerPlay.Max)}, []string{"input tokens of subagents", whole(a.SubagentInputTokens)})
		for _, name := range slices.Sorted(maps.Keys(a.Models)) {
			agents.Rows = append(agents.Rows, []string{"requests of " + name, whole(a.Models[name])})
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

func whole(n int) string { return separated(strconv.Itoa(n)) }

// number shows a figure with three digits, or all of a whole part that has more.
func number(v float64) string {
	if v >= 1000 || v <= -1000 {
		return separated(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// separated puts commas between thousands.
func separated(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}
