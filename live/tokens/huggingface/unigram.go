package huggingface

import (
	"math"
	"slices"
	"unicode/utf8"
)

// unigram chooses the tokens of a piece whose probabilities have the greatest product.
type unigram struct {
	vocab        map[string]uint32
	scores       []float64 // logarithms
	longest      int       // of a token, in bytes
	unknown      int64     // token of characters that are none; -1 for none
	unknownScore float64
	byteFallback *[256]uint32
}

// unknownPenalty is how much less likely an unknown character is than the least likely token.
const unknownPenalty = 10

func newUnigram(vocab map[string]uint32, scores []float64, unknown int64, byteFallback *[256]uint32) *unigram {
	m := &unigram{vocab: vocab, scores: scores, unknown: unknown, byteFallback: byteFallback}
	for token := range vocab {
		m.longest = max(m.longest, len(token))
	}
	least := math.Inf(1)
	for _, score := range scores {
		least = min(least, score)
	}
	m.unknownScore = least - unknownPenalty
	return m
}

// reached is the best way to a place in a piece.
type reached struct {
	from  int // -1 when there is none yet
	token int64
	score float64
}

func (m *unigram) appendTokens(tokens []uint32, piece string) []uint32 {
	best := make([]reached, len(piece)+1)
	for i := range best[1:] {
		best[i+1].from = -1
	}
	for at := 0; at < len(piece); {
		_, size := utf8.DecodeRuneInString(piece[at:])
		m.leave(best, piece, at, size)
		at += size
	}
	before := len(tokens)
	unknownTo := -1 // where unknown characters go on to, which are one token
	for at := len(piece); at > 0; at = best[at].from {
		step := &best[at]
		if step.token != m.unknown {
			tokens = append(tokens, uint32(step.token))
			continue
		}
		if unknownTo != at || m.byteFallback != nil {
			tokens = m.appendUnknown(tokens, piece, m.unknownFrom(best, at), at)
		}
		unknownTo = step.from
	}
	slices.Reverse(tokens[before:])
	return tokens
}

// leave goes on from a place with all tokens that begin there.
func (m *unigram) leave(best []reached, piece string, at, size int) {
	single := false
	for end := at + 1; end <= min(len(piece), at+m.longest); end++ {
		token, ok := m.vocab[piece[at:end]]
		if !ok {
			continue
		}
		single = single || end == at+size
		if score := best[at].score + m.scores[token]; best[end].from < 0 || score > best[end].score {
			best[end] = reached{at, int64(token), score}
		}
	}
	end := at + size
	if score := best[at].score + m.unknownScore; !single && (best[end].from < 0 || score > best[end].score) {
		best[end] = reached{at, m.unknown, score}
	}
}

// unknownFrom is where the unknown characters begin of which one ends here.
func (m *unigram) unknownFrom(best []reached, at int) int {
	if m.byteFallback != nil {
		return best[at].from
	}
	for at > 0 && best[at].token == m.unknown {
		at = best[at].from
	}
	return at
}

// appendUnknown appends the tokens of unknown characters, the last first.
func (m *unigram) appendUnknown(tokens []uint32, piece string, from, to int) []uint32 {
	if m.byteFallback != nil {
		for i := to - 1; i >= from; i-- {
			tokens = append(tokens, m.byteFallback[piece[i]])
		}
		return tokens
	}
	if token, ok := m.vocab[piece[from:to]]; ok {
		return append(tokens, token)
	}
	if m.unknown < 0 {
		return tokens
	}
	return append(tokens, uint32(m.unknown))
}
