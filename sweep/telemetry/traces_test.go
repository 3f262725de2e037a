package telemetry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue"
)

func noEnv(string) string { return "" }

// inMemory traces into memory.
func inMemory(t testing.TB, getenv func(string) string) (*Tracing, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	tracing, err := newTracing(context.Background(), sdktrace.NewSimpleSpanProcessor(exporter), getenv, "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracing.Close() })
	return tracing, exporter
}

// spans are those of an exporter by name.
func spans(e *tracetest.InMemoryExporter) map[string][]tracetest.SpanStub {
	out := map[string][]tracetest.SpanStub{}
	for _, s := range e.GetSpans() {
		out[s.Name] = append(out[s.Name], s)
	}
	return out
}

func attributeOf(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// tracedPoints are the points of a small sweep, one of which fails.
func tracedPoints(t testing.TB) []gridspec.Point {
	t.Helper()
	spec, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Format: gridspec.YAML, Data: []byte(`
name: demo
workload: {synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}}
grid: {deployment.workers: [1, 2, 3]}
`)})
	if err != nil {
		t.Fatal(err)
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return points
}

func TestTracesOfLocalSweep(t *testing.T) {
	tracing, exporter := inMemory(t, noEnv)
	s := tracing.Sweep(context.Background(), "demo")
	opt := sweep.Options{Dir: t.TempDir(), Observer: s, Jobs: 2}
	opt.Load = s.Load(func(ctx context.Context, spec workload.Spec, src workload.Source) (*workload.Workload, error) {
		return spec.Load(ctx, src)
	})
	opt.WriteResults = s.WriteResults(func(string, []results.Row) error { return errors.New("https://me:hidden@host: full") })
	opt.Simulate = s.Simulate(func(ctx context.Context, job sweep.Job) (*simcore.Report, error) {
		if job.Point.Index == 2 {
			return nil, errors.New("token=hidden is wrong")
		}
		return sweep.RunJob(ctx, job)
	})
	out, err := sweep.Run(context.Background(), tracedPoints(t), opt)
	if err == nil || out.Counts.OK != 2 || out.Counts.Failed != 1 {
		t.Fatalf("%+v %v", out.Counts, err)
	}
	s.End(err)

	by := spans(exporter)
	for name, n := range map[string]int{"sweep": 1, "load workload": 1, "point": 3, "simulate": 3, "journal": 3} {
		if len(by[name]) != n {
			t.Fatalf("%d spans %q, want %d", len(by[name]), name, n)
		}
	}
	root := by["sweep"][0]
	if attributeOf(root, "servegrid.sweep.points") != "3" || attributeOf(root, "servegrid.sweep.name") != "demo" || root.Status.Code != codes.Error {
		t.Errorf("%+v", root)
	}
	if by["load workload"][0].Parent.SpanID() != root.SpanContext.SpanID() || by["write results"][0].Parent.SpanID() != root.SpanContext.SpanID() {
		t.Error("workload and results are not below the sweep")
	}
	points := map[string]tracetest.SpanStub{}
	for _, p := range by["point"] {
		points[p.SpanContext.SpanID().String()] = p
		if p.Parent.IsValid() || len(p.Links) != 1 || p.Links[0].SpanContext.SpanID() != root.SpanContext.SpanID() {
			t.Error("a point is a trace of its own and has a link to the sweep")
		}
		failed := attributeOf(p, "servegrid.point.index") == "2"
		if failed != (p.Status.Code == codes.Error) || failed != (attributeOf(p, "error.type") == sweep.ReasonSimulation) {
			t.Errorf("point %s: %v", attributeOf(p, "servegrid.point.index"), p.Status)
		}
	}
	for _, name := range []string{"simulate", "journal"} {
		for _, child := range by[name] {
			p, ok := points[child.Parent.SpanID().String()]
			if !ok || child.StartTime.Before(p.StartTime) || child.EndTime.After(p.EndTime) {
				t.Errorf("%s is not within its point", name)
			}
		}
	}
	noSecrets(t, exporter)
}

// noSecrets requires that no span holds what tests call hidden.
func noSecrets(t *testing.T, e *tracetest.InMemoryExporter) {
	t.Helper()
	for _, s := range e.GetSpans() {
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "hidden") {
				t.Errorf("%s: %s=%s", s.Name, a.Key, a.Value.String())
			}
		}
		for _, event := range s.Events {
			for _, a := range event.Attributes {
				if strings.Contains(a.Value.String(), "hidden") {
					t.Errorf("%s: %s=%s", s.Name, a.Key, a.Value.String())
				}
			}
		}
	}
}

// pipe is an executor that hands points to a worker of the same process, with nothing but headers in between.
type pipe struct {
	observer queue.CoordinatorObserver
	worker   queue.WorkerObserver
}

func (p pipe) Submit(ctx context.Context, job sweep.Job) error {
	h := queue.Header{}
	p.observer.PointPublishing(ctx, job.ID, h)
	pointCtx := p.worker.PointReceived(context.Background(), h, job.ID, time.Now().Add(-time.Second), 1)
	p.worker.FileFetched(pointCtx, 100, false, time.Millisecond, nil)
	p.worker.FileFetched(pointCtx, 100, true, 0, nil)
	p.worker.PointStarted(pointCtx)
	p.worker.PointFinished(pointCtx, &results.Row{ID: job.ID, Status: results.StatusFailed, Reason: "timeout", Error: "password: hidden"}, time.Second, nil)
	p.worker.PartPublished(pointCtx, 1, 50, time.Millisecond, nil)
	p.worker.PointSettled(pointCtx, queue.SettledAcked)
	return nil
}

func (pipe) Receive(ctx context.Context) (sweep.Delivery, error) {
	<-ctx.Done()
	return sweep.Delivery{}, ctx.Err()
}

