package capture

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a capture between a client and a server that tests give.
type world struct {
	t       *testing.T
	dir     string
	proxy   *Proxy
	front   *httptest.Server
	back    *httptest.Server
	client  *http.Client
	stopped bool
}

func newWorld(t *testing.T, server http.HandlerFunc, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), back: httptest.NewServer(server)}
	upstream, _ := url.Parse(w.back.URL)
	tokenizer, err := tokens.Parse("bytes")
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{
		Upstream: upstream, Dir: w.dir, Name: "c", Tokenizer: tokenizer, BlockSize: 8, SessionHeaders: DefaultSessionHeaders(), ParentHeaders: DefaultParentHeaders(),
		MaxBody: DefaultMaxBody, MaxMemory: DefaultMaxMemory, FlushEvery: 10 * time.Millisecond, RollBytes: DefaultRollBytes,
	}
	if change != nil {
		change(&opt)
	}
	if w.proxy, err = New(opt); err != nil {
		t.Fatal(err)
	}
	w.front = httptest.NewServer(w.proxy)
	w.client = &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(func() {
		w.stop()
		w.client.CloseIdleConnections()
	})
	return w
}

// stop ends the capture and returns its counts.
func (w *world) stop() Counts {
	if !w.stopped {
		w.stopped = true
		w.front.Close()
		if err := w.proxy.Close(); err != nil {
			w.t.Error(err)
		}
		w.back.Close()
	}
	return w.proxy.Counts()
}

// post sends a request and returns the answer, read to its end.
func (w *world) post(path, body string, header ...string) (*http.Response, string) {
	w.t.Helper()
	r, _ := http.NewRequest(http.MethodPost, w.front.URL+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer, string(text)
}

// trace is what the files say, without gzip.
func trace(t *testing.T, dir, pattern string) string {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, pattern))
	var all bytes.Buffer
	for _, path := range paths {
		packed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, plain); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// records are the lines of a trace.
func records(t *testing.T, dir, pattern string) []event {
	t.Helper()
	var events []event
	for line := range strings.Lines(trace(t, dir, pattern)) {
		var l traceLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, l.Event)
	}
	return events
}

