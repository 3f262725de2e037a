package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
)

// The files that a sweep leaves in its folder besides those of package sweep.
const (
	specFile   = "spec.yaml"
	reportFile = "report.html"
)

// furtherFormats are those that a sweep writes beside results.parquet when asked, as results.csv and so on.
func furtherFormats() []string { return []string{"csv", "json", "arrow"} }

func formatFile(format string) string {
	if format == "inferencex" {
		return "inferencex.json"
	}
	return "results." + format
}

// sweepFlags are the flags of the sweep command.
type sweepFlags struct {
	specFlags
	searchFlags
	telemetryFlags
	queueFlags
	output, retry, failOn       string
	scratch                     string
	formats                     []string
	jobs                        int
	timeout                     time.Duration
	fresh, dryRun, quiet, jsonl bool
	// conclusion is printed in the frontier's place when it is given.
	conclusion func(*sweepJob, *results.Table) error
	// aim says what a search goes after in place of the spec's objectives and SLA, when it is given.
	aim func(results.Analysis, []gridspec.Point) results.Analysis
}

func newSweep(st *state) *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep SPEC",
		Short: "Simulate every point of a grid spec and write results and report",
		Long: `sweep expands a grid spec, simulates every point on all cores and leaves in the output folder results.parquet,
report.html, the resolved spec and a journal. Finished points are safe within two seconds: after Ctrl-C or a crash the
same command runs what is missing, also when the spec was extended or edited.

Exit codes: 0 all points succeeded, 1 some failed (their rows say why), 2 the input was refused, 3 --fail-on was not
met, 75 something else was not there, such as the queue's server, a bucket or room on the disk (the same command goes on once
it is), 130 interrupted.`,
		Args: exactlyOne("SPEC"),
		RunE: func(cmd *cobra.Command, args []string) error { return runSweep(cmd.Context(), st, &f, args[0]) },
	}
	f.specFlags.add(cmd)
	fs := cmd.Flags()
	f.shardFlag.add(fs)
	f.searchFlags.add(fs)
	fs.StringVarP(&f.output, "output", "o", "", "output folder, or a URL such as s3://bucket/runs/first; the default is the spec's output.dir, or runs/NAME")
	fs.StringVar(&f.scratch, "scratch", "", "folder of this machine to work in when the output is at a URL; the default is below the user's cache")
	fs.IntVarP(&f.jobs, "jobs", "j", 0, "points simulated at the same time; 0 is the spec's execution.jobs, or one for each core")
	fs.DurationVar(&f.timeout, "timeout", 0, "longest time for one point; 0 is the spec's execution.timeout")
	fs.StringVar(&f.retry, "retry", string(sweep.RetryNone), "finished points to run again: none, failed, all")
	fs.BoolVar(&f.fresh, "fresh", false, "set earlier results in the folder aside and start from nothing")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would run and why, and do nothing")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	fs.BoolVar(&f.jsonl, "json", false, "print events as JSON Lines on the standard output")
	fs.StringVar(&f.failOn, "fail-on", "", "constraints that at least one point must keep, such as 'p99_ttft_ms <= 1500'")
	fs.StringSliceVar(&f.formats, "format", nil, "further files to write beside results.parquet: csv, json, arrow, inferencex")
	f.queueFlags.add(fs)
	f.telemetryFlags.add(fs)
	return cmd
}

