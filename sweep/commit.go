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
	in   chan results.Row
	done chan struct{}
	// durable is called with rows that are on the disk; failed, once, when the journal cannot be written.
	durable func([]results.Row)
	failed  func(error)
}

// startCommitter takes over the file, which must be open at the end of its last line. The functions are called on
// the committer's goroutine.
func startCommitter(file *os.File, size int64, durable func([]results.Row), failed func(error)) *committer {
	c := &committer{
		file: file, size: size, durable: durable, failed: failed,
		in:   make(chan results.Row, commitQueue),
		done: make(chan struct{}),
	}
	go c.loop()
	return c
}

// submit hands over a finished row.
func (c *committer) submit(row results.Row) { c.in <- row }

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
		row, ok := <-c.in
		if !ok {
			return
		}
		batch = append(batch[:0], row)
		timer.Reset(commitInterval - time.Since(lastSync))
		batch, open = c.collect(batch, timer.C)
		var err error
		if buf, err = c.write(buf[:0], batch); err != nil {
			c.failed(err)
			c.discard(open)
			return
		}
		lastSync = time.Now()
		c.durable(batch)
	}
}

// collect adds rows until it is time to sync. It returns false when there will be no more.
func (c *committer) collect(batch []results.Row, due <-chan time.Time) ([]results.Row, bool) {
	for {
		select {
		case row, ok := <-c.in:
			if !ok {
				return batch, false
			}
			batch = append(batch, row)
		case <-due:
			return batch, true
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
func (c *committer) discard(open bool) {
	for open {
		_, open = <-c.in
	}
}
