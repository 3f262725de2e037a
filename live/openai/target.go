package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/servegrid/servegrid/live"
)

// Target sends requests to OpenAI-compatible servers, as streams. It is a [live.Target], safe for concurrent use. Failed requests
// are not sent again.
type Target struct {
	opt       TargetOptions
	urls      []*url.URL // of the endpoint
	header    http.Header
	bodies    *bodyMaker
	transport *http.Transport
	secrets   *strings.Replacer // hides what was sent and must not be told
	next      atomic.Uint64
}

// NewTarget returns a target. The error says everything that is wrong with the options.
func NewTarget(opt TargetOptions) (*Target, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	t := &Target{opt: opt, transport: newTransport(&opt), secrets: hideSecrets(&opt)}
	path := "/v1/chat/completions"
	if opt.Type == Completions {
		path = "/v1/completions"
	}
	for _, u := range opt.URLs {
		t.urls = append(t.urls, endpoint(u, path))
	}
	t.header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"servegrid"},
	}
	if opt.APIKey != "" {
		t.header.Set("Authorization", "Bearer "+opt.APIKey)
	}
	return t, t.UseModel(opt.Model)
}

// UseModel makes the target ask for another model. Nothing may be under way.
func (t *Target) UseModel(name string) (err error) {
	t.opt.Model = name
	t.bodies, err = newBodyMaker(&t.opt)
	return err
}

// idleConnections is how long a connection is kept that nobody uses: less than the 5 s after which the servers of Python, as
// vLLM's, close theirs, since a request on a connection that is being closed is lost.
const idleConnections = 4 * time.Second

// newTransport returns a transport for very many streams at a time, each on a connection of its own: many on one would wait for
// each other.
func newTransport(o *TargetOptions) *http.Transport {
	dialer := &net.Dialer{Timeout: o.ConnectTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: o.TLS, TLSHandshakeTimeout: o.ConnectTimeout,
		DisableCompression: true, MaxIdleConnsPerHost: 1 << 16, IdleConnTimeout: idleConnections, MaxResponseHeaderBytes: 1 << 18,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
	}
}

// Close closes the connections that nobody uses.
func (t *Target) Close() { t.transport.CloseIdleConnections() }

// Send sends a request and tells what comes back. Errors hold none of the secrets that were sent, even if the server repeats them.
func (t *Target) Send(ctx context.Context, call *live.Call, event func(live.Event)) error {
	err := t.send(ctx, call, event)
	var failed *live.Error
	if errors.As(err, &failed) {
		failed.Message = shortened(t.secrets.Replace(failed.Message))
	}
	return err
}

func (t *Target) send(ctx context.Context, call *live.Call, event func(live.Event)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := answer{ctx: ctx, opt: &t.opt, event: event, cancel: cancel}
	a.allow(t.opt.FirstTimeout, "nothing of the answer came for ")
	defer func() { a.late.Stop() }()
	response, err := t.transport.RoundTrip(t.request(ctx, call))
	if err != nil {
		return failure(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return refused(response)
	}
	if coding := response.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return &live.Error{Kind: live.ErrMalformed, Message: fmt.Sprintf("the answer is compressed (%.40q), which was not asked for", coding)}
	}
	a.kind, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	if a.kind == "application/json" {
		return asError(a.whole(response.Body))
	}
	if failed := a.stream(response.Body); failed != nil {
		return failed
	}
	a.drain(response.Body)
	return nil
}

// asError keeps a nil pointer from being an error.
func asError(e *live.Error) error {
	if e == nil {
		return nil
	}
	return e
}

func (t *Target) request(ctx context.Context, call *live.Call) *http.Request {
	header := t.header.Clone()
	for name, value := range map[string]string{
		"X-Request-Id": call.ID, "X-Correlation-Id": call.Session, "X-Session-Affinity": call.Session,
		"X-Dynamo-Session-Id": call.Session, "X-Dynamo-Parent-Session-Id": call.ParentSession,
	} {
		if value != "" {
			header[name] = []string{headerValue(value)}
		}
	}
	for name, values := range t.opt.Header {
		header[name] = values
	}
	data := t.bodies.make(call.Output, call.Prompt())
	r := &http.Request{
		Method: http.MethodPost, URL: t.url(call), Header: header, ContentLength: int64(len(data)), Body: newBody(data),
		GetBody: func() (io.ReadCloser, error) { // for a connection that turns out to be closed before anything was sent
			return newBody(t.bodies.make(call.Output, call.Prompt())), nil
		},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	authorize(r)
	r.Host = r.URL.Host
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	return r.WithContext(ctx)
}

// authorize sends the name and password of the URL, unless there is a key.
func authorize(r *http.Request) {
	if u := r.URL.User; u != nil && r.Header.Get("Authorization") == "" {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	}
}

// headerValue is a text as a header can have it.
func headerValue(text string) string {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return url.PathEscape(text)
		}
	}
	return text
}

// url is the server for a call.
func (t *Target) url(call *live.Call) *url.URL {
	n := uint64(len(t.urls))
	if t.opt.Balance == BalanceSession && call.Session != "" {
		return t.urls[xxh3.HashString(call.Session)%n]
	}
	return t.urls[(t.next.Add(1)-1)%n]
}

var errAnswerTooLarge = errors.New("the answer is larger than allowed")
