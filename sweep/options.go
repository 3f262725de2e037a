package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Retry says which points run again although the journal has a result for them.
type Retry string

// The retry modes.
const (
	// RetryNone keeps every result, also failures. It is the default.
	RetryNone Retry = "none"
	// RetryFailed runs failed points again.
	RetryFailed Retry = "failed"
	// RetryAll runs every point again.
	RetryAll Retry = "all"
)

// Options configure a sweep. Dir must be set, except for Estimate; every other zero value is a sensible default.
type Options struct {
	// Dir is the output folder. It is made when it does not exist.
	Dir string
	// Name is the name of the sweep. A folder whose journal has another name is refused; an empty name on
	// either side fits every sweep.
	Name string
	// Companions are the names of files and folders that the caller puts into Dir besides those of the sweep. A
	// folder without a journal that holds any file is refused, since it may be somebody's; Fresh takes one that
	// holds nothing but companions.
	Companions []string
	// Jobs is the number of points that run at the same time; 0 means one for each core.
	Jobs int
	// MemoryLimit bounds the estimated memory of everything that is loaded and running, in bytes; 0 means three
	// quarters of what the machine and its container limits offer. One point always runs.
	MemoryLimit int64
	// Timeout bounds the wall time of one point; 0 means no limit.
	Timeout time.Duration
	// Retry says which finished points run again; empty means RetryNone.
	Retry Retry
	// StopLost ends the simulation of a point as soon as a bound of its SLA can no longer hold, whatever happens after: see
	// [results.SLABounds]. Its row then has the status stopped and no figures. A sweep without StopLost, or with a looser
	// SLA, simulates such a point again, to its end.
	StopLost bool
	// Fresh sets the folder's journal and results aside, under numbered names, and starts from nothing.
	Fresh bool
	// Stdin is read for the trace path "-", once.
	Stdin io.Reader
	// ProbeTime bounds the time that Estimate spends; 0 means 3 seconds.
	ProbeTime time.Duration

	// ContentID names the result of a point on a workload; nil means gridspec.Point.ContentID.
	ContentID func(p gridspec.Point, workloadDigest string) string
	// Simulate runs one point; nil means RunJob. It must return soon after its context is cancelled. An error
	// is the outcome of the point, unless it is an [EnvironmentError], which stops the sweep.
	Simulate func(context.Context, Job) (*simcore.Report, error)
	// Executor simulates the points elsewhere; nil means here. Simulate and Jobs are not used then.
	Executor Executor
	// Load reads or makes a workload; nil means workload.Spec.Load.
	Load func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error)
	// Replicate is called with each batch of finished points once they are on the disk, and before they count as finished: lines of
	// a journal, with its header. An error stops the sweep; the points stay in the folder. Nil means that the disk is enough.
	Replicate func(lines []byte) error
	// WriteResults writes a results file at path, which is never the final name; nil leaves the file out.
	WriteResults func(path string, rows []results.Row) error
	// Observer hears what happens; nil means nobody does.
	Observer Observer

	// semanticVersion stands in for simcore.SemanticVersion in tests.
	semanticVersion string
}

// EnvironmentError is an error that says nothing about a point, such as a full disk.
type EnvironmentError struct{ Err error }

// Error is the error itself.
func (e *EnvironmentError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *EnvironmentError) Unwrap() error { return e.Err }

// Job is one simulation.
type Job struct {
	// ID is the point's content ID; it is empty when a point is only probed for an estimate.
	ID string
	// Point is what to simulate, and Workload the requests that it replays.
	Point    gridspec.Point
	Workload *workload.Workload
	// Shortened is set when the workload is a part of the point's, and the point is not among the results.
	Shortened bool
	// Bounds are those that may end the simulation early; see [simcore.Options].
	Bounds []simcore.Bound
	// Timeout bounds the wall time of the simulation; 0 means no limit.
	Timeout time.Duration
}

// Observer hears what happens in a sweep. Calls come one at a time from a goroutine of their own, so a slow
// observer delays the end of the sweep but neither the simulations nor the journal.
type Observer interface {
	// SweepStarted is the first call. Total is the number of points.
	SweepStarted(total int)
	// WorkloadLoading says that the workload with this label is about to be loaded.
	WorkloadLoading(label string)
	// PointStarted says that the simulation of a point begins.
	PointStarted(p gridspec.Point)
	// PointFinished says that a point has its row. A row that came out of a simulation is on the disk by now.
	PointFinished(f Finished)
}