// chat answers with a stream of words, a few ms apart, and with the usage if usage is set.
func chat(usage string, words ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`+"\n\n")
		for _, word := range words {
			time.Sleep(5 * time.Millisecond)
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
			w.(http.Flusher).Flush()
		}
		if usage != "" {
			fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":%s}\n\n", usage)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

func TestAStreamIsRecorded(t *testing.T) {
	w := newWorld(t, chat(`{"prompt_tokens":40,"completion_tokens":11,"prompt_tokens_details":{"cached_tokens":16}}`, "one ", "two ", "six"), nil)
	const ask = `{"model":"m","stream":true,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"count to two, six"}]}]}`
	_, text := w.post("/v1/chat/completions", ask, "X-Request-ID", "r1", "X-Dynamo-Session-ID", "s", "X-Dynamo-Parent-Session-ID", "p")
	if !strings.HasSuffix(text, "data: [DONE]\n\n") || strings.Count(text, "data: ") != 6 {
		t.Fatalf("the client sees %q", text)
	}
	// The next turn has the answer in it.
	const more = `{"model":"m","stream":true,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"count to two, six"},{"role":"assistant","content":"one two six"},{"role":"user","content":"and on"}]}`
	w.post("/v1/chat/completions", more, "X-Dynamo-Session-ID", "s", "X-Dynamo-Parent-Session-ID", "p")
	if c := w.stop(); c.Requests != 2 || c.Recorded != 2 || c.Dropped() != 0 || c.Cut != 0 || c.Running != 0 {
		t.Fatalf("%+v", c)
	}
	events := records(t, w.dir, "c.*.jsonl.gz")
	if len(events) != 2 {
		t.Fatalf("%d records", len(events))
	}
	first, second := events[0].Request, events[1].Request
	switch {
	case first.ClientID != "r1" || first.ID == "" || first.ID == second.ID:
		t.Errorf("ids %q, %q, %q", first.ID, first.ClientID, second.ID)
	case *events[0].Context != agentContext{"s", "p"}:
		t.Errorf("session %+v", events[0].Context)
	case first.InputTokens != 40 || first.OutputTokens != 11 || *first.CachedTokens != 16 || *first.HitRate != 0.4:
		t.Errorf("tokens %+v", first)
	case first.Replay.InputLength != 25 || len(first.Replay.Input) != 4 || len(first.Replay.Completion) != 5:
		t.Errorf("replay %+v", first.Replay)
	case *first.TTFTMs < 4 || first.TotalMs < 14 || *first.MeanITLMs <= 0 || *first.TTFTMs > first.TotalMs:
		t.Errorf("times %v %v %v", *first.TTFTMs, *first.MeanITLMs, first.TotalMs)
	}
	// 25 tokens of the prompt and 11 of the answer: four whole blocks that the next turn begins with.
	for i := range 4 {
		if first.Replay.Completion[i] != second.Replay.Input[i] {
			t.Errorf("block %d is not the next turn's", i)
		}
	}
	if first.Replay.Completion[4] == second.Replay.Input[4] {
		t.Error("a partial block and a whole one have one hash")
	}
}

func TestEverythingPassesUnchanged(t *testing.T) {
	var asked *http.Request
	var askedBody string
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	server := func(w http.ResponseWriter, r *http.Request) {
		asked = r
		body, _ := io.ReadAll(r.Body)
		askedBody = string(body)
		w.Header().Add("X-Twice", "a")
		w.Header().Add("X-Twice", "b")
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, "list")
		case "/teapot/completions":
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, `{"error":{"message":"short and stout"}}`)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, packed(`{"choices":[{"index":0,"text":"secret answer"}]}`))
		}
	}
	w := newWorld(t, server, nil)
	body := packed(`{"model":"m","prompt":"Tell me a secret"}`)
	answer, text := w.post("/v1/completions?a=1;b=%zz&c", body, "Content-Encoding", "gzip", "Authorization", "Bearer key", "Accept-Encoding", "gzip", "X-Forwarded-For", "1.2.3.4", "User-Agent", "me")
	plain := packed(`{"choices":[{"index":0,"text":"secret answer"}]}`)
	switch {
	case askedBody != body, text != plain:
		t.Error("a body differs")
	case asked.Header.Get("Authorization") != "Bearer key" || asked.Header.Get("X-Forwarded-For") != "1.2.3.4" || asked.Header.Get("User-Agent") != "me" || asked.Header.Get("Accept-Encoding") != "gzip":
		t.Errorf("headers %v", asked.Header)
	case asked.URL.RawQuery != "a=1;b=%zz&c":
		t.Errorf("query %q", asked.URL.RawQuery)
	case fmt.Sprint(answer.Header["X-Twice"]) != "[a b]":
		t.Errorf("headers of the answer %v", answer.Header)
	}
	if answer, text := w.post("/teapot/completions", "{}"); answer.StatusCode != http.StatusTeapot || !strings.Contains(text, "stout") {
		t.Errorf("an error becomes %d %s", answer.StatusCode, text)
	}
	if _, text := w.post("/v1/models", ""); text != "list" {
		t.Errorf("another path answers %q", text)
	}
	if c := w.stop(); c.Requests != 2 || c.Other != 1 || c.Recorded != 1 || c.Alone != 1 || c.Failed != 1 || c.Dropped() != 0 {
		t.Errorf("%+v", c)
	}
	alone := records(t, w.dir, "c-alone.*.jsonl.gz")
	if len(alone) != 1 || alone[0].Context != nil || alone[0].Request.Replay.InputLength != len("Tell me a secret") || alone[0].Request.OutputTokens != len("secret answer") {
		t.Errorf("records %+v", alone)
	}
}

func TestChunksComeAtOnce(t *testing.T) {
	next := make(chan struct{})
	server := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	}
	w := newWorld(t, server, nil)
	answer, err := w.client.Post(w.front.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for range 3 { // each is read before the server is allowed to go on
		buf := make([]byte, 256)
		if n, err := answer.Body.Read(buf); n == 0 {
			t.Fatal(err)
		}
		next <- struct{}{}
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	if c := w.stop(); c.Recorded != 1 {
		t.Errorf("%+v", c)
	}
}

func TestAClientThatGoesAwayCancelsTheServer(t *testing.T) {
	cancelled := make(chan struct{})
	server := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(cancelled)
	}
	w := newWorld(t, server, nil)
	ctx, cancel := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.front.URL+"/v1/chat/completions", strings.NewReader(`{"messages":[{"role":"user","content":"hi"}]}`))
	answer, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = answer.Body.Read(make([]byte, 10))
	cancel()
	answer.Body.Close()
	select {
	case <-cancelled:
	case <-time.After(10 * time.Second):
		t.Fatal("the server does not hear of it")
	}
	if c := w.stop(); c.Recorded != 1 || c.Cut != 1 || c.Running != 0 {
		t.Errorf("%+v", c)
	}
}

func TestAServerThatDropsTheConnection(t *testing.T) {
	server := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w := newWorld(t, server, nil)
	answer, err := w.client.Post(w.front.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the client takes the answer for complete")
	}
	answer.Body.Close()
	if c := w.stop(); c.Recorded != 1 || c.Cut != 1 {
		t.Errorf("%+v", c)
	}
}

func TestNoServer(t *testing.T) {
	w := newWorld(t, chat(""), nil)
	w.back.Close()
	answer, text := w.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}]}`)
	var body struct {
		Error struct{ Message, Type string }
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || answer.StatusCode != http.StatusBadGateway || body.Error.Type != "upstream_error" {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if c := w.stop(); c.Failed != 1 || c.Unreachable != 1 || c.Recorded != 0 {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsNotRecordedIsCounted(t *testing.T) {
	ask := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}]}`
	for name, c := range map[string]struct {
		change func(*Options)
		ask    string
		count  func(Counts) int64
	}{
		"large":  {func(o *Options) { o.MaxBody = 500 }, ask, func(c Counts) int64 { return c.DroppedLarge }},
		"memory": {func(o *Options) { o.MaxMemory = 500 }, ask, func(c Counts) int64 { return c.DroppedMemory }},
		"unread": {nil, `{"messages":7}`, func(c Counts) int64 { return c.DroppedUnread }},
		"empty":  {nil, `{"messages":[{"role":"user","content":""}]}`, func(c Counts) int64 { return c.DroppedUnread }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, chat("", "word"), c.change)
			if answer, text := w.post("/v1/chat/completions", c.ask); answer.StatusCode != 200 || !strings.Contains(text, "word") {
				t.Errorf("the client sees %d %s", answer.StatusCode, text)
			}
			counts := w.stop()
			if c.count(counts) != 1 || counts.Dropped() != 1 || counts.Recorded != 0 {
				t.Errorf("%+v", counts)
			}
			if used := w.proxy.memory.used.Load(); used != 0 {
				t.Errorf("%d bytes are never given back", used)
			}
		})
	}
}

// TestManyClients lets clients come, read and go away, and checks that every request is counted once.
func TestManyClients(t *testing.T) {
	w := newWorld(t, chat("", "one ", "two ", "three ", "four "), nil)
	var all sync.WaitGroup
	for client := range 40 {
		all.Go(func() {
			for turn := range 4 {
				ctx, cancel := context.WithCancel(context.Background())
				body := fmt.Sprintf(`{"messages":[{"role":"user","content":"client %d, turn %d"}]}`, client, turn)
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.front.URL+"/v1/chat/completions", strings.NewReader(body))
				answer, err := w.client.Do(r)
				if err != nil {
					t.Error(err)
				} else {
					if client%4 == 0 {
						_, _ = answer.Body.Read(make([]byte, 100))
						cancel()
					}
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
	c := w.stop()
	if c.Requests != 160 || c.Recorded+c.Failed != 160 || c.Recorded < 120 || c.Dropped() != 0 || c.Running != 0 || c.Alone != c.Recorded {
		t.Errorf("%+v", c)
	}
	if lines := int64(strings.Count(trace(t, w.dir, "*"), "\n")); lines != c.Recorded {
		t.Errorf("%d lines of %d records", lines, c.Recorded)
	}
	if used := w.proxy.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes are never given back", used)
	}
}

// words are rare enough to be found by chance never.
var words = []string{"zanzibar", "quokka", "xylophone", "bergamot", "fjord-light", "secretword"}

func TestNoTextInTheTrace(t *testing.T) {
	server := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q,"reasoning":%q,"tool_calls":[{"function":{"name":%q,"arguments":%q}}]}}]}`, words[0], words[1], words[2], words[3])
	}
	w := newWorld(t, server, nil)
	ask, _ := json.Marshal(map[string]any{"model": "m", "user": words[4], "messages": []any{map[string]any{"role": "user", "content": strings.Join(words, " ")}}, "tools": []any{words[5]}})
	w.post("/v1/chat/completions", string(ask), "Authorization", words[5], "X-Dynamo-Session-ID", "s")
	w.stop()
	text := trace(t, w.dir, "*")
	if !strings.Contains(text, `"session_id":"s"`) {
		t.Fatal("nothing is recorded")
	}
	for _, word := range words {
		if strings.Contains(text, word) {
			t.Errorf("%s is in the trace", word)
		}
	}
}

