package capture

import (
	"strings"
	"testing"
	"time"

	"github.com/servegrid/servegrid/live/tokens"
)

// split returns the data of a stream that comes in pieces of so many bytes.
func split(stream string, piece int) []string {
	var s eventSplitter
	var all []string
	for len(stream) > 0 {
		n := min(piece, len(stream))
		s.add([]byte(stream[:n]), func(data []byte) { all = append(all, string(data)) })
		stream = stream[n:]
	}
	return all
}

func TestEventsInPieces(t *testing.T) {
	const stream = ": a comment\n\ndata: one\n\nevent: x\r\ndata:two\r\n\r\nid: 7\ndata:  three\rdata: [DONE]\n\ndata: never ends"
	for piece := 1; piece <= len(stream); piece++ {
		if got := strings.Join(split(stream, piece), "|"); got != "one|two| three|[DONE]" {
			t.Errorf("in pieces of %d: %q", piece, got)
		}
	}
	long := "data: " + strings.Repeat("x", maxEvent) + "\ndata: short\n"
	if got := split(long, 1<<16); len(got) != 1 || got[0] != "short" {
		t.Errorf("%d events", len(got))
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\n\ndata: b\r\n\r\n", uint8(3))
	f.Add("data:a\rdata", uint8(1))
	f.Fuzz(func(t *testing.T, stream string, piece uint8) {
		whole, parts := split(stream, len(stream)+1), split(stream, int(piece)+1)
		if strings.Join(whole, "\x00") != strings.Join(parts, "\x00") {
			t.Errorf("%q whole, %q in parts", whole, parts)
		}
	})
}

func TestAnswers(t *testing.T) {
	tokenizer, err := tokens.Parse("bytes")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		events []string
		text   string
		output []bool
		broken bool
	}{
		"chat":        {[]string{`{"choices":[{"delta":{"role":"assistant"}}]}`, `{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}`}, "ab", []bool{false, true, true}, false},
		"completion":  {[]string{`{"choices":[{"text":"a"}]}`, `{"choices":[{"text":"b"}]}`}, "ab", []bool{true, true}, false},
		"reasoning":   {[]string{`{"choices":[{"delta":{"reasoning_content":"r"}}]}`, `{"choices":[{"delta":{"reasoning":"s","reasoning_content":"s"}}]}`, `{"choices":[{"delta":{"content":"a"}}]}`}, "rsa", []bool{true, true, true}, false},
		"tools":       {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"name":"g","arguments":""}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}},{"index":1,"function":{"arguments":"{}"}}]}}]}`}, "fg{}", []bool{true, true}, false},
		"whole tools": {[]string{`{"choices":[{"message":{"content":"c","tool_calls":[{"function":{"name":"f","arguments":"1"}},{"function":{"name":"g","arguments":"2"}}]}}]}`}, "cf1g2", []bool{true}, false},
		"usage":       {[]string{`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, `[DONE]`}, "", []bool{false, false}, false},
		"error":       {[]string{`{"error":{"message":"no"}}`}, "", []bool{false}, true},
		"error text":  {[]string{`{"error":"no"}`}, "", []bool{false}, true},
		"no JSON":     {[]string{`oops`}, "", []bool{false}, true},
		"bad call":    {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":-1,"function":{"name":"f"}},{"index":1000000,"function":{"name":"f"}}]}}]}`}, "", []bool{true}, false},
	} {
		a := answer{begun: true, stream: true}
		for i, e := range c.events {
			if got := a.event([]byte(e)); got != c.output[i] {
				t.Errorf("%s: event %d has output: %v", name, i, got)
			}
		}
		if got := tokens.Text(tokenizer, a.text.appendTokens(tokenizer, nil)); got != c.text || a.broken != c.broken {
			t.Errorf("%s: %q, broken %v", name, got, a.broken)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`data: {"choices":[{"index":1,"delta":{"content":"a","tool_calls":[{"index":3,"function":{"name":"f"}}]}}],"usage":{"completion_tokens":-7}}` + "\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		memory := &budget{limit: 1 << 20}
		x := &exchange{id: "1", receivedAt: time.Now(), maxBody: 1 << 20, memory: memory, request: []byte(`{"prompt":"some text"}`)}
		x.answer.begun, x.answer.stream = true, true
		x.answer.add(x, stream, time.Now())
		x.ended = time.Now()
		d := describer{tokenizer: mustParse("bytes"), blockSize: 4}
		if e, output, err := d.describe(x); err == nil && output && (e.Request.OutputTokens < 1 || len(e.Request.Replay.Input) != 3) {
			t.Errorf("%+v", e.Request)
		}
		x.release()
		if memory.used.Load() != 0 {
			t.Errorf("%d bytes are never given back", memory.used.Load())
		}
	})
}

func mustParse(name string) tokens.Tokenizer {
	t, err := tokens.Parse(name)
	if err != nil {
		panic(err)
	}
	return t
}
