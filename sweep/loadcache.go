package sweep

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// loadCache keeps the workloads of a search from one batch to the next, as long as they take a quarter of the memory at
// most. It is used by one goroutine at a time.
type loadCache struct {
	loader func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error)
	stdin  io.Reader
	text   []byte // what the standard input had
	limit  int64

	kept  map[loadKey]*workload.Workload
	order []loadKey // the oldest first
	held  int64
}

// loadKey is everything that loading a workload depends on.
type loadKey struct {
	spec      string
	rules     rules.Set
	blockSize int
}

func newLoadCache(opt *Options) *loadCache {
	return &loadCache{loader: opt.Load, stdin: opt.Stdin, limit: opt.MemoryLimit / 4, kept: map[loadKey]*workload.Workload{}}
}

// load loads a workload unless it is there.
func (c *loadCache) load(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
	key := loadKey{spec: specText(s), rules: src.Rules}
	if s.DependsOnEngine() {
		key.blockSize = src.EngineBlockSize
	}
	if w := c.kept[key]; w != nil {
		return w, nil
	}
	if readsStdin(&s) && c.stdin != nil {
		if c.text == nil {
			text, err := io.ReadAll(c.stdin)
			if err != nil {
				return nil, fmt.Errorf("standard input: %w", err)
			}
			c.text = text
		}
		src.Stdin = bytes.NewReader(c.text)
	}
	w, err := c.loader(ctx, s, src)
	if err == nil && w != nil {
		c.keep(key, w)
	}
	return w, err
}

// keep adds a workload and forgets the oldest ones that there is no room for.
func (c *loadCache) keep(key loadKey, w *workload.Workload) {
	size := sizeOf(w).bytes(1)
	if size > c.limit {
		return
	}
	for c.held+size > c.limit {
		oldest := c.order[0]
		c.held -= sizeOf(c.kept[oldest]).bytes(1)
		delete(c.kept, oldest)
		c.order = c.order[1:]
	}
	c.kept[key], c.order, c.held = w, append(c.order, key), c.held+size
}
