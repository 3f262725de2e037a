package tokens

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/live/openai"
)

// modelFile writes the tokenizer.json of a sample of package huggingface.
func modelFile(tb testing.TB, name string) string {
	tb.Helper()
	file, err := os.Open(filepath.Join("huggingface", "testdata", name+".json.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(plain)
	if err != nil {
		tb.Fatal(err)
	}
	var sample struct{ Tokenizer json.RawMessage }
	if err := json.Unmarshal(data, &sample); err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, sample.Tokenizer, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func parsed(tb testing.TB, name string) Tokenizer {
	tb.Helper()
	t, err := Parse(name)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// tokenizers are all kinds that there are.
func tokenizers(tb testing.TB) []Tokenizer {
	all := []Tokenizer{parsed(tb, "bytes"), parsed(tb, "chars:2"), parsed(tb, "chars:3"), parsed(tb, Default)}
	for _, name := range []string{"llama3", "wordpiece", "unigram", "sentencepiece"} {
		all = append(all, parsed(tb, modelFile(tb, name)))
	}
	return all
}

func TestParse(t *testing.T) {
	for _, name := range []string{"bytes", "chars:2", "chars:4"} {
		if got := parsed(t, name).Name(); got != name {
			t.Errorf("%s is named %s", name, got)
		}
	}
	for name, want := range map[string]string{
		"": "empty", "chars:0": "from 1 to 4", "chars:5": "from 1 to 4", "chars:x": "from 1 to 4", "no/such/file": "no such file", "words": "no such file",
	} {
		if _, err := Parse(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	few := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(few, []byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(few); err == nil || !strings.Contains(err.Error(), "no words") {
		t.Errorf("a tokenizer without words: %v", err)
	}
}

func TestFixedTokens(t *testing.T) {
	for _, c := range []struct {
		name, text string
		tokens     int
	}{
		{"bytes", "abcde", 5}, {"chars:2", "abcde", 3}, {"chars:4", "abcd", 1}, {"chars:4", "abcde", 2}, {"chars:4", "é漢", 2}, {"chars:4", "", 0},
	} {
		tokenizer := parsed(t, c.name)
		tokens := tokenizer.AppendTokens(nil, c.text)
		if len(tokens) != c.tokens || Text(tokenizer, tokens) != c.text {
			t.Errorf("%s: %q becomes %d tokens, and %q again", c.name, c.text, len(tokens), Text(tokenizer, tokens))
		}
	}
	if tokens := parsed(t, "chars:4").AppendTokens(nil, "abcde"); tokens[0] != 'a'|'b'<<8|'c'<<16|'d'<<24 {
		t.Errorf("tokens are %x", tokens)
	}
}

// TestFill checks what makes prompts exact: filled texts have their tokens again, wherever they are cut and however they are put
// together.
func TestFill(t *testing.T) {
	for _, tokenizer := range tokenizers(t) {
		t.Run(filepath.Base(tokenizer.Name()), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var all []uint32
				var text strings.Builder
				for range rapid.IntRange(1, 6).Draw(t, "fills") {
					seed, n := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 200).Draw(t, "n")
					filled := tokenizer.Fill(seed, n)
					if len(filled) != n {
						t.Fatalf("%d tokens, not %d", len(filled), n)
					}
					fewer := rapid.IntRange(0, n).Draw(t, "fewer")
					if !slices.Equal(tokenizer.Fill(seed, fewer), filled[:fewer]) {
						t.Fatal("fewer tokens are not the beginning of more")
					}
					all = append(all, filled...)
					text.WriteString(Text(tokenizer, filled[:fewer]))
					text.WriteString(Text(tokenizer, filled[fewer:]))
				}
				if got := tokenizer.AppendTokens(nil, text.String()); !slices.Equal(got, all) {
					t.Fatalf("%d tokens become %d others", len(all), len(got))
				}
				if encoded, _ := json.Marshal(text.String()); len(encoded) != text.Len()+2 {
					t.Fatalf("JSON writes %q otherwise", text.String())
				}
			})
		})
	}
}

func TestFillsDiffer(t *testing.T) {
	for _, tokenizer := range tokenizers(t) {
		seen := map[string]bool{}
		for seed := range uint64(1000) {
			seen[Text(tokenizer, tokenizer.Fill(seed, 16))] = true
		}
		if len(seen) != 1000 {
			t.Errorf("%s: 1000 seeds give %d texts", tokenizer.Name(), len(seen))
		}
	}
}

func TestHashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 700).Draw(t, "size")
		a := rapid.SliceOfN(rapid.Uint32Range(0, 3), 0, 40).Draw(t, "a")
		a = slices.Repeat(a, size/16+1)
		hashes := Hashes(a, size)
		if len(hashes) != len(a)/size {
			t.Fatalf("%d tokens have %d hashes", len(a), len(hashes))
		}
		all := SequenceHashes(a, size)
		if len(all) != (len(a)+size-1)/size || !slices.Equal(all[:len(hashes)], hashes) {
			t.Fatalf("%d tokens have %d hashes, or others", len(a), len(all))
		}
		if len(a) == 0 {
			return
		}
		known := rapid.IntRange(0, len(hashes)).Draw(t, "known")
		if more := AppendHashes(slices.Clone(hashes[:known]), a[known*size:], size); !slices.Equal(more, hashes) {
			t.Fatalf("behind %d of %d hashes there are others", known, len(hashes))
		}
		// Another token changes its block and all behind it, and nothing before.
		at := rapid.IntRange(0, len(a)-1).Draw(t, "at")
		b := slices.Clone(a)
		b[at] += 7
		for i, h := range SequenceHashes(b, size) {
			if (h == all[i]) != (i < at/size) {
				t.Fatalf("token %d of %d changes block %d of %d tokens: %v", at, len(a), i, size, h != all[i])
			}
		}
	})
	if equal := Hashes([]uint32{5, 5, 5, 5}, 2); equal[0] == equal[1] {
		t.Error("a hash does not stand for what is before its block")
	}
	// What captures have recorded must stay what it is.
	if got := SequenceHashes([]uint32{1, 2, 3}, 2); !slices.Equal(got, []uint64{0x389e2c8892d5450, 0x4ab105df551e2ce0}) {
		t.Errorf("hashes are %#x", got)
	}
}

