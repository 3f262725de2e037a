package endpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/servegrid/servegrid/live/endpoint/fault"
	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/simcore/engine"
)

// exchange is a request on its way to its answer.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	ctx    context.Context

	// id is the client's name of the request, session that of its session; chat says which route it came to.
	id, session, model string
	chat, stream       bool
	options            openai.StreamOptions
	created            int64

	answer answerPlan
	faults fault.Plan
	meter  meter
	// sent counts the tokens that were told, cached the prompt tokens that were in the prefix cache.
	sent, cached int
}

// complete answers a chat completion or a completion.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	e, refused := s.accept(w, r, chat)
	if e == nil {
		refused.write(w)
		return
	}
	w.Header().Set("X-Request-ID", e.id)
	e.meter.faults(e.faults.Kinds)
	if e.faults.Code != 0 {
		refused = newRefusal(e.faults.Code, "", madeFault)
		refused.retryAfter = e.faults.RetryAfter
	}
	if refused == nil && s.draining.Load() {
		refused = overloaded("The server is shutting down.")
	}
	if refused != nil {
		refused.write(w)
		return
	}
	stream, err := s.opt.Deployment.Submit(e.answer.request(e.session))
	switch {
	case errors.Is(err, realtime.ErrFull):
		overloaded("The server is overloaded: %v. Try again later.", err).write(w)
		return
	case err != nil:
		overloaded("The server is shutting down.").write(w)
		return
	}
	s.metrics.open.Add(1)
	defer s.metrics.open.Add(-1)
	stream = withFaults(stream, e.faults, s.opt.Speedup)
	if e.stream {
		e.streamAnswer(stream)
	} else {
		e.wholeAnswer(stream)
	}
}

// breakOff ends an answer that will not be complete: the client has gone, which then hears nothing, or the server ends.
func (e *exchange) breakOff(begun bool) {
	if begun {
		panic(http.ErrAbortHandler) // ends the connection, which is what net/http has this for
	}
	e.refuse(overloaded("The server is shutting down."))
}

// refuse answers with a refusal after a wait.
func (e *exchange) refuse(r *refusal) {
	e.server.allowWrite(e.w)
	r.write(e.w)
}

// accept reads a request. Without an exchange the refusal says why it is none; with one, why it cannot be served.
func (s *Server) accept(w http.ResponseWriter, r *http.Request, chat bool) (*exchange, *refusal) {
	buf := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= maxKept {
			buffers.Put(buf)
		}
	}()
	if refused := s.readBody(w, r, buf); refused != nil {
		return nil, refused
	}
	q, refused := decode(*buf, chat)
	if refused != nil {
		return nil, refused
	}
	e := &exchange{server: s, w: w, ctx: r.Context(), id: requestID(r), session: sessionOf(r), chat: chat, stream: q.Stream, created: time.Now().Unix()}
	if q.StreamOptions != nil {
		e.options = *q.StreamOptions
	}
	e.meter.metrics = s.metrics
	if e.model, refused = s.servedModel(&q.Request); refused != nil {
		return nil, refused
	}
	e.faults = s.opt.Faults.Plan(fault.Request{Session: e.session, Model: e.model, Path: r.URL.Path, At: time.Since(s.started)})
	if e.faults.Code == 0 {
		e.answer, refused = s.plan(q)
	}
	return e, refused
}

// requestID is the client's name of a request, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-ID"); id != "" && len(id) <= 256 {
		return id
	}
	return rand.Text()
}

// sessionOf is the name of the session of a request, by the headers of the clients and routers that have one; "" is none.
func sessionOf(r *http.Request) string {
	for _, name := range []string{"X-Dynamo-Session-ID", "X-Session-Affinity", "X-Correlation-ID"} {
		if session := r.Header.Get(name); session != "" {
			return session
		}
	}
	return ""
}

// next waits for what comes next of the answer, and counts it. Without progress the client has gone, or the server ends.
func (e *exchange) next(stream Stream) (realtime.Progress, bool) {
	p, err := stream.Next(e.ctx)
	e.count(&p)
	if err != nil && !p.Ended {
		e.giveUp(stream)
	}
	return p, err == nil
}

func (e *exchange) count(p *realtime.Progress) {
	if p.Tokens > 0 {
		e.cached = p.Cached
	}
	e.meter.came(p, e.answer.input)
	if p.Ended {
		e.ended(p)
	}
}

// ended tells of the end of a request.
func (e *exchange) ended(p *realtime.Progress) {
	e.meter.ended(p.Record, e.finish(int(p.Record.Life.Tokens)))
	if e.server.opt.Served != nil {
		e.server.opt.Served(Served{ID: e.id, Session: e.session, Record: *p.Record})
	}
}

// lastWord is how long the end of a request that was given up is waited for.
const lastWord = 10 * time.Second

// giveUp ends a request whose client has gone or does not get the rest, and waits for its end out of the client's way.
func (e *exchange) giveUp(stream Stream) {
	stream.Cancel()
	e.server.abandoned.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastWord)
		defer cancel()
		for {
			p, err := stream.Next(ctx)
			e.count(&p)
			if err != nil || p.Ended {
				return
			}
		}
	})
}

// finish is the reason for which an answer of so many tokens ends.
func (e *exchange) finish(tokens int) string {
	if e.answer.whole && tokens >= len(e.answer.text) {
		return "stop"
	}
	return "length"
}

// failure says why a request that has ended has no complete answer; nil if it has.
func (e *exchange) failure(p *realtime.Progress) *refusal {
	switch p.Record.Life.State {
	case engine.Completed:
		return nil
	case engine.Rejected:
		if p.Record.Life.RoutedMs < 0 && e.server.opt.Config.Router.Classes != nil {
			return overloaded("The router's queue for requests of this class is full. Try again later.")
		}
		return badRequest("messages", "The request can never be served: a worker has no room for its %d input tokens and %d output tokens.", e.answer.input, len(e.answer.text))
	case engine.Failed:
		return newRefusal(http.StatusInternalServerError, "", "The request can never be served: no decode worker has room for its %d input tokens and %d output tokens.", e.answer.input, len(e.answer.text))
	}
	return overloaded("The request was given up.")
}
