package endpoint

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore/engine"
)

// serving runs a server on a port of its own until the test ends.
func serving(t *testing.T, fake *fakeDeployment, change func(*Options)) (address string) {
	t.Helper()
	tokenizer, err := tokens.Parse("bytes")
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Deployment: fake, Config: testConfig(), Tokenizer: tokenizer}
	change(&opt)
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Serve(ctx, listener, 0)
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// dial opens a connection on which nothing may take longer than a few seconds.
func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(8 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// A client that sends its request drop by drop is sent away, wherever in the request it is.
func TestSlowRequests(t *testing.T) {
	address := serving(t, newFake(0, 0), func(o *Options) { o.ReadTimeout = 80 * time.Millisecond })
	for name, c := range map[string]struct{ sent, answer string }{
		"nothing":       {"", ""},
		"half a head":   {"POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Slow: ", ""},
		"half a body":   {"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{\"prompt\":", "HTTP/1.1 408 "},
		"unread body":   {"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{\"prompt\":", "HTTP/1.1 404 "},
		"endless chunk": {"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"pr", "HTTP/1.1 408 "},
	} {
		conn := dial(t, address)
		if _, err := io.WriteString(conn, c.sent); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if !strings.HasPrefix(string(got), c.answer) || c.answer == "" && len(got) > 0 || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A client that has closed its half of the connection has gone, as with other servers, and its request is given up.
func TestHalfClosed(t *testing.T) {
	served := make(chan Served, 1)
	address := serving(t, newFake(0, 5*time.Millisecond), func(o *Options) { o.Served = func(s Served) { served <- s } })
	conn := dial(t, address)
	body := `{"prompt":"a","stream":true,"max_tokens":1900}`
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Error(err)
	}
	if s := <-served; s.Record.Life.State == engine.Completed {
		t.Error("the request went on")
	}
}

// Several requests on one connection, and rubbish on others, leave a server that answers.
func TestOddConnections(t *testing.T) {
	address := serving(t, newFake(0, 0), func(*Options) {})
	for _, rubbish := range []string{"\x16\x03\x01\x02\x00\x01", "GET\r\n\r\n", "POST /v1/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n", strings.Repeat("X", 100_000)} {
		conn := dial(t, address)
		_, _ = io.WriteString(conn, rubbish)
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}
	conn, body := dial(t, address), `{"prompt":"abc","max_tokens":5}`
	request := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if _, err := io.WriteString(conn, request+request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for range 2 {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
			t.Errorf("%d %s %v", resp.StatusCode, data, err)
		}
	}
}
