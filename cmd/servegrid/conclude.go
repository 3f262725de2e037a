package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// conclude writes what follows from the rows, prints the frontier and decides the exit code.
func (j *sweepJob) conclude(out sweep.Outcome, failOn []results.Constraint) error {
	if out.Counts.Total == 0 {
		return j.concludeEmptyShard()
	}
	missed := false
	if len(out.Rows) > 0 && out.ResultsWritten {
		t, err := j.table(out.Rows)
		if err != nil {
			return err
		}
		if err := j.sortFiles(out.Rows); err != nil {
			return err
		}
		if err := j.writeFiles(t); err != nil {
			return err
		}
		if err := j.print(out, t); err != nil {
			return err
		}
		missed = !out.Interrupted && !kept(t, failOn)
	}
	failed := errors.Join(j.failures(out), disagreement(out))
	switch c := out.Counts; {
	case out.Interrupted && j.search != nil:
		return &exitError{exitInterrupted, fmt.Errorf("interrupted: %s finished and kept in %s; %s goes on with the search",
			plural(c.Total-c.Left+c.Shortened, "point"), j.shown(), j.resumeCommand())}
	case out.Interrupted:
		return &exitError{exitInterrupted, fmt.Errorf("interrupted: %d of %d points are finished and kept in %s; %s runs the other %d",
			c.Total-c.Left, c.Total, j.shown(), j.resumeCommand(), c.Left)}
	case missed:
		return &exitError{exitSLAMissed, errors.Join(failed, fmt.Errorf("no point keeps --fail-on %q", j.flags.failOn))}
	case failed != nil:
		return &exitError{exitSomeFailed, failed}
	}
	return nil
}

// resumeCommand says how an interrupted sweep goes on. Flags that start over must not be repeated.
func (j *sweepJob) resumeCommand() string {
	switch {
	case j.flags.fresh:
		return "the same command without --fresh"
	case sweep.Retry(j.flags.retry) != sweep.RetryNone:
		return "the same command without --retry"
	}
	return "the same command"
}

