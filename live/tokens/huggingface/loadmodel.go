package huggingface

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// modelFile is the model of a tokenizer.json; each kind has some of the fields.
type modelFile struct {
	Type  string          `json:"type"`
	Vocab json.RawMessage `json:"vocab"`

	Merges       []json.RawMessage `json:"merges"`
	UnkToken     *string           `json:"unk_token"`
	FuseUnk      bool              `json:"fuse_unk"`
	ByteFallback bool              `json:"byte_fallback"`
	IgnoreMerges bool              `json:"ignore_merges"`
	Prefix       *string           `json:"continuing_subword_prefix"`
	Suffix       *string           `json:"end_of_word_suffix"`
	Dropout      *float64          `json:"dropout"`
	MaxChars     *int              `json:"max_input_chars_per_word"`
	UnkID        *int              `json:"unk_id"`
}

func (l *loading) model(raw json.RawMessage) {
	var m modelFile
	if err := json.Unmarshal(raw, &m); err != nil {
		l.problem("model: %w", err)
		return
	}
	if m.Type == "" && m.Merges != nil { // older files do not say
		m.Type = "BPE"
	}
	switch m.Type {
	case "BPE":
		l.bpe(&m)
	case "WordPiece":
		l.wordPiece(&m)
	case "Unigram":
		l.unigram(&m)
	default:
		l.problem("model %q is not supported", m.Type)
	}
}

// vocab reads the tokens of a model and notes their texts.
func (l *loading) vocab(m *modelFile, text func(token string) string) map[string]uint32 {
	var vocab map[string]uint32
	if err := json.Unmarshal(m.Vocab, &vocab); err != nil {
		l.problem("model: vocab: %w", err)
		return nil
	}
	for token, id := range vocab {
		l.t.texts[id] = text(token)
	}
	return vocab
}

func (l *loading) bpe(m *modelFile) {
	given := func(s *string) bool { return s != nil && *s != "" }
	if given(m.Prefix) || given(m.Suffix) {
		l.problem("model BPE: continuing_subword_prefix and end_of_word_suffix are not supported")
	}
	if m.Dropout != nil && *m.Dropout > 0 {
		l.problem("model BPE: dropout %g is not supported: it makes other tokens every time", *m.Dropout)
	}
	bytes := bytesOfChars()
	symbol := func(token string) string {
		if l.bytes {
			return unmapped(token, bytes)
		}
		return token
	}
	vocab := l.vocab(m, func(token string) string {
		if l.bytes {
			return unmapped(token, bytes)
		}
		return l.plain(token)
	})
	b := &bpe{vocab: make(map[string]uint32, len(vocab)), bytes: l.bytes, wholeFirst: m.IgnoreMerges, unknown: -1, fuseUnknown: m.FuseUnk}
	for token, id := range vocab {
		b.vocab[symbol(token)] = id
	}
	if m.UnkToken != nil {
		if id, ok := vocab[*m.UnkToken]; ok {
			b.unknown = int64(id)
		} else {
			l.problem("model BPE: unk_token %q is not in the vocab", *m.UnkToken)
		}
	}
	if m.ByteFallback {
		b.byteFallback = byteTokens(vocab)
	}
	l.merges(m, b, symbol)
	l.t.model = b
}

// merges reads the pairs that are joined, in their order.
func (l *loading) merges(m *modelFile, b *bpe, symbol func(string) string) {
	b.merges = make(map[uint64]merge, len(m.Merges))
	for rank, raw := range m.Merges {
		left, right, err := mergedPair(raw)
		if err == nil {
			left, right = symbol(left), symbol(right)
			x, okX := b.vocab[left]
			y, okY := b.vocab[right]
			joined, ok := b.vocab[left+right]
			if key := pairKey(x, y); ok && okX && okY {
				b.merges[key] = merge{uint32(rank), joined}
				continue
			}
			err = fmt.Errorf("%s is not in the vocab", raw)
		}
		l.problem("model BPE: merge %d: %w", rank+1, err)
		return
	}
}

// mergedPair reads a merge, a list of two or a text of both.
func mergedPair(raw json.RawMessage) (left, right string, err error) {
	if raw[0] == '[' {
		var both []string
		if json.Unmarshal(raw, &both) == nil && len(both) == 2 {
			return both[0], both[1], nil
		}
	}
	var text string
	if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		if left, right, ok := strings.Cut(text, " "); ok {
			return left, right, nil
		}
	}
	return "", "", fmt.Errorf("%s is no pair of tokens", raw)
}

func (l *loading) wordPiece(m *modelFile) {
	w := &wordPiece{prefix: "##", maxChars: 100}
	if m.Prefix != nil {
		w.prefix = *m.Prefix
	}
	if m.MaxChars != nil {
		w.maxChars = *m.MaxChars
	}
	w.vocab = l.vocab(m, func(token string) string {
		if inside, ok := strings.CutPrefix(token, w.prefix); ok && w.prefix != "" {
			return inside
		}
		return " " + token
	})
	if m.UnkToken == nil {
		m.UnkToken = new(string)
		*m.UnkToken = "[UNK]"
	}
	unknown, ok := w.vocab[*m.UnkToken]
	if !ok {
		l.problem("model WordPiece: unk_token %q is not in the vocab", *m.UnkToken)
	}
	w.unknown = unknown
	l.t.model = w
}

func (l *loading) unigram(m *modelFile) {
	var pairs [][2]json.RawMessage
	if err := json.Unmarshal(m.Vocab, &pairs); err != nil {
		l.problem("model Unigram: vocab: %w", err)
		return
	}
	vocab, scores := make(map[string]uint32, len(pairs)), make([]float64, len(pairs))
	for i, pair := range pairs {
		var token string
		if json.Unmarshal(pair[0], &token) != nil || json.Unmarshal(pair[1], &scores[i]) != nil || math.IsNaN(scores[i]) {
			l.problem("model Unigram: vocab: entry %d is no token with its score", i)
			return
		}
		vocab[token] = uint32(i)
		l.t.texts[uint32(i)] = l.plain(token)
	}
	unknown := int64(-1)
	if m.UnkID != nil {
		if unknown = int64(*m.UnkID); unknown < 0 || unknown >= int64(len(pairs)) {
			l.problem("model Unigram: unk_id %d is no token", *m.UnkID)
		}
	}
	var fallback *[256]uint32
	if m.ByteFallback {
		fallback = byteTokens(vocab)
	}
	l.t.model = newUnigram(vocab, scores, unknown, fallback)
}

// plain is the text of a token of characters: with spaces as such, and bytes as such.
func (l *loading) plain(token string) string {
	var b byte
	if n, _ := fmt.Sscanf(token, "<0x%02X>", &b); n == 1 && len(token) == len("<0x00>") {
		return string([]byte{b})
	}
	if l.space == "" {
		return token
	}
	return strings.ReplaceAll(token, l.space, " ")
}

// bytesOfChars says which byte each character stands for in vocabularies of bytes: printable ones for themselves, the others for
// characters from U+0100 on.
func bytesOfChars() map[rune]byte {
	bytes := make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			bytes[b] = byte(b)
		} else {
			bytes[next] = byte(b)
			next++
		}
	}
	return bytes
}

// unmapped is the bytes that a token of such a vocabulary stands for; one that stands for none is its own text.
func unmapped(token string, bytes map[rune]byte) string {
	raw := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := bytes[r]
		if !ok {
			return token
		}
		raw = append(raw, b)
	}
	return string(raw)
}
