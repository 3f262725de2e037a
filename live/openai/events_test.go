package openai

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readAll returns the data of all events and how the stream ended.
func readAll(r *EventReader) (events []string, err error) {
	for {
		data, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, string(data))
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
		end          error
	}{
		{"line feeds", "data: a\n\ndata: b\n\n", []string{"a", "b"}, io.EOF},
		{"carriage returns", "data: a\r\rdata: b\r\r", []string{"a", "b"}, io.EOF},
		{"both", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, io.EOF},
		{"no space", "data:a\n\ndata:  b\n\n", []string{"a", " b"}, io.EOF},
		{"several lines", "data: a\ndata: b\ndata\ndata: c\n\n", []string{"a\nb\n\nc"}, io.EOF},
		{"comments and other fields", ": ping\n\nevent: x\nid: 1\ndata: a\nretry: 5\n\n: bye\n\n", []string{"a"}, io.EOF},
		{"another field that begins alike", "database: x\ndata: a\n\n", []string{"a"}, io.EOF},
		{"empty data", "data:\n\ndata: a\n\n", []string{"", "a"}, io.EOF},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"a"}, io.EOF},
		{"no empty line at the end", "data: a\n\ndata: b\n", []string{"a", "b"}, io.EOF},
		{"done without a line end", "data: a\n\ndata: [DONE]", []string{"a", "[DONE]"}, io.EOF},
		{"cut", "data: a\n\ndata: {\"b", []string{"a"}, io.ErrUnexpectedEOF},
		{"cut behind a line", "data: a\ndata: {\"b", nil, io.ErrUnexpectedEOF},
		{"nothing", "", nil, io.EOF},
		{"too large", "data: " + strings.Repeat("x", 5000) + "\n\n", nil, ErrEventTooLarge},
		{"too many lines", strings.Repeat("data: x\n", 5000), nil, ErrEventTooLarge},
	} {
		for name, reader := range map[string]io.Reader{
			"at once": strings.NewReader(c.stream), "by byte": iotest.OneByteReader(strings.NewReader(c.stream)),
			"with its end": iotest.DataErrReader(strings.NewReader(c.stream)),
		} {
			got, err := readAll(NewEventReader(reader, 4096))
			if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.end) {
				t.Errorf("%s, %s: events differ (-want +got):\n%s\nend %v, want %v", c.name, name, diff, err, c.end)
			}
		}
	}
}

func TestEventsKeepTheErrorBelow(t *testing.T) {
	broken := errors.New("reset by peer")
	r := NewEventReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 4096)
	got, err := readAll(r)
	if diff := cmp.Diff([]string{"a"}, got); diff != "" || err != broken {
		t.Errorf("events differ (-want +got):\n%s\nerror %v, want %v", diff, err, broken)
	}
}

func TestEventsDoNotAllocate(t *testing.T) {
	const chunk = `{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hello \" there"},"finish_reason":null}],"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":3}}`
	r := NewEventReader(&endless{text: "data: " + chunk + "\r\n\r\n"}, 1<<20)
	allocations := testing.AllocsPerRun(1000, func() {
		data, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if c, err := ParseChunk(data); err != nil || !c.Text || c.Usage.Cached != 4 {
			t.Fatalf("got %+v, %v", c, err)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations an event", allocations)
	}
}

// endless is a stream that repeats a text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

// plainEvents reads a whole stream as the standard describes it, line by line.
func plainEvents(stream string) (events []string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	lines := strings.Split(stream, "\n")
	rest := lines[len(lines)-1]
	var data []string
	for _, line := range lines[:len(lines)-1] {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && data != nil:
			events, data = append(events, strings.Join(data, "\n")), nil
		case name == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	switch {
	case rest == "" && data != nil:
		events = append(events, strings.Join(data, "\n"))
	case data == nil && (rest == "data: [DONE]" || rest == "data:[DONE]"):
		events = append(events, Done)
	}
	return events
}

func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\r\n\r\n", "data:a\rdata\r\n\ndata: [DONE]", ":x\n\nevent: y\ndata: 1\n\n", "\ufeffdata: \n\n", strings.Repeat("data: xy\n", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		want := plainEvents(stream)
		for _, reader := range []io.Reader{strings.NewReader(stream), iotest.HalfReader(strings.NewReader(stream)), iotest.OneByteReader(strings.NewReader(stream))} {
			got, err := readAll(NewEventReader(reader, 1<<20))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events differ (-want +got):\n%s", diff)
			}
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				t.Errorf("ended with %v", err)
			}
		}
	})
}
