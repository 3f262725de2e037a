package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/servegrid/servegrid/live/endpoint/fault"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// Options are what a server is made of. Deployment, Config and Tokenizer are needed; the rest may be left out.
type Options struct {
	// Deployment serves the requests, and Config is what it simulates, resolved.
	Deployment Deployment
	Config     simcore.Config
	// Speedup is how many simulated ms pass in a real one; 0 means 1. Metrics are in real time, as clients see it.
	Speedup float64
	// Tokenizer turns prompts into tokens and makes the text of answers.
	Tokenizer tokens.Tokenizer
	// Models are the names that it serves, the first of which is that of the metrics; none means [DefaultModel]. Requests for
	// other ones are served too, unless StrictModel is set.
	Models      []string
	StrictModel bool
	// APIKey is what clients must send as their bearer key; empty lets everybody in.
	APIKey string
	// OutputTokens says how long answers are of which the request says nothing.
	OutputTokens Lengths
	// ReasoningShare is the share of the tokens of an answer to a chat that are the model's thoughts, from 0 to 1.
	ReasoningShare float64
	// Seed makes other answers to the same prompts.
	Seed uint64
	// Faults says what goes wrong; nil is nothing.
	Faults *fault.Injector
	// MaxBodyBytes bounds the body of a request; 0 means 64 MiB. MaxConnections bounds the connections; further ones wait to be
	// accepted; 0 means 65536.
	MaxBodyBytes   int64
	MaxConnections int
	// ReadTimeout is how long a client may take for the head of a request and then for its body; 0 means 60 s.
	ReadTimeout time.Duration
	// WriteTimeout is how long a client may take to read what was sent until it counts as gone; 0 means 30 s.
	WriteTimeout time.Duration
	// Planner is what changes the number of workers; nil is nothing.
	Planner Planner
	// Served, when set, hears of each request that the deployment has served, rejected or given up, from several goroutines.
	Served func(Served)
	// ErrorLog hears of connections that cannot be accepted and of defects; nil is nobody.
	ErrorLog *log.Logger
	// Version is that of the program.
	Version string
}

// DefaultModel is the name that is served where none is given.
const DefaultModel = "servegrid"

// Served is what became of a request.
type Served struct {
	// ID is the X-Request-ID of the client, or one that was made. Session is the name of its session; it may be empty.
	ID, Session string
	// Record is its simulated life. Its Request, Session and Turn mean nothing.
	Record simcore.RequestRecord
}

// Server answers requests over HTTP.
type Server struct {
	opt     Options
	limit   int // of prompt and answer together, in tokens
	block   int
	started time.Time
	// reasoning is what answers call the model's thoughts, as the simulated engine does.
	reasoning string
	metrics   *metrics
	handler   http.Handler

	// life ends when requests that are under way are given up.
	life context.Context
	stop context.CancelFunc
	// draining says that no request is taken any more.
	draining atomic.Bool
	// abandoned counts requests whose client is gone and that have not ended in the deployment yet.
	abandoned sync.WaitGroup
}

// New returns a server.
func New(opt Options) (*Server, error) {
	if opt.Deployment == nil || opt.Tokenizer == nil {
		return nil, errors.New("endpoint: a server needs a deployment and a tokenizer")
	}
	if len(opt.Models) == 0 {
		opt.Models = []string{DefaultModel}
	}
	if opt.Speedup == 0 {
		opt.Speedup = 1
	}
	if opt.OutputTokens == (Lengths{}) {
		opt.OutputTokens = DefaultLengths()
	}
	if opt.MaxBodyBytes == 0 {
		opt.MaxBodyBytes = 64 << 20
	}
	if opt.MaxConnections == 0 {
		opt.MaxConnections = 65536
	}
	if opt.ReadTimeout == 0 {
		opt.ReadTimeout = time.Minute
	}
	if opt.WriteTimeout == 0 {
		opt.WriteTimeout = 30 * time.Second
	}
	if opt.ErrorLog == nil {
		opt.ErrorLog = log.New(io.Discard, "", 0)
	}
	s := &Server{opt: opt, limit: contextLimit(opt.Config), block: opt.Config.BlockSize(), started: time.Now()}
	if s.reasoning = "reasoning"; opt.Config.Stages()[0].Engine.Type != engine.TypeVLLM {
		s.reasoning = "reasoning_content"
	}
	if s.block < 1 {
		return nil, fmt.Errorf("endpoint: the configuration has blocks of %d tokens; resolve it first", s.block)
	}
	s.life, s.stop = context.WithCancel(context.Background())
	s.metrics = newMetrics(s)
	s.handler = s.routes()
	return s, nil
}

// maxContext bounds what one request may ask for, far above the context of any model.
const maxContext = 1 << 24

// contextLimit is how many tokens a prompt and its answer may have together: the context length, and no more than the smallest
// KV pool holds.
func contextLimit(c simcore.Config) int {
	limit := maxContext
	least := func(n int) {
		if n > 0 {
			limit = min(limit, n)
		}
	}
	for _, pool := range c.Stages() {
		least(pool.Engine.ContextLength)
		least(pool.Engine.NumGPUBlocks * pool.Engine.BlockSize)
	}
	return limit
}

// Handler answers the requests of a server of the caller's own.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve accepts connections until ctx is done. Requests that are under way may then go on for the time of grace; those that still
// are under way afterwards are cut off. It returns how many these were, and nil once the listener and all connections are closed.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) (cut int, err error) {
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: s.opt.ReadTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: s.opt.ErrorLog,
		BaseContext: func(net.Listener) context.Context { return s.life },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(listener, s.opt.MaxConnections)) }()
	select {
	case err := <-ended:
		s.Close()
		return 0, fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	patient, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := server.Shutdown(patient); err != nil {
		cut = int(s.metrics.open.Load())
		s.stop()
		brief, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if server.Shutdown(brief) != nil { // a client that does not read
			_ = server.Close()
		}
	}
	<-ended
	s.Close()
	return cut, nil
}

// Close gives up the requests that are under way and waits until the deployment has heard so. It does not close the deployment.
func (s *Server) Close() {
	s.draining.Store(true)
	s.stop()
	s.abandoned.Wait()
}
