//go:build !full

package telemetry

import (
	"context"
	"errors"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Build says which build of the program this is: default or full.
const Build = "default"

// newExporter says that there is none.
func newExporter(context.Context, func(string) string) (sdktrace.SpanExporter, error) {
	return nil, ErrNoExporter
}

// ErrNoExporter says that this build cannot send traces.
var ErrNoExporter = errors.New("traces: this build of servegrid has no OTLP exporter, so none are sent; `go install -tags full github.com/servegrid/servegrid/cmd/servegrid@latest` installs one that has it")
