package capture

import "bytes"

// maxEvent bounds one line of a stream, in bytes; what is longer is passed over.
const maxEvent = 4 << 20

// eventSplitter finds the data of events in a stream that comes in pieces. Endpoints of this kind have one line of data an event.
type eventSplitter struct {
	line    []byte // its beginning, when the rest is still to come
	tooLong bool   // of the line at hand, which is passed over
}

// add takes in the next piece and hands over the data of each line of data that is complete, valid during the call.
func (s *eventSplitter) add(b []byte, each func(data []byte)) {
	for len(b) > 0 {
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			s.keep(b)
			return
		}
		line := b[:end]
		if len(s.line) > 0 || s.tooLong {
			s.keep(line)
			line = s.line
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && !s.tooLong {
			each(bytes.TrimPrefix(data, []byte(" ")))
		}
		s.line, s.tooLong = s.line[:0], false
		b = b[end+1:]
	}
}

func (s *eventSplitter) keep(b []byte) {
	if s.tooLong = s.tooLong || len(s.line)+len(b) > maxEvent; !s.tooLong {
		s.line = append(s.line, b...)
	}
}
