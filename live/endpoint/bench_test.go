package endpoint

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// instant is a deployment whose tokens come one by one, without a wait.
type instant struct{}

func (instant) Submit(requests ...simcore.OnlineRequest) ([]Stream, error) {
	streams := make([]Stream, len(requests))
	for i, r := range requests {
		streams[i] = &instantStream{left: r.Output}
	}
	return streams, nil
}
func (instant) Snapshot() realtime.Snapshot { return realtime.Snapshot{} }

type instantStream struct{ left int }

func (s *instantStream) Cancel() {}
func (s *instantStream) Next(context.Context) (realtime.Progress, error) {
	s.left--
	p := realtime.Progress{Tokens: 1, Ended: s.left == 0}
	if p.Ended {
		p.Record = &simcore.RequestRecord{Life: engine.Request{State: engine.Completed}}
	}
	return p, nil
}

// BenchmarkChunks measures a chunk on its way from the deployment into a socket, each with a system call of its own.
func BenchmarkChunks(b *testing.B) {
	config := testConfig()
	config.Engine.ContextLength, config.Engine.NumGPUBlocks = 0, 1<<20
	tokenizer, _ := tokens.Parse("chars:4")
	s, err := New(Options{Deployment: instant{}, Config: config, Tokenizer: tokenizer})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: s.Handler()}
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":%d}`, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if _, err := io.Copy(io.Discard, conn); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "chunks/s")
	_ = conn.Close()
	_ = server.Close()
	<-done
	s.Close()
}
