//go:build !full

package telemetry

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// The default build says that it cannot send traces, and how to get one that can.
func TestNoExporter(t *testing.T) {
	_, err := StartTracing(context.Background(), environment("OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"), "v1", io.Discard)
	if !errors.Is(err, ErrNoExporter) || !strings.Contains(err.Error(), "-tags full") {
		t.Error(err)
	}
}
