package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChunks(t *testing.T) {
	none := ChunkUsage{-1, -1, -1}
	for _, c := range []struct {
		name, data string
		want       Chunk
	}{
		{"role", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, Chunk{}},
		{"content", `{"choices":[{"delta":{"content":"x"}}]}`, Chunk{Text: true}},
		{"space", `{"choices":[{"delta":{"content":" "}}]}`, Chunk{Text: true}},
		{"null content", `{"choices":[{"delta":{"content":null}}]}`, Chunk{}},
		{"reasoning", `{"choices":[{"delta":{"content":null,"reasoning":"hm"}}]}`, Chunk{Text: true}},
		{"reasoning_content", `{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`, Chunk{Text: true}},
		{"tool call", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`, Chunk{Text: true}},
		{"no tool call", `{"choices":[{"delta":{"tool_calls":[ ]}}]}`, Chunk{}},
		{"second choice", `{"choices":[{"delta":{}},{"delta":{"content":"x"}}]}`, Chunk{Text: true}},
		{"completion", `{"choices":[{"text":"x","finish_reason":"length"}]}`, Chunk{Text: true, Finished: true}},
		{"whole answer", `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`,
			Chunk{Text: true, Finished: true, HasUsage: true, Usage: ChunkUsage{5, 7, -1}}},
		{"usage", `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"prompt_tokens_details":{"audio_tokens":null,"cached_tokens":4}}}`,
			Chunk{HasUsage: true, Usage: ChunkUsage{5, 7, 4}}},
		{"null usage", `{"choices":[],"usage":null}`, Chunk{}},
		{"null details", `{"usage":{"prompt_tokens":null,"prompt_tokens_details":null}}`, Chunk{HasUsage: true, Usage: none}},
		{"counts too large for records", `{"usage":{"prompt_tokens":2147483648,"completion_tokens":999999999999999}}`, Chunk{HasUsage: true, Usage: none}},
		{"counts that are none", `{"usage":{"prompt_tokens":-5,"completion_tokens":1e300}}`, Chunk{HasUsage: true, Usage: none}},
		{"error", `{"error":{"message":"out of memory","type":"server_error"}}`, Chunk{Failed: true, Message: "out of memory"}},
		{"plain error", `{"error":"out of memory"}`, Chunk{Failed: true, Message: "out of memory"}},
		{"null error", `{"error":null,"choices":[{"delta":{"content":"x"}}]}`, Chunk{Text: true}},
		{"older error", `{"object":"error","message":"no","code":400}`, Chunk{Failed: true, Message: "no"}},
		{"null choices", `{"choices":null}`, Chunk{}},
		{"escapes", `{"a\"b":"c\\","choices":[{"delta":{"content":"\""}}]}`, Chunk{Text: true}},
	} {
		got, err := ParseChunk([]byte(c.data))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: chunk differs (-want +got):\n%s\n%v", c.name, diff, err)
		}
	}
}

func TestChunksThatAreNone(t *testing.T) {
	for _, data := range []string{"", "{", "[]", "hello", `{"choices":[{"delta":{"content":"x"}}`, `{"a":"\`, `{"a":1}}`, strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)} {
		if c, err := ParseChunk([]byte(data)); err != ErrNotJSON {
			t.Errorf("%.30q: got %+v, %v", data, c, err)
		}
	}
}

// What the scanner makes of a chunk must be what the types make of it.
func FuzzChunk(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		`{"choices":[{"text":"","finish_reason":null}],"usage":null,"error":{"message":"m"}}`, `{"a":[1,-2.5e3,true,false,null,{"b":"\u00e9\""}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ParseChunk(data)
		var want Completion
		if json.Unmarshal(data, &want) != nil || data[0] == 'n' {
			return
		}
		if err != nil {
			if nested := strings.Count(string(data), "[") + strings.Count(string(data), "{"); nested <= maxDepth {
				t.Fatalf("%q is a completion: %v", data, err)
			}
			return
		}
		if strings.ContainsAny(string(data), `\ABCDEFGHIJKLMNOPQRSTUVWXYZ`) || repeats(data) {
			return // encoding/json knows keys by other spellings, and takes the last of several
		}
		text := false
		for _, c := range want.Choices {
			for _, d := range []*Delta{c.Delta, c.Message} {
				text = text || d != nil && (d.Content != nil && *d.Content != "" || d.Reasoning != "" || d.ReasoningContent != "")
			}
			text = text || c.Text != nil && *c.Text != ""
		}
		if text && !got.Text {
			t.Errorf("%q has text", data)
		}
		if want.Usage != nil && want.Usage.PromptTokens > 0 && want.Usage.PromptTokens < 1e9 && got.Usage.Prompt != want.Usage.PromptTokens {
			t.Errorf("%q: got %d prompt tokens, want %d", data, got.Usage.Prompt, want.Usage.PromptTokens)
		}
	})
}

// repeats reports whether a key may come more than once.
func repeats(data []byte) bool {
	for _, key := range []string{"usage", "prompt_tokens", "choices", "delta", "message", "text", "content"} {
		if strings.Count(string(data), `"`+key+`"`) > 1 {
			return true
		}
	}
	return false
}
