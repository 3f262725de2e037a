package sweep

import (
	"context"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
)

// Executor simulates the points of a sweep elsewhere, such as on workers behind a queue. [Run] and [Search] use it in
// place of their own pool. Everything else stays as it is: the journal, the results file, what is reused.
type Executor interface {
	// Submit hands a point over and returns once it is on its way. It waits while too many points are out, and the first time
	// until Receive has returned what earlier sessions of the sweep left. The workload may not be used afterwards. An error
	// ends the sweep with what is finished.
	Submit(ctx context.Context, job Job) error
	// Receive waits for points that are finished, in any order, more than once or of an earlier session of the sweep. It is
	// called by one goroutine at a time until its context is cancelled. An error ends the sweep.
	Receive(ctx context.Context) (Delivery, error)
}

// Delivery is finished points that arrived together.
type Delivery struct {
	// Rows are theirs, from this version of the simulator. What they say beside their ID, workload and figures does not count.
	Rows []results.Row
	// Kept is called once no row of the delivery is needed any more: all are on the disk or of no use.
	Kept func()
}

// startReceiving takes in what the executor delivers, until stopReceiving.
func (s *session) startReceiving() {
	var ctx context.Context
	ctx, s.stopReceiving = context.WithCancel(s.ctx)
	s.received = make(chan struct{})
	go func() {
		defer close(s.received)
		for {
			delivery, err := s.opt.Executor.Receive(ctx)
			if err == nil {
				s.take(delivery)
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.stop(&EnvironmentError{err})
				return
			}
		}
	}()
}

// take commits the rows of a delivery that are news.
func (s *session) take(d Delivery) {
	for i := range d.Rows {
		if s.ledger.wants(&d.Rows[i]) {
			s.commit.submit(d.Rows[i])
		}
	}
	s.commit.notify(d.Kept)
}

// Simulate simulates one point as [Run] does: with the job's timeout and bounds, and with an error or a panic as a row.
// It returns an error when nothing can be said about the point: the context was cancelled, or an [EnvironmentError]. Simulate
// is that of [Options]; nil means [RunJob].
func Simulate(ctx context.Context, job Job, simulate func(context.Context, Job) (*simcore.Report, error)) (results.Row, error) {
	if simulate == nil {
		simulate = RunJob
	}
	row, ok, err := simulatePoint(ctx, job, simulate)
	if err == nil && !ok {
		err = context.Cause(ctx)
	}
	return row, err
}
