package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// queued is how many exchanges wait to be recorded at most.
const queued = 8192

// recorder makes records of exchanges that are over and writes them: exchanges → describers → one writer.
type recorder struct {
	describer describer
	counts    *counters
	memory    *budget
	warn      func(error)
	shards    [2]*shards // with and without a session

	mu        sync.RWMutex // held by those who send to exchanges
	closed    bool
	exchanges chan *exchange
	events    chan *event
	describes sync.WaitGroup
	writes    sync.WaitGroup
	err       error // of the last flush; valid when writes are done
}

func newRecorder(opt Options, counts *counters, memory *budget) (*recorder, error) {
	r := &recorder{
		describer: describer{tokenizer: opt.Tokenizer, blockSize: opt.BlockSize, salt: opt.Salt},
		counts:    counts, memory: memory, warn: opt.Warn,
		exchanges: make(chan *exchange, queued), events: make(chan *event, 64),
	}
	for i, name := range []string{opt.Name, opt.Name + "-alone"} {
		s, err := newShards(opt.Dir, name, opt.RollBytes, opt.RollEvery)
		if err != nil {
			return nil, err
		}
		r.shards[i] = s
	}
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		r.describes.Go(r.describeAll)
	}
	r.writes.Go(func() { r.writeAll(opt.FlushEvery) })
	return r, nil
}

// add takes an exchange that is over, unless there are too many already. It does not wait.
func (r *recorder) add(x *exchange) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.closed {
		select {
		case r.exchanges <- x:
			return
		default:
		}
	}
	r.counts.droppedQueue.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.release()
}

// addEvent takes a record that is made already; false means that the capture has ended.
func (r *recorder) addEvent(ctx context.Context, e *event) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return false
	}
	select {
	case r.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *recorder) describeAll() {
	for x := range r.exchanges {
		for _, e := range r.describe(x) {
			r.events <- e
		}
	}
}

// describe makes the records of an exchange and counts it; none if there is nothing to record.
func (r *recorder) describe(x *exchange) []*event {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.giveUp(errors.New("recorded")) // whoever still reads the request finds nothing to add to
	switch {
	case !x.answer.begun:
		r.counts.failed.Add(1)
		return nil
	case errors.Is(x.failure, errMemory):
		r.counts.droppedMemory.Add(1)
		return nil
	case errors.Is(x.failure, errLarge):
		r.counts.droppedLarge.Add(1)
		return nil
	}
	if x.ended.IsZero() {
		x.ended = time.Now()
	}
	events, prompts, err := r.describer.describe(x)
	switch {
	case err != nil:
		r.counts.droppedUnread.Add(1)
		r.warn(fmt.Errorf("request %s is not recorded: %w", x.id, err))
		return nil
	case len(events) == 0:
		r.counts.failed.Add(1)
		return nil
	}
	r.counts.further.Add(int64(prompts - 1))
	r.counts.failed.Add(int64(prompts - len(events)))
	if !x.whole || x.aborted || x.answer.broken {
		r.counts.cut.Add(int64(len(events)))
	}
	return events
}

// writeAll writes records until there are no more.
func (r *recorder) writeAll(flushEvery time.Duration) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case e, more := <-r.events:
			if !more {
				r.flush()
				for _, s := range r.shards {
					r.err = errors.Join(r.err, s.close())
				}
				return
			}
			r.write(e)
		case <-tick.C:
			r.flush()
		}
	}
}

func (r *recorder) write(e *event) {
	s := r.shards[0]
	if e.Context == nil {
		s = r.shards[1]
	}
	line, err := json.Marshal(traceLine{Timestamp: e.TimeMs, Event: *e})
	if err != nil { // a record has nothing that JSON lacks
		r.warn(err)
		return
	}
	s.add(line, e.Request != nil)
	if s.full() {
		r.flushShard(s)
	}
}

func (r *recorder) flush() {
	r.err = nil
	for _, s := range r.shards {
		r.flushShard(s)
	}
}

// flushShard writes what waits, or counts it as lost.
func (r *recorder) flushShard(s *shards) {
	requests := s.requests
	written, opened, err := s.flush()
	r.counts.files.Add(int64(opened))
	r.counts.bytes.Add(int64(written))
	if err != nil {
		r.err = errors.Join(r.err, err)
		r.counts.droppedFile.Add(int64(requests))
		r.warn(fmt.Errorf("%d requests are lost: %w", requests, err))
		return
	}
	r.counts.recorded.Add(int64(requests))
	if s == r.shards[1] {
		r.counts.alone.Add(int64(requests))
	}
}

// close records what is queued and ends the files.
func (r *recorder) close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	close(r.exchanges)
	r.describes.Wait()
	close(r.events)
	r.writes.Wait()
	return r.err
}
