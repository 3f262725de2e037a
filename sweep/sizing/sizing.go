// Package sizing turns what a sweep is expected to cost on this machine into what it needs of a cluster: how many workers of
// which size, how many shards, deadlines, and storage. Read [For] first; docs/kubernetes.md says how the figures follow.
package sizing

import (
	"fmt"
	"math"
	"time"

	"github.com/servegrid/servegrid/sweep"
)

// The allowances of the figures.
const (
	// Slack is how many times the measured time of the simulations is planned for: a core of a cloud is often half of a real
	// one, shards are not equal, and machines that are taken away lose what they were at.
	Slack = 1.5
	// StartUp is the time from asking for a worker until it simulates: a machine starts and pulls the image.
	StartUp = 2 * time.Minute
	// DeadlineFactor is how many times the expected time a job may take before the cluster ends it.
	DeadlineFactor = 3
	// MostWorkers and MostShards bound what is asked for. Kubernetes allows 10,000 pods of an Indexed Job at a time.
	MostWorkers = 5_000
	MostShards  = 10_000

	shardsPerWorker = 4                          // shards are equal in points only on average, and a lost one starts again
	pointsPerSlot   = 8                          // fewer points of a shard for each of its cores are not worth starting it
	waitingPerSlot  = 2                          // points that wait or run for each core of a worker before another worker is worth it
	shortestJob     = time.Hour                  // a deadline counts from the making of a Job, and to get machines for it may take most of an hour
	queueReserve    = 1536<<20 + 64<<20 + 16<<20 // what the streams of a namespace reserve, full or not: points, parts, tries, workers
	usableDisk      = 0.9                        // what a file system leaves of a volume for the server
	processBytes    = 128 << 20                  // the program with all of its libraries, and the timing tables that it unpacks
	rowsInMemory    = 12                         // what a point takes in the memory of a coordinator, in lines of the journal: 9 measured for 40,000 points
	rowsOnDisk      = 3                          // journal, results in Parquet, report
	memoryStep      = 64 << 20
	diskStep        = 1 << 30
	coordinatorCPU  = 1
)

// Wish is what the user wants of the cluster.
type Wish struct {
	// Within is how long the sweep may take, from the start of the workers to the last result.
	Within time.Duration
	// Jobs is the number of points that one worker simulates at a time; each takes one core.
	Jobs int
	// MaxWorkers bounds the workers; 0 means MostWorkers.
	MaxWorkers int
}

// Cluster is what a sweep needs of a cluster.
type Cluster struct {
	// Workers is the number of workers, and Jobs the number of points that each simulates at a time.
	Workers, Jobs int
	// CPU is what a worker asks for, in cores, and MemoryBytes what it asks for and may take at most.
	CPU         int
	MemoryBytes int64
	// CoordinatorCPU and CoordinatorBytes are the same of the process that hands the points out and keeps the results.
	CoordinatorCPU   int
	CoordinatorBytes int64
	// Shards is the number of shards when there is no queue, of which Workers run at a time.
	Shards int
	// WaitingPerWorker is the number of waiting and running points for which an autoscaler shall keep one worker.
	WaitingPerWorker int
	// Expected is how long the sweep is expected to take with Workers, Deadline when it shall be given up, and ShardsDeadline
	// when all shards together shall be.
	Expected, Deadline, ShardsDeadline time.Duration
	// ResultBytes is the space for the results of the sweep, and QueueBytes that of the queue for everything in it.
	ResultBytes, QueueBytes int64
	// AtLeast is set when the times are lower bounds; see [sweep.Cost].
	AtLeast bool
}

// For says what a sweep of this cost needs so that the wish comes true. It returns an error when no number of workers is enough,
// and when the cost says nothing.
func For(cost sweep.Cost, wish Wish) (Cluster, error) {
	if err := wish.check(); err != nil {
		return Cluster{}, err
	}
	if cost.Points == 0 || cost.Probes == 0 {
		return Cluster{}, fmt.Errorf("no point was simulated, so there is nothing to estimate from")
	}
	c := Cluster{Jobs: wish.Jobs, CPU: wish.Jobs, CoordinatorCPU: coordinatorCPU, WaitingPerWorker: waitingPerSlot * wish.Jobs, AtLeast: cost.AtLeast}
	if err := c.setWorkers(cost, wish); err != nil {
		return Cluster{}, err
	}
	c.setShards(cost)
	c.setMemory(cost)
	c.setStorage(cost)
	return c, nil
}

