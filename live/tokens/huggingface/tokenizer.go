package huggingface

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// Tokenizer is what a tokenizer.json describes. It is safe for concurrent use.
type Tokenizer struct {
	specials    *finder // found in the text as it is
	normalized  *finder // found in the normalized text
	normalizers []normalizer
	splitters   []splitter
	model       model
	texts       map[uint32]string // of tokens
	words       []uint32          // see Words
	buffers     sync.Pool         // of *[2][]string
	cache       [cacheSize]atomic.Pointer[cachedPiece]
}

// AppendTokens appends the tokens of a text, without special ones around it.
func (t *Tokenizer) AppendTokens(tokens []uint32, text string) []uint32 {
	for len(text) > 0 {
		from, to, token := t.specials.next(text)
		tokens = t.appendPlain(tokens, text[:from])
		if from == len(text) {
			break
		}
		tokens = append(tokens, token)
		text = text[to:]
	}
	return tokens
}

// appendPlain appends the tokens of a text in which no special one was found.
func (t *Tokenizer) appendPlain(tokens []uint32, text string) []uint32 {
	for _, n := range t.normalizers {
		text = n(text)
	}
	for len(text) > 0 {
		from, to, token := t.normalized.next(text)
		tokens = t.appendPieces(tokens, text[:from])
		if from == len(text) {
			break
		}
		tokens = append(tokens, token)
		text = text[to:]
	}
	return tokens
}

// appendPieces splits a text and appends the tokens of its pieces.
func (t *Tokenizer) appendPieces(tokens []uint32, text string) []uint32 {
	if text == "" {
		return tokens
	}
	buffers, ok := t.buffers.Get().(*[2][]string)
	if !ok {
		buffers = new([2][]string)
	}
	pieces, parts := append(buffers[0][:0], text), buffers[1]
	for _, s := range t.splitters {
		parts = parts[:0]
		for _, piece := range pieces {
			parts = s.split(parts, piece)
		}
		pieces, parts = parts, pieces
	}
	for _, piece := range pieces {
		tokens = t.appendPiece(tokens, piece)
	}
	clear(pieces[:cap(pieces)]) // they point into the text
	clear(parts[:cap(parts)])
	buffers[0], buffers[1] = pieces, parts
	t.buffers.Put(buffers)
	return tokens
}

// cacheSize is how many pieces have their tokens kept, and cachedBytes the length of the longest of them.
const (
	cacheSize   = 1 << 14
	cachedBytes = 48
)

// cachedPiece is a piece and its tokens.
type cachedPiece struct {
	piece  string
	tokens []uint32
}

// appendPiece appends the tokens of a piece, which are kept for the next time.
func (t *Tokenizer) appendPiece(tokens []uint32, piece string) []uint32 {
	if len(piece) > cachedBytes {
		return t.model.appendTokens(tokens, piece)
	}
	place := &t.cache[xxh3.HashString(piece)%cacheSize]
	if known := place.Load(); known != nil && known.piece == piece {
		return append(tokens, known.tokens...)
	}
	before := len(tokens)
	tokens = t.model.appendTokens(tokens, piece)
	place.Store(&cachedPiece{strings.Clone(piece), append([]uint32(nil), tokens[before:]...)})
	return tokens
}

// Text is the text of a token; "" for one that is not known.
func (t *Tokenizer) Text(token uint32) string { return t.texts[token] }

// Words are tokens that are a word behind a space, and are found again in a row of any of them.
func (t *Tokenizer) Words() []uint32 { return t.words }
