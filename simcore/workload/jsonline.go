package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// fieldError says which field of a line is wrong and what it holds.
type fieldError struct {
	field, value, message string
}

func (e *fieldError) Error() string {
	switch {
	case e.field == "":
		return e.message
	case e.value == "":
		return fmt.Sprintf("%s: %s", e.field, e.message)
	}
	return fmt.Sprintf("%s is %s: %s", e.field, e.value, e.message)
}

// jsonLine reads one JSON object field by field. It accepts exactly the values that encoding/json accepts, with
// integers kept exact to 64 bits, and allocates nothing for numbers and arrays of numbers.
type jsonLine struct {
	data  []byte
	at    int
	depth int // of nested objects and lists
}

// notJSON describes a syntax error at the current position.
func (l *jsonLine) notJSON(what string) error {
	got := "the end of the line"
	if l.at < len(l.data) {
		r, _ := utf8.DecodeRune(l.data[l.at:])
		got = strconv.QuoteRune(r)
	}
	return &fieldError{message: fmt.Sprintf("is not a JSON object: column %d has %s where %s belongs", l.at+1, got, what)}
}

func (l *jsonLine) space() {
	for l.at < len(l.data) {
		switch l.data[l.at] {
		case ' ', '\t', '\r', '\n':
			l.at++
		default:
			return
		}
	}
}

// take consumes one byte if it comes next.
func (l *jsonLine) take(c byte) bool {
	l.space()
	if l.at < len(l.data) && l.data[l.at] == c {
		l.at++
		return true
	}
	return false
}

// object calls field for every key; field must consume the value.
func (l *jsonLine) object(field func(key []byte) error) error {
	if err := l.members(field); err != nil {
		return err
	}
	if l.space(); l.at < len(l.data) {
		return l.notJSON("the end of the line")
	}
	return nil
}

// nested reads an object that is a field's value; each must consume the value of the key that it is called for.
func (l *jsonLine) nested(field string, each func(key []byte) error) error {
	if l.space(); l.at < len(l.data) && l.data[l.at] != '{' {
		return l.wrongType(field, "an object")
	}
	return l.members(each)
}

// members reads an object of any depth.
func (l *jsonLine) members(each func(key []byte) error) error {
	if !l.take('{') {
		return l.notJSON("'{'")
	}
	if l.depth++; l.depth > maxDepth {
		return l.tooDeep()
	}
	if !l.take('}') {
		for {
			key, err := l.text()
			if err != nil {
				return err
			}
			if !l.take(':') {
				return l.notJSON("':'")
			}
			if err := each(key); err != nil {
				return err
			}
			if l.take('}') {
				break
			}
			if !l.take(',') {
				return l.notJSON("',' or '}'")
			}
		}
	}
	l.depth--
	return nil
}

// givenTwice and givenTwiceElsewhere say that a field is there more than once; the latter where fields have other names.
const (
	givenTwice          = "is given twice"
	givenTwiceElsewhere = "is given twice, perhaps under its other name"
)

// wanted reports whether a row's field is to be read, and notes that it is there: fields are bits, those of no interest are
// 0 and skipped, null leaves a field out, and a field may be given once.
func wanted[F ~uint8 | ~uint16 | ~uint32](line *jsonLine, seen *F, field F, name []byte, twice string) (bool, error) {
	switch {
	case field == 0:
		return false, line.skip()
	case *seen&field != 0:
		return false, &fieldError{field: string(name), message: twice}
	case line.null():
		return false, nil
	}
	*seen |= field
	return true, nil
}

// list reads a list that is a field's value; want says what it should be, and each must consume one element.
func (l *jsonLine) list(field, want string, each func() error) error {
	if l.space(); l.at < len(l.data) && l.data[l.at] != '[' {
		return l.wrongType(field, want)
	}
	return l.elements(each)
}

// maxDepth is how deep values may be nested, as in encoding/json.
const maxDepth = 10_000

func (l *jsonLine) tooDeep() error {
	return &fieldError{message: fmt.Sprintf("is nested more than %d levels deep", maxDepth)}
}

