package huggingface

import (
	"fmt"
	"unicode/utf8"
)

// model makes tokens of a piece.
type model interface {
	appendTokens(tokens []uint32, piece string) []uint32
}

// bpe joins neighbouring symbols, the pair first that was learned first.
type bpe struct {
	vocab        map[string]uint32
	merges       map[uint64]merge // by both tokens
	bytes        bool             // symbols are bytes, not characters
	wholeFirst   bool             // a piece that is a token is that token
	unknown      int64            // token of characters that are none; -1 for none
	fuseUnknown  bool             // neighbouring ones are one
	byteFallback *[256]uint32     // tokens of bytes of such characters; nil for none
}

// merge is what a pair becomes, and how early it was learned.
type merge struct{ rank, token uint32 }

func pairKey(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

// byteTokens finds the tokens <0x00> to <0xFF>; nil when some is missing.
func byteTokens(vocab map[string]uint32) *[256]uint32 {
	var all [256]uint32
	for i := range all {
		token, ok := vocab[fmt.Sprintf("<0x%02X>", i)]
		if !ok {
			return nil
		}
		all[i] = token
	}
	return &all
}

func (m *bpe) appendTokens(tokens []uint32, piece string) []uint32 {
	if m.wholeFirst {
		if token, ok := m.vocab[piece]; ok {
			return append(tokens, token)
		}
	}
	var few [64]symbol
	symbols := m.symbols(few[:0], piece)
	m.join(symbols)
	for i := 0; i >= 0 && i < len(symbols); i = int(symbols[i].next) {
		tokens = append(tokens, symbols[i].token)
	}
	return tokens
}

// symbol is a token of a piece, in a list of those that are left.
type symbol struct {
	token      uint32
	prev, next int32 // -1 for none
	gone       bool
}

// symbols takes a piece apart to what is joined.
func (m *bpe) symbols(symbols []symbol, piece string) []symbol {
	add := func(token uint32) {
		n := int32(len(symbols))
		symbols = append(symbols, symbol{token: token, prev: n - 1, next: n + 1})
	}
	unknown := false // the one before is
	for len(piece) > 0 {
		size := 1
		if !m.bytes {
			_, size = utf8.DecodeRuneInString(piece)
		}
		part := piece[:size]
		piece = piece[size:]
		if token, ok := m.vocab[part]; ok {
			add(token)
			unknown = false
			continue
		}
		if m.byteFallback != nil {
			for i := range len(part) {
				add(m.byteFallback[part[i]])
			}
			unknown = false
			continue
		}
		if m.unknown >= 0 && !(unknown && m.fuseUnknown) {
			add(uint32(m.unknown))
		}
		unknown = m.unknown >= 0
	}
	if len(symbols) > 0 {
		symbols[len(symbols)-1].next = -1
	}
	return symbols
}

// join joins pairs until none is left that can be.
func (m *bpe) join(symbols []symbol) {
	var few [64]candidate
	queue := candidates(few[:0])
	offer := func(left int32) {
		if left < 0 || symbols[left].next < 0 {
			return
		}
		a, b := symbols[left].token, symbols[symbols[left].next].token
		if found, ok := m.merges[pairKey(a, b)]; ok {
			queue.push(candidate{found.rank, left, found.token, a, b})
		}
	}
	for i := range symbols {
		offer(int32(i))
	}
	for len(queue) > 0 {
		c := queue.pop()
		left := &symbols[c.left]
		if left.gone || left.token != c.a || left.next < 0 || symbols[left.next].token != c.b {
			continue // one of them was joined with another
		}
		right := &symbols[left.next]
		left.token, left.next, right.gone = c.token, right.next, true
		if left.next >= 0 {
			symbols[left.next].prev = c.left
		}
		offer(left.prev)
		offer(c.left)
	}
}

// candidate is a pair that can be joined.
type candidate struct {
	rank  uint32
	left  int32
	token uint32 // what it becomes
	a, b  uint32
}

// candidates is a heap: the one that was learned first is next and, among equals, the leftmost.
type candidates []candidate

func (q candidates) before(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].left < q[j].left
}

func (q *candidates) push(c candidate) {
	*q = append(*q, c)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *candidates) pop() candidate {
	h := *q
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h.before(child, least) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return top
}
