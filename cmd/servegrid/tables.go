package main

import (
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
	}
	return nil, fmt.Errorf("%q is not a format; use one of: parquet, csv, json, arrow", format)
}

func versions() map[string]string {
	return map[string]string{"servegrid": buildVersion(), "simulator": simcore.SemanticVersion}
}

// printFrontier prints the rows on the frontier, best first in the first objective.
func printFrontier(w io.Writer, t *results.Table, objectives []results.Objective, constraints []results.Constraint) error {
	on := t.Column(results.FrontierColumn)
	var rows []int
	for i, is := range on.Bools {
		if is {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		why := "no point has a value in every objective"
		if feasible := t.Column(results.FeasibleColumn); feasible != nil && !slices.Contains(feasible.Bools, true) {
			why = "no point is" + constraintsText(constraints)
		}
		_, err := fmt.Fprintf(w, "The frontier is empty: %s.\n", why)
		return err
	}
	first := t.Column(objectives[0].Name)
	values, err := first.Float64s()
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b int) int {
		if values[a] == values[b] {
			return 0
		}
		if (values[a] > values[b]) == objectives[0].Maximize {
			return -1
		}
		return 1
	})
	_, err = fmt.Fprintf(w, "Pareto frontier: %s%s\n%s\n", objectivesText(objectives), constraintsText(constraints), renderRows(t, frontierColumns(t, objectives), rows))
	return err
}

func constraintsText(constraints []results.Constraint) string {
	if len(constraints) == 0 {
		return ""
	}
	parts := make([]string, len(constraints))
	for i, c := range constraints {
		parts[i] = c.String()
	}
	return " under " + strings.Join(parts, " && ")
}

func objectivesText(objectives []results.Objective) string {
	parts := make([]string, len(objectives))
	for i, o := range objectives {
		parts[i] = "min " + o.Name
		if o.Maximize {
			parts[i] = "max " + o.Name
		}
	}
	return strings.Join(parts, ", ")
}

// frontierColumns are the axes and the objectives.
func frontierColumns(t *results.Table, objectives []results.Objective) []*results.Column {
	var out []*results.Column
	for _, c := range t.Columns {
		if c.Role == results.RoleAxis {
			out = append(out, c)
		}
	}
	if len(out) == 0 && t.Column("id") != nil {
		out = append(out, t.Column("id"))
	}
	for _, o := range objectives {
		if c := t.Column(o.Name); c != nil && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// newTableWriter returns the style of all tables on the terminal.
func newTableWriter() table.Writer {
	out := table.NewWriter()
	out.SetStyle(table.StyleRounded)
	out.Style().Format.Header, out.Style().Format.Footer = text.FormatDefault, text.FormatDefault
	return out
}

// renderRows lays out some rows of a table for a terminal.
func renderRows(t *results.Table, columns []*results.Column, rows []int) string {
	out := newTableWriter()
	header := table.Row{}
	var configs []table.ColumnConfig
	for i, c := range columns {
		name := c.Name
		if c.Unit != "" {
			name += "\n" + c.Unit
		}
		header = append(header, name)
		if c.Kind == gridspec.KindInt || c.Kind == gridspec.KindFloat {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	out.AppendHeader(header)
	out.SetColumnConfigs(configs)
	for n, row := range rows {
		if n == maxShownRows {
			out.AppendFooter(table.Row{fmt.Sprintf("… %d more", len(rows)-n)})
			break
		}
		cells := table.Row{}
		for _, c := range columns {
			cells = append(cells, cell(c, row))
		}
		out.AppendRow(cells)
	}
	return out.Render()
}

func cell(c *results.Column, row int) string {
	switch {
	case c.Null[row]:
		return ""
	case c.Kind == gridspec.KindFloat && c.Role != results.RoleAxis:
		return grouped(c.Floats[row])
	}
	return c.Text(row)
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
			if err := encoder.Encode(plannedPoint{p.ID, p.Point.Index, axesByColumn(p.Point), p.Action, p.Why}); err != nil {
				return err
			}
		}
		return nil
	}
	out := newTableWriter()
	out.AppendHeader(table.Row{"#", "id", "action", "why", "point"})
	for n, p := range plan.Points {
		if n == maxShownRows {
			out.AppendFooter(table.Row{"", "", "", fmt.Sprintf("… %d more", len(plan.Points)-n), ""})
			break
		}
		out.AppendRow(table.Row{p.Point.Index, p.ID[:min(12, len(p.ID))], p.Action, p.Why, axesText(p.Point)})
	}
	if !f.quiet {
		if _, err := fmt.Fprintln(st.stdout, out.Render()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(st.stdout, "%d points: %d to run, %d to reuse, %d to skip, %d that cannot load their workload\n",
		len(plan.Points), plan.Run, plan.Reuse, plan.Skip, plan.Fail)
	return err
}

func axesText(p gridspec.Point) string {
	parts := make([]string, len(p.Axes))
	for i, a := range p.Axes {
		parts[i] = a.Column + "=" + a.Value.String()
	}
	return strings.Join(parts, " ")
}