func runSweep(ctx context.Context, st *state, f *sweepFlags, path string) error {
	f.set = append(f.set, f.overrides()...)
	spec, err := f.loadSpec(st, path)
	if err != nil {
		return errors.Join(f.check(), err)
	}
	job := &sweepJob{state: st, flags: f, spec: spec, specPath: path, dir: f.folder(spec, path)}
	if f.shard.Count > 0 {
		job.dir = files.Join(job.dir, sweep.ShardFolder(f.shard))
	}
	if job.resolved, err = spec.Resolved(job.dir); err != nil {
		return err
	}
	if spec.Search.Method != gridspec.SearchNone {
		if err := f.check(); err != nil {
			return err
		}
		if !f.quiet {
			f.warn(st, spec)
		}
		return job.withResults(ctx, func() error {
			return job.withTelemetry(ctx, func() error { return runSearch(ctx, job) })
		})
	}
	if f.points != "" {
		return errors.Join(f.check(), fmt.Errorf("--search-points %s: nothing is searched, so all points would be simulated; say how to search with --search, such as --search refine", f.points))
	}
	return job.withResults(ctx, func() error {
		return job.withTelemetry(ctx, func() error { return runPoints(ctx, job) })
	})
}

// runPoints simulates all points of the spec.
func runPoints(ctx context.Context, job *sweepJob) error {
	f, spec := job.flags, job.spec
	points, err := f.expandChecked(spec, job.specPath)
	if err = errors.Join(f.check(), err); err != nil {
		return err
	}
	defer collectEarlier(len(points))()
	if !f.quiet {
		f.warn(job.state, spec)
	}
	if err := job.checkPartitions(points); err != nil {
		return err
	}
	constraints, err := job.constraints(points)
	if err != nil {
		return err
	}
	opt := job.options()
	if len(points) == 0 {
		opt.WriteResults = nil
	}
	if f.dryRun {
		plan, err := sweep.Plan(ctx, points, opt)
		if err != nil {
			return err
		}
		return printPlan(job.state, f, plan)
	}
	progress := newProgress(job.state, f, job.objectives())
	out, err := job.withQueue(ctx, &opt, func() (sweep.Outcome, error) {
		job.telemetry.observe(job, &opt, progress)
		return sweep.Run(ctx, points, opt)
	})
	job.telemetry.ended(ctx, out, err)
	lost := progress.close()
	if err == nil {
		err = job.conclude(out, constraints)
	}
	if lost != nil {
		return &exitError{exitRefused, errors.Join(err, fmt.Errorf("--json: %w", lost))}
	}
	return err
}

// folder is where the results go.
func (f *sweepFlags) folder(spec *gridspec.Spec, path string) string {
	if f.output != "" {
		return f.output
	}
	if dir := spec.Output.Dir; dir != "" {
		return files.From(spec.Dir, dir)
	}
	name := spec.Name
	if name == "" && path != "-" {
		base := files.Base(path)
		name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return filepath.Join("runs", fileName(name))
}

// fileName makes a name safe as the name of a folder.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r < ' ' {
			return '-'
		}
		return r
	}, name)
	if strings.Trim(safe, ".") == "" {
		return "sweep"
	}
	return safe
}

// sweepJob is one sweep from its spec to its files.
type sweepJob struct {
	state    *state
	flags    *sweepFlags
	spec     *gridspec.Spec
	specPath string
	dir      string
	resolved []byte
	// merged is how many folders the results are from; 0 for a sweep.
	merged int
	// remote keeps the folder at a URL; nil when it is one of this machine.
	remote *remoteResults

	search    *searchJob // nil unless the spec says so
	telemetry *commandTelemetry

	laidOut []results.Row // the rows of the last table
	last    *results.Table

	partitionsMu sync.Mutex
	partitions   map[string]string // folders of points' files below that of their kind, by ID

	notesMu sync.Mutex
	notes   []string // about the workloads, each once
}

// companions lists the files and folders beside results.parquet that belong to its rows.
func companions() []string {
	names := []string{specFile, reportFile}
	for _, f := range pointFiles {
		names = append(names, f.folder)
	}
	for _, format := range furtherFormats() {
		names = append(names, formatFile(format))
	}
	return names
}

// isSpec reports whether a file of the folder is the very spec that is swept, which stays as it is.
func (j *sweepJob) isSpec(name string) bool {
	if j.remote != nil {
		return j.shown(name) == j.specPath
	}
	file, err := os.Stat(filepath.Join(j.dir, name))
	spec, specErr := os.Stat(j.specPath)
	return err == nil && specErr == nil && os.SameFile(file, spec)
}

