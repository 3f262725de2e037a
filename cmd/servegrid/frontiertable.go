package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// printFrontier prints the frontier of a marked table, one line a configuration: grouped by the traffic, and best
// first in the first objective. Where nothing is feasible it says what comes closest.
func printFrontier(w io.Writer, t *results.Table, a results.Analysis) error {
	f := frontierTable{table: t, analysis: a, candidates: t.Candidates()}
	shown := f.candidates.Table
	groups, err := shown.Groups(a.By)
	if err != nil {
		return err
	}
	if len(groups) == 0 {
		groups = [][]int{nil}
	}
	var lines, near [][]int
	var notes []string
	for _, rows := range groups {
		on, err := f.marked(rows, results.FrontierColumn, "")
		if err != nil {
			return err
		}
		unclear, err := f.marked(rows, results.NoiseColumn, results.FrontierColumn)
		if err != nil {
			return err
		}
		if len(unclear) > 0 {
			near = append(near, unclear)
		}
		if len(on) > 0 {
			lines = append(lines, on)
		} else {
			notes = append(notes, f.emptiness(rows))
		}
	}
	if len(lines) > 0 {
		err = printText(w, "%s\n%s\n", headline(a), f.render(lines))
	}
	if len(near) > 0 && err == nil {
		err = printText(w, "Within noise of the frontier, by the 95 %% intervals of the replicates (±):\n%s\n", f.render(near))
	}
	for _, line := range slices.Concat(f.timingNotes(lines), f.loadNote(lines), f.tieNote(lines), notes) {
		if err == nil {
			err = printText(w, "%s\n", line)
		}
	}
	return errors.Join(err, printCautions(w, f.candidates, a))
}

// printCautions prints what to know before trusting a frontier.
func printCautions(w io.Writer, c *results.Candidates, a results.Analysis) error {
	for _, line := range c.Cautions(a) {
		if err := printText(w, "%s\n", visible(line)); err != nil {
			return err
		}
	}
	return nil
}

// frontierTable is what the terminal shows of a frontier.
type frontierTable struct {
	table      *results.Table
	analysis   results.Analysis
	candidates *results.Candidates
}

// marked lists the rows of a group with one mark and without another, best first in the first objective.
func (f frontierTable) marked(rows []int, with, without string) ([]int, error) {
	shown := f.candidates.Table
	has := func(mark string, row int) bool {
		c := shown.Column(mark)
		return mark != "" && c != nil && c.Bools[row] // files of others may have a column without a name
	}
	out := slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return !has(with, row) || has(without, row) })
	first := f.analysis.Objectives[0]
	values, err := shown.Column(first.Name).Float64s()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b int) int {
		switch {
		case values[a] == values[b]:
			return 0
		case (values[a] > values[b]) == first.Maximize:
			return -1
		}
		return 1
	})
	return out, nil
}

// emptiness says why a group has no frontier.
func (f frontierTable) emptiness(rows []int) string {
	shown := f.candidates.Table
	where := ""
	for i, name := range f.analysis.By {
		where += map[bool]string{true: " of ", false: " "}[i == 0] + cellText(name) + "=" + cellText(shown.Column(name).Text(rows[0]))
	}
	status := shown.Column("status")
	if status != nil && !slices.ContainsFunc(rows, func(row int) bool { return status.Text(row) == string(results.StatusOK) }) {
		return fmt.Sprintf("The frontier%s is empty: no point was simulated to its end.", where)
	}
	feasible := shown.Column(results.FeasibleColumn)
	if feasible == nil || slices.ContainsFunc(rows, func(row int) bool { return feasible.Bools[row] }) {
		return fmt.Sprintf("The frontier%s is empty: no point has a value in every objective.", where)
	}
	text := fmt.Sprintf("The frontier%s is empty: no point is%s.", where, constraintsText(f.analysis.Constraints))
	if row, misses := f.analysis.Closest(shown, rows); misses != nil {
		text += fmt.Sprintf("\nclosest: %s: %s", f.configuration(row), visible(results.JoinMisses(misses)))
	}
	return text
}

// loadNote says that the frontier compares configurations under different loads.
func (f frontierTable) loadNote(groups [][]int) []string {
	shown := f.candidates.Table
	for _, c := range shown.Columns {
		if !strings.HasPrefix(c.Path, "load.") || slices.Contains(f.analysis.By, c.Name) {
			continue
		}
		for _, rows := range groups {
			if slices.ContainsFunc(rows, func(row int) bool { return c.Text(row) != c.Text(rows[0]) }) {
				name := cellText(c.Name)
				return []string{fmt.Sprintf("Loads differ: %s is an axis; --by %s gives each load a frontier.", name, strings.Join(slices.Concat(f.analysis.By, []string{name}), ","))}
			}
		}
	}
	return nil
}

