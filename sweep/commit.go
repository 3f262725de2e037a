package sweep

import (
	"os"
	"slices"
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
	replica replica
	// timed is called after each sync, unless it is nil.
	timed func(rows int, bytes int64, took time.Duration)
}

// submission is a row for the journal, or the wish to know when all before it are on the disk: at once, or when it comes to
// that.
type submission struct {
	row     *results.Row
	written chan struct{}
	kept    func()
}

// commit is what is written at a time.
type commit struct {
	rows []results.Row
	// waiting is closed afterwards, unless it is nil; kept are called.
	waiting chan struct{}
	kept    []func()
}

// replica says where else the lines of the journal go once they are synced and before they are durable: each batch as a journal
// of its own that begins with head. Without a function the disk is enough.
type replica struct {
	to   func(lines []byte) error
	head []byte
}

// send brings lines that are on the disk to where else they go.
func (r replica) send(lines []byte) error {
	if r.to == nil {
		return nil
	}
	if err := r.to(slices.Concat(r.head, lines)); err != nil {
		return &EnvironmentError{err}
	}
	return nil
}

// writeSynced appends to a file and returns once that is on the disk.
func writeSynced(file *os.File, text []byte) error {
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Sync()
}

// startCommitter takes over the file, which must be open at the end of its last line. The functions are called on
// the committer's goroutine.
func startCommitter(file *os.File, size int64, durable func([]results.Row), failed func(error), replica replica, timed func(rows int, bytes int64, took time.Duration)) *committer {
	c := &committer{
		replica: replica,
		file:    file, size: size, durable: durable, failed: failed, timed: timed,
		in:   make(chan submission, commitQueue),
		done: make(chan struct{}),
	}
	go c.loop()
	return c
}

// submit hands over a finished row.
func (c *committer) submit(row results.Row) { c.in <- submission{row: &row} }

// notify calls a function once all rows that were submitted are on the disk, unless the journal fails.
func (c *committer) notify(kept func()) { c.in <- submission{kept: kept} }

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
		next     commit
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
		open = c.collect(&next, first, timer.C)
		var err error
		if buf, err = c.write(buf[:0], next.rows); err != nil {
			c.failed(err)
			c.discard(next.waiting, open)
			return
		}
		lastSync = time.Now()
		c.durable(next.rows)
		for _, kept := range next.kept {
			kept()
		}
		if next.waiting != nil {
			close(next.waiting)
		}
	}
}

// collect gathers submissions until it is time to sync, or somebody waits for that. It returns false when there will be no
// more.
func (c *committer) collect(into *commit, next submission, due <-chan time.Time) (open bool) {
	into.rows, into.kept, into.waiting = into.rows[:0], into.kept[:0], nil
	for {
		switch {
		case next.written != nil:
			into.waiting = next.written
			return true
		case next.kept != nil:
			into.kept = append(into.kept, next.kept)
		default:
			into.rows = append(into.rows, *next.row)
		}
		select {
		case s, ok := <-c.in:
			if !ok {
				return false
			}
			next = s
		case <-due:
			return true
		}
	}
}

// write appends the rows and syncs. After an error it cuts off what it had written, so that the journal ends with
// the last row that was reported as durable.
func (c *committer) write(buf []byte, batch []results.Row) ([]byte, error) {
	if len(batch) == 0 {
		return buf, nil
	}
	var err error
	for i := range batch {
		if buf, err = appendRecord(buf, &batch[i]); err != nil {
			return buf, err
		}
	}
	start := time.Now()
	if err = writeSynced(c.file, buf); err != nil {
		// Should this fail too, the next sweep finds a torn line and cuts it off, or whole lines that it may use.
		_ = c.file.Truncate(c.size)
		return buf, err
	}
	c.size += int64(len(buf))
	if err := c.replica.send(buf); err != nil {
		return buf, err
	}
	if c.timed != nil {
		c.timed(len(batch), int64(len(buf)), time.Since(start))
	}
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
