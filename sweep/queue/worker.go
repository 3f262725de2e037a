package queue

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// WorkerOptions configure a worker. Connection and Cache must be set.
type WorkerOptions struct {
	// Connection is that to the queue, whose namespace is prepared.
	Connection *Connection
	// Cache is the folder for the files of points. Several workers may share one.
	Cache string
	// CacheLimit bounds the files there, in bytes; 0 means 20 GiB.
	CacheLimit int64
	// Jobs is the number of points that are simulated at the same time; 0 means one for each core.
	Jobs int
	// Memory bounds the estimated memory of everything that is loaded and running, in bytes; 0 means three quarters of what
	// the machine and its container limits offer.
	Memory int64
	// MaxPoints ends the worker after so many points; 0 means never. IdleExit ends it when there was no point for so long;
	// 0 means never.
	MaxPoints int
	IdleExit  time.Duration
	// Grace is how long points may go on once the worker is told to end; 0 means 25 seconds. What is not finished by then goes
	// back to the queue.
	Grace time.Duration
	// MaxTries is how often a point may be begun in vain, by any worker, until it gets a row that says that it failed. The first
	// time that it is delivered does not count. 0 means 5.
	MaxTries int
	// Simulate simulates a point and makes the files of the given kinds; nil means that of a sweep, which makes none.
	Simulate Simulation
	// Observer hears what happens; nil means nobody does.
	Observer Observer
	// Notice is told in a sentence what people should know; nil means nobody is.
	Notice func(string)

	// retryDelay is how long a point that this worker cannot simulate rests before it comes again.
	retryDelay time.Duration
}

// Simulation simulates a point. Of each kind it calls write once, with a function that writes the file; that of a point that
// fails need not be written.
type Simulation func(ctx context.Context, job sweep.Job, kinds []string, write func(kind string, to func(io.Writer) error) error) (*simcore.Report, error)

// WorkerOutcome is what a worker did.
type WorkerOutcome struct {
	// Finished is how many rows it sent, Returned how many points it gave back, and Left how many it could not give back since the
	// server was away: others get them once the worker was silent for AckWait.
	Finished, Returned, Left int
}

const (
	defaultGrace      = 25 * time.Second
	defaultMaxTries   = 5
	defaultRetryDelay = 10 * time.Second
	defaultCacheLimit = 20 << 30
	// maxFinished bounds the finished points whose rows the server does not have yet; a worker takes no more points then.
	maxFinished = 4096
	// A worker takes points ahead for so much time of simulating, and no more than so many for each job. Of points that take
	// longer it still takes leastAhead, up to leastAheadTime: whatever it waits or asks for wakes threads that push the
	// simulations of other workers on its machine off their cores.
	aheadTime      = 40 * time.Millisecond
	maxAhead       = 64
	leastAheadTime = 250 * time.Millisecond
	leastAhead     = 2
	// mostAheadTime is how long a point waits for those before it, until it goes back for a worker that may have nothing to do.
	mostAheadTime = time.Second
)

