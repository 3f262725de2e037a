package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// conclude writes what follows from the rows, prints the frontier and decides the exit code.
func (j *sweepJob) conclude(out sweep.Outcome, failOn []results.Constraint) error {
	if len(out.Rows) > 0 && out.ResultsWritten {
		t, err := j.table(out.Rows)
		if err != nil {
			return err
		}
		if err := j.writeFiles(t, out.Rows); err != nil {
			return err
		}
		if err := j.print(out, t); err != nil {
			return err
		}
		if err := checkConstraints(t, failOn); err != nil && !out.Interrupted {
			return err
		}
	}
	switch c := out.Counts; {
	case out.Interrupted:
		fmt.Fprintf(j.state.stderr, "interrupted: %d of %d points are finished and kept in %s; the same command runs the other %d\n",
			c.Total-c.Left, c.Total, j.dir, c.Left)
		return &exitError{code: exitInterrupted}
	case c.Failed > 0:
		return &exitError{exitSomeFailed, fmt.Errorf("%d of %d points failed; column reason of %s says why, --retry failed runs them again",
			c.Failed, c.Total, filepath.Join(j.dir, sweep.ResultsFile))}
	}
	return nil
}

// checkConstraints fails when no point keeps all constraints of --fail-on.
func checkConstraints(t *results.Table, constraints []results.Constraint) error {
	if len(constraints) == 0 {
		return nil
	}
	feasible, err := results.Feasible(t, constraints)
	if err != nil {
		return fmt.Errorf("--fail-on: %w", err)
	}
	if slices.Contains(feasible, true) {
		return nil
	}
	return &exitError{exitSLAMissed, errors.New("no point keeps --fail-on")}
}

// writeFiles writes the resolved spec, the report and the further formats.
func (j *sweepJob) writeFiles(t *results.Table, rows []results.Row) error {
	if err := results.WriteFile(filepath.Join(j.dir, specFile), func(w io.Writer) error {
		_, err := w.Write(j.resolved)
		return err
	}); err != nil {
		return err
	}
	title := j.spec.Name
	if title == "" {
		title = filepath.Base(j.specPath)
	}
	data := results.ReportData{
		Title:       title,
		Table:       t,
		Objectives:  j.objectives(),
		Constraints: j.slaConstraints(rows),
		Command:     func(row int) string { return reproduceCommand(rows[row].Point) },
	}
	if err := results.WriteFile(filepath.Join(j.dir, reportFile), func(w io.Writer) error {
		return results.WriteReport(w, data)
	}); err != nil {
		return err
	}
	for _, format := range j.flags.formats {
		write, err := tableWriter(format)
		if err != nil {
			return err
		}
		err = results.WriteFile(filepath.Join(j.dir, "results."+format), func(w io.Writer) error { return write(w, t) })
		if err != nil {
			return err
		}
	}
	return nil
}

// slaConstraints are the bounds of the SLA, when all points have the same one.
func (j *sweepJob) slaConstraints(rows []results.Row) []results.Constraint {
	sla := rows[0].Point.Config.SLA
	for i := range rows {
		if rows[i].Point.Config.SLA != sla {
			return nil
		}
	}
	return results.SLAConstraints(sla)
}

// print shows the frontier and where everything is.
func (j *sweepJob) print(out sweep.Outcome, t *results.Table) error {
	if j.flags.quiet || j.flags.jsonl {
		return nil
	}
	w := j.state.stdout
	if err := printFrontier(w, t, j.objectives()); err != nil {
		return err
	}
	c := out.Counts
	fmt.Fprintf(w, "%d points: %d ok, %d failed, %d skipped", c.Total, c.OK, c.Failed, c.Skipped)
	if c.Reused > 0 {
		fmt.Fprintf(w, "; %d simulated now, %d reused", c.Simulated, c.Reused)
	}
	if c.Left > 0 {
		fmt.Fprintf(w, "; %d left", c.Left)
	}
	fmt.Fprintf(w, "\nResults: %s\nReport:  %s\n", filepath.Join(j.dir, sweep.ResultsFile), filepath.Join(j.dir, reportFile))
	for _, note := range journalNotes(out) {
		fmt.Fprintln(j.state.stderr, note)
	}
	return nil
}

// journalNotes says what was special about earlier results in the folder.
func journalNotes(out sweep.Outcome) []string {
	var notes []string
	if s := out.Journal; s.OtherVersions > 0 {
		notes = append(notes, fmt.Sprintf("%d earlier results come from another simulator version (%v) and were not used", s.OtherVersions, s.Versions))
	}
	if n := out.Journal.Damaged; n > 0 {
		notes = append(notes, fmt.Sprintf("%d lines of the journal were unreadable and left out", n))
	}
	if n := out.Counts.KeptFailed; n > 0 {
		notes = append(notes, fmt.Sprintf("%d earlier failures were kept; --retry failed runs them again", n))
	}
	for _, name := range out.Journal.SetAside {
		notes = append(notes, "set aside: "+name)
	}
	return notes
}
