package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep/queue/wire"
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
	wait     time.Duration
	nc       *nats.Conn
	js       jetstream.JetStream
	observer Observer
	notice   func(string)

	mu sync.Mutex
	// limits are those that the namespace was prepared with.
	limits Limits
	// refused is what the server does not allow this user, told to those who wait for an answer.
	refused   error
	onRefused map[int]func(error)
	nextID    int
	// lost is closed when the connection is lost, and made new when it is back.
	lost     chan struct{}
	lostOnce bool
	// shutOut says that people were told that the server does not let this client in again.
	shutOut bool

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
		onRefused: map[int]func(error){}, lost: make(chan struct{}),
	}
	options, err := credentials(opt.Getenv)
	if err != nil {
		return nil, err
	}
	options = append(options, c.options(opt)...)
	if c.nc, err = dial(ctx, servers, options, opt); err != nil {
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

// parseURL takes a queue's URL apart.
func parseURL(text string) (servers, namespace string, err error) {
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "nats" && scheme != "tls" {
		return "", "", fmt.Errorf("queue %q: give nats://HOST:PORT/NAMESPACE, or tls://… for TLS", withoutSecrets(text))
	}
	hosts, path, _ := strings.Cut(rest, "/")
	namespace = strings.TrimSuffix(path, "/")
	if namespace == "" {
		namespace = DefaultNamespace
	}
	if strings.Contains(rest, "@") { // a password may hold a slash
		return "", "", fmt.Errorf("queue %s: a URL ends up in logs and process lists, so it may hold no user, password or token; give them in the environment: NATS_CREDS, NATS_NKEY, NATS_USER and NATS_PASSWORD, or NATS_TOKEN", withoutSecrets(text))
	}
	if strings.ContainsAny(rest, "?#") {
		return "", "", fmt.Errorf("queue %s: nothing may follow the namespace", withoutSecrets(text))
	}
	if err := wire.CheckToken("queue: namespace", namespace); err != nil {
		return "", "", err
	}
	var list []string
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" {
			return "", "", fmt.Errorf("queue %q: a host is missing; give nats://HOST:PORT/NAMESPACE", text)
		}
		if _, port, err := net.SplitHostPort(host); err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return "", "", fmt.Errorf("queue %q: the port of %q is none; give a number from 1 to 65535", text, host)
			}
		}
		list = append(list, scheme+"://"+host)
	}
	return strings.Join(list, ","), namespace, nil
}

// withoutSecrets is a URL as it may be printed: nothing of what stands before an @, nor of a query or a fragment.
func withoutSecrets(url string) string {
	at, end := strings.LastIndexByte(url, '@'), strings.IndexAny(url, "?#")
	switch {
	case end >= 0 && end < at:
		return "…" // whether the @ belongs to a password or to a query cannot be told
	case end >= 0:
		url = url[:end]
	}
	if at < 0 {
		return url
	}
	scheme, _, ok := strings.Cut(url[:at], "://")
	if ok && (strings.EqualFold(scheme, "nats") || strings.EqualFold(scheme, "tls")) {
		return scheme + "://…@" + url[at+1:]
	}
	return "…@" + url[at+1:]
}

