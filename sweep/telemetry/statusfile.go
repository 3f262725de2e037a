package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// StatusFileName is the file in an output folder that says how its sweep gets on.
const StatusFileName = ".status.json"

// statusInterval is the least time between two writes of a status file.
const statusInterval = time.Second

// State says where a sweep is.
type State string

// The states of a sweep.
const (
	// StateRunning: the sweep runs, or was killed; whether its folder is locked tells which.
	StateRunning State = "running"
	// StateComplete: every point has its row.
	StateComplete State = "complete"
	// StateInterrupted: the sweep was told to stop; the same command goes on.
	StateInterrupted State = "interrupted"
	// StateStopped: the sweep ended with an error before every point had its row.
	StateStopped State = "stopped"
	// StateIncomplete: the folder is of a merge, and some points have no row.
	StateIncomplete State = "incomplete"
)

// Status is how a sweep gets on, as its status file says it.
type Status struct {
	// Format is the version of the file's form, 1.
	Format int `json:"format"`
	// Sweep is the sweep's name, and State where it is.
	Sweep string `json:"sweep,omitempty"`
	State State  `json:"state"`
	// PID and Host say which process runs it; Program and Simulator are its versions.
	PID       int    `json:"pid"`
	Host      string `json:"host,omitempty"`
	Program   string `json:"program"`
	Simulator string `json:"simulator"`
	// Spec stands for the spec that the sweep simulates, with all that --set changed: folders of the same have the same.
	Spec string `json:"spec,omitempty"`
	// MergedFolders is how many folders were put together here; 0 for a sweep.
	MergedFolders int `json:"merged_folders,omitempty"`
	// Metrics is where the process offers its metrics, and Queue the namespace of the queue that its points go through.
	Metrics string `json:"metrics,omitempty"`
	Queue   string `json:"queue,omitempty"`
	// Started, Updated and LastPoint are times: of the first call, of this file, of the last point that got its row.
	Started   time.Time  `json:"started"`
	Updated   time.Time  `json:"updated"`
	LastPoint *time.Time `json:"last_point,omitempty"`
	// Points counts the points.
	Points PointCounts `json:"points"`
	// Failures counts the failed points by reason.
	Failures map[string]int `json:"failures,omitempty"`
	// PointsPerSecond is the rate lately, and ETASeconds how long the points that are left take at that rate, unless
	// nobody knows.
	PointsPerSecond float64  `json:"points_per_second"`
	ETASeconds      *float64 `json:"eta_seconds,omitempty"`
	// Best is the best point so far by the first objective, among those that keep the SLA.
	Best *BestPoint `json:"best,omitempty"`
	// Loading is the workload that is being loaded, as long as no point ran since.
	Loading string `json:"loading,omitempty"`
}

