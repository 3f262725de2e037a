package telemetry

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/servegrid/servegrid/results"
)

// Tracing makes spans of what a process does. A nil Tracing makes none and costs nothing: nothing calls it.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	// parent is the span that the environment names.
	parent trace.SpanContext
}

// The environment variables of https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ that say
// whether there are traces. All others of traces are read by the SDK and the exporter: OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG, OTEL_BSP_…, OTEL_SPAN_…, OTEL_EXPORTER_OTLP_….
const (
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envDisabled       = "OTEL_SDK_DISABLED"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	// envParent is how a parent process passes its span on: the header traceparent as a variable.
	envParent = "TRACEPARENT"
)

// StartTracing begins to trace when the environment asks for it, and returns nil otherwise. Log is told, once, about traces
// that cannot be sent. The caller closes it.
func StartTracing(ctx context.Context, getenv func(string) string, program string, log io.Writer) (*Tracing, error) {
	if !tracesWanted(getenv) {
		return nil, nil
	}
	exporter, err := newExporter(ctx, getenv)
	if err != nil {
		return nil, err
	}
	told := sync.Once{}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		told.Do(func() {
			_, _ = fmt.Fprintf(log, "traces: %s; further errors of this kind are not shown\n", printable(Scrub(err.Error())))
		})
	}))
	return newTracing(ctx, sdktrace.NewBatchSpanProcessor(exporter), getenv, program)
}

// tracesWanted reports whether the environment asks for traces.
func tracesWanted(getenv func(string) string) bool {
	if strings.EqualFold(getenv(envDisabled), "true") {
		return false
	}
	switch exporter := strings.TrimSpace(getenv(envExporter)); exporter {
	case "":
		return getenv(envEndpoint) != "" || getenv(envTracesEndpoint) != ""
	case "none":
		return false
	}
	return true
}

// newTracing traces into a processor.
func newTracing(ctx context.Context, processor sdktrace.SpanProcessor, getenv func(string) string, program string) (*Tracing, error) {
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "servegrid"), attribute.String("service.version", program)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w; see OTEL_RESOURCE_ATTRIBUTES", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(processor), sdktrace.WithResource(about))
	t := &Tracing{provider: provider, tracer: provider.Tracer("github.com/servegrid/servegrid")}
	if parent := getenv(envParent); parent != "" {
		carried := propagation.TraceContext{}.Extract(ctx, carrier{traceParent: {parent}})
		t.parent = trace.SpanContextFromContext(carried)
	}
	return t, nil
}

// closeTimeout bounds the time for the last spans.
const closeTimeout = 5 * time.Second

// Close sends what is left.
func (t *Tracing) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("traces: the last ones were not sent: %s", Scrub(err.Error()))
	}
	return nil
}

const (
	traceParent = "traceparent"
	traceState  = "tracestate"
)

// carrier carries a trace context in the headers of a message, whose names keep their case.
type carrier map[string][]string

// Get returns the value of a header.
func (c carrier) Get(key string) string {
	if values := c[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set sets a header.
func (c carrier) Set(key, value string) { c[key] = []string{value} }

// Keys lists the headers that carry a trace context.
func (c carrier) Keys() []string { return []string{traceParent, traceState} }

// maxAttribute bounds texts of others in spans, in runes.
const maxAttribute = 1000

// text is a text of others as an attribute: without credentials, and not too long.
func text(key, value string) attribute.KeyValue {
	value = strings.ToValidUTF8(Scrub(value), "\uFFFD")
	if runes := []rune(value); len(runes) > maxAttribute {
		value = string(runes[:maxAttribute]) + "…"
	}
	return attribute.String(key, value)
}

// failed records an error: its kind, as few as reasons are, and its message.
func failed(span trace.Span, kind, message string) {
	span.SetStatus(codes.Error, kind)
	span.SetAttributes(text("error.type", kind))
	span.AddEvent("exception", trace.WithAttributes(text("exception.type", kind), text("exception.message", message)))
}

// endWith ends a span with an error, if there is one.
func endWith(span trace.Span, kind string, err error) {
	if err != nil {
		failed(span, kind, err.Error())
	}
	span.End()
}

// setRow says what became of a point.
func setRow(span trace.Span, row *results.Row) {
	span.SetAttributes(attribute.String("servegrid.point.status", statusOf(row)))
	if row.Status == results.StatusFailed {
		failed(span, row.Reason, row.Error)
	}
}
