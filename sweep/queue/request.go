package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// request asks a consumer for messages, as ADR-13 of NATS describes it. Unlike a request of the client library, one that is ended
// before its time still brings what the server has sent by then: such a message would come to nobody until the server thinks that
// whoever asked for it is lost.
type request struct {
	// messages are what comes. The channel is closed when the request is over; err then says what was wrong.
	messages chan *nats.Msg
	err      error
	// end ends the request before its time, stop at once: what is on its way is lost then.
	end, stop func()

	nc    *nats.Conn
	in    chan *nats.Msg
	sub   *nats.Subscription
	ended chan struct{}
}

const (
	// fetchTime is how long one request for messages lasts.
	fetchTime = 20 * time.Second
	// heartbeat is how often the server says during a request that it knows of it.
	heartbeat = fetchTime / 4
	// lastStatus is how late a server may be to say that the time of a request is over.
	lastStatus = time.Second
	// lastMessages is how long nothing may come of what the server sent before it heard that a request has ended.
	lastMessages = 5 * time.Second
	// maxStatuses bounds what the server says during a request besides its messages.
	maxStatuses = 16
)

// request asks for n messages, for so long.
func (c *Connection) request(stream, consumer string, n int, lasts time.Duration) (*request, error) {
	ask := struct {
		Expires   time.Duration `json:"expires"`
		Batch     int           `json:"batch"`
		Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
	}{lasts, n, 0}
	silence := lasts + lastStatus
	if lasts >= 2*heartbeat {
		ask.Heartbeat, silence = heartbeat, 2*heartbeat
	}
	text, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	r := &request{nc: c.nc, messages: make(chan *nats.Msg, n), in: make(chan *nats.Msg, n+maxStatuses), ended: make(chan struct{})}
	lossy, done := c.losses.until(context.Background())
	if lossy.Err() != nil { // or it is back, and we hear of that in a moment
		done()
		return nil, nats.ErrDisconnected
	}
	inbox := c.nc.NewInbox()
	if r.sub, err = c.nc.ChanSubscribe(inbox, r.in); err != nil {
		done()
		return nil, err
	}
	closed := sync.OnceFunc(func() { close(r.in) })
	r.sub.SetClosedHandler(func(string) { closed() }) // twice when a subscription that is being drained is removed
	r.end = sync.OnceFunc(func() { close(r.ended) })
	r.stop = func() { _ = r.sub.Unsubscribe() } // fails when that was done
	if err := c.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+consumer, inbox, text); err != nil {
		done()
		r.stop()
		return nil, err
	}
	go func() {
		defer done()
		r.run(n, silence, lossy.Done())
	}()
	return r, nil
}

// hasEnded reports whether the request was ended before its time.
func (r *request) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// run passes on what comes, until there are n messages, the server says that the time is over, or the connection is lost.
func (r *request) run(n int, silence time.Duration, lost <-chan struct{}) {
	defer close(r.messages)
	defer r.stop()
	ended := r.ended
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for n > 0 {
		select {
		case m, ok := <-r.in:
			if !ok {
				if r.err == nil && r.nc.IsClosed() {
					r.err = nats.ErrConnectionClosed
				}
				return
			}
			quiet.Reset(silence)
			if status := statusOf(m); status != "" {
				if status == statusHeartbeat {
					continue
				}
				r.err = statusError(status, m.Header.Get("Description"))
				return
			}
			n--
			r.messages <- m
			continue
		case <-ended:
		case <-quiet.C:
			if ended == nil {
				r.stop()
				continue
			}
			r.err = jetstream.ErrNoHeartbeat
		case <-lost:
			r.err = nats.ErrDisconnected
			// The server that has the request is gone, or it is the next one already and we hear late of the last.
			if lost = nil; !r.nc.IsConnected() {
				r.stop()
				continue
			}
		}
		// The server forgets the request when nobody listens to its answers, and what it sent before that is still listened to.
		ended, silence = nil, lastMessages
		quiet.Reset(silence)
		if r.sub.Drain() != nil {
			r.stop()
		}
	}
}

// What the server says during a request.
const (
	statusHeartbeat    = "100"
	statusNoMessages   = "404"
	statusTimeOver     = "408"
	statusNoResponders = "503"
)

// statusOf is the status of a message that the server itself sent; empty for those of the stream, which it wants acknowledged.
func statusOf(m *nats.Msg) string {
	if m.Reply != "" {
		return ""
	}
	return m.Header.Get("Status")
}

// statusError is what a status means that ends a request; nil when its time was over.
func statusError(status, description string) error {
	description = strings.ToLower(description)
	switch {
	case status == statusTimeOver, status == statusNoMessages:
		return nil
	case status == statusNoResponders:
		return nats.ErrNoResponders
	case strings.Contains(description, "consumer deleted"):
		return jetstream.ErrConsumerDeleted
	case strings.Contains(description, "server shutdown"):
		return jetstream.ErrServerShutdown
	}
	return fmt.Errorf("queue: the server ended a request for messages: %s (%s)", description, status)
}

// gone reports whether a consumer is not there any more.
func gone(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound) ||
		errors.Is(err, jetstream.ErrNoHeartbeat) || errors.Is(err, nats.ErrNoResponders)
}
