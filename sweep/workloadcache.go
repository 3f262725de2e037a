package sweep

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// WorkloadKey is everything that loading a workload depends on.
type WorkloadKey struct {
	spec      string
	rules     rules.Set
	blockSize int
}

// WorkloadKeyOf is the key of a point's workload. It is an error when the point names no rule set that exists.
func WorkloadKeyOf(p *gridspec.Point) (WorkloadKey, error) {
	set, err := rules.For(p.Config.Compat)
	return workloadKey(p.Workload, workload.Source{Rules: set, EngineBlockSize: p.Config.BlockSize()}), err
}

// Source is what a workload of this key is loaded with; its trace is not the standard input.
func (k WorkloadKey) Source() workload.Source {
	return workload.Source{Rules: k.rules, EngineBlockSize: k.blockSize}
}

func workloadKey(s workload.Spec, src workload.Source) WorkloadKey {
	key := WorkloadKey{spec: specText(s), rules: src.Rules}
	if s.DependsOnEngine() {
		key.blockSize = src.EngineBlockSize
	}
	return key
}

// WorkloadCache keeps loaded workloads, so that each is loaded once. Those that are not in use are forgotten when they would take
// more than a limit, the longest unused first. While those in use take as much, nothing more is loaded, so that the limit is
// passed by what was being loaded at the same time and no further. It may be used by many goroutines.
type WorkloadCache struct {
	limit int64

	mu     sync.Mutex
	loaded map[WorkloadKey]*loadedWorkload // or about to be
	unused []*loadedWorkload               // the longest unused first
	bytes  int64
	// room is closed, and replaced, when there may be room for one more.
	room chan struct{}
}

// loadedWorkload is one that is there, or about to be: ready is closed then.
type loadedWorkload struct {
	key   WorkloadKey
	ready chan struct{}
	w     *workload.Workload
	err   error
	users int
	bytes int64
	// giveUp ends the loading, once nobody waits for it.
	giveUp context.CancelFunc
}

type loadFunc = func(context.Context) (*workload.Workload, error)

// NewWorkloadCache makes a cache that keeps so many bytes of unused workloads at most, as they are estimated.
func NewWorkloadCache(limit int64) *WorkloadCache {
	return &WorkloadCache{limit: limit, loaded: map[WorkloadKey]*loadedWorkload{}, room: make(chan struct{})}
}

// Use returns the workload of a key, and a function to call when it is not used any more. Load is called when it is not there,
// once for all who wait for it meanwhile, and goes on as long as one of them does. Its panics are errors. What does not load is
// tried again by the next user.
func (c *WorkloadCache) Use(ctx context.Context, key WorkloadKey, load func(context.Context) (*workload.Workload, error)) (*workload.Workload, func(), error) {
	l := c.join(ctx, key, load)
	select {
	case <-l.ready:
	case <-ctx.Done():
		c.release(l)
		return nil, nil, ctx.Err()
	}
	if l.err != nil {
		c.release(l)
		return nil, nil, l.err
	}
	return l.w, sync.OnceFunc(func() { c.release(l) }), nil
}

// join makes the caller a user of a workload, and begins to load it if nobody did.
func (c *WorkloadCache) join(ctx context.Context, key WorkloadKey, load loadFunc) *loadedWorkload {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.loaded[key]
	if !ok {
		l = &loadedWorkload{key: key, ready: make(chan struct{})}
		ctx, l.giveUp = context.WithCancel(context.WithoutCancel(ctx))
		c.loaded[key] = l
		go c.load(ctx, l, load)
	}
	if l.users == 0 {
		c.unused = slices.DeleteFunc(c.unused, func(u *loadedWorkload) bool { return u == l })
	}
	l.users++
	return l
}

// load loads a workload for those who wait.
func (c *WorkloadCache) load(ctx context.Context, l *loadedWorkload, load loadFunc) {
	defer l.giveUp()
	defer close(l.ready)
	if l.err = c.awaitRoom(ctx); l.err != nil {
		return // nobody waits
	}
	l.w, l.err = loadSafely(ctx, load)
	var size int64
	if l.err == nil {
		size = sizeOf(l.w).bytes(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.loaded[l.key] != l: // nobody waits any more
	case l.err != nil:
		c.forget(l)
	default:
		l.bytes = size
		c.bytes += size
		c.shrink(c.limit)
	}
}

func loadSafely(ctx context.Context, load loadFunc) (w *workload.Workload, err error) {
	defer func() {
		if v := recover(); v != nil { // a loader's defect
			w, err = nil, panicError(describePanic(v))
		}
	}()
	w, err = load(ctx)
	if err == nil && w == nil {
		err = errors.New("the loader returned nothing")
	}
	return w, err
}

// awaitRoom waits until the workloads in use take less than the limit.
func (c *WorkloadCache) awaitRoom(ctx context.Context) error {
	for {
		c.mu.Lock()
		c.shrink(c.limit - 1)
		free, room := c.bytes < c.limit || c.bytes == 0, c.room
		c.mu.Unlock()
		if free {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// release ends one use.
func (c *WorkloadCache) release(l *loadedWorkload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.users--
	if l.users > 0 || c.loaded[l.key] != l {
		return
	}
	select {
	case <-l.ready:
		c.unused = append(c.unused, l)
		c.shrink(c.limit)
		c.roomMade()
	default: // the last one that waited
		l.giveUp()
		c.forget(l)
	}
}

// shrink forgets unused workloads until the rest take no more than so many bytes. The caller holds the lock.
func (c *WorkloadCache) shrink(most int64) {
	for c.bytes > most && len(c.unused) > 0 {
		l := c.unused[0]
		c.unused = c.unused[1:]
		c.forget(l)
	}
}

// forget lets the next user load a workload again. The caller holds the lock.
func (c *WorkloadCache) forget(l *loadedWorkload) {
	delete(c.loaded, l.key)
	c.bytes -= l.bytes
	c.roomMade()
}

// roomMade lets those look again who wait for room. The caller holds the lock.
func (c *WorkloadCache) roomMade() {
	close(c.room)
	c.room = make(chan struct{})
}
