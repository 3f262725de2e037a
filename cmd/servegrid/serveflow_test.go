package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runningServe is a serve command that runs beside a test.
type runningServe struct {
	url            string
	stdout, stderr syncBuffer
	cancel         context.CancelFunc
	code           chan int
}

// startServe runs serve until the test ends.
func startServe(t *testing.T, args ...string) *runningServe {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &runningServe{cancel: cancel, code: make(chan int, 1)}
	st := &state{args: append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), env: []string{"SERVE_KEY=secret"}, stdout: &s.stdout, stderr: &s.stderr,
		terminal: func() (int, bool) { return 0, false }, now: time.Now}
	go func() { s.code <- run(ctx, st) }()
	t.Cleanup(cancel)
	s.url = s.stderr.waitFor(t, `serve: (http://\S+?): `)[1]
	return s
}

// stop ends it and returns its exit code.
func (s *runningServe) stop(t *testing.T) int {
	t.Helper()
	s.cancel()
	select {
	case code := <-s.code:
		return code
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not end")
		return 0
	}
}

// fixedTiming gives passes a fixed time, in ms.
func fixedTiming(prefill, decode int) string {
	return fmt.Sprintf(`{"source":"fixed","prefill_ms":%d,"decode_ms":%d}`, prefill, decode)
}

// streamed is what a client sees of a stream.
type streamed struct {
	ttftMs, lastMs float64
	chunks         int
}

