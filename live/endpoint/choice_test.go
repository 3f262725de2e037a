package endpoint

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/servegrid/servegrid/live/endpoint/fault"
	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/simcore/engine"
)

// Several answers, to several prompts, are as many requests to the deployment. Whole answers and streams say the same, in the
// places in which clients look for them, and the usage counts each prompt once.
func TestSeveralChoices(t *testing.T) {
	prompt := strings.Repeat("p", 40)
	for _, c := range []struct {
		name, path, body                       string
		requests, choices, prompts, completion int
		shared                                 [][]int // requests whose prompts have the same blocks
	}{
		{"n", "/v1/chat/completions", `"messages":[{"role":"user","content":"` + prompt + `"}],"n":3,`, 3, 3, 40, 60, [][]int{{0, 1, 2}}},
		{"texts", "/v1/completions", `"prompt":["` + prompt + `","b"],`, 2, 2, 41, 40, nil},
		{"token ids", "/v1/completions", `"prompt":[[1,2,3],[4],[5,6]],`, 3, 3, 6, 60, nil},
		{"texts and n", "/v1/completions", `"prompt":["` + prompt + `","` + strings.Repeat("q", 33) + `"],"n":2,`, 4, 4, 73, 80, [][]int{{0, 1}, {2, 3}}},
		{"best_of", "/v1/completions", `"prompt":["a","bc"],"n":2,"best_of":3,`, 6, 4, 3, 120, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			served := make(chan string, 100)
			fake := newFake(time.Millisecond, time.Millisecond)
			w := newWorld(t, fake, func(o *Options) { o.Served = func(s Served) { served <- s.ID } })
			w.header.Set("X-Request-ID", "r")
			body := `{` + c.body + `"max_tokens":20,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"stream":`
			status, whole := w.whole(c.path, body+`false}`)
			if status != http.StatusOK || len(whole.Choices) != c.choices || len(fake.requests) != c.requests {
				t.Fatalf("%d, %d choices, %d requests: %+v", status, len(whole.Choices), len(fake.requests), whole.Error)
			}
			if u := whole.Usage; u.PromptTokens != c.prompts || u.CompletionTokens != c.completion || u.TotalTokens != c.prompts+c.completion {
				t.Errorf("the usage is %+v", u)
			}
			for _, same := range c.shared {
				first := fake.requests[same[0]]
				for _, i := range same[1:] {
					if r := fake.requests[i]; r.Input != first.Input || !slices.Equal(r.Blocks[:r.Input/16], first.Blocks[:r.Input/16]) || r.Blocks[r.Input/16] == first.Blocks[r.Input/16] {
						t.Errorf("requests %d and %d: the prompts differ, or the answers do not", same[0], i)
					}
				}
			}
			texts := map[string]bool{}
			for i, choice := range whole.Choices {
				said := said(choice)
				texts[said] = true
				if choice.Index != i || len(said) != 20 || choice.FinishReason == nil || *choice.FinishReason != "length" {
					t.Errorf("choice %d: %+v says %q", i, choice, said)
				}
			}
			if len(texts) != c.choices {
				t.Errorf("%d different answers of %d", len(texts), c.choices)
			}
			names := map[string]bool{}
			for range c.requests {
				names[<-served] = true
			}
			if len(names) != c.requests || !names["r-0"] {
				t.Errorf("the requests are named %v", names)
			}
			if c.requests != c.choices { // cannot be streamed
				return
			}
			chunks, done, broken := events(t, w.post(c.path, body+`true}`))
			if !done || broken != nil {
				t.Fatalf("done %v, %v", done, broken)
			}
			streamed, ended := make([]string, c.choices), make([]bool, c.choices)
			for i, chunk := range chunks[:len(chunks)-1] {
				choice := chunk.Choices[0]
				if ended[choice.Index] {
					t.Errorf("chunk %d: choice %d has ended", i, choice.Index)
				}
				streamed[choice.Index] += said(choice)
				ended[choice.Index] = choice.FinishReason != nil
				if chunk.Usage.CompletionTokens != len(streamed[choice.Index]) {
					t.Errorf("chunk %d: usage %+v after %q", i, chunk.Usage, streamed[choice.Index])
				}
			}
			for i, choice := range whole.Choices {
				if streamed[i] != said(choice) || !ended[i] {
					t.Errorf("choice %d is streamed as %q, not %q, ended %v", i, streamed[i], said(choice), ended[i])
				}
			}
			if last := chunks[len(chunks)-1]; len(last.Choices) != 0 || *last.Usage.PromptTokensDetails != *whole.Usage.PromptTokensDetails || last.Usage.TotalTokens != whole.Usage.TotalTokens {
				t.Errorf("the usage of the stream is %+v, of the whole answer %+v", last.Usage, whole.Usage)
			}
		})
	}
}

