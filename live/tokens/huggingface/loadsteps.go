package huggingface

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// step is a normalizer or a pre-tokenizer in a tokenizer.json; each kind has some of the fields.
type step struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`

	Pattern *struct {
		String *string
		Regex  *string
	} `json:"pattern"`
	Content  string   `json:"content"`
	Behavior behavior `json:"behavior"`
	Invert   bool     `json:"invert"`

	StripLeft    bool  `json:"strip_left"`
	StripRight   bool  `json:"strip_right"`
	CleanText    *bool `json:"clean_text"`
	ChineseChars *bool `json:"handle_chinese_chars"`
	StripAccents *bool `json:"strip_accents"`
	Lowercase    *bool `json:"lowercase"`

	UseRegex    *bool  `json:"use_regex"`
	Replacement string `json:"replacement"`
	Split       *bool  `json:"split"`
	Individual  bool   `json:"individual_digits"`
	Delimiter   string `json:"delimiter"`
}

func isTrue(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

func (l *loading) step(kind string, raw json.RawMessage) (s step, ok bool) {
	if err := json.Unmarshal(raw, &s); err != nil {
		l.problem("%s: %w", kind, err)
		return s, false
	}
	return s, true
}

// normalizer adds a normalizer.
func (l *loading) normalizer(raw json.RawMessage) {
	if absent(raw) {
		return
	}
	s, ok := l.step("normalizer", raw)
	if !ok {
		return
	}
	add := func(n normalizer) { l.t.normalizers = append(l.t.normalizers, n) }
	switch s.Type {
	case "Sequence":
		for _, part := range s.Normalizers {
			l.normalizer(part)
		}
	case "NFC":
		add(norm.NFC.String)
	case "NFD":
		add(norm.NFD.String)
	case "NFKC":
		add(norm.NFKC.String)
	case "NFKD":
		add(norm.NFKD.String)
	case "Lowercase":
		add(strings.ToLower)
	case "StripAccents":
		add(stripAccents)
	case "Strip":
		add(strip(s.StripLeft, s.StripRight))
	case "BertNormalizer":
		lower := isTrue(s.Lowercase, true)
		add(bert{isTrue(s.CleanText, true), isTrue(s.ChineseChars, true), isTrue(s.StripAccents, lower), lower}.normalize)
	case "Replace":
		l.replace(&s, add)
	case "Prepend": // the space in front of a text, which is left out
	default:
		l.problem("normalizer %q is not supported", s.Type)
	}
}

// replace adds a normalizer that replaces what matches.
func (l *loading) replace(s *step, add func(normalizer)) {
	switch {
	case s.Pattern == nil || s.Pattern.String == nil && s.Pattern.Regex == nil:
		l.problem("normalizer Replace has no pattern")
	case s.Pattern.String != nil:
		if *s.Pattern.String == " " {
			l.space = s.Content
		}
		add(func(text string) string { return strings.ReplaceAll(text, *s.Pattern.String, s.Content) })
	default:
		expr, err := translate(*s.Pattern.Regex)
		if err == nil && strings.Contains(expr, "$") { // stands for (?!\S)
			err = errUnsupported
		}
		if err != nil {
			l.problem("normalizer Replace: pattern %q: %w", *s.Pattern.Regex, err)
			return
		}
		pattern, err := regexp.Compile(expr)
		if err != nil {
			l.problem("normalizer Replace: %w", err)
			return
		}
		add(func(text string) string { return pattern.ReplaceAllLiteralString(text, s.Content) })
	}
}

// preTokenizer adds a pre-tokenizer.
func (l *loading) preTokenizer(raw json.RawMessage) {
	if absent(raw) {
		return
	}
	s, ok := l.step("pre_tokenizer", raw)
	if !ok {
		return
	}
	add := func(expr string, literal bool, b behavior, inverted bool) {
		splitter, err := newSplitter(expr, literal, b, inverted)
		if err != nil {
			l.problem("pre_tokenizer %s: %w", s.Type, err)
			return
		}
		l.t.splitters = append(l.t.splitters, splitter)
	}
	switch s.Type {
	case "Sequence":
		for _, part := range s.PreTokenizers {
			l.preTokenizer(part)
		}
	case "ByteLevel":
		l.bytes = true
		if isTrue(s.UseRegex, true) {
			add(gpt2Pattern, false, isolated, false)
		}
	case "Split":
		switch {
		case s.Pattern != nil && s.Pattern.String != nil:
			add(*s.Pattern.String, true, s.Behavior, s.Invert)
		case s.Pattern != nil && s.Pattern.Regex != nil:
			add(*s.Pattern.Regex, false, s.Behavior, s.Invert)
		default:
			l.problem("pre_tokenizer Split has no pattern")
		}
	case "Whitespace":
		add(wordPattern, false, removed, true)
	case "WhitespaceSplit":
		add(spacePattern, false, removed, false)
	case "BertPreTokenizer":
		add(spacePattern, false, removed, false)
		add(punctuationPattern, false, isolated, false)
	case "Punctuation":
		if s.Behavior == "" {
			s.Behavior = isolated
		}
		add(punctuationPattern, false, s.Behavior, false)
	case "Digits":
		b := contiguous
		if s.Individual {
			b = isolated
		}
		add(digitPattern, false, b, false)
	case "CharDelimiterSplit":
		add(s.Delimiter, true, removed, false)
	case "Metaspace":
		if utf8.RuneCountInString(s.Replacement) != 1 {
			l.problem("pre_tokenizer Metaspace: replacement %q is not one character", s.Replacement)
			return
		}
		l.space = s.Replacement
		l.t.splitters = append(l.t.splitters, metaspace{s.Replacement, isTrue(s.Split, true)})
	default:
		l.problem("pre_tokenizer %q is not supported", s.Type)
	}
}
