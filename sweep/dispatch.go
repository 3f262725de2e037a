package sweep

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/workload"
)

// dispatcher brings points to the pool, one workload after another. The next workload is loaded while the last
// points of the one before still run, so that no core idles.
type dispatcher struct {
	opt    *Options
	points []gridspec.Point
	ledger *ledger
	commit *committer
	notify *notifier
	// resolved is called when the earlier results of all points are known, abort when a simulation ended with an
	// EnvironmentError.
	resolved func()
	abort    func(error)

	pool   errgroup.Group
	memory *semaphore.Weighted

	// recall takes the results that are there and simulates nothing. unloaded then says of which workloads it took them
	// without loading these, digests which workloads were loaded, and later those that cannot be.
	recall   bool
	unloaded []error
	digests  map[string]bool
	later    []failedGroup

	loaded bool // a workload could be loaded
	failed []failedGroup
}

// failedGroup is a group whose workload cannot be loaded.
type failedGroup struct {
	*group
	err error
}

// claimed is a point to simulate.
type claimed struct {
	point int
	id    string
}

// run simulates what must be simulated of the points from an index on and returns when nothing runs any more. It returns
// an error when no point could run because none of the workloads can be loaded.
func (d *dispatcher) run(ctx context.Context, from int) error {
	d.memory = semaphore.NewWeighted(d.opt.MemoryLimit)
	d.pool.SetLimit(d.opt.Jobs)
	groups := groupByWorkload(d.points[from:], d.opt.Stdin)
	for _, g := range groups {
		for i := range g.points {
			g.points[i] += from
		}
	}
	if err := shareStdin(groups); err != nil {
		return err
	}
	d.settleSkipped(from)
	for i, g := range groups {
		if ctx.Err() != nil || !d.runGroup(ctx, g, i == len(groups)-1) {
			break
		}
	}
	if ctx.Err() == nil { // or it is not known of all workloads whether they are there
		d.recallUnloaded()
	}
	if d.opt.Executor != nil {
		d.ledger.awaitIdle(ctx)
	}
	// Tasks return no errors; theirs are rows.
	_ = d.pool.Wait()
	if !d.loaded && len(groups) > 0 && len(d.failed) == len(groups) {
		return d.loadErrors()
	}
	return nil
}

// settleSkipped makes the rows of points that are not to run. Their ID holds no digest, since nothing is loaded
// for them.
func (d *dispatcher) settleSkipped(from int) {
	var skipped []int
	for i := from; i < len(d.points); i++ {
		if d.points[i].SkipReason != "" {
			skipped = append(skipped, i)
		}
	}
	d.ledger.finish(skipped, func(p gridspec.Point) results.Row {
		return results.Row{
			ID: d.opt.ContentID(p, ""), Status: results.StatusSkipped,
			Reason: p.SkipReason, Error: p.SkipMessage, Metrics: noMetrics(),
		}
	})
}

// runGroup loads a workload and starts its points. It returns false when the sweep is to stop.
func (d *dispatcher) runGroup(ctx context.Context, g *group, last bool) bool {
	label := g.spec.Label()
	d.notify.push(func(o Observer) { o.WorkloadLoading(label) })
	w, err := g.load(ctx, d.opt)
	if err != nil {
		if ctx.Err() != nil {
			return false
		}
		if d.recall {
			d.later = append(d.later, failedGroup{g, err})
		} else {
			d.failGroup(g, err)
		}
		if last {
			d.resolved()
		}
		return true
	}
	d.loaded = true
	d.settleFailed()
	if d.recall {
		d.digests[w.Digest()] = true
		d.claim(g, w.Digest())
		if last {
			d.resolved()
		}
		return true
	}
	if d.opt.Executor != nil {
		return d.submitGroup(ctx, g, w, last)
	}

	// Half of the memory at most counts for the workload, so that there is always room for one point.
	size := sizeOf(w)
	held := min(size.bytes(len(g.blockSizes)), d.opt.MemoryLimit/2)
	if d.memory.Acquire(ctx, held) != nil {
		return false
	}
	inUse := newLease(func() { d.memory.Release(held) })
	defer inUse.done()
	todo := d.claim(g, w.Digest())
	if last {
		d.resolved()
	}
	for _, c := range todo {
		need := min(pointBytes(d.points[c.point].Config, size), d.opt.MemoryLimit-held)
		if d.memory.Acquire(ctx, need) != nil {
			return false
		}
		inUse.add()
		d.pool.Go(func() error {
			defer inUse.done()
			defer d.memory.Release(need)
			d.simulate(ctx, c, w)
			return nil
		})
	}
	return true
}