// PointCounts sums up the points of a sweep. Total is OK, Failed, Skipped, Stopped and Left. Running counts those that
// are being simulated, with a queue those that were handed to it, which may wait there; Reused those with a row that was not
// simulated this time; Shortened those on a part of the workload, which are not in Total.
type PointCounts struct {
	Total     int `json:"total"`
	OK        int `json:"ok"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Stopped   int `json:"stopped"`
	Left      int `json:"left"`
	Running   int `json:"running"`
	Reused    int `json:"reused"`
	Shortened int `json:"shortened,omitempty"`
}

// BestPoint is a point with its figure.
type BestPoint struct {
	Metric string         `json:"metric"`
	Value  float64        `json:"value"`
	ID     string         `json:"id"`
	Index  int            `json:"index"`
	Axes   map[string]any `json:"axes"`
}

// maxStatusFile bounds what is read of a status file.
const maxStatusFile = 1 << 20

// ReadStatus reads the status file of a folder. The error is [os.ErrNotExist] when there is none.
func ReadStatus(dir string) (Status, error) {
	path := filepath.Join(dir, StatusFileName)
	f, err := os.Open(path)
	if err != nil {
		return Status{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxStatusFile))
	if err != nil {
		return Status{}, fmt.Errorf("%s: %w", path, results.FileCause(err))
	}
	var s Status
	if err := json.Unmarshal(text, &s); err != nil {
		return Status{}, fmt.Errorf("%s is no status file: %w", path, err)
	}
	if s.Format != 1 {
		return Status{}, fmt.Errorf("%s has the format %d, this program knows 1; use the servegrid that wrote it", path, s.Format)
	}
	return s, nil
}

// StatusFile is an observer that keeps the status file of an output folder. A file that cannot be written is no reason to
// stop a sweep: [StatusFile.Close] says what was wrong.
type StatusFile struct {
	dir     string
	now     func() time.Time
	tracker *sweep.Tracker
	aim     sweep.Objective
	status  Status
	written time.Time
	under   map[int]struct{} // the points that have begun and have no row yet
	// here says that points are simulated in this process, simulated how many are at this moment: a point that was simulated
	// waits for its row to be on the disk.
	here      bool
	simulated atomic.Int64
}

// NewStatusFile returns the observer. About says what the status is of: name, versions, process, addresses. The file
// appears when the sweep starts, so that a sweep that was refused leaves none.
func NewStatusFile(dir string, about Status, objective sweep.Objective, now func() time.Time) *StatusFile {
	about.Format, about.State = 1, StateRunning
	return &StatusFile{dir: dir, now: now, aim: objective, status: about, under: map[int]struct{}{}}
}

// Simulate counts the points that a simulator is at; see [sweep.Options.Simulate], where nil is [sweep.RunJob].
func (s *StatusFile) Simulate(next SimulateFunc) SimulateFunc {
	s.here = true
	return during(next, func() { s.simulated.Add(1) }, func() { s.simulated.Add(-1) })
}

// SweepStarted writes the file for the first time.
func (s *StatusFile) SweepStarted(total int) {
	s.tracker = sweep.NewTracker(total, s.aim, s.now)
	s.status.Started = s.now().UTC()
	s.status.Points.Total = total
	s.status.Failures = map[string]int{}
	_ = s.write()
}

// WorkloadLoading notes the workload.
func (s *StatusFile) WorkloadLoading(label string) {
	s.status.Loading = Scrub(label)
	s.writeIfDue()
}

// PointStarted notes that a point has begun.
func (s *StatusFile) PointStarted(p gridspec.Point) {
	s.status.Loading = ""
	s.under[p.Index] = struct{}{}
}

// PointFinished counts the point.
func (s *StatusFile) PointFinished(f sweep.Finished) {
	s.tracker.Finished(f)
	delete(s.under, f.Row.Point.Index)
	counts := &s.status.Points
	if !f.Simulated && f.Row.Status != results.StatusSkipped {
		counts.Reused++
	}
	now := s.now().UTC()
	s.status.LastPoint = &now
	if f.Shortened {
		counts.Shortened++
		s.writeIfDue()
		return
	}
	switch f.Row.Status {
	case results.StatusOK:
		counts.OK++
	case results.StatusFailed:
		counts.Failed++
		s.status.Failures[f.Row.Reason]++
	case results.StatusSkipped:
		counts.Skipped++
	case results.StatusStopped:
		counts.Stopped++
	}
	s.writeIfDue()
}

// Close writes the state in which the sweep ended. Total is what it turned out to be: that of a search is a guess before.
// A sweep that never started has no file.
func (s *StatusFile) Close(state State, total int) error {
	if s.tracker == nil {
		return nil
	}
	s.status.State = state
	s.status.Points.Total = total
	clear(s.under)
	return s.write()
}

func (s *StatusFile) writeIfDue() {
	if s.now().Sub(s.written) >= statusInterval {
		_ = s.write()
	}
}

// write replaces the file. It is not synced: after a crash of the machine the journal counts.
func (s *StatusFile) write() error {
	s.written = s.now()
	s.complete()
	text, err := json.MarshalIndent(&s.status, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, StatusFileName+".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, StatusFileName))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// complete fills in what follows from the rest.
func (s *StatusFile) complete() {
	p := s.tracker.Progress()
	s.status.Updated = s.now().UTC()
	c := &s.status.Points
	c.Left = max(c.Total-c.OK-c.Failed-c.Skipped-c.Stopped, 0)
	c.Running = len(s.under)
	if s.here {
		c.Running = int(s.simulated.Load())
	}
	s.status.PointsPerSecond = p.Rate
	s.status.ETASeconds = nil
	if p.ETAKnown && s.status.State == StateRunning {
		eta := p.ETA.Seconds()
		s.status.ETASeconds = &eta
	}
	if p.Best != nil {
		s.status.Best = &BestPoint{Metric: s.aim.Metric, Value: p.BestValue, ID: p.Best.ID, Index: p.Best.Point.Index, Axes: map[string]any{}}
		for _, a := range p.Best.Point.Axes {
			s.status.Best.Axes[a.Column] = a.Value.Any()
		}
	}
}