// tieNote counts the configurations of a frontier that equal another one in every objective.
func (f frontierTable) tieNote(groups [][]int) []string {
	tied := 0
	for _, rows := range groups {
		same := map[string]int{}
		for _, row := range rows {
			key := ""
			for _, o := range f.analysis.Objectives {
				key += f.candidates.Table.Column(o.Name).Text(row) + " "
			}
			same[key]++
		}
		for _, n := range same {
			if n > 1 {
				tied += n
			}
		}
	}
	if tied == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s have the same objectives as another; --first-of-ties shows one of each.", plural(tied, "configuration"))}
}

// configuration names a row by its axes.
func (f frontierTable) configuration(row int) string {
	var parts []string
	for _, c := range f.columns() {
		if c.Role == results.RoleAxis && !c.Null[row] {
			parts = append(parts, cellText(c.Name)+"="+cellText(c.Text(row)))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("row %d", f.candidates.Rows[row][0]+1)
	}
	return strings.Join(parts, " ")
}

// columns are the traffic, the axes, the derived values, the timing sources where they differ, the objectives, and the
// rejected requests where there are any.
func (f frontierTable) columns() []*results.Column {
	t := f.candidates.Table
	var out []*results.Column
	add := func(c *results.Column) {
		if c != nil && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, name := range f.analysis.By {
		add(t.Column(name))
	}
	for _, role := range []results.Role{results.RoleAxis, results.RoleDerived} {
		for _, c := range t.Columns {
			if c.Role == role {
				add(c)
			}
		}
	}
	if len(out) == 0 {
		add(t.Column("id"))
	}
	add(f.origin())
	add(f.differing("timing_source"))
	for _, o := range f.analysis.Objectives {
		add(t.Column(o.Name))
	}
	add(f.rejections())
	return out
}

// render lays out the groups, a line between two.
func (f frontierTable) render(groups [][]int) string {
	out := newTableWriter()
	columns := f.columns()
	header := table.Row{}
	var configs []table.ColumnConfig
	for i, c := range columns {
		name := cellText(c.Name)
		if c.Unit != "" {
			name += "\n" + cellText(c.Unit)
		}
		header = append(header, name)
		if c.Numeric() {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	out.AppendHeader(header)
	out.SetColumnConfigs(configs)
	left := maxShownRows
	for i, rows := range groups {
		if i > 0 {
			out.AppendSeparator()
		}
		for _, row := range rows {
			if left--; left >= 0 {
				out.AppendRow(f.cells(columns, row))
			}
		}
	}
	if left < 0 {
		out.AppendFooter(table.Row{fmt.Sprintf("… %d more", -left)})
	}
	return out.Render()
}

func (f frontierTable) cells(columns []*results.Column, row int) table.Row {
	cells := table.Row{}
	for _, c := range columns {
		text := cell(c, row)
		optimised := slices.ContainsFunc(f.analysis.Objectives, func(o results.Objective) bool { return o.Name == c.Name })
		if optimised && c.Kind == gridspec.KindFloat && len(f.candidates.Counted[row]) > 1 {
			half := f.candidates.Interval(f.table.Column(c.Name), row)
			if text == grouped(c.Floats[row]) {
				text += " ± " + grouped(half)
			} else {
				text += " ± " + figure(half)
			}
		}
		cells = append(cells, text)
	}
	return cells
}

func cell(c *results.Column, row int) string {
	switch {
	case c.Null[row]:
		return ""
	case c.Kind == gridspec.KindInt:
		return results.WithSeparators(strconv.FormatInt(c.Ints[row], 10))
	case c.Kind == gridspec.KindFloat && c.Role == results.RoleMetric:
		return figure(c.Floats[row])
	case c.Kind == gridspec.KindFloat:
		return settingFigure(c.Floats[row])
	}
	return cellText(c.Text(row))
}

// figure shows what was measured: two decimals, four digits below one and of what is very large.
func figure(v float64) string {
	if size := math.Abs(v); size >= 1 && size < 1e15 || v == 0 {
		return grouped(v)
	}
	return results.FormatNumber(v, 4)
}

// settingFigure shows a setting: whole numbers in full, five digits of others, such as those of a logspace.
func settingFigure(v float64) string { return results.FormatNumber(v, 5) }

// headline says what a frontier optimises, and under which constraints.
func headline(a results.Analysis) string {
	return "Pareto frontier: " + objectivesText(a.Objectives) + byText(a.By) + constraintsText(a.Constraints)
}

func constraintsText(constraints []results.Constraint) string {
	if len(constraints) == 0 {
		return ""
	}
	parts := make([]string, len(constraints))
	for i, c := range constraints {
		parts[i] = visible(c.String())
	}
	return " under " + strings.Join(parts, " && ")
}

func byText(by []string) string {
	if len(by) == 0 {
		return ""
	}
	names := make([]string, len(by))
	for i, name := range by {
		names[i] = visible(name)
	}
	return " for each " + strings.Join(names, " and ")
}

func objectivesText(objectives []results.Objective) string {
	parts := make([]string, len(objectives))
	for i, o := range objectives {
		parts[i] = "min " + visible(o.Name)
		if o.Maximize {
			parts[i] = "max " + visible(o.Name)
		}
	}
	return strings.Join(parts, ", ")
}