// skip consumes any value without looking at it.
func (l *jsonLine) skip() error {
	l.space()
	if l.at == len(l.data) {
		return l.notJSON("a value")
	}
	switch c := l.data[l.at]; {
	case c == '{':
		return l.members(func([]byte) error { return l.skip() })
	case c == '[':
		return l.elements(l.skip)
	case c == '"':
		return l.skipText()
	case c == '-' || c-'0' <= 9:
		start := l.at
		for l.at < len(l.data) && (l.data[l.at]-'0' <= 9 || isNumberPart(l.data[l.at])) {
			l.at++
		}
		if !validNumber(l.data[start:l.at]) {
			l.at = start
			return l.notJSON("a well-formed number")
		}
		return nil
	}
	for _, word := range [...]string{"null", "true", "false"} {
		if rest := l.data[l.at:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			l.at += len(word)
			return nil
		}
	}
	return l.notJSON("a value")
}

// elements reads a list; each must consume one element.
func (l *jsonLine) elements(each func() error) error {
	if !l.take('[') {
		return l.notJSON("'['")
	}
	if l.depth++; l.depth > maxDepth {
		return l.tooDeep()
	}
	if !l.take(']') {
		for {
			if err := each(); err != nil {
				return err
			}
			if l.take(']') {
				break
			}
			if !l.take(',') {
				return l.notJSON("',' or ']'")
			}
		}
	}
	l.depth--
	return nil
}

// skipText consumes a string.
func (l *jsonLine) skipText() error {
	for l.at++; l.at < len(l.data); l.at++ {
		switch c := l.data[l.at]; {
		case c == '"':
			l.at++
			return nil
		case c < ' ':
			return l.notJSON("a character of a string")
		case c == '\\':
			if l.at++; !l.validEscape() {
				return l.notJSON("an escaped character")
			}
		}
	}
	return l.notJSON("'\"'")
}

// validEscape reports whether the byte after a backslash, with four hexadecimal digits after a u, is allowed; it ends
// on the last byte.
func (l *jsonLine) validEscape() bool {
	if l.at == len(l.data) {
		return false
	}
	switch l.data[l.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if l.at++; l.at == len(l.data) || !isHexadecimal(l.data[l.at]) {
				return false
			}
		}
		return true
	}
	return false
}

func isHexadecimal(c byte) bool { return c-'0' <= 9 || c|0x20-'a' <= 5 }

// validNumber reports whether a token is a JSON number.
func validNumber(token []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(token) && token[n]-'0' <= 9 {
			n++
		}
		token = token[n:]
		return n > 0
	}
	take := func(c byte) bool {
		if len(token) > 0 && token[0]|0x20 == c|0x20 {
			token = token[1:]
			return true
		}
		return false
	}
	take('-')
	if !take('0') && !digits() || take('.') && !digits() {
		return false
	}
	if take('e') {
		if !take('+') {
			take('-')
		}
		if !digits() {
			return false
		}
	}
	return len(token) == 0
}

