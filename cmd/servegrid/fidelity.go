package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/live/fidelity"
	"github.com/servegrid/servegrid/live/fidelity/page"
	"github.com/servegrid/servegrid/results"
)

// fidelityFlags say how two runs are compared.
type fidelityFlags struct {
	join   string
	bounds []string
	json   bool
	html   string
}

func newFidelity(st *state) *cobra.Command {
	var f fidelityFlags
	cmd := &cobra.Command{
		Use:   "fidelity A B",
		Short: "Say how far two runs of one workload agree",
		Long: `fidelity compares two runs request by request: a capture with its replay, a live run with its simulation, or any two
simulations. A and B are each what replay --report-parquet or --report-jsonl wrote, a point of a sweep with per_request
(RUN#3f2a), the folder of a live run, AIPerf's profile_export.jsonl, or a Dynamo capture: its file, or the folder of its files.

What must be equal is checked: requests, those sent and completed, sessions and their turns, the length of every answer, tokens,
and no errors. What may differ is measured: arrivals, durations, TTFT, ITL, input lengths, prefix reuse, schedule lag.

The exit code is 0 when they agree, 3 when a check fails or a bound is missed, and 2 when they cannot be compared.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return fmt.Errorf("%s needs two runs: %s\nRun '%s --help' for how to use it", cmd.CommandPath(), cmd.UseLine(), cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), st, args) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.join, "join", string(fidelity.JoinAuto), "what says that two requests are the same: "+strings.Join(fidelity.Joins(), ", "))
	fs.StringArrayVar(&f.bounds, "max", nil, "METRIC[.STATISTIC]=LIMIT[%]: how far they may be apart, such as ttft=5% for the means or arrival.p99=10 for the differences in ms (repeatable)")
	fs.BoolVar(&f.json, "json", false, "print everything as one JSON object")
	fs.StringVar(&f.html, "html", "", "where to write a page with plots of both")
	return cmd
}

func (f *fidelityFlags) run(ctx context.Context, st *state, args []string) error {
	bounds, err := f.check()
	if err != nil {
		return err
	}
	runs, err := readRuns(ctx, st, args)
	if err != nil {
		return err
	}
	c, err := fidelity.Compare(runs[0], runs[1], fidelity.Join(f.join), bounds)
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := results.WriteFile(f.html, func(w io.Writer) error { return page.Write(w, c) }); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if f.json {
		err = printJSON(st, c)
	} else {
		err = printLines(st, fidelityLines(c))
	}
	if err == nil && !c.Verdict.Agrees {
		err = &exitError{code: exitSLAMissed}
	}
	return err
}

// check reads the flags; the error lists all that is wrong with them.
func (f *fidelityFlags) check() ([]fidelity.Bound, error) {
	var problems []error
	if !slices.Contains(fidelity.Joins(), f.join) {
		problems = append(problems, fmt.Errorf("--join: %q is not allowed; give one of %s", f.join, strings.Join(fidelity.Joins(), ", ")))
	}
	var bounds []fidelity.Bound
	for _, text := range f.bounds {
		b, err := fidelity.ParseBound(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("--max: %w", err))
		}
		bounds = append(bounds, b)
	}
	return bounds, errors.Join(problems...)
}

// readRuns reads all runs, and says of all what is wrong with them.
func readRuns(ctx context.Context, st *state, names []string) ([]*fidelity.Run, error) {
	runs := make([]*fidelity.Run, len(names))
	var problems []error
	for i, name := range names {
		path, err := requestsOf(name)
		if err == nil {
			runs[i], err = fidelity.Read(ctx, st.source(), path)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		runs[i].Name = name
	}
	return runs, errors.Join(problems...)
}

// requestsOf is the file or folder of a run: for a point of a sweep, that of its requests.
func requestsOf(name string) (string, error) {
	dir, point, isPoint := splitPoint(name)
	if !isPoint {
		return name, nil
	}
	var found []string
	for id, paths := range keptFiles(dir, requestsFolder) {
		if strings.HasPrefix(id, point) {
			found = append(found, paths[0])
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s: %s has no requests of a point whose ID begins with %q; the spec must say `output: {per_request: true}`", name, dir, point)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s: the IDs of %d points begin with %q; give more of it", name, len(found), point)
}
