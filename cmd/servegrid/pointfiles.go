package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/timelines"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
)

// requestsFolder holds the records of the requests of each point.
const requestsFolder = "requests"

// pointFile is what a sweep keeps of every point beside the results, when the spec asks for it: a file a point, named by
// its ID, in a folder.
type pointFile struct {
	folder, key string
	asked       func(gridspec.Output) bool
	table       func(job sweep.Job, out *planner.Outcome, records []simcore.RequestRecord) *results.Table
}

// pointFiles are all that a sweep can keep.
var pointFiles = []pointFile{
	{
		requestsFolder, "output.per_request", func(o gridspec.Output) bool { return o.PerRequest },
		func(job sweep.Job, _ *planner.Outcome, records []simcore.RequestRecord) *results.Table {
			return requestTable(job.ID, records, job.Workload)
		},
	},
	{
		timelines.Folder, "output.timelines", func(o gridspec.Output) bool { return o.Timelines },
		func(job sweep.Job, out *planner.Outcome, records []simcore.RequestRecord) *results.Table {
			return timelines.Table(job.ID, timelineSource(job.Point.Config.Config, out, records))
		},
	},
}

// timelineSource is what a timeline is made of.
func timelineSource(cfg simcore.Config, out *planner.Outcome, records []simcore.RequestRecord) timelines.Source {
	if resolved, problems := cfg.Resolve(); problems.Err() == nil { // as it was simulated
		cfg = resolved
	}
	s := timelines.Source{Records: records, SLA: cfg.SLA}
	for i, stage := range cfg.Stages() {
		p := timelines.Pool{Workers: stage.Workers, GPUsPerWorker: stage.GPUsPerWorker()}
		if cfg.Deployment.Mode == simcore.ModeDisaggregated {
			p.Name = []string{"prefill", "decode"}[i]
		}
		if out.Record != nil {
			p.Workers = out.Record.InitialWorkers[i]
		}
		s.Pools = append(s.Pools, p)
	}
	if out.Record != nil {
		s.Events = out.Record.Events
	}
	return s
}

// keepsFiles reports whether the spec asks for any file a point.
func (j *sweepJob) keepsFiles() bool {
	for _, f := range pointFiles {
		if f.asked(j.spec.Output) {
			return true
		}
	}
	return false
}

// simulateAndKeep simulates one point and writes the files that the spec asks for.
func (j *sweepJob) simulateAndKeep(ctx context.Context, job sweep.Job) (*simcore.Report, error) {
	var records []simcore.RequestRecord
	out, err := planner.Run(ctx, job.Point.Config.Config, job.Point.Config.Planner, job.Workload, simcore.Options{
		Bounds:  job.Bounds,
		Records: func(r simcore.RequestRecord) { records = append(records, r) },
	})
	if err != nil {
		return nil, err
	}
	if job.ID == "" || job.Shortened {
		return out.Report, nil
	}
	for _, f := range pointFiles {
		if !f.asked(j.spec.Output) {
			continue
		}
		if err := j.keep(f, job, f.table(job, out, records)); err != nil {
			return nil, &sweep.EnvironmentError{Err: err}
		}
	}
	return out.Report, nil
}

func (j *sweepJob) keep(f pointFile, job sweep.Job, t *results.Table) error {
	path, err := j.pathOf(f, job.ID, &job.Point)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return results.WriteFile(path, func(w io.Writer) error { return results.WriteParquet(w, t) })
}

// pathOf is where the file of a point goes.
func (j *sweepJob) pathOf(f pointFile, id string, p *gridspec.Point) (string, error) {
	partition, err := results.HiveFolder(j.spec.Output.PartitionBy, p)
	return filepath.Join(j.dir, f.folder, partition, id+fileOfPoint), err
}

// fileOfPoint ends the names of points' files.
const fileOfPoint = ".parquet"

// keptFiles lists the files of a kind in a folder of results by the IDs of their points, whatever they are partitioned by. A
// point may have several, left by earlier partitions.
func keptFiles(dir, folder string) map[string][]string {
	found := map[string][]string{}
	_ = filepath.WalkDir(filepath.Join(dir, folder), func(path string, entry fs.DirEntry, err error) error {
		if id, ok := strings.CutSuffix(filepath.Base(path), fileOfPoint); err == nil && ok && entry.Type().IsRegular() {
			found[id] = append(found[id], path)
		}
		return nil // what cannot be read has no files for us
	})
	return found
}

// checkPartitions reports columns to partition by that the files have themselves, and values that make no folder.
func (j *sweepJob) checkPartitions(points []gridspec.Point) error {
	var problems []error
	for _, f := range pointFiles {
		if !f.asked(j.spec.Output) {
			continue
		}
		own := f.table(sweep.Job{ID: "id", Workload: &workload.Workload{}}, &planner.Outcome{}, nil)
		for _, name := range j.spec.Output.PartitionBy {
			if own.Column(name) != nil {
				problems = append(problems, fmt.Errorf("output.partition_by: the files of %s have a column %s themselves; leave it out, or give a derived value of another name", f.folder, name))
			}
		}
	}
	for i := range points {
		if _, err := results.HiveFolder(j.spec.Output.PartitionBy, &points[i]); err != nil {
			problems = append(problems, err)
			break
		}
	}
	return errors.Join(problems...)
}

// sortFiles moves the files of points that were simulated before to where the spec wants them now, so that all of a kind are
// partitioned alike, and removes what an earlier partition left of points that were simulated again.
func (j *sweepJob) sortFiles(rows []results.Row) error {
	for _, f := range pointFiles {
		if !f.asked(j.spec.Output) {
			continue
		}
		kept := keptFiles(j.dir, f.folder)
		for i := range rows {
			wanted, err := j.pathOf(f, rows[i].ID, &rows[i].Point)
			if err != nil {
				return err
			}
			for _, now := range kept[rows[i].ID] {
				if now == wanted {
					continue
				}
				if err := moveFile(now, wanted); err != nil {
					return err
				}
				removeEmpty(filepath.Dir(now), filepath.Join(j.dir, f.folder))
			}
		}
	}
	return nil
}

// moveFile gives a file another place, or removes it if there is one already.
func moveFile(now, wanted string) error {
	if isFile(wanted) {
		return os.Remove(now)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(wanted), 0o777), os.Rename(now, wanted))
}

// removeEmpty removes a folder and those around it, up to a given one, while they are empty.
func removeEmpty(dir, root string) {
	for dir != root && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// missingFiles says how many points have no file of a kind that the spec asks for.
func (j *sweepJob) missingFiles(rows []results.Row) []string {
	var notes []string
	for _, f := range pointFiles {
		if !f.asked(j.spec.Output) {
			continue
		}
		kept, missing := keptFiles(j.dir, f.folder), 0
		for i := range rows {
			if rows[i].Status == results.StatusOK && len(kept[rows[i].ID]) == 0 {
				missing++
			}
		}
		if missing > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d points have no file in %s (simulated without %s, or the file was removed); --retry all runs them again",
				missing, len(rows), filepath.Join(j.dir, f.folder), f.key))
		}
	}
	return notes
}
