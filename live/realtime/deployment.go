// Package realtime lets a simulated deployment answer as time passes.
//
// Simulated time follows the clock and is never ahead of it: what happens is simulated at its exact time and told as soon as
// that has come, so that a late timer delays what is told and nothing else. Who submits requests with their times may be late
// too, where the simulation waits for them: see [Options].
//
// Read deployment.go for what a server sees, loop.go for the goroutine that simulates, stream.go for what a reader gets.
package realtime

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/servegrid/servegrid/simcore"
)

// ErrFull is the error of requests for which the deployment has no room, ErrTooMany that of more than it ever has room for, and
// ErrClosed that of requests which a closed deployment does not serve any more.
var (
	ErrFull    = errors.New("the deployment holds as many requests as it can")
	ErrTooMany = errors.New("the deployment never holds so many requests at once")
	ErrClosed  = errors.New("the deployment is closed")
)

// Options say how time passes.
type Options struct {
	// Speedup is how many simulated ms pass in a real one; 0 means 1.
	Speedup float64
	// MaxRequests is how many requests it holds at once; 0 means 16384.
	MaxRequests int
	// Led lets who submits requests lead the simulation, so that they arrive at their times however late they are submitted. It
	// goes no further than Until says. At the end of each request it stops, before anything else happens at that time, until
	// Settled of its stream is called: what was submitted by then may arrive at that very moment. Requests that end together are
	// told of one after another.
	Led bool
	// Scaling lets workers come and go; its zero value leaves them as they are.
	Scaling simcore.OnlineOptions
}

// defaultRequests is how many requests a deployment holds at once, unless it is told.
const defaultRequests = 16384

// Deployment is a simulated deployment in real time, safe for concurrent use.
type Deployment struct {
	clock   clock
	speedup float64
	led     bool
	most    int
	wake    chan struct{} // has an element when something has come for the loop to look at
	done    chan struct{} // closed when the loop has ended

	mu       sync.Mutex // guards what follows
	inbox    []command
	limitMs  float64 // nothing is simulated from this time on
	underWay int
	closed   bool
	err      error // why it was closed, unless somebody closed it

	simulating sync.Mutex // guards what follows; the loop has it while it simulates
	online     *simcore.Online
	streams    []*Stream // by number of the request
	waiting    []command // requests for which there is no room yet
	touched    []*Stream // those of which something was told since the readers were woken
	spare      []command
	late       lateness
	counts     Snapshot
}

// command is something for the loop to do at a time.
type command struct {
	stream  *Stream
	request simcore.OnlineRequest
	atMs    float64
	cancel  bool
}

// New starts a deployment. Close ends it. An invalid configuration is a problem.List.
func New(cfg simcore.Config, opt Options) (*Deployment, error) {
	d, err := Prepare(cfg, opt)
	if err != nil {
		return nil, err
	}
	d.Start(time.Now())
	return d, nil
}

// Prepare is New but for the start, before which there is nothing to be done with the deployment but to Close it.
func Prepare(cfg simcore.Config, opt Options) (*Deployment, error) {
	return newDeployment(cfg, opt, nil)
}

// Start starts a deployment that was prepared, whose simulated time is 0 at the given one.
func (d *Deployment) Start(zero time.Time) {
	d.mu.Lock()
	d.clock = newRealClock(zero)
	d.mu.Unlock()
	go d.run()
}

