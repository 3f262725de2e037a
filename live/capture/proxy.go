package capture

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/tokens"
)

// Options say what is captured and how.
type Options struct {
	// Upstream is the server; a path of it goes before the paths of requests.
	Upstream *url.URL
	// TLS is how the server and the proxy prove to each other who they are; nil as the system does.
	TLS *tls.Config
	// Dir and Name say where the trace goes: files DIR/NAME.NNNNNN.jsonl.gz.
	Dir, Name string
	// Tokenizer and BlockSize make blocks of prompts.
	Tokenizer tokens.Tokenizer
	BlockSize int
	// Salt, unless empty, is a secret without which nobody can tell which text a hash is of.
	Salt []byte
	// SessionHeaders and ParentHeaders name the headers that say which session a request belongs to and which one spawned that;
	// the first that is there counts.
	SessionHeaders, ParentHeaders []string
	// MaxBody bounds the request or answer that is recorded, and MaxMemory all that is kept at a time, in bytes.
	MaxBody, MaxMemory int64
	// FlushEvery is how long a record stays in memory, RollBytes and RollEvery when the next file begins; 0 for no limit of time.
	FlushEvery, RollEvery time.Duration
	RollBytes             int64
	// Warn hears of what went wrong with the trace; nil drops it.
	Warn func(error)
}

// The defaults of [Options].
const (
	DefaultBlockSize  = 64
	DefaultMaxBody    = 64 << 20
	DefaultMaxMemory  = 1 << 30
	DefaultFlushEvery = time.Second
	DefaultRollBytes  = 256 << 20
)

// DefaultSessionHeaders and DefaultParentHeaders are those of Dynamo, and of AIPerf.
func DefaultSessionHeaders() []string { return []string{"X-Dynamo-Session-ID", "X-Correlation-ID"} }

// DefaultParentHeaders is the header of Dynamo.
func DefaultParentHeaders() []string { return []string{"X-Dynamo-Parent-Session-ID"} }

// Proxy passes requests to a server and records them. It is an [http.Handler]; Close ends the trace.
type Proxy struct {
	opt       Options
	transport *http.Transport
	proxy     httputil.ReverseProxy
	recorder  *recorder
	counts    counters
	memory    budget
	run       string // begins the ids of this run's requests
	next      atomic.Int64
}

// New starts a capture. The folder is made if it is not there; the files begin with the number after the last that exists.
func New(opt Options) (*Proxy, error) {
	if opt.Warn == nil {
		opt.Warn = func(error) {}
	}
	p := &Proxy{opt: opt, transport: newTransport(opt.TLS), run: newRunID()}
	p.memory.limit = opt.MaxMemory
	var err error
	if p.recorder, err = newRecorder(opt, &p.counts, &p.memory); err != nil {
		return nil, err
	}
	p.proxy = httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      p.transport,
		FlushInterval:  -1, // at once
		BufferPool:     &buffers{},
		ModifyResponse: p.watch,
		ErrorHandler:   p.unreachable,
		ErrorLog:       log.New(discard{}, "", 0), // clients that go away are nothing to tell
	}
	return p, nil
}

// buffers are what answers are copied through; events are small, and many streams are open at once.
type buffers struct{ pool sync.Pool }

const bufferBytes = 8 << 10

func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, bufferBytes)
}

func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// newTransport passes everything on as it is: it asks for no compression of its own, and waits as long as the client does.
func newTransport(security *tls.Config) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = security
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 4096
	t.Proxy = nil
	return t
}

func newRunID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// rewrite sends a request to the server, with all headers that it came with.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.opt.Upstream)
	if p.opt.Upstream.RawQuery == "" {
		r.Out.URL.RawQuery = r.In.URL.RawQuery // even where it can't be parsed
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
}

type exchangeKey struct{}

// ServeHTTP passes a request on and records it if it is one for text.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A server may answer before it is known that the request has ended, which would close the request's body while it is read and
	// with that the connection to the server. HTTP/2 does not do that.
	_ = http.NewResponseController(w).EnableFullDuplex()
	if !asksForText(r) {
		p.counts.other.Add(1)
		p.proxy.ServeHTTP(w, r)
		return
	}
	p.counts.requests.Add(1)
	p.counts.running.Add(1)
	x := p.newExchange(r)
	defer func() { // a dropped connection is a panic that the server expects
		p.counts.running.Add(-1)
		x.aborted = r.Context().Err() != nil
		p.recorder.add(x)
	}()
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &requestTap{ReadCloser: r.Body, x: x}
	}
	p.proxy.ServeHTTP(w, r)
}

// asksForText reports whether a request is for a chat completion or a completion.
func asksForText(r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	return r.Method == http.MethodPost && strings.HasSuffix(path, "/completions")
}

// watch looks at an answer as it passes.
func (p *Proxy) watch(r *http.Response) error {
	x, ok := r.Request.Context().Value(exchangeKey{}).(*exchange)
	if ok && r.StatusCode == http.StatusOK {
		x.begin(r.Header)
		r.Body = &answerTap{ReadCloser: r.Body, x: x}
	}
	return nil
}

// unreachable answers for a server that does not, as OpenAI-compatible servers say what is wrong.
func (p *Proxy) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler) // nobody is there to hear of it
	}
	p.counts.unreachable.Add(1)
	message := fmt.Sprintf("servegrid capture: the server at %s does not answer: %v", p.opt.Upstream.Host, err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_ = json.NewEncoder(w).Encode(struct { // the client may be gone
		Error openai.Error `json:"error"`
	}{openai.Error{Message: message, Type: "upstream_error"}})
}

// Counts says how much was seen and recorded so far.
func (p *Proxy) Counts() Counts { return p.counts.read() }

// Close records what has ended and closes the files. Requests that end later are not recorded, so the server that uses the proxy
// must be shut down before.
func (p *Proxy) Close() error {
	p.transport.CloseIdleConnections()
	return p.recorder.close()
}
