package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Options say what is sent, where and for how long. Target, Config and Workload are needed; the rest may be left out.
type Options struct {
	// Target gets the requests.
	Target live.Target
	// Config is a resolved configuration, of which the load and the AgentX scenario count.
	Config simcore.Config
	// Workload is what is sent, and Window the part of it.
	Workload *workload.Workload
	Window   simcore.Window
	// Prompt makes the prompt of a request among those with a salt; 0 is none. It is called from several goroutines. Without it
	// calls have no prompts.
	Prompt func(request int, salt uint64) []live.Message
	// Blocks asks for the KV blocks of calls.
	Blocks bool
	// Duration is after how much time no further request is sent; 0 is never.
	Duration time.Duration
	// Grace is how long requests under way may go on after Duration, or after the run was interrupted.
	Grace time.Duration
	// ClockRate is how many ms of the schedule pass in a real one; 0 means 1. Times of the run are the schedule's.
	ClockRate float64

	// Began hears when the clock starts, before anything is sent.
	Began func(time.Time)
	// Sent and Ended hear of each request, from one goroutine that nothing waits for but the end of the run. The record is valid
	// during the call.
	Sent, Ended func(*live.Record)
	// Unkept says that Ended hears of the records and the run has none of them, so that memory does not grow with the requests.
	Unkept bool
	// Event hears of everything that comes back, from the goroutine of its request.
	Event func(*live.Call, live.Event)
}

// check returns everything that is wrong with the options.
func (o *Options) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("replay: "+format, args...)) }
	if o.Target == nil || o.Workload == nil {
		bad("a target and a workload are needed")
	}
	if o.Duration < 0 {
		bad("the duration is %s; give 0 for no end, or more", o.Duration)
	}
	if o.Grace < 0 {
		bad("the grace is %s; give 0 or more", o.Grace)
	}
	if !(o.ClockRate >= 0) || o.ClockRate > 1e6 {
		bad("the clock rate is %v; give more than 0 and at most 1e6", o.ClockRate)
	}
	return errors.Join(errs...)
}

// Run sends a workload and returns what became of it. When ctx is done nothing more is sent, what is under way is cancelled
// after the time of grace, and the run so far is returned without an error. Errors: the options are wrong, or the load does not
// suit the workload; of the AgentX scenario also that it ended early for want of conversations, beside the run so far.
func Run(ctx context.Context, opt Options) (*live.Run, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if opt.ClockRate == 0 {
		opt.ClockRate = 1
	}
	releases, err := simcore.NewReleases(ctx, opt.Config, opt.Workload, opt.Window)
	if err != nil {
		return nil, err
	}
	s := newScheduler(opt, releases)
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.result(), releases.Err()
}
