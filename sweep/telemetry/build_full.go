//go:build full

package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Build says which build of the program this is: default or full.
const Build = "full"

// newExporter returns an exporter to what the environment names.
func newExporter(ctx context.Context, getenv func(string) string) (sdktrace.SpanExporter, error) {
	if name := getenv(envExporter); name != "" && name != "otlp" {
		return nil, fmt.Errorf("traces: %s=%s is not there; use otlp or none", envExporter, name)
	}
	if protocol := cmp.Or(getenv(envTracesProtocol), getenv(envProtocol), "http"); !strings.HasPrefix(protocol, "http") {
		return nil, fmt.Errorf("traces: the protocol %s of OTLP is not there; set %s=http/protobuf and the endpoint's HTTP port, such as 4318", protocol, envProtocol)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %s", Scrub(err.Error()))
	}
	return exporter, nil
}
