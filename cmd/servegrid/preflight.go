package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// check refuses flags whose values make no sense, all at once and before anything runs.
func (f *sweepFlags) check() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, format := range f.formats {
		if _, err := tableWriter(format); err != nil {
			bad("--format: %w", err)
		}
	}
	switch sweep.Retry(f.retry) {
	case sweep.RetryNone, sweep.RetryFailed, sweep.RetryAll:
	default:
		bad("--retry: %q is not allowed; use one of: none, failed, all", f.retry)
	}
	if f.jobs < 0 {
		bad("--jobs: %d is not allowed; give 1 or more, or 0 for the spec's number", f.jobs)
	}
	if f.timeout < 0 {
		bad("--timeout: %s is not allowed; give a duration above 0, or 0 for the spec's", f.timeout)
	}
	if f.shard.Count > 0 && f.failOn != "" {
		bad("--fail-on: whether a point keeps it cannot be told from one shard; give it to servegrid merge, which has the points of all")
	}
	problems = append(problems, f.queueFlags.check())
	return errors.Join(problems...)
}

// constraints parses --fail-on and looks for its columns, and for those of the objectives, in the table that the
// points will fill, so that a typo does not cost a whole sweep.
func (j *sweepJob) constraints(points []gridspec.Point) ([]results.Constraint, error) {
	var constraints []results.Constraint
	if j.flags.failOn != "" {
		var err error
		if constraints, err = results.ParseConstraints(j.flags.failOn); err != nil {
			return nil, fmt.Errorf("--fail-on: %w", err)
		}
	}
	if len(points) == 0 {
		return nil, nil // of a shard
	}
	if sample := someOf(points); len(sample) < len(points) && j.columnProblems(sample, constraints) == nil {
		return constraints, nil
	}
	return constraints, j.columnProblems(points, constraints)
}

// someOf are the first of many points and some of all: a table of them has all columns but for settings that hardly any
// point has.
func someOf(points []gridspec.Point) []gridspec.Point {
	const most = 500
	if len(points) <= 2*most {
		return points
	}
	out := slices.Clone(points[:most])
	for i := range most {
		out = append(out, points[most+i*(len(points)-most)/most])
	}
	return out
}

// columnProblems are the columns of the constraints and objectives that the table of these points will not have.
func (j *sweepJob) columnProblems(points []gridspec.Point, constraints []results.Constraint) error {
	rows := make([]results.Row, len(points))
	for i := range points {
		rows[i].Point = &points[i]
	}
	t := results.NewTable(rows, results.Metadata{})
	var problems []error
	if _, err := results.Feasible(t, constraints); err != nil {
		problems = append(problems, fmt.Errorf("--fail-on: %w", err))
	}
	if err := t.Candidates().Check(results.Analysis{Constraints: constraints}); err != nil {
		problems = append(problems, fmt.Errorf("--fail-on: %w", err))
	}
	for _, o := range j.objectives() {
		c, err := t.Lookup(o.Name)
		if err == nil && c.Kind == gridspec.KindString {
			err = fmt.Errorf("column %s holds text and cannot be maximized or minimized; name a metric, or an axis or derived value that is a number", c.Name)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("objectives: %w", err))
		}
	}
	return errors.Join(problems...)
}
