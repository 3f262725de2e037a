package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/timelines"
	"github.com/servegrid/servegrid/results/vegalite"
)

// reportFlags say where a report goes.
type reportFlags struct {
	analysisFlags
	output, title, vegaLite string
}

func newReport(st *state) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report RESULTS...",
		Short: "Make report.html from results",
		Long: fmt.Sprintf(`report makes the one-file HTML report from the folder of a sweep or a live run, or from any Parquet, CSV or JSON file with
one row a point, such as one made in pandas; several ones come into one report, with one frontier. Objectives, SLA and traffic are those of the sweep unless flags change them. When the
sweep kept timelines, those of up to %d points, the frontier first, are part of it.

With --vega-lite its charts are written too, each as a Vega-Lite specification with its data, for notebooks, slides and papers.`, results.MostReportTimelines),
		Args: oneOrMore("RESULTS"),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(st, args) },
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", reportFile, "file to write")
	cmd.Flags().StringVar(&f.title, "title", "", "title of the report; the default is the spec's name, else the file's")
	cmd.Flags().StringVar(&f.vegaLite, "vega-lite", "", "folder for the charts as Vega-Lite, NAME.vl.json each")
	return cmd
}

func (f *reportFlags) run(st *state, paths []string) error {
	if err := errors.Join(refuseURL("--output", f.output), refuseURL("--vega-lite", f.vegaLite)); err != nil {
		return err
	}
	t, a, err := f.load(st, paths)
	if err != nil {
		return err
	}
	var names, dirs []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
		if !isFolder(path) {
			path = filepath.Dir(path)
		}
		dirs = append(dirs, path)
	}
	data := results.ReportData{Title: cmp.Or(f.title, specName(t.Metadata.Spec), strings.Join(names, ", ")), Table: t, Analysis: a, Own: &f.own, Sources: paths}
	if data.Timelines, err = reportTimelines(dirs, t); err != nil {
		return err
	}
	var charts []vegalite.Chart
	if f.vegaLite != "" {
		if charts, err = vegalite.Charts(data); err != nil {
			return err
		}
		if len(charts) == 0 {
			return errors.New("--vega-lite: there is nothing to chart, since no point succeeded or there are no axes and objectives")
		}
	}
	if err := results.WriteFile(f.output, func(w io.Writer) error { return results.WriteReport(w, data) }); err != nil {
		return err
	}
	if err := printCautions(st.stderr, t.Candidates(), a); err != nil {
		return err
	}
	if err := printText(st.stdout, "%s\nReport: %s\n", headline(a), f.output); err != nil || f.vegaLite == "" {
		return err
	}
	written, err := writeCharts(f.vegaLite, charts)
	if err != nil {
		return err
	}
	return printText(st.stdout, "Vega-Lite: %s in %s\n", strings.Join(written, ", "), f.vegaLite)
}

// reportTimelines reads the timelines of some points of a marked table from the folders of its results, which may have none:
// those of the frontier, then an even choice of the others, one replicate each.
func reportTimelines(dirs []string, t *results.Table) ([]results.ReportTimeline, error) {
	ids, frontier := t.Column("id"), t.Column(results.FrontierColumn)
	files := map[string][]string{}
	for _, dir := range dirs {
		for id, paths := range keptFiles(dir, timelines.Folder) {
			files[id] = append(files[id], paths...)
		}
	}
	if len(files) == 0 || frontier == nil || ids == nil || ids.Kind != gridspec.KindString {
		return nil, nil
	}
	var on, others []int
	for _, rows := range t.Candidates().Counted {
		switch row := rows[0]; {
		case len(files[ids.Strings[row]]) == 0:
		case frontier.Bools[row]:
			on = append(on, row)
		default:
			others = append(others, row)
		}
	}
	rows := evenly(on, results.MostReportTimelines)
	rows = append(rows, evenly(others, results.MostReportTimelines-len(rows))...)
	slices.Sort(rows)
	var out []results.ReportTimeline
	for _, row := range rows {
		table, err := results.ReadTable(files[ids.Strings[row]][0])
		if err != nil {
			return nil, err
		}
		timeline, err := timelines.ForReport(row, table)
		if err != nil {
			return nil, fmt.Errorf("point %s: %w", ids.Strings[row], err)
		}
		out = append(out, timeline)
	}
	return out, nil
}

// evenly returns at most so many rows, evenly spaced from the first.
func evenly(rows []int, most int) []int {
	n := max(0, min(len(rows), most))
	out := make([]int, n)
	for i := range out {
		out[i] = rows[i*len(rows)/n]
	}
	return out
}

// writeCharts writes charts into a folder, and returns the names of the files.
func writeCharts(dir string, charts []vegalite.Chart) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range charts {
		name := c.Name + ".vl.json"
		if err := results.WriteFile(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := w.Write(c.Spec)
			return err
		}); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
