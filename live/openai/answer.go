package openai

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/servegrid/servegrid/live"
)

// answer is what comes back of one request.
type answer struct {
	ctx    context.Context
	opt    *TargetOptions
	event  func(live.Event)
	late   *time.Timer // gives the request up
	cancel context.CancelCauseFunc
	kind   string // media type; "" when the server does not say
	idle   bool   // an event came: late counts the time between two
	ended  bool   // a chunk said that the answer is complete
}

// bounded is a reader that fails when there is too much.
type bounded struct {
	io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, errAnswerTooLarge
	}
	return n, err
}

// stream reads a stream of events to its end.
func (a *answer) stream(body io.Reader) *live.Error {
	events := NewEventReader(&bounded{body, a.opt.MaxAnswerBytes}, a.opt.MaxEventBytes)
	for {
		data, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && a.ended:
			return nil // some servers leave out the event that says so
		case isEOF(err) && !a.idle && a.kind != "" && a.kind != eventStream:
			return &live.Error{Kind: live.ErrMalformed, Message: "the answer is " + a.kind + ", no stream of events"}
		case err != nil:
			return failure(a.ctx, err)
		}
		at := time.Now()
		a.waitForNext()
		if string(data) == Done {
			a.event(live.Event{At: at, Data: data})
			return nil
		}
		if failed := a.chunk(at, data); failed != nil {
			return failed
		}
	}
}

// eventStream is the media type of a stream of events. Some servers send one under another name.
const eventStream = "text/event-stream"

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// allow gives the server time for what comes next.
func (a *answer) allow(limit time.Duration, what string) {
	a.late = time.AfterFunc(limit, func() { a.cancel(&timeout{what + limit.String()}) })
}

// waitForNext begins to count the time until the next event.
func (a *answer) waitForNext() {
	if a.idle {
		a.late.Reset(a.opt.IdleTimeout)
		return
	}
	a.idle = true
	a.late.Stop()
	a.allow(a.opt.IdleTimeout, "nothing more of the answer came for ")
}

// chunk tells of one chunk of the answer.
func (a *answer) chunk(at time.Time, data []byte) *live.Error {
	c, err := ParseChunk(data)
	e := live.Event{At: at, Data: data}
	switch {
	case err != nil:
		a.event(e)
		return &live.Error{Kind: live.ErrMalformed, Message: err.Error() + ": " + string(data)}
	case c.Failed:
		a.event(e)
		return &live.Error{Kind: live.ErrServer, Message: c.Message}
	}
	a.ended = a.ended || c.Finished
	if c.Text {
		e.Tokens = 1
	}
	if c.HasUsage && c.Usage.Completion >= 0 {
		e.Usage = &live.Usage{Input: c.Usage.Prompt, Cached: c.Usage.Cached, Output: c.Usage.Completion}
	}
	a.event(e)
	return nil
}

// whole reads an answer that is no stream, of a server that does not know them.
func (a *answer) whole(body io.Reader) *live.Error {
	data, err := io.ReadAll(&bounded{body, a.opt.MaxAnswerBytes})
	if err != nil {
		return failure(a.ctx, err)
	}
	if failed := a.chunk(time.Now(), data); failed != nil {
		return failed
	}
	if !a.ended {
		return &live.Error{Kind: live.ErrDropped, Message: "the answer does not say that it is complete"}
	}
	return nil
}

// drainTime is how long a server may take to end the stream after the answer, in favour of the next request.
const drainTime = time.Second

// drain reads to the end of the stream, after which the connection can be used again.
func (a *answer) drain(body io.Reader) {
	a.late.Reset(drainTime)
	_, _ = io.CopyN(io.Discard, body, 4<<10) // what comes after the answer is of no interest
}
