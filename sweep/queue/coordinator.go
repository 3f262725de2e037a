package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// CoordinatorOptions configure the side of a sweep. Connection and Dir must be set.
type CoordinatorOptions struct {
	// Connection is that to the queue, whose namespace is prepared.
	Connection *Connection
	// Dir is the sweep's output folder, in which the coordinator keeps the sweep's name in the queue.
	Dir string
	// Fresh takes nothing of earlier sessions.
	Fresh bool
	// Window is how many points are out at most, published and without a result; 0 means 10,000.
	Window int
	// StopLost is that of the sweep; see [sweep.Options].
	StopLost bool
	// Kept names the kinds of files that workers shall make of each point, and KeepFile takes one of them. It may be called
	// again for the same file.
	Kept     []string
	KeepFile func(kind, id string, r io.Reader) error
	// Files opens the traces of the sweep; nil means those of this machine. Stdin is the path of a file with what the standard
	// input had.
	Files files.System
	Stdin string
	// Started is called once the sweep has its folder to itself; it may be nil.
	Started func()
	// Observer hears what happens; nil means nobody does.
	Observer Observer
	// Notice is told in a sentence what people should know, such as that there are no workers; nil means nobody is.
	Notice func(string)
	// WithWorkers says that workers start together with the sweep, so that nobody needs to be told at once that there are none.
	WithWorkers bool

	// watchEvery is the time between two looks at the queue, quietFor that without news after which people are told that
	// there are no workers, and aloneFor how long to wait for an earlier coordinator of the sweep to be gone.
	watchEvery, quietFor, aloneFor time.Duration
}

const (
	defaultWindow = 10_000
	// publishing bounds the messages that were sent and whose receipt the server did not confirm yet.
	publishing        = 512
	defaultWatchEvery = 5 * time.Second
	defaultQuietFor   = 5 * time.Second
	// A server needs a moment until it knows that a coordinator is gone whose machine was lost: its last request ends by then.
	defaultAloneFor = fetchTime + 5*time.Second
	// firstLook is when people are told for the first time that there are no workers.
	firstLook = time.Second
	// lastPublishing is how long the end of a coordinator waits for the receipts of messages.
	lastPublishing = 3 * time.Second
	leastRetry     = 100 * time.Millisecond
	mostRetry      = 2 * time.Second
)

// Coordinator hands the points of a sweep to the workers behind a queue, and brings back what they found. It is the
// [sweep.Executor] of one call of [sweep.Run] or [sweep.Search].
type Coordinator struct {
	opt   CoordinatorOptions
	conn  *Connection
	files *Bundle
	// sweep is the sweep's name in the queue, session that of this run of it.
	sweep, session string

	// ctx ends with the coordinator, or when it cannot go on.
	ctx  context.Context
	stop context.CancelCauseFunc
	jobs sync.WaitGroup
	// cleaning are removals of files that need not be waited for before the end.
	cleaning  sync.WaitGroup
	cleanCtx  context.Context
	stopClean context.CancelFunc

	started  bool
	startErr error
	// caughtUp is closed when all that earlier sessions left is taken in.
	caughtUp chan struct{}

	window  chan struct{}
	sending chan struct{}
	// local holds rows of points that no worker can have.
	local chan results.Row

	receiving receiver

	mu  sync.Mutex
	out map[string]outPoint
	// news is when a row came last, told when people were told last that there are no workers.
	news, told time.Time
	full       bool
	// earlier is how many parts of earlier sessions there were, taken those that were taken in, by their places in the
	// stream, until all were.
	earlier int
	taken   map[uint64]struct{}
}

// outPoint is a point that is out. Its message is kept in case the queue loses it.
type outPoint struct {
	data   []byte
	header Header
}