// text reads a string; the bytes are valid until the line changes.
func (l *jsonLine) text() ([]byte, error) {
	if !l.take('"') {
		return nil, l.notJSON("'\"'")
	}
	start := l.at
	for plain := true; l.at < len(l.data); l.at++ {
		switch c := l.data[l.at]; {
		case c == '"':
			raw := l.data[start:l.at]
			l.at++
			if plain {
				return raw, nil
			}
			var s string
			if err := json.Unmarshal(l.data[start-1:l.at], &s); err != nil {
				return nil, &fieldError{message: "is not a JSON object: " + err.Error()}
			}
			return []byte(s), nil
		case c == '\\':
			plain = false
			l.at++
		case c < ' ':
			return nil, l.notJSON("a character of a string")
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	return nil, l.notJSON("'\"'")
}

// raw consumes any value and returns its bytes.
func (l *jsonLine) raw() ([]byte, error) {
	l.space()
	start := l.at
	if err := l.skip(); err != nil {
		return nil, err
	}
	return l.data[start:l.at], nil
}

// wrongType consumes the value and says what was wanted instead.
func (l *jsonLine) wrongType(field, want string) error {
	value, err := l.raw()
	if err != nil {
		return fmt.Errorf("%w; %s must be %s", err, field, want)
	}
	if len(value) > 60 {
		value = append(append([]byte(nil), value[:57]...), "..."...)
	}
	return &fieldError{field, string(value), "must be " + want}
}

// null consumes a null if it comes next.
func (l *jsonLine) null() bool {
	l.space()
	if bytes.HasPrefix(l.data[l.at:], []byte("null")) {
		l.at += 4
		return true
	}
	return false
}

// uint reads an integer of 0 or more.
func (l *jsonLine) uint(field string) (uint64, error) {
	l.space()
	start, n := l.at, uint64(0)
	for l.at < len(l.data) && l.data[l.at]-'0' <= 9 {
		d := uint64(l.data[l.at] - '0')
		if n > (math.MaxUint64-d)/10 {
			l.at = start
			return 0, l.wrongType(field, "an integer below 2^64")
		}
		n = n*10 + d
		l.at++
	}
	if l.at == start || l.data[start] == '0' && l.at > start+1 || l.at < len(l.data) && isNumberPart(l.data[l.at]) {
		l.at = start
		return 0, l.wrongType(field, "an integer of 0 or more")
	}
	return n, nil
}

func isNumberPart(c byte) bool { return c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+' }

// uints appends a list of integers to ids.
func (l *jsonLine) uints(field string, ids []uint64) ([]uint64, error) {
	l.space()
	start := l.at
	if !l.take('[') {
		return ids, l.wrongType(field, "a list of integers of 0 or more")
	}
	if l.take(']') {
		return ids, nil
	}
	for {
		id, err := l.uint(field)
		if err != nil {
			l.at = start
			return ids, l.wrongType(field, "a list of integers from 0 to 2^64-1")
		}
		ids = append(ids, id)
		// The common case, without white space, stays in this loop.
		switch {
		case l.at < len(l.data) && l.data[l.at] == ',':
			l.at++
		case l.take(','):
		case l.take(']'):
			return ids, nil
		default:
			return ids, l.notJSON("',' or ']'")
		}
	}
}

// number reads a finite number.
func (l *jsonLine) number(field string) (float64, error) {
	l.space()
	start := l.at
	for l.at < len(l.data) && (l.data[l.at]-'0' <= 9 || isNumberPart(l.data[l.at])) {
		l.at++
	}
	token := l.data[start:l.at]
	if len(token) > 0 && len(token) <= 15 && token[0] != '0' && allDigits(token) {
		n := 0
		for _, c := range token {
			n = n*10 + int(c-'0')
		}
		return float64(n), nil
	}
	if !validNumber(token) {
		l.at = start
		return 0, l.wrongType(field, "a number")
	}
	v, err := strconv.ParseFloat(string(token), 64)
	if err != nil {
		return 0, &fieldError{field, string(token), "must be a finite number"}
	}
	return v, nil
}

func allDigits(s []byte) bool {
	for _, c := range s {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// textField reads a string value.
func (l *jsonLine) textField(field string) (string, error) {
	if l.space(); l.at < len(l.data) && l.data[l.at] != '"' {
		return "", l.wrongType(field, "a string")
	}
	s, err := l.text()
	return string(s), err
}

// tokens reads a list of 32-bit token ids.
func (l *jsonLine) tokens(field string) ([]uint32, error) {
	start := l.at
	wide, err := l.uints(field, nil)
	if err != nil {
		return nil, err
	}
	ids := make([]uint32, len(wide))
	for i, id := range wide {
		if id > math.MaxUint32 {
			l.at = start
			return nil, l.wrongType(field, "a list of token ids below 2^32")
		}
		ids[i] = uint32(id)
	}
	return ids, nil
}

// integer reads a whole number and checks its range.
func (l *jsonLine) integer(field string, least, most int64) (int64, error) {
	l.space()
	start := l.at
	v, err := l.number(field)
	if err != nil {
		return 0, err
	}
	if v != math.Trunc(v) || v < float64(least) || v > float64(most) || bytes.ContainsAny(l.data[start:l.at], ".eE") {
		l.at = start
		return 0, l.wrongType(field, fmt.Sprintf("an integer from %d to %d", least, most))
	}
	return int64(v), nil
}
