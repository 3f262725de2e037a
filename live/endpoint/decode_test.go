package endpoint

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/servegrid/servegrid/live/tokens"
)

// Whatever the body is, it becomes a request with a sound plan or a refusal with a status of the client's.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":5}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url"}]},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f"}}]}],"tools":[{}]}`,
		`{"prompt":"hi","min_tokens":3,"stream_options":{"include_usage":true}}`, `{"prompt":[1,2,3]}`, `{"prompt":[[1],[2]]}`, `{"prompt":["a"]}`, `{"n":-1}`, `{"prompt":"a","logprobs":0,"echo":true,"best_of":2}`, `{"prompt":["a","b"],"n":2,"best_of":3}`, `{"prompt":[[1,2],[]],"n":0}`, `{"prompt":"a","nvext":{"agent_hints":{"priority":-1,"policy_class":"x"}}}`, `[]`, `nul`, "{\"prompt\":\"\xff\"}",
	} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	tokenizer, err := tokens.Parse("chars:4")
	if err != nil {
		f.Fatal(err)
	}
	s, err := New(Options{Deployment: newFake(0, 0), Config: testConfig(), Tokenizer: tokenizer, ReasoningShare: 0.6})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, body []byte, chat bool) {
		r, refused := decode(body, chat)
		var plans []answerPlan
		if refused == nil {
			plans, refused = s.plan(r)
		}
		if refused != nil {
			if refused.status != 400 || refused.body.Message == "" || !json.Valid(refused.event()) {
				t.Fatalf("%d %+v", refused.status, refused.body)
			}
			return
		}
		if len(plans) == 0 || len(plans)%r.made > 0 || r.sent > r.made {
			t.Fatalf("%d answers, %d to each prompt, of which %d are sent", len(plans), r.made, r.sent)
		}
		for i, p := range plans {
			if p.thoughts > len(p.text) || !chat && p.thoughts > 0 || p.repeated != (i%r.made > 0) {
				t.Fatalf("answer %d: %d thoughts of %d tokens, repeated %v", i, p.thoughts, len(p.text), p.repeated)
			}
			if n := p.input + len(p.text); p.input < 1 || len(p.text) < 1 || n > s.limit || len(p.blocks) != n/s.block {
				t.Fatalf("%d input and %d output tokens with %d blocks", p.input, len(p.text), len(p.blocks))
			}
		}
	})
}

// What is escaped is JSON, and is the text again but for bytes that are no UTF-8.
func FuzzAppendEscaped(f *testing.F) {
	for _, text := range []string{"", `a"b\c`, "\x00\x1f\x7f\n\r\t", "ü€😀", "\xff\xc3", "</script>\u2028"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		quoted := append(appendEscaped([]byte{'"'}, text), '"')
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Fatalf("%q: %v", quoted, err)
		}
		if want := strings.ToValidUTF8(string(text), "\ufffd"); utf8.Valid(text) && got != want {
			t.Fatalf("%q became %q", text, got)
		}
		if !bytes.Equal(quoted, append(appendEscaped([]byte{'"'}, string(text)), '"')) {
			t.Fatal("texts and bytes are escaped differently")
		}
	})
}

func TestLengths(t *testing.T) {
	for text, want := range map[string]Lengths{"256": {256, 256}, "64-1024": {64, 1024}} {
		if got, err := ParseLengths(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-5", "5-", "9-3", "a", "1-99999999999"} {
		if got, err := ParseLengths(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	seen := map[int]bool{}
	for seed := range uint64(200) {
		n := Lengths{3, 6}.draw(seed)
		if n < 3 || n > 6 || n != (Lengths{3, 6}).draw(seed) {
			t.Fatalf("seed %d gives %d", seed, n)
		}
		seen[n] = true
	}
	if len(seen) != 4 {
		t.Errorf("drawn are %v", seen)
	}
}
