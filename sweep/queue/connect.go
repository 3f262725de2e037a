package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ConnectOptions say where a queue is and how to get in.
type ConnectOptions struct {
	// URL is nats://HOST:4222/NAMESPACE, or tls://… for TLS. There may be several hosts, separated by commas. Without a
	// namespace it is [DefaultNamespace].
	URL string
	// Getenv looks up the credentials, under the names of the nats command: NATS_CREDS, NATS_NKEY, NATS_USER, NATS_PASSWORD,
	// NATS_TOKEN, NATS_CA, NATS_CERT, NATS_KEY. Nil means os.Getenv.
	Getenv func(string) string
	// Name is what the server's monitoring shows of this client.
	Name string
	// Wait is how long to try when no server can be reached, or none serves JetStream yet; 0 means 10 seconds.
	Wait time.Duration
	// Observer hears of the connection; nil means nobody does.
	Observer Observer
	// Notice is told in a sentence what people should know while it lasts, such as a lost connection; nil means nobody is.
	Notice func(string)
}

// The pace of connecting again. There is no last attempt.
const (
	defaultConnectWait  = 10 * time.Second
	attemptTimeout      = 5 * time.Second
	leastReconnectDelay = 100 * time.Millisecond
	mostReconnectDelay  = 5 * time.Second
	requestTimeout      = 10 * time.Second
	pingInterval        = 10 * time.Second
)

// Connection is a connection to the queue of a namespace. It reconnects by itself. Its methods may be used by several
// goroutines.
type Connection struct {
	names
	url      string
	given    []string // the variables of the environment that say who this is
	wait     time.Duration
	nc       *nats.Conn
	js       jetstream.JetStream
	observer Observer
	notice   func(string)

	mu sync.Mutex
	// limits are those that the namespace was prepared with.
	limits Limits
	// refused is what the server does not allow this user.
	refused error
	// shutOut says that people were told that the server does not let this client in again.
	shutOut bool

	// refusals end what waits for an answer that the server refuses, losses what waits on a connection that is lost.
	refusals, losses interrupts

	// watching are those that look why the connection does not come back.
	watching sync.WaitGroup
}

// Connect connects to a queue. Errors say what to mend.
func Connect(ctx context.Context, opt ConnectOptions) (*Connection, error) {
	if opt.Getenv == nil {
		opt.Getenv = os.Getenv
	}
	if opt.Observer == nil {
		opt.Observer = NopObserver{}
	}
	if opt.Notice == nil {
		opt.Notice = func(string) {}
	}
	if opt.Wait == 0 {
		opt.Wait = defaultConnectWait
	}
	servers, namespace, err := parseURL(opt.URL)
	if err != nil {
		return nil, err
	}
	c := &Connection{
		names: names{namespace}, url: withoutSecrets(opt.URL), wait: opt.Wait, observer: opt.Observer, notice: opt.Notice,
	}
	options, given, err := credentials(opt.Getenv)
	if err != nil {
		return nil, err
	}
	c.given = given
	options = append(options, c.options(opt)...)
	if err = c.dial(ctx, servers, options); err != nil {
		return nil, err
	}
	c.js, err = jetstream.New(c.nc, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		c.nc.Close()
		return nil, err
	}
	opt.Observer.Connected()
	return c, nil
}

// Close ends the connection after what was sent is on its way.
func (c *Connection) Close() {
	if c.nc.IsConnected() {
		_ = c.nc.FlushTimeout(2 * time.Second)
	}
	c.nc.Close()
	c.watching.Wait()
}

// Namespace is the namespace of the queue.
func (c *Connection) Namespace() string { return c.namespace }

// options are those of every connection.
func (c *Connection) options(opt ConnectOptions) []nats.Option {
	return []nats.Option{
		nats.Name(opt.Name),
		nats.CustomInboxPrefix(c.inbox()),
		nats.Timeout(attemptTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials can be mended while we wait
		nats.CustomReconnectDelay(reconnectDelay),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) { c.disconnected(nc, err) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.reconnected() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.failed(err) }),
	}
}

// reconnectDelay grows with the attempts, and differs so that a thousand workers do not come at once.
func reconnectDelay(attempts int) time.Duration {
	most := min(leastReconnectDelay<<min(attempts, 10), mostReconnectDelay)
	return most/2 + rand.N(most/2+1)
}

// dial tries to connect until it does, it is of no use, or the time is up.
func (c *Connection) dial(ctx context.Context, servers string, options []nats.Option) error {
	return insist(ctx, c.wait, c.notice, func() (err error) {
		c.nc, err = nats.Connect(servers, options...)
		switch {
		case err == nil:
			return nil
		case unreachable(err):
			return &AwayError{c.connectError(err)}
		}
		return c.connectError(err)
	})
}

