package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// syncBuffer is what a command that runs beside a test prints.
type syncBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// waitFor waits until a pattern is printed, and returns its groups.
func (b *syncBuffer) waitFor(t *testing.T, pattern string) []string {
	t.Helper()
	expr := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if found := expr.FindStringSubmatch(b.String()); found != nil {
			return found
		}
	}
	t.Fatalf("%s is never printed: %s", pattern, b.String())
	return nil
}

// runningCapture is a capture command that runs beside a test.
type runningCapture struct {
	url, admin     string
	stdout, stderr syncBuffer
	cancel         context.CancelFunc
	code           chan int
}

func startCapture(t *testing.T, args ...string) *runningCapture {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &runningCapture{cancel: cancel, code: make(chan int, 1)}
	st := &state{args: append([]string{"capture", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...), env: []string{"SALT=pepper"},
		stdout: &c.stdout, stderr: &c.stderr, terminal: func() (int, bool) { return 0, false }, now: time.Now}
	go func() { c.code <- run(ctx, st) }()
	t.Cleanup(func() { cancel() })
	c.url = c.stderr.waitFor(t, `(http://\S+) passes on`)[1]
	c.admin = c.stderr.waitFor(t, `(http://\S+) has /metrics`)[1]
	return c
}

// stop ends it as Ctrl-C does.
func (c *runningCapture) stop(t *testing.T) int {
	t.Helper()
	c.cancel()
	select {
	case code := <-c.code:
		return code
	case <-time.After(20 * time.Second):
		t.Fatal("the capture does not end")
		return 0
	}
}

// echo answers each chat with as many words as are asked for.
func echo(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for range asked.MaxTokens {
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"word"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func postTo(t *testing.T, url, body string, header ...string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatal(answer.Status, string(text), err)
	}
	return string(text)
}

// TestCaptureAndReplay records two sessions, one of which spawns the other, and hands the trace to the commands that read it.
func TestCaptureAndReplay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "trace")
	c := startCapture(t, "--upstream", server.URL, "-o", dir, "--tokenizer", "chars:4", "--block-size", "16", "--salt-env", "SALT")
	long := strings.Repeat("what all prompts begin with ", 20)
	turn := func(session, parent string, n int) {
		body := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, 3+n, long+strings.Repeat(session+" goes on. ", 10*n))
		postTo(t, c.url+"/v1/chat/completions", body, "X-Dynamo-Session-ID", session, "X-Dynamo-Parent-Session-ID", parent)
		time.Sleep(3 * time.Millisecond) // times of traces are whole ms
	}
	turn("main", "", 1)
	turn("kid", "main", 1)
	turn("kid", "main", 2)
	postTo(t, c.admin+"/tools", `{"agent_context":{"session_id":"main"},"tool":{"tool_call_id":"t","duration_ms":1,"status":"succeeded"}}`)
	turn("main", "", 2)
	metrics, err := http.Get(c.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(metrics.Body)
	metrics.Body.Close()
	if !strings.Contains(string(text), "servegrid_capture_requests_total 4\n") {
		t.Errorf("metrics: %s", text)
	}
	if code := c.stop(t); code != exitOK || !strings.Contains(c.stdout.String(), "recorded     4 of 4 requests, 0 of them without a session\ntool calls   1\n") {
		t.Fatalf("exit code %d: %s%s", code, c.stdout.String(), c.stderr.String())
	}
	file := filepath.Join(dir, "capture.000000.jsonl.gz")
	for _, command := range []struct{ args, want string }{
		{"trace check " + file + " --requests 4 --sessions 2 --turns main=2 --turns kid=2", "Nothing is wrong or missing"},
		{"trace stats " + file, "Subagents: 1 with 2 requests"},
		{"trace convert " + file + " --to weka -o " + filepath.Join(dir, "weka"), ""},
		{"replay " + file + " --report-json " + filepath.Join(dir, "report.json"), "Request Count (requests)"},
	} {
		got := runCommand(t, strings.Fields(command.args)...)
		if got.code != exitOK || !strings.Contains(got.stdout, command.want) {
			t.Errorf("%s: exit code %d: %s%s", command.args, got.code, got.stdout, got.stderr)
		}
	}
}

func TestCaptureRefuses(t *testing.T) {
	got := runCommand(t, "capture", "--upstream", "localhost:8000", "--tokenizer", "chars:9", "--block-size", "0", "--salt-env", "NONE", "--max-body", "much", "--roll-size", "-1", "--grace", "-1s", "--name", "a/b")
	for _, want := range []string{"--upstream: \"localhost:8000\" is no URL", "--output is missing", "--name: \"a/b\"", "--tokenizer: tokenizer \"chars:9\"", "--block-size: 0", "--salt-env: the environment variable NONE is not set", "--max-body", "--roll-size", "--grace: -1s"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in %s", want, got.stderr)
		}
	}
	if got.code != exitRefused {
		t.Errorf("exit code %d", got.code)
	}
	if got := runCommand(t, "capture", "--upstream", "http://127.0.0.1:1", "-o", t.TempDir(), "--listen", "127.0.0.1:99999"); got.code != exitRefused || !strings.Contains(got.stderr, "--listen: ") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

// TestCaptureTellsWhatItLacks checks the exit code and the summary when requests could not be recorded.
func TestCaptureTellsWhatItLacks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	c := startCapture(t, "--upstream", server.URL, "-o", t.TempDir(), "--max-body", "1KiB")
	postTo(t, c.url+"/v1/chat/completions", `{"max_tokens":2,"messages":[{"role":"user","content":"`+strings.Repeat("long", 1000)+`"}]}`)
	if code := c.stop(t); code != exitSomeFailed || !strings.Contains(c.stdout.String(), "NOT RECORDED 1 request") {
		t.Errorf("exit code %d: %s", code, c.stdout.String())
	}
}

// TestCaptureMetricsAreDocumented compares the page with what the second port offers.
func TestCaptureMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs/capture.md"))
	if err != nil {
		t.Fatal(err)
	}
	c := startCapture(t, "--upstream", "http://127.0.0.1:1", "-o", t.TempDir())
	answer, err := http.Get(c.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	offered := map[string]bool{}
	for _, found := range regexp.MustCompile(`# TYPE (\S+)`).FindAllStringSubmatch(string(text), -1) {
		offered[found[1]] = true
		if !strings.Contains(string(page), "`"+found[1]+"`") {
			t.Errorf("%s is not in the page", found[1])
		}
	}
	for _, name := range regexp.MustCompile(`servegrid_capture_\w+`).FindAllString(string(page), -1) {
		if !offered[name] {
			t.Errorf("%s is in the page only", name)
		}
	}
	if code := c.stop(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// A server that asks for a certificate gets the one that the capture has.
func TestCaptureSecure(t *testing.T) {
	server, dir := newLiveServer(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert}), t.TempDir()
	own := clientCertificate(t, dir)
	for name, c := range map[string]struct {
		args   []string
		status int
	}{
		"with a certificate":    {[]string{"--tls-insecure", "--tls-cert", own.certificate, "--tls-key", own.key}, http.StatusOK},
		"without a certificate": {[]string{"--tls-insecure"}, http.StatusBadGateway},
		"unknown authority":     {[]string{"--tls-cert", own.both}, http.StatusBadGateway},
	} {
		capture := startCapture(t, append(c.args, "--upstream", server.URL, "--output", filepath.Join(dir, name))...)
		resp, err := http.Get(capture.url + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, c.status)
		}
		capture.stop(t)
	}
}
