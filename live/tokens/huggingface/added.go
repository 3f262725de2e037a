package huggingface

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is found in a text before it is split.
type addedToken struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// finder finds added tokens: the first one, and of those that begin there the longest.
type finder struct {
	begins [256][]addedToken // by their first byte
	any    bool
}

func newFinder(tokens []addedToken) *finder {
	f := &finder{}
	for _, t := range tokens {
		if t.Content != "" {
			f.any = true
			f.begins[t.Content[0]] = append(f.begins[t.Content[0]], t)
		}
	}
	for i := range f.begins {
		slices.SortStableFunc(f.begins[i], func(a, b addedToken) int { return cmp.Compare(len(b.Content), len(a.Content)) })
	}
	return f
}

// next finds the next token; without one, from is the end of the text.
func (f *finder) next(text string) (from, to int, token uint32) {
	if !f.any {
		return len(text), len(text), 0
	}
	for at := range len(text) {
		for i := range f.begins[text[at]] {
			t := &f.begins[text[at]][i]
			if strings.HasPrefix(text[at:], t.Content) && t.fits(text, at) {
				from, to = t.around(text, at)
				return from, to, t.ID
			}
		}
	}
	return len(text), len(text), 0
}

// fits reports whether a token that must be a word of its own is one.
func (t *addedToken) fits(text string, at int) bool {
	if !t.SingleWord {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at+len(t.Content):])
	return !wordRune(before) && !wordRune(after)
}

func wordRune(r rune) bool { return r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.N) }

// around adds the white space that a token takes in.
func (t *addedToken) around(text string, at int) (from, to int) {
	from, to = at, at+len(t.Content)
	if t.LStrip {
		from = len(strings.TrimRightFunc(text[:from], unicode.IsSpace))
	}
	if t.RStrip {
		to = len(text) - len(strings.TrimLeftFunc(text[to:], unicode.IsSpace))
	}
	return from, to
}

// runeLen is the length of the rune that a text begins with.
func runeLen(text string) int {
	_, size := utf8.DecodeRuneInString(text)
	return size
}
