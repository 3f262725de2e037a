package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue"
)

// SweepTraces traces a sweep. The sweep is one trace, with the loads of its workloads and the writes of its results. Each
// point is a trace of its own, linked to the span of the sweep, so that a large sweep can be sampled point by point and no
// trace grows with it:
//
//	point ─ simulate ─ journal                 here
//	point ─ submit ─ queue, process ─ …        through a queue; the rest is [WorkerTraces]
//
// It is a [sweep.Observer]; Queue is the [queue.Observer].
type SweepTraces struct {
	sweep.NopObserver
	tracing *Tracing
	span    trace.Span
	ctx     context.Context // holds the span

	mu   sync.Mutex
	open map[string]openPoint
}

// openPoint is a point without its row. Journal is nil until it was simulated here.
type openPoint struct{ point, journal trace.Span }

// Sweep begins the trace of a sweep.
func (t *Tracing) Sweep(ctx context.Context, name string) *SweepTraces {
	if t.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, t.parent)
	}
	s := &SweepTraces{tracing: t, open: map[string]openPoint{}}
	s.ctx, s.span = t.tracer.Start(ctx, "sweep", trace.WithAttributes(text("servegrid.sweep.name", name), attribute.String("servegrid.simulator.version", simcore.SemanticVersion)))
	return s
}

// End ends the trace. Points that have no row by now are ended as unfinished.
func (s *SweepTraces) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.open {
		delete(s.open, id)
		p.point.SetAttributes(attribute.String("servegrid.point.status", "unfinished"))
		p.end()
	}
	endWith(s.span, "sweep", err)
}

func (p openPoint) end() {
	if p.journal != nil {
		p.journal.End()
	}
	p.point.End()
}

// Load traces a loader of workloads.
func (s *SweepTraces) Load(next LoadFunc) LoadFunc {
	return func(ctx context.Context, spec workload.Spec, src workload.Source) (*workload.Workload, error) {
		ctx, span := s.tracing.tracer.Start(trace.ContextWithSpan(ctx, s.span), "load workload", trace.WithAttributes(text("servegrid.workload", spec.Label())))
		w, err := next(ctx, spec, src)
		endWith(span, sweep.ReasonWorkload, err)
		return w, err
	}
}

// WriteResults traces a writer of the results file.
func (s *SweepTraces) WriteResults(next func(string, []results.Row) error) func(string, []results.Row) error {
	if next == nil {
		return nil
	}
	return func(path string, rows []results.Row) error {
		_, span := s.tracing.tracer.Start(s.ctx, "write results", trace.WithAttributes(attribute.Int("servegrid.rows", len(rows))))
		err := next(path, rows)
		endWith(span, "write", err)
		return err
	}
}

// Simulate traces a simulator; nil is [sweep.RunJob].
func (s *SweepTraces) Simulate(next SimulateFunc) SimulateFunc {
	if next == nil {
		next = sweep.RunJob
	}
	return func(ctx context.Context, job sweep.Job) (*simcore.Report, error) {
		pointCtx, point := s.start(ctx, &job)
		if !point.IsRecording() {
			return next(ctx, job)
		}
		s.remember(job.ID, openPoint{point: point})
		simCtx, span := s.tracing.tracer.Start(pointCtx, "simulate")
		report, err := next(simCtx, job)
		endWith(span, "simulation", err)
		_, journal := s.tracing.tracer.Start(pointCtx, "journal")
		s.remember(job.ID, openPoint{point, journal})
		return report, err
	}
}

// start begins the trace of a point.
func (s *SweepTraces) start(ctx context.Context, job *sweep.Job) (context.Context, trace.Span) {
	return s.tracing.tracer.Start(ctx, "point", trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: s.span.SpanContext()}),
		trace.WithAttributes(attribute.String("servegrid.point.id", job.ID), attribute.Int("servegrid.point.index", job.Point.Index)))
}

func (s *SweepTraces) remember(id string, p openPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[id] = p
}

// Executor traces what goes through an executor.
func (s *SweepTraces) Executor(next sweep.Executor) sweep.Executor {
	return submitter{next, func(ctx context.Context, job sweep.Job) error {
		pointCtx, point := s.start(ctx, &job)
		if !point.IsRecording() {
			return next.Submit(pointCtx, job) // the worker hears that the point is not sampled
		}
		s.remember(job.ID, openPoint{point: point})
		submitCtx, span := s.tracing.tracer.Start(pointCtx, "submit", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.name", "publish"),
			attribute.String("messaging.operation.type", "send"), attribute.String("messaging.message.id", job.ID)))
		err := next.Submit(submitCtx, job)
		endWith(span, "submit", err)
		return err
	}}
}

// submitter is an executor whose points are submitted in another way.
type submitter struct {
	sweep.Executor
	submit func(context.Context, sweep.Job) error
}

func (s submitter) Submit(ctx context.Context, job sweep.Job) error { return s.submit(ctx, job) }

// Queue returns an observer that puts the trace context into messages.
func (s *SweepTraces) Queue() queue.Observer { return contextSender{} }

// contextSender sends the trace context of a point with it.
type contextSender struct{ queue.NopObserver }

func (contextSender) PointPublishing(ctx context.Context, _ string, h queue.Header) {
	propagation.TraceContext{}.Inject(ctx, carrier(h))
}

// SweepStarted says how many points there are.
func (s *SweepTraces) SweepStarted(total int) {
	s.span.SetAttributes(attribute.Int("servegrid.sweep.points", total))
}

// PointStarted does nothing: Simulate and Executor know when.
func (s *SweepTraces) PointStarted(gridspec.Point) {}

// PointFinished ends the trace of a point.
func (s *SweepTraces) PointFinished(f sweep.Finished) {
	s.mu.Lock()
	p, ok := s.open[f.Row.ID]
	delete(s.open, f.Row.ID)
	s.mu.Unlock()
	if !ok {
		return
	}
	setRow(p.point, &f.Row)
	p.point.SetAttributes(attribute.Float64("servegrid.point.seconds", f.Row.WallSeconds))
	p.end()
}

// Executor measures how long points take to be handed over.
func (c *CoordinatorMetrics) Executor(next sweep.Executor) sweep.Executor {
	return submitter{next, func(ctx context.Context, job sweep.Job) error {
		start := time.Now()
		err := next.Submit(ctx, job)
		c.submit.Observe(time.Since(start).Seconds())
		return err
	}}
}
