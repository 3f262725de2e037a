package replay

import (
	"sync"

	"github.com/servegrid/servegrid/live"
)

// teller tells of requests in a goroutine of its own: whoever hears may have to wait for a disk or a terminal, and the schedule
// must not.
type teller struct {
	sent, ended func(*live.Record)

	mu    sync.Mutex
	queue []told
	wake  chan struct{} // closed when nothing more comes
	done  sync.WaitGroup
}

// told is what happened to a request.
type told struct {
	record live.Record
	ended  bool
}

// startTeller starts the goroutine, which close ends. Each function may be nil.
func startTeller(sent, ended func(*live.Record)) *teller {
	t := &teller{sent: sent, ended: ended, wake: make(chan struct{}, 1)}
	t.done.Go(t.tell)
	return t
}

// add notes what happened to a request.
func (t *teller) add(record *live.Record, ended bool) {
	if ended && t.ended == nil || !ended && t.sent == nil {
		return
	}
	t.mu.Lock()
	t.queue = append(t.queue, told{*record, ended})
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// tell tells until nothing more comes.
func (t *teller) tell() {
	for more := true; more; {
		_, more = <-t.wake
		t.mu.Lock()
		batch := t.queue
		t.queue = nil
		t.mu.Unlock()
		for i := range batch {
			if batch[i].ended {
				t.ended(&batch[i].record)
			} else {
				t.sent(&batch[i].record)
			}
		}
	}
}

// close returns when everything is told.
func (t *teller) close() {
	close(t.wake)
	t.done.Wait()
}
