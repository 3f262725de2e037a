package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/results"
)

// cliffFlags say what to look for in a results file.
type cliffFlags struct {
	axis, where string
	by          []string
	noSLA, json bool
}

func newCliff(st *state) *cobra.Command {
	var f cliffFlags
	cmd := &cobra.Command{
		Use:   "cliff RESULTS",
		Short: "Find where an axis loses the SLA",
		Long: `cliff says from which value of an axis on the SLA is lost: between which two values, in which direction, whether the
curve is monotone, and how many replicates agree. Every combination of the other axes has a curve of its own. RESULTS is
a sweep's folder, or any Parquet, CSV or JSON file with one row a point. The SLA is that of the sweep, and --where; where the
objectives count the requests that keep it, its bounds hold for the means.

A value keeps the SLA when the means over its replicates do. "Lost from" is the first value beyond which none keeps it;
single values that are lost before that are named, since latencies near a cliff are often chaotic. Constraints on axes
and settings, as in 'p90_ttft_ms <= 5000 && workers == 2', choose the points.`,
		Args: exactlyOne("RESULTS"),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(st, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.axis, "axis", "", "numeric column to walk along; the default is the only axis with numbers")
	fs.StringVar(&f.where, "where", "", "constraints besides the file's, joined by &&, such as 'p90_ttft_ms <= 5000'")
	fs.BoolVar(&f.noSLA, "no-sla", false, "leave out the file's own constraints, which come from the SLA of its spec")
	fs.StringSliceVar(&f.by, "by", nil, "columns with a curve for each value, or none; the default is the workload and all other axes")
	fs.BoolVar(&f.json, "json", false, "print the curves as JSON")
	return cmd
}

func (f *cliffFlags) run(st *state, path string) error {
	t, err := readResults(path)
	if err != nil {
		return err
	}
	search, err := f.search(t)
	if err != nil {
		return err
	}
	cliffs, err := t.Cliffs(search)
	if err != nil {
		return err
	}
	for _, note := range t.Notes {
		if err := printText(st.stderr, "%s\n", visible(note)); err != nil {
			return err
		}
	}
	if err := printCautions(st.stderr, t.Candidates(), results.Analysis{Constraints: search.Constraints}); err != nil {
		return err
	}
	if f.json {
		out := json.NewEncoder(st.stdout)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return out.Encode(struct {
			Axis        string               `json:"axis"`
			Constraints []results.Constraint `json:"constraints"`
			Cliffs      []results.Cliff      `json:"cliffs"`
		}{search.Axis, search.Constraints, cliffs})
	}
	return printCliffs(st, search, cliffs)
}

// search is what the file and the flags ask for.
func (f *cliffFlags) search(t *results.Table) (results.CliffSearch, error) {
	s := results.CliffSearch{Axis: f.axis, By: f.by}
	if !f.noSLA {
		s.Constraints = slices.Clone(t.Metadata.Constraints)
	}
	if f.where != "" {
		constraints, err := results.ParseConstraints(f.where)
		if err != nil {
			return s, fmt.Errorf("--where: %w", err)
		}
		s.Constraints = append(s.Constraints, constraints...)
	}
	if len(s.Constraints) == 0 && !f.noSLA && results.CountsSLA(t.Metadata.Objectives) {
		s.Constraints = t.MeanSLAConstraints()
	}
	if len(s.Constraints) == 0 {
		return s, errors.New("nothing says what is lost: the file has no constraints; give --where, such as 'p90_ttft_ms <= 5000' or 'sla_attainment >= 0.9'")
	}
	if len(f.by) == 1 && f.by[0] == "none" {
		s.By = []string{}
	}
	if s.Axis == "" {
		axes := numericAxes(t)
		if len(axes) != 1 {
			return s, fmt.Errorf("--axis is needed: %s", namedAxes(t, axes))
		}
		s.Axis = axes[0]
	}
	var err error
	s.Axis = t.ColumnName(s.Axis)
	s.Constraints, err = t.Bind(s.Constraints)
	return s, err
}

// numericAxes are the axes that have several numbers.
func numericAxes(t *results.Table) []string {
	var names []string
	for _, c := range t.Columns {
		if c.Role != results.RoleAxis || !c.Numeric() {
			continue
		}
		if groups, err := t.Groups([]string{c.Name}); err == nil && len(groups) > 1 {
			names = append(names, c.Name)
		}
	}
	return names
}

func namedAxes(t *results.Table, axes []string) string {
	if len(axes) == 0 {
		return "no axis has several numbers; numeric columns: " + numericColumns(t)
	}
	shown := make([]string, len(axes))
	for i, name := range axes {
		shown[i] = cellText(name)
	}
	return "several axes have numbers: " + strings.Join(shown, ", ")
}

func printCliffs(st *state, s results.CliffSearch, cliffs []results.Cliff) error {
	axis := cellText(s.Axis)
	if err := printText(st.stdout, "Where %s loses the SLA%s\n", axis, constraintsText(s.Constraints)); err != nil {
		return err
	}
	if len(cliffs) == 1 {
		if err := printText(st.stdout, "%s\n", curveTable(s, cliffs[0])); err != nil {
			return err
		}
	}
	shown, plain := 0, map[string]int{}
	for n := range cliffs {
		c := &cliffs[n]
		if len(cliffs) > 1 && (c.FirstLost == nil || c.Edge != nil && c.Edge.Kept == nil) {
			plain[edgeless(c)]++
			continue
		}
		if shown++; shown > maxShownRows {
			continue
		}
		if err := printText(st.stdout, "%s%s.\n", curveLabel(c), c.Text(axis)); err != nil {
			return err
		}
	}
	if shown > maxShownRows {
		if err := printText(st.stdout, "… %d more curves; --json shows all\n", shown-maxShownRows); err != nil {
			return err
		}
	}
	for _, what := range []string{"kept", "lost"} {
		if n := plain[what]; n > 0 {
			if err := printText(st.stdout, "%s: %s at all values of %s.\n", plural(n, "curve"), what, axis); err != nil {
				return err
			}
		}
	}
	return nil
}

// edgeless says what a curve without an edge does.
func edgeless(c *results.Cliff) string {
	if c.FirstLost == nil {
		return "kept"
	}
	return "lost"
}

// curveLabel tells a curve from others.
func curveLabel(c *results.Cliff) string {
	if len(c.Of) == 0 {
		return ""
	}
	of := make([]string, len(c.Of))
	for i, column := range c.Of {
		of[i] = cellText(column.Name) + "=" + cellText(column.Value)
	}
	return strings.Join(of, " ") + ": "
}

// curveTable shows each value of one curve.
func curveTable(s results.CliffSearch, c results.Cliff) string {
	out := newTableWriter()
	header := table.Row{cellText(s.Axis), "SLA"}
	replicated := c.Replicates > 1
	if replicated {
		header = append(header, "replicates\nthat keep it")
	}
	for _, name := range c.Bounded {
		header = append(header, cellText(name))
	}
	out.AppendHeader(header)
	var configs []table.ColumnConfig
	for i := range header {
		if i != 1 {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	out.SetColumnConfigs(configs)
	for n, p := range c.Points {
		if n == maxShownRows {
			out.AppendFooter(table.Row{fmt.Sprintf("… %d more", len(c.Points)-n)})
			break
		}
		row := table.Row{settingFigure(p.Value), map[bool]string{true: "kept", false: "lost"}[p.Kept]}
		if replicated {
			row = append(row, fmt.Sprintf("%d of %d", p.Keeping, p.Runs))
		}
		for _, v := range p.Figures {
			if p.Stopped && v == 0 {
				row = append(row, "stopped")
				continue
			}
			row = append(row, figure(v))
		}
		out.AppendRow(row)
	}
	return out.Render()
}
