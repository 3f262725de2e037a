package main

import (
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
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/storage"
)

// analysisFlags choose what is best in a results file.
type analysisFlags struct {
	maximize, minimize []string
	where              string
	noSLA              bool
	by                 []string
	epsilon            float64
	firstOfTies        bool
	costAgainstSLA     bool

	// own is the analysis of the file itself, once it is loaded.
	own results.Analysis
}

func (f *analysisFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&f.maximize, "maximize", nil, "columns that should be high; the default is the file's objectives")
	fs.StringSliceVar(&f.minimize, "minimize", nil, "columns that should be low")
	fs.StringVar(&f.where, "where", "", "constraints besides the file's, joined by &&, such as 'p99_ttft_ms <= 1500 && gpus <= 8'")
	fs.BoolVar(&f.noSLA, "no-sla", false, "leave out the file's own constraints, which come from the SLA of its spec")
	fs.StringSliceVar(&f.by, "by", nil, "columns with a frontier for each value, or none; the default is the traffic: workload axes and the model")
	fs.Float64Var(&f.epsilon, "epsilon", 0, "relative difference that does not matter: 0.01 is 1 %")
	fs.BoolVar(&f.costAgainstSLA, "cost-against-sla", false, "the frontier of GPU-hours against SLA attainment: --minimize gpu_hours --maximize sla_attainment --no-sla")
	fs.BoolVar(&f.firstOfTies, "first-of-ties", false, "keep only the first of rows that are equal in every objective")
}

// load reads results files, or those in the folders of sweeps and live runs, and marks their common frontier.
func (f *analysisFlags) load(st *state, paths []string) (*results.Table, results.Analysis, error) {
	t, err := readAllResults(paths)
	if err != nil {
		return nil, results.Analysis{}, err
	}
	f.own = t.Analysis()
	a, err := f.analysis(t)
	if err != nil {
		return nil, a, err
	}
	if err := results.MarkFrontier(t, a); err != nil {
		return nil, a, err
	}
	for _, note := range t.Notes {
		if err := printText(st.stderr, "%s\n", visible(note)); err != nil {
			return nil, a, err
		}
	}
	return t, a, nil
}

// analysis is that of the file with what the flags change.
func (f *analysisFlags) analysis(t *results.Table) (results.Analysis, error) {
	a := t.Analysis()
	if f.costAgainstSLA {
		if len(f.maximize)+len(f.minimize) > 0 {
			return a, errors.New("--cost-against-sla has objectives of its own; leave --maximize and --minimize out")
		}
		own := *f
		own.costAgainstSLA, own.noSLA, own.minimize, own.maximize = false, true, []string{"gpu_hours"}, []string{"sla_attainment"}
		return own.analysis(t)
	}
	if len(f.maximize)+len(f.minimize) > 0 {
		a.Objectives = nil
	} else if len(t.Metadata.Objectives) == 0 {
		for _, o := range a.Objectives {
			if t.Column(o.Name) == nil {
				return a, fmt.Errorf("the file names no objectives; give --maximize and --minimize; numeric columns: %s", numericColumns(t))
			}
		}
	}
	for _, name := range f.maximize {
		a.Objectives = append(a.Objectives, results.Objective{Name: name, Maximize: true})
	}
	for _, name := range f.minimize {
		a.Objectives = append(a.Objectives, results.Objective{Name: name})
	}
	if f.noSLA {
		a.Constraints = nil
	}
	if f.where != "" {
		constraints, err := results.ParseConstraints(f.where)
		if err != nil {
			return a, fmt.Errorf("--where: %w", err)
		}
		a.Constraints = append(slices.Clone(a.Constraints), constraints...)
	}
	if len(f.by) > 0 {
		a.By = f.by
	}
	if len(f.by) == 1 && f.by[0] == "none" {
		a.By = nil
	}
	if !(f.epsilon >= 0) {
		return a, fmt.Errorf("--epsilon: %v is not allowed; give 0 or more", f.epsilon)
	}
	a.FrontierOptions = f.options(len(a.Objectives))
	return named(t, a)
}

// named is the analysis with the names of the table's columns where it has keys of the spec, and each constraint once.
func named(t *results.Table, a results.Analysis) (results.Analysis, error) {
	a.Objectives, a.By = slices.Clone(a.Objectives), slices.Clone(a.By)
	for i, o := range a.Objectives {
		a.Objectives[i].Name = t.ColumnName(o.Name)
	}
	for i, name := range a.By {
		a.By[i] = t.ColumnName(name)
	}
	var err error
	a.Constraints, err = t.Bind(a.Constraints)
	return a, err
}

