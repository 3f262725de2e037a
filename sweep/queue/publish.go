package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// headerPoint is the header with the content ID of a point.
const headerPoint = "Servegrid-Point"

// send publishes a point, again and again until the server has it. It returns once the message is on its way.
func (c *Coordinator) send(ctx context.Context, id string, p outPoint, nonce string) error {
	if err := c.enter(ctx, c.sending); err != nil {
		return err
	}
	c.jobs.Go(func() {
		defer func() { <-c.sending }()
		m := &nats.Msg{Subject: c.conn.points(thisVersion, c.sweep), Data: p.data, Header: nats.Header{}}
		maps.Copy(m.Header, p.header)
		m.Header.Set(headerPoint, id)
		m.Header.Set(jetstream.MsgIDHeader, nonce+"-"+id)
		err := c.conn.publish(c.ctx, m, func(err error) { c.delayed(err) })
		c.opt.Observer.PointPublished(c.ctx, id, len(p.data), err)
		c.published(id, len(p.data), err)
	})
	return nil
}

// published notes how the publication of a point ended.
func (c *Coordinator) published(id string, size int, err error) {
	c.mu.Lock()
	c.full = c.full && err != nil
	c.mu.Unlock()
	switch {
	case err == nil, c.ctx.Err() != nil:
	case errors.Is(err, errTooLarge):
		message := fmt.Sprintf("the point is a message of %d bytes, which the server does not take; give its limits max_payload and max_msg_size more", size)
		_ = c.settleHere(c.ctx, sweep.FailedRow(id, "", sweep.ReasonNotPortable, message)) // fails at the end only
	default:
		c.stop(err)
	}
}

// delayed tells people once that the server does not take more.
func (c *Coordinator) delayed(err error) {
	c.mu.Lock()
	told := c.full
	c.full = true
	c.mu.Unlock()
	if !told {
		c.opt.Notice(fmt.Sprintf("the queue takes no points at the moment (%v); trying again", err))
	}
}

// publish sends a message until the server has it. The message needs an ID, by which the server knows one that is sent twice.
// Delayed is called when the server says that it has no room, or again and again does not answer, and people should know.
func (c *Connection) publish(ctx context.Context, m *nats.Msg, delayed func(error)) error {
	const patience = 3
	wait, silent := leastRetry, 0
	for {
		if err := c.awaitConnected(ctx); err != nil {
			return err
		}
		err := c.ask(ctx, func(ctx context.Context) error {
			lossy, done := c.losses.until(ctx) // a receipt that is lost with the connection would be waited for in vain
			defer done()
			_, err := c.js.PublishMsg(lossy, m, jetstream.WithRetryAttempts(0))
			return err
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		refused, api := new(RefusedError), new(jetstream.APIError)
		switch {
		case errors.As(err, &refused):
			return err
		case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
			return errTooLarge
		case errors.As(err, &api):
			delayed(err)
		case c.nc.IsConnected():
			if silent++; silent >= patience {
				delayed(err)
			}
		}
		if pause(ctx, wait); ctx.Err() != nil {
			return ctx.Err()
		}
		wait = min(2*wait, mostRetry)
	}
}

// watch looks after what no message tells: that there are no workers, and that the server lost points.
func (c *Coordinator) watch() {
	tick := time.NewTicker(c.opt.watchEvery)
	defer tick.Stop()
	var first <-chan time.Time
	if !c.opt.WithWorkers {
		first = time.After(min(firstLook, c.opt.quietFor))
	}
	suspected := false
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-first:
			c.missWorkersFirst()
			continue
		case <-tick.C:
		}
		if state, err := c.conn.Seen(c.ctx); err == nil {
			c.opt.Observer.QueueSeen(state)
			c.missWorkers(state, c.opt.quietFor)
		}
		// Once is not enough: a part may be on its way between the two streams as they are looked at.
		lost := c.lostPoints()
		if lost && suspected {
			c.sendAgain()
		}
		suspected = lost && !suspected
	}
}

// missWorkersFirst tells people at the start when no worker is there yet, before they wonder.
func (c *Coordinator) missWorkersFirst() {
	if there, err := c.conn.workersThere(c.ctx); err == nil {
		c.missWorkers(State{Workers: there}, 0)
	}
}

// missWorkers tells people when nobody works on the points and there was no news for so long.
func (c *Coordinator) missWorkers(state State, quiet time.Duration) {
	now := time.Now()
	c.mu.Lock()
	waiting := len(c.out)
	tell := waiting > 0 && now.Sub(c.news) >= quiet && state.Workers[versionToken(thisVersion)] == 0 && now.Sub(c.told) >= 12*c.opt.quietFor
	if tell {
		c.told = now
	}
	c.mu.Unlock()
	if tell {
		c.opt.Notice(fmt.Sprintf("%d points wait in the queue and no worker of simulator version %s is there; start some with: servegrid worker --queue %s",
			waiting, thisVersion, c.conn.url))
	}
}

// lostPoints reports whether points are out that the queue does not have, neither as points nor as finished ones.
func (c *Coordinator) lostPoints() bool {
	c.mu.Lock()
	out := len(c.out)
	c.mu.Unlock()
	if out == 0 || len(c.sending) > 0 {
		return false
	}
	points, err := c.waiting(c.conn.pointsStream(), c.conn.points(thisVersion, c.sweep))
	if err != nil || points > 0 {
		return false
	}
	parts, err := c.waiting(c.conn.partsStream(), c.conn.parts(c.sweep))
	return err == nil && parts == 0
}

// waiting is how many messages a subject has in a stream, which is made again, empty, if it is gone.
func (c *Coordinator) waiting(stream, subject string) (uint64, error) {
	n, err := c.conn.waiting(c.ctx, stream, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, c.conn.restore(c.ctx)
	}
	return n, err
}

// sendAgain publishes the points that are out once more. A server that lost its disk, or that was told to forget, has none of
// them.
func (c *Coordinator) sendAgain() {
	c.mu.Lock()
	again := maps.Clone(c.out)
	c.mu.Unlock()
	c.opt.Notice(fmt.Sprintf("the queue lost points of this sweep; %d are published again", len(again)))
	nonce := randomToken()
	c.files.Forget() // the store may have lost them too
	for _, id := range slices.Sorted(maps.Keys(again)) {
		if !c.isOut(id) {
			continue
		}
		if m, err := wire.DecodeMessage(again[id].data); err == nil {
			if err := c.files.Upload(c.ctx, objects{c.conn}, m.Files); err != nil {
				c.opt.Notice(err.Error())
				return // the next look finds the points lost again
			}
		}
		if c.send(c.ctx, id, again[id], nonce) != nil {
			return
		}
	}
}
