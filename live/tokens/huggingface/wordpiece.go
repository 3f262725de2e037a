package huggingface

import "unicode/utf8"

// wordPiece takes of a word the longest token that it begins with, then of the rest.
type wordPiece struct {
	vocab    map[string]uint32
	prefix   string // of tokens that do not begin a word
	unknown  uint32
	maxChars int // of a word that is looked at
}

func (m *wordPiece) appendTokens(tokens []uint32, piece string) []uint32 {
	if utf8.RuneCountInString(piece) > m.maxChars {
		return append(tokens, m.unknown)
	}
	before := len(tokens)
	for at := 0; at < len(piece); {
		token, size := m.longest(piece[at:], at > 0)
		if size == 0 {
			return append(tokens[:before], m.unknown)
		}
		tokens = append(tokens, token)
		at += size
	}
	return tokens
}

// longest is the longest token that a text begins with, and its length in bytes; 0 if there is none.
func (m *wordPiece) longest(text string, inside bool) (token uint32, size int) {
	key := text
	if inside {
		key = m.prefix + text
	}
	more := len(key) - len(text)
	for len(key) > more {
		if token, ok := m.vocab[key]; ok {
			return token, len(key) - more
		}
		_, last := utf8.DecodeLastRuneInString(key)
		key = key[:len(key)-last]
	}
	return 0, 0
}
