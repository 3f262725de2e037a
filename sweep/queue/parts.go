package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

const (
	// partWait is how long a finished point waits for others to be sent with, and partIdle how long while none runs that could
	// follow soon. partRows is how many there are at most.
	partWait = 500 * time.Millisecond
	partIdle = 20 * time.Millisecond
	partRows = 256
	// partBytes is how much they may weigh.
	partBytes = 512 << 10
	// partsSending bounds the parts on their way.
	partsSending = 4
	// lastParts is how long a worker that ends by itself goes on to send what it finished. One that is told to end has the rest of
	// the grace period, and leastLast when that is over.
	lastParts = 30 * time.Second
	leastLast = 5 * time.Second
	// quietLast is how long that may take until people are told.
	quietLast = time.Second
)

// partSender gathers finished points, sends them and then acknowledges them.
type partSender struct {
	w       *worker
	in      chan *task
	places  chan struct{}
	sending sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc
	sent    int // parts so far, which name the next one
	full    bool
	last    time.Duration // how long to go on at the end
}

func newPartSender(w *worker) *partSender {
	s := &partSender{w: w, in: make(chan *task, maxFinished), places: make(chan struct{}, partsSending)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// finish sends what is left, for so long at most; no point may follow.
func (s *partSender) finish(most time.Duration) {
	s.last = most
	close(s.in)
}

// run gathers points by sweep until finish.
func (s *partSender) run() {
	defer s.stop()
	gathered := map[string][]*task{}
	var first time.Time // since when one waits
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case t, ok := <-s.in:
			if !ok {
				s.sendLast(gathered)
				return
			}
			if len(gathered) == 0 {
				first = time.Now()
				timer.Reset(partWait)
			}
			gathered[t.sweep] = append(gathered[t.sweep], t)
			if len(gathered[t.sweep]) >= partRows {
				s.send(gathered[t.sweep])
				delete(gathered, t.sweep)
			} else if s.w.nothingRuns() {
				timer.Reset(partIdle)
			}
		case <-timer.C:
			if left := time.Until(first.Add(partWait)); left > 0 && !s.w.nothingRuns() {
				timer.Reset(left)
			} else {
				s.flush(gathered)
			}
		}
	}
}

// sendLast sends what is left, until that takes too long.
func (s *partSender) sendLast(gathered map[string][]*task) {
	told := time.AfterFunc(quietLast, func() {
		s.w.opt.Notice(fmt.Sprintf("waiting up to %s for the server to take what is finished", s.last.Round(time.Second)))
	})
	defer told.Stop()
	defer time.AfterFunc(s.last, s.stop).Stop()
	s.flush(gathered)
	s.sending.Wait()
}

func (s *partSender) flush(gathered map[string][]*task) {
	for _, tasks := range gathered {
		s.send(tasks)
	}
	clear(gathered)
}

// nothingRuns reports whether no point is about to be finished.
func (w *worker) nothingRuns() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open == 0
}

// send sends the rows of one sweep. It waits while several parts are on their way.
func (s *partSender) send(tasks []*task) {
	rows := make([]results.Row, len(tasks))
	for i, t := range tasks {
		rows[i] = t.row
	}
	lines, err := sweep.EncodeRows(rows)
	if len(lines) > s.w.mostPart && len(tasks) > 1 {
		s.send(tasks[:len(tasks)/2])
		s.send(tasks[len(tasks)/2:])
		return
	}
	if err != nil { // no row of ours does this
		for _, t := range tasks {
			t.giveBack(0)
		}
		return
	}
	m := &nats.Msg{Subject: s.w.conn.parts(tasks[0].sweep), Data: lines, Header: nats.Header{}}
	m.Header.Set(jetstream.MsgIDHeader, s.w.name+"-"+strconv.Itoa(s.sent))
	s.sent++
	s.places <- struct{}{}
	s.sending.Go(func() {
		defer func() { <-s.places }()
		s.publish(m, tasks)
	})
}

// mostPart is how large a part may be, so that the server takes it and several have room in the stream.
func (c *Connection) mostPart(ctx context.Context) (int, error) {
	info, err := c.streamInfo(ctx, c.partsStream(), "")
	if err != nil {
		return 0, serverError("stream "+c.partsStream(), err)
	}
	most := min(partBytes, c.nc.MaxPayload()*3/4)
	if info.Config.MaxBytes > 0 {
		most = min(most, info.Config.MaxBytes/8)
	}
	return int(most), nil
}

// publish sends a part until the server has it.
func (s *partSender) publish(m *nats.Msg, tasks []*task) {
	start := time.Now()
	err := s.w.conn.publish(s.ctx, m, s.delayed)
	s.w.opt.Observer.PartPublished(tasks[0].ctx, len(tasks), len(m.Data), time.Since(start), err)
	refused := new(RefusedError)
	if errors.As(err, &refused) {
		s.w.failed(err)
	}
	for _, t := range tasks {
		if err != nil {
			t.giveBack(0)
		} else {
			t.acknowledge()
		}
	}
}

// delayed tells people once that the server has no room.
func (s *partSender) delayed(err error) {
	s.w.mu.Lock()
	told := s.full
	s.full = true
	s.w.mu.Unlock()
	if !told {
		s.w.opt.Notice("the queue takes no finished points at the moment (" + err.Error() + "); trying again, and taking no more points than there is room for")
	}
}