// insist does something until it succeeds, fails for another reason than that the server is away, or the time is up: the last
// attempt is at its end. People are told when it takes more than a moment.
func insist(ctx context.Context, wait time.Duration, notice func(string), do func() error) error {
	const quiet = 3
	end := time.Now().Add(wait)
	for attempt := 0; ; attempt++ {
		err := do()
		away, left := new(AwayError), time.Until(end)
		if !errors.As(err, &away) || left <= 0 || ctx.Err() != nil {
			return err
		}
		if attempt == quiet {
			notice(fmt.Sprintf("%v; trying for %s", err, left.Round(time.Second)))
		}
		if pause(ctx, min(reconnectDelay(attempt), left)); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// insist is the function of this name for requests. One whose connection is lost is made again: its answer would be waited for
// in vain, for as long as all may take.
func (c *Connection) insist(ctx context.Context, do func(context.Context) error) error {
	return insist(ctx, c.wait, c.notice, func() error {
		timed, stop := context.WithTimeout(ctx, requestTimeout)
		err := c.awaitConnected(timed)
		stop()
		lossy, done := c.losses.until(ctx)
		defer done()
		if err == nil {
			err = do(lossy)
		}
		if err != nil && errors.Is(context.Cause(lossy), nats.ErrDisconnected) {
			err = serverError("the connection to the server", nats.ErrDisconnected)
		}
		return err
	})
}

func (c *Connection) disconnected(nc *nats.Conn, err error) {
	c.losses.interrupt(nats.ErrDisconnected, true)
	if nc.IsClosed() {
		return // by us
	}
	c.observer.Disconnected(err)
	c.notice("the connection to the queue is lost; connecting again")
	c.watching.Go(func() { c.watchReturn(nc) })
}

// watchReturn looks whether TLS is what keeps the connection from coming back: of that, unlike of credentials, no handler is told.
func (c *Connection) watchReturn(nc *nats.Conn) {
	for !nc.IsConnected() && !nc.IsClosed() {
		if err := nc.LastError(); err != nil && failsTLS(err) {
			c.keptOut(err)
			return
		}
		time.Sleep(leastReconnectDelay / 2) // less than an attempt takes with its delay
	}
}

// keptOut hears that the server does not let this client in any more, with each attempt, and tells people once.
func (c *Connection) keptOut(err error) {
	c.mu.Lock()
	told := c.shutOut
	c.shutOut = true
	c.mu.Unlock()
	if !told {
		c.notice(fmt.Sprintf("%v; trying again: the files of NATS_CREDS, NATS_CA, NATS_CERT and NATS_KEY are read each time, other credentials at the start only", c.connectError(err)))
	}
}

func (c *Connection) reconnected() {
	c.losses.over()
	c.mu.Lock()
	c.shutOut = false
	c.mu.Unlock()
	c.observer.Connected()
	c.notice("the connection to the queue is back")
}

// awaitConnected waits until there is a connection.
func (c *Connection) awaitConnected(ctx context.Context) error {
	for !c.nc.IsConnected() {
		if c.nc.IsClosed() {
			return nats.ErrConnectionClosed
		}
		if pause(ctx, leastRetry); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// failed hears of errors that belong to no call, such as missing permissions.
func (c *Connection) failed(err error) {
	if refusesCredentials(err) {
		c.keptOut(err)
	}
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	err = permissionError(err)
	c.mu.Lock()
	c.refused = err
	c.mu.Unlock()
	c.refusals.interrupt(err, false)
}

// refusal is what the server refused this user last; nil when it refused nothing.
func (c *Connection) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// untilRefused returns a context that also ends when the server says that this user may not do something, since that answer
// comes beside the call that it belongs to. The function that it returns gives the cause.
func (c *Connection) untilRefused(ctx context.Context) (context.Context, func() error) {
	ctx, done := c.refusals.until(ctx)
	return ctx, func() error {
		cause := context.Cause(ctx)
		done()
		if refused := new(RefusedError); errors.As(cause, &refused) {
			return refused
		}
		return nil
	}
}

// ask makes one request. It ends at once when this user may not make it.
func (c *Connection) ask(ctx context.Context, request func(context.Context) error) error {
	ctx, refusal := c.untilRefused(ctx)
	timed, stop := context.WithTimeout(ctx, requestTimeout)
	defer stop()
	err := request(timed)
	if refused := refusal(); err != nil && refused != nil {
		return refused
	}
	return err
}

// askTwice makes a request that does no harm when it is made again, as it is when its answer may be lost with a connection.
func (c *Connection) askTwice(ctx context.Context, request func(context.Context) error) error {
	err := c.ask(ctx, request)
	if err != nil && passing(err) && ctx.Err() == nil {
		err = c.ask(ctx, request)
	}
	return err
}