func TestSalts(t *testing.T) {
	hashesWith := func(salt string) []uint64 {
		w := newWorld(t, chat("", "word"), func(o *Options) { o.Salt = []byte(salt) })
		w.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"some text of more than a block"}]}`)
		w.stop()
		return records(t, w.dir, "c-alone.*")[0].Request.Replay.Input
	}
	none, a, again, b := hashesWith(""), hashesWith("a"), hashesWith("a"), hashesWith("b")
	for i := range none {
		if a[i] != again[i] {
			t.Errorf("block %d: one salt, two hashes", i)
		}
		if none[i] == a[i] || a[i] == b[i] || none[i] == b[i] {
			t.Errorf("block %d: two salts, one hash", i)
		}
	}
}

func TestTheTraceIsRead(t *testing.T) {
	w := newWorld(t, chat("", "word ", "and word"), nil)
	long := strings.Repeat("what all begin with. ", 10)
	for turn := range 3 {
		for s := range 4 {
			ask := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%s session %d, %s"}]}`, long, s, strings.Repeat("more ", 10*turn))
			header := []string{"X-Dynamo-Session-ID", fmt.Sprint("s", s)}
			if s > 0 {
				header = append(header, "X-Dynamo-Parent-Session-ID", "s0")
			}
			w.post("/v1/chat/completions", ask, header...)
		}
	}
	w.stop()
	load, err := workload.Spec{Trace: &workload.TraceSpec{Format: "auto", Path: filepath.Join(w.dir, "c.000000.jsonl.gz"), Strict: true}}.Load(context.Background(), workload.Source{})
	if err != nil {
		t.Fatal(err)
	}
	if load.Format != workload.FormatDynamo || load.Requests() != 12 || load.Sessions() != 4 || len(load.Warnings) > 0 || load.Graph == nil {
		t.Errorf("%s: %d requests in %d sessions, warnings %q", load.Format, load.Requests(), load.Sessions(), load.Warnings)
	}
}

