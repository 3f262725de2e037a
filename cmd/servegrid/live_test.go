package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http/httpguts"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/report"
)

// liveServer is an OpenAI-compatible server that answers at once, unless a test wants something else.
type liveServer struct {
	*httptest.Server
	asked  atomic.Int64                                          // requests for chat completions so far
	before func(n int64, w http.ResponseWriter, r *http.Request) // comes before an answer; nil for nothing
	models string
}

func newLiveServer(t *testing.T, security *tls.Config) *liveServer {
	t.Helper()
	s := &liveServer{models: `{"data":[{"id":"m"}]}`}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s.models) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 3\n")
	})
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	s.Server = httptest.NewUnstartedServer(mux)
	if s.TLS = security; security != nil {
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *liveServer) chat(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string
		Messages []struct{ Content string }
		Max      int `json:"max_completion_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Model != "m" || len(asked.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if n := s.asked.Add(1); s.before != nil {
		s.before(n, w, r)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	prompt := 0
	for _, m := range asked.Messages {
		prompt += (len(m.Content) + 3) / 4
	}
	for range asked.Max {
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"x"}}]}`+"\n\n")
	}
	fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":8}}}`+"\n\ndata: [DONE]\n\n", prompt, asked.Max)
}

// tenRequests are what the tests of live send.
var tenRequests = []string{"--input-tokens", "40", "--output-tokens", "3", "--request-count", "10", "--arrival-interval-ms", "1"}

func liveArgs(server *liveServer, output string, more ...string) []string {
	return append(append([]string{"live", "--url", server.URL, "--output", output}, tenRequests...), more...)
}

