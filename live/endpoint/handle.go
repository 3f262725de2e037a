package endpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/servegrid/servegrid/live/endpoint/fault"
	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/realtime"
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

	faults fault.Plan
	// choices are the answers, all of which the deployment makes.
	choices []choice
	// Of several choices came has what comes, which readers read until stop.
	came    chan arrival
	readers sync.WaitGroup
	stop    context.CancelFunc
}

// complete answers a chat completion or a completion.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	e, refused := s.accept(w, r, chat)
	if e == nil {
		refused.write(w)
		return
	}
	w.Header().Set("X-Request-ID", e.id)
	s.metrics.count(e.faults.Kinds)
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
	switch err := e.submit(); {
	case errors.Is(err, realtime.ErrTooMany):
		badRequest("prompt", "The request is for %d answers at once: %v. Send several requests.", len(e.choices), err).write(w)
		return
	case errors.Is(err, realtime.ErrFull):
		overloaded("The server is overloaded: %v. Try again later.", err).write(w)
		return
	case err != nil:
		overloaded("The server is shutting down.").write(w)
		return
	}
	defer e.leave()
	s.metrics.open.Add(1)
	defer s.metrics.open.Add(-1)
	if e.stream {
		e.streamAnswer()
	} else {
		e.wholeAnswer()
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
	if e.model, refused = s.servedModel(&q.Request); refused != nil {
		return nil, refused
	}
	e.faults = s.opt.Faults.Plan(fault.Request{Session: e.session, Model: e.model, Path: r.URL.Path, At: time.Since(s.started)})
	if e.faults.Code == 0 {
		var plans []answerPlan
		plans, refused = s.plan(q)
		e.newChoices(plans, q.made, q.sent)
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