// newDeployment returns a deployment whose loop does not run yet, and which may have its clock later.
func newDeployment(cfg simcore.Config, opt Options, c clock) (*Deployment, error) {
	d := &Deployment{
		clock: c, speedup: opt.Speedup, led: opt.Led, most: opt.MaxRequests,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if !d.led {
		d.limitMs = math.Inf(1)
	}
	if d.speedup == 0 {
		d.speedup = 1
	}
	if d.most == 0 {
		d.most = defaultRequests
	}
	// A request that has ended may still hold a source of its hand-off, so there is more room than for those under way.
	slots := 2 * d.most
	d.streams = make([]*Stream, slots)
	var err error
	d.online, err = simcore.NewOnline(cfg, slots, d.hear, opt.Scaling)
	return d, err
}

// Submit lets requests arrive now, all of them together or none. The events of each come on its stream. The error is ErrFull,
// ErrTooMany or ErrClosed.
func (d *Deployment) Submit(requests ...simcore.OnlineRequest) ([]*Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.take(requests, d.NowMs())
}

// SubmitAt lets a request arrive at a simulated time, or when the last thing happened that has been simulated if that is later.
func (d *Deployment) SubmitAt(r simcore.OnlineRequest, atMs float64) (*Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	streams, err := d.take([]simcore.OnlineRequest{r}, atMs)
	if err != nil {
		return nil, err
	}
	return streams[0], nil
}

// Until lets a deployment with [Options.Led] simulate as time passes, up to a simulated time that is not included: nothing is
// submitted that arrives before it, unless it follows from the end of a request.
func (d *Deployment) Until(ms float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limitMs = ms
	d.notify()
}

// take lets requests arrive at one time, if there is room for all of them. The caller holds mu.
func (d *Deployment) take(requests []simcore.OnlineRequest, atMs float64) ([]*Stream, error) {
	switch {
	case d.closed:
		return nil, ErrClosed
	case len(requests) > d.most:
		return nil, ErrTooMany
	case d.underWay > d.most-len(requests):
		return nil, ErrFull
	}
	d.underWay += len(requests)
	streams := make([]*Stream, len(requests))
	for i, r := range requests {
		streams[i] = &Stream{d: d, ready: make(chan struct{}, 1)}
		d.send(command{stream: streams[i], request: r, atMs: atMs})
	}
	return streams, nil
}

// send hands a command to the loop. The caller holds mu.
func (d *Deployment) send(c command) {
	d.inbox = append(d.inbox, c)
	d.notify()
}

func (d *Deployment) notify() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Snapshot is the state of a deployment and what it counted since the start.
type Snapshot struct {
	// NowMs is the simulated time.
	NowMs float64
	// Submitted, Completed, Rejected, Failed and Cancelled count requests; UnderWay are those that have not ended, and Kept
	// those of them that wait in a router.
	Submitted, Completed, Rejected, Failed, Cancelled int64
	UnderWay, Kept                                    int
	// PromptTokens counts those of requests whose first token came, CachedTokens those of them that were in the prefix cache,
	// and OutputTokens all output tokens.
	PromptTokens, CachedTokens, OutputTokens int64
	// Workers are in the order of their pools; Pools says how many of them there are, and how many start.
	Workers []simcore.OnlineWorker
	Pools   []simcore.OnlinePool
	// Lateness is how long after their time events were told.
	Lateness Lateness
}

// NowMs is the simulated time, which begins at 0.
func (d *Deployment) NowMs() float64 { return d.simulatedMs(d.clock.elapsed()) }

// Snapshot is the state of the workers and the counters since the start.
func (d *Deployment) Snapshot() Snapshot {
	d.simulating.Lock()
	defer d.simulating.Unlock()
	out := d.counts
	out.NowMs = d.NowMs()
	out.UnderWay = int(out.Submitted - out.Completed - out.Rejected - out.Failed - out.Cancelled)
	out.Kept = d.online.Kept()
	out.Workers = append([]simcore.OnlineWorker(nil), d.online.Workers()...)
	out.Pools = append([]simcore.OnlinePool(nil), d.online.Pools()...)
	out.Lateness = d.late.summary()
	return out
}

// Close ends the deployment. Streams that are under way get ErrClosed. The error says why the deployment had ended before, if it
// had.
func (d *Deployment) Close() error {
	d.end(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clock != nil { // it has started
		d.mu.Unlock()
		<-d.done
		d.mu.Lock()
	}
	return d.err
}

// end makes the loop end.
func (d *Deployment) end(err error) {
	d.mu.Lock()
	if !d.closed {
		d.closed, d.err = true, err
	}
	d.mu.Unlock()
	d.notify()
}
