//go:build full

package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector that keeps what it gets.
type receiver struct {
	mu       sync.Mutex
	requests []*coltrace.ExportTraceServiceRequest
	headers  []http.Header
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(req.Body)
	}
	text, _ := io.ReadAll(body)
	message := &coltrace.ExportTraceServiceRequest{}
	if req.URL.Path != "/v1/traces" || proto.Unmarshal(text, message) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests, r.headers = append(r.requests, message), append(r.headers, req.Header)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Spans reach a collector as OTLP, under the names that the environment gives.
func TestOTLP(t *testing.T) {
	r := &receiver{}
	server := httptest.NewServer(r)
	defer server.Close()
	t.Setenv(envEndpoint, server.URL)
	t.Setenv("OTEL_SERVICE_NAME", "my sweeps")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=value")
	var log bytes.Buffer
	tracing, err := StartTracing(context.Background(), os.Getenv, "v1", &log)
	if err != nil {
		t.Fatal(err)
	}
	tracing.Sweep(context.Background(), "demo").End(nil)
	if err := tracing.Close(); err != nil || log.Len() > 0 {
		t.Fatal(err, log.String())
	}
	if len(r.requests) != 1 || r.headers[0].Get("x-key") != "value" {
		t.Fatalf("%d requests", len(r.requests))
	}
	got := r.requests[0].String()
	for _, want := range []string{`"my sweeps"`, `"team"`, `"service.version"`, `name:"sweep"`, `"servegrid.sweep.name"`} {
		if !strings.Contains(strings.ReplaceAll(got, "  ", " "), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// A collector that is not there is told once, without what the endpoint gives away, and stops nothing.
func TestOTLPWithoutCollector(t *testing.T) {
	t.Setenv(envEndpoint, "http://user:hidden@127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
	var log bytes.Buffer
	tracing, err := StartTracing(context.Background(), os.Getenv, "v1", &log)
	if err != nil {
		t.Fatal(err)
	}
	tracing.Sweep(context.Background(), "demo").End(nil)
	err = tracing.Close()
	if text := log.String(); err == nil && text == "" || strings.Contains(text, "hidden") || err != nil && strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestUnknownExporter(t *testing.T) {
	for _, env := range []string{"OTEL_TRACES_EXPORTER=console", "OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc"} {
		if _, err := StartTracing(context.Background(), environment(env), "v1", io.Discard); err == nil {
			t.Errorf("%s is no error", env)
		}
	}
}
