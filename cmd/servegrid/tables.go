package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/arrowipc"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep"
)

// maxShownRows bounds the tables on a terminal; files hold everything.
const maxShownRows = 40

// tableWriter returns the writer of a file format.
func tableWriter(format string) (func(io.Writer, *results.Table) error, error) {
	switch format {
	case "parquet":
		return results.WriteParquet, nil
	case "csv":
		return results.WriteCSV, nil
	case "json":
		return results.WriteJSON, nil
	case "arrow":
		return arrowipc.Write, nil
	case "inferencex":
		return results.WriteInferenceX, nil
	}
	return nil, fmt.Errorf("%q is not a format; use one of: parquet, csv, json, arrow, inferencex", format)
}

func versions() map[string]string {
	return map[string]string{"servegrid": buildVersion(), "simulator": simcore.SemanticVersion}
}

// newTableWriter returns the style of all tables on the terminal.
func newTableWriter() table.Writer {
	out := table.NewWriter()
	out.SetStyle(table.StyleRounded)
	out.Style().Format.Header, out.Style().Format.Footer = text.FormatDefault, text.FormatDefault
	return out
}

// plannedPoint is one line of --dry-run --json.
type plannedPoint struct {
	ID     string         `json:"id"`
	Index  int            `json:"index"`
	Axes   map[string]any `json:"axes"`
	Action sweep.Action   `json:"action"`
	Why    string         `json:"why"`
}

// printPlan prints what a sweep would do.
func printPlan(st *state, f *sweepFlags, plan sweep.Preview) error {
	if f.jsonl {
		encoder := json.NewEncoder(st.stdout)
		for _, p := range plan.Points {
			if err := encoder.Encode(plannedPoint{p.ID, p.Point.Index, axesByColumn(p.Point.Axes), p.Action, p.Why}); err != nil {
				return err
			}
		}
		return nil
	}
	out := newTableWriter()
	out.AppendHeader(table.Row{"#", "id", "action", "why", "point"})
	points := slices.Clone(plan.Points)
	slices.SortStableFunc(points, func(a, b sweep.PlannedPoint) int { return cmp.Compare(planOrder(a), planOrder(b)) })
	for n, p := range points {
		if n == maxShownRows {
			out.AppendFooter(table.Row{"", "", "", fmt.Sprintf("… %d more", len(plan.Points)-n), ""})
			break
		}
		out.AppendRow(table.Row{p.Point.Index, p.ID[:min(12, len(p.ID))], p.Action, visible(p.Why), axesText(p.Point)})
	}
	if !f.quiet {
		if _, err := fmt.Fprintln(st.stdout, out.Render()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(st.stdout, "%s%s: %d to run, %d to reuse, %d to skip, %d that cannot load their workload\n",
		f.label(), plural(len(plan.Points), "point"), plan.Run, plan.Reuse, plan.Skip, plan.Fail)
	return err
}

// planOrder puts what would run first, since a table on the terminal does not show everything.
func planOrder(p sweep.PlannedPoint) int {
	if p.Action == sweep.ActionRun {
		return 0
	}
	return 1
}

func axesText(p gridspec.Point) string {
	parts := make([]string, len(p.Axes))
	for i, a := range p.Axes {
		parts[i] = cellText(a.Column) + "=" + cellText(a.Value.String())
	}
	return strings.Join(parts, " ")
}
