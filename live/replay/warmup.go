package replay

import (
	"context"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore/workload"
)

// warmUpAtOnce is how many requests that warm up are under way at a time.
const warmUpAtOnce = 16

// WarmUp sends the first requests of a workload, so that a server has compiled and loaded what it needs before anything is
// measured. Their prompts share nothing with those of the run. It returns how many failed; the error is the first failure, or
// that of ctx.
func WarmUp(ctx context.Context, target live.Target, w *workload.Workload, prompt func(request int, salt uint64) []live.Message, requests int) (failed int, err error) {
	var group errgroup.Group
	var mu sync.Mutex
	group.SetLimit(warmUpAtOnce)
	for r := range min(requests, w.Requests()) {
		group.Go(func() error {
			call := &live.Call{
				Number: int32(r), Request: r, ID: fmt.Sprintf("warm-up-%d", r), Input: int(w.Input[r]), Output: int(w.Output[r]),
				Prompt: func() []live.Message { return prompt(r, math.MaxUint64) },
			}
			if sendErr := target.Send(ctx, call, func(live.Event) {}); sendErr != nil {
				mu.Lock()
				defer mu.Unlock()
				if failed++; failed == 1 {
					err = sendErr
				}
			}
			return nil
		})
	}
	_ = group.Wait() // failures are counted
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return failed, err
}
