package huggingface

import (
	"slices"
	"strings"
)

const (
	// minWords is how many words are needed, and maxWords how many are enough.
	minWords, maxWords = 16, 1 << 13
	// row is how many words are tried in a row.
	row = 64
	// tries is how often the words that are left are tried in another order.
	tries = 6
)

// findWords finds the tokens that are a word behind a space and stay what they are in a row of such words; none if there are too
// few. Their number is a power of two.
func (t *Tokenizer) findWords() []uint32 {
	var words []uint32
	for token, text := range t.texts {
		if isWord(text) {
			words = append(words, token)
		}
	}
	slices.Sort(words)
	words = words[:min(len(words), 2*maxWords)]
	words = slices.DeleteFunc(words, func(word uint32) bool { return !t.stay([]uint32{word}) })
	for try := range tries {
		before := len(words)
		if words = t.stayInRows(words, try); len(words) == before && try > 0 {
			break
		}
	}
	slices.Sort(words)
	if len(words) < minWords {
		return nil
	}
	n := minWords
	for n*2 <= min(len(words), maxWords) {
		n *= 2
	}
	return words[:n]
}

// isWord reports whether a text is a space and a word of ASCII letters.
func isWord(text string) bool {
	if len(text) < 3 || text[0] != ' ' {
		return false
	}
	return strings.IndexFunc(text[1:], func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' }) < 0
}

// stay reports whether the text of some tokens has these tokens again.
func (t *Tokenizer) stay(tokens []uint32) bool {
	var text strings.Builder
	for _, token := range tokens {
		text.WriteString(t.texts[token])
	}
	return slices.Equal(t.AppendTokens(nil, text.String()), tokens)
}

// stayInRows returns the words of those rows that stay what they are, in another order for each try.
func (t *Tokenizer) stayInRows(words []uint32, try int) []uint32 {
	shuffled := slices.Clone(words)
	state := uint64(try) + 1
	for i := len(shuffled) - 1; i > 0; i-- {
		state = state*6364136223846793005 + 1442695040888963407
		j := int(state >> 33 % uint64(i+1))
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	}
	kept := words[:0:0]
	for part := range slices.Chunk(shuffled, row) {
		if t.stay(part) {
			kept = append(kept, part...)
		}
	}
	return kept
}
