package huggingface

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sample is a tokenizer with what the tokenizers library finds with it; see testdata/make.py.
type sample struct {
	Tokenizer json.RawMessage
	Texts     []string
	Tokens    [][]uint32
}

func samples(tb testing.TB) map[string]*sample {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*.json.gz")
	if err != nil || len(paths) == 0 {
		tb.Fatal("no samples", err)
	}
	all := map[string]*sample{}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			tb.Fatal(err)
		}
		plain, err := gzip.NewReader(file)
		if err != nil {
			tb.Fatal(err)
		}
		data, err := io.ReadAll(plain)
		s := &sample{}
		if err = errorsFirst(err, json.Unmarshal(data, s), file.Close()); err != nil {
			tb.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json.gz")] = s
	}
	return all
}

func errorsFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func load(tb testing.TB, data []byte) *Tokenizer {
	tb.Helper()
	t, err := parse(data)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func TestTokensAreThoseOfTheLibrary(t *testing.T) {
	for name, s := range samples(t) {
		tokenizer := load(t, s.Tokenizer)
		for range 2 { // the second time, pieces are known
			for i, text := range s.Texts {
				if got := tokenizer.AppendTokens(nil, text); !slices.Equal(got, s.Tokens[i]) {
					t.Errorf("%s: %.80q becomes\n%v, the library's are\n%v", name, text, got, s.Tokens[i])
				}
			}
		}
	}
}

// TestTextsComeBack checks the texts of tokens where they say all, which those of WordPiece and of normalizers do not.
func TestTextsComeBack(t *testing.T) {
	all := samples(t)
	for _, name := range []string{"gpt2", "llama3", "o200k", "deepseek", "sentencepiece"} {
		tokenizer := load(t, all[name].Tokenizer)
		for _, text := range all[name].Texts {
			var back strings.Builder
			for _, token := range tokenizer.AppendTokens(nil, text) {
				back.WriteString(tokenizer.Text(token))
			}
			if back.String() != text {
				t.Errorf("%s: %.80q comes back as %.80q", name, text, back.String())
			}
		}
	}
}

func TestWordsStayInAnyRow(t *testing.T) {
	for name, s := range samples(t) {
		tokenizer := load(t, s.Tokenizer)
		words := tokenizer.Words()
		if len(words) < 64 || len(words)&(len(words)-1) != 0 {
			t.Errorf("%s: %d words", name, len(words))
			continue
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			row := make([]uint32, 1+random.IntN(100))
			for i := range row {
				row[i] = words[random.IntN(len(words))]
			}
			if !tokenizer.stay(row) {
				t.Errorf("%s: a row of %d words becomes other tokens", name, len(row))
			}
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	s := samples(t)["llama3"]
	tokenizer := load(t, s.Tokenizer)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i, text := range s.Texts {
				if got := tokenizer.AppendTokens(nil, text); !slices.Equal(got, s.Tokens[i]) {
					t.Errorf("%.40q differs", text)
				}
			}
		})
	}
	all.Wait()
}

func TestWhatIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ json, want string }{
		"no JSON":      {`x`, "it is no tokenizer.json"},
		"no model":     {`{}`, "it has no model"},
		"model":        {`{"model":{"type":"Neural"}}`, `model "Neural" is not supported`},
		"steps":        {`{"normalizer":{"type":"Precompiled"},"pre_tokenizer":{"type":"UnicodeScripts"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, "normalizer \"Precompiled\" is not supported\npre_tokenizer \"UnicodeScripts\" is not supported"},
		"pattern":      {`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a(?=b)"},"behavior":"Isolated"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, "look-around"},
		"behavior":     {`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Odd"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, `behavior "Odd"`},
		"metaspace":    {`{"pre_tokenizer":{"type":"Metaspace"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, `replacement "" is not one character`},
		"dropout":      {`{"model":{"type":"BPE","vocab":{},"merges":[],"dropout":0.1}}`, "dropout 0.1"},
		"suffix":       {`{"model":{"type":"BPE","vocab":{},"merges":[],"end_of_word_suffix":"</w>"}}`, "end_of_word_suffix"},
		"merge":        {`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`, `merge 1: "a b" is not in the vocab`},
		"unknown":      {`{"model":{"type":"WordPiece","vocab":{"a":0}}}`, `unk_token "[UNK]" is not in the vocab`},
		"unigram":      {`{"model":{"type":"Unigram","vocab":[["a",-1]],"unk_id":3}}`, "unk_id 3 is no token"},
		"unigram pair": {`{"model":{"type":"Unigram","vocab":[["a","b"]]}}`, "entry 0 is no token with its score"},
	} {
		if _, err := parse([]byte(c.json)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func FuzzTokens(f *testing.F) {
	all := samples(f)
	tokenizers := map[string]*Tokenizer{}
	for name, s := range all {
		tokenizers[name] = load(f, s.Tokenizer)
	}
	for _, text := range all["gpt2"].Texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, tokenizer := range tokenizers {
			tokens := tokenizer.AppendTokens(nil, text)
			if name != "gpt2" && name != "llama3" && name != "o200k" && name != "deepseek" {
				continue
			}
			var back strings.Builder
			for _, token := range tokens {
				back.WriteString(tokenizer.Text(token))
			}
			if back.String() != text {
				t.Errorf("%s: %q comes back as %q", name, text, back.String())
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"added_tokens":[{"id":1,"content":"x"}],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a|\\s+(?!\\S)"},"behavior":"Isolated"},"model":{"type":"BPE","vocab":{"a":0,"b":2,"ab":3},"merges":["a b"]}}`))
	f.Add([]byte(`{"model":{"type":"Unigram","vocab":[["<unk>",0],["a",-1],["ab",-1.5]],"unk_id":0}}`))
	f.Add([]byte(`{"pre_tokenizer":{"type":"Metaspace","replacement":"_"},"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2}}}`))
	f.Add([]byte(`{"pre_tokenizer":{"type":"Metaspace"},"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if tokenizer, err := parse(data); err == nil {
			tokenizer.AppendTokens(nil, "some text, 漢字 abab \n")
		}
	})
}

func BenchmarkAppendTokens(b *testing.B) {
	s := samples(b)["llama3"]
	tokenizer, text := load(b, s.Tokenizer), strings.Repeat(s.Texts[0], 10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var tokens []uint32
	for b.Loop() {
		tokens = tokenizer.AppendTokens(tokens[:0], text)
	}
}
