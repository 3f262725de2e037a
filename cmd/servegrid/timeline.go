package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/timelines"
)

// timelineFlags choose points of a sweep.
type timelineFlags struct {
	where, output, title string
	points               []string
}

func newTimeline(st *state) *cobra.Command {
	var f timelineFlags
	cmd := &cobra.Command{
		Use:   "timeline SWEEP",
		Short: "Lay the timelines of points over each other",
		Long: fmt.Sprintf(`timeline makes one HTML page of what happened over time at up to %d points of a sweep: workers, requests, queue,
latencies, SLA attainment and GPUs, one colour a point, with a common zoom and cursor. SWEEP is the folder of a sweep whose
spec asks for output.timelines.`, timelines.MostCurves),
		Args: exactlyOne("SWEEP"),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(st, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.where, "where", "", "which points, such as 'startup_time <= 60 && policy == dynamo'")
	fs.StringSliceVar(&f.points, "points", nil, "IDs of points, or how they begin")
	fs.StringVarP(&f.output, "output", "o", "timelines.html", "file to write")
	fs.StringVar(&f.title, "title", "", "title of the page; the default is the spec's name")
	return cmd
}

func (f *timelineFlags) run(st *state, dir string) error {
	t, err := readResults(dir)
	if err != nil {
		return err
	}
	if !hasTimelines(dir) {
		return fmt.Errorf("%s has no timelines: %s", dir, howToKeepTimelines)
	}
	rows, err := f.rows(t)
	if err != nil {
		return err
	}
	curves, err := readCurves(dir, t, rows)
	if err != nil {
		return err
	}
	title := cmp.Or(f.title, specName(t.Metadata.Spec), filepath.Base(dir))
	write := func(w io.Writer) error { return timelines.WritePage(w, title, t.Metadata.Constraints, curves) }
	if err := results.WriteFile(f.output, write); err != nil {
		return err
	}
	for _, c := range curves {
		if err := printText(st.stdout, "%s\n", visible(c.Label)); err != nil {
			return err
		}
	}
	return printText(st.stdout, "Timelines of %s: %s\n", plural(len(curves), "point"), f.output)
}

// rows are the chosen points, which must have succeeded.
func (f *timelineFlags) rows(t *results.Table) ([]int, error) {
	id, err := t.Lookup("id")
	if err != nil {
		return nil, err
	}
	var constraints []results.Constraint
	if f.where != "" {
		if constraints, err = results.ParseConstraints(f.where); err != nil {
			return nil, fmt.Errorf("--where: %w", err)
		}
	}
	if constraints, err = t.Bind(constraints); err != nil {
		return nil, fmt.Errorf("--where: %w", err)
	}
	chosen, err := results.Feasible(t, constraints)
	if err != nil {
		return nil, fmt.Errorf("--where: %w", err)
	}
	for _, prefix := range f.points {
		if !slices.ContainsFunc(id.Strings, func(s string) bool { return strings.HasPrefix(s, prefix) }) {
			return nil, fmt.Errorf("--points: no point's ID begins with %q", prefix)
		}
	}
	status := t.Column("status")
	var rows []int
	for row, ok := range chosen {
		named := len(f.points) == 0 || slices.ContainsFunc(f.points, func(prefix string) bool { return strings.HasPrefix(id.Strings[row], prefix) })
		if ok && named && (status == nil || status.Text(row) == string(results.StatusOK)) {
			rows = append(rows, row)
		}
	}
	switch {
	case len(rows) == 0:
		return nil, errors.New("no point that succeeded is chosen; loosen --where and --points")
	case len(rows) > timelines.MostCurves:
		return nil, fmt.Errorf("%d points are chosen; at most %d can be told apart: choose with --where or --points; axes: %s",
			len(rows), timelines.MostCurves, strings.Join(variedAxes(t, rows), ", "))
	}
	return rows, nil
}

const howToKeepTimelines = "the spec must say `output: {timelines: true}`, and --retry all runs points again that were simulated without"

// hasTimelines reports whether a folder of results has any.
func hasTimelines(dir string) bool {
	return len(keptFiles(dir, timelines.Folder)) > 0
}

// variedAxes are the axes and the replicate as far as they differ between rows.
func variedAxes(t *results.Table, rows []int) []string {
	var names []string
	for _, c := range t.Columns {
		if (c.Role == results.RoleAxis || c.Name == "replicate" || c.Name == "workload") && slices.ContainsFunc(rows, func(row int) bool { return c.Text(row) != c.Text(rows[0]) }) {
			names = append(names, cellText(c.Name))
		}
	}
	return names
}

// readCurves reads the timelines of points and labels them by what differs between them.
func readCurves(dir string, t *results.Table, rows []int) ([]timelines.Curve, error) {
	id := t.Column("id")
	names, files := variedAxes(t, rows), keptFiles(dir, timelines.Folder)
	var curves []timelines.Curve
	for _, row := range rows {
		paths := files[id.Strings[row]]
		if len(paths) == 0 {
			return nil, fmt.Errorf("point %s has no timeline: %s", id.Strings[row], howToKeepTimelines)
		}
		timeline, err := results.ReadTable(paths[0])
		if err != nil {
			return nil, fmt.Errorf("%w; sweep --retry all writes all timelines again", err)
		}
		var parts []string
		for _, name := range names {
			if c := t.Column(name); c != nil && !c.Null[row] {
				parts = append(parts, name+" "+c.Text(row))
			}
		}
		label := strings.Join(parts, " · ")
		curves = append(curves, timelines.Curve{Label: cmp.Or(label, id.Strings[row][:min(12, len(id.Strings[row]))]), Table: timeline})
	}
	return curves, nil
}
