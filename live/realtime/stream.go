package realtime

import (
	"context"
	"sync"

	"github.com/servegrid/servegrid/simcore"
)

// Stream is one request under way, for one reader.
type Stream struct {
	d     *Deployment
	ready chan struct{} // has an element when there may be something for the reader

	mu     sync.Mutex // guards what follows
	come   Progress   // since the last call of Next
	any    bool       // there is something in it
	over   bool       // nothing more comes
	gaveUp bool

	settled bool // guarded by the deployment's mu

	// For the loop alone.
	number    int32
	submitted bool
	touched   bool
	counted   bool // its prompt
}

// Progress is what has come of a request since the last call of Next.
type Progress struct {
	// Tokens counts output tokens, Cached the prompt tokens that were in the prefix cache, as soon as there are any tokens.
	Tokens, Cached int
	// Seat is that of the worker that made the tokens, or -1 as long as there is none; see [simcore.OnlineWorker].
	Seat int
	// FirstMs and AtMs are the simulated times of the first and the last of the tokens, or of the end if there are none.
	FirstMs, AtMs float64
	// Ended says that nothing more comes, since EndMs. Record is then what became of the request, its Request and Session without meaning.
	Ended  bool
	EndMs  float64
	Record *simcore.RequestRecord
}

// Next blocks until something has come since the last call, or ctx is done, and returns it. The error is that of ctx, or
// ErrClosed, which it also is after the end was returned.
func (s *Stream) Next(ctx context.Context) (Progress, error) {
	for {
		s.mu.Lock()
		come, found, over := s.come, s.any, s.over
		s.come, s.any = Progress{}, false
		s.mu.Unlock()
		switch {
		case found:
			return come, nil
		case over:
			return Progress{}, ErrClosed
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Progress{}, ctx.Err()
		}
	}
}

// Cancel gives the request up now. Next still tells its end.
func (s *Stream) Cancel() { s.CancelAt(s.d.NowMs()) }

// CancelAt gives the request up at a simulated time, or when the last thing happened that has been simulated if that is later.
func (s *Stream) CancelAt(atMs float64) {
	s.mu.Lock()
	again := s.gaveUp || s.over
	s.gaveUp = true
	s.mu.Unlock()
	if again {
		return
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if !s.d.closed {
		s.d.send(command{stream: s, atMs: atMs, cancel: true})
	}
}

// Settled lets a deployment with [Options.Led] go on after the end of the request.
func (s *Stream) Settled() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.settled = true
	s.d.notify()
}

// add adds what has come.
func (s *Stream) add(e *simcore.OnlineEvent, record *simcore.RequestRecord) {
	s.mu.Lock()
	p := &s.come
	if e.Tokens > 0 || !s.any {
		if p.Tokens == 0 {
			p.FirstMs = e.AtMs
		}
		p.AtMs = e.AtMs
	}
	p.Tokens += int(e.Tokens)
	p.Cached, p.Seat = int(e.Cached), e.Seat
	p.Ended, p.EndMs, p.Record = e.Ended, e.AtMs, record
	s.any, s.over = true, e.Ended
	s.mu.Unlock()
}

// close ends a stream whose request has not ended.
func (s *Stream) close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.wakeReader()
}

func (s *Stream) wakeReader() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