func (o WorkerOptions) withDefaults() WorkerOptions {
	if o.Jobs <= 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	if o.Memory <= 0 {
		o.Memory = sweep.MachineMemory()
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.MaxTries <= 0 {
		o.MaxTries = defaultMaxTries
	}
	if o.Observer == nil {
		o.Observer = NopObserver{}
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.CacheLimit <= 0 {
		o.CacheLimit = defaultCacheLimit
	}
	if o.retryDelay == 0 {
		o.retryDelay = defaultRetryDelay
	}
	return o
}

// Work pulls points and simulates them until the context ends, MaxPoints or IdleExit. Then it finishes what it can within the
// grace period, gives the rest back and returns. An error means that it could not go on.
func Work(ctx context.Context, opt WorkerOptions) (WorkerOutcome, error) {
	opt = opt.withDefaults()
	var (
		ackWait  time.Duration
		mostPart int
	)
	// The server may go away for a moment here as anywhere.
	err := opt.Connection.insist(ctx, func(ctx context.Context) error {
		consumer, err := opt.Connection.workersConsumer(ctx, Limits{}.withDefaults())
		if err != nil {
			return err
		}
		ackWait = consumer.CachedInfo().Config.AckWait
		mostPart, err = opt.Connection.mostPart(ctx)
		return err
	})
	if ctx.Err() != nil { // it was told to end before it began
		return WorkerOutcome{}, nil
	}
	if err != nil {
		return WorkerOutcome{}, err
	}
	cache, err := OpenCache(opt.Cache, opt.CacheLimit)
	if err != nil {
		return WorkerOutcome{}, err
	}
	w := newWorker(opt, cache)
	w.ackWait, w.mostPart = ackWait, mostPart
	outcome, err := w.run(ctx)
	return outcome, errors.Join(err, cache.Close())
}

// worker is one at work.
type worker struct {
	opt      WorkerOptions
	conn     *Connection
	ackWait  time.Duration
	name     string
	mostPart int // bytes of one part

	// simulating ends when the grace period does; failed is told what the worker cannot go on with.
	simulating context.Context
	failed     context.CancelCauseFunc

	cache     *Cache
	tries     *tries
	slots     chan struct{}
	memory    *semaphore.Weighted
	workloads *sweep.WorkloadCache
	parts     *partSender
	points    sync.WaitGroup

	mu   sync.Mutex
	held map[*task]struct{}
	// room is signalled when a point is not held any more or waits only for its row to be sent.
	room chan struct{}
	// drained is closed when the worker is told to end; toldAt is then set.
	drained  <-chan struct{}
	toldAt   time.Time
	open     int // held points that are not finished
	received int
	// restFor is how long the worker rests after its last failure, and until when.
	restFor   time.Duration
	restUntil time.Time
	// endFetch ends the request for points that is under way.
	endFetch context.CancelFunc
	perPoint time.Duration // what a point takes, the mean over the last ones
	heldUpAt time.Time     // when a point that was taken ahead went back last
	idleFrom time.Time
	outcome  WorkerOutcome
}

func newWorker(opt WorkerOptions, cache *Cache) *worker {
	w := &worker{
		cache: cache, tries: &tries{conn: opt.Connection},
		opt: opt, conn: opt.Connection, name: randomToken(),
		slots: make(chan struct{}, opt.Jobs), memory: semaphore.NewWeighted(max(opt.Memory/2, 1)),
		workloads: sweep.NewWorkloadCache(max(opt.Memory/2, 1)),
		held:      map[*task]struct{}{}, room: make(chan struct{}, 1), idleFrom: time.Now(),
	}
	w.parts = newPartSender(w)
	return w
}

// run is the whole life of a worker.
func (w *worker) run(ctx context.Context) (WorkerOutcome, error) {
	w.opt.Observer.WorkerStarted(w.opt.Jobs)
	pulling, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	drained := make(chan struct{})
	w.failed, w.drained = failed, drained
	defer context.AfterFunc(pulling, func() {
		w.toldAt = time.Now()
		close(drained)
	})()
	var stop context.CancelFunc
	w.simulating, stop = context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	background, endBackground := context.WithCancel(context.WithoutCancel(ctx))
	var others sync.WaitGroup
	host, _ := os.Hostname() // only shown to people
	others.Go(func() {
		started := time.Now().UTC()
		w.conn.bePresent(background, w.name, func() wire.Presence {
			w.mu.Lock()
			defer w.mu.Unlock()
			return wire.Presence{
				Host: host, PID: os.Getpid(), Jobs: w.opt.Jobs, Simulator: thisVersion, Started: started,
				Points: w.outcome.Finished, Seconds: w.perPoint.Seconds(),
			}
		})
	})
	others.Go(func() { w.keepAlive(background) })
	others.Go(w.parts.run)

	w.pull(pulling)
	w.drain(stop)
	endBackground()
	others.Wait()
	if w.conn.nc.IsConnected() {
		_ = w.conn.nc.FlushTimeout(leastLast) // acknowledgements that are lost cost a repetition
	}
	refused := new(RefusedError)
	if cause := context.Cause(pulling); errors.As(cause, &refused) {
		return w.outcome, cause
	}
	return w.outcome, nil
}

// pull takes points until it is time to end.
func (w *worker) pull(ctx context.Context) {
	for ctx.Err() == nil {
		w.rest(ctx)
		want := w.wanted(ctx)
		if want <= 0 {
			return
		}
		timed, stop := context.WithTimeout(ctx, w.fetchTime())
		err := w.conn.awaitConnected(timed)
		waited := timed.Err() != nil
		stop()
		switch {
		case err != nil && (!waited || w.idle()): // a time without a server is an idle one
			return
		case err != nil:
			continue
		}
		if !w.fetch(ctx, want) {
			return
		}
	}
}

// wanted waits until there is room for points and returns for how many. It returns 0 at the end.
func (w *worker) wanted(ctx context.Context) int {
	for {
		w.mu.Lock()
		most := w.opt.Jobs + w.ahead()
		n := most - w.open
		if len(w.held)-w.open >= maxFinished {
			n = 0
		}
		done := false
		if w.opt.MaxPoints > 0 {
			n = min(n, w.opt.MaxPoints-w.received)
			done = w.received >= w.opt.MaxPoints
		}
		w.mu.Unlock()
		if done || ctx.Err() != nil {
			return 0
		}
		// A handful at a time is as fast as one by one, and costs less.
		if n > 0 && (n >= (most+1)/2 || w.opt.MaxPoints > 0) {
			return n
		}
		select {
		case <-ctx.Done():
		case <-w.room:
		}
	}
}

// ahead is how many points to take besides those that are simulated, so that the next one is there when one is done. The
// caller holds the lock.
func (w *worker) ahead() int {
	if w.perPoint <= 0 || w.opt.MaxPoints > 0 || time.Since(w.heldUpAt) < 10*mostAheadTime {
		return 0
	}
	least := min(int(leastAheadTime/w.perPoint), leastAhead)
	return max(least, min(int(aheadTime/w.perPoint), maxAhead)) * w.opt.Jobs
}

// fetch asks for points and takes what comes. It returns false when the worker is to end.
func (w *worker) fetch(ctx context.Context, want int) bool {
	r, err := w.conn.request(w.conn.pointsStream(), workersConsumer(thisVersion), want, w.fetchTime())
	if err != nil {
		pause(ctx, leastRetry)
		return !w.idle()
	}
	w.mu.Lock()
	w.endFetch = r.end
	failed := time.Now().Before(w.restUntil) // since the last look
	w.mu.Unlock()
	if failed {
		r.end()
	}
	defer context.AfterFunc(ctx, r.end)()
	for m := range r.messages {
		w.take(m, ctx.Err() != nil || r.hasEnded())
	}
	if w.idle() {
		return false
	}
	if refused := w.conn.refusal(); refused != nil {
		w.failed(refused)
		return false
	}
	switch {
	case r.err == nil, errors.Is(r.err, nats.ErrDisconnected):
	case gone(r.err):
		w.renew(ctx)
	default:
		pause(ctx, leastRetry)
	}
	return true
}

// fetchTime is how long a request for points lasts.
func (w *worker) fetchTime() time.Duration {
	if w.opt.IdleExit > 0 {
		return min(fetchTime, max(w.opt.IdleExit/2, 100*time.Millisecond))
	}
	return fetchTime
}

// renew makes the consumer again that somebody removed.
func (w *worker) renew(ctx context.Context) {
	pause(ctx, leastRetry)
	_ = w.conn.restoring(ctx, func() error { // the next request tells whether it is there
		_, err := w.conn.workersConsumer(ctx, Limits{AckWait: w.ackWait}.withDefaults())
		return err
	})
}

// idle reports whether there was nothing to do for so long that the worker ends.
func (w *worker) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.opt.IdleExit > 0 && len(w.held) == 0 && time.Since(w.idleFrom) >= w.opt.IdleExit
}

// take begins with a point, or gives it back at once when it is late.
func (w *worker) take(m *nats.Msg, late bool) {
	t := &task{worker: w, msg: m, delivery: 1, late: late}
	if meta, err := m.Metadata(); err == nil {
		t.delivery, t.published = int(meta.NumDelivered), meta.Timestamp
	}
	w.mu.Lock()
	w.held[t] = struct{}{}
	w.open++
	if !late {
		w.received++
	}
	w.mu.Unlock()
	w.points.Go(t.run)
}

// drain ends the worker. Once it was told to end, points that have not begun go back, and those that run may finish within the
// grace period, in which the server must also take what is finished; before, all that were taken are finished.
func (w *worker) drain(stop context.CancelFunc) {
	finished := make(chan struct{})
	go func() {
		w.points.Wait()
		close(finished)
	}()
	last := lastParts
	select {
	case <-finished:
	case <-w.drained:
		end := w.toldAt.Add(w.opt.Grace)
		select {
		case <-finished:
		case <-time.After(time.Until(end)):
			stop()
			<-finished
		}
		last = max(time.Until(end), leastLast)
	}
	w.parts.finish(last)
}

// keepAlive tells the server again and again that the points that are held are being worked on.
func (w *worker) keepAlive(ctx context.Context) {
	tick := time.NewTicker(max(w.ackWait/3, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.mu.Lock()
		held := make([]*task, 0, len(w.held))
		for t := range w.held {
			held = append(held, t)
		}
		w.mu.Unlock()
		for _, t := range held {
			_ = t.msg.InProgress() // a point that is acknowledged meanwhile needs none
		}
	}
}

// finished notes that a point waits only for its row to be sent.
func (w *worker) finished(took time.Duration) {
	w.mu.Lock()
	w.open--
	if took > 0 {
		if w.perPoint == 0 {
			w.perPoint = took
		}
		w.perPoint += (took - w.perPoint) / 16
	}
	w.mu.Unlock()
	w.signalRoom()
}

// heldUp notes that a point waited in vain for those before it, so that none is taken ahead for a while.
func (w *worker) heldUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heldUpAt = time.Now()
}

// rest waits after points that could not be simulated here, longer with each, so that others get them: a worker that fails at
// once would take a point again and again, until its tries are used up.
func (w *worker) rest(ctx context.Context) {
	w.mu.Lock()
	left := time.Until(w.restUntil)
	w.mu.Unlock()
	if left > 0 {
		pause(ctx, left)
	}
}

// failedHere and workedHere note how points end of which the worker has all that they need, or has not.
func (w *worker) failedHere() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.restUntil) {
		return // it began together with the one that failed before
	}
	w.restFor = min(max(2*w.restFor, w.opt.retryDelay), 12*w.opt.retryDelay)
	w.restUntil = time.Now().Add(w.restFor)
	w.endFetch() // or what it still asks for would come before the rest
}

func (w *worker) workedHere() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restFor = 0
}

// settled notes that a point is not held any more.
func (w *worker) settled(t *task, how Settled) {
	w.mu.Lock()
	delete(w.held, t)
	w.idleFrom = time.Now()
	switch {
	case how != SettledReturned:
		w.outcome.Finished++
	case w.conn.nc.IsConnected():
		w.outcome.Returned++
	default:
		w.outcome.Left++
	}
	w.mu.Unlock()
	w.signalRoom()
}

func (w *worker) signalRoom() {
	select {
	case w.room <- struct{}{}:
	default:
	}
}
