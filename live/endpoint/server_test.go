package endpoint

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig has blocks of 16 tokens, 1000 of them, and a context of 2000 tokens.
func testConfig() simcore.Config {
	c := simcore.DefaultConfig()
	c.Engine.BlockSize, c.Engine.NumGPUBlocks, c.Engine.ContextLength = 16, 1000, 2000
	return c
}

// world is a server with a client.
type world struct {
	t      *testing.T
	fake   *fakeDeployment
	server *Server
	url    string
	client *http.Client
	header http.Header
}

func newWorld(t *testing.T, fake *fakeDeployment, change func(*Options)) *world {
	t.Helper()
	tokenizer, err := tokens.Parse("bytes")
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Deployment: fake, Config: testConfig(), Tokenizer: tokenizer, Models: []string{"m", "other/m"}, Version: "1.2.3"}
	if change != nil {
		change(&opt)
	}
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(s.Handler())
	h.Listener = smallBuffers{h.Listener}
	h.Start()
	w := &world{t: t, fake: fake, server: s, url: h.URL, client: h.Client(), header: http.Header{}}
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		s.Close()
	})
	return w
}

// smallBuffers makes connections that hold little of what a client does not read.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		_ = conn.(*net.TCPConn).SetWriteBuffer(8 << 10)
	}
	return conn, err
}

func (w *world) post(path, body string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header = w.header.Clone()
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// whole posts and reads a whole answer.
func (w *world) whole(path, body string) (int, openai.Completion) {
	w.t.Helper()
	resp := w.post(path, body)
	var c openai.Completion
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		w.t.Fatalf("%v in %q", err, data)
	}
	return resp.StatusCode, c
}

// events reads the events of a stream, until it ends or breaks.
func events(t *testing.T, resp *http.Response) (chunks []openai.Completion, done bool, broken error) {
	t.Helper()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !is:
		case data == "[DONE]":
			done = true
		default:
			var c openai.Completion
			if err := json.Unmarshal([]byte(data), &c); err != nil {
				broken = err
				continue
			}
			chunks = append(chunks, c)
		}
	}
	if err := lines.Err(); err != nil {
		broken = err
	}
	return chunks, done, broken
}

func text(chunks []openai.Completion) string {
	var out strings.Builder
	for _, c := range chunks {
		for _, choice := range c.Choices {
			if choice.Delta != nil && choice.Delta.Content != nil {
				out.WriteString(*choice.Delta.Content)
			}
			if choice.Text != nil {
				out.WriteString(*choice.Text)
			}
		}
	}
	return out.String()
}

func TestChatStream(t *testing.T) {
	w := newWorld(t, newFake(5*time.Millisecond, 3*time.Millisecond), nil)
	w.header.Set("X-Request-ID", `r"1`)
	w.header.Set("X-Correlation-ID", "s-1")
	resp := w.post("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hello there"}],"stream":true,"max_completion_tokens":12,
		"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream; charset=utf-8" {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	if got := resp.Header.Get("X-Request-ID"); got != `r"1` {
		t.Errorf("X-Request-ID %q", got)
	}
	chunks, done, broken := events(t, resp)
	if !done || broken != nil || len(chunks) < 3 {
		t.Fatalf("%d chunks, done %v, %v", len(chunks), done, broken)
	}
	first, last := chunks[0], chunks[len(chunks)-1]
	if d := first.Choices[0].Delta; d == nil || d.Role != "assistant" || *d.Content != "" {
		t.Errorf("the first chunk has no role: %+v", d)
	}
	for i, c := range chunks {
		if c.ID != `chatcmpl-r"1` || c.Object != "chat.completion.chunk" || c.Model != "m" || c.Created == 0 || c.Usage == nil || c.Usage.TotalTokens != 11+c.Usage.CompletionTokens {
			t.Errorf("chunk %d: %+v %+v", i, c, c.Usage)
		}
	}
	if len(last.Choices) != 0 || last.Usage.PromptTokens != 11 || last.Usage.CompletionTokens != 12 || last.Usage.PromptTokensDetails.CachedTokens != 5 {
		t.Errorf("the usage: %+v", last.Usage)
	}
	for i, c := range chunks[:len(chunks)-1] {
		reason := c.Choices[0].FinishReason
		if isLast := i == len(chunks)-2; isLast != (reason != nil) || isLast && *reason != "length" {
			t.Errorf("chunk %d of %d ends for %v", i, len(chunks), reason)
		}
	}
	if got := text(chunks); len(got) != 12 {
		t.Errorf("the answer %q has %d tokens, not 12", got, len(got))
	}
	if r := w.fake.last(); r.Input != 11 || r.Output != 12 || r.Session != "s-1" || len(r.Blocks) != 1 {
		t.Errorf("the deployment got %+v", r)
	}
}