func TestNothingIsAllocatedButSlices(t *testing.T) {
	tokenizer, text := parsed(t, Default), strings.Repeat("some text ", 1000)
	tokens, hashes := tokenizer.AppendTokens(nil, text), make([]uint64, 0, 1000)
	if n := testing.AllocsPerRun(10, func() {
		tokens = tokenizer.AppendTokens(tokens[:0], text)
		hashes = AppendHashes(hashes[:0], tokens, 16)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

func request(tb testing.TB, body string) *openai.Request {
	tb.Helper()
	var r openai.Request
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		tb.Fatal(err)
	}
	return &r
}

func TestConversations(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"}]}`, "system:a|user:b"},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`, "user:ab"},
		{`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`, "assistant:f{}"},
		{`{"tools":[{"type":"function"}],"messages":[{"role":"user","content":"a"}]}`, `system:[{"type":"function"}]|user:a`},
		{`{"messages":[{"role":"user","content":7}]}`, "error: messages[0].content: must be a text"},
		{`{"messages":[{"role":"user","content":"a"},{"role":"user","content":[7]}]}`, "error: messages[1].content: part 0 must be an object"},
		{`{"messages":[{"role":"assistant","tool_calls":{}}]}`, "error: messages[0].tool_calls must be a list"},
	} {
		messages, err := Conversation(request(t, c.body))
		var got []string
		for _, m := range messages {
			got = append(got, m.Role+":"+m.Text)
		}
		text := strings.Join(got, "|")
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != c.want && !(err != nil && strings.HasPrefix(text, c.want)) {
			t.Errorf("%s is %s, not %s", c.body, text, c.want)
		}
	}
	image := func(url string) string {
		messages, err := Conversation(request(t, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+url+`"}}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return messages[0].Text
	}
	if a := image("a"); a != image("a") || a == image("b") || !strings.HasPrefix(a, "[image_url ") {
		t.Errorf("an image is %q", a)
	}
}

func TestTokensOfRequests(t *testing.T) {
	tokenizer := parsed(t, "bytes")
	for _, c := range []struct {
		body   string
		tokens []uint32
		ends   []int
		failed string
	}{
		{`{"prompt":[7,8]}`, []uint32{7, 8}, []int{3}, ""},
		{`{"prompt":[[7,8]]}`, []uint32{7, 8}, []int{3}, ""},
		{`{"prompt":"ab"}`, []uint32{'a', 'b'}, []int{3}, ""},
		{`{"prompt":["ab"]}`, []uint32{'a', 'b'}, []int{3}, ""},
		{`{"prompt":["ab","","c"]}`, []uint32{'a', 'b', 'c'}, []int{3, 3, 4}, ""},
		{`{"prompt":[[7],[8,9],[]]}`, []uint32{7, 8, 9}, []int{2, 4, 4}, ""},
		{`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, []uint32{'a', 'b'}, []int{3}, ""},
		{`{}`, nil, nil, "there are no messages and no prompt"},
		{`{"prompt":null}`, nil, nil, "there are no messages and no prompt"},
		{`{"prompt":[-1]}`, nil, nil, "prompt must be"},
		{`{"prompt":[7,null]}`, nil, nil, "prompt must be"},
		{`{"prompt":[[7],null]}`, nil, nil, "prompt must be"},
		{`{"prompt":[[7,null]]}`, nil, nil, "prompt must be"},
		{`{"prompt":[]}`, nil, nil, "prompt must be"},
		{`{"prompt":7}`, nil, nil, "prompt must be"},
		{`{"prompt":["a",7]}`, nil, nil, "prompt must be"},
		{`{"prompt":[["a"]]}`, nil, nil, "prompt must be"},
		{`{"messages":[{"role":"user","content":7}]}`, nil, nil, "messages[0].content"},
	} {
		got, ends, err := AppendPrompts(tokenizer, []uint32{1}, request(t, c.body))
		if c.failed != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.failed) {
				t.Errorf("%s: %v, not %s", c.body, err, c.failed)
			}
			continue
		}
		if err != nil || !slices.Equal(got[1:], c.tokens) || !slices.Equal(ends, c.ends) {
			t.Errorf("%s: %v ending at %v, %v", c.body, got, ends, err)
		}
		if one, err := AppendRequest(tokenizer, nil, request(t, c.body)); (err == nil) != (len(ends) == 1) || err == nil && !slices.Equal(one, c.tokens) {
			t.Errorf("%s as one prompt: %v, %v", c.body, one, err)
		}
	}
}

