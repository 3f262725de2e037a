package sweep

import (
	"sync/atomic"
	"time"

	"github.com/servegrid/servegrid/results"
)

// The results file is written again when it has changed and the last time is at least publishInterval and
// publishShare times the duration of that write ago. So it costs at most a twentieth of one core.
const (
	publishInterval = 2 * time.Second
	publishShare    = 20
)

// publisher keeps the results file up to date.
type publisher struct {
	path     string
	writeTo  func(path string, rows []results.Row) error
	snapshot func() []results.Row
	// ready is set when the rows are no less than an earlier sweep found. Until then the old file is the better one.
	ready atomic.Bool
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

func newPublisher(path string, write func(string, []results.Row) error) *publisher {
	return &publisher{
		path: path, writeTo: write,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// start begins to write the rows that snapshot returns.
func (p *publisher) start(snapshot func() []results.Row) {
	p.snapshot = snapshot
	go p.loop()
}

// changed says that there are new rows.
func (p *publisher) changed() { signal(p.wake) }

// resolved says that the rows are complete as far as earlier sweeps are concerned.
func (p *publisher) resolved() {
	p.ready.Store(true)
	p.changed()
}

func (p *publisher) loop() {
	defer close(p.done)
	var pause time.Duration // the first finished point makes the first file
	for {
		select {
		case <-p.wake:
		case <-p.stop:
			return
		}
		select {
		case <-time.After(pause):
		case <-p.stop:
			return
		}
		if !p.ready.Load() {
			continue // resolved wakes again
		}
		rows := p.snapshot()
		if len(rows) == 0 {
			continue
		}
		start := time.Now()
		// An error now is no reason to stop: the journal has the rows, and the last write reports what is wrong.
		_ = p.write(rows)
		pause = max(publishInterval, publishShare*time.Since(start))
	}
}

// finish ends the loop. The caller writes the last state itself.
func (p *publisher) finish() {
	close(p.stop)
	<-p.done
}

// write replaces the results file.
func (p *publisher) write(rows []results.Row) error {
	if p.writeTo == nil {
		return nil
	}
	return replaceFile(p.path, func(tmp string) error { return p.writeTo(tmp, rows) })
}