// The spans of a worker are in the trace of the coordinator, which travels in the header traceparent.
func TestTracesThroughQueue(t *testing.T) {
	coordinator, here := inMemory(t, noEnv)
	worker, there := inMemory(t, noEnv)
	s := coordinator.Sweep(context.Background(), "demo")
	executor := s.Executor(pipe{QueueObservers(queue.NopObserver{}, s.Queue()), QueueObservers(NewMetrics(Identity{}).Worker(), worker.Worker())})
	job := sweep.Job{ID: "abc", Point: gridspec.Point{Index: 4}}
	if err := executor.Submit(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	s.PointFinished(sweep.Finished{Row: results.Row{ID: "abc", Point: &job.Point, Status: results.StatusOK, WallSeconds: 1}, Simulated: true})
	if err := executor.Submit(context.Background(), sweep.Job{ID: "left"}); err != nil {
		t.Fatal(err)
	}
	s.End(nil)

	a, b := spans(here), spans(there)
	submit, process := a["submit"][0], b["process"][0]
	if process.SpanContext.TraceID() != submit.SpanContext.TraceID() || process.Parent.SpanID() != submit.SpanContext.SpanID() {
		t.Error("the worker does not go on with the coordinator's trace")
	}
	if submit.Parent.SpanID() != a["point"][0].SpanContext.SpanID() {
		t.Error("submit is not below its point")
	}
	for _, name := range []string{"fetch file", "simulate", "publish part"} {
		if len(b[name]) != 2 || b[name][0].Parent.SpanID() != process.SpanContext.SpanID() {
			t.Errorf("%s: %d spans, or not below process", name, len(b[name]))
		}
	}
	if wait := b["queue"][0]; wait.Parent.SpanID() != submit.SpanContext.SpanID() || wait.EndTime.Sub(wait.StartTime) < time.Second {
		t.Errorf("queue: %+v", wait)
	}
	if process.Status.Code != codes.Error || attributeOf(process, "error.type") != "timeout" || attributeOf(process, "servegrid.queue.settled") != "acked" {
		t.Errorf("%+v", process)
	}
	if got := attributeOf(a["point"][1], "servegrid.point.status"); got != "unfinished" {
		t.Errorf("a point without a row is %q", got)
	}
	noSecrets(t, here)
	noSecrets(t, there)
}

// Sampling goes point by point, and a worker follows the coordinator.
func TestTracesAreSampled(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	coordinator, here := inMemory(t, noEnv)
	t.Setenv("OTEL_TRACES_SAMPLER", "")
	worker, there := inMemory(t, noEnv)
	s := coordinator.Sweep(context.Background(), "demo")
	executor := s.Executor(pipe{QueueObservers(queue.NopObserver{}, s.Queue()), QueueObservers(NewMetrics(Identity{}).Worker(), worker.Worker())})
	for _, id := range []string{"a", "b"} {
		if err := executor.Submit(context.Background(), sweep.Job{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.open) > 0 {
		t.Error("points that are not sampled are kept")
	}
	s.End(nil)
	if n := len(here.GetSpans()) + len(there.GetSpans()); n != 0 {
		t.Errorf("%d spans of points that are not sampled", n)
	}
}

func TestTracesOfParent(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tracing, exporter := inMemory(t, func(name string) string {
		if name == envParent {
			return parent
		}
		return ""
	})
	tracing.Sweep(context.Background(), "demo").End(nil)
	if got := spans(exporter)["sweep"][0].Parent.SpanID().String(); got != "b7ad6b7169203331" {
		t.Errorf("the parent is %s", got)
	}
}

func TestWhetherThereAreTraces(t *testing.T) {
	for _, c := range []struct {
		env  string
		want bool
	}{
		{"", false},
		{"OTEL_SERVICE_NAME=x", false},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", true},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318/v1/traces", true},
		{"OTEL_TRACES_EXPORTER=otlp", true},
		{"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", false},
		{"OTEL_SDK_DISABLED=true OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", false},
	} {
		if got := tracesWanted(environment(c.env)); got != c.want {
			t.Errorf("%q: %v", c.env, got)
		}
	}
	if tracing, err := StartTracing(context.Background(), noEnv, "v1", nil); tracing != nil || err != nil || tracing.Close() != nil {
		t.Error("there are traces although nobody asked for them")
	}
}

// environment looks up variables in a text such as "A=1 B=2".
func environment(text string) func(string) string {
	return func(name string) string {
		for field := range strings.FieldsSeq(text) {
			if key, value, _ := strings.Cut(field, "="); key == name {
				return value
			}
		}
		return ""
	}
}

// BenchmarkTraces is what a point costs: without traces nothing is in its way, see the first line.
func BenchmarkTraces(b *testing.B) {
	job := sweep.Job{ID: "abc"}
	nothing := func(context.Context, sweep.Job) (*simcore.Report, error) { return nil, nil }
	f := sweep.Finished{Row: results.Row{ID: "abc", Point: &gridspec.Point{}, Status: results.StatusOK}, Simulated: true}
	for _, sampler := range []string{"off", "parentbased_always_off", "always_on"} {
		b.Run(sampler, func(b *testing.B) {
			simulate, observer := nothing, sweep.Observer(sweep.NopObserver{})
			if sampler != "off" {
				b.Setenv("OTEL_TRACES_SAMPLER", sampler)
				tracing, err := newTracing(context.Background(), sdktrace.NewSimpleSpanProcessor(tracetest.NewNoopExporter()), noEnv, "v1")
				if err != nil {
					b.Fatal(err)
				}
				s := tracing.Sweep(context.Background(), "demo")
				simulate, observer = s.Simulate(nothing), s
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = simulate(context.Background(), job)
				observer.PointFinished(f)
			}
		})
	}
}
