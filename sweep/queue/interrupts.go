package queue

import (
	"context"
	"sync"
)

// interrupts end calls for what happens beside them, such as the loss of the connection that their answer would come on.
type interrupts struct {
	mu   sync.Mutex
	ends map[int]context.CancelCauseFunc
	next int
	// lasting is what ends calls that begin now, too; nil when nothing does.
	lasting error
}

// until returns a context that also ends when the calls are interrupted. The function that it returns must be called when the call
// is over.
func (i *interrupts) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lasting != nil {
		cancel(i.lasting)
	}
	if i.ends == nil {
		i.ends = map[int]context.CancelCauseFunc{}
	}
	id := i.next
	i.next++
	i.ends[id] = cancel
	return ctx, func() {
		i.mu.Lock()
		delete(i.ends, id)
		i.mu.Unlock()
		cancel(nil)
	}
}

// interrupt ends the calls that are under way and, where it lasts, those that begin before over.
func (i *interrupts) interrupt(err error, lasts bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if lasts {
		i.lasting = err
	}
	for _, end := range i.ends {
		end(err)
	}
}

// over says that what lasted is over.
func (i *interrupts) over() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lasting = nil
}
