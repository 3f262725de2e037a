package openai

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/servegrid/servegrid/live"
)

const (
	chunkX     = `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n"
	chunkEnd   = `data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n"
	chunkUsage = `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\n"
	chunkDone  = "data: [DONE]\n\n"
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// targetFor returns a target of one server; the options may be changed.
func targetFor(t *testing.T, server string, change func(*TargetOptions)) *Target {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	opt := TargetOptions{URLs: []*url.URL{u}, Model: "m", ConnectTimeout: 2 * time.Second, FirstTimeout: 5 * time.Second, IdleTimeout: 5 * time.Second}
	if change != nil {
		change(&opt)
	}
	target, err := NewTarget(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

func call() *live.Call {
	return &live.Call{ID: "r1", Session: "s", ParentSession: "p", Input: 5, Output: 7, Prompt: func() []live.Message {
		return []live.Message{{Role: "user", Text: "hi \"there\"\n"}, {Role: "assistant", Text: "yes"}}
	}}
}

// heard is what a request was told.
type heard struct {
	tokens, chunks int
	usage          *live.Usage
}

func send(ctx context.Context, target *Target) (heard, error) {
	var h heard
	err := target.Send(ctx, call(), func(e live.Event) {
		h.chunks++
		h.tokens += e.Tokens
		if e.Usage != nil {
			h.usage = e.Usage
		}
	})
	return h, err
}

func TestTargetMeasuresAStream(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, c := range []struct {
		name, body, kind string
		want             heard
	}{
		{"chat", chunkX + chunkX + chunkEnd + chunkUsage + chunkDone, "text/event-stream; charset=utf-8", heard{2, 5, &live.Usage{Input: 5, Cached: 4, Output: 7}}},
		{"reasoning", `data: {"choices":[{"delta":{"reasoning":"x"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"reasoning_content":"x"}}]}` + "\n\n" + chunkX + chunkDone, "text/event-stream", heard{3, 4, nil}},
		{"without the last event", chunkX + chunkEnd, "text/event-stream", heard{1, 2, nil}},
		{"no stream", `{"choices":[{"message":{"content":"xy"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}`, "application/json", heard{1, 1, &live.Usage{Input: 5, Cached: -1, Output: 7}}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			_, _ = io.WriteString(w, c.body)
		}))
		target := targetFor(t, server.URL, nil)
		got, err := send(t.Context(), target)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(heard{})); diff != "" || err != nil {
			t.Errorf("%s: heard differs (-want +got):\n%s\n%v", c.name, diff, err)
		}
		target.Close()
		server.Close()
	}
}

func TestTargetAsks(t *testing.T) {
	defer goleak.VerifyNone(t)
	var body map[string]any
	var header http.Header
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, header, body = r.URL.Path, r.Header.Clone(), nil
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("the body is no JSON: %v", err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunkX+chunkDone)
	}))
	defer server.Close()
	for _, c := range []struct {
		name   string
		change func(*TargetOptions)
		path   string
		want   map[string]any
	}{
		{"chat", nil, "/v1/chat/completions", map[string]any{
			"model": "m", "stream": true, "stream_options": map[string]any{"include_usage": true}, "max_completion_tokens": 7.,
			"messages": []any{map[string]any{"role": "user", "content": "hi \"there\"\n"}, map[string]any{"role": "assistant", "content": "yes"}},
		}},
		{"completions", func(o *TargetOptions) { o.Type, o.IgnoreEOS, o.MinTokens = Completions, true, true }, "/v1/completions", map[string]any{
			"model": "m", "stream": true, "stream_options": map[string]any{"include_usage": true}, "max_tokens": 7., "min_tokens": 7.,
			"ignore_eos": true, "prompt": "hi \"there\"\nyes",
		}},
		{"extra", func(o *TargetOptions) {
			o.MinTokens, o.IgnoreEOS = true, true
			o.Extra = map[string]json.RawMessage{"max_tokens": json.RawMessage("3"), "min_tokens": json.RawMessage("2"), "ignore_eos": json.RawMessage("false"), "a b": json.RawMessage(`"x"`)}
			o.URLs[0].Path = "/base/v1/"
		}, "/base/v1/chat/completions", map[string]any{
			"model": "m", "stream": true, "stream_options": map[string]any{"include_usage": true}, "max_tokens": 3., "min_tokens": 2., "ignore_eos": false, "a b": "x",
			"messages": []any{map[string]any{"role": "user", "content": "hi \"there\"\n"}, map[string]any{"role": "assistant", "content": "yes"}},
		}},
	} {
		target := targetFor(t, server.URL, func(o *TargetOptions) {
			o.APIKey, o.Header = "secret", http.Header{"X-Own": {"1"}}
			if c.change != nil {
				c.change(o)
			}
		})
		if _, err := send(t.Context(), target); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, body); diff != "" || path != c.path {
			t.Errorf("%s: body of %s differs (-want +got):\n%s", c.name, path, diff)
		}
		for name, want := range map[string]string{
			"X-Request-ID": "r1", "X-Correlation-ID": "s", "X-Session-Affinity": "s", "X-Dynamo-Session-ID": "s", "X-Dynamo-Parent-Session-ID": "p",
			"Authorization": "Bearer secret", "X-Own": "1",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: header %s is %q, want %q", c.name, name, got, want)
			}
		}
		target.Close()
	}
}

// rawServer answers each connection, once it has sent its request, with a text; then it does what end wants.
func rawServer(t *testing.T, answer string, end func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			for read := ""; !strings.Contains(read, "]}"); {
				n, err := c.Read(buf)
				if err != nil {
					break
				}
				read += string(buf[:n])
			}
			_, _ = io.WriteString(c, answer)
			end(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return "http://" + listener.Addr().String()
}

func chunked(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// untilClosed keeps a connection until the other side closes it.
func untilClosed(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func TestTargetNamesFailures(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	atOnce := func(net.Conn) {}
	drip := func(c net.Conn) { // slow-loris: bytes come, events do not
		for {
			if _, err := io.WriteString(c, chunked(": still here\n")); err != nil {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	short := func(o *TargetOptions) { o.FirstTimeout, o.IdleTimeout = 60*time.Millisecond, 60*time.Millisecond }
	for _, c := range []struct {
		name, answer string
		end          func(net.Conn)
		change       func(*TargetOptions)
		kind         live.ErrorKind
		message      string
		tokens       int
	}{
		{"closed without an answer", "", atOnce, nil, live.ErrDropped, "", 0},
		{"half-closed without an answer", "", func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite(); untilClosed(c) }, nil, live.ErrDropped, "", 0},
		{"killed in the stream", streamHead + chunked(chunkX), atOnce, nil, live.ErrDropped, "before the answer was complete", 1},
		{"reset in the stream", streamHead + chunked(chunkX), func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, nil, live.ErrDropped, "", -1},
		{"half-closed in the stream", streamHead + chunked(chunkX), func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite(); untilClosed(c) }, nil, live.ErrDropped, "", 1},
		{"ended without saying so", streamHead + chunked(chunkX) + "0\r\n\r\n", atOnce, nil, live.ErrDropped, "", 1},
		{"ended in an event", streamHead + chunked(chunkX+`data: {"choi`) + "0\r\n\r\n", atOnce, nil, live.ErrDropped, "", 1},
		{"silent", "", untilClosed, short, live.ErrTimeout, "nothing of the answer came for 60ms", 0},
		{"silent after the header", streamHead, untilClosed, short, live.ErrTimeout, "nothing of the answer came for 60ms", 0},
		{"silent in the stream", streamHead + chunked(chunkX), untilClosed, short, live.ErrTimeout, "nothing more of the answer came for 60ms", 1},
		{"slow-loris in the stream", streamHead + chunked(chunkX), drip, short, live.ErrTimeout, "nothing more of the answer came for 60ms", 1},
		{"slow-loris before the stream", streamHead, drip, short, live.ErrTimeout, "nothing of the answer came for 60ms", 0},
		{"no HTTP", "SSH-2.0-OpenSSH_9.6\r\n", atOnce, nil, live.ErrMalformed, "malformed", 0},
		{"a page", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>data</html>", atOnce, nil, live.ErrMalformed, "the answer is text/html, no stream of events", 0},
		{"compressed", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", atOnce, nil, live.ErrMalformed, `compressed ("gzip")`, 0},
		{"a length below 0", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", atOnce, nil, live.ErrMalformed, "Content-Length", 0},
		{"a head too large", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<19) + "\r\n\r\n", atOnce, nil, live.ErrMalformed, "headers", 0},
		{"no chunk", streamHead + "zz\r\n", atOnce, nil, live.ErrMalformed, "", 0},
		{"no JSON", streamHead + chunked(chunkX+"data: oops\n\n"), untilClosed, nil, live.ErrMalformed, "no JSON object: oops", 1},
		{"an error in the stream", streamHead + chunked(chunkX+`data: {"error":{"message":"out of memory"}}`+"\n\n"), untilClosed, nil, live.ErrServer, "out of memory", 1},
		{"an event too large", streamHead + chunked("data: "+strings.Repeat("x", 4000)), untilClosed, func(o *TargetOptions) { o.MaxEventBytes = 1000 }, live.ErrTooLarge, "event", 0},
		{"an answer too large", streamHead + chunked(strings.Repeat(chunkX, 100)), untilClosed, func(o *TargetOptions) { o.MaxAnswerBytes = 1000 }, live.ErrTooLarge, "answer", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := targetFor(t, rawServer(t, c.answer, c.end), c.change)
			got, err := send(t.Context(), target)
			var failed *live.Error
			if !errors.As(err, &failed) || failed.Kind != c.kind || !strings.Contains(failed.Message, c.message) || c.tokens >= 0 && got.tokens != c.tokens {
				t.Errorf("got %v after %d tokens, want kind %s with %q after %d", err, got.tokens, c.kind, c.message, c.tokens)
			}
		})
	}
}

func TestTargetNamesStatuses(t *testing.T) {
	defer goleak.VerifyNone(t)
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://elsewhere/")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, `{"error":{"message":"the key has expired"}}`)
	}))
	defer server.Close()
	target := targetFor(t, server.URL, nil)
	defer target.Close()
	for code, kind := range map[int]live.ErrorKind{
		401: live.ErrUnauthorized, 403: live.ErrUnauthorized, 429: live.ErrOverloaded, 503: live.ErrOverloaded, 400: live.ErrClientStatus, 404: live.ErrClientStatus,
		307: live.ErrClientStatus, 500: live.ErrServerStatus, 502: live.ErrServerStatus,
	} {
		status.Store(int64(code))
		_, err := send(t.Context(), target)
		want := "the key has expired"
		if code == 307 {
			want = "http://elsewhere/; give that URL"
		}
		var failed *live.Error
		if !errors.As(err, &failed) || failed.Kind != kind || failed.Status != code || !strings.Contains(failed.Message, want) {
			t.Errorf("status %d: got %v, want kind %s with %q", code, err, kind, want)
		}
	}
}

func TestTargetNamesWhatIsNotThere(t *testing.T) {
	defer goleak.VerifyNone(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + listener.Addr().String()
	_ = listener.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for _, c := range []struct {
		name, url string
		change    func(*TargetOptions)
		kind      live.ErrorKind
	}{
		{"nobody listens", gone, nil, live.ErrConnect},
		{"unknown name", "http://no-such-host.invalid:1", nil, live.ErrConnect},
		{"unknown authority", secure.URL, nil, live.ErrTLS},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), nil, live.ErrTLS},
		{"unchecked", secure.URL, func(o *TargetOptions) { o.TLS = &tls.Config{InsecureSkipVerify: true} }, live.ErrClientStatus},
	} {
		target := targetFor(t, c.url, c.change)
		_, err := send(t.Context(), target)
		var failed *live.Error
		if !errors.As(err, &failed) || failed.Kind != c.kind {
			t.Errorf("%s: got %v, want kind %s", c.name, err, c.kind)
		}
		target.Close()
	}
}

