package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// tries keeps how often a point was begun by workers that did not finish it. How often it was delivered does not say that:
// workers hold points that they did not begin, and give them back when they are told to end. A first delivery is not noted, so
// that points that nothing happens to cost nothing.
type tries struct {
	conn *Connection

	mu     sync.Mutex
	bucket jetstream.KeyValue
}

// history is the notes of one message.
type history struct {
	key   string
	tries []wire.Try
}

func (t *tries) open(ctx context.Context) (jetstream.KeyValue, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bucket != nil {
		return t.bucket, nil
	}
	err := t.conn.ask(ctx, func(ctx context.Context) (err error) {
		t.bucket, err = t.conn.js.KeyValue(ctx, t.conn.triesBucket())
		return err
	})
	return t.bucket, err
}

// read returns what is known of a message, by its ID. What cannot be read is not known.
func (t *tries) read(ctx context.Context, key string) *history {
	h := &history{key: key}
	bucket, err := t.open(ctx)
	if err != nil || key == "" {
		return h
	}
	_ = t.conn.ask(ctx, func(ctx context.Context) error {
		entry, err := bucket.Get(ctx, key)
		if err == nil {
			h.tries = wire.DecodeTries(entry.Value())
		}
		return err
	})
	return h
}

// write notes the tries. A note that is lost gives the point one more.
func (t *tries) write(ctx context.Context, h *history) {
	bucket, err := t.open(ctx)
	text, jsonErr := json.Marshal(h.tries)
	if err != nil || jsonErr != nil || h.key == "" {
		return
	}
	_ = t.conn.ask(ctx, func(ctx context.Context) error {
		_, err := bucket.Put(ctx, h.key, text)
		return err
	})
}

// begin notes a try of a worker.
func (t *tries) begin(ctx context.Context, h *history, worker string) {
	host, _ := os.Hostname() // only shown to people
	h.tries = append(h.tries, wire.Try{Host: host, Worker: worker})
	t.write(ctx, h)
}

// failed notes what the try came to; withdraw that it was none, since the worker was told to end.
func (t *tries) failed(ctx context.Context, h *history, problem error) {
	h.tries[len(h.tries)-1].Problem = excerpt(problem.Error(), wire.MaxTryText)
	t.write(ctx, h)
}

func (t *tries) withdraw(ctx context.Context, h *history) {
	h.tries = h.tries[:len(h.tries)-1]
	t.write(ctx, h)
}

// count is how many tries count. Those that one worker could not make, for want of something, count once, since another worker may
// have it; where there is no other, two of them are one.
func (h *history) count() int {
	n, lacking := 0, map[string]bool{}
	for _, t := range h.tries {
		if t.Problem == "" || !lacking[t.Worker] {
			n++
		}
		lacking[t.Worker] = lacking[t.Worker] || t.Problem != ""
	}
	return max(n, len(h.tries)/2)
}

// verdict is the reason and the message of the row of a point that is given up.
func (h *history) verdict() (reason, message string) {
	last, hosts := "", []string{}
	for _, t := range h.tries {
		if t.Problem != "" {
			last = t.Problem
		}
		hosts = append(hosts, t.Host)
	}
	on := strings.Join(hosts, ", ")
	if last != "" {
		return sweep.ReasonEnvironment, fmt.Sprintf("the point was begun %d times (on %s) and could not be simulated: %s", len(h.tries), on, last)
	}
	return sweep.ReasonWorkerLost, fmt.Sprintf("the point was begun %d times (on %s) and its workers never came back: they were killed, perhaps for want of memory; run the sweep again with --retry failed once that is mended", len(h.tries), on)
}
