package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep/queue"
)

// WorkerTraces traces the points of a worker, in the traces that their coordinator began:
//
//	submit ─ queue                        from the publication to the first delivery, by the clocks of server and worker
//	submit ─ process ─ fetch file, simulate, publish part
type WorkerTraces struct {
	queue.NopObserver
	tracing *Tracing
}

// Worker traces a worker.
func (t *Tracing) Worker() *WorkerTraces { return &WorkerTraces{tracing: t} }

// processed is a point that a worker has, kept in the context of the point.
type processed struct{ process, simulate trace.Span }

type processedKey struct{}

// PointReceived begins the work on a point.
func (w *WorkerTraces) PointReceived(ctx context.Context, h queue.Header, id string, published time.Time, delivery int) context.Context {
	ctx = propagation.TraceContext{}.Extract(ctx, carrier(h))
	if delivery <= 1 && !published.IsZero() {
		_, span := w.tracing.tracer.Start(ctx, "queue", trace.WithTimestamp(published))
		span.End()
	}
	ctx, process := w.tracing.tracer.Start(ctx, "process", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.name", "process"),
		attribute.String("messaging.operation.type", "process"), attribute.String("messaging.message.id", id),
		attribute.String("servegrid.point.id", id), attribute.Int("servegrid.queue.delivery", delivery)))
	if !process.IsRecording() {
		return ctx
	}
	return context.WithValue(ctx, processedKey{}, &processed{process: process})
}

// PointStarted begins the span of the simulation.
func (w *WorkerTraces) PointStarted(ctx context.Context) {
	if p, ok := ctx.Value(processedKey{}).(*processed); ok {
		_, p.simulate = w.tracing.tracer.Start(ctx, "simulate")
	}
}

// PointFinished ends the span of the simulation.
func (w *WorkerTraces) PointFinished(ctx context.Context, row *results.Row, _ time.Duration, err error) {
	p, ok := ctx.Value(processedKey{}).(*processed)
	if !ok {
		return
	}
	if row != nil && err == nil {
		setRow(p.process, row)
	}
	if p.simulate != nil {
		endWith(p.simulate, "environment", err)
	}
}

// PartPublished makes a span of what is over.
func (w *WorkerTraces) PartPublished(ctx context.Context, rows, bytes int, took time.Duration, err error) {
	w.past(ctx, "publish part", took, "publish", err, attribute.Int("servegrid.rows", rows), attribute.Int("messaging.message.body.size", bytes))
}

// FileFetched makes a span of what is over. A file of the cache is none.
func (w *WorkerTraces) FileFetched(ctx context.Context, bytes int64, cached bool, took time.Duration, err error) {
	if !cached {
		w.past(ctx, "fetch file", took, "fetch", err, attribute.Int64("servegrid.file.size", bytes))
	}
}

func (w *WorkerTraces) past(ctx context.Context, name string, took time.Duration, kind string, err error, attributes ...attribute.KeyValue) {
	_, span := w.tracing.tracer.Start(ctx, name, trace.WithTimestamp(time.Now().Add(-took)), trace.WithAttributes(attributes...))
	endWith(span, kind, err)
}

// PointSettled ends the work on a point.
func (w *WorkerTraces) PointSettled(ctx context.Context, how queue.Settled) {
	if p, ok := ctx.Value(processedKey{}).(*processed); ok {
		p.process.SetAttributes(attribute.String("servegrid.queue.settled", string(how)))
		p.process.End()
	}
}
