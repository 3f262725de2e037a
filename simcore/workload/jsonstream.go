package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// jsonStream takes a stream of JSON objects apart without holding one whole: it hands on the raw values of an object's
// fields, and those of lists one by one. jsonLine reads the raw values.
type jsonStream struct {
	r    *bufio.Reader
	line int // of the next byte, from 1
	raw  []byte
	// begins reports that the next byte is the first of a line.
	begins bool
}

func newJSONStream(r io.Reader) *jsonStream {
	return &jsonStream{r: bufio.NewReaderSize(r, 1<<18), line: 1, begins: true}
}

// next skips white space and returns the byte that comes then without taking it; io.EOF at the end.
func (s *jsonStream) next() (byte, error) {
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return 0, s.readError(err)
		}
		switch c {
		case '\n':
			s.line++
			s.begins = true
		case ' ', '\t', '\r':
			s.begins = false
		default:
			return c, s.r.UnreadByte()
		}
	}
}

// readError is io.EOF, or says where the stream can't be read any further.
func (s *jsonStream) readError(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return &readError{s.line - 1, describeRead(err)}
}

// take consumes a byte that must come next.
func (s *jsonStream) take(want byte) error {
	c, err := s.next()
	if err != nil {
		return s.ended(err)
	}
	if c != want {
		return s.notJSON(c, fmt.Sprintf("%q", want))
	}
	s.begins = false
	_, err = s.r.ReadByte()
	return err
}

// ended says that an object is cut off; err is why.
func (s *jsonStream) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return &readError{s.line - 1, errors.New("is not a JSON object: the file ends within it")}
	}
	return err
}

func (s *jsonStream) notJSON(got byte, want string) error {
	return &fieldError{message: fmt.Sprintf("is not a JSON object: it has %q where %s belongs", got, want)}
}

// object reads the next object of the stream; field is called for every key before its value and must consume the value,
// by value or list. io.EOF means that there is no further object.
func (s *jsonStream) object(field func(key string) error) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != '{' {
		return s.notJSON(c, "'{'")
	}
	return s.sequence('{', '}', func() error {
		raw, err := s.value()
		if err != nil {
			return err
		}
		line := jsonLine{data: raw}
		key, err := line.text()
		if err != nil {
			return err
		}
		name := string(key)
		if err := s.take(':'); err != nil {
			return err
		}
		return field(name)
	})
}

// list calls each for every element of the list that comes next, which each must consume; false means that another kind
// of value comes.
func (s *jsonStream) list(each func() error) (bool, error) {
	c, err := s.next()
	if err != nil {
		return false, s.ended(err)
	}
	if c != '[' {
		return false, nil
	}
	return true, s.sequence('[', ']', each)
}

// sequence reads what stands between two brackets, separated by commas.
func (s *jsonStream) sequence(open, close byte, each func() error) error {
	if err := s.take(open); err != nil {
		return err
	}
	c, err := s.next()
	if err != nil {
		return s.ended(err)
	}
	if c == close {
		return s.take(close)
	}
	for {
		if err := each(); err != nil {
			return err
		}
		if c, err = s.next(); err != nil {
			return s.ended(err)
		}
		if c == close {
			return s.take(close)
		}
		if err := s.take(','); err != nil {
			return err
		}
	}
}

// nextLine skips to the next line that begins with an object, after an error; false means that there is none.
func (s *jsonStream) nextLine() bool {
	for {
		if c, err := s.r.Peek(1); s.begins && err == nil && c[0] == '{' {
			return true
		}
		_, err := s.r.ReadSlice('\n')
		if s.begins = false; errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return false
		}
		s.line++
		s.begins = true
	}
}

// value returns the next value as it stands, valid until the next call. Only its brackets and quotes have been looked at.
func (s *jsonStream) value() ([]byte, error) {
	if _, err := s.next(); err != nil {
		return nil, s.ended(err)
	}
	s.raw, s.begins = s.raw[:0], false
	scan := valueScan{}
	for {
		window, err := s.r.Peek(max(1, s.r.Buffered()))
		if len(window) == 0 {
			if err = s.readError(err); errors.Is(err, io.EOF) && scan.bare() && len(s.raw) > 0 {
				return s.raw, nil
			}
			return nil, s.ended(err)
		}
		n, done := scan.through(window)
		s.raw = append(s.raw, window[:n]...)
		s.line += bytes.Count(window[:n], []byte{'\n'})
		if _, err := s.r.Discard(n); err != nil {
			return nil, err
		}
		if done {
			return s.raw, nil
		}
		if len(s.raw) > maxLine {
			return nil, &fieldError{message: fmt.Sprintf("has a value longer than %d MiB; is this a trace?", maxLine>>20)}
		}
	}
}

// valueScan finds the end of a value.
type valueScan struct {
	depth            int
	inText, inEscape bool
}

// bare reports whether the value may end here, if it is a number or a word.
func (v *valueScan) bare() bool { return v.depth == 0 && !v.inText }

// through returns how many bytes of a window belong to the value, and whether it ends there.
func (v *valueScan) through(window []byte) (n int, done bool) {
	for i, c := range window {
		switch {
		case v.inEscape:
			v.inEscape = false
		case v.inText:
			if c == '\n' {
				return i, true // a text has no line breaks: it is cut off
			} else if c == '\\' {
				v.inEscape = true
			} else if c == '"' {
				if v.inText = false; v.depth == 0 {
					return i + 1, true
				}
			}
		case c == '"':
			v.inText = true
		case c == '{' || c == '[':
			v.depth++
		case c == '}' || c == ']':
			if v.depth <= 1 {
				return i + v.depth, true // the bracket is the value's last byte, or comes after it
			}
			v.depth--
		case v.depth == 0 && (c == ',' || c == ':' || c <= ' '):
			return i, true
		}
	}
	return len(window), false
}