// disagreement says which points the machines of a sweep found different figures for; it is nil when there are none.
func disagreement(out sweep.Outcome) error {
	if len(out.Conflicts) == 0 {
		return nil
	}
	const shown = 5
	ids := strings.Join(out.Conflicts[:min(shown, len(out.Conflicts))], ", ")
	if more := len(out.Conflicts) - shown; more > 0 {
		ids += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("two machines disagree: %s had two results with different figures (%s); the first ones are kept, so find the machine that is wrong and run them again with --retry all",
		plural(len(out.Conflicts), "point"), ids)
}

// failures sums up the failed points by reason; it is nil when there are none.
func (j *sweepJob) failures(out sweep.Outcome) error {
	if out.Counts.Failed == 0 {
		return nil
	}
	var reasons []string
	first, count := map[string]string{}, map[string]int{}
	for i := range out.Rows {
		if r := &out.Rows[i]; r.Status == results.StatusFailed {
			if count[r.Reason]++; count[r.Reason] == 1 {
				reasons = append(reasons, r.Reason)
				first[r.Reason] = r.Error
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %s failed; the columns reason and error of %s say why, --retry failed runs them again",
		out.Counts.Failed, plural(out.Counts.Total, "point"), j.shown(sweep.ResultsFile))
	for _, reason := range reasons {
		fmt.Fprintf(&b, "\n  %s (%d): %s", reason, count[reason], strings.ReplaceAll(first[reason], "\n", "\n    "))
	}
	return errors.New(b.String())
}

// kept reports whether some point keeps all constraints of --fail-on, whose columns are known to exist. Replicates
// count with their mean.
func kept(t *results.Table, constraints []results.Constraint) bool {
	feasible, err := results.Feasible(t.Candidates().Table, constraints)
	return err == nil && (len(constraints) == 0 || slices.Contains(feasible, true))
}

// writeFiles writes the resolved spec, the report and the further formats: those that are asked for, and those that an
// earlier run left, so that all files of a folder agree.
func (j *sweepJob) writeFiles(t *results.Table) error {
	if err := j.writeSpec(); err != nil {
		return err
	}
	title := j.spec.Name
	if title == "" {
		title = filepath.Base(j.specPath)
	}
	if j.flags.shard.Count > 0 {
		title += ", shard " + j.flags.shard.String()
	}
	data := results.ReportData{
		Title:    title,
		Table:    t,
		Analysis: t.Analysis(),
	}
	var err error
	if data.Timelines, err = reportTimelines([]string{j.dir}, t); err != nil {
		return err
	}
	if err := j.writeFile(reportFile, func(w io.Writer) error { return results.WriteReport(w, data) }); err != nil {
		return err
	}
	formats := slices.Clone(j.flags.formats)
	for _, format := range furtherFormats() {
		if !slices.Contains(formats, format) && isFile(filepath.Join(j.dir, formatFile(format))) {
			formats = append(formats, format)
		}
	}
	for _, format := range formats {
		write, err := tableWriter(format)
		if err != nil {
			return err
		}
		if err := j.writeFile(formatFile(format), func(w io.Writer) error { return write(w, t) }); err != nil {
			return err
		}
	}
	return nil
}

// writeSpec writes the resolved spec.
func (j *sweepJob) writeSpec() error {
	return j.writeFile(specFile, func(w io.Writer) error {
		_, err := w.Write(j.resolved)
		return err
	})
}

// writeFile writes a file of the folder, unless it is the spec.
func (j *sweepJob) writeFile(name string, write func(io.Writer) error) error {
	if j.isSpec(name) {
		return nil
	}
	return results.WriteFile(filepath.Join(j.dir, name), write)
}

// print shows the frontier and where everything is.
func (j *sweepJob) print(out sweep.Outcome, t *results.Table) error {
	if j.flags.quiet && j.flags.conclusion == nil {
		return nil
	}
	slices.Sort(j.notes)
	notes := append(journalNotes(out), j.notes...)
	notes = append(notes, j.missingFiles(out.Rows)...)
	for _, note := range notes {
		if err := printText(j.state.stderr, "%s\n", note); err != nil {
			return err
		}
	}
	if j.flags.jsonl {
		return nil
	}
	if j.flags.conclusion != nil && !out.Interrupted {
		return j.flags.conclusion(j, t)
	}
	w := j.state.stdout
	if err := printFrontier(w, t, t.Analysis()); err != nil {
		return err
	}
	if j.search != nil {
		if err := errors.Join(j.search.print(w), j.printEdges(w, t)); err != nil {
			return err
		}
	}
	c := out.Counts
	counts := j.flags.label() + fmt.Sprintf("%s: %d ok, %d failed, %d skipped", plural(c.Total, "point"), c.OK, c.Failed, c.Skipped)
	if c.Stopped > 0 {
		counts += fmt.Sprintf(", %d stopped because they could no longer keep the SLA", c.Stopped)
	}
	if c.Shortened > 0 {
		counts += fmt.Sprintf("; %d more on a part of the workload", c.Shortened)
	}
	if c.Reused > 0 {
		counts += fmt.Sprintf("; %d simulated now, %d reused", c.Simulated, c.Reused)
	}
	if c.Left > 0 {
		counts += fmt.Sprintf("; %d left", c.Left)
	}
	if j.merged > 0 {
		counts += "; from " + plural(j.merged, "folder")
	}
	return printText(w, "%s\nResults: %s\nReport:  %s\n", counts, j.shown(sweep.ResultsFile), j.shown(reportFile))
}

// journalNotes says what was special about earlier results in the folder.
func journalNotes(out sweep.Outcome) []string {
	var notes []string
	if s := out.Journal; s.OtherVersions > 0 {
		notes = append(notes, fmt.Sprintf("%s of another simulator version (%v) not used", plural(s.OtherVersions, "earlier result"), s.Versions))
	}
	if n := out.Journal.Damaged; n > 0 {
		notes = append(notes, fmt.Sprintf("%s of the journal unreadable and left out", plural(n, "line")))
	}
	if n := out.Journal.Unused; n > 0 {
		notes = append(notes, fmt.Sprintf("%s also keeps %s of points that this spec does not have; %s leaves them out", sweep.JournalFile, plural(n, "earlier result"), sweep.ResultsFile))
	}
	if n := out.Counts.KeptFailed; n > 0 {
		notes = append(notes, fmt.Sprintf("%s kept; --retry failed runs again what failed", plural(n, "earlier failure")))
	}
	for _, name := range out.Journal.SetAside {
		notes = append(notes, "set aside: "+name)
	}
	return notes
}