// NewCoordinator returns the executor of one sweep. Nothing is published before the sweep has its folder to itself. Close ends
// it.
func NewCoordinator(opt CoordinatorOptions) *Coordinator {
	if opt.Window <= 0 {
		opt.Window = defaultWindow
	}
	if opt.Observer == nil {
		opt.Observer = NopObserver{}
	}
	if opt.Notice == nil {
		opt.Notice = func(string) {}
	}
	if opt.watchEvery == 0 {
		opt.watchEvery = defaultWatchEvery
	}
	if opt.quietFor == 0 {
		opt.quietFor = defaultQuietFor
	}
	if opt.aloneFor == 0 {
		opt.aloneFor = defaultAloneFor
	}
	c := &Coordinator{
		opt: opt, conn: opt.Connection, session: randomToken(),
		caughtUp: make(chan struct{}), window: make(chan struct{}, opt.Window), sending: make(chan struct{}, publishing),
		local: make(chan results.Row, 1), out: map[string]outPoint{},
		taken: map[uint64]struct{}{},
	}
	c.receiving.conn = c.conn
	c.files = NewBundle(BundleOptions{Files: opt.Files, Stdin: opt.Stdin, Stored: opt.Observer.FileStored})
	c.ctx, c.stop = context.WithCancelCause(context.Background())
	c.cleanCtx, c.stopClean = context.WithCancel(context.Background())
	return c
}

// Submit publishes a point. It waits while the window is full.
func (c *Coordinator) Submit(ctx context.Context, job sweep.Job) error {
	if err := c.await(ctx, c.caughtUp); err != nil {
		return err
	}
	m, err := c.message(ctx, job)
	stays := new(NotPortableError)
	if err != nil && !errors.As(err, &stays) {
		return err
	}
	var data []byte
	if err == nil {
		data, err = m.Encode()
	}
	if err != nil {
		return c.settleHere(ctx, sweep.FailedRow(job.ID, job.Workload.Digest(), sweep.ReasonNotPortable, err.Error()))
	}
	if err := c.upload(ctx, m.Files); err != nil {
		return err
	}
	if err := c.enter(ctx, c.window); err != nil {
		return err
	}
	p := outPoint{data: data, header: Header{}}
	c.opt.Observer.PointPublishing(ctx, job.ID, p.header)
	c.register(job.ID, p)
	return c.send(ctx, job.ID, p, c.session)
}

// upload brings the files of a point to the queue. It tries again while the server is away, as publishing does.
func (c *Coordinator) upload(ctx context.Context, files []wire.File) error {
	for wait := leastRetry; ; wait = min(2*wait, mostRetry) {
		err := c.files.Upload(ctx, objects{c.conn}, files)
		if away := new(AwayError); !errors.As(err, &away) || ctx.Err() != nil || c.ctx.Err() != nil {
			return err
		}
		pause(ctx, wait)
	}
}

