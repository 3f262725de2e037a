package sweep

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/servegrid/servegrid/simcore/workload"
)

// loadCache keeps the workloads of a search from one batch to the next, as long as they take a quarter of the memory at
// most. It is used by one goroutine at a time.
type loadCache struct {
	loader func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error)
	stdin  io.Reader
	text   []byte // what the standard input had
	loaded *WorkloadCache
}

func newLoadCache(opt *Options) *loadCache {
	return &loadCache{loader: opt.Load, stdin: opt.Stdin, loaded: NewWorkloadCache(opt.MemoryLimit / 4)}
}

// load loads a workload unless it is there.
func (c *loadCache) load(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
	w, release, err := c.loaded.Use(ctx, workloadKey(s, src), func(ctx context.Context) (*workload.Workload, error) {
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
		return c.loader(ctx, s, src)
	})
	if err != nil {
		return nil, err
	}
	release()
	return w, nil
}
