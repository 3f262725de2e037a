package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// leaveTime bounds how long a worker that ends tries to say so.
const leaveTime = 2 * time.Second

// firstWord is when a worker says for the second time what it does, since the first time it does nothing yet.
const firstWord = time.Second

// bePresent says again and again that a worker is there, until the context ends; then that it is not. That it cannot say so is no
// reason to stop: who is silent counts as gone after a while.
func (c *Connection) bePresent(ctx context.Context, name string, say func() wire.Presence) {
	subject := "$KV." + c.workersBucket() + "." + versionToken(thisVersion) + "." + name
	for wait := firstWord; ; wait = presenceTTL / 3 {
		text, err := json.Marshal(say())
		if err != nil {
			return
		}
		_ = c.ask(ctx, func(ctx context.Context) error {
			_, err := c.js.Publish(ctx, subject, text)
			return err
		})
		select {
		case <-ctx.Done():
			if c.nc.IsConnected() {
				timed, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
				_ = c.purge(timed, c.workersStream(), subject) // a mark in its place would count as a worker
				stop()
			}
			return
		case <-time.After(wait):
		}
	}
}

// workersThere counts the workers by the token of their version.
func (c *Connection) workersThere(ctx context.Context) (map[string]int, error) {
	prefix := "$KV." + c.workersBucket() + "."
	info, err := c.streamInfo(ctx, c.workersStream(), prefix+">")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return map[string]int{}, nil
	}
	if err != nil {
		return nil, serverError("the bucket "+c.workersBucket(), err)
	}
	there := map[string]int{}
	for subject := range info.State.Subjects {
		version, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		there[version]++
	}
	return there, nil
}

// randomToken is a name that nobody else has.
func randomToken() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
