package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// task is a point that a worker has, from its delivery to its acknowledgement.
type task struct {
	worker    *worker
	msg       *nats.Msg
	delivery  int
	published time.Time

	ctx         context.Context
	id, sweep   string
	row         results.Row
	made        map[string]string // files of the point by kind, before they are sent
	settlement  Settled
	simulatedIn time.Duration
	late        bool // it came after the worker did not want it any more
	closed      bool // it waits only for its row to be sent, or was given back
}

// run is the way of a point through a worker, up to the part that its row goes into.
func (t *task) run() {
	w := t.worker
	t.sweep = w.conn.sweepOf(t.msg.Subject)
	t.id = t.msg.Header.Get(headerPoint)
	t.ctx = w.opt.Observer.PointReceived(w.simulating, Header(t.msg.Header), t.id, t.published, t.delivery)
	if !wire.IsPointID(t.id) {
		t.end()
		return
	}
	if t.late { // before a free place
		t.giveBack(0)
		return
	}
	tooLong := time.NewTimer(mostAheadTime)
	defer tooLong.Stop()
	select {
	case w.slots <- struct{}{}:
	case <-w.drained:
		t.giveBack(0)
		return
	case <-tooLong.C: // behind points that take longer than those before them did
		w.heldUp()
		t.giveBack(0)
		return
	}
	err := t.find()
	<-w.slots
	switch {
	case err == nil:
		w.workedHere()
		t.row.Error = excerpt(t.row.Error, wire.MaxErrorText)
		t.close()
		w.parts.in <- t
	case w.simulating.Err() != nil:
		t.giveBack(0)
	default:
		w.failedHere()
		w.opt.Notice(fmt.Sprintf("point %s cannot be simulated here now: %v", t.id, err))
		t.giveBack(w.opt.retryDelay)
	}
}

// find finds the row of the point. An error says nothing about the point.
func (t *task) find() error {
	m, err := wire.DecodeMessage(t.msg.Data)
	switch {
	case err != nil:
		return t.refuse(sweep.ReasonRefused, err.Error())
	case t.id != m.ID || t.sweep != m.Sweep:
		return t.refuse(sweep.ReasonRefused, "the message is not of the point, or not of the sweep, that it is published for")
	case m.Simulator != thisVersion:
		return t.refuse(sweep.ReasonOtherVersion, fmt.Sprintf("the point is for simulator version %s, this worker has %s", m.Simulator, thisVersion))
	}
	if t.delivery == 1 {
		return t.simulate(m)
	}
	return t.tryAgain(m)
}

// tryAgain simulates a point that was delivered before, unless it was begun in vain too often.
func (t *task) tryAgain(m *wire.Message) error {
	w := t.worker
	past := w.tries.read(t.ctx, t.msg.Header.Get(jetstream.MsgIDHeader))
	if past.count() >= w.opt.MaxTries {
		t.settlement = SettledDead
		reason, message := past.verdict()
		t.row = sweep.FailedRow(t.id, m.WorkloadDigest, reason, message)
		return nil
	}
	w.tries.begin(t.ctx, past, w.name)
	err := t.simulate(m)
	switch after := context.WithoutCancel(t.ctx); {
	case err == nil:
	case w.simulating.Err() != nil:
		w.tries.withdraw(after, past)
	default:
		w.tries.failed(after, past, err)
	}
	return err
}

// refuse makes the row of a message that this worker may not run.
func (t *task) refuse(reason, message string) error {
	t.settlement = SettledRefused
	t.row = sweep.FailedRow(t.id, "", reason, message)
	return nil
}

// simulate loads what the point needs and simulates it.
func (t *task) simulate(m *wire.Message) error {
	w := t.worker
	loaded, err := w.load(t.ctx, m)
	if refused := new(refusedPoint); errors.As(err, &refused) {
		return t.refuse(sweep.ReasonRefused, refused.Error())
	}
	if err != nil {
		return err
	}
	defer loaded.release()
	job := loaded.job
	need := min(sweep.PointMemory(job.Point.Config, job.Workload), max(w.opt.Memory/2, 1))
	if err := w.memory.Acquire(w.simulating, need); err != nil {
		return err
	}
	defer w.memory.Release(need)
	defer t.removeMade()
	w.opt.Observer.PointStarted(t.ctx)
	start := time.Now()
	t.row, err = sweep.Simulate(t.ctx, job, t.simulation(m.Kept))
	t.simulatedIn = max(time.Since(start), 1)
	var row *results.Row
	if err == nil {
		row = &t.row
	}
	w.opt.Observer.PointFinished(t.ctx, row, t.simulatedIn, err)
	if err != nil {
		return err
	}
	t.settlement = SettledAcked
	return t.sendMade()
}

// simulation is the function that simulates; nil for that of a sweep.
func (t *task) simulation(kinds []string) func(context.Context, sweep.Job) (*simcore.Report, error) {
	simulate := t.worker.opt.Simulate
	if simulate == nil {
		return nil
	}
	return func(ctx context.Context, job sweep.Job) (*simcore.Report, error) {
		return simulate(ctx, job, kinds, t.write)
	}
}

// write keeps a file of the point until its row is there.
func (t *task) write(kind string, to func(io.Writer) error) error {
	f, err := t.worker.cache.CreateTemp()
	if err != nil {
		return &sweep.EnvironmentError{Err: err}
	}
	if t.made == nil {
		t.made = map[string]string{}
	}
	t.made[kind] = f.Name()
	if err := errors.Join(to(f), f.Close()); err != nil {
		return &sweep.EnvironmentError{Err: err}
	}
	return nil
}

// sendMade sends the files of a point, before its row.
func (t *task) sendMade() error {
	if t.row.Status != results.StatusOK {
		return nil
	}
	for kind, path := range t.made {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = objects{t.worker.conn}.Put(t.ctx, producedName(t.sweep, t.id, kind), f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (t *task) removeMade() {
	for _, path := range t.made {
		_ = os.Remove(path) // a cache may be emptied at any time
	}
}

// acknowledge ends a point whose row the server has.
func (t *task) acknowledge() {
	_ = t.msg.Ack() // or it comes again, which is harmless
	t.settle(t.settlement)
}

// end removes a message from the queue that names no point, so that there is nothing to make a row of.
func (t *task) end() {
	t.worker.opt.Notice("a message in the queue names no point; it is removed")
	_ = t.msg.Term() // or it comes again
	t.close()
	t.settle(SettledRefused)
}

// excerpt bounds a text that people read, in bytes.
func excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// giveBack returns a point to the queue, for another worker or a later try.
func (t *task) giveBack(delay time.Duration) {
	if delay > 0 {
		_ = t.msg.NakWithDelay(delay) // or it comes again after a while
	} else {
		_ = t.msg.Nak()
	}
	t.close()
	t.settle(SettledReturned)
}

// close makes room for another point.
func (t *task) close() {
	if !t.closed {
		t.closed = true
		t.worker.finished(t.simulatedIn)
	}
}

func (t *task) settle(how Settled) {
	t.worker.settled(t, how)
	t.worker.opt.Observer.PointSettled(t.ctx, how)
}