// stream asks for a stream and times its chunks.
func (s *runningServe) stream(t *testing.T, id, prompt string, tokens int) streamed {
	t.Helper()
	body := fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"stream":true}`, prompt, tokens)
	r, err := http.NewRequest(http.MethodPost, s.url+"/v1/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Request-ID", id)
	r.Header.Set("Authorization", "Bearer secret")
	sent := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got streamed
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: {") {
			if got.lastMs = time.Since(sent).Seconds() * 1000; got.chunks == 0 {
				got.ttftMs = got.lastMs
			}
			got.chunks++
		}
	}
	return got
}

// What a client measures is what was simulated, never earlier, and the simulated lives of all requests are written at the end.
func TestServe(t *testing.T) {
	deployments := map[string][]string{
		"aggregated":    {"--num-workers", "2", "--router-mode", "kv_router", "--extra-engine-args", `{"block_size":16,"engine_type":"sglang"}`},
		"disaggregated": {"--prefill-engine-args", `{"block_size":16}`, "--decode-engine-args", `{"block_size":16}`},
	}
	for name, flags := range deployments {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "served.parquet")
			s := startServe(t, append(flags, "--timing", fixedTiming(40, 10), "--tokenizer", "bytes", "--requests-parquet", path, "--api-key-env", "SERVE_KEY")...)
			prompt := strings.Repeat("The same prompt. ", 10)
			measured := map[string]streamed{}
			for _, id := range []string{"first", "again"} {
				measured[id] = s.stream(t, id, prompt, 15)
			}
			if code := s.stop(t); code != exitOK || !strings.HasPrefix(s.stdout.String(), "ended: 2 requests, 2 completed, 0 rejected") {
				t.Fatalf("exit code %d: %s%s", code, s.stdout.String(), s.stderr.String())
			}
			table := readResultsFile(t, path)
			if table.Rows() != len(measured) {
				t.Fatalf("%d rows", table.Rows())
			}
			number := func(row int, column string) float64 {
				c, err := table.Lookup(column)
				if err != nil {
					t.Fatal(err)
				}
				v, err := strconv.ParseFloat(c.Text(row), 64)
				if err != nil {
					t.Fatalf("%s: %v", column, err)
				}
				return v
			}
			for row := range table.Rows() {
				uuid, _ := table.Lookup("uuid")
				m := measured[uuid.Text(row)]
				if ttft, e2e := number(row, "ttft_ms"), number(row, "e2e_latency_ms"); m.ttftMs < ttft-1 || m.lastMs < e2e-1 || m.ttftMs > ttft+5000 || ttft < 40-1e-6 || m.chunks > 15 {
					t.Errorf("%s: measured %+v, simulated TTFT %.1f ms and %.1f ms in all", uuid.Text(row), m, ttft, e2e)
				}
				if n := number(row, "output_tokens"); n != 15 {
					t.Errorf("%s: %v tokens", uuid.Text(row), n)
				}
				if reused := number(row, "reused_input_tokens"); (reused >= 160-16) != (uuid.Text(row) == "again") {
					t.Errorf("%s: %v tokens from the cache", uuid.Text(row), reused)
				}
			}
		})
	}
}

// A spec of several points, one of which is served, faster than in real time and with faults.
func TestServeSpec(t *testing.T) {
	spec := filepath.Join(t.TempDir(), "grid.yaml")
	text := "timing: " + fixedTiming(10000, 1000) + "\ngrid: {deployment.workers: [1, 3]}\n"
	if err := os.WriteFile(spec, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, spec, "--point", "1", "--speedup", "100", "--model", "m", "--fault", "status=429,every=2", "--set", "engine.block_size=32")
	if !strings.Contains(s.stderr.String(), "3 workers vllm, blocks of 32 tokens, tokenizer chars:4, 100x as fast") {
		t.Error(s.stderr.String())
	}
	began := time.Now()
	got := s.stream(t, "one", "Hello", 20) // 29 s as simulated
	if took := time.Since(began); got.chunks == 0 || took > 15*time.Second {
		t.Errorf("%+v in %s", got, took)
	}
	if got := s.stream(t, "two", "Hello", 20); got.chunks != 0 {
		t.Errorf("the second request is served: %+v", got)
	}
	answer, err := http.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if want := `servegrid_faults_total{kind="status"} 1`; !strings.Contains(string(metrics), want) || strings.Count(string(metrics), "vllm:num_requests_running{") != 3 {
		t.Errorf("no %s in %s", want, metrics)
	}
	if code := s.stop(t); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
}

// With a planner workers come, after the time that they take to start, and go, and metrics show them.
func TestServePlanner(t *testing.T) {
	s := startServe(t, "--speedup", "200", "--extra-engine-args", `{"startup_time":30}`, "--timing", fixedTiming(100, 20),
		"--planner-config", `{"optimization_target":"load","decode_scale_up_kv_rate":90,"decode_scale_down_kv_rate":0,"load_adjustment_interval":10,"min_endpoint":3,"report_filename":"page.html"}`)
	if text := s.stderr.String(); !strings.Contains(text, "1 worker vllm") || !strings.Contains(text, ", planner dynamo, 200x as fast") || !strings.Contains(text, "what it says of a report changes nothing here") {
		t.Error(text)
	}
	metrics := func() string {
		answer, err := http.Get(s.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return string(text)
	}
	ready := `servegrid_workers{pool="agg",state="ready"} 3`
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(metrics(), "\n"+ready+"\n"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s in %s", ready, metrics())
		}
	}
	for i := range 3 {
		if got := s.stream(t, fmt.Sprint(i), "Hello", 3); got.chunks == 0 {
			t.Errorf("request %d: %+v", i, got)
		}
	}
	text := metrics()
	for _, want := range []string{
		`servegrid_workers_added_total{pool="agg"} 2`,
		`servegrid_planner_decisions_total{direction="up",pool="agg"} 1`,
		`dynamo_planner_num_decode_replicas 3`,
		`vllm:num_requests_running{engine="2",model_name="servegrid"} 0`,
		`vllm:generation_tokens_total{engine="2",model_name="servegrid"} 3`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if code := s.stop(t); code != exitOK || !regexp.MustCompile(`(?m)^planner: \d+ ticks; agg: 2 added, 0 removed, 3 ready at the end$`).MatchString(s.stdout.String()) {
		t.Errorf("exit code %d: %s%s", code, s.stdout.String(), s.stderr.String())
	}
}

// A deployment that is full says so, and has room again when a client has gone.
func TestServeOverload(t *testing.T) {
	s := startServe(t, "--timing", fixedTiming(10, 10), "--max-requests", "1")
	ctx, leave := context.WithCancel(t.Context())
	long, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":10000,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(long) // by now its first token has come
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	ask := func() *http.Response {
		r, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"b","max_tokens":2}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r
	}
	if r := ask(); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s, retry after %q", r.Status, r.Header.Get("Retry-After"))
	}
	leave()
	status := 0
	for deadline := time.Now().Add(10 * time.Second); status != http.StatusOK && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		status = ask().StatusCode
	}
	if status != http.StatusOK {
		t.Errorf("after the client has gone: %d", status)
	}
	if code := s.stop(t); code != exitOK || !strings.Contains(s.stdout.String(), "1 cancelled") {
		t.Errorf("exit code %d: %s%s", code, s.stdout.String(), s.stderr.String())
	}
}

// How it ends says how it was told to, and whether all requests ended before.
func TestServeSignals(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal os.Signal
		grace  string
		busy   bool
		code   int
		say    string
	}{
		{"terminated", syscall.SIGTERM, "10s", false, exitOK, ""},
		{"interrupted", os.Interrupt, "10s", false, exitInterrupted, "interrupted"},
		{"requests end", syscall.SIGTERM, "20s", true, exitOK, ""},
		{"cut off", syscall.SIGTERM, "1ms", true, exitSomeFailed, "cut off 1 request that did not end within --grace 1ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := program("serve", "--listen", "127.0.0.1:0", "--grace", c.grace, "--timing", fixedTiming(10, 20))
			var stdout, stderr syncBuffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			url := stderr.waitFor(t, `serve: (http://\S+?): `)[1]
			read := make(chan int64, 1)
			if c.busy {
				answer, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"a","max_tokens":50,"stream":true}`))
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					n, _ := io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
					read <- n
				}()
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(stderr.String(), c.say) || !regexp.MustCompile(`^ended: \d request`).MatchString(stdout.String()) {
				t.Errorf("exit code %d: %s%s", code, stdout.String(), stderr.String())
			}
			if c.busy && <-read == 0 {
				t.Error("nothing of the answer came")
			}
		})
	}
}
