package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// analysisFlags choose what is best in a results file.
type analysisFlags struct {
	maximize, minimize []string
	where              string
	epsilon            float64
	firstOfTies        bool
}

func (f *analysisFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&f.maximize, "maximize", nil, "columns that should be high")
	fs.StringSliceVar(&f.minimize, "minimize", nil, "columns that should be low")
	fs.StringVar(&f.where, "where", "", "constraints joined by &&, such as 'p99_ttft_ms <= 1500 && gpus <= 8'")
	fs.Float64Var(&f.epsilon, "epsilon", 0, "relative difference that does not matter: 0.01 is 1 %")
	fs.BoolVar(&f.firstOfTies, "first-of-ties", false, "keep only the first of rows that are equal in every objective")
}

// load reads a results file, or the one in a sweep's folder, and marks its frontier.
func (f *analysisFlags) load(path string) (*results.Table, []results.Objective, []results.Constraint, error) {
	t, err := readResults(path)
	if err != nil {
		return nil, nil, nil, err
	}
	objectives := f.objectives(t)
	var constraints []results.Constraint
	if f.where != "" {
		if constraints, err = results.ParseConstraints(f.where); err != nil {
			return nil, nil, nil, fmt.Errorf("--where: %w", err)
		}
	}
	if !(f.epsilon >= 0) {
		return nil, nil, nil, fmt.Errorf("--epsilon: %v is not allowed; give 0 or more", f.epsilon)
	}
	if err := results.MarkFrontier(t, objectives, constraints, f.options(len(objectives))); err != nil {
		return nil, nil, nil, err
	}
	return t, objectives, constraints, nil
}

func (f *analysisFlags) objectives(t *results.Table) []results.Objective {
	var out []results.Objective
	for _, name := range f.maximize {
		out = append(out, results.Objective{Name: name, Maximize: true})
	}
	for _, name := range f.minimize {
		out = append(out, results.Objective{Name: name})
	}
	if len(out) == 0 {
		out = t.Metadata.Objectives
	}
	if len(out) == 0 {
		out = results.DefaultObjectives()
	}
	return out
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

// readResults reads a results file; a folder stands for its results.parquet.
func readResults(path string) (*results.Table, error) {
	if isFolder(path) {
		path = filepath.Join(path, sweep.ResultsFile)
	}
	return results.ReadTable(path)
}

func newPareto(st *state) *cobra.Command {
	var f analysisFlags
	var format, output string
	cmd := &cobra.Command{
		Use:   "pareto RESULTS",
		Short: "Find the Pareto frontier of a results file",
		Long: `pareto prints the rows that no other row dominates. RESULTS is a sweep's folder, or any Parquet, CSV or JSON file
with one row a point. With --output, or a --format other than table, all rows are written with the columns on_frontier and feasible.`,
		Args: exactlyOne("RESULTS"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, objectives, constraints, err := f.load(args[0])
			if err != nil {
				return err
			}
			for _, note := range t.Notes {
				fmt.Fprintln(st.stderr, note)
			}
			return writeTable(st, t, objectives, constraints, format, output)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&format, "format", "", "table, csv, json, parquet or arrow; the default is by the extension of --output, else table")
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write; the default is the standard output")
	return cmd
}

func writeTable(st *state, t *results.Table, objectives []results.Objective, constraints []results.Constraint, format, output string) error {
	if format == "" {
		if format = strings.TrimPrefix(filepath.Ext(output), "."); format == "" {
			format = "table"
		}
	}
	if format == "table" {
		if output != "" {
			return errors.New("--output needs a --format, or an extension such as .csv")
		}
		return printFrontier(st.stdout, t, objectives, constraints)
	}
	write, err := tableWriter(format)
	if err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	if output == "" {
		return write(st.stdout, t)
	}
	return results.WriteFile(output, func(w io.Writer) error { return write(w, t) })
}

func newReport(st *state) *cobra.Command {
	var f analysisFlags
	var output, title string
	cmd := &cobra.Command{
		Use:   "report RESULTS",
		Short: "Make report.html from a results file",
		Long: `report makes the one-file HTML report from a sweep's folder, or from any Parquet, CSV or JSON file with one row a
point, such as one made in pandas.`,
		Args: exactlyOne("RESULTS"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, objectives, constraints, err := f.load(args[0])
			if err != nil {
				return err
			}
			if title == "" {
				title = filepath.Base(args[0])
			}
			data := results.ReportData{Title: title, Table: t, Objectives: objectives, Constraints: constraints, Frontier: f.options(len(objectives))}
			if err := results.WriteFile(output, func(w io.Writer) error { return results.WriteReport(w, data) }); err != nil {
				return err
			}
			_, err = fmt.Fprintf(st.stdout, "Report: %s\n", output)
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", reportFile, "file to write")
	cmd.Flags().StringVar(&title, "title", "", "title of the report; the default is the file's name")
	return cmd
}