// TestAConversationGoesOn checks that an answer, sent back in the next turn, has the tokens that it had.
func TestAConversationGoesOn(t *testing.T) {
	for _, tokenizer := range tokenizers(t) {
		first := []Message{{"system", "be brief"}, {"user", "Hello, how are you?"}}
		answer := Text(tokenizer, tokenizer.Fill(3, 20))
		prompt := AppendPrompt(tokenizer, nil, first)
		all := tokenizer.AppendTokens(slices.Clone(prompt), answer)
		next := AppendPrompt(tokenizer, nil, append(first, Message{"assistant", answer}, Message{"user", "go on"}))
		if len(next) <= len(all) || !slices.Equal(next[:len(all)], all) {
			t.Errorf("%s: the next turn begins otherwise", tokenizer.Name())
		}
	}
}

func FuzzFixed(f *testing.F) {
	f.Add("some text", 4)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 1 || width > maxWidth || !utf8.ValidString(text) {
			return
		}
		tokenizer := fixed{width}
		if got := Text(tokenizer, tokenizer.AppendTokens(nil, text)); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}],"tool_calls":[{"function":{"name":"f"}}]}],"tools":[{}]}`))
	f.Add([]byte(`{"prompt":[[1,2]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var r openai.Request
		if json.Unmarshal(body, &r) == nil {
			if got, ends, err := AppendPrompts(fixed{4}, nil, &r); err == nil && (len(ends) == 0 || ends[len(ends)-1] != len(got) || !slices.IsSorted(ends)) {
				t.Fatalf("%d tokens end at %v", len(got), ends)
			}
		}
	})
}

func BenchmarkTokensAndHashes(b *testing.B) {
	tokenizer, text := parsed(b, Default), strings.Repeat("some text ", 50_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var tokens []uint32
	var hashes []uint64
	for b.Loop() {
		tokens = tokenizer.AppendTokens(tokens[:0], text)
		hashes = AppendHashes(hashes[:0], tokens, 16)
	}
}