// JournalObserver is an Observer that also hears what the journal costs.
type JournalObserver interface {
	Observer
	// JournalCommitted says that so many rows in so many bytes were appended and synced, and how long that took.
	JournalCommitted(rows int, bytes int64, took time.Duration)
}

// Finished is a point that has its row.
type Finished struct {
	// Row is the outcome.
	Row results.Row
	// Simulated is false when the row came from the journal, from an equal point of this sweep, or without a
	// simulation: skipped points, and those whose workload does not load.
	Simulated bool
	// Shortened is set when the point replays a part of the workload, to rank it, and is not among the results.
	Shortened bool
}

// NopObserver ignores everything. Embed it to implement a part of Observer.
type NopObserver struct{}

// SweepStarted does nothing.
func (NopObserver) SweepStarted(int) {}

// WorkloadLoading does nothing.
func (NopObserver) WorkloadLoading(string) {}

// PointStarted does nothing.
func (NopObserver) PointStarted(gridspec.Point) {}

// PointFinished does nothing.
func (NopObserver) PointFinished(Finished) {}

// bounds are those that may end the simulation of a point early.
func (o *Options) bounds(p gridspec.Point) []simcore.Bound {
	if !o.StopLost {
		return nil
	}
	return results.SLABounds(p.Config.SLA)
}

// endsAt reports whether the simulation of a point would end early, given that it loses a bound: then it loses a tighter
// one too.
func (o *Options) endsAt(p gridspec.Point, lost simcore.Bound) bool {
	return slices.ContainsFunc(o.bounds(p), func(b simcore.Bound) bool { return b.Metric == lost.Metric && b.Limit <= lost.Limit })
}

// defaultProbeTime keeps an estimate interactive.
const defaultProbeTime = 3 * time.Second

// withDefaults fills what was left out, or returns all that is wrong.
func (o Options) withDefaults() (Options, error) {
	if err := errors.Join(o.problems()...); err != nil {
		return Options{}, err
	}
	if o.Jobs == 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	if o.MemoryLimit == 0 {
		o.MemoryLimit = machineMemory()
	}
	if o.Retry == "" {
		o.Retry = RetryNone
	}
	if o.ProbeTime == 0 {
		o.ProbeTime = defaultProbeTime
	}
	if o.ContentID == nil {
		o.ContentID = gridspec.Point.ContentID
	}
	if o.Simulate == nil {
		o.Simulate = RunJob
	}
	if o.Load == nil {
		o.Load = func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
			return s.Load(ctx, src)
		}
	}
	if o.Observer == nil {
		o.Observer = NopObserver{}
	}
	if o.semanticVersion == "" {
		o.semanticVersion = simcore.SemanticVersion
	}
	return o, nil
}

// RunJob simulates a job with [planner.Run].
func RunJob(ctx context.Context, job Job) (*simcore.Report, error) {
	out, err := planner.Run(ctx, job.Point.Config.Config, job.Point.Config.Planner, job.Workload, simcore.Options{Bounds: job.Bounds})
	if err != nil {
		return nil, err
	}
	return out.Report, nil
}

func (o Options) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Jobs < 0 {
		bad("jobs: %d is not allowed; give 1 or more, or 0 for one on each core", o.Jobs)
	}
	if o.MemoryLimit < 0 {
		bad("memory limit: %d is not allowed; give a number of bytes, or 0 for what the machine has", o.MemoryLimit)
	}
	if o.Timeout < 0 {
		bad("timeout: %s is not allowed; give a duration above 0, or 0 for no limit", o.Timeout)
	}
	if o.ProbeTime < 0 {
		bad("probe time: %s is not allowed; give a duration above 0", o.ProbeTime)
	}
	switch o.Retry {
	case "", RetryNone, RetryFailed, RetryAll:
	default:
		bad("retry: %q is not allowed; use one of: none, failed, all", o.Retry)
	}
	return errs
}
