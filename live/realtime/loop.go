package realtime

import (
	"math"
	"time"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// run simulates as time passes, until the deployment is closed.
func (d *Deployment) run() {
	defer close(d.done)
	for {
		next, closed, err := d.step()
		if err != nil {
			d.end(err)
		}
		if closed {
			d.closeStreams()
			return
		}
		d.clock.wait(next, d.wake)
	}
}

// step does what was asked for and simulates up to now, or as far as it may. It returns when there is something to do next.
func (d *Deployment) step() (next time.Duration, closed bool, err error) {
	d.simulating.Lock()
	defer d.simulating.Unlock()
	d.takeWaiting()
	untilMs, limitMs, closed := d.doAll()
	if closed {
		return 0, true, nil
	}
	err = d.advance(untilMs)
	d.wakeReaders()
	if next := d.online.NextMs(); next < limitMs {
		return d.realTime(next), false, err
	}
	return forever, false, err
}

// longest is how long a step simulates at most, but for what happens at one moment.
const longest = 10 * time.Millisecond

// advance simulates up to a time, or not so far where the machine is too slow for the pace: what falls due while it simulates is
// then more each time, and whoever wants to know the state, cancels or closes the deployment would wait forever.
func (d *Deployment) advance(untilMs float64) error {
	for begun := d.clock.elapsed(); ; {
		toMs := min(d.online.NextMs(), untilMs)
		if err := d.online.Advance(toMs); err != nil || toMs == untilMs || d.clock.elapsed()-begun >= longest {
			return err
		}
	}
}

// doAll does what was asked for, unless the deployment is closed. It returns until when may be simulated now, so that whatever is
// asked for after that is not before it, and until when as time passes.
func (d *Deployment) doAll() (untilMs, limitMs float64, closed bool) {
	d.mu.Lock()
	limitMs, closed = d.limitMs, d.closed
	untilMs = min(d.NowMs(), math.Nextafter(limitMs, math.Inf(-1)))
	commands := d.inbox
	d.inbox = d.spare[:0]
	d.mu.Unlock()
	if closed {
		d.waiting = append(d.waiting, commands...)
		return untilMs, limitMs, true
	}
	for _, c := range commands {
		d.do(c)
	}
	clear(commands)
	d.spare = commands
	return untilMs, limitMs, false
}

// awaitSettled does what is asked for until the end of a stream is settled.
func (d *Deployment) awaitSettled(s *Stream) {
	d.wakeReaders()
	for {
		d.mu.Lock()
		settled := s.settled
		d.mu.Unlock()
		if _, _, closed := d.doAll(); closed || settled {
			return
		}
		<-d.wake
	}
}

// do does what was asked for.
func (d *Deployment) do(c command) {
	s := c.stream
	switch {
	case !c.cancel:
		d.counts.Submitted++
		d.submit(c)
	case s.submitted:
		if d.streams[s.number] == s { // otherwise it has ended
			d.online.Cancel(c.atMs, s.number)
		}
	default:
		d.dropWaiting(s, c.atMs)
	}
}

func (d *Deployment) submit(c command) {
	number, ok := d.online.Submit(c.atMs, c.request)
	if !ok {
		d.waiting = append(d.waiting, c)
		return
	}
	c.stream.number, c.stream.submitted = number, true
	d.streams[number] = c.stream
}

// takeWaiting submits the requests for which there was no room.
func (d *Deployment) takeWaiting() {
	waiting := d.waiting
	d.waiting = nil
	for _, c := range waiting {
		d.submit(c)
	}
}

// dropWaiting ends a request for which there was no room so far.
func (d *Deployment) dropWaiting(s *Stream, atMs float64) {
	for i, c := range d.waiting {
		if c.stream != s {
			continue
		}
		d.waiting = append(d.waiting[:i], d.waiting[i+1:]...)
		record := &simcore.RequestRecord{Play: -1, Life: engine.Request{
			Input: int32(c.request.Input), Output: int32(c.request.Output), State: engine.Cancelled, ArrivalMs: c.atMs,
			RoutedMs: engine.Never, AdmittedMs: engine.Never, FirstTokenMs: engine.Never, SecondTokenMs: engine.Never, LastTokenMs: engine.Never,
		}}
		d.tell(s, &simcore.OnlineEvent{AtMs: atMs, Seat: -1, Ended: true, Life: &record.Life, Record: record})
		return
	}
}

// hear takes in what became of a request.
func (d *Deployment) hear(e simcore.OnlineEvent) {
	s := d.streams[e.Request]
	if e.Ended {
		d.streams[e.Request] = nil
	}
	d.tell(s, &e)
	if e.Ended && d.led {
		d.awaitSettled(s)
	}
}

// tell tells a stream what became of its request, but for waking its reader.
func (d *Deployment) tell(s *Stream, e *simcore.OnlineEvent) {
	d.late.due(d.realTime(e.AtMs), 1)
	d.counts.OutputTokens += int64(e.Tokens)
	if e.Tokens > 0 && !s.counted {
		s.counted = true
		d.counts.PromptTokens += int64(e.Life.Input)
		d.counts.CachedTokens += int64(e.Cached)
	}
	var record *simcore.RequestRecord
	if e.Ended {
		record = kept(e.Record)
		d.countEnd(record.Life.State)
	}
	s.add(e, record)
	if !s.touched {
		s.touched = true
		d.touched = append(d.touched, s)
	}
}

// kept is a copy of a record that stays valid.
func kept(r *simcore.RequestRecord) *simcore.RequestRecord {
	out := *r
	if r.Handoff != nil {
		handoff := *r.Handoff
		out.Handoff = &handoff
	}
	return &out
}

func (d *Deployment) countEnd(state engine.State) {
	switch state {
	case engine.Completed:
		d.counts.Completed++
	case engine.Rejected:
		d.counts.Rejected++
	case engine.Cancelled:
		d.counts.Cancelled++
	default:
		d.counts.Failed++
	}
	d.mu.Lock()
	d.underWay--
	d.mu.Unlock()
}

// wakeReaders wakes the readers of streams of which something was told, once each, however much that was.
func (d *Deployment) wakeReaders() {
	for i, s := range d.touched {
		s.touched = false
		s.wakeReader()
		d.touched[i] = nil
	}
	d.touched = d.touched[:0]
	d.late.told(d.clock.elapsed())
}

// closeStreams ends the streams of requests that are under way.
func (d *Deployment) closeStreams() {
	d.simulating.Lock()
	defer d.simulating.Unlock()
	for _, s := range d.streams {
		if s != nil {
			s.close()
		}
	}
	for _, c := range d.waiting {
		c.stream.close()
	}
}
