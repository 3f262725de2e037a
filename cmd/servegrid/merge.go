package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/storage"
	"github.com/servegrid/servegrid/sweep/telemetry"
)

// mergeFlags are the flags of the merge command.
type mergeFlags struct {
	sweepFlags
	spec         string
	allowMissing bool
}

func newMerge(st *state) *cobra.Command {
	var f mergeFlags
	cmd := &cobra.Command{
		Use:   "merge FOLDER... --output DIR",
		Short: "Put the results of several folders together, such as those of shards",
		Long: `merge puts the results of sweeps of one spec, or of it and its extensions, into one folder, as if one machine had
simulated all: with the journal, results.parquet, the report and the files of points. A FOLDER is that of a sweep, or one with
the folders of shards in it. Points that several folders have count once. When they disagree about a point, that is an error
which names it, and nothing is written. DIR may exist, and be one of the folders: merging again changes nothing.

The spec is that of the folders when they have the same, else --spec gives it. A later servegrid sweep SPEC --output DIR
simulates what is missing.

Exit codes: 0 all points of the spec are there and succeeded, 1 some are missing or failed, 2 the input was refused, also for
a conflict, 3 --fail-on was not met, 75 something else was not there, such as room on the disk or the bucket.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return fmt.Errorf("%s needs folders of results: %s\nRun '%s --help' for how to use it", cmd.CommandPath(), cmd.UseLine(), cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runMerge(cmd.Context(), st, &f, args) },
	}
	f.specFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.output, "output", "o", "", "folder of the merged results")
	fs.StringVar(&f.spec, "spec", "", "spec of the merged results; the default is that of the folders")
	fs.BoolVar(&f.allowMissing, "allow-missing", false, "exit with 0 also when some points of the spec are missing")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	fs.StringVar(&f.failOn, "fail-on", "", "constraints that at least one point must keep, such as 'p99_ttft_ms <= 1500'")
	fs.StringSliceVar(&f.formats, "format", nil, "further files to write beside results.parquet: csv, json, arrow, inferencex")
	f.retry = string(sweep.RetryNone)
	return cmd
}

func runMerge(ctx context.Context, st *state, f *mergeFlags, args []string) error {
	if f.output == "" {
		return errors.New("--output: no folder is given; say where the merged results go")
	}
	folders, err := st.resultFolders(ctx, args)
	if err = errors.Join(f.check(), err); err != nil {
		return err
	}
	job, err := f.job(st, folders)
	if err != nil {
		return err
	}
	return job.withResults(ctx, func() error { return f.merge(ctx, job, folders) })
}

// resultFolders finds the folders of results that the arguments name. Those at URLs are copies on this machine.
func (st *state) resultFolders(ctx context.Context, args []string) ([]string, error) {
	opt := storage.PullOptions{Journal: true}
	for _, f := range pointFiles {
		opt.Folders = append(opt.Folders, f.folder)
	}
	var paths []string
	for _, arg := range args {
		urls := []string{arg}
		if files.IsURL(arg) {
			entries, err := st.fileSystem().List(ctx, arg)
			if err != nil {
				return nil, err
			}
			shards := slices.DeleteFunc(entries, func(e files.Entry) bool {
				_, shard := sweep.ShardOfFolder(e.Name)
				return !shard
			})
			if len(shards) > 0 && !slices.ContainsFunc(entries, func(e files.Entry) bool { return e.Name == "journal" }) {
				urls = nil
			}
			for _, e := range shards {
				urls = append(urls, files.Join(arg, e.Name))
			}
		}
		for _, url := range urls {
			path, err := st.localResults(ctx, url, opt)
			if err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
	}
	return sweep.ResultFolders(paths)
}

// merge merges the folders into that of the job.
func (f *mergeFlags) merge(ctx context.Context, job *sweepJob, folders []string) error {
	points, err := f.expand(job.spec, job.specPath)
	if err != nil {
		return err
	}
	defer collectEarlier(len(points))()
	if err := job.checkPartitions(points); err != nil {
		return err
	}
	constraints, err := job.constraints(points)
	if err != nil {
		return err
	}
	opt, objective := job.options(), newProgress(job.state, &f.sweepFlags, job.objectives()).objective
	about := statusOf(job.spec.Name)
	about.MergedFolders, job.merged = len(folders), len(folders)
	status := telemetry.NewStatusFile(opt.Dir, about, objective, job.state.now)
	opt.Observer = status
	merged, err := sweep.Merge(ctx, folders, points, opt)
	if err != nil {
		_ = status.Close(telemetry.StateStopped, len(points))
		return err
	}
	state := telemetry.StateComplete
	if merged.Missing > 0 {
		state = telemetry.StateIncomplete
	}
	_ = status.Close(state, merged.Counts.Total) // for those who ask
	if err := errors.Join(job.writeSpec(), job.copyPointFiles(folders)); err != nil {
		return err
	}
	for _, note := range mergeNotes(&merged, f.quiet) {
		if err := printText(job.state.stderr, "%s\n", note); err != nil {
			return err
		}
	}
	merged.Counts.KeptFailed, merged.Counts.Reused = 0, 0 // as all rows are
	err = job.conclude(merged.Outcome, constraints)
	if exit := new(exitError); err != nil && !errors.As(err, &exit) || merged.Missing == 0 || f.allowMissing {
		return err
	}
	return f.missingError(err, job, folders, merged.Missing)
}

// job is the sweep whose results are merged.
func (f *mergeFlags) job(st *state, folders []string) (*sweepJob, error) {
	job := &sweepJob{state: st, flags: &f.sweepFlags, dir: f.output}
	var err error
	if f.spec != "" {
		job.specPath = f.spec
		job.spec, err = f.loadSpec(st, f.spec)
	} else {
		if len(f.set) > 0 {
			return nil, errors.New("--set: it changes a spec that is given with --spec; the folders' own specs are what was swept")
		}
		job.spec, job.specPath, err = f.commonSpec(st, folders)
	}
	if err != nil {
		return nil, err
	}
	if job.spec.Search.Method != gridspec.SearchNone {
		return nil, fmt.Errorf("%s searches, so which points belong to the results is known to its sweep only; give the spec without its search with --spec, such as --spec %s --set search.method=none", job.specPath, job.specPath)
	}
	job.resolved, err = job.spec.Resolved(job.dir)
	return job, err
}

// commonSpec is the spec that all of the folders which have one agree in.
func (f *mergeFlags) commonSpec(st *state, folders []string) (*gridspec.Spec, string, error) {
	var first *gridspec.Spec
	var firstPath, text string
	for _, dir := range folders {
		path := filepath.Join(dir, specFile)
		if !isFile(path) {
			continue
		}
		spec, resolved, err := f.folderSpec(st, path)
		if err != nil {
			return nil, "", err
		}
		if first == nil {
			first, firstPath, text = spec, path, resolved
		}
		if resolved != text {
			return nil, "", fmt.Errorf("the folders have different specs, such as %s and %s; say with --spec which one the merged results are for", firstPath, path)
		}
	}
	if first == nil {
		return nil, "", fmt.Errorf("none of the folders has a %s; give the spec with --spec", specFile)
	}
	return first, firstPath, nil
}

// folderSpec loads the spec of a folder. Text is what it would be in the merged folder.
func (f *mergeFlags) folderSpec(st *state, path string) (spec *gridspec.Spec, text string, err error) {
	if spec, err = gridspec.Load(gridspec.Source{Path: path, Files: st.fileSystem()}); err != nil {
		return nil, "", err
	}
	resolved, err := spec.Resolved(f.output)
	return spec, string(resolved), err
}

// otherSpecs lists the folders whose spec is known not to be the job's.
func (f *mergeFlags) otherSpecs(job *sweepJob, folders []string) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(dir string) bool {
		_, text, err := f.folderSpec(job.state, filepath.Join(dir, specFile))
		return err != nil || text == string(job.resolved)
	})
}

// mergeNotes says what was special about the folders; quiet, what somebody should look at.
func mergeNotes(m *sweep.Merged, quiet bool) []string {
	var notes []string
	for _, f := range m.Folders {
		if f.OtherVersions > 0 && !quiet {
			notes = append(notes, fmt.Sprintf("%s: %s of another simulator version (%s) not used", f.Dir, plural(f.OtherVersions, "result"), strings.Join(f.Versions, ", ")))
		}
		if f.Damaged > 0 {
			notes = append(notes, fmt.Sprintf("warning: %s: %s of the journal unreadable and left out: the disk or somebody changed it", f.Dir, plural(f.Damaged, "line")))
		}
	}
	if quiet {
		return notes
	}
	for _, err := range m.Unloaded {
		notes = append(notes, fmt.Sprintf("a workload cannot be loaded here, so its points have the results of the folders as they are: %v", err))
	}
	return notes
}

// maxNamed bounds how many folders a message names.
const maxNamed = 20

// someNames lists names, not more than a message can hold.
func someNames(names []string) string {
	some := slices.Clone(names[:min(len(names), maxNamed)])
	if more := len(names) - len(some); more > 0 {
		some = append(some, fmt.Sprintf("%d more", more))
	}
	return strings.Join(some, ", ")
}

// missingError says which points are missing, and what simulates them. Other is what else is wrong.
func (f *mergeFlags) missingError(other error, job *sweepJob, folders []string, missing int) error {
	spec := job.specPath
	if filepath.Base(spec) == specFile || len(f.set) > 0 {
		spec = job.shown(specFile)
	}
	text := fmt.Sprintf("%s of the spec missing", plural(missing, "point"))
	var absent []string
	for _, s := range sweep.MissingShards(folders) {
		absent = append(absent, sweep.ShardFolder(s))
	}
	if len(absent) > 0 {
		text += " (not there: " + someNames(absent) + ")"
	}
	if others := f.otherSpecs(job, folders); len(others) > 0 {
		text += " (made from another spec: " + someNames(others) + ")"
	}
	err := fmt.Errorf("%s; servegrid sweep %s --output %s simulates them here, --allow-missing takes the rest as it is", text, spec, job.shown())
	code := exitSomeFailed
	if exit := new(exitError); errors.As(other, &exit) {
		code, err = exit.code, errors.Join(exit.err, err)
	}
	return &exitError{code, err}
}
