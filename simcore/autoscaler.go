package simcore

import "github.com/servegrid/servegrid/simcore/engine"

// Autoscaler decides, while a simulation runs, how many workers each pool has. One that also is a [PassObserver] or a
// [RequestObserver] is told what it needs to decide. All methods are called from the goroutine of the simulation, in
// order of simulated time.
type Autoscaler interface {
	// NextTickMs returns when it wants to decide next, in simulated ms; infinity means never again. It is asked at the start
	// and after each tick.
	NextTickMs() float64
	// Tick decides at that time, after everything that happens then or before. By [rules.Set].TicksKeepClock it is told the
	// time of the last of that instead. It returns the workers that each pool shall have, those that start included, in the
	// order of [Config.Stages]; nil leaves them as they are. The slices are valid until the next call of either side. Once
	// the workload is done there are no more ticks.
	Tick(nowMs float64, pools []PoolState) (targets []int)
}

// PoolState is how many workers a pool has.
type PoolState struct {
	// Ready are the ids of the workers that take requests, in the order in which they were made. Ids count up from 0 in
	// each pool and are never used again.
	Ready []int32
	// Starting is the number of workers that were asked for and are not ready yet; Draining is the number of those that
	// take no more requests and finish what they have.
	Starting, Draining int
}

// PassObserver is an [Autoscaler] that hears of every pass.
type PassObserver interface {
	// Pass tells what a pass does that has ended, or by [rules.Set].PassesToldAtStart has begun. Just before a tick it tells
	// all of them since the tick before, in order of time. The pointer is valid during the call.
	Pass(p *PassMetrics)
}

// PassMetrics is what an engine publishes about a pass. Pool is the place of the worker's pool in [Config.Stages].
type PassMetrics = engine.PassMetrics

// RequestObserver is an [Autoscaler] that hears of requests.
type RequestObserver interface {
	// Arrived tells that a request arrived, Completed that it has all its output, at the given time. The pointer is valid
	// during the call.
	Arrived(nowMs float64, r *engine.Request)
	Completed(nowMs float64, r *engine.Request)
	// Routed tells of how many KV blocks of a request's prompt, and of how many in all, the router knew that the worker has
	// them; routers that do not look at the caches do not tell.
	Routed(nowMs float64, overlapBlocks, promptBlocks int)
}

// ScalingEvent is a change of the workers of a pool, as it takes place.
type ScalingEvent struct {
	// AtMs is when it happens, in simulated ms.
	AtMs float64
	// Pool is the place of the pool in [Config.Stages], Worker the id of the worker there.
	Pool   int
	Worker int32
	// Kind says what happens to the worker.
	Kind ScalingKind
}

// ScalingKind is what happens to a worker.
type ScalingKind int8

// What happens to a worker: it is asked for, it becomes ready, it is given up before that, it takes no more requests, it
// has finished those it had and is gone.
const (
	WorkerRequested ScalingKind = iota
	WorkerReady
	WorkerCancelled
	WorkerDraining
	WorkerRemoved
)

// String is the word for it: requested, ready, cancelled, draining or removed.
func (k ScalingKind) String() string {
	words := [...]string{"requested", "ready", "cancelled", "draining", "removed"}
	if int(k) < 0 || int(k) >= len(words) {
		return "unknown"
	}
	return words[k]
}
