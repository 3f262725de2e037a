package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/compare"
)

// exitDifferent is the exit code of --exit-code, as git diff has it.
const exitDifferent = 1

// diffFlags say what counts as a difference.
type diffFlags struct {
	metrics, points, axes []string
	tolerance             float64
	json, exitCode        bool
}

func newDiff(st *state) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two sets of results, or two points",
		Long: `diff says what changed from A to B: settings, points that only one has, figures, and the frontier. A and B are sweeps'
folders, or any Parquet, CSV or JSON files with one row a point. Points are paired by their IDs and, where these differ, by
equal axes.

With a point of each, as in 'diff RUN#3f2a RUN#91c0' or 'diff RUN --points 3f2a,91c0', it lays the two side by side and says
where the time went. A point is named by how its ID begins, or in a file without IDs by the row's number.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && len(f.points) == 0 || len(args) == 1 && len(f.points) == 2 {
				return nil
			}
			return fmt.Errorf("%s needs two sets of results, two points such as RUN#3f2a RUN#91c0, or one set and --points A,B: %s\nRun '%s --help' for how to use it",
				cmd.CommandPath(), cmd.UseLine(), cmd.CommandPath())
		},
		RunE: func(_ *cobra.Command, args []string) error { return f.run(st, args) },
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&f.metrics, "metric", nil, "figures to compare, or all; the default is all of two sets and the usual ones of two points")
	fs.StringSliceVar(&f.axes, "axis", nil, "columns that were varied, besides the axes that the files name")
	fs.StringSliceVar(&f.points, "points", nil, "two points of one set, by how their IDs begin")
	fs.Float64Var(&f.tolerance, "tolerance", 0, "relative change of a figure that does not matter: 0.01 is 1 %")
	fs.BoolVar(&f.json, "json", false, "print everything as JSON")
	fs.BoolVar(&f.exitCode, "exit-code", false, "exit with 1 when something differs")
	return cmd
}

func (f *diffFlags) run(st *state, args []string) error {
	if !(f.tolerance >= 0) {
		return fmt.Errorf("--tolerance: %v is not allowed; give 0 or more", f.tolerance)
	}
	sides, err := f.sides(st, args)
	if err != nil {
		return err
	}
	same := false
	if sides[0].row >= 0 {
		same, err = f.comparePoints(st, sides)
	} else {
		same, err = f.compareTables(st, sides)
	}
	if err == nil && f.exitCode && !same {
		err = &exitError{code: exitDifferent}
	}
	return err
}

// side is a set of results, or one of its points.
type side struct {
	name  string
	table *results.Table
	// row is -1 for a whole set.
	row int
}

// sides reads what the arguments name.
func (f *diffFlags) sides(st *state, args []string) ([2]side, error) {
	var out [2]side
	names := args
	if len(f.points) == 2 {
		names = []string{args[0] + "#" + f.points[0], args[0] + "#" + f.points[1]}
	}
	read := ""
	for i, name := range names {
		path, point, isPoint := splitPoint(name)
		out[i] = side{name: name, row: -1}
		if i == 1 && isPoint && path == read {
			out[i].table = out[0].table
		} else {
			read = path
			t, err := readWhere(st, path, "")
			if err != nil {
				return out, err
			}
			if err := takeForAxes(t, f.axes); err != nil {
				return out, fmt.Errorf("%s: %w", path, err)
			}
			out[i].table = t
		}
		if isPoint {
			row, err := compare.FindPoint(out[i].table, point)
			if err != nil {
				return out, fmt.Errorf("%s: %w", path, err)
			}
			out[i].row = row
		}
	}
	if (out[0].row < 0) != (out[1].row < 0) {
		return out, errors.New("one is a point and the other a whole set; name a point of both, such as RUN#3f2a")
	}
	return out, nil
}

// takeForAxes makes axes of the named columns, of which a file of others may not say what they are.
func takeForAxes(t *results.Table, names []string) error {
	var problems []error
	for _, name := range names {
		c, err := t.Lookup(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("--axis: %w", err))
			continue
		}
		c.Role = results.RoleAxis
	}
	return errors.Join(problems...)
}

// splitPoint parts RUN#POINT; a name that exists as a file is no point, whatever is in it.
func splitPoint(name string) (path, point string, isPoint bool) {
	at := strings.LastIndexByte(name, '#')
	if at < 0 {
		return name, "", false
	}
	if _, err := os.Stat(name); err == nil {
		return name, "", false
	}
	return name[:at], name[at+1:], true
}

func (f *diffFlags) compareTables(st *state, sides [2]side) (same bool, err error) {
	d, err := compare.Tables(sides[0].table, sides[1].table, compare.Options{Tolerance: f.tolerance, Metrics: f.chosen(sides, nil)})
	if err != nil {
		return false, err
	}
	if f.json {
		return d.Same(), printJSON(st, d)
	}
	lines := []string{fmt.Sprintf("A: %s, B: %s", visible(sides[0].name), visible(sides[1].name))}
	if len(d.Settings) > 0 {
		lines = append(lines, "Settings that differ, and are equal at all points of a set:", settingsTable(d.Settings))
	}
	lines = append(lines, pairedText(d))
	lines = append(lines, pointLines("only in A", d.OnlyBefore)...)
	lines = append(lines, pointLines("only in B", d.OnlyAfter)...)
	for _, s := range first(d.Statuses) {
		lines = append(lines, fmt.Sprintf("  %s: %s in A, %s in B", shortPoint(s.Point), cellText(s.Before), cellText(s.After)))
	}
	lines = append(lines, f.changesText(d)...)
	lines = append(lines, frontierChanges(d)...)
	return d.Same(), printLines(st, lines)
}

// chosen are the figures to compare; nil means all.
func (f *diffFlags) chosen(sides [2]side, usual []string) []string {
	switch {
	case slices.Equal(f.metrics, []string{"all"}):
		return nil
	case len(f.metrics) > 0:
		return f.metrics
	}
	return slices.DeleteFunc(usual, func(name string) bool { return sides[0].table.Column(name) == nil })
}

func printLines(st *state, lines []string) error {
	for _, line := range lines {
		if err := printText(st.stdout, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func settingsTable(settings []compare.Setting) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"setting", "A", "B"})
	for _, s := range first(settings) {
		out.AppendRow(table.Row{cellText(s.Name), settingCell(s.Before), settingCell(s.After)})
	}
	if more := len(settings) - maxShownRows; more > 0 {
		out.AppendFooter(table.Row{fmt.Sprintf("… %d more", more)})
	}
	return out.Render()
}

// settingCell shows a setting that a side may lack.
func settingCell(s string) string {
	if s == "" {
		return "–"
	}
	return cellText(s)
}

// first are so many of a list as the terminal shows.
func first[T any](list []T) []T { return list[:min(len(list), maxShownRows)] }

// pairedText says how many points both sets have.
func pairedText(d *compare.Difference) string {
	text := plural(d.ByID+d.ByAxes, "point") + " in both"
	switch {
	case d.ByAxes > 0 && d.ByID > 0:
		text += fmt.Sprintf(" (%d by ID, %d by equal axes)", d.ByID, d.ByAxes)
	case d.ByAxes > 0:
		text += " by equal axes, none by ID"
	}
	return text + fmt.Sprintf(", %d only in A, %d only in B", len(d.OnlyBefore), len(d.OnlyAfter))
}

// mostPointLines bounds the points that a line each is for.
const mostPointLines = 5

func pointLines(what string, points []compare.Point) []string {
	var out []string
	for i, p := range points {
		if i == mostPointLines {
			return append(out, fmt.Sprintf("  %s: %d more; --json lists all", what, len(points)-i))
		}
		out = append(out, fmt.Sprintf("  %s: %s", what, shortPoint(p)))
	}
	return out
}

// shortPoint names a point by its axes and how its ID begins.
func shortPoint(p compare.Point) string {
	id := cellText(p.ID[:min(len(p.ID), 8)])
	switch {
	case p.Axes == "" && id == "":
		return fmt.Sprintf("row %d", p.Row+1)
	case p.Axes == "":
		return id
	case id == "":
		return visible(p.Axes)
	}
	return visible(p.Axes) + " (" + id + ")"
}

// mostChangedFigures bounds the figures that the terminal shows of two sets.
const mostChangedFigures = 15

// changesText shows the figures that changed the most.
func (f *diffFlags) changesText(d *compare.Difference) []string {
	beyond := ""
	if f.tolerance > 0 {
		beyond = " by more than " + settingFigure(100*f.tolerance) + " %"
	}
	if len(d.Metrics) == 0 {
		return []string{"No figure changed" + beyond + "."}
	}
	out := newTableWriter()
	out.AppendHeader(table.Row{"figure", "points", "mean\nchange", "largest\nchange", "A", "B", "where"})
	out.SetColumnConfigs(rightAligned(2, 6))
	for _, m := range d.Metrics[:min(len(d.Metrics), mostChangedFigures)] {
		c := m.Changes[0]
		out.AppendRow(table.Row{cellText(m.Name), m.Changed, signedPercent(&m.MeanRelative), signedPercent(c.Relative), optionalFigure(c.Before), optionalFigure(c.After), shortPoint(c.Point)})
	}
	if more := len(d.Metrics) - mostChangedFigures; more > 0 {
		out.AppendFooter(table.Row{fmt.Sprintf("… %d more; --metric and --json show them", more)})
	}
	return []string{"Figures that changed" + beyond + ", those with the largest change first:", out.Render()}
}

func frontierChanges(d *compare.Difference) []string {
	if d.Frontier == nil {
		return []string{"Frontiers cannot be compared: " + visible(d.FrontierNote) + "."}
	}
	if len(d.Entered)+len(d.Left) == 0 {
		return []string{fmt.Sprintf("The frontier is the same: %s.", plural(*d.Frontier, "point"))}
	}
	out := []string{fmt.Sprintf("Frontier: %d stay, %d entered, %d left", *d.Frontier, len(d.Entered), len(d.Left))}
	out = append(out, pointLines("entered", d.Entered)...)
	return append(out, pointLines("left", d.Left)...)
}

// signedPercent shows a relative change, as a factor from ten times on; a new figure, or one that leaves 0, has none.
func signedPercent(v *float64) string {
	switch {
	case v == nil:
		return ""
	case *v >= 9:
		return "× " + figure(1+*v)
	}
	return fmt.Sprintf("%+.3g %%", 100**v)
}

func optionalFigure(v *float64) string {
	if v == nil {
		return "–"
	}
	return figure(*v)
}

func (f *diffFlags) comparePoints(st *state, sides [2]side) (same bool, err error) {
	a, b, replicates := overReplicates(sides[0], sides[1])
	d, err := compare.Points(a.table, a.row, b.table, b.row, compare.Options{Tolerance: f.tolerance, Metrics: f.chosen(sides, b.table.UsualMetrics())})
	if err != nil {
		return false, err
	}
	if f.json {
		return d.Same(), printJSON(st, d)
	}
	lines := []string{"A: " + shortPoint(d.Before) + ", B: " + shortPoint(d.After) + replicates}
	if len(d.Settings) > 0 {
		lines = append(lines, settingsTable(d.Settings))
	} else {
		lines = append(lines, "No setting differs.")
	}
	lines = append(lines, figuresTable(d.Metrics))
	for _, reason := range d.Reasons {
		lines = append(lines, "B: "+visible(reason)+".")
	}
	return d.Same(), printLines(st, lines)
}

// overReplicates puts the mean of its replicates in the place of each point, unless both are replicates of one
// configuration, and says so.
func overReplicates(a, b side) (meanA, meanB side, note string) {
	of, ofB := a.table.Candidates(), b.table.Candidates()
	if a.table == b.table {
		ofB = of
	}
	atA, atB := of.Of[a.row], ofB.Of[b.row]
	runsA, runsB := len(of.Counted[atA]), len(ofB.Counted[atB])
	if runsA == 1 && runsB == 1 || a.table == b.table && atA == atB {
		return a, b, ""
	}
	note = fmt.Sprintf(", means of %d and %d replicates", runsA, runsB)
	return side{a.name, of.Table, atA}, side{b.name, ofB.Table, atB}, note
}

func figuresTable(pairs []compare.FigurePair) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"figure", "unit", "A", "B", "change"})
	out.SetColumnConfigs(rightAligned(3, 5))
	for _, p := range pairs {
		change := ""
		if p.Differs {
			change = signedPercent(p.Relative)
		}
		out.AppendRow(table.Row{cellText(p.Name), cellText(p.Unit), optionalFigure(p.Before), optionalFigure(p.After), change})
	}
	return out.Render()
}
