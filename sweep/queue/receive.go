package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// receiver pulls the finished points of a sweep.
type receiver struct {
	conn     *Connection
	sweep    string
	consumer jetstream.Consumer
	request  *request // the current one; nil when there is none
	// stale says that the server may think of parts as delivered that never came.
	stale bool
}

const (
	// partsAtOnce is how many parts one request asks for.
	partsAtOnce = 64
	// partAckWait is how long a part may take from its delivery to the disk.
	partAckWait = 60 * time.Second
	// consumerIdle is how long a sweep's consumer outlives its coordinator.
	consumerIdle = 10 * time.Minute
)

// open returns how many parts are there.
func (r *receiver) open(ctx context.Context) (waiting int, err error) {
	err = r.conn.restoring(ctx, func() (err error) {
		r.consumer, err = r.create(ctx)
		return err
	})
	if err != nil {
		r.consumer = nil
		return 0, serverError("the sweep's consumer "+partsConsumer(r.sweep), err)
	}
	info := r.consumer.CachedInfo()
	return int(info.NumPending) + info.NumAckPending, nil
}

func (r *receiver) create(ctx context.Context) (consumer jetstream.Consumer, err error) {
	err = r.conn.ask(ctx, func(ctx context.Context) error {
		consumer, err = r.conn.js.CreateOrUpdateConsumer(ctx, r.conn.partsStream(), jetstream.ConsumerConfig{
			Name: partsConsumer(r.sweep), Description: "A servegrid sweep that takes in its finished points",
			FilterSubject: r.conn.parts(r.sweep), AckPolicy: jetstream.AckExplicitPolicy, AckWait: partAckWait,
			MaxDeliver: -1, MaxAckPending: 10_000, InactiveThreshold: consumerIdle,
		})
		return err
	})
	return consumer, err
}

