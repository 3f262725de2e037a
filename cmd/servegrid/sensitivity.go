package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/sensitivity"
)

// sensitivityFlags say what to look at in a results file.
type sensitivityFlags struct {
	metrics, axes []string
	where, output string
	log, json     bool
	seed          uint64
}

func newSensitivity(st *state) *cobra.Command {
	var f sensitivityFlags
	cmd := &cobra.Command{
		Use:   "sensitivity RESULTS",
		Short: "Find which axes matter for which metric",
		Long: `sensitivity splits the variance of each metric into what every axis makes up, alone and together with others (first-order
and total Sobol indices), and names the pairs of axes that act together. RESULTS is a sweep's folder, or any Parquet, CSV or
JSON file with one row a point.

A full grid is split exactly. A model fitted to the points fills the gaps of grids and searches, and stands for random samples
altogether; "explained" says how much is accounted for, by what it predicts of points that it has not seen. Replicates give the share of the noise, and
an interval for each share. A single --metric shows the intervals, of 90 % confidence, and the mean at each end of every axis.`,
		Args: exactlyOne("RESULTS"),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(st, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&f.metrics, "metric", nil, "figures to explain, or all; the default is objectives, constraints and the usual ones")
	fs.StringSliceVar(&f.axes, "axis", nil, "columns that were varied; the default is all axes. What else varies counts as noise")
	fs.StringVar(&f.where, "where", "", "which points, such as 'workers >= 2 && policy == kv_router'")
	fs.BoolVar(&f.log, "log", false, "split the variance of the logarithm, for figures that span decades")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of the resampling behind intervals")
	fs.BoolVar(&f.json, "json", false, "print everything as JSON, with the mean at each value of each axis")
	fs.StringVarP(&f.output, "output", "o", "", "file to write with one row a share; the extension says the format: .csv, .json, .parquet or .arrow")
	return cmd
}

func (f *sensitivityFlags) run(st *state, path string) error {
	t, err := readWhere(st, path, f.where)
	if err != nil {
		return err
	}
	a, err := sensitivity.Analyse(t, sensitivity.Options{Metrics: f.metrics, Axes: f.axes, Log: f.log, Seed: f.seed})
	if err != nil {
		return err
	}
	if f.output != "" {
		write, err := tableWriter(strings.TrimPrefix(filepath.Ext(f.output), "."))
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		if err := results.WriteFile(f.output, func(w io.Writer) error { return write(w, a.Table()) }); err != nil {
			return err
		}
	}
	if f.json {
		return printJSON(st, a)
	}
	return printSensitivity(st.stdout, a)
}

// readWhere reads a results file, says its notes, and keeps the rows of an expression.
func readWhere(st *state, path, where string) (*results.Table, error) {
	t, err := readResults(path)
	if err != nil {
		return nil, err
	}
	for _, note := range t.Notes {
		if err := printText(st.stderr, "%s\n", visible(note)); err != nil {
			return nil, err
		}
	}
	if where == "" {
		return t, nil
	}
	constraints, err := results.ParseConstraints(where)
	if err != nil {
		return nil, fmt.Errorf("--where: %w", err)
	}
	if constraints, err = t.Bind(constraints); err != nil {
		return nil, fmt.Errorf("--where: %w", err)
	}
	keep, err := results.Feasible(t, constraints)
	if err != nil {
		return nil, fmt.Errorf("--where: %w", err)
	}
	var rows []int
	for row, ok := range keep {
		if ok {
			rows = append(rows, row)
		}
	}
	return t.Select(rows), nil
}

// printSensitivity prints a table of metrics by axes, or all about a single metric, and what to know about it.
func printSensitivity(w io.Writer, a *sensitivity.Analysis) error {
	shown := sharesTable(a)
	if len(a.Metrics) == 1 {
		shown = metricTable(&a.Metrics[0])
	}
	lines := []string{sensitivityHeadline(a), shown}
	for _, sentence := range append(interactionSentences(a), a.Cautions...) {
		lines = append(lines, visible(sentence))
	}
	for _, line := range lines {
		if err := printText(w, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func sensitivityHeadline(a *sensitivity.Analysis) string {
	of := "each metric"
	if len(a.Metrics) == 1 {
		of = cellText(a.Metrics[0].Name)
	}
	if a.Metrics[0].Log {
		of = "the logarithm of " + of
	}
	return fmt.Sprintf("What makes up the variance of %s over %s: axes together with others (↑ rises, ↓ falls with the axis)", of, plural(a.Points, "point"))
}

// sharesTable has the total share of every axis in every metric.
func sharesTable(a *sensitivity.Analysis) string {
	out := newTableWriter()
	header := table.Row{"metric"}
	for _, axis := range a.Axes {
		header = append(header, cellText(axis))
	}
	noise, explained := false, false
	for _, m := range a.Metrics {
		noise, explained = noise || m.Noise != nil, explained || m.Method != sensitivity.MethodExact
	}
	if noise {
		header = append(header, "noise")
	}
	if explained {
		header = append(header, "explained")
	}
	out.AppendHeader(header)
	for i := range a.Metrics {
		m := &a.Metrics[i]
		row := table.Row{cellText(m.Name)}
		for _, e := range m.Effects {
			row = append(row, shareCell(e))
		}
		if noise {
			row = append(row, optionalPercent(m.Noise))
		}
		if explained {
			row = append(row, results.WholePercent(m.Explained))
		}
		out.AppendRow(row)
	}
	return out.Render()
}

// metricTable has all about the axes of one metric; intervals only where something is uncertain.
func metricTable(m *sensitivity.Metric) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"axis", "together with others", "alone", cellText(m.Name) + "\nfrom the lowest to the highest value"})
	for _, e := range m.Effects {
		first, last := e.Curve[0], e.Curve[len(e.Curve)-1]
		out.AppendRow(table.Row{cellText(e.Axis), shareCell(e) + interval(e.Total), results.WholePercent(e.First.Value) + interval(e.First),
			fmt.Sprintf("%s at %s, %s at %s", figure(first.Mean), cellText(first.Value), figure(last.Mean), cellText(last.Value))})
	}
	if m.Noise != nil {
		out.AppendFooter(table.Row{"noise", results.WholePercent(*m.Noise)})
	}
	if m.Method != sensitivity.MethodExact {
		out.AppendFooter(table.Row{"explained", results.WholePercent(m.Explained)})
	}
	return out.Render()
}

// shareCell draws a share as a bar with its size and the direction.
func shareCell(e sensitivity.Effect) string {
	arrow := map[sensitivity.Direction]string{
		sensitivity.Rises: " ↑", sensitivity.MostlyRises: " (↑)", sensitivity.Falls: " ↓", sensitivity.MostlyFalls: " (↓)",
	}[e.Direction]
	return bar(e.Total.Value) + " " + results.WholePercent(e.Total.Value) + arrow
}

// barWidth is that of a bar for everything.
const barWidth = 8

// bar draws a share from 0 to 1 in eighths of a character.
func bar(share float64) string {
	eighths := int(math.Round(8 * barWidth * max(0, min(1, share))))
	out := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		out += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text.Pad(out, barWidth, ' ')
}

// interval is that of 90 % confidence, in brackets.
func interval(s sensitivity.Share) string {
	if s.Low == nil {
		return ""
	}
	return fmt.Sprintf(" (%s to %s)", results.WholePercent(*s.Low), results.WholePercent(*s.High))
}

func optionalPercent(share *float64) string {
	if share == nil {
		return ""
	}
	return results.WholePercent(*share)
}

// Bounds of what sentences name.
const (
	mostInteractions = 4
	leastInteraction = 0.05
)

// interactionSentences name the pairs of axes that act together, and the metrics in which they do, the strongest first.
func interactionSentences(a *sensitivity.Analysis) []string {
	type acting struct {
		share float64
		text  string
	}
	byPair := map[[2]string][]acting{}
	for i := range a.Metrics {
		for _, pair := range a.Metrics[i].Interactions {
			if share := pair.Share.Value; share >= leastInteraction {
				byPair[pair.Axes] = append(byPair[pair.Axes], acting{share, a.Metrics[i].Name + " " + results.WholePercent(share)})
			}
		}
	}
	var pairs []acting
	for axes, metrics := range byPair {
		slices.SortStableFunc(metrics, func(a, b acting) int { return cmp.Compare(b.share, a.share) })
		names := make([]string, len(metrics))
		for i, m := range metrics {
			names[i] = m.text
		}
		pairs = append(pairs, acting{metrics[0].share, fmt.Sprintf("%s and %s act together, beyond what each does alone: %s.", axes[0], axes[1], strings.Join(names, ", "))})
	}
	slices.SortFunc(pairs, func(a, b acting) int { return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.text, b.text)) })
	var out []string
	for _, p := range pairs[:min(len(pairs), mostInteractions)] {
		out = append(out, p.text)
	}
	return out
}