// settleHere gives a point its row without a worker.
func (c *Coordinator) settleHere(ctx context.Context, row results.Row) error {
	select {
	case c.local <- row:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// await waits for a channel to be closed, enter for a place in one.
func (c *Coordinator) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

func (c *Coordinator) enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// register notes that a point is out.
func (c *Coordinator) register(id string, p outPoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out[id] = p
	if len(c.out) == 1 {
		c.news = time.Now() // the wait for workers begins
	}
	c.opt.Observer.PointsOut(len(c.out))
}

// arrived notes that a point has a row. It returns false when it was not out.
func (c *Coordinator) arrived(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.news = time.Now()
	if _, ok := c.out[id]; !ok {
		return false
	}
	delete(c.out, id)
	<-c.window
	c.opt.Observer.PointsOut(len(c.out))
	return true
}

// isOut reports whether a point still waits for its row.
func (c *Coordinator) isOut(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.out[id]
	return ok
}

// start takes the sweep's place in the queue: what earlier sessions published is withdrawn, what was finished of it will be
// received. It tries again while the server is away. It is called by one goroutine at a time.
func (c *Coordinator) start(ctx context.Context) error {
	for wait := leastRetry; !c.started; wait = min(2*wait, mostRetry) {
		err := c.begin(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && passing(err) {
			pause(ctx, wait)
			continue
		}
		c.started, c.startErr = true, err
	}
	return c.startErr
}

func (c *Coordinator) begin(ctx context.Context) error {
	if c.opt.Started != nil {
		c.opt.Started()
	}
	var err error
	if c.opt.Fresh {
		if err := c.forget(ctx); err != nil {
			return err
		}
	}
	if c.sweep, err = sweepToken(c.opt.Dir); err != nil {
		return err
	}
	c.receiving.sweep = c.sweep
	if err := c.awaitAlone(ctx); err != nil {
		return err
	}
	if err := c.withdraw(ctx); err != nil {
		return err
	}
	if err := c.receiving.close(ctx); err != nil { // an earlier session's: what it had and did not keep comes again at once
		return err
	}
	if c.earlier, err = c.receiving.open(ctx); err != nil {
		return err
	}
	if c.earlier == 0 {
		close(c.caughtUp)
	}
	c.jobs.Go(c.watch)
	c.cleaning.Go(func() { c.conn.removeLeftovers(c.cleanCtx) })
	return nil
}

// awaitAlone waits until no other coordinator waits for parts of a sweep of this name. Two of them would withdraw each other's
// points for ever, so it gives up after a while.
func (c *Coordinator) awaitAlone(ctx context.Context) error {
	told := false
	for end := time.Now().Add(c.opt.aloneFor); ; pause(ctx, mostRetry) {
		if _, err := c.receiving.open(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		switch {
		case c.receiving.consumer.CachedInfo().NumWaiting == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("queue: %w", errTwice)
		case !told:
			told = true
			c.opt.Notice(fmt.Sprintf("another run of this sweep takes its points from the queue; waiting up to %s for it to be gone", c.opt.aloneFor))
		}
	}
}

// forget withdraws what a folder's earlier sweep left in the queue, and its name.
func (c *Coordinator) forget(ctx context.Context) error {
	earlier, err := readToken(c.opt.Dir)
	if err != nil || earlier == "" {
		return err
	}
	c.sweep, c.receiving.sweep = earlier, earlier
	return c.leave(ctx, true)
}

// withdraw takes the sweep's points out of the queue.
func (c *Coordinator) withdraw(ctx context.Context) error {
	return c.conn.purge(ctx, c.conn.pointsStream(), c.conn.points(thisVersion, c.sweep))
}

// Close withdraws the points that are still out and ends the coordinator. Complete says that the sweep has all its rows;
// otherwise what workers finish meanwhile is kept for the next session.
func (c *Coordinator) Close(ctx context.Context, complete bool) error {
	// What is on its way would arrive after it was withdrawn.
	for end := time.Now().Add(lastPublishing); len(c.sending) > 0 && time.Now().Before(end) && c.ctx.Err() == nil && c.conn.nc.IsConnected(); {
		pause(ctx, 5*time.Millisecond)
	}
	c.stop(errors.New("queue: the sweep has ended"))
	c.jobs.Wait()
	stopClean := context.AfterFunc(ctx, c.stopClean)
	c.cleaning.Wait()
	stopClean()
	c.stopClean()
	var err error
	switch {
	case c.startErr != nil:
	case c.started:
		err = c.leave(ctx, complete)
	case complete: // there was nothing to do but to remove what an earlier session could not, or what came after its end
		err = c.forget(ctx)
		c.conn.removeLeftovers(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w; what is left of this sweep in the queue does no harm: it is taken in or withdrawn the next time", err)
	}
	return nil
}

// leave takes out of the queue what is there for this session only and, when the sweep is complete, all that is there for it.
func (c *Coordinator) leave(ctx context.Context, complete bool) error {
	err := errors.Join(c.withdraw(ctx), c.receiving.close(ctx))
	if !complete {
		return err
	}
	err = errors.Join(err, c.conn.purge(ctx, c.conn.partsStream(), c.conn.parts(c.sweep)), c.conn.noteEnd(ctx, c.sweep))
	if len(c.opt.Kept) > 0 {
		c.conn.removeMade(ctx, c.sweep)
	}
	if err != nil { // the next session removes the rest, and finds it by this name
		return err
	}
	return removeToken(c.opt.Dir)
}
