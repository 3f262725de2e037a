package openai

import (
	"bytes"
	"errors"
	"io"
)

// Done is the data of the event that ends a stream of chunks.
const Done = "[DONE]"

// ErrEventTooLarge says that an event is larger than the reader's limit.
var ErrEventTooLarge = errors.New("an event of the stream is larger than allowed")

const (
	// firstBuffer is the size of a reader's buffer until an event needs more: tens of thousands of streams are open at a time,
	// and a chunk of an answer has a few hundred bytes.
	firstBuffer = 1 << 10
	// idleReads is how often a reader may return nothing, without an error, in a row.
	idleReads = 100
)

// EventReader reads a stream of server-sent events, of which only the data counts here. It allocates nothing but its buffer,
// which grows with the largest event.
type EventReader struct {
	in      io.Reader
	limit   int
	buf     []byte // the data of the event at hand, then from start to end what was read and not looked at
	data    int    // how much the event at hand has
	start   int
	end     int
	err     error // why no more can be read
	begun   bool  // a byte order mark may come before
	afterCR bool  // a line feed that follows belongs to the line before
}

// NewEventReader returns a reader of events with at most limit bytes each.
func NewEventReader(r io.Reader, limit int) *EventReader { return &EventReader{in: r, limit: limit} }

// Next returns the data of the next event that has any: its lines joined by line feeds, valid until the next call. After the
// last event it returns io.EOF, and io.ErrUnexpectedEOF when the stream ends in the middle of a line. Errors of the reader
// below are returned as they are; an event over the limit is [ErrEventTooLarge].
//
// The end of the stream ends an event too, since some servers leave out the empty line after the last one.
func (r *EventReader) Next() ([]byte, error) {
	r.data = 0
	for found := false; ; {
		line, err := r.line()
		if err != nil {
			return r.last(found, err)
		}
		value, isData := dataOf(line)
		switch {
		case len(line) == 0 && found:
			return r.buf[:r.data], nil
		case !isData:
			continue
		case found: // the field's name had more room than a line feed needs
			r.buf[r.data] = '\n'
			r.data++
		}
		r.data += copy(r.buf[r.data:], value)
		found = true
	}
}

// last is what Next returns when there is no further whole line.
func (r *EventReader) last(found bool, err error) ([]byte, error) {
	rest := r.buf[r.start:r.end]
	value, isData := dataOf(rest)
	switch {
	case err != io.EOF:
		return nil, err
	case len(rest) == 0 && found:
		return r.buf[:r.data], nil
	case len(rest) == 0:
		return nil, io.EOF
	case !found && isData && string(value) == Done:
		r.start = r.end
		return value, nil
	}
	return nil, io.ErrUnexpectedEOF
}

// dataOf returns the value of a line that has the field data.
func dataOf(line []byte) (value []byte, ok bool) {
	value, ok = bytes.CutPrefix(line, []byte("data"))
	switch {
	case !ok:
		return nil, false
	case len(value) == 0:
		return value, true
	case value[0] != ':':
		return nil, false // another field, or a comment
	}
	return bytes.TrimPrefix(value[1:], []byte(" ")), true
}

// line returns the next line without its end, which is CR, LF or both. It is valid until the next call.
func (r *EventReader) line() ([]byte, error) {
	for looked := r.start; ; {
		if r.afterCR && r.start < r.end {
			r.afterCR = false
			if r.buf[r.start] == '\n' {
				r.start++
				looked = r.start
			}
		}
		if at := endOfLine(r.buf[looked:r.end]); at >= 0 {
			line := r.buf[r.start : looked+at]
			r.afterCR = r.buf[looked+at] == '\r'
			r.start = looked + at + 1
			if !r.begun {
				line, r.begun = bytes.TrimPrefix(line, []byte("\ufeff")), true
			}
			return line, nil
		}
		unfinished := r.end - r.start
		if err := r.fill(); err != nil {
			return nil, err
		}
		looked = r.start + unfinished
	}
}

func endOfLine(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill reads more behind what is there, and makes room for it.
func (r *EventReader) fill() error {
	if r.err != nil {
		return r.err
	}
	if r.end == len(r.buf) {
		if err := r.makeRoom(); err != nil {
			return err
		}
	}
	for range idleReads {
		n, err := r.in.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// makeRoom moves what was not looked at to behind the event at hand, or takes a larger buffer.
func (r *EventReader) makeRoom() error {
	into := r.buf
	if free := r.start - r.data; free < len(r.buf)/2 || free == 0 {
		if len(r.buf) >= r.limit {
			if free == 0 {
				r.err = ErrEventTooLarge
				return r.err
			}
		} else {
			into = make([]byte, min(max(2*len(r.buf), firstBuffer), r.limit))
			copy(into, r.buf[:r.data])
		}
	}
	n := copy(into[r.data:], r.buf[r.start:r.end])
	r.buf, r.start, r.end = into, r.data, r.data+n
	return nil
}
