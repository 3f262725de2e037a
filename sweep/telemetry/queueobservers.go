package telemetry

import (
	"context"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep/queue"
)

// QueueObservers returns one observer that tells all of them, one after another, with the context that the one before
// returned.
func QueueObservers(all ...queue.Observer) queue.Observer { return queueObservers(all) }

type queueObservers []queue.Observer

func (all queueObservers) Connected() {
	for _, o := range all {
		o.Connected()
	}
}

func (all queueObservers) Disconnected(err error) {
	for _, o := range all {
		o.Disconnected(err)
	}
}

func (all queueObservers) PointPublishing(ctx context.Context, id string, h queue.Header) {
	for _, o := range all {
		o.PointPublishing(ctx, id, h)
	}
}

func (all queueObservers) PointPublished(ctx context.Context, id string, bytes int, err error) {
	for _, o := range all {
		o.PointPublished(ctx, id, bytes, err)
	}
}

func (all queueObservers) PointsOut(n int) {
	for _, o := range all {
		o.PointsOut(n)
	}
}

func (all queueObservers) PartReceived(rows, duplicates, bytes int) {
	for _, o := range all {
		o.PartReceived(rows, duplicates, bytes)
	}
}

func (all queueObservers) FileStored(bytes int64, known bool, err error) {
	for _, o := range all {
		o.FileStored(bytes, known, err)
	}
}

func (all queueObservers) QueueSeen(s queue.State) {
	for _, o := range all {
		o.QueueSeen(s)
	}
}

func (all queueObservers) WorkerStarted(slots int) {
	for _, o := range all {
		o.WorkerStarted(slots)
	}
}

func (all queueObservers) PointReceived(ctx context.Context, h queue.Header, id string, published time.Time, delivery int) context.Context {
	for _, o := range all {
		ctx = o.PointReceived(ctx, h, id, published, delivery)
	}
	return ctx
}

func (all queueObservers) PointStarted(ctx context.Context) {
	for _, o := range all {
		o.PointStarted(ctx)
	}
}

func (all queueObservers) PointFinished(ctx context.Context, row *results.Row, took time.Duration, err error) {
	for _, o := range all {
		o.PointFinished(ctx, row, took, err)
	}
}

func (all queueObservers) PartPublished(ctx context.Context, rows, bytes int, took time.Duration, err error) {
	for _, o := range all {
		o.PartPublished(ctx, rows, bytes, took, err)
	}
}

func (all queueObservers) PointSettled(ctx context.Context, how queue.Settled) {
	for _, o := range all {
		o.PointSettled(ctx, how)
	}
}

func (all queueObservers) FileFetched(ctx context.Context, bytes int64, cached bool, took time.Duration, err error) {
	for _, o := range all {
		o.FileFetched(ctx, bytes, cached, took, err)
	}
}