func (j *sweepJob) options() sweep.Options {
	opt := sweep.Options{
		Dir:          j.dir,
		Name:         j.spec.Name,
		Companions:   slices.DeleteFunc(companions(), j.isSpec),
		Jobs:         j.flags.jobs,
		MemoryLimit:  int64(j.spec.Execution.MaxMemory),
		Timeout:      j.flags.timeout,
		Retry:        sweep.Retry(j.flags.retry),
		StopLost:     j.stopsLost(),
		Fresh:        j.flags.fresh,
		Stdin:        j.state.stdin,
		ContentID:    j.contentID,
		WriteResults: j.writeResults,
		Load:         j.loadWorkload,
		Replicate:    j.remote.replicate(),
	}
	if opt.Jobs == 0 {
		opt.Jobs = int(j.spec.Execution.Jobs)
	}
	if opt.Timeout == 0 {
		opt.Timeout = j.spec.Execution.Timeout
	}
	if j.keepsFiles() {
		opt.Simulate = j.simulateAndKeep
	}
	return opt
}

// stopsLost reports whether points end once they have lost the SLA, as the spec asks. Where the objective is how many
// requests keep it, losing it is no reason to.
func (j *sweepJob) stopsLost() bool {
	return j.spec.Execution.StopWhenSLALost && !results.CountsSLA(j.objectives())
}

// loadWorkload loads a workload and keeps what people should know about it.
func (j *sweepJob) loadWorkload(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
	src.Files, src.MaxExpansion = j.state.fileSystem(), j.state.places.maxExpansion
	w, err := s.Load(ctx, src)
	if err != nil {
		return nil, err
	}
	j.notesMu.Lock()
	defer j.notesMu.Unlock()
	for _, note := range workloadNotes(w) {
		if note = fmt.Sprintf("workload %s: %s", s.Label(), note); !slices.Contains(j.notes, note) {
			j.notes = append(j.notes, note)
		}
	}
	return w, nil
}

// objectives are those of the spec, or the defaults.
func (j *sweepJob) objectives() []results.Objective { return specObjectives(j.spec) }

func specObjectives(spec *gridspec.Spec) []results.Objective {
	var out []results.Objective
	for _, name := range spec.Objectives.Maximize {
		out = append(out, results.Objective{Name: name, Maximize: true})
	}
	for _, name := range spec.Objectives.Minimize {
		out = append(out, results.Objective{Name: name})
	}
	if len(out) == 0 {
		return results.DefaultObjectives()
	}
	return out
}

// table lays out the rows, with the frontier of those that keep the SLA marked. The same rows have the same table.
func (j *sweepJob) table(rows []results.Row) (*results.Table, error) {
	if len(rows) > 0 && len(rows) == len(j.laidOut) && &rows[0] == &j.laidOut[0] {
		return j.last, nil
	}
	j.laidOut, j.last = nil, nil // so that there is room for one
	t := results.NewTable(rows, results.Metadata{
		Spec:       string(j.resolved),
		Versions:   versions(),
		Objectives: j.objectives(),
	})
	t.AddCommands(func(row int) string { return reproduceCommand(*rows[row].Point) })
	if err := results.MarkFrontier(t, t.Analysis()); err != nil {
		return nil, err
	}
	j.markEdges(t, rows)
	j.laidOut, j.last = rows, t
	return t, nil
}

func (j *sweepJob) writeResults(path string, rows []results.Row) error {
	t, err := j.table(rows)
	if err != nil {
		return err
	}
	if err := results.WriteFile(path, func(w io.Writer) error { return results.WriteParquet(w, t) }); err != nil {
		return err
	}
	return j.remote.push(sweep.ResultsFile, path)
}