func (w Wish) check() error {
	switch {
	case w.Within <= 0:
		return fmt.Errorf("%s is not a duration to finish within; give one above 0, such as 1h", w.Within)
	case w.Jobs < 1:
		return fmt.Errorf("%d points at a time of a worker are not allowed; give 1 or more", w.Jobs)
	case w.MaxWorkers < 0:
		return fmt.Errorf("at most %d workers are not allowed; give 1 or more, or 0 for %d", w.MaxWorkers, MostWorkers)
	}
	return nil
}

// fixed is the time that no number of workers shortens: start, loading the workloads, and the longest point at the end.
func fixed(cost sweep.Cost) time.Duration {
	return StartUp + scaled(cost.Load, Slack) + scaled(cost.PointMax, Slack)
}

// setWorkers finds the fewest workers that finish in time.
func (c *Cluster) setWorkers(cost sweep.Cost, wish Wish) error {
	left := wish.Within - fixed(cost)
	if left <= 0 {
		return fmt.Errorf("no number of workers finishes within %s: to start takes %s, to load the workload %s and the longest point %s, with a slack of %g; allow more than %s",
			wish.Within, StartUp, cost.Load.Round(time.Millisecond), cost.PointMax.Round(time.Millisecond), Slack, fixed(cost).Round(time.Second))
	}
	work := Slack * cost.PointMean.Seconds() * float64(cost.Points)
	needed := math.Ceil(work / left.Seconds() / float64(wish.Jobs))
	useful := math.Ceil(float64(cost.Points) / float64(wish.Jobs))
	most := MostWorkers
	if wish.MaxWorkers > 0 {
		most = wish.MaxWorkers
	}
	c.Workers = int(max(min(needed, useful, float64(most)), 1))
	slots := float64(c.Workers * c.Jobs)
	c.Expected = fixed(cost)
	if slots < float64(cost.Points) {
		c.Expected += seconds(work / slots)
	}
	c.Deadline = max(scaled(c.Expected, DeadlineFactor), shortestJob).Round(time.Second)
	if needed > float64(most) {
		return fmt.Errorf("%g workers of %d points at a time would be needed to finish within %s, and %d are allowed; these take %s", needed, wish.Jobs, wish.Within, most, c.Expected.Round(time.Second))
	}
	return nil
}

func (c *Cluster) setShards(cost sweep.Cost) {
	worthwhile := (cost.Points + pointsPerSlot*c.Jobs - 1) / (pointsPerSlot * c.Jobs)
	c.Shards = max(min(shardsPerWorker*c.Workers, worthwhile, MostShards), 1)
	points := float64(cost.Points) / float64(c.Shards)
	points += 3 * math.Sqrt(points) // points are spread over the shards by their content ID
	each := fixed(cost) + seconds(Slack*cost.PointMean.Seconds()*points/float64(c.Jobs))
	waves := (c.Shards + c.Parallelism() - 1) / c.Parallelism()
	c.ShardsDeadline = max(scaled(each, DeadlineFactor*float64(waves)), shortestJob).Round(time.Second)
}

// Parallelism is the number of shards that run at a time.
func (c Cluster) Parallelism() int { return max(min(c.Workers, c.Shards), 1) }

// setMemory reckons with the rule of a sweep that loaded workloads and running points may take three quarters of the limit.
func (c *Cluster) setMemory(cost sweep.Cost) {
	need := processBytes + float64(cost.WorkloadBytes) + float64(c.Jobs)*float64(cost.PointBytes)
	c.MemoryBytes = roundUp(need/3*4, memoryStep)
	rows := rowsInMemory * float64(cost.Points) * float64(cost.RowBytes)
	c.CoordinatorBytes = roundUp((processBytes+float64(cost.WorkloadBytes)+rows)/3*4, memoryStep)
}

func (c *Cluster) setStorage(cost sweep.Cost) {
	rows := rowsOnDisk * float64(cost.Points) * float64(cost.RowBytes)
	c.ResultBytes = roundUp(rows, diskStep)
	files := 2 * float64(cost.WorkloadBytes) * float64(max(cost.Workloads, 1))
	c.QueueBytes = roundUp((queueReserve+files)/usableDisk, diskStep)
}

func seconds(s float64) time.Duration { return scaled(time.Second, s) }

// scaled is a duration times a factor, at most a year.
func scaled(d time.Duration, factor float64) time.Duration {
	const year = 365 * 24 * time.Hour
	if product := float64(d) * factor; product < float64(year) {
		return time.Duration(product)
	}
	return year
}

// roundUp rounds up to a multiple of a step, and one at least.
func roundUp(bytes float64, step int64) int64 {
	steps := math.Ceil(bytes / float64(step))
	return int64(max(min(steps, math.MaxInt64/4/float64(step)), 1)) * step
}