// credentials are the options that the environment asks for.
func credentials(getenv func(string) string) ([]nats.Option, error) {
	var (
		options []nats.Option
		errs    []error
	)
	readable := func(name string) (string, bool) {
		path := getenv(name)
		if path == "" {
			return "", false
		}
		if f, err := os.Open(path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			return "", false
		} else {
			_ = f.Close() // it was opened to see whether it can be read
		}
		return path, true
	}
	if path, ok := readable("NATS_CREDS"); ok {
		options = append(options, nats.UserCredentials(path))
	}
	if path, ok := readable("NATS_NKEY"); ok {
		option, err := nats.NkeyOptionFromSeed(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("NATS_NKEY: %s holds no nkey seed", path))
		} else {
			options = append(options, option)
		}
	}
	if user := getenv("NATS_USER"); user != "" {
		options = append(options, nats.UserInfo(user, getenv("NATS_PASSWORD")))
	}
	if secret := getenv("NATS_TOKEN"); secret != "" {
		options = append(options, nats.Token(secret))
	}
	if path, ok := readable("NATS_CA"); ok {
		options = append(options, nats.RootCAs(path))
	}
	cert, hasCert := readable("NATS_CERT")
	key, hasKey := readable("NATS_KEY")
	switch {
	case hasCert && hasKey:
		options = append(options, nats.ClientCert(cert, key))
	case (getenv("NATS_CERT") == "") != (getenv("NATS_KEY") == ""):
		errs = append(errs, errors.New("NATS_CERT and NATS_KEY belong together; give both"))
	}
	return options, errors.Join(errs...)
}

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
func dial(ctx context.Context, servers string, options []nats.Option, opt ConnectOptions) (nc *nats.Conn, err error) {
	err = insist(ctx, opt.Wait, opt.Notice, func() (err error) {
		nc, err = nats.Connect(servers, options...)
		switch {
		case err == nil:
			return nil
		case unreachable(err):
			return &AwayError{connectError(opt.URL, err)}
		}
		return connectError(opt.URL, err)
	})
	return nc, err
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
		lossy, done := c.untilLost(ctx)
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

// AwayError says that no server answers, or none that can serve yet. A moment later one may.
type AwayError struct{ err error }

// Error says what is missing and what to do.
func (e *AwayError) Error() string { return e.err.Error() }

// Unwrap returns the error itself.
func (e *AwayError) Unwrap() error { return e.err }

// unreachable reports whether a server may be there a moment later.
func unreachable(err error) bool {
	if dns := new(net.DNSError); errors.As(err, &dns) {
		return dns.IsTemporary || dns.IsTimeout || dns.IsNotFound
	}
	op := new(net.OpError)
	// A load balancer whose servers are away closes what it accepted.
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.As(err, &op) || errors.Is(err, io.EOF)
}

// connectError says what is wrong and what to do.
func connectError(url string, err error) error {
	url = withoutSecrets(url)
	text := err.Error()
	hint := ""
	dns := new(net.DNSError)
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("queue %s: the name %q cannot be resolved; check it, or the name server of this machine", url, dns.Name)
	case errors.Is(err, nats.ErrNoServers), strings.Contains(text, "connection refused"):
		hint = "no server answers there; start one with JetStream (nats-server -js), or check host and port"
	case refusesCredentials(err), strings.Contains(strings.ToLower(text), "authorization violation"):
		hint = "the server refuses these credentials; give them in the environment: NATS_CREDS, NATS_NKEY, NATS_USER and NATS_PASSWORD, or NATS_TOKEN"
	case errors.Is(err, nats.ErrSecureConnWanted):
		hint = "the server has no TLS; use nats:// in place of tls://"
	case errors.Is(err, nats.ErrSecureConnRequired):
		hint = "the server wants TLS; use tls:// in place of nats://"
	case strings.Contains(text, "tls: first record does not look like a TLS handshake"):
		hint = "what answers there does not speak TLS; use nats:// in place of tls://"
	case strings.Contains(text, "x509"), strings.Contains(text, "certificate"), strings.Contains(text, "tls error"):
		hint = "TLS failed; NATS_CA names the file of the authority that signed the server's certificate, NATS_CERT and NATS_KEY this client's own"
	case errors.Is(err, nats.ErrTimeout), strings.Contains(text, "i/o timeout"):
		hint = "nothing answers in time; check host, port and firewalls"
	default:
		return fmt.Errorf("queue %s: %w", url, err)
	}
	return fmt.Errorf("queue %s: %s (%w)", url, hint, err)
}

func (c *Connection) disconnected(nc *nats.Conn, err error) {
	c.mu.Lock()
	if !c.lostOnce {
		c.lostOnce = true
		close(c.lost)
	}
	c.mu.Unlock()
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

// failsTLS reports whether client and server do not agree about TLS.
func failsTLS(err error) bool {
	text := err.Error()
	return errors.Is(err, nats.ErrSecureConnWanted) || errors.Is(err, nats.ErrSecureConnRequired) ||
		strings.Contains(text, "x509") || strings.Contains(text, "certificate") || strings.Contains(text, "tls: ") || strings.Contains(text, "tls error")
}

// refusesCredentials reports whether a server does not let a client in that it knew before, or not any more.
func refusesCredentials(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) ||
		errors.Is(err, nats.ErrAccountAuthExpired)
}

