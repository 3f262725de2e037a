package sweep

import (
	"context"
	"errors"
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/workload"
)

// maxProbes bounds the points that are probed for one workload.
const maxProbes = 16

// Cost is what a whole sweep is expected to take, without anything that could be reused.
type Cost struct {
	// Points is the number of points to simulate and Workloads that of the workloads.
	Points, Workloads int
	// Probes is the number of points that were simulated for the estimate, ProbesFailed how many of them failed.
	Probes, ProbesFailed int
	// Load is the time to load all workloads, and PointMean and PointMax the time of one point.
	Load, PointMean, PointMax time.Duration
	// Total is the time of the sweep with Concurrent points at a time.
	Total      time.Duration
	Concurrent int
	// MemoryBytes is the estimated peak of what is loaded and running, in bytes. WorkloadBytes is the part of the largest
	// workload, and PointBytes that of the largest running point.
	MemoryBytes, WorkloadBytes, PointBytes int64
	// RowBytes is the size of the longest row among the probes as a line of a journal, in bytes.
	RowBytes int64
	// AtLeast is set when a probe or a workload did not fit into the time for probes, so that the times are
	// lower bounds.
	AtLeast bool
}

// groupCost is what was measured of one workload.
type groupCost struct {
	load, spent, longest time.Duration
	probes, failed       int
	workloadBytes        int64
	pointBytes           int64
	rowBytes             int64
	cut                  bool
}

// Estimate simulates a few points, spread over the expansion, and extrapolates. It takes about Options.ProbeTime
// plus the time to load the workloads that it looks at, writes nothing and ignores earlier results. Workloads that
// it has no time for are taken to be like the others. It returns an error when no workload can be loaded.
func Estimate(ctx context.Context, points []gridspec.Point, opt Options) (Cost, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Cost{}, err
	}
	groups := groupByWorkload(points, opt.Stdin)
	if err := shareStdin(groups); err != nil {
		return Cost{}, err
	}
	cost := Cost{Workloads: len(groups)}
	var (
		measured []groupCost
		counts   []int
		errs     []error
		left     = opt.ProbeTime
	)
	for i, g := range groups {
		cost.Points += len(g.points)
		if left <= 0 {
			cost.AtLeast = true
			continue
		}
		start := time.Now()
		m, err := g.probe(ctx, points, &opt, left/time.Duration(len(groups)-i))
		left -= time.Since(start)
		if ctx.Err() != nil {
			return Cost{}, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		measured = append(measured, m)
		counts = append(counts, len(g.points))
	}
	if len(measured) == 0 {
		return cost, errors.Join(errs...)
	}
	cost.extrapolate(measured, counts, &opt)
	return cost, nil
}

// probe loads the workload and simulates points of it for about the given time, but at least one.
func (g *group) probe(ctx context.Context, points []gridspec.Point, opt *Options, budget time.Duration) (groupCost, error) {
	start := time.Now()
	w, err := g.load(ctx, opt)
	if err != nil {
		return groupCost{}, err
	}
	size := sizeOf(w)
	c := groupCost{load: time.Since(start), workloadBytes: size.bytes(len(g.blockSizes))}
	for _, i := range g.points {
		c.pointBytes = max(c.pointBytes, pointBytes(points[i].Config, size))
	}
	deadline := time.Now().Add(budget)
	for _, at := range spread(len(g.points), maxProbes) {
		if c.probes > 0 && !time.Now().Before(deadline) {
			break
		}
		c.add(ctx, points[g.points[at]], w, opt, max(time.Until(deadline), budget/maxProbes))
	}
	return c, nil
}

// add simulates one point, for at most the given time.
func (c *groupCost) add(ctx context.Context, p gridspec.Point, w *workload.Workload, opt *Options, limit time.Duration) {
	if opt.Timeout > 0 {
		limit = min(limit, opt.Timeout)
	}
	start := time.Now()
	row, _, _ := simulatePoint(ctx, Job{Point: p, Workload: w, Bounds: opt.bounds(p), Timeout: limit}, opt.Simulate)
	took := time.Since(start)
	c.probes++
	c.spent += took
	c.longest = max(c.longest, took)
	row.ID = opt.ContentID(p, w.Digest())
	if line, err := appendRecord(nil, &row); err == nil {
		c.rowBytes = max(c.rowBytes, int64(len(line)))
	}
	switch {
	case row.Reason == ReasonTimeout && limit != opt.Timeout:
		c.cut = true
	case row.Status == results.StatusFailed:
		c.failed++
	}
}

// extrapolate sets the figures of the whole sweep. counts[i] is the number of points of measured[i].
func (c *Cost) extrapolate(measured []groupCost, counts []int, opt *Options) {
	var (
		work, load    time.Duration
		known         int
		workload, one int64
	)
	for i, m := range measured {
		mean := m.spent / time.Duration(m.probes)
		work += mean * time.Duration(counts[i])
		known += counts[i]
		load += m.load
		workload, one = max(workload, m.workloadBytes), max(one, m.pointBytes)
		c.Probes += m.probes
		c.ProbesFailed += m.failed
		c.PointMax = max(c.PointMax, m.longest)
		c.RowBytes = max(c.RowBytes, m.rowBytes)
		c.AtLeast = c.AtLeast || m.cut
	}
	c.PointMean = work / time.Duration(known)
	c.Load = time.Duration(float64(load) * float64(c.Workloads) / float64(len(measured)))
	fit := max((opt.MemoryLimit-min(workload, opt.MemoryLimit/2))/max(one, 1), 1)
	c.Concurrent = int(min(fit, int64(opt.Jobs), int64(max(c.Points, 1))))
	c.WorkloadBytes, c.PointBytes = workload, one
	c.MemoryBytes = workload + int64(c.Concurrent)*one
	c.Total = c.Load + time.Duration(float64(c.PointMean)*float64(c.Points)/float64(c.Concurrent))
}

// spread returns at most limit different places of n, such that every beginning of the list covers the range
// evenly: the van der Corput sequence.
func spread(n, limit int) []int {
	var places []int
	seen := map[int]bool{}
	for k := 0; len(places) < min(n, limit) && k < 4*(n+limit); k++ {
		x, step := 0.0, 0.5
		for bits := k; bits > 0; bits >>= 1 {
			if bits&1 == 1 {
				x += step
			}
			step /= 2
		}
		if at := int(x * float64(n)); !seen[at] {
			seen[at] = true
			places = append(places, at)
		}
	}
	return places
}