func TestTargetEndsWithItsContext(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	target := targetFor(t, rawServer(t, streamHead+chunked(chunkX), untilClosed), nil)
	ctx, cancel := context.WithCancel(t.Context())
	err := target.Send(ctx, call(), func(live.Event) { cancel() })
	if err == nil || ctx.Err() == nil {
		t.Errorf("got %v, want an error", err)
	}
}

func TestSeveralServers(t *testing.T) {
	defer goleak.VerifyNone(t)
	var urls []*url.URL
	asked := make([]atomic.Int64, 3)
	for i := range asked {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked[i].Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, chunkX+chunkDone)
		}))
		defer server.Close()
		u, _ := url.Parse(server.URL)
		urls = append(urls, u)
	}
	for _, c := range []struct {
		balance string
		want    []int64 // sorted by number of requests
	}{{BalanceRoundRobin, []int64{2, 2, 2}}, {BalanceSession, []int64{0, 0, 6}}} {
		for i := range asked {
			asked[i].Store(0)
		}
		target := targetFor(t, urls[0].String(), func(o *TargetOptions) { o.URLs, o.Balance = urls, c.balance })
		for range 6 {
			if _, err := send(t.Context(), target); err != nil {
				t.Fatal(err)
			}
		}
		most := max(asked[0].Load(), asked[1].Load(), asked[2].Load())
		if most != c.want[2] {
			t.Errorf("%s: %d requests went to one server, want %d", c.balance, most, c.want[2])
		}
		target.Close()
	}
}

func TestProbe(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, c := range []struct {
		name, body string
		status     int
		want       []string
	}{
		{"models", `{"object":"list","data":[{"id":"a"},{"id":"b"},{"id":"a"}]}`, 200, []string{"a", "b"}},
		{"none", "404 page not found", 404, nil},
		{"something else", "hello", 200, nil},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		target := targetFor(t, server.URL, nil)
		got, err := target.Probe(t.Context())
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: models differ (-want +got):\n%s\n%v", c.name, diff, err)
		}
		target.Close()
		server.Close()
		if _, err := target.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), server.URL+" does not answer") {
			t.Errorf("%s: got %v of a server that is gone", c.name, err)
		}
		target.Close()
	}
}

func TestTargetOptionsAreRefused(t *testing.T) {
	_, err := NewTarget(TargetOptions{
		Balance: "b", Type: "t", LimitField: "l", IdleTimeout: -1, Extra: map[string]json.RawMessage{"messages": nil},
	})
	for _, want := range []string{"no URL", `balance "b"`, `endpoint type "t"`, `field "l"`, "timeout is -1ns", `extra input "messages"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}
