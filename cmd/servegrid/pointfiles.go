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
	"github.com/servegrid/servegrid/results/requests"
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
			t := requests.Table(job.ID, records, job.Workload, versions())
			requests.Describe(t, job.Workload, job.Point.Config.Config)
			return t
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

// kindsAsked names the kinds of files that a spec asks for of every point. A kind is called like its folder.
func kindsAsked(o gridspec.Output) []string {
	var kinds []string
	for _, f := range pointFiles {
		if f.asked(o) {
			kinds = append(kinds, f.folder)
		}
	}
	return kinds
}

// kindOf is the kind of a name.
func kindOf(name string) (pointFile, error) {
	for _, f := range pointFiles {
		if f.folder == name {
			return f, nil
		}
	}
	return pointFile{}, fmt.Errorf("this program makes no files of the kind %.100q of a point", name)
}

// simulateWithFiles simulates one point and makes files of the given kinds of it. Of each it calls write once, with what
// writes the file. The bytes are the same on every machine.
func simulateWithFiles(ctx context.Context, job sweep.Job, kinds []string, write func(kind string, to func(io.Writer) error) error) (*simcore.Report, error) {
	var asked []pointFile
	for _, kind := range kinds {
		f, err := kindOf(kind)
		if err != nil {
			return nil, &sweep.EnvironmentError{Err: err}
		}
		asked = append(asked, f)
	}
	opt := simcore.Options{Bounds: job.Bounds}
	var records []simcore.RequestRecord
	if len(asked) > 0 {
		opt.Records = func(r simcore.RequestRecord) { records = append(records, r) }
	}
	out, err := planner.Run(ctx, job.Point.Config.Config, job.Point.Config.Planner, job.Workload, opt)
	if err != nil {
		return nil, err
	}
	for _, f := range asked {
		t := f.table(job, out, records)
		if err := write(f.folder, func(w io.Writer) error { return results.WriteParquet(w, t) }); err != nil {
			return nil, &sweep.EnvironmentError{Err: err}
		}
	}
	return out.Report, nil
}

// simulateAndKeep simulates one point and writes the files that the spec asks for.
func (j *sweepJob) simulateAndKeep(ctx context.Context, job sweep.Job) (*simcore.Report, error) {
	var kinds []string
	if job.ID != "" && !job.Shortened {
		kinds = kindsAsked(j.spec.Output)
	}
	return simulateWithFiles(ctx, job, kinds, func(kind string, to func(io.Writer) error) error {
		f, err := kindOf(kind)
		if err != nil {
			return err
		}
		path, err := j.pathOf(f, job.ID, &job.Point)
		if err != nil {
			return err
		}
		return j.keep(path, to)
	})
}

// placePointFile keeps a file that a worker made of a point where [sweepJob.simulateAndKeep] puts it. That of a point that is
// not known yet goes to where the point would be without partitions, and is moved at the end like those of earlier sweeps.
func (j *sweepJob) placePointFile(kind, id string, r io.Reader) error {
	f, err := kindOf(kind)
	if err != nil {
		return err
	}
	if !isPointID(id) {
		return fmt.Errorf("%.100q is no ID of a point", id)
	}
	j.partitionsMu.Lock()
	partition := j.partitions[id]
	j.partitionsMu.Unlock()
	return j.keep(filepath.Join(j.dir, f.folder, partition, id+fileOfPoint), func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// isPointID reports whether a text is the content ID of a point: hex digits.
func isPointID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// contentID is that of a point. It notes where files go that are made of it elsewhere.
func (j *sweepJob) contentID(p gridspec.Point, workloadDigest string) string {
	id := p.ContentID(workloadDigest)
	if len(j.spec.Output.PartitionBy) == 0 || !j.keepsFiles() {
		return id
	}
	partition, err := results.HiveFolder(j.spec.Output.PartitionBy, &p)
	if err != nil {
		return id // the sweep does not begin with such a point; see checkPartitions
	}
	j.partitionsMu.Lock()
	defer j.partitionsMu.Unlock()
	if j.partitions == nil {
		j.partitions = map[string]string{}
	}
	j.partitions[id] = partition
	return id
}

// keepsFiles reports whether the spec asks for any file a point.
func (j *sweepJob) keepsFiles() bool { return len(kindsAsked(j.spec.Output)) > 0 }

// keep writes a file below the folder of the results.
func (j *sweepJob) keep(path string, to func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := results.WriteFile(path, to); err != nil {
		return err
	}
	name, err := filepath.Rel(j.dir, path)
	if err != nil {
		return err
	}
	return j.remote.push(name, path)
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
			wanted, err := j.pathOf(f, rows[i].ID, rows[i].Point)
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
				missing, len(rows), j.shown(f.folder), f.key))
		}
	}
	return notes
}