// submitGroup hands the points of a workload to the executor. It returns false when the sweep is to stop.
func (d *dispatcher) submitGroup(ctx context.Context, g *group, w *workload.Workload, last bool) bool {
	todo := d.claim(g, w.Digest())
	if last {
		d.resolved()
	}
	for _, c := range todo {
		if !d.ledger.runs(c.id) {
			continue // an earlier session had it under way
		}
		p := d.points[c.point]
		d.notify.push(func(o Observer) { o.PointStarted(p) })
		if err := d.opt.Executor.Submit(ctx, d.job(c, w)); err != nil {
			if ctx.Err() == nil {
				d.abort(&EnvironmentError{err})
			}
			return false
		}
	}
	return true
}

// recallUnloaded takes the results that there are of points whose workload cannot be loaded, once it is known which results are
// of those that can. A result does not say of which workload it is, but of how its requests are: where those of several may be a
// workload's, or one's may be of several, nothing is taken.
func (d *dispatcher) recallUnloaded() {
	may := make([][]string, len(d.later))
	claims := map[string]int{}
	for i, g := range d.later {
		may[i] = d.ledger.digestsOf(g.points, d.digests)
		for _, digest := range may[i] {
			claims[digest]++
		}
	}
	for i, g := range d.later {
		switch {
		case len(may[i]) == 1 && claims[may[i][0]] == 1:
			d.loaded = true
			d.settleFailed()
			d.unloaded = append(d.unloaded, g.err)
			d.claim(g.group, may[i][0])
		case len(may[i]) > 0:
			d.failGroup(g.group, fmt.Errorf("%w; it must be there, since only it tells which of the results are its own", g.err))
		default:
			d.failGroup(g.group, g.err)
		}
	}
}

// claim finds the group's points that must be simulated; all others get their rows at once.
func (d *dispatcher) claim(g *group, digest string) []claimed {
	var todo []claimed
	for _, point := range g.points {
		id := d.opt.ContentID(d.points[point], digest)
		if d.ledger.claim(point, id) {
			todo = append(todo, claimed{point, id})
		}
	}
	return todo
}

func (d *dispatcher) simulate(ctx context.Context, c claimed, w *workload.Workload) {
	if ctx.Err() != nil {
		return
	}
	p := d.points[c.point]
	d.notify.push(func(o Observer) { o.PointStarted(p) })
	row, ok, err := simulatePoint(ctx, d.job(c, w), d.opt.Simulate)
	switch {
	case err != nil:
		d.abort(err)
	case ok:
		d.commit.submit(row)
	}
}

// job is the simulation of a point.
func (d *dispatcher) job(c claimed, w *workload.Workload) Job {
	p := d.points[c.point]
	return Job{ID: c.id, Point: p, Workload: w, Shortened: d.ledger.isShortened(c.point), Bounds: d.opt.bounds(p), Timeout: d.opt.Timeout}
}

// failGroup notes that a workload cannot be loaded. Its points get their rows once another workload could be
// loaded: when none can, the input is wrong as a whole and there are no rows.
func (d *dispatcher) failGroup(g *group, err error) {
	d.failed = append(d.failed, failedGroup{g, err})
	if d.loaded {
		d.settleFailed()
	}
}

func (d *dispatcher) settleFailed() {
	for _, g := range d.failed {
		d.ledger.finish(g.points, func(p gridspec.Point) results.Row {
			return failedRow(results.Row{ID: d.opt.ContentID(p, "")}, g.reason(), g.err.Error())
		})
	}
	d.failed = nil
}

// loadErrors joins the distinct errors of all workloads.
func (d *dispatcher) loadErrors() error {
	var errs []error
	seen := map[string]bool{}
	for _, g := range d.failed {
		if text := g.err.Error(); !seen[text] {
			seen[text] = true
			errs = append(errs, g.err)
		}
	}
	return errors.Join(errs...)
}
