package capture

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/tokens"
)

// answer is what is kept of an answer. A plain stream of events is read as it comes, so that it is known when tokens came; any
// other is kept and read at the end.
type answer struct {
	begun    bool
	stream   bool
	encoding string
	body     []byte // of what is no plain stream

	events eventSplitter
	text   answerText
	usage  *openai.Usage
	broken bool // some event was no JSON, or an error
}

func (a *answer) begin(h http.Header) {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	a.begun, a.stream, a.encoding = true, kind == "text/event-stream", h.Get("Content-Encoding")
}

// add takes in what came at a time.
func (a *answer) add(x *exchange, b []byte, now time.Time) {
	if a.stream && a.encoding == "" {
		a.events.add(b, func(data []byte) {
			a.event(data, now)
		})
		if more := a.text.bytes + int64(len(a.events.line)) - a.text.held; more > 0 && x.hold(more, a.text.bytes) {
			a.text.held += more
		}
		return
	}
	if x.hold(int64(len(b)), int64(len(a.body)+len(b))) {
		a.body = append(a.body, b...)
	}
}

// event reads one event of a stream that came at a time and reports whether it has output.
func (a *answer) event(data []byte, now time.Time) bool {
	if bytes.Equal(data, []byte("[DONE]")) {
		return false
	}
	var c completion
	if json.Unmarshal(data, &c) != nil || len(c.Error) > 0 {
		a.broken = true
		return false
	}
	return a.take(&c, now)
}

// finish reads an answer that was kept.
func (a *answer) finish() error {
	if a.stream && a.encoding == "" {
		return nil
	}
	body, err := decoded(a.body, a.encoding)
	if err != nil {
		return err
	}
	if a.stream {
		a.events.add(body, func(data []byte) { a.event(data, time.Time{}) })
		return nil
	}
	var c completion
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	a.take(&c, time.Time{})
	return nil
}

// completion is what is read of an answer, or of a chunk of one.
type completion struct {
	Choices []openai.Choice `json:"choices"`
	Usage   *openai.Usage   `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// take adds what an answer, or a chunk of one, says at a time and reports whether it has output.
func (a *answer) take(c *completion, now time.Time) (output bool) {
	if c.Usage != nil {
		a.usage = c.Usage
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		text := a.text.choice(choice.Index)
		before := text.bytes
		if choice.Message != nil {
			text.add(choice.Message, true)
		}
		if choice.Delta != nil {
			text.add(choice.Delta, false)
		}
		if choice.Text != nil {
			text.content.WriteString(*choice.Text)
			text.bytes += int64(len(*choice.Text))
		}
		if text.bytes > before {
			output = true
			a.text.bytes += text.bytes - before
			text.came(now)
		}
	}
	return output
}

// answerText is the text of an answer.
type answerText struct {
	choices []*choiceText // by index; nil of those of which nothing came
	bytes   int64
	held    int64 // of the budget
}

// maxChoices bounds the choices of an answer that are told apart; further ones count as part of the last.
const maxChoices = 1 << 14

// choiceBytes is about what a choice takes beside its text.
const choiceBytes = 256

// choice is the text of a choice.
func (t *answerText) choice(index int) *choiceText {
	index = min(max(index, 0), maxChoices-1)
	for len(t.choices) <= index {
		t.choices = append(t.choices, nil)
		t.bytes += 8
	}
	if t.choices[index] == nil {
		t.choices[index] = &choiceText{}
		t.bytes += choiceBytes
	}
	return t.choices[index]
}

// of returns the choices from one index to before another.
func (t *answerText) of(from, to int) []*choiceText {
	to = min(to, len(t.choices))
	return t.choices[min(from, to):to]
}

// choiceText is the text of one choice.
type choiceText struct {
	content, reasoning strings.Builder
	calls              []openai.ToolCall
	bytes              int64     // of all text
	firstAt, lastAt    time.Time // when text came, in a stream
}

// came notes that text has come at a time.
func (c *choiceText) came(now time.Time) {
	c.lastAt = now
	if c.firstAt.IsZero() {
		c.firstAt = now
	}
}

// add takes in a message, whole or what came of one. The calls of a whole one are in their order, others say which they are of.
func (c *choiceText) add(d *openai.Delta, whole bool) {
	write := func(to *strings.Builder, text string) {
		to.WriteString(text)
		c.bytes += int64(len(text))
	}
	if d.Content != nil {
		write(&c.content, *d.Content)
	}
	if d.Reasoning != "" { // some servers say it under both names
		write(&c.reasoning, d.Reasoning)
	} else {
		write(&c.reasoning, d.ReasoningContent)
	}
	var calls []openai.ToolCall
	if len(d.ToolCalls) == 0 || json.Unmarshal(d.ToolCalls, &calls) != nil {
		return
	}
	for i := range calls {
		if whole {
			calls[i].Index = i
		}
		c.addCall(&calls[i])
	}
}

// maxCalls bounds the calls of a choice that are told apart.
const maxCalls = 1024

func (c *choiceText) addCall(call *openai.ToolCall) {
	c.bytes += int64(len(call.Function.Name) + len(call.Function.Arguments))
	if call.Index < 0 || call.Index >= maxCalls {
		return
	}
	for len(c.calls) <= call.Index {
		c.calls = append(c.calls, openai.ToolCall{Index: len(c.calls)})
	}
	known := &c.calls[call.Index].Function
	known.Name += call.Function.Name
	known.Arguments += call.Function.Arguments
}

// appendTokens appends the tokens of the choice: its reasoning, then what a conversation goes on from.
func (c *choiceText) appendTokens(tokenizer tokens.Tokenizer, to []uint32) []uint32 {
	to = tokenizer.AppendTokens(to, c.reasoning.String())
	return tokenizer.AppendTokens(to, tokens.AnswerText(c.content.String(), c.calls))
}
