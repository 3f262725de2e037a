package capture

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Why an exchange cannot be recorded.
var (
	errMemory = errors.New("no memory for a copy")
	errLarge  = errors.New("larger than what is recorded")
)

// exchange is a copy of a request and its answer. The connection to the client may read the request while that to the server
// reads the answer, so all of it is behind a lock until both are over.
type exchange struct {
	id, requestID   string
	session, parent string
	receivedAt      time.Time
	encoding        string // of the request's body
	maxBody         int64
	memory          *budget

	mu      sync.Mutex
	held    int64  // taken of memory
	request []byte // its body
	answer  answer
	ended   time.Time // when the answer was complete, or broke off
	whole   bool      // it was complete
	aborted bool      // the client went away
	failure error     // why it can't be recorded
}

func (p *Proxy) newExchange(r *http.Request) *exchange {
	x := &exchange{
		id: fmt.Sprintf("%s-%d", p.run, p.next.Add(1)), requestID: r.Header.Get("X-Request-ID"),
		session: firstHeader(r.Header, p.opt.SessionHeaders), parent: firstHeader(r.Header, p.opt.ParentHeaders),
		receivedAt: time.Now(), encoding: r.Header.Get("Content-Encoding"), maxBody: p.opt.MaxBody, memory: &p.memory,
	}
	if x.parent == x.session {
		x.parent = "" // or readers would refuse the whole trace: the session would wait for itself
	}
	return x
}

func firstHeader(h http.Header, names []string) string {
	for _, name := range names {
		if value := strings.TrimSpace(h.Get(name)); value != "" {
			return value
		}
	}
	return ""
}

// hold reserves memory for more of the copy, which has size bytes then; false means that it is given up.
func (x *exchange) hold(more, size int64) bool {
	switch {
	case x.failure != nil:
		return false
	case size > x.maxBody:
		x.giveUp(errLarge)
		return false
	case !x.memory.take(more):
		x.giveUp(errMemory)
		return false
	}
	x.held += more
	return true
}

// giveUp drops the copy.
func (x *exchange) giveUp(why error) {
	x.failure = why
	x.request, x.answer.body, x.answer.text = nil, nil, answerText{}
	x.release()
}

// release gives back what the copy took.
func (x *exchange) release() {
	x.memory.giveBack(x.held)
	x.held = 0
}

// requestTap copies the body of a request as it is sent on.
type requestTap struct {
	io.ReadCloser
	x *exchange
}

func (t *requestTap) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	x := t.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if n > 0 && x.hold(int64(n), int64(len(x.request)+n)) {
		x.request = append(x.request, b[:n]...)
	}
	return n, err
}

// begin notes what kind of answer comes.
func (x *exchange) begin(h http.Header) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer.begin(h)
}

// answerTap looks at the body of an answer as it is sent on.
type answerTap struct {
	io.ReadCloser
	x *exchange
}

func (t *answerTap) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	now := time.Now()
	x := t.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if n > 0 && x.failure == nil {
		x.answer.add(x, b[:n], now)
	}
	if err != nil && x.ended.IsZero() {
		x.ended, x.whole = now, errors.Is(err, io.EOF)
	}
	return n, err
}
