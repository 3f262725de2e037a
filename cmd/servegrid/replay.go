package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// replayFlags are the flags of python -m dynamo.replay, and the sections of a grid spec that it lacks.
type replayFlags struct {
	deploymentFlags
	workloadFlags
	mode                                   string
	onlineSpeedup                          float64
	reportJSON, reportJSONL, reportParquet string
	maxSimTimeSeconds                      float64
	plannerFlags
	plannerOutput string

	// page says where the planner's page goes, as far as its configuration does.
	page plannerPage
}

func newReplay(st *state) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [TRACE...]",
		Short: "Simulate one configuration on a trace or a synthetic workload",
		Long: `replay simulates one configuration and prints its latency and throughput table.

The flags have the names of python -m dynamo.replay, so that its command lines work with the program's name changed.
What the reference lacks is a section of the grid spec as JSON, such as --timing '{"source":"fixed","prefill_ms":30,"decode_ms":8}'.`,
		RunE: func(cmd *cobra.Command, args []string) error { return replay(cmd, st, &f, args) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *replayFlags) add(fs *pflag.FlagSet) {
	f.deploymentFlags.add(fs)
	f.workloadFlags.add(fs)
	fs.StringVar(&f.mode, "replay-mode", modeOffline, "offline: simulated time; online: requests arrive in real time")
	fs.Float64Var(&f.onlineSpeedup, "online-speedup", 1, "online: simulated seconds that pass in a real one")
	fs.StringVar(&f.reportJSON, "report-json", "", "where to write the full report; the default is a new file in the working folder")
	fs.StringVar(&f.reportJSONL, "report-jsonl", "", "where to write one JSON object per request")
	fs.StringVar(&f.reportParquet, "report-parquet", "", "where to write the same as a Parquet file, one row per request")
	fs.Float64Var(&f.maxSimTimeSeconds, "max-sim-time-seconds", 0, "stop before the simulated clock passes this")
	f.plannerFlags.add(fs)
	fs.StringVar(&f.plannerOutput, "planner-output", "", "folder for what the planner saw and did: ticks, workers, decisions and events as Parquet and JSON Lines, and its page")
}

func replay(cmd *cobra.Command, st *state, f *replayFlags, traces []string) error {
	point, notes, err := f.point(cmd, st.fileSystem(), traces)
	if err != nil {
		return err
	}
	if err := printNotes(st.stderr, notes); err != nil {
		return err
	}
	ctx := cmd.Context()
	w, err := st.load(ctx, point)
	if err != nil {
		return err
	}
	var opt simcore.Options
	records, err := openRecords(f.reportJSONL, f.reportParquet, w, &opt)
	if err != nil {
		return err
	}
	started := time.Now()
	outcome, interrupted := f.simulate(ctx, st, point, w, opt)
	if outcome == nil {
		return interrupted
	}
	report := outcome.Report
	wall := time.Since(started)
	if err := printNotes(st.stderr, plannerNotes(outcome.Record)); err != nil {
		return err
	}
	if err := records.close(point.Config.Config); err != nil {
		return err
	}
	if point.GPUPrice != (metrics.GPUPrice{}) || point.Config.Stages()[0].Timing.GPU != "" {
		*report = report.WithCost(point.GPUPrice, point.Config.GPUs())
	}
	page, err := f.writePlanner(outcome)
	if err != nil {
		return err
	}
	path, err := writeReportJSON(f.reportJSON, st.now(), report, point.Config.Config, w, wall)
	if err != nil {
		return err
	}
	if err := printText(st.stdout, "%s", scalingText(outcome.Record)); err != nil {
		return err
	}
	if err := printReport(st.stdout, report, point.Config.Config, wall, path); err != nil {
		return err
	}
	return errors.Join(printText(st.stdout, "%s%s", onlineText(report), plannerText(outcome.Record, page)), interrupted)
}

// workloadNotes says what people should know about where the requests come from.
func workloadNotes(w *workload.Workload) []string {
	if w.Detected != "" && w.Format != workload.FormatMooncake {
		return append([]string{w.Detected}, w.Warnings...)
	}
	return w.Warnings
}

func printNotes(w io.Writer, notes []string) error {
	for _, note := range notes {
		if err := printText(w, "Note: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

// point turns the flags into a spec of one point, so that everything is checked in one place, and returns what changes
// nothing. The error holds all that is wrong.
func (f *replayFlags) point(cmd *cobra.Command, system files.System, traces []string) (point *gridspec.Point, notes []string, err error) {
	flags := cmd.Flags()
	b := specBuilder{flags: flags, files: system, spec: map[string]any{}}
	b.refuse(f.checkMode(flags.Changed))
	b.refuse(checkFinite(flags))
	f.addSections(&b)
	b.refuse(f.sections(flags, b.spec))
	b.refuse(f.refuseSharedPaths(traces))
	b.noteIdle(len(traces) > 0)
	f.addLoad(&b)
	f.addTimeLimit(&b)
	planned := false
	if f.page, planned = f.plannerArgs(&b, f.compat != ""); !planned {
		f.page.off = f.plannerOutput == "" // a planner that --set gives has no page unless somebody says where
	}
	f.addDeployment(&b)
	f.addWorkload(&b, traces, f.compat)
	f.addRouter(&b)
	point, err = b.point(f.set)
	if err == nil && f.plannerOutput != "" && !point.Config.Planned() {
		err = errors.New("--planner-output: there is no planner; give --planner-config, with another policy than static")
	}
	if f.compat != "" { // the reference says nothing either
		b.notes = nil
	}
	return point, append(b.notes, b.cautions...), err
}

// specBuilder collects a spec and all that is wrong with it.
type specBuilder struct {
	flags    *pflag.FlagSet
	files    files.System
	spec     map[string]any
	problems []error
	notes    []string
	// cautions are notes that the rules of the reference do not silence.
	cautions []string
	// noWorkload says that what to replay is among the problems already.
	noWorkload bool
	// loaded is the spec, once there is a point.
	loaded *gridspec.Spec
}

func (b *specBuilder) refuse(err error) {
	if err != nil {
		b.problems = append(b.problems, err)
	}
}

// point expands the spec to its only point.
func (b *specBuilder) point(set []string) (*gridspec.Point, error) {
	data, err := json.Marshal(b.spec)
	if err != nil {
		return nil, errors.Join(append(b.problems, err)...)
	}
	loaded, err := gridspec.Load(gridspec.Source{Path: flagsSource, Data: data, Format: gridspec.JSON, Set: set, Dir: ".", Files: b.files})
	var points []gridspec.Point
	if err == nil {
		points, err = loaded.Expand(gridspec.ExpandOptions{MaxPoints: 1})
	}
	if err != nil {
		b.refuse(blameFlags(b.flags, err, b.noWorkload))
	}
	if len(b.problems) > 0 {
		return nil, errors.Join(b.problems...)
	}
	b.loaded = loaded
	for _, w := range loaded.Warnings() {
		b.notes = append(b.notes, blameFlag(b.flags, w).Error())
	}
	return &points[0], nil
}

// addTimeLimit says when the simulation stops.
func (f *replayFlags) addTimeLimit(b *specBuilder) {
	if b.flags.Changed("max-sim-time-seconds") {
		// In a spec 0 is no limit. Here it is one, which the first moment keeps.
		b.spec["load"].(map[string]any)["max_sim_time_seconds"] = finite(cmp.Or(f.maxSimTimeSeconds, math.SmallestNonzeroFloat64))
	}
}