func TestLive(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	server := newLiveServer(t, nil)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	got := runCommand(t, liveArgs(server, out, "--chunks", filepath.Join(dir, "chunks.gz"), "--warmup-requests", "2", "--header", "X-Token: secret", "--metrics-interval", "5ms")...)
	if got.code != exitOK || !strings.Contains(got.stdout, "Time to First Token") || !strings.Contains(got.stdout, "Sent Requests: 10; 10 completed, 0 failed") {
		t.Fatalf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	if server.asked.Load() != 12 || !strings.Contains(got.stderr, "10 of 10 requests done, 0 under way") {
		t.Errorf("the server was asked %d times; %s", server.asked.Load(), got.stderr)
	}
	requests := readResultsFile(t, filepath.Join(out, report.RequestsFile))
	if requests.Rows() != 10 {
		t.Errorf("%d requests are recorded", requests.Rows())
	}
	for column, want := range map[string]any{"prompt_tokens": int64(40), "source": "live"} {
		c := requests.Column(column)
		if c == nil {
			t.Errorf("there is no column %s", column)
		} else if v, _ := c.Value(3); v.Any() != want {
			t.Errorf("%s is %v, want %v", column, v.Any(), want)
		}
	}
	if samples := readResultsFile(t, filepath.Join(out, report.ServerFile)); samples.Rows() == 0 {
		t.Error("no metrics were read")
	}
	facts, err := os.ReadFile(filepath.Join(out, report.FactsFile))
	if err != nil || strings.Contains(string(facts), "secret") || !strings.Contains(string(facts), `"model": "m"`) {
		t.Errorf("the facts are %s, %v", facts, err)
	}
	if _, err := os.Stat(filepath.Join(out, report.JournalFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal is left: %v", err)
	}
	if lines := gunzip(t, filepath.Join(dir, "chunks.gz")); strings.Count(lines, "\n") != 10*(3+2) || !strings.Contains(lines, `"data":"[DONE]"`) {
		t.Errorf("the chunks are %s", lines)
	}
	if again := runCommand(t, liveArgs(server, out)...); again.code != exitRefused || !strings.Contains(again.stderr, "has results already") {
		t.Errorf("a second run into the same folder: exit code %d, %s", again.code, again.stderr)
	}
}

func gunzip(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What goes wrong at the server is counted and named, and the rest is measured.
func TestLiveCountsFailures(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	server := newLiveServer(t, nil)
	server.before = func(n int64, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 2:
			w.WriteHeader(http.StatusTooManyRequests)
		case 3:
			w.WriteHeader(http.StatusUnauthorized)
		case 4:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"x"}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // the server is killed in the stream
		case 5:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: no JSON\n\n")
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	got := runCommand(t, liveArgs(server, out, "-q")...)
	if got.code != exitSomeFailed || !strings.Contains(got.stdout, "6 completed, 4 failed") {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	for _, want := range []string{"overloaded 1", "unauthorized 1", "dropped 1", "malformed 1"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in %s", want, got.stdout)
		}
	}
	if rows := readResultsFile(t, filepath.Join(out, report.RequestsFile)).Rows(); rows != 10 {
		t.Errorf("%d requests are recorded", rows)
	}
}

// Ctrl-C keeps what was measured.
func TestLiveInterrupted(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	server := newLiveServer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server.before = func(n int64, w http.ResponseWriter, r *http.Request) {
		if n == 6 {
			cancel()
			<-r.Context().Done() // until it is given up
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	var stdout, stderr bytes.Buffer
	st := &state{args: liveArgs(server, out, "-q", "--grace", "10ms", "--replay-concurrency", "1"), stdout: &stdout, stderr: &stderr,
		terminal: func() (int, bool) { return 0, false }, now: time.Now}
	if code := run(ctx, st); code != exitInterrupted || !strings.Contains(stdout.String(), "Sent Requests: 6 of 10 planned; 5 completed, 0 failed, 0 rejected, 1 cancelled") {
		t.Errorf("exit code %d: %s%s", code, stdout.String(), stderr.String())
	}
	if rows := readResultsFile(t, filepath.Join(out, report.RequestsFile)).Rows(); rows != 6 {
		t.Errorf("%d requests are recorded", rows)
	}
}

// What a killed run measured is written later.
func TestLiveRecovers(t *testing.T) {
	server := newLiveServer(t, nil)
	out := filepath.Join(t.TempDir(), "out")
	if got := runCommand(t, liveArgs(server, out, "--recover")...); got.code != exitRefused || !strings.Contains(got.stderr, "has no journal") {
		t.Errorf("nothing to recover: exit code %d, %s", got.code, got.stderr)
	}
	if got := runCommand(t, liveArgs(server, out, "-q")...); got.code != exitOK {
		t.Fatal(got.stderr)
	}
	// The journal of a run that goes on is what it would leave.
	other := filepath.Join(t.TempDir(), "other")
	server.asked.Store(0)
	server.before = func(n int64, _ http.ResponseWriter, _ *http.Request) {
		if n != 8 {
			return
		}
		var data []byte
		for end := time.Now().Add(10 * time.Second); bytes.Count(data, []byte{'\n'}) < 8 && time.Now().Before(end); { // a head and seven requests
			time.Sleep(time.Millisecond)
			var err error
			if data, err = os.ReadFile(filepath.Join(other, report.JournalFile)); err != nil {
				t.Error(err)
			}
		}
		killed := filepath.Join(filepath.Dir(out), "killed")
		if err := errors.Join(os.MkdirAll(killed, 0o777), os.WriteFile(filepath.Join(killed, report.JournalFile), data, 0o666)); err != nil {
			t.Error(err)
		}
	}
	if got := runCommand(t, liveArgs(server, other, "-q", "--replay-concurrency", "1")...); got.code != exitOK {
		t.Fatal(got.stderr)
	}
	killed := filepath.Join(filepath.Dir(out), "killed")
	if got := runCommand(t, liveArgs(server, killed, "--replay-concurrency", "1")...); got.code != exitRefused || !strings.Contains(got.stderr, "--recover") {
		t.Errorf("a folder with a journal: exit code %d, %s", got.code, got.stderr)
	}
	got := runCommand(t, liveArgs(server, killed, "--replay-concurrency", "1", "--recover")...)
	if got.code != exitInterrupted || !strings.Contains(got.stdout, "Sent Requests: 7 of 10 planned; 7 completed") {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
}

func TestLiveSecure(t *testing.T) {
	server := newLiveServer(t, &tls.Config{})
	asks := newLiveServer(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	dir := t.TempDir()
	authority := filepath.Join(dir, "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, data, 0o666); err != nil {
		t.Fatal(err)
	}
	own := clientCertificate(t, dir)
	for _, c := range []struct {
		name   string
		server *liveServer
		args   []string
		code   int
	}{
		{"unknown", server, nil, exitAway},
		{"known", server, []string{"--tls-ca", authority}, exitOK},
		{"unchecked", server, []string{"--tls-insecure"}, exitOK},
		{"without a certificate", asks, []string{"--tls-insecure"}, exitAway},
		{"with a certificate", asks, []string{"--tls-insecure", "--tls-cert", own.certificate, "--tls-key", own.key}, exitOK},
		{"in one file", asks, []string{"--tls-insecure", "--tls-cert", own.both}, exitOK},
		{"key only", server, []string{"--tls-key", own.key}, exitRefused},
		{"no key", server, []string{"--tls-cert", own.certificate}, exitRefused},
	} {
		if got := runCommand(t, liveArgs(c.server, filepath.Join(dir, c.name), append(c.args, "-q")...)...); got.code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", c.name, got.code, c.code, got.stderr)
		}
	}
}

// certificateFiles are a certificate and its key as PEM, by themselves and in one file.
type certificateFiles struct{ certificate, key, both string }

// clientCertificate makes a certificate that its owner signed.
func clientCertificate(t *testing.T, dir string) certificateFiles {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(cryptorand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	first := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	second := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return certificateFiles{write("own.pem", first), write("own-key.pem", second), write("own-both.pem", slices.Concat(first, second))}
}

// All that is wrong is said at once, before anything is asked.
func TestLiveRefuses(t *testing.T) {
	dir := t.TempDir()
	nothing := filepath.Join(dir, "no.pem")
	if err := os.WriteFile(nothing, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	got := runCommand(t, "live", "--url", "localhost:8000", "--metrics-url", "x", "--tokenizer", "chars:9", "--messages", "many", "--api-key-env", "NO_SUCH_KEY", "--duration", "-1s", "--start-offset", "5s",
		"--end-offset", "1s", "--header", "no header", "--extra-inputs", "{", "--extra-inputs", "x", "--extra-inputs", "a:1", "--extra-inputs", `{"a":2}`, "--tls-ca", nothing, "--connect-timeout", "0s",
		"--warmup-requests", "-1", "--input-tokens", "0", "--request-rate", "-1", "--replay-concurrency", "3", "--point", "1")
	for _, want := range []string{
		`--url: "localhost:8000"`, "--metrics-url: ", "--output is missing", `--tokenizer: tokenizer "chars:9"`, `--messages: "many"`, "--api-key-env: ", "--duration: -1s", "--end-offset: 1s", "--header: ",
		"--extra-inputs: { is no JSON", "--extra-inputs: x is neither", "--extra-inputs: a is given twice", "has no certificate", "--connect-timeout: 0s", "--warmup-requests: -1", "--input-tokens",
		"--request-rate and --replay-concurrency", "--point is for a --spec",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in %s", want, got.stderr)
		}
	}
	if got.code != exitRefused || got.stdout != "" {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
	several := filepath.Join(dir, "several.yaml")
	if err := os.WriteFile(several, []byte("workload: {synthetic: {input_tokens: 16, output_tokens: 2, requests: 3, arrival_interval_ms: 1}}\ngrid: {deployment.workers: [1, 2]}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	server := newLiveServer(t, nil)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--spec", several}, "has 2 points, and one is needed; choose it with --point 0 to 1"},
		{[]string{"--spec", several, "--point", "2"}, "--point: 2 is not allowed"},
		{[]string{"--spec", several, "--point", "1", "--preset", "chat", "trace.jsonl"}, "--preset: the spec describes"},
		{[]string{"--spec", several, "--point", "1", "trace.jsonl"}, "trace.jsonl: --spec says which trace is sent, and in which format, at which load; name another one with --set workload.trace.path=trace.jsonl"},
		{nil, "there is nothing to replay"},
	} {
		got := runCommand(t, append([]string{"live", "--url", server.URL, "-o", filepath.Join(dir, "out")}, c.args...)...)
		if got.code != exitRefused || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: exit code %d, no %q in %s", c.args, got.code, c.want, got.stderr)
		}
	}
	if got := runCommand(t, "live", "--url", server.URL, "-q", "-o", filepath.Join(dir, "spec"), "--spec", several, "--point", "1"); got.code != exitOK || !strings.Contains(got.stdout, "Sent Requests: 3; 3 completed") {
		t.Errorf("a spec: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}

// Without a server, or without a model to ask for, nothing begins.
func TestLiveNeedsServerAndModel(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + listener.Addr().String()
	_ = listener.Close()
	got := runCommand(t, append([]string{"live", "--url", gone, "--output", out}, tenRequests...)...)
	if got.code != exitAway || !strings.Contains(got.stderr, gone+" does not answer") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	server := newLiveServer(t, nil)
	server.models = "hello"
	if got := runCommand(t, liveArgs(server, out)...); got.code != exitRefused || !strings.Contains(got.stderr, "--model: the server does not list its models") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is an output: %v", err)
	}
	if got := runCommand(t, liveArgs(server, out, "--model", "m")...); got.code != exitOK {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	server.models = `{"data":[{"id":"m"},{"id":"n"}]}`
	if got := runCommand(t, liveArgs(server, out+"2")...); got.code != exitOK || !strings.Contains(got.stderr, "the server has 2 models; asking for m") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

func TestLiveCommandHasNoSecrets(t *testing.T) {
	got := liveCommand([]string{"live", "a b", "--header", "X-Key: secret", "--header=Y: secret", "--url", "http://me:secret@host/?key=secret", "--url=http://you:secret@host", "--output", "o"})
	want := `servegrid live 'a b' --header 'X-Key: ***' '--header=Y: ***' --url 'http://***@host/?...' '--url=http://***@host' --output o`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// On a terminal there is a bar, also where nobody knows how long it will be.
func TestLiveProgressBar(t *testing.T) {
	for _, c := range []struct {
		total int
		want  []string
	}{{3, []string{"2/3 requests", "1 failed", "0 under way"}}, {-1, []string{"2/", "requests", "1 failed"}}} {
		var out syncBuffer
		p := newLiveProgress(&state{stderr: &out, terminal: func() (int, bool) { return 100, true }, now: time.Now}, false, c.total)
		p.begin()
		for _, r := range []live.Record{{OutputTokens: 5}, {OutputTokens: 1, Err: &live.Error{Kind: live.ErrTimeout}}} {
			p.sent(&r)
			p.ended(&r)
		}
		p.close()
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("of %d: no %q in %q", c.total, want, out.String())
			}
		}
	}
}

// Whatever people write into the flags for fields and headers, what comes of it can be sent.
func FuzzLiveInputs(f *testing.F) {
	for _, text := range []string{"a:1", `{"a":{"b":[1]}}`, "temperature:0.5", "stop: x y", "a:", ":b", "{", "X-A: b", "é:\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if extra, err := parseExtraInputs([]string{text}); err == nil {
			if _, err := json.Marshal(extra); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		if header, err := parseHeaders([]string{text}); err == nil {
			for name, values := range header {
				if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(values[0]) {
					t.Errorf("%q became the header %q: %q", text, name, values)
				}
			}
		}
	})
}
