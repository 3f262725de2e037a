package queue

import (
	"context"
	"time"

	"github.com/servegrid/servegrid/results"
)

// Header is what travels beside a message, such as a trace context. It is what nats.Header is.
type Header = map[string][]string

// Observer hears what happens between a coordinator and the queue, and between a worker and the queue. Methods may be called
// from several goroutines and return at once. Embed [NopObserver] to implement a part.
type Observer interface {
	CoordinatorObserver
	WorkerObserver
	// Connected says that a connection to the server is there or back; Disconnected that it is lost.
	Connected()
	Disconnected(err error)
}

// CoordinatorObserver hears what a coordinator does.
type CoordinatorObserver interface {
	// PointPublishing comes before a point is sent. It may add headers; the context is that of Submit.
	PointPublishing(ctx context.Context, id string, h Header)
	// PointPublished says that the server has a point of so many bytes, or why not.
	PointPublished(ctx context.Context, id string, bytes int, err error)
	// PointsOut says how many points are published and without a result, whenever that changes.
	PointsOut(n int)
	// PartReceived says that finished points arrived: so many rows in so many bytes, of which some were known already.
	PartReceived(rows, duplicates, bytes int)
	// FileStored says that the object store has a file of so many bytes. Known is set when it had it before.
	FileStored(bytes int64, known bool, err error)
	// QueueSeen says what the server told about a stream and its consumers, each time that the coordinator asked.
	QueueSeen(State)
}

// WorkerObserver hears what a worker does.
type WorkerObserver interface {
	// WorkerStarted says how many points a worker simulates at the same time.
	WorkerStarted(slots int)
	// PointReceived says that a point came, when it was published, and at which delivery, counted from 1. The context that
	// it returns is used for all that follows from the point, also for its simulation.
	PointReceived(ctx context.Context, h Header, id string, published time.Time, delivery int) context.Context
	// PointStarted says that the simulation of a point begins: it has a slot, and its workload is loaded.
	PointStarted(ctx context.Context)
	// PointFinished says that a point has its row, or that nothing can be said about it, and how long the simulation took.
	PointFinished(ctx context.Context, row *results.Row, took time.Duration, err error)
	// PartPublished says that the server has so many rows in so many bytes, or why not.
	PartPublished(ctx context.Context, rows, bytes int, took time.Duration, err error)
	// PointSettled is the last call for a point: its message was acknowledged, given back or given up.
	PointSettled(ctx context.Context, how Settled)
	// FileFetched says that a point's file is there: from the worker's own cache, or from the object store.
	FileFetched(ctx context.Context, bytes int64, cached bool, took time.Duration, err error)
}

// Settled says how a message of a point ended.
type Settled string

// The ways in which a message of a point ends.
const (
	// SettledAcked: the server has the row and forgets the point.
	SettledAcked Settled = "acked"
	// SettledReturned: the point goes back to the queue, for another worker or a later try.
	SettledReturned Settled = "returned"
	// SettledDead: the point was delivered too often; its row says that it failed.
	SettledDead Settled = "dead"
	// SettledRefused: the message is not one that this worker may run; its row says why.
	SettledRefused Settled = "refused"
)

// State is what a server says about a namespace.
type State struct {
	// Streams holds the streams and object stores.
	Streams []StreamState
	// Consumers holds the consumers of the workers, one for each simulator version.
	Consumers []ConsumerState
	// Workers is the number of workers that are there, by simulator version.
	Workers map[string]int
}

// StreamState is how full a stream is. A limit of 0 or less means none.
type StreamState struct {
	// Kind is points, parts, files or workers.
	Kind                  string
	Messages, Bytes       int64
	MaxMessages, MaxBytes int64
}

// ConsumerState is what waits for the workers of a simulator version.
type ConsumerState struct {
	// Version is the simulator version.
	Version string
	// Waiting counts points that no worker has; InProgress those that one has; Redelivered those among them that were
	// delivered more than once.
	Waiting, InProgress, Redelivered int64
}

// NopObserver ignores everything.
type NopObserver struct{}

// Connected does nothing.
func (NopObserver) Connected() {}

// Disconnected does nothing.
func (NopObserver) Disconnected(error) {}

// PointPublishing does nothing.
func (NopObserver) PointPublishing(context.Context, string, Header) {}

// PointPublished does nothing.
func (NopObserver) PointPublished(context.Context, string, int, error) {}

// PointsOut does nothing.
func (NopObserver) PointsOut(int) {}

// PartReceived does nothing.
func (NopObserver) PartReceived(int, int, int) {}

// FileStored does nothing.
func (NopObserver) FileStored(int64, bool, error) {}

// QueueSeen does nothing.
func (NopObserver) QueueSeen(State) {}

// WorkerStarted does nothing.
func (NopObserver) WorkerStarted(int) {}

// PointReceived returns the context.
func (NopObserver) PointReceived(ctx context.Context, _ Header, _ string, _ time.Time, _ int) context.Context {
	return ctx
}

// PointStarted does nothing.
func (NopObserver) PointStarted(context.Context) {}

// PointFinished does nothing.
func (NopObserver) PointFinished(context.Context, *results.Row, time.Duration, error) {}

// PartPublished does nothing.
func (NopObserver) PartPublished(context.Context, int, int, time.Duration, error) {}

// PointSettled does nothing.
func (NopObserver) PointSettled(context.Context, Settled) {}

// FileFetched does nothing.
func (NopObserver) FileFetched(context.Context, int64, bool, time.Duration, error) {}
