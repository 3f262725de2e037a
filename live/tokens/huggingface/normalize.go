package huggingface

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalizer rewrites a text before it is split.
type normalizer func(text string) string

// stripAccents removes the marks of letters that are written apart.
func stripAccents(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, text)
}

// strip removes white space at the ends.
func strip(left, right bool) normalizer {
	return func(text string) string {
		if left {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		if right {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		return text
	}
}

// bert is what BERT does to a text.
type bert struct{ clean, chinese, accents, lower bool }

func (b bert) normalize(text string) string {
	if b.clean {
		text = strings.Map(cleaned, text)
	}
	if b.chinese {
		text = spacedIdeographs(text)
	}
	if b.accents {
		text = stripAccents(norm.NFD.String(text))
	}
	if b.lower {
		text = strings.ToLower(text)
	}
	return text
}

// cleaned makes spaces of white space and drops control characters.
func cleaned(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || unicode.IsSpace(r):
		return ' '
	case r == 0 || r == unicode.ReplacementChar || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
		return -1
	}
	return r
}

func spacedIdeographs(text string) string {
	var b strings.Builder
	for _, r := range text {
		if ideograph(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func ideograph(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2B73F ||
		r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF || r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}
