package huggingface

import (
	"fmt"
	"regexp"
	"strings"
)

// splitter takes pieces of a text further apart.
type splitter interface {
	// split appends the parts of a piece.
	split(parts []string, piece string) []string
}

// behavior says what becomes of what a pattern matches.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

// patternSplitter splits where a pattern matches or, inverted, between the matches.
type patternSplitter struct {
	pattern  *pattern
	behavior behavior
	inverted bool
}

// newSplitter compiles a pattern; literal says that it is a text.
func newSplitter(expr string, literal bool, b behavior, inverted bool) (*patternSplitter, error) {
	if literal {
		expr = regexp.QuoteMeta(expr)
	}
	switch b {
	case removed, isolated, mergedWithPrevious, mergedWithNext, contiguous:
	default:
		return nil, fmt.Errorf("behavior %q of a split is not known", b)
	}
	p, err := compile(expr)
	if err != nil {
		return nil, err
	}
	return &patternSplitter{pattern: p, behavior: b, inverted: inverted}, nil
}

func (s *patternSplitter) split(parts []string, piece string) []string {
	joiner := joiner{behavior: s.behavior, text: piece, parts: parts}
	from := 0 // of what has not matched
	for at := 0; at < len(piece); {
		end := s.pattern.match(piece[at:])
		if end <= 0 {
			at += runeLen(piece[at:])
			continue
		}
		joiner.add(from, at, s.inverted)
		joiner.add(at, at+end, !s.inverted)
		at += end
		from = at
	}
	joiner.add(from, len(piece), s.inverted)
	return joiner.finish()
}

// joiner makes parts of matches and what is between them.
type joiner struct {
	behavior behavior
	text     string
	parts    []string
	from, to int // a part that the next may join
	matched  bool
	open     bool
}

// add takes in the next stretch of the text.
func (j *joiner) add(from, to int, match bool) {
	if from == to {
		return
	}
	joins := false
	if j.open {
		switch j.behavior {
		case mergedWithPrevious:
			joins = match && !j.matched
		case mergedWithNext:
			joins = j.matched && !match
		case contiguous:
			joins = match == j.matched
		}
	}
	if joins {
		j.to, j.matched = to, match
		return
	}
	j.flush()
	if match && j.behavior == removed {
		return
	}
	j.from, j.to, j.matched, j.open = from, to, match, true
}

func (j *joiner) flush() {
	if j.open {
		j.parts = append(j.parts, j.text[j.from:j.to])
		j.open = false
	}
}

func (j *joiner) finish() []string {
	j.flush()
	return j.parts
}

// metaspace writes spaces as another character and, if it splits, lets each part begin with one.
type metaspace struct {
	replacement string
	splits      bool
}

func (m metaspace) split(parts []string, piece string) []string {
	piece = strings.ReplaceAll(piece, " ", m.replacement)
	if !m.splits {
		return append(parts, piece)
	}
	for len(piece) > 0 {
		next := strings.Index(piece[min(len(piece), len(m.replacement)):], m.replacement)
		if !strings.HasPrefix(piece, m.replacement) {
			next = strings.Index(piece, m.replacement)
		} else if next >= 0 {
			next += len(m.replacement)
		}
		if next < 0 {
			next = len(piece)
		}
		parts = append(parts, piece[:next])
		piece = piece[next:]
	}
	return parts
}

// The patterns of pre-tokenizers that have names.
const (
	gpt2Pattern        = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	wordPattern        = `\w+|[^\w\s]+`
	spacePattern       = `\s`
	digitPattern       = `\p{N}`
	punctuationPattern = "[!-/:-@\\[-`{-~\\p{P}]"
)
