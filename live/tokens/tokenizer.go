package tokens

import (
	"fmt"
	"strconv"
	"strings"
)

// Tokenizer turns text into tokens and back. It is safe for concurrent use.
type Tokenizer interface {
	// Name says which it is, for people and for what is recorded. [Parse] understands it.
	Name() string
	// AppendTokens appends the tokens of a text.
	AppendTokens(tokens []uint32, text string) []uint32
	// AppendText appends the text of tokens. That of the tokens of a text is the text again.
	AppendText(text []byte, tokens []uint32) []byte
	// Fill returns n tokens that depend on the seed alone; fewer are the beginning of more. Their text has exactly these tokens
	// again, also behind and before other such texts, and is the texts of its tokens one after another.
	Fill(seed uint64, n int) []uint32
}

// Text is the text of tokens.
func Text(t Tokenizer, tokens []uint32) string { return string(t.AppendText(nil, tokens)) }

// Default is the tokenizer where nothing is said: four bytes a token, about what those of models do with English.
const Default = "chars:4"

// Parse returns the tokenizer that a flag names: "bytes", a token a byte, "chars:N", a token for each N bytes, or the path of a
// Hugging Face tokenizer.json. The error says what is wrong with the name or the file.
func Parse(name string) (Tokenizer, error) {
	if name == "bytes" {
		return fixed{width: 1}, nil
	}
	if width, ok := strings.CutPrefix(name, "chars:"); ok {
		n, err := strconv.Atoi(width)
		if err != nil || n < 1 || n > maxWidth {
			return nil, fmt.Errorf("tokenizer %q: %q must be a number from 1 to %d, of the bytes in a token", name, width, maxWidth)
		}
		return fixed{width: n}, nil
	}
	if name == "" {
		return nil, fmt.Errorf("the tokenizer is empty; name bytes, chars:4 or the path of a tokenizer.json")
	}
	return loadHuggingFace(name)
}
