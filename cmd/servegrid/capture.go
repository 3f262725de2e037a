package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live/capture"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore/files"
)

// captureFlags are those of the capture command.
type captureFlags struct {
	upstream, listen, admin          string
	output, name, tokenizer, saltEnv string
	blockSize                        int
	sessionHeaders, parentHeaders    []string
	maxBody, maxMemory, rollBytes    string
	rollEvery, grace, duration       time.Duration
	tls                              tlsFlags

	opt capture.Options
}

func newCapture(st *state) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "capture --upstream URL --output DIR",
		Short: "Record the workload of an OpenAI-compatible server",
		Long: `capture stands between clients and an OpenAI-compatible server, passes everything through unchanged and at once, and writes
what the clients ask for as a Dynamo request trace, which trace, replay, sweep and live read. The trace has lengths, times and
hashes of blocks of tokens, never text; with --salt-env nobody without the salt can tell which text a hash is of.

Sessions come from headers. Requests without one go to files of their own, NAME-alone.NNNNNN.jsonl.gz. Answers count as many tokens
as the server says; where it does not say, as many as --tokenizer finds, so name the tokenizer.json of the model for exact figures.

Recording never holds requests up. What there is no memory or time for is passed through without being recorded, and counted.
Ctrl-C ends the capture: requests under way have --grace to end, and all that was recorded is written.

Exit codes: 0 everything is recorded, 1 some requests could not be, 2 it was refused, 75 an address is in use.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), st) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.upstream, "upstream", "", "URL of the server, such as http://localhost:8000; a path of it goes before the paths of requests")
	f.tls.add(fs)
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8001", "HOST:PORT for the clients; port 0 takes a free one")
	fs.StringVar(&f.admin, "admin-listen", "", "HOST:PORT for /metrics and, as POST, /tools, which takes the tool calls of agents; the default is none")
	fs.StringVarP(&f.output, "output", "o", "", "folder for the trace")
	fs.StringVar(&f.name, "name", "capture", "how the files begin: NAME.NNNNNN.jsonl.gz")
	fs.StringVar(&f.tokenizer, "tokenizer", tokens.Default, "what makes tokens of text: bytes, chars:N for N bytes a token, or the path of a tokenizer.json")
	fs.IntVar(&f.blockSize, "block-size", capture.DefaultBlockSize, "tokens that one hash stands for; best the block size of the server's KV cache")
	fs.StringVar(&f.saltEnv, "salt-env", "", "environment variable with a secret that hashes are made with; equal prompts of captures with equal salts stay equal")
	fs.StringSliceVar(&f.sessionHeaders, "session-header", capture.DefaultSessionHeaders(), "headers that name the session of a request; the first that is there counts")
	fs.StringSliceVar(&f.parentHeaders, "parent-header", capture.DefaultParentHeaders(), "headers that name the session that spawned it")
	fs.StringVar(&f.maxBody, "max-body", "64MiB", "largest request or answer that is recorded; 0 is no limit")
	fs.StringVar(&f.maxMemory, "max-memory", "1GiB", "most memory for requests and answers until they are recorded; 0 is no limit")
	fs.StringVar(&f.rollBytes, "roll-size", "256MiB", "size at which the next file begins; 0 is never")
	fs.DurationVar(&f.rollEvery, "roll-every", 0, "time after which the next file begins; 0 is never")
	fs.DurationVar(&f.duration, "duration", 0, "end after so long; 0 is never")
	fs.DurationVar(&f.grace, "grace", 10*time.Second, "how long requests under way may go on at the end")
	return cmd
}

// options checks the flags and reports everything that is wrong with them.
func (f *captureFlags) options(st *state) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	f.opt = capture.Options{
		Dir: f.output, Name: f.name, BlockSize: f.blockSize, SessionHeaders: f.sessionHeaders, ParentHeaders: f.parentHeaders,
		FlushEvery: capture.DefaultFlushEvery, RollEvery: f.rollEvery,
	}
	var err error
	if f.opt.Upstream, err = parseEndpoint(f.upstream); err != nil {
		bad("--upstream: %w", err)
	}
	if f.opt.TLS, err = f.tls.config(); err != nil {
		errs = append(errs, err)
	}
	if f.output == "" {
		bad("--output is missing; name a folder for the trace")
	}
	if f.name == "" || strings.ContainsAny(f.name, `/\`) {
		bad("--name: %q must be the beginning of file names, without slashes", f.name)
	}
	if f.opt.Tokenizer, err = tokens.Parse(f.tokenizer); err != nil {
		bad("--tokenizer: %w", err)
	}
	if f.blockSize < 1 || f.blockSize > 1<<20 {
		bad("--block-size: %d is not allowed; give 1 to %d tokens", f.blockSize, 1<<20)
	}
	if f.saltEnv != "" {
		salt := st.getenv(f.saltEnv)
		if f.opt.Salt = []byte(salt); salt == "" {
			bad("--salt-env: the environment variable %s is not set or empty", f.saltEnv)
		}
	}
	for _, size := range []struct {
		flag, text string
		to         *int64
	}{{"max-body", f.maxBody, &f.opt.MaxBody}, {"max-memory", f.maxMemory, &f.opt.MaxMemory}, {"roll-size", f.rollBytes, &f.opt.RollBytes}} {
		bytes, err := gridspec.ParseBytes(size.text)
		if err != nil {
			bad("--%s: %w", size.flag, err)
		}
		if *size.to = int64(bytes); bytes == 0 {
			*size.to = math.MaxInt64
		}
	}
	for _, d := range []struct {
		flag string
		d    time.Duration
	}{{"roll-every", f.rollEvery}, {"duration", f.duration}, {"grace", f.grace}} {
		if d.d < 0 {
			bad("--%s: %s is not allowed; give a duration of 0 or more", d.flag, d.d)
		}
	}
	return errors.Join(errs...)
}

// parseEndpoint reads the URL of a server.
func parseEndpoint(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("name the server, such as http://localhost:8000")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a server; give http://HOST:PORT or https://HOST", files.Shown(text))
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

func (f *captureFlags) run(ctx context.Context, st *state) error {
	if err := f.options(st); err != nil {
		return err
	}
	warnings := limitedWarnings{print: func(text string) { _ = printText(st.stderr, "capture: %s\n", text) }}
	f.opt.Warn = warnings.add
	p, err := capture.New(f.opt)
	if err != nil {
		return err
	}
	servers, err := f.serve(p)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	_ = printText(st.stderr, "capture: http://%s passes on to %s; the trace goes to %s\n", servers.clients.Addr(), files.Shown(f.opt.Upstream.String()), f.output)
	if servers.admin != nil {
		_ = printText(st.stderr, "capture: http://%s has /metrics and takes tool calls at /tools\n", servers.admin.Addr())
	}
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	select {
	case <-ctx.Done():
	case err = <-servers.failed:
	}
	servers.stop(f.grace)
	err = errors.Join(err, p.Close())
	c := p.Counts()
	printErr := printText(st.stdout, "%s", describeCapture(c, f.output))
	if err = errors.Join(err, printErr); err != nil || c.Dropped() > 0 {
		return &exitError{code: exitSomeFailed, err: err}
	}
	return nil
}

// captureServers are the two servers of a capture.
type captureServers struct {
	clients, admin net.Listener
	running        []*http.Server
	failed         chan error // gets why a server ended
	done           sync.WaitGroup
}

// serve starts to listen.
func (f *captureFlags) serve(p *capture.Proxy) (*captureServers, error) {
	s := &captureServers{failed: make(chan error, 2)}
	var err error
	if s.clients, err = net.Listen("tcp", f.listen); err != nil {
		return nil, fmt.Errorf("--listen: %w; choose another address, or port 0 for any that is free", err)
	}
	if f.admin != "" {
		if s.admin, err = net.Listen("tcp", f.admin); err != nil {
			_ = s.clients.Close()
			return nil, fmt.Errorf("--admin-listen: %w; choose another address, or port 0 for any that is free", err)
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(p.Collector())
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
		mux.HandleFunc("POST /tools", p.ServeTools)
		s.start(s.admin, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second})
	}
	s.start(s.clients, &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, IdleTimeout: 10 * time.Minute})
	return s, nil
}

func (s *captureServers) start(l net.Listener, server *http.Server) {
	s.running = append(s.running, server)
	s.done.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	})
}

// stop lets requests under way end for a while, then ends them.
func (s *captureServers) stop(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, server := range s.running {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
	s.done.Wait()
}

// limitedWarnings tells the first warnings and says that there are more.
type limitedWarnings struct {
	mu    sync.Mutex
	told  int
	print func(text string)
}

// maxWarnings is how many warnings are told.
const maxWarnings = 10

func (w *limitedWarnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told++; w.told <= maxWarnings {
		w.print(err.Error())
	}
	if w.told == maxWarnings {
		w.print("further warnings are counted only")
	}
}

// describeCapture says what a capture has recorded.
func describeCapture(c capture.Counts, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "recorded     %d of %s", c.Recorded, plural(int(c.Requests), "request"))
	if c.Further > 0 {
		fmt.Fprintf(&b, " and %s", plural(int(c.Further), "further prompt"))
	}
	fmt.Fprintf(&b, ", %d of them without a session", c.Alone)
	if c.Cut > 0 {
		fmt.Fprintf(&b, "; %d ended before the answer was complete", c.Cut)
	}
	b.WriteByte('\n')
	if c.Tools > 0 {
		fmt.Fprintf(&b, "tool calls   %d\n", c.Tools)
	}
	if c.Failed > 0 {
		fmt.Fprintf(&b, "failed       %d without an answer that has text, %d of them without any answer\n", c.Failed, c.Unreachable)
	}
	if c.Other > 0 {
		fmt.Fprintf(&b, "passed on    %s for anything else\n", plural(int(c.Other), "request"))
	}
	if c.Dropped() > 0 {
		fmt.Fprintf(&b, "NOT RECORDED %s: %d for want of memory, %d since the recorder could not keep up, %d too large, %d unreadable, %d since files could not be written\n",
			plural(int(c.Dropped()), "request"), c.DroppedMemory, c.DroppedQueue, c.DroppedLarge, c.DroppedUnread, c.DroppedFiles)
	}
	fmt.Fprintf(&b, "trace        %s in %s of %s\n", bytesText(c.Bytes), plural(int(c.Files), "file"), dir)
	return b.String()
}
