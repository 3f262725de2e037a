package scrape

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore/files"
)

// Options say what is read. URLs are needed.
type Options struct {
	// URLs are the pages with the metrics.
	URLs []*url.URL
	// Header is sent along; TLS is nil for the system's certificates.
	Header http.Header
	TLS    *tls.Config
	// Interval is the time from one reading to the next; 0 means 1 s.
	Interval time.Duration
	// ClockRate is how many ms of the run pass in a real one; 0 means 1.
	ClockRate float64
}

// maxPage bounds a page, in bytes.
const maxPage = 32 << 20

// Failures are what could not be read of one server.
type Failures struct {
	// Endpoint is the name of the page, as samples have it; Count is how often it could not be read, and Last why the last time.
	Endpoint string
	Count    int
	Last     error
}

// Scraper reads pages until it is stopped. It has connections of its own, and never more than one request to a server at a time.
type Scraper struct {
	opt       Options
	started   time.Time
	names     []string // of the pages
	transport *http.Transport
	cancel    context.CancelFunc
	done      sync.WaitGroup

	mu       sync.Mutex
	samples  []live.Sample
	failures []Failures
}

// Start begins to read; started is the time of ms 0 of the run. Stop ends it.
func Start(opt Options, started time.Time) *Scraper {
	opt.Interval = cmp.Or(opt.Interval, time.Second)
	opt.ClockRate = cmp.Or(opt.ClockRate, 1)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Scraper{opt: opt, started: started, cancel: cancel, names: make([]string, len(opt.URLs)), failures: make([]Failures, len(opt.URLs))}
	s.transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: opt.TLS, MaxResponseHeaderBytes: 1 << 18}
	for i, u := range opt.URLs {
		s.names[i] = nameOf(u, s.names[:i])
		s.failures[i].Endpoint = s.names[i]
	}
	for i := range opt.URLs {
		s.done.Go(func() { s.follow(ctx, i) })
	}
	return s
}

// nameOf is how a page is called: its URL without what may be secret, and a number where others are called the same.
func nameOf(page *url.URL, others []string) string {
	shown := files.Shown(page.String())
	name := shown
	for n := 2; slices.Contains(others, name); n++ {
		name = fmt.Sprintf("%s (%d)", shown, n)
	}
	return name
}

// Stop ends the reading, and returns the samples in order of time and the servers of which some could not be read.
func (s *Scraper) Stop() ([]live.Sample, []Failures) {
	s.cancel()
	s.done.Wait()
	s.transport.CloseIdleConnections()
	slices.SortStableFunc(s.samples, func(a, b live.Sample) int { return cmp.Compare(a.AtMs, b.AtMs) })
	return s.samples, slices.DeleteFunc(s.failures, func(f Failures) bool { return f.Count == 0 })
}

// follow reads one page again and again. A reading that takes longer than the interval makes the next one wait.
func (s *Scraper) follow(ctx context.Context, server int) {
	ticker := time.NewTicker(s.opt.Interval)
	defer ticker.Stop()
	for {
		sample, err := s.read(ctx, server)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		if err != nil {
			s.failures[server].Count++
			s.failures[server].Last = err
		} else {
			s.samples = append(s.samples, sample)
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// readTimeout bounds one reading.
const readTimeout = 10 * time.Second

// read reads a page once.
func (s *Scraper) read(ctx context.Context, server int) (live.Sample, error) {
	page := s.opt.URLs[server]
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r := &http.Request{Method: http.MethodGet, URL: page, Header: s.opt.Header.Clone()}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	if u := page.User; u != nil && r.Header.Get("Authorization") == "" {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	}
	response, err := s.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return live.Sample{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return live.Sample{}, fmt.Errorf("it answers %s", response.Status)
	}
	at := time.Now()
	sample, err := Parse(io.LimitReader(response.Body, maxPage))
	sample.AtMs = float64(at.Sub(s.started)) / float64(time.Millisecond) * s.opt.ClockRate
	sample.Endpoint = s.names[server]
	return sample, err
}
