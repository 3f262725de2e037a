package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server offers metrics and the health of the process over HTTP:
//
//   - /metrics in the text formats of Prometheus and OpenMetrics, or with native histograms, as the caller asks;
//   - /healthz, which is 200 as long as the process answers;
//   - /readyz, which is 200 once the process does its work, and 503 with the reason otherwise.
type Server struct {
	listener net.Listener
	server   *http.Server
	ready    atomic.Pointer[func() error]
	done     chan struct{}
}

// Serve starts to listen at an address such as "0.0.0.0:9464", "[::]:9464", ":9464" or "9464". Without a host it listens
// on the loopback address, so that nothing is open to the network unless somebody says so; port 0 takes a free one.
func Serve(address string, m *Metrics) (*Server, error) {
	full, err := listenAddress(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", full)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w; choose another address, or port 0 for any that is free", err)
	}
	s := &Server{listener: listener, done: make(chan struct{})}
	s.SetReady(func() error { return errors.New("starting") })
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Gatherer(), promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 8, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.answerReady)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "servegrid: /metrics, /healthz, /readyz\n")
	})
	s.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // ends when the server is closed
	}()
	return s, nil
}

// listenAddress adds what an address leaves out.
func listenAddress(address string) (string, error) {
	host, port := "", address
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return "", fmt.Errorf("metrics: address %q: give HOST:PORT or PORT, such as 0.0.0.0:9464 or 9464", address)
		}
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return "", fmt.Errorf("metrics: address %q has no port from 0 to 65535; give HOST:PORT or PORT, such as 0.0.0.0:9464 or 9464", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// Address is where the server listens, with its port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// SetReady says what decides whether the process is ready: nil, or why it is not.
func (s *Server) SetReady(ready func() error) { s.ready.Store(&ready) }

func (s *Server) answerReady(w http.ResponseWriter, _ *http.Request) {
	if err := (*s.ready.Load())(); err != nil {
		http.Error(w, Scrub(err.Error()), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ready\n")
}

// Close lets answers that are on their way end, for a short while, and stops listening.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = s.server.Close()
	}
	<-s.done
	return err
}
