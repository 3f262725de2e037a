package sweep

import (
	"os"
	"time"

	"github.com/servegrid/servegrid/results"
)

// commitInterval is the least time between two syncs of the journal. A point waits at most this long, plus one
// sync, until it is on the disk.
const commitInterval = 200 * time.Millisecond

// commitQueue is how many finished points may wait for the journal before their workers do.
const commitQueue = 1024

// committer appends rows to the journal. One goroutine writes; rows that arrive close together share one sync.
type committer struct {
	file *os.File
	size int64
	in   chan submission
	done chan struct{}
	// durable is called with rows that are on the disk; failed, once, when the journal cannot be written.
	durable func([]results.Row)
	failed  func(error)
}

// submission is a row for the journal, or, without one, the wish to know when all before it are on the disk.
type submission struct {
	row     *results.Row
	written chan struct{}
}

// startCommitter takes over the file, which must be open at the end of its last line. The functions are called on
// the committer's goroutine.
func startCommitter(file *os.File, size int64, durable func([]results.Row), failed func(error)) *committer {
	c := &committer{
		file: file, size: size, durable: durable, failed: failed,
		in:   make(chan submission, commitQueue),
		done: make(chan struct{}),
	}
	go c.loop()
	return c
}

// submit hands over a finished row.
func (c *committer) submit(row results.Row) { c.in <- submission{row: &row} }

// flush waits until all rows that were submitted are on the disk, or the journal has failed.
func (c *committer) flush() {
	written := make(chan struct{})
	c.in <- submission{written: written}
	<-written
}

// close writes what was submitted and waits until it is on the disk. No submit may follow.
func (c *committer) close() {
	close(c.in)
	<-c.done
}

func (c *committer) loop() {
	defer close(c.done)
	var (
		batch    []results.Row
		buf      []byte
		lastSync time.Time
		timer    = time.NewTimer(0)
	)
	defer timer.Stop()
	for open := true; open; {
		first, ok := <-c.in
		if !ok {
			return
		}
		timer.Reset(commitInterval - time.Since(lastSync))
		var waiting chan struct{}
		batch, waiting, open = c.collect(batch[:0], first, timer.C)
		var err error
		if buf, err = c.write(buf[:0], batch); err != nil {
			c.failed(err)
			c.discard(waiting, open)
			return
		}
		lastSync = time.Now()
		c.durable(batch)
		if waiting != nil {
			close(waiting)
		}
	}
}

// collect adds rows until it is time to sync, or somebody waits for that. It returns false when there will be no more.
func (c *committer) collect(batch []results.Row, next submission, due <-chan time.Time) (rows []results.Row, waiting chan struct{}, open bool) {
	for {
		if next.row == nil {
			return batch, next.written, true
		}
		batch = append(batch, *next.row)
		select {
		case s, ok := <-c.in:
			if !ok {
				return batch, nil, false
			}
			next = s
		case <-due:
			return batch, nil, true
		}
	}
}

// write appends the rows and syncs. After an error it cuts off what it had written, so that the journal ends with
// the last row that was reported as durable.
func (c *committer) write(buf []byte, batch []results.Row) ([]byte, error) {
	var err error
	for i := range batch {
		if buf, err = appendRecord(buf, &batch[i]); err != nil {
			return buf, err
		}
	}
	if _, err = c.file.Write(buf); err == nil {
		err = c.file.Sync()
	}
	if err != nil {
		// Should this fail too, the next sweep finds a torn line and cuts it off, or whole lines that it may use.
		_ = c.file.Truncate(c.size)
		return buf, err
	}
	c.size += int64(len(buf))
	return buf, nil
}

// discard keeps workers from waiting for a journal that has failed.
func (c *committer) discard(waiting chan struct{}, open bool) {
	if waiting != nil {
		close(waiting)
	}
	for open {
		var s submission
		if s, open = <-c.in; s.written != nil {
			close(s.written)
		}
	}
}
