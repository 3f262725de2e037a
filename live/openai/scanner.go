package openai

import (
	"bytes"
	"math"
)

// maxDepth bounds how deep objects and lists may be nested.
const maxDepth = 100

// scanner walks through a JSON value without allocating. After a mistake in the text failed is set and everything else does
// nothing.
type scanner struct {
	data   []byte
	at     int
	depth  int
	failed bool
}

// peek returns the first byte of the next value; 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.failed || s.at >= len(s.data) {
		return 0
	}
	return s.data[s.at]
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// take reads a byte that must come next.
func (s *scanner) take(b byte) {
	if s.peek() != b {
		s.failed = true
		return
	}
	s.at++
}

// open begins an object or list, and close ends it.
func (s *scanner) open(b byte) {
	s.take(b)
	if s.depth++; s.depth > maxDepth {
		s.failed = true
	}
}

func (s *scanner) close(b byte) {
	s.take(b)
	s.depth--
}

// object reads an object. field must read the value of the key; the key is as it is written, and valid during the call.
func (s *scanner) object(field func(key []byte)) (failed bool) {
	s.open('{')
	for more := s.peek() != '}'; more && !s.failed; {
		key := s.text()
		s.take(':')
		if s.failed {
			break
		}
		field(key)
		if more = s.peek() == ','; more {
			s.at++
		}
	}
	s.close('}')
	return s.failed
}

// array reads a list; element must read one element. A null is an empty list.
func (s *scanner) array(element func()) {
	if s.peek() == 'n' {
		s.skip()
		return
	}
	s.open('[')
	for more := s.peek() != ']'; more && !s.failed; {
		element()
		if more = s.peek() == ','; more {
			s.at++
		}
	}
	s.close(']')
}

// text reads a string and returns what is between its quotes, as it is written.
func (s *scanner) text() []byte {
	s.take('"')
	if s.failed {
		return nil
	}
	for begin := s.at; ; {
		end := bytes.IndexAny(s.data[s.at:], `"\`)
		if end < 0 {
			s.failed = true
			return nil
		}
		s.at += end + 1
		if s.data[s.at-1] == '"' {
			return s.data[begin : s.at-1]
		}
		if s.at++; s.at > len(s.data) { // what a backslash stands before
			s.failed = true
			return nil
		}
	}
}

// filled reads a value and reports whether it is more than null, an empty text or an empty list.
func (s *scanner) filled() bool {
	first := s.peek()
	begin := s.at
	s.skip()
	if s.failed || first == 'n' {
		return false
	}
	inner := s.data[begin+1 : max(begin+1, s.at-1)]
	return len(bytes.TrimSpace(inner)) > 0 || first == '"' && len(inner) > 0
}

// count reads a number that counts something; -1 if it is none, or more than records hold: no answer has so many tokens.
func (s *scanner) count() int {
	s.space()
	begin, n := s.at, 0
	s.skip()
	if s.failed || s.at == begin || s.at-begin > 15 {
		return -1
	}
	for _, b := range s.data[begin:s.at] {
		if b < '0' || b > '9' {
			return -1
		}
		n = 10*n + int(b-'0')
	}
	if n > math.MaxInt32 {
		return -1
	}
	return n
}

// skip reads any value.
func (s *scanner) skip() {
	switch first := s.peek(); {
	case first == '{':
		s.object(func([]byte) { s.skip() })
	case first == '[':
		s.array(s.skip)
	case first == '"':
		s.text()
	case first == 't':
		s.word("true")
	case first == 'f':
		s.word("false")
	case first == 'n':
		s.word("null")
	case first == '-' || first >= '0' && first <= '9':
		for s.at < len(s.data) && bytes.IndexByte([]byte("+-.eE0123456789"), s.data[s.at]) >= 0 {
			s.at++
		}
	default:
		s.failed = true
	}
}

func (s *scanner) word(w string) {
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		s.failed = true
		return
	}
	s.at += len(w)
}
