package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live/fidelity/calibrate"
)

// calibrateFlags say what simulates the run that the timing model is fitted to.
type calibrateFlags struct {
	deploymentFlags
	workloadFlags
	spec  string
	point int
	json  bool
}

func newCalibrate(st *state) *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate RUN [TRACE...]",
		Short: "Fit the timing model's overheads to a measured run",
		Long: `calibrate simulates the workload of a run with the run's own starts, and looks for the terms of the timing model with which TTFT and
ITL of each request come closest to what was measured: pass_overhead_ms, request_overhead_ms, prefill_scale and decode_scale.

RUN is what fidelity takes: the folder of a live run, AIPerf's profile_export.jsonl, a capture, or the requests of a replay. What
simulates it is a --spec of one point, or TRACE and the flags of replay.

Every third session is held out: the terms are fitted to the others, and the error is shown of both, before and after. A term that
the run does not tell is left as it is. What is printed at the end goes into a spec.`,
		Args: atLeastOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, st, args[0], args[1:]) },
	}
	fs := cmd.Flags()
	f.deploymentFlags.add(fs)
	f.workloadFlags.add(fs)
	fs.StringVar(&f.spec, "spec", "", "grid spec of one point, instead of the flags of replay")
	fs.IntVar(&f.point, "point", 0, "spec of several points: which one, by its number in servegrid spec expand, from 0")
	fs.BoolVar(&f.json, "json", false, "print everything as one JSON object")
	return cmd
}

func (f *calibrateFlags) run(cmd *cobra.Command, st *state, name string, traces []string) error {
	ctx := cmd.Context()
	point, notes, pointErr := f.onePoint(cmd.Flags(), st, traces)
	runs, runErr := readRuns(ctx, st, []string{name})
	if err := errors.Join(pointErr, runErr); err != nil {
		return err
	}
	if err := printNotes(st.stderr, notes); err != nil {
		return err
	}
	if point.Config.Planned() {
		return errors.New("planner: a run is fitted to a fixed number of workers; leave the planner out")
	}
	w, err := st.load(ctx, point)
	if err != nil {
		return err
	}
	fitted, err := calibrate.Fit(ctx, point.Config.Config, w, runs[0])
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(st, fitted)
	}
	return printLines(st, calibrationLines(fitted))
}

// onePoint is the point that a spec or the flags describe.
func (f *calibrateFlags) onePoint(flags *pflag.FlagSet, st *state, traces []string) (*gridspec.Point, []string, error) {
	if f.spec != "" {
		given := append(slices.Clone(traces), givenBesideSpec(flags, &deploymentFlags{}, &workloadFlags{})...)
		if err := refuseBesideSpec(given, "workload and deployment"); err != nil {
			return nil, nil, err
		}
		_, point, warnings, err := pointOfSpec(flags, st, f.spec, f.set, f.point, "needed")
		return point, warnings, err
	}
	b := specBuilder{flags: flags, files: st.fileSystem(), spec: map[string]any{}}
	if flags.Changed("point") {
		b.refuse(errors.New("--point is for a --spec of several points"))
	}
	b.refuse(checkFinite(flags))
	f.addSections(&b)
	b.refuse(f.sections(flags, b.spec))
	f.addLoad(&b)
	f.addDeployment(&b)
	f.addWorkload(&b, traces, f.compat)
	f.addRouter(&b)
	point, err := b.point(f.set)
	return point, append(b.notes, b.cautions...), err
}
