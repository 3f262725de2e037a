package planner

import "github.com/servegrid/servegrid/simcore"

// gpuClock adds up the GPU time of the workers that are provisioned: from when they are asked for until they are gone.
type gpuClock struct {
	// perWorker is the number of GPUs of a worker of each pool, gpus that of all workers now.
	perWorker []int
	gpus      int
	sinceMs   float64
	total     float64 // GPU ms until then
}

// newGPUClock starts with the workers of a deployment.
func newGPUClock(cfg simcore.Config, config *Config) *gpuClock {
	c := &gpuClock{}
	for i, p := range cfg.Stages() {
		gpus := config.gpusPerWorker(i, cfg)
		c.perWorker = append(c.perWorker, gpus)
		c.gpus += gpus * p.Workers
	}
	return c
}

// note takes a worker that comes or goes into account.
func (c *gpuClock) note(e simcore.ScalingEvent) {
	change := 0
	switch e.Kind {
	case simcore.WorkerRequested:
		change = 1
	case simcore.WorkerCancelled, simcore.WorkerRemoved:
		change = -1
	}
	c.total += float64(c.gpus) * (e.AtMs - c.sinceMs)
	c.sinceMs = e.AtMs
	c.gpus += change * c.perWorker[e.Pool]
}

// hours returns the GPU hours until a time that is not before the last event.
func (c *gpuClock) hours(atMs float64) float64 {
	return (c.total + float64(c.gpus)*(atMs-c.sinceMs)) / 3.6e6
}