// close ends the last request and removes the consumer.
func (r *receiver) close(ctx context.Context) error {
	if r.request != nil {
		r.request.stop() // what is on its way comes again without its consumer
		for range r.request.messages {
		}
	}
	err := r.conn.askTwice(ctx, func(ctx context.Context) error {
		return r.conn.js.DeleteConsumer(ctx, r.conn.partsStream(), partsConsumer(r.sweep))
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return serverError("removing the sweep's consumer", err)
}

// messages are those of the current request, or of a new one.
func (r *receiver) messages(ctx context.Context) (<-chan *nats.Msg, error) {
	if r.request != nil {
		return r.request.messages, nil
	}
	if err := r.conn.awaitConnected(ctx); err != nil {
		return nil, err
	}
	if r.stale { // or they come again only after partAckWait
		if err := r.close(ctx); err != nil {
			return nil, err
		}
		r.consumer, r.stale = nil, false
	}
	if r.consumer == nil {
		if _, err := r.open(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if r.request, err = r.conn.request(r.conn.partsStream(), partsConsumer(r.sweep), partsAtOnce, fetchTime); err != nil {
		r.request = nil
		return nil, err
	}
	return r.request.messages, nil
}

// ended closes the current request, and says whether the next one needs a new consumer.
func (r *receiver) ended(ctx context.Context) {
	r.stale = r.request.err != nil
	r.request = nil
	if r.stale {
		pause(ctx, leastRetry)
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Receive returns the next finished points.
func (c *Coordinator) Receive(ctx context.Context) (sweep.Delivery, error) {
	if err := c.start(ctx); err != nil {
		return sweep.Delivery{}, err
	}
	for {
		messages, err := c.receiving.messages(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return sweep.Delivery{}, ctx.Err()
			}
			if refused := new(RefusedError); errors.As(err, &refused) {
				return sweep.Delivery{}, refused
			}
			pause(ctx, leastRetry)
			continue
		}
		select {
		case <-ctx.Done():
			return sweep.Delivery{}, ctx.Err()
		case <-c.ctx.Done():
			return sweep.Delivery{}, context.Cause(c.ctx)
		case row := <-c.local:
			return c.deliverHere(row), nil
		case m, ok := <-messages:
			if !ok {
				c.receiving.ended(ctx)
				continue
			}
			delivery, ok := c.delivery(ctx, m)
			if ok {
				return delivery, nil
			}
		}
	}
}

// deliverHere delivers a row that was made without a worker.
func (c *Coordinator) deliverHere(row results.Row) sweep.Delivery {
	c.arrived(row.ID)
	return sweep.Delivery{Rows: []results.Row{row}, Kept: func() {}}
}

// delivery makes one of a message. It returns false when there is nothing in it for the sweep.
func (c *Coordinator) delivery(ctx context.Context, m *nats.Msg) (sweep.Delivery, bool) {
	meta, err := m.Metadata()
	if err != nil {
		return sweep.Delivery{}, false
	}
	rows, err := wire.ReadPart(m.Data)
	if err != nil {
		c.opt.Notice(fmt.Sprintf("finished points from the queue are of no use (%v); they are simulated again", err))
	}
	if len(rows) == 0 {
		_ = m.Term() // or it comes again
		c.takenIn(meta)
		return sweep.Delivery{}, false
	}
	if err := c.fetchProduced(ctx, rows); err != nil {
		if here := new(sweep.EnvironmentError); errors.As(err, &here) {
			c.stop(here) // the disk of this machine does not get better by trying
			return sweep.Delivery{}, false
		}
		if ctx.Err() == nil {
			c.opt.Notice(fmt.Sprintf("files of finished points cannot be kept (%v); trying again", err))
		}
		_ = m.NakWithDelay(mostRetry) // or it comes again by itself
		return sweep.Delivery{}, false
	}
	duplicates := 0
	for i := range rows {
		if !c.arrived(rows[i].ID) {
			duplicates++
		}
	}
	c.opt.Observer.PartReceived(len(rows), duplicates, len(m.Data))
	return sweep.Delivery{Rows: rows, Kept: func() {
		_ = m.Ack() // or it comes again, which is harmless
		c.removeProduced(rows)
		c.takenIn(meta)
	}}, true
}

// takenIn counts the parts that earlier sessions left.
func (c *Coordinator) takenIn(meta *nats.MsgMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.taken) >= c.earlier {
		return
	}
	c.taken[meta.Sequence.Stream] = struct{}{}
	if len(c.taken) == c.earlier {
		close(c.caughtUp)
	}
}

// fetchProduced brings the files that the workers made of points.
func (c *Coordinator) fetchProduced(ctx context.Context, rows []results.Row) error {
	if len(c.opt.Kept) == 0 {
		return nil
	}
	store := objects{c.conn}
	for i := range rows {
		if rows[i].Status != results.StatusOK {
			continue
		}
		for _, kind := range c.opt.Kept {
			r, err := store.Get(ctx, producedName(c.sweep, rows[i].ID, kind))
			if errors.Is(err, jetstream.ErrObjectNotFound) {
				continue // a late copy of a point whose files are here
			}
			if err != nil {
				return err
			}
			from := &watchedReader{Reader: r}
			if err := errors.Join(c.opt.KeepFile(kind, rows[i].ID, from), r.Close()); err != nil {
				if from.err == nil {
					err = &sweep.EnvironmentError{Err: err}
				}
				return err
			}
		}
	}
	return nil
}

// watchedReader remembers how reading ended, so that errors of a reader are told from those of who reads.
type watchedReader struct {
	io.Reader
	err error
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// removeProduced removes files from the queue that are in the sweep's folder.
func (c *Coordinator) removeProduced(rows []results.Row) {
	if len(c.opt.Kept) == 0 {
		return
	}
	c.cleaning.Go(func() {
		for i := range rows {
			for _, kind := range c.opt.Kept {
				_ = objects{c.conn}.remove(c.cleanCtx, producedName(c.sweep, rows[i].ID, kind)) // the bucket's limit is the last resort
			}
		}
	})
}