// said is the text of a choice, or of a part of it.
func said(c openai.Choice) string {
	switch {
	case c.Text != nil:
		return *c.Text
	case c.Message != nil:
		return *c.Message.Content
	case c.Delta != nil && c.Delta.Content != nil:
		return *c.Delta.Content
	}
	return ""
}

// The first answer to a prompt says what of it was in the cache; what the others find there is its own.
func TestUsageOfSeveralChoices(t *testing.T) {
	w := newWorld(t, newFake(0, 0), func(o *Options) { o.ReasoningShare = 0.3 })
	_, c := w.whole("/v1/chat/completions", `{"messages":[{"role":"user","content":"0123456789"}],"n":4,"max_tokens":10}`)
	if c.Usage.PromptTokensDetails.CachedTokens != 5 || c.Usage.CompletionTokensDetails.ReasoningTokens != 12 {
		t.Errorf("%+v %+v", c.Usage.PromptTokensDetails, c.Usage.CompletionTokensDetails)
	}
	_, c = w.whole("/v1/completions", `{"prompt":["01234567","0123"],"n":2,"max_tokens":10}`)
	if c.Usage.PromptTokensDetails.CachedTokens != 4+2 || c.Usage.CompletionTokens != 40 {
		t.Errorf("%+v", c.Usage)
	}
}

// A client that goes away, or whose connection is dropped, cancels all choices, and the end of each is heard of.
func TestAllChoicesAreCancelled(t *testing.T) {
	drop, err := fault.Parse("drop,after_tokens=5")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rules  []fault.Rule
		stream string
	}{"gone, stream": {nil, "true"}, "gone, whole": {nil, "false"}, "dropped, stream": {[]fault.Rule{drop}, "true"}, "dropped, whole": {[]fault.Rule{drop}, "false"}} {
		t.Run(name, func(t *testing.T) {
			served := make(chan Served, 10)
			w := newWorld(t, newFake(0, 10*time.Millisecond), func(o *Options) {
				o.Served, o.Faults = func(s Served) { served <- s }, fault.NewInjector(c.rules, 1)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/completions", strings.NewReader(`{"prompt":["a","b"],"n":3,"max_tokens":1500,"stream":`+c.stream+`}`))
			if c.rules == nil {
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			if resp, err := w.client.Do(req); err == nil {
				if _, _, broken := events(t, resp); broken == nil {
					t.Error("the stream does not break")
				}
				_ = resp.Body.Close()
			}
			for range 6 {
				select {
				case s := <-served:
					if s.Record.Life.State == engine.Completed {
						t.Errorf("%s goes on", s.ID)
					}
				case <-time.After(5 * time.Second):
					t.Fatal("a request goes on")
				}
			}
			if n := w.fake.cancelled.Load(); n != 6 {
				t.Errorf("%d cancelled", n)
			}
		})
	}
}

// Faults find each choice of a stream, whose choices do not wait for each other.
func TestFaultsOfSeveralChoices(t *testing.T) {
	for rules, check := range map[string]func(chunks []openai.Completion, done bool, broken error) bool{
		"error_event,after_tokens=5": func(chunks []openai.Completion, done bool, _ error) bool {
			return done && chunks[len(chunks)-1].Error != nil && len(text(chunks)) <= 3*6
		},
		"malformed_sse,after_tokens=5": func(_ []openai.Completion, done bool, broken error) bool { return done && broken != nil },
		"no_done": func(chunks []openai.Completion, done bool, broken error) bool {
			return !done && broken == nil && len(text(chunks)) == 3*30
		},
		"slow=3x,after_tokens=4": func(chunks []openai.Completion, done bool, _ error) bool { return done && len(text(chunks)) == 3*30 },
	} {
		rule, err := fault.Parse(rules)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, newFake(time.Millisecond, time.Millisecond), func(o *Options) { o.Faults = fault.NewInjector([]fault.Rule{rule}, 1) })
		chunks, done, broken := events(t, w.post("/v1/completions", `{"prompt":"abc","n":3,"max_tokens":30,"stream":true}`))
		if !check(chunks, done, broken) {
			t.Errorf("%s: %d chunks with %d tokens, done %v, %v", rules, len(chunks), len(text(chunks)), done, broken)
		}
	}
}
