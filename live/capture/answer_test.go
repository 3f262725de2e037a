package capture

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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
			if got := a.event([]byte(e), time.Time{}); got != c.output[i] {
				t.Errorf("%s: event %d has output: %v", name, i, got)
			}
		}
		if got := a.text.first(tokenizer); got != c.text || a.broken != c.broken {
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
		if events, _, err := d.describe(x); err == nil && len(events) > 0 && (events[0].Request.OutputTokens < 1 || len(events[0].Request.Replay.Input) != 3) {
			t.Errorf("%+v", events[0].Request)
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

// first is the text of the first choice.
func (t *answerText) first(tokenizer tokens.Tokenizer) string {
	return tokens.Text(tokenizer, t.choice(0).appendTokens(tokenizer, nil))
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		total   int
		numbers []int
		most    int
		want    []int
	}{
		{7, []int{3}, math.MaxInt, []int{7}},
		{10, []int{4, 6}, math.MaxInt, []int{4, 6}},
		{20, []int{5, 9, 3}, 8, []int{8, 8, 4}},
		{24, []int{5, 90, 3}, 8, []int{8, 8, 8}},      // all ended by length
		{12, []int{10, 0}, 8, []int{8, 4}},            // what the tokenizer does not see
		{30, []int{10, 20}, 8, []int{10, 20}},         // more than was asked for
		{3, []int{1000, 1}, math.MaxInt, []int{2, 1}}, // one has something
		{1, []int{1000, 1}, math.MaxInt, []int{1, 0}}, // not enough for all
		{5, []int{0, 0, 0}, math.MaxInt, []int{2, 1, 2}},
	} {
		got := slices.Clone(c.numbers)
		if share(c.total, got, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d as %v, none above %d: %v, want %v", c.total, c.numbers, c.most, got, c.want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 12).Draw(rt, "numbers")
		total, most := rapid.IntRange(0, 3000).Draw(rt, "total"), rapid.IntRange(1, 300).Draw(rt, "most")
		got := slices.Clone(numbers)
		share(total, got, most)
		sum, some := 0, 0
		for i, n := range got {
			sum += n
			some += min(numbers[i], 1)
			if n < 0 || n > most && total <= most*len(numbers) {
				rt.Fatalf("%v has %d", got, n)
			}
		}
		for i, n := range got {
			if n == 0 && numbers[i] > 0 && some <= total {
				rt.Fatalf("%v lost number %d", got, i)
			}
		}
		if sum != total {
			rt.Fatalf("%v adds up to %d, not to %d", got, sum, total)
		}
	})
}