func (f *analysisFlags) options(n int) results.FrontierOptions {
	var opt results.FrontierOptions
	if f.firstOfTies {
		opt.Ties = results.KeepFirst
	}
	if f.epsilon > 0 {
		opt.Epsilon = make([]results.Epsilon, n)
		for i := range opt.Epsilon {
			opt.Epsilon[i] = results.Epsilon{Size: f.epsilon, Relative: true}
		}
	}
	return opt
}

// mostListed bounds how many columns an error lists.
const mostListed = 12

func numericColumns(t *results.Table) string {
	var names []string
	for _, c := range t.Columns {
		if c.Numeric() {
			names = append(names, cellText(c.Name))
		}
	}
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > mostListed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), n-mostListed)
	}
	return strings.Join(names, ", ")
}

// readResults reads a results file; a folder stands for its results.parquet.
func readResults(path string) (*results.Table, error) {
	if isFolder(path) {
		folder := path
		if path = filepath.Join(path, sweep.ResultsFile); !isFile(path) && hasShards(folder) {
			return nil, shardsError(folder)
		}
	}
	return results.ReadTable(path)
}

// readAllResults reads several results as one table.
func readAllResults(paths []string) (*results.Table, error) {
	var parts []results.Named
	var problems []error
	for _, path := range paths {
		t, err := readResults(path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		parts = append(parts, results.Named{Name: path, Table: t})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return results.Combine(parts)
}

// hasShards reports whether a folder has those of shards in it.
func hasShards(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		_, shard := sweep.ShardOfFolder(e.Name())
		return shard
	})
}

// shardsError says how the results of shards are read.
func shardsError(folder string) error {
	return fmt.Errorf("%s holds shards, and no results of all of them; put them together with servegrid merge %s --output DIR, and give DIR", folder, folder)
}

// refuseURL refuses an output at a URL for what is written to this machine only.
func refuseURL(flag, path string) error {
	if !files.IsURL(path) {
		if err := storage.CheckPath(path); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		return nil
	}
	return fmt.Errorf("%s: %s is a URL, and this is written to this machine; give a path, and copy the file from there", flag, files.Shown(path))
}

func newPareto(st *state) *cobra.Command {
	var f analysisFlags
	var out tableOutput
	cmd := &cobra.Command{
		Use:   "pareto RESULTS...",
		Short: "Find the Pareto frontier of results",
		Long: `pareto prints the rows that no other row dominates. RESULTS is the folder of a sweep or a live run, or any Parquet, CSV or
JSON file with one row a point; of several ones the rows have one frontier, and the column source says which are simulated. Objectives, SLA and traffic are those of the sweep unless flags change them: rows that served
different traffic are never compared, and replicates count once, with their mean. With --output, or a --format other
than table, all rows are written with the columns on_frontier and feasible, and within_noise_of_frontier where there are replicates.

In --where a column whose name has spaces goes into backquotes, and a boolean one may stand alone.`,
		Args: oneOrMore("RESULTS"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := refuseURL("--output", out.path); err != nil {
				return err
			}
			t, a, err := f.load(st, args)
			if err != nil {
				return err
			}
			return out.write(st, t, a)
		},
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&out.format, "format", "", "table, csv, json, parquet, arrow or inferencex; the default is by the extension of --output, else table")
	fs.StringVarP(&out.path, "output", "o", "", "file to write; the default is the standard output")
	fs.BoolVar(&out.frontierOnly, "frontier-only", false, "write only the rows on the frontier")
	return cmd
}

// tableOutput says how and where a marked table goes.
type tableOutput struct {
	format, path string
	frontierOnly bool
}

func (o tableOutput) write(st *state, t *results.Table, a results.Analysis) error {
	if o.format == "" {
		if o.format = strings.TrimPrefix(filepath.Ext(o.path), "."); o.format == "" {
			o.format = "table"
		}
	}
	if o.format == "table" {
		if o.path != "" {
			return errors.New("--output needs a --format, or an extension such as .csv")
		}
		return printFrontier(st.stdout, t, a)
	}
	write, err := tableWriter(o.format)
	if err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	if err := printCautions(st.stderr, t.Candidates(), a); err != nil {
		return err
	}
	var on []int
	for row, is := range t.Column(results.FrontierColumn).Bools {
		if is {
			on = append(on, row)
		}
	}
	if o.frontierOnly {
		t = t.Select(on)
	}
	if o.path == "" {
		return write(st.stdout, t)
	}
	if err := results.WriteFile(o.path, func(w io.Writer) error { return write(w, t) }); err != nil {
		return err
	}
	return printText(st.stderr, "%s, %d on the frontier%s: %s\n", plural(t.Rows(), "row"), len(on), constraintsText(a.Constraints), o.path)
}

// specName is the name in the text of a resolved spec; empty when there is none. The text comes from a file that may be anybody's.
func specName(text string) string {
	spec, err := gridspec.ReadMapping("spec.yaml", []byte(text))
	if err != nil {
		return ""
	}
	name, _ := spec["name"].(string)
	return name
}