// batch answers each prompt with so many answers of its own, in a stream whose chunks alternate or as a whole.
func batch(prompts, answers int, usage string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"stream":true`) {
			var choices []string
			for i := range prompts * answers {
				choices = append(choices, fmt.Sprintf(`{"index":%d,"text":%q}`, i, strings.Repeat(fmt.Sprint(i), i+1)))
			}
			fmt.Fprintf(w, `{"choices":[%s],"usage":%s}`, strings.Join(choices, ","), usage)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for round := range prompts * answers {
			for i := round; i < prompts*answers; i++ {
				fmt.Fprintf(w, "data: {\"choices\":[{\"index\":%d,\"text\":\"%d\"}]}\n\n", i, i)
			}
			w.(http.Flusher).Flush()
			time.Sleep(3 * time.Millisecond)
		}
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", usage)
	}
}

// Each prompt of a request with several is a record, with the answers to it.
func TestSeveralPrompts(t *testing.T) {
	const usage = `{"prompt_tokens":60,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":8}}`
	for name, ask := range map[string]string{
		"texts":     `{"model":"m","prompt":["what a beginning, one","what a beginning, number two","three"]}`,
		"stream":    `{"model":"m","stream":true,"prompt":["what a beginning, one","what a beginning, number two","three"]}`,
		"token ids": `{"model":"m","prompt":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21],[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28],[7,7,7,7,7]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, batch(3, 1, usage), nil)
			w.post("/v1/completions", ask, "X-Request-ID", "r", "X-Dynamo-Session-ID", "s", "X-Dynamo-Parent-Session-ID", "p")
			w.post("/v1/completions", ask)
			if c := w.stop(); c.Requests != 2 || c.Further != 4 || c.Recorded != 6 || c.Alone != 3 || c.Failed+c.Dropped()+c.Cut != 0 {
				t.Fatalf("%+v", c)
			}
			alone, events := records(t, w.dir, "c-alone.*"), records(t, w.dir, "c.*")
			if len(alone) != 3 || len(events) != 3 {
				t.Fatalf("%d and %d records", len(alone), len(events))
			}
			for i, length := range []int{21, 28, 5} {
				r := events[i].Request
				if r.ClientID != fmt.Sprintf("r-%d", i) || !strings.HasSuffix(r.ID, fmt.Sprintf("-%d", i)) || alone[i].Request.ClientID != "" || alone[i].Context != nil {
					t.Errorf("prompt %d is named %q, %q", i, r.ID, r.ClientID)
				}
				if r.Replay.InputLength != length || r.OutputTokens != i+1 || len(r.Replay.Completion) != (length+i+1+7)/8 || r.CachedTokens != nil {
					t.Errorf("prompt %d: %+v", i, r)
				}
				if want := (agentContext{"s/" + r.ID, "s"}); i > 0 && *events[i].Context != want {
					t.Errorf("prompt %d is of session %+v", i, events[i].Context)
				}
				if streamed := r.TTFTMs != nil; streamed != (name == "stream") || streamed && i > 0 && *r.TTFTMs > r.TotalMs {
					t.Errorf("prompt %d: TTFT %v", i, r.TTFTMs)
				}
			}
			if *events[0].Context != (agentContext{"s", "p"}) {
				t.Errorf("the first prompt is of session %+v", events[0].Context)
			}
			if in := events[0].Request.InputTokens + events[1].Request.InputTokens + events[2].Request.InputTokens; in != 60 {
				t.Errorf("%d prompt tokens, and the server counted 60", in)
			}
			a, b := events[0].Request.Replay.Input, events[1].Request.Replay.Input
			if a[0] != b[0] || a[1] != b[1] && name == "texts" || a[2] == b[2] {
				t.Errorf("equal beginnings have other hashes, or other ones equal: %v, %v", a, b)
			}
		})
	}
}

// Of several answers to each of several prompts the record of a prompt has all of its own.
func TestSeveralPromptsAndAnswers(t *testing.T) {
	w := newWorld(t, batch(2, 2, "null"), nil)
	w.post("/v1/completions", `{"prompt":["one","two"],"n":2}`)
	w.stop()
	events := records(t, w.dir, "c-alone.*")
	if len(events) != 2 || events[0].Request.OutputTokens != 1+2 || events[1].Request.OutputTokens != 3+4 || events[0].Request.Replay.Completion != nil {
		t.Errorf("%+v", events)
	}
}

// A prompt to which nothing was answered counts as failed, and an empty one makes the request unreadable, and is named.
func TestPromptsWithoutText(t *testing.T) {
	var warned error
	server := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, `{"choices":[{"index":0,"text":"a"},{"index":1,"text":""}]}`)
	}
	w := newWorld(t, server, func(o *Options) { o.Warn = func(err error) { warned = err } })
	w.post("/v1/completions", `{"prompt":["one","two"]}`)
	w.post("/v1/completions", `{"prompt":["one",""]}`)
	if c := w.stop(); c.Requests != 2 || c.Further != 1 || c.Recorded != 1 || c.Failed != 1 || c.DroppedUnread != 1 {
		t.Errorf("%+v", c)
	}
	if warned == nil || !strings.Contains(warned.Error(), "prompt 1: the prompt is empty") {
		t.Errorf("%v", warned)
	}
}

// The prompts of a request in a session are sent together again, and the next turn waits for all of them.
func TestSeveralPromptsAreReadAsOneTurn(t *testing.T) {
	w := newWorld(t, batch(3, 1, "null"), nil)
	for turn := range 2 {
		ask := fmt.Sprintf(`{"model":"m","stream":true,"prompt":["turn %d, one","turn %d, two","turn %d, three"]}`, turn, turn, turn)
		w.post("/v1/completions", ask, "X-Dynamo-Session-ID", "s")
		time.Sleep(5 * time.Millisecond)
	}
	w.stop()
	load, err := workload.Spec{Trace: &workload.TraceSpec{Format: "auto", Path: w.dir, Strict: true}}.Load(context.Background(), workload.Source{})
	if err != nil {
		t.Fatal(err)
	}
	if load.Requests() != 6 || load.Sessions() != 5 || len(load.Warnings) > 0 || load.Graph == nil {
		t.Fatalf("%d requests in %d sessions, warnings %q", load.Requests(), load.Sessions(), load.Warnings)
	}
	cfg := simcore.DefaultConfig()
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 100, 20
	cfg.Deployment.Workers = 3
	arrivals, ends := map[int][]float64{}, map[int][]float64{}
	if _, err := simcore.Run(context.Background(), cfg, load, simcore.Options{Records: func(r simcore.RequestRecord) {
		turn := 0
		if r.Life.ArrivalMs > 1 {
			turn = 1
		}
		arrivals[turn], ends[turn] = append(arrivals[turn], r.Life.ArrivalMs), append(ends[turn], r.Life.LastTokenMs)
	}}); err != nil {
		t.Fatal(err)
	}
	if len(arrivals[0]) != 3 || len(arrivals[1]) != 3 || slices.Min(arrivals[1]) < slices.Max(ends[0]) || slices.Max(arrivals[1])-slices.Min(arrivals[1]) > 1 {
		t.Errorf("prompts arrive at %v, and end at %v", arrivals, ends)
	}
}

// A server that answers before the end of the request is known to the proxy is heard to its end.
func TestAServerThatAnswersAtOnce(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"x\"}]}\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(2 * time.Millisecond)
		}
	}, nil)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 100 {
				answer, err := w.client.Post(w.front.URL+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"hi"}`))
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err != nil || strings.Count(string(text), "data: ") != 3 {
					t.Errorf("the client sees %q: %v", text, err)
					return
				}
			}
		})
	}
	clients.Wait()
	if c := w.stop(); c.Recorded != 800 || c.Cut != 0 {
		t.Errorf("%+v", c)
	}
}