// keptOut hears that the server does not let this client in any more, with each attempt, and tells people once.
func (c *Connection) keptOut(err error) {
	c.mu.Lock()
	told := c.shutOut
	c.shutOut = true
	c.mu.Unlock()
	if !told {
		c.notice(fmt.Sprintf("%v; trying again: the files of NATS_CREDS, NATS_CA, NATS_CERT and NATS_KEY are read each time, other credentials at the start only", connectError(c.url, err)))
	}
}

func (c *Connection) reconnected() {
	c.mu.Lock()
	c.lost, c.lostOnce = make(chan struct{}), false
	c.shutOut = false
	c.mu.Unlock()
	c.observer.Connected()
	c.notice("the connection to the queue is back")
}

// untilLost returns a context that also ends when the connection is lost: what was asked for will not come then.
func (c *Connection) untilLost(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	lost := c.lost
	c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-lost:
			cancel(nats.ErrDisconnected)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
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
	told := make([]func(error), 0, len(c.onRefused))
	for _, f := range c.onRefused {
		told = append(told, f)
	}
	c.mu.Unlock()
	for _, f := range told {
		f(err)
	}
}

// refusal is what the server refused this user last; nil when it refused nothing.
func (c *Connection) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// RefusedError is an action that the server does not allow this user.
type RefusedError struct {
	// Action is publish or subscribe, Subject to what.
	Action, Subject string
}

// Error says which permission is missing.
func (e *RefusedError) Error() string {
	if inbox, ok := strings.CutPrefix(e.Subject, "_INBOX_servegrid-"); ok {
		namespace, _, _ := strings.Cut(inbox, ".")
		return fmt.Sprintf("queue: this user may not use namespace %s: he may not %s to %s; docs/queue.md lists the permissions that a namespace needs", namespace, e.Action, e.Subject)
	}
	return fmt.Sprintf("queue: this user may not %s to %s; docs/queue.md lists the permissions that a namespace needs", e.Action, e.Subject)
}

var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]*)"`)

func permissionError(err error) error {
	m := violation.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Errorf("queue: %w", err)
	}
	action := "publish"
	if strings.EqualFold(m[1], "subscription") {
		action = "subscribe"
	}
	return &RefusedError{action, m[2]}
}

// untilRefused returns a context that also ends when the server says that this user may not do something, since that answer
// comes beside the call that it belongs to. The function that it returns gives the cause.
func (c *Connection) untilRefused(ctx context.Context) (context.Context, func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextID
	c.nextID++
	c.onRefused[id] = cancel
	return ctx, func() error {
		c.mu.Lock()
		delete(c.onRefused, id)
		c.mu.Unlock()
		cause := context.Cause(ctx)
		cancel(nil)
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

// serverError makes an error of the server one that says what to do.
func serverError(what string, err error) error {
	refused, api := new(RefusedError), new(jetstream.APIError)
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrJetStreamNotEnabled):
		hint = "the server has no JetStream; start it with -js, or give it a jetstream section"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		hint = "this account has no JetStream; enable it for the account"
	case errors.As(err, &api) && isAccountLimit(api):
		hint = "a limit of the account or the server is reached; a namespace reserves 1.6 GiB of storage unless its streams were made smaller: raise max_file_store in the server's jetstream section, or the limits of the account"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		hint = "the server does not answer in time"
	}
	told := fmt.Errorf("queue: %s: %w", what, err)
	if hint != "" {
		told = fmt.Errorf("queue: %s: %s (%w)", what, hint, err)
	}
	if passing(err) {
		return &AwayError{told}
	}
	return told
}

// passing reports whether an error may be gone a moment later: the server does not answer, or has just begun.
func passing(err error) bool {
	api := new(jetstream.APIError)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) || errors.As(err, &api) && isAccountLimit(api) {
		return false // until somebody changes the server's configuration
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded) || errors.As(err, &api) && api.Code == 503
}

// isAccountLimit reports whether an error is about storage, streams or consumers that an account or server has no more of.
func isAccountLimit(err *jetstream.APIError) bool {
	switch err.ErrorCode {
	case 10002, 10023, 10026, 10027, 10028, 10047, 10052: // resources, memory, consumers, streams, storage
		return true
	}
	return false
}
