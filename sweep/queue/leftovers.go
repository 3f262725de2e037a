package queue

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// A worker that was thought lost may send what it found after its sweep has all its rows and is gone. Nobody comes for that, so a
// sweep that ends leaves a note, and the next coordinator in the namespace removes what arrived since. The notes are in the bucket of
// the tries and go by themselves after [streamAge], as everything does that nobody comes for.

// maxLeftovers bounds the sweeps that are looked at, and removed, at a time.
const maxLeftovers = 200

func endedKey(sweep string) string { return "ended." + sweep }

// noteEnd notes that nobody will come for the parts of a sweep any more. Without the note they stay until they are too old.
func (c *Connection) noteEnd(ctx context.Context, sweep string) error {
	err := c.askTwice(ctx, func(ctx context.Context) error {
		bucket, err := c.js.KeyValue(ctx, c.triesBucket())
		if err == nil {
			_, err = bucket.Put(ctx, endedKey(sweep), nil)
		}
		return err
	})
	if errors.Is(err, jetstream.ErrBucketNotFound) { // the server lost it
		return nil
	}
	return serverError("noting the end of the sweep", err)
}

// removeLeftovers removes what came for sweeps that have ended. What cannot be removed now is left for the next time.
func (c *Connection) removeLeftovers(ctx context.Context) {
	subjects, err := c.subjects(ctx, c.partsStream(), c.allParts())
	if err != nil || len(subjects) == 0 {
		return
	}
	var bucket jetstream.KeyValue
	if err := c.ask(ctx, func(ctx context.Context) (err error) {
		bucket, err = c.js.KeyValue(ctx, c.triesBucket())
		return err
	}); err != nil {
		return
	}
	looked := 0
	for subject := range subjects {
		sweep := strings.TrimPrefix(subject, c.parts(""))
		if looked++; looked > maxLeftovers || wire.CheckToken("sweep", sweep) != nil {
			continue
		}
		err := c.ask(ctx, func(ctx context.Context) error {
			_, err := bucket.Get(ctx, endedKey(sweep))
			return err
		})
		if err == nil {
			_ = c.purge(ctx, c.partsStream(), subject)
			c.removeMade(ctx, sweep)
		}
	}
}

// removeMade removes the files that workers made of the points of a sweep.
func (c *Connection) removeMade(ctx context.Context, sweep string) {
	store, err := objects{c}.store(ctx)
	if err != nil {
		return
	}
	var there []*jetstream.ObjectInfo
	err = c.ask(ctx, func(ctx context.Context) (err error) {
		there, err = store.List(ctx)
		return err
	})
	if err != nil {
		return // also when there are none
	}
	for _, object := range there {
		if strings.HasPrefix(object.Name, producedBy(sweep)) {
			_ = objects{c}.remove(ctx, object.Name) // the bucket's limit is the last resort
		}
	}
}

// purge removes the messages of a subject.
func (c *Connection) purge(ctx context.Context, stream, subject string) error {
	return serverError("withdrawing "+subject, c.askTwice(ctx, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		return s.Purge(ctx, jetstream.WithPurgeSubject(subject))
	}))
}
