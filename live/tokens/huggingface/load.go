package huggingface

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxFile bounds a tokenizer.json, in bytes. Those of models with many languages have 30 MB.
const maxFile = 512 << 20

// Load reads a tokenizer.json, or that of the folder. The error lists everything in it that is not supported.
func Load(path string) (*Tokenizer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// file is a tokenizer.json.
type file struct {
	AddedTokens  []addedToken    `json:"added_tokens"`
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer json.RawMessage `json:"pre_tokenizer"`
	Model        json.RawMessage `json:"model"`
}

// loading is a tokenizer in the making.
type loading struct {
	t        *Tokenizer
	bytes    bool   // a pre-tokenizer writes bytes as characters, so that the vocabulary is one of bytes
	space    string // what spaces are written as; "" if as they are
	problems []error
}

func (l *loading) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Errorf(format, args...))
}

func parse(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("it is no tokenizer.json: %w", err)
	}
	if absent(f.Model) {
		return nil, errors.New("it is no tokenizer.json: it has no model")
	}
	l := loading{t: &Tokenizer{texts: map[uint32]string{}}}
	l.normalizer(f.Normalizer)
	l.preTokenizer(f.PreTokenizer)
	l.model(f.Model)
	if len(l.problems) > 0 {
		return nil, errors.Join(l.problems...)
	}
	l.added(f.AddedTokens)
	l.t.words = l.t.findWords()
	return l.t, nil
}

func absent(field json.RawMessage) bool { return len(field) == 0 || string(field) == "null" }

// added sorts the added tokens.
func (l *loading) added(tokens []addedToken) {
	var specials, normalized []addedToken
	for _, t := range tokens {
		l.t.texts[t.ID] = t.Content
		if !t.Normalized {
			specials = append(specials, t)
			continue
		}
		for _, n := range l.t.normalizers {
			t.Content = n(t.Content)
		}
		normalized = append(normalized, t)
	}
	l.t.specials, l.t.normalized = newFinder(specials), newFinder(normalized)
}
