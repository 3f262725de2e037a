package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/sweep/storage"
	"github.com/servegrid/servegrid/sweep/telemetry"
)

// finishTime bounds the last uploads of a sweep that was interrupted.
const finishTime = 10 * time.Minute

// remoteResults keeps the output folder of a sweep at a URL. Nil keeps it on this machine.
type remoteResults struct {
	*storage.Results
	// ctx outlives an interruption: what is finished then still goes to the URL.
	ctx context.Context
}

// withResults runs a sweep whose output folder may be at a URL. It then works in a scratch folder.
func (j *sweepJob) withResults(ctx context.Context, run func() error) (err error) {
	if err := storage.CheckPath(cmp.Or(j.flags.output, j.spec.Output.Dir)); err != nil {
		return fmt.Errorf("output folder %w", err)
	}
	if err := j.state.places.open().AllowedFolder(j.dir); err != nil {
		if link := new(fs.PathError); errors.As(err, &link) && link.Path != j.dir {
			return fmt.Errorf("output folder %s: %s in it %w", files.Shown(j.dir), link.Path, files.Cause(err))
		}
		return fmt.Errorf("output folder %s: %w", files.Shown(j.dir), files.Cause(err))
	}
	if !files.IsURL(j.dir) {
		if j.flags.scratch != "" {
			return errors.New("--scratch is for an output at a URL; leave it out")
		}
		return run()
	}
	kept := kindsAsked(j.spec.Output)
	opened, err := storage.OpenResults(ctx, j.dir, storage.ResultsOptions{
		Scratch: j.flags.scratch, Companions: companions(), Kept: kept, Fresh: j.flags.fresh && !j.flags.dryRun, ReadOnly: j.flags.dryRun,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	j.remote = &remoteResults{opened, context.WithoutCancel(ctx)}
	j.dir = opened.Dir()
	if opened.Fleeting() && !j.flags.dryRun {
		if err := printText(j.state.stderr, "note: what is in mem:// is gone when this program ends; give --output a folder or another URL to keep the results\n"); err != nil {
			return err
		}
	}
	for _, name := range opened.SetAside() {
		j.notes = append(j.notes, "set aside: "+name)
	}
	err = run()
	if refused := new(exitError); j.flags.dryRun || err != nil && (!errors.As(err, &refused) || refused.code == exitRefused) {
		return err
	}
	return errors.Join(err, j.finish(kept))
}

// finish uploads what the scratch folder holds.
func (j *sweepJob) finish(kept []string) error {
	ctx, cancel := context.WithTimeout(j.remote.ctx, finishTime)
	defer cancel()
	others, err := j.remote.Finish(ctx, kept)
	if status := filepath.Join(j.dir, telemetry.StatusFileName); err == nil && isFile(status) {
		err = j.remote.push(telemetry.StatusFileName, status)
	}
	if err == nil && others {
		err = printText(j.state.stderr, "note: another sweep wrote to %s at the same time; both have kept every point: run the same command again to put their results together\n", j.remote.URL())
	}
	return err
}

// push uploads a file of the folder under its name there.
func (r *remoteResults) push(name, file string) error {
	if r == nil {
		return nil
	}
	return r.PushFile(r.ctx, name, file)
}

// replicate is what a sweep calls with its journal; nil on this machine.
func (r *remoteResults) replicate() func(lines []byte) error {
	if r == nil {
		return nil
	}
	return func(lines []byte) error { return r.PushJournal(r.ctx, lines) }
}

// shown is the output folder, or a file of it, as people see it.
func (j *sweepJob) shown(names ...string) string {
	if j.remote == nil {
		return filepath.Join(append([]string{j.dir}, names...)...)
	}
	return files.Join(j.remote.URL(), names...)
}
