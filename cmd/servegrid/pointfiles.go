package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/timelines"
	"github.com/servegrid/servegrid/simcore"
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
	if job.ID == "" {
		return out.Report, nil
	}
	for _, f := range pointFiles {
		if !f.asked(j.spec.Output) {
			continue
		}
		if err := j.keep(f, job.ID, f.table(job, out, records)); err != nil {
			return nil, &sweep.EnvironmentError{Err: err}
		}
	}
	return out.Report, nil
}

func (j *sweepJob) keep(f pointFile, id string, t *results.Table) error {
	path := j.pathOf(f, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return results.WriteFile(path, func(w io.Writer) error { return results.WriteParquet(w, t) })
}

// pathOf is the file of a point.
func (j *sweepJob) pathOf(f pointFile, id string) string {
	return filepath.Join(j.dir, f.folder, id+".parquet")
}

// missingFiles says how many points have no file of a kind that the spec asks for.
func (j *sweepJob) missingFiles(rows []results.Row) []string {
	var notes []string
	for _, f := range pointFiles {
		if !f.asked(j.spec.Output) {
			continue
		}
		missing := 0
		for i := range rows {
			if rows[i].Status == results.StatusOK && !isFile(j.pathOf(f, rows[i].ID)) {
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
