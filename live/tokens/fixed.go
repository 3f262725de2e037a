package tokens

import (
	"fmt"
	"slices"
)

// maxWidth is how many bytes fit into a token.
const maxWidth = 4

// fixed makes a token of each so many bytes of a text. A token is its bytes, the first in the lowest place; those that the last
// one lacks are noByte.
type fixed struct{ width int }

// noByte occurs nowhere in UTF-8.
const noByte = 0xff

func (f fixed) Name() string {
	if f.width == 1 {
		return "bytes"
	}
	return fmt.Sprintf("chars:%d", f.width)
}

func (f fixed) AppendTokens(tokens []uint32, text string) []uint32 {
	tokens = slices.Grow(tokens, (len(text)+f.width-1)/f.width)
	for ; len(text) >= f.width; text = text[f.width:] {
		token := uint32(text[0])
		for i := 1; i < f.width; i++ {
			token |= uint32(text[i]) << (8 * i)
		}
		tokens = append(tokens, token)
	}
	if len(text) == 0 {
		return tokens
	}
	token := uint32(0)
	for i := range f.width {
		b := byte(noByte)
		if i < len(text) {
			b = text[i]
		}
		token |= uint32(b) << (8 * i)
	}
	return append(tokens, token)
}

func (f fixed) AppendText(text []byte, tokens []uint32) []byte {
	text = slices.Grow(text, len(tokens)*f.width)
	for _, token := range tokens {
		for i := range f.width {
			if b := byte(token >> (8 * i)); b != noByte || f.width == 1 {
				text = append(text, b)
			}
		}
	}
	return text
}

// fillBytes are what made-up text consists of: 64 that JSON and shells leave as they are.
const fillBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."

func (f fixed) Fill(seed uint64, n int) []uint32 {
	tokens := make([]uint32, 0, n)
	random := newRandom(seed)
	for range n {
		bits, token := random.next(), uint32(0)
		for i := range f.width {
			token |= uint32(fillBytes[bits&63]) << (8 * i)
			bits >>= 6
		}
		tokens = append(tokens, token)
	}
	return tokens
}
