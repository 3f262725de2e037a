package results

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// constraintLexer walks through the text of a constraint.
type constraintLexer struct {
	text string
	at   int
}

// operators are tried in this order, so that a longer one wins.
var operators = []string{"<=", ">=", "==", "!=", "<", ">"}

func (l *constraintLexer) constraint() (Constraint, error) {
	name, err := l.name()
	if err != nil {
		return Constraint{}, err
	}
	if l.skipSpace(); l.at == len(l.text) || strings.HasPrefix(l.text[l.at:], "&&") {
		return Constraint{Column: name, Operator: "==", Bound: gridspec.Value{Kind: gridspec.KindBool, Bool: true}}, nil
	}
	operator, err := l.operator()
	if err != nil {
		return Constraint{}, err
	}
	bound, err := l.bound()
	return Constraint{Column: name, Operator: operator, Bound: bound}, err
}

func (l *constraintLexer) name() (string, error) {
	l.skipSpace()
	if l.at < len(l.text) && l.text[l.at] == '`' {
		name, _, closed := strings.Cut(l.text[l.at+1:], "`")
		if !closed || name == "" {
			return "", errors.New("a name in backquotes needs a closing one")
		}
		l.at += len(name) + 2
		return name, nil
	}
	if name := l.word(); name != "" {
		return name, nil
	}
	return "", errors.New("a column name is missing, as in p99_ttft_ms <= 1500")
}

func (l *constraintLexer) operator() (string, error) {
	l.skipSpace()
	for _, o := range operators {
		if strings.HasPrefix(l.text[l.at:], o) {
			l.at += len(o)
			return o, nil
		}
	}
	return "", fmt.Errorf("an operator is missing; use one of: %s (a name with spaces needs backquotes, as in `p99 ms` <= 1500)", strings.Join(operators, " "))
}

func (l *constraintLexer) bound() (gridspec.Value, error) {
	l.skipSpace()
	if l.at < len(l.text) && (l.text[l.at] == '"' || l.text[l.at] == '\'') {
		return l.quoted()
	}
	start := l.at
	word := l.word()
	if word == "" {
		return gridspec.Value{}, errors.New("a bound is missing; give a number, true, false or a string in quotes")
	}
	if v, ok := parseBool(word); ok && v != missing {
		return v, nil
	}
	for _, parse := range []func(string) (gridspec.Value, bool){parseInt, parseFloat} {
		if v, ok := parse(word); ok && v != missing {
			return v, nil
		}
	}
	if c := word[0]; c >= '0' && c <= '9' || strings.ContainsRune("+-.", rune(c)) {
		l.at = start
		return gridspec.Value{}, fmt.Errorf("%q is no number", word)
	}
	return text(word), nil
}

func (l *constraintLexer) quoted() (gridspec.Value, error) {
	quote := l.text[l.at : l.at+1]
	if quote == `"` {
		prefix, err := strconv.QuotedPrefix(l.text[l.at:])
		if err != nil {
			return gridspec.Value{}, errors.New("the string is not closed or has a bad escape")
		}
		l.at += len(prefix)
		s, err := strconv.Unquote(prefix)
		return text(s), err
	}
	s, _, closed := strings.Cut(l.text[l.at+1:], quote)
	if !closed {
		return gridspec.Value{}, errors.New("the string is not closed")
	}
	l.at += len(s) + 2
	return text(s), nil
}

func (l *constraintLexer) skipSpace() {
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.at]) >= 0 {
		l.at++
	}
}

// word takes the longest run of characters that names and numbers are made of.
func (l *constraintLexer) word() string {
	start := l.at
	for l.at < len(l.text) && wordByte(l.text[l.at]) {
		l.at++
	}
	return l.text[start:l.at]
}

func wordByte(c byte) bool {
	return c == '_' || c == '.' || c == '-' || c == '+' || c >= 0x80 ||
		c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// plainName reports whether a column name needs no backquotes.
func plainName(name string) bool {
	for i := range len(name) {
		if !wordByte(name[i]) {
			return false
		}
	}
	return name != ""
}