func TestCompletionStream(t *testing.T) {
	w := newWorld(t, newFake(0, time.Millisecond), nil)
	chunks, done, _ := events(t, w.post("/v1/completions", `{"prompt":[1,2,3],"stream":true,"max_tokens":3}`))
	if !done || len(text(chunks)) != 3 {
		t.Fatalf("%d chunks, text %q, done %v", len(chunks), text(chunks), done)
	}
	for _, c := range chunks {
		if c.Object != "text_completion" || !strings.HasPrefix(c.ID, "cmpl-") || c.Usage != nil || len(c.Choices) != 1 {
			t.Errorf("%+v", c)
		}
	}
}

func TestWholeAnswers(t *testing.T) {
	w := newWorld(t, newFake(0, 0), func(o *Options) { o.OutputTokens = Lengths{20, 40} })
	status, c := w.whole("/v1/chat/completions", `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`)
	if status != 200 || c.Object != "chat.completion" || c.Model != "m" || len(c.Choices) != 1 {
		t.Fatalf("%d %+v", status, c)
	}
	choice := c.Choices[0]
	if n := len(*choice.Message.Content); choice.Message.Role != "assistant" || n < 20 || n > 40 || n != c.Usage.CompletionTokens || *choice.FinishReason != "stop" {
		t.Errorf("%d tokens, %+v, %+v, ends for %s", n, choice.Message, c.Usage, *choice.FinishReason)
	}
	if c.Usage.PromptTokens != 11 || c.Usage.PromptTokensDetails.CachedTokens != 5 {
		t.Errorf("usage %+v", c.Usage)
	}
	for body, want := range map[string]struct {
		tokens int
		reason string
	}{
		`{"prompt":"abc","max_tokens":7}`:                     {7, "length"},
		`{"prompt":["abc"],"max_tokens":7}`:                   {7, "length"},
		`{"prompt":[[5,6]],"max_completion_tokens":9}`:        {9, "length"},
		`{"prompt":"abc","min_tokens":100}`:                   {100, "stop"},
		`{"prompt":"abc","min_tokens":100,"ignore_eos":true}`: {100, "length"},
		`{"prompt":"abc","max_tokens":4,"n":1,"temperature":0,"logprobs":null,"echo":false,"best_of":1,"top_logprobs":0}`: {4, "length"},
		`{"prompt":"abc","max_tokens":4,"max_completion_tokens":5,"stream_options":null}`:                                 {5, "length"},
	} {
		status, c := w.whole("/v1/completions", body)
		if status != 200 || c.Usage.CompletionTokens != want.tokens || *c.Choices[0].FinishReason != want.reason || len(*c.Choices[0].Text) != want.tokens {
			t.Errorf("%s: %d %+v %+v", body, status, c, c.Usage)
		}
	}
}

// The first part of an answer is the model's thoughts, under the name that the engine has for them, in streams as in whole answers.
func TestReasoning(t *testing.T) {
	const request = `{"messages":[{"role":"user","content":"Why?"}],"max_tokens":10,"stream_options":{"include_usage":true},"stream":`
	for kind, name := range map[string]string{engine.TypeVLLM: "reasoning", engine.TypeSGLang: "reasoning_content"} {
		w := newWorld(t, newFake(0, 0), func(o *Options) { o.Config.Engine.Type, o.ReasoningShare = kind, 0.3 })
		thoughts := func(d *openai.Delta) string {
			if name == "reasoning" {
				return d.Reasoning
			}
			return d.ReasoningContent
		}
		_, whole := w.whole("/v1/chat/completions", request+`false}`)
		m := whole.Choices[0].Message
		if len(thoughts(m)) != 3 || len(*m.Content) != 7 || whole.Usage.CompletionTokensDetails.ReasoningTokens != 3 || whole.Usage.CompletionTokens != 10 {
			t.Errorf("%s: thoughts %q, content %q, usage %+v", name, thoughts(m), *m.Content, whole.Usage)
		}
		chunks, _, _ := events(t, w.post("/v1/chat/completions", request+`true}`))
		var thought string
		for _, c := range chunks {
			if len(c.Choices) > 0 {
				thought += thoughts(c.Choices[0].Delta)
			}
		}
		if thought != thoughts(m) || text(chunks) != *m.Content {
			t.Errorf("%s: the stream has thoughts %q and content %q, not %q and %q", name, thought, text(chunks), thoughts(m), *m.Content)
		}
		for i, c := range chunks[:len(chunks)-1] {
			if isLast := i == len(chunks)-2; isLast != (c.Choices[0].FinishReason != nil) {
				t.Errorf("%s: chunk %d of %d: %+v", name, i, len(chunks), c.Choices[0])
			}
		}
		if _, c := w.whole("/v1/completions", `{"prompt":"a","max_tokens":10}`); len(*c.Choices[0].Text) != 10 || c.Usage.CompletionTokensDetails != nil {
			t.Errorf("%s: a completion has thoughts: %+v", name, c)
		}
	}
}

