package tokens

import (
	"fmt"

	"github.com/servegrid/servegrid/live/tokens/huggingface"
)

// ofModel is the tokenizer of a model.
type ofModel struct {
	path string
	*huggingface.Tokenizer
	words []uint32
}

// loadHuggingFace reads a tokenizer.json, or that of a folder.
func loadHuggingFace(path string) (Tokenizer, error) {
	t, err := huggingface.Load(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	words := t.Words()
	if len(words) == 0 {
		return nil, fmt.Errorf("tokenizer: %s has no words to make texts of: "+
			"too few of its tokens are a space and ASCII letters that stay what they are side by side", path)
	}
	return &ofModel{path: path, Tokenizer: t, words: words}, nil
}

func (t *ofModel) Name() string { return t.path }

func (t *ofModel) AppendText(text []byte, tokens []uint32) []byte {
	for _, token := range tokens {
		text = append(text, t.Tokenizer.Text(token)...)
	}
	return text
}

func (t *ofModel) Fill(seed uint64, n int) []uint32 {
	tokens := make([]uint32, 0, n)
	random := newRandom(seed)
	mask := uint64(len(t.words) - 1) // their number is a power of two
	for range n {
		tokens = append(tokens, t.words[random.next()&mask])
	}
	return tokens
}
