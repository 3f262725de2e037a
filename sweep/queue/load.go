package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// message is what a worker needs to know of a job.
func (c *Coordinator) message(ctx context.Context, job sweep.Job) (*wire.Message, error) {
	spec, files, err := c.files.Portable(ctx, &job.Point)
	if err != nil {
		return nil, err
	}
	m := &wire.Message{
		Simulator: thisVersion, Sweep: c.sweep, ID: job.ID, WorkloadDigest: job.Workload.Digest(),
		Replicate: job.Point.Replicate, Spec: string(spec), Files: files, Timeout: job.Timeout,
		StopLost: c.opt.StopLost,
	}
	if !job.Shortened {
		m.Kept = c.opt.Kept
	}
	return m, nil
}

// refusedPoint says that a message is not what it says it is, or that its point cannot be.
type refusedPoint struct{ err error }

func (e *refusedPoint) Error() string { return e.err.Error() }
func (e *refusedPoint) Unwrap() error { return e.err }

// loadedPoint is a point that is ready to be simulated.
type loadedPoint struct {
	job     sweep.Job
	release func()
}

// load brings the files of a message, makes its point and loads its workload. The error is a *refusedPoint when another try
// would not help.
func (w *worker) load(ctx context.Context, m *wire.Message) (*loadedPoint, error) {
	releaseFiles, err := w.files(ctx, m)
	if err != nil {
		return nil, err
	}
	declared := make([]string, len(m.Files))
	for i, f := range m.Files {
		declared[i] = f.Path()
	}
	p, err := gridspec.FromPortable([]byte(m.Spec), w.cache.Dir(), declared)
	if err != nil {
		releaseFiles()
		return nil, &refusedPoint{err}
	}
	p.Replicate = m.Replicate
	if id := p.ContentID(m.WorkloadDigest); id != m.ID {
		releaseFiles()
		return nil, &refusedPoint{fmt.Errorf("the point of the message has the content ID %s and not %s", id, m.ID)}
	}
	requests, releaseWorkload, err := w.workload(ctx, &p, m.WorkloadDigest)
	if err != nil {
		releaseFiles()
		return nil, err
	}
	job := sweep.Job{ID: m.ID, Point: p, Workload: requests, Timeout: m.Timeout}
	if m.StopLost {
		job.Bounds = results.SLABounds(p.Config.SLA)
	}
	return &loadedPoint{job, func() {
		releaseWorkload()
		releaseFiles()
	}}, nil
}

// workload loads the requests of a point, unless they are there, and checks that they are those of the sweep. It returns a
// function to call when they are not used any more.
func (w *worker) workload(ctx context.Context, p *gridspec.Point, digest string) (*workload.Workload, func(), error) {
	key, err := sweep.WorkloadKeyOf(p)
	if err != nil {
		return nil, nil, &refusedPoint{err}
	}
	requests, release, err := w.workloads.Use(ctx, key, func(ctx context.Context) (*workload.Workload, error) {
		return p.Workload.Load(ctx, key.Source())
	})
	if err != nil {
		return nil, nil, fmt.Errorf("the workload cannot be loaded: %w", err) // the sweep could, so it may be for want of something here
	}
	if requests.Digest() != digest {
		release()
		return nil, nil, &refusedPoint{errors.New("the workload has other requests than that of the sweep")}
	}
	return requests, release, nil
}

// files brings the files of a message. The function that it returns is called when they are not used any more.
func (w *worker) files(ctx context.Context, m *wire.Message) (release func(), err error) {
	return w.cache.Fetch(ctx, objects{w.conn}, m.Files, func(f Fetched) {
		w.opt.Observer.FileFetched(ctx, f.Bytes, f.Cached, f.Took, f.Err)
	})
}