// What a request tells the router reaches it.
func TestHints(t *testing.T) {
	w := newWorld(t, newFake(0, 0), nil)
	w.whole("/v1/completions", `{"prompt":"a","nvext":{"agent_hints":{"priority":-3,"strict_priority":2,"policy_class":"gold","osl":5}}}`)
	if got, want := w.fake.last().Hints, (workload.Hints{Priority: -3, StrictPriority: 2, PolicyClass: "gold"}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// A conversation that goes on begins with the KV blocks of its first turn and of the answer to it; equal prompts get equal answers.
func TestTurnsShareBlocks(t *testing.T) {
	w := newWorld(t, newFake(0, 0), nil)
	opening := strings.Repeat("What is it? ", 8)
	ask := func(body string) (string, []uint64) {
		_, c := w.whole("/v1/chat/completions", body)
		return *c.Choices[0].Message.Content, w.fake.last().Blocks
	}
	first := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"max_tokens":50}`, opening)
	answer, blocks := ask(first)
	if len(blocks) != (len(opening)+50)/16 {
		t.Fatalf("%d blocks", len(blocks))
	}
	if again, _ := ask(first); again != answer {
		t.Errorf("%q and then %q", answer, again)
	}
	if other, _ := ask(strings.Replace(first, `"max_tokens"`, `"seed":7,"max_tokens"`, 1)); other == answer {
		t.Error("another seed gives the same answer")
	}
	_, next := ask(fmt.Sprintf(`{"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q},{"role":"user","content":"And then?"}],"max_tokens":50}`, opening, answer))
	for i, b := range blocks {
		if next[i] != b {
			t.Fatalf("block %d of the second turn is not that of the first", i)
		}
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t, newFake(0, 0), func(o *Options) { o.StrictModel, o.MaxBodyBytes = true, 5000 })
	for _, c := range []struct {
		path, body string
		status     int
		param, say string
	}{
		{"/v1/chat/completions", `{`, 400, "", "not valid JSON"},
		{"/v1/chat/completions", `[]`, 400, "", "must be a JSON object"},
		{"/v1/chat/completions", ``, 400, "", "not valid JSON"},
		{"/v1/chat/completions", `{"messages":"hi"}`, 400, "messages", "wrong type"},
		{"/v1/chat/completions", `{"messages":[]}`, 400, "messages", "one or more messages"},
		{"/v1/chat/completions", `{"prompt":"hi"}`, 400, "messages", "one or more messages"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":7}]}`, 400, "", "content"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":""}]}`, 400, "prompt", "empty"},
		{"/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"hi"}]}`, 404, "model", "`none` does not exist"},
		{"/v1/completions", `{"prompt":["a",1]}`, 400, "", "prompt must be"},
		{"/v1/completions", `{"prompt":["a",""]}`, 400, "prompt", "prompt[1]: The prompt is empty"},
		{"/v1/completions", `{"prompt":["a","` + strings.Repeat("x", 2000) + `"]}`, 400, "messages", "prompt[1]: This model's maximum context length"},
		{"/v1/completions", `{"prompt":[` + strings.Repeat(`"a",`, 16) + `"a"],"n":128}`, 400, "prompt", "17 prompts with 128 answers each are more than the 2048"},
		{"/v1/completions", `{"messages":[{"role":"user","content":"hi"}]}`, 400, "", "no prompt"},
		{"/v1/completions", `{"prompt":"a","n":0}`, 400, "n", "n must be at least 1 and at most 128, got 0"},
		{"/v1/completions", `{"prompt":"a","n":-3}`, 400, "n", "n must be at least 1"},
		{"/v1/completions", `{"prompt":"a","n":129}`, 400, "n", "at most 128, got 129"},
		{"/v1/completions", `{"prompt":"a","n":1.5}`, 400, "n", "wrong type"},
		{"/v1/completions", `{"prompt":"a","logprobs":0}`, 400, "logprobs", "no token has a probability"},
		{"/v1/completions", `{"prompt":"a","echo":true}`, 400, "echo", "not repeated"},
		{"/v1/completions", `{"prompt":"a","best_of":21}`, 400, "best_of", "at most 20, got 21"},
		{"/v1/completions", `{"prompt":"a","best_of":0}`, 400, "best_of", "at least 1"},
		{"/v1/completions", `{"prompt":"a","n":3,"best_of":2}`, 400, "best_of", "at least n=3, got 2"},
		{"/v1/completions", `{"prompt":"a","best_of":2,"stream":true}`, 400, "best_of", "cannot be streamed"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"best_of":2}`, 400, "best_of", "for completions, not for chats"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"logprobs":true,"top_logprobs":2}`, 400, "logprobs", "not supported"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"nvext":{"agent_hints":{"priority":"high"}}}`, 400, "nvext.agent_hints.priority", "wrong type"},
		{"/tokenize", `{}`, 400, "", "no prompt"},
		{"/detokenize", `{"tokens":"a"}`, 400, "tokens", "wrong type"},
		{"/v1/completions", `{"prompt":"a","max_tokens":0}`, 400, "max_tokens", "at least 1"},
		{"/v1/completions", `{"prompt":"a","max_tokens":5,"min_tokens":6}`, 400, "min_tokens", "less than or equal"},
		{"/v1/completions", `{"prompt":"a","max_tokens":1e30}`, 400, "max_tokens", "wrong type"},
		{"/v1/completions", `{"prompt":"a","max_tokens":2000}`, 400, "max_tokens", "maximum context length is 2000 tokens and your request has 1 input tokens"},
		{"/v1/completions", `{"prompt":"` + strings.Repeat("x", 2000) + `"}`, 400, "messages", "maximum context length is 2000 tokens"},
		{"/v1/completions", `{"prompt":"` + strings.Repeat("x", 6000) + `"}`, 413, "", "larger than 5000 bytes"},
		{"/v1/embeddings", `{}`, 404, "", "no /v1/embeddings"},
		{"/nowhere", `{}`, 404, "", "no /nowhere"},
		{"/v1/models", `{}`, 405, "", "use GET"},
		{"/health", `{}`, 405, "", "use GET"},
	} {
		status, got := w.whole(c.path, c.body)
		if status != c.status || got.Error == nil || got.Error.Param != c.param || !strings.Contains(got.Error.Message, c.say) {
			t.Errorf("%s %.60s: %d %+v", c.path, c.body, status, got.Error)
		}
	}
}

func TestStatusesOfTheDeployment(t *testing.T) {
	full := newFake(0, 0)
	full.full = true
	w := newWorld(t, full, nil)
	resp := w.post("/v1/completions", `{"prompt":"a"}`)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("overload is %d, retry after %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	small := newFake(0, 0)
	small.most = 3
	w = newWorld(t, small, nil)
	if status, c := w.whole("/v1/completions", `{"prompt":["a","b"],"n":2}`); status != 400 || c.Error.Param != "prompt" || !strings.Contains(c.Error.Message, "4 answers at once") {
		t.Errorf("more at once than there ever is room for: %d %+v", status, c.Error)
	}
	for state, want := range map[engine.State]int{engine.Rejected: 400, engine.Failed: 500} {
		fake := newFake(0, 0)
		fake.state = state
		w := newWorld(t, fake, nil)
		for _, stream := range []string{"true", "false"} {
			for _, n := range []string{"1", "5"} {
				if status, c := w.whole("/v1/completions", `{"prompt":"a","n":`+n+`,"stream":`+stream+`}`); status != want || c.Error == nil {
					t.Errorf("state %d, stream %s, n=%s: %d %+v", state, stream, n, status, c.Error)
				}
			}
		}
	}
}

// A router whose queue for a class is full is overloaded.
func TestFullClass(t *testing.T) {
	fake := newFake(0, 0)
	fake.state = engine.Rejected
	w := newWorld(t, fake, func(o *Options) { o.Config.Router.Classes = &router.Classes{} })
	if resp := w.post("/v1/completions", `{"prompt":"a"}`); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("%d, retry after %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

func TestKey(t *testing.T) {
	w := newWorld(t, newFake(0, 0), func(o *Options) { o.APIKey = "secret" })
	for key, want := range map[string]int{"": 401, "Bearer wrong": 401, "Basic secret": 401, "Bearer secret": 200, "bearer secret": 200} {
		w.header.Set("Authorization", key)
		resp := w.post("/v1/completions", `{"prompt":"a"}`)
		if resp.StatusCode != want {
			t.Errorf("%q: %d, not %d", key, resp.StatusCode, want)
		}
	}
	resp, err := w.client.Get(w.url + "/health")
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("/health needs no key: %v %v", resp, err)
	}
	_ = resp.Body.Close()
}

func TestOtherRoutes(t *testing.T) {
	w := newWorld(t, newFake(0, 0), nil)
	get := func(path string) (int, string) {
		resp, err := w.client.Get(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(data)
	}
	for path, want := range map[string]string{
		"/v1/models":         `"id":"other/m"`,
		"/v1/models/other/m": `"max_model_len":2000`,
		"/version":           `{"version":"1.2.3"}`,
		"/health":            "",
		"/":                  "/v1/chat/completions",
	} {
		if status, body := get(path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if resp := w.post("/ping", ""); resp.StatusCode != 200 {
		t.Errorf("POST /ping: %d", resp.StatusCode)
	}
	read := func(resp *http.Response) string {
		data, _ := io.ReadAll(resp.Body)
		return strings.TrimSpace(string(data))
	}
	if got := read(w.post("/tokenize", `{"messages":[{"role":"user","content":"AB"}]}`)); got != `{"count":2,"max_model_len":2000,"tokens":[65,66]}` {
		t.Errorf("/tokenize: %s", got)
	}
	if got := read(w.post("/detokenize", `{"tokens":[65,66]}`)); got != `{"prompt":"AB"}` {
		t.Errorf("/detokenize: %s", got)
	}
	if status, _ := get("/get_model_info"); status != 404 {
		t.Errorf("vLLM has /get_model_info: %d", status)
	}
	if status, body := get("/v1/models/none"); status != 404 || !strings.Contains(body, "model_not_found") {
		t.Errorf("a model that is not there: %d %s", status, body)
	}
}

// A client that goes away cancels its request, and its end is heard of.
func TestClientGoesAway(t *testing.T) {
	served := make(chan Served, 1)
	w := newWorld(t, newFake(0, 10*time.Millisecond), func(o *Options) { o.Served = func(s Served) { served <- s } })
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/completions", strings.NewReader(`{"prompt":"a","stream":true,"max_tokens":1500}`))
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	select {
	case s := <-served:
		if s.Record.Life.State == engine.Completed || w.fake.cancelled.Load() != 1 {
			t.Errorf("state %d, %d cancelled", s.Record.Life.State, w.fake.cancelled.Load())
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the request goes on")
	}
}

// A client that does not read takes no memory and, in the end, is gone.
func TestClientDoesNotRead(t *testing.T) {
	served := make(chan Served, 1)
	w := newWorld(t, newFake(0, 20*time.Microsecond), func(o *Options) {
		o.Served, o.WriteTimeout = func(s Served) { served <- s }, 100*time.Millisecond
		o.Config.Engine.ContextLength, o.Config.Engine.NumGPUBlocks = 0, 1<<16
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	body := `{"prompt":"a","stream":true,"max_tokens":1000000}`
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	select {
	case <-served:
		if w.fake.cancelled.Load() != 1 {
			t.Error("the request was not given up")
		}
	case <-time.After(8 * time.Second):
		t.Fatal("the request goes on")
	}
}

// Requests end in their time when the server is told to end, and those that do not are cut off.
func TestServeDrains(t *testing.T) {
	for _, c := range []struct {
		name         string
		takes, grace time.Duration
		cut          int
	}{{"in time", 300 * time.Millisecond, 20 * time.Second, 0}, {"too late", 20 * time.Second, 50 * time.Millisecond, 1}} {
		t.Run(c.name, func(t *testing.T) {
			tokenizer, _ := tokens.Parse("bytes")
			s, err := New(Options{Deployment: newFake(c.takes, 0), Config: testConfig(), Tokenizer: tokenizer})
			if err != nil {
				t.Fatal(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			type end struct {
				cut int
				err error
			}
			ended := make(chan end, 1)
			go func() {
				cut, err := s.Serve(ctx, listener, c.grace)
				ended <- end{cut, err}
			}()
			answered := make(chan int, 1)
			go func() {
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				resp, err := client.Post("http://"+listener.Addr().String()+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"a","stream":true}`))
				if err != nil {
					answered <- 0
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				answered <- resp.StatusCode
			}()
			for s.metrics.open.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			stop()
			if status := <-answered; status != map[int]int{0: 200, 1: 503}[c.cut] {
				t.Errorf("the client gets %d", status)
			}
			if got := <-ended; got.cut != c.cut || got.err != nil {
				t.Errorf("%d cut off, %v", got.cut, got.err)
			}
		})
	}
}

func scrape(t *testing.T, w *world) string {
	t.Helper()
	resp, err := w.client.Get(w.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %v", resp.StatusCode, err)
	}
	return b.String()
}
