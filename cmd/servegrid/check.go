package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/results/sensitivity"
)

// checkFlags say what to check in a results file.
type checkFlags struct {
	expect, axes         []string
	where                string
	tolerance            float64
	json, failOnSurprise bool
}

func newCheck(st *state) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check RESULTS",
		Short: "Find points that move against expectation",
		Long: `check compares points that differ in one axis only, by its next value, and names those whose figures move against what one
expects: more workers, KV memory or bandwidth never make anything slower, more load never makes it faster. Each surprise comes
with what is behind it. It may be real, as when another placement of requests loses prefixes, or a bug in a spec.

RESULTS is a sweep's folder, or any Parquet, CSV or JSON file with one row a point. With replicates the means are compared,
and a change has to exceed twice its standard error.`,
		Args: exactlyOne("RESULTS"),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(st, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&f.expect, "expect", nil, "one more expectation, such as 'block_size lowers prefix_cache_reused_ratio' or 'tp raises gpu_hours'; may be repeated")
	fs.StringSliceVar(&f.axes, "axis", nil, "columns that were varied; the default is all axes")
	fs.StringVar(&f.where, "where", "", "which points, such as 'workers >= 2 && policy == kv_router'")
	fs.Float64Var(&f.tolerance, "tolerance", 0.01, "relative change in the wrong direction that does not matter: 0.01 is 1 %")
	fs.BoolVar(&f.json, "json", false, "print everything as JSON")
	fs.BoolVar(&f.failOnSurprise, "fail-on-surprise", false, "exit with 1 when there is a surprise")
	return cmd
}

func (f *checkFlags) run(st *state, path string) error {
	opt := sensitivity.CheckOptions{Axes: f.axes, Tolerance: f.tolerance}
	var problems []error
	for _, text := range f.expect {
		e, err := sensitivity.ParseExpectation(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("--expect: %w", err))
		}
		opt.Expectations = append(opt.Expectations, e)
	}
	if !(f.tolerance >= 0) {
		problems = append(problems, fmt.Errorf("--tolerance: %v is not allowed; give 0 or more", f.tolerance))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	t, err := readWhere(st, path, f.where)
	if err != nil {
		return err
	}
	checks, err := sensitivity.Check(t, opt)
	if err != nil {
		return err
	}
	if f.json {
		err = printJSON(st, checks)
	} else {
		err = printLines(st, checkLines(checks))
	}
	if err == nil && f.failOnSurprise && len(checks.Surprises) > 0 {
		err = &exitError{code: exitDifferent}
	}
	return err
}

// mostSurprises bounds those that the terminal shows.
const mostSurprises = 10

// checkLines are a table of what was checked, and the surprises with what is behind them.
func checkLines(c *sensitivity.Checks) []string {
	var lines []string
	for _, caution := range c.Cautions {
		lines = append(lines, visible(caution))
	}
	if len(c.Checked) == 0 {
		return append(lines, "Nothing is expected of these axes; say what with --expect, such as 'block_size lowers prefix_cache_reused_ratio'.")
	}
	lines = append(lines, checkedTable(c.Checked))
	if len(c.Surprises) == 0 {
		return append(lines, "No surprise.")
	}
	for _, s := range c.Surprises[:min(len(c.Surprises), mostSurprises)] {
		lines = append(lines, visible(s.Text())+endsText(&s))
		for _, reason := range s.Reasons {
			lines = append(lines, "  "+visible(reason))
		}
	}
	if more := len(c.Surprises) - mostSurprises; more > 0 {
		lines = append(lines, fmt.Sprintf("… %d more; --json shows all", more))
	}
	return lines
}

// endsText names the two points of a surprise, for diff and report.
func endsText(s *sensitivity.Surprise) string {
	if s.From.ID == "" || s.To.ID == "" {
		return fmt.Sprintf("; rows %d and %d", s.From.Row+1, s.To.Row+1)
	}
	return fmt.Sprintf("; points %s and %s", cellText(s.From.ID[:min(len(s.From.ID), 8)]), cellText(s.To.ID[:min(len(s.To.ID), 8)]))
}

// checkedTable says what was expected and at how many pairs it holds.
func checkedTable(checked []sensitivity.Checked) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"expected", "pairs of points", "surprises"})
	shown := slices.Clone(checked)
	slices.SortStableFunc(shown, func(a, b sensitivity.Checked) int { return b.Surprises - a.Surprises })
	for _, c := range first(shown) {
		out.AppendRow(table.Row{cellText(c.String()), c.Pairs, c.Surprises})
	}
	if more := len(shown) - maxShownRows; more > 0 {
		out.AppendFooter(table.Row{fmt.Sprintf("… %d more", more)})
	}
	return out.Render()
}
