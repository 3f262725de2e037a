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
	firstAt  time.Time
	lastAt   time.Time

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
			if a.event(data) {
				a.lastAt = now
				if a.firstAt.IsZero() {
					a.firstAt = now
				}
			}
		})
		if more := a.text.size() + int64(len(a.events.line)) - a.text.held; more > 0 && x.hold(more, a.text.size()) {
			a.text.held += more
		}
		return
	}
	if x.hold(int64(len(b)), int64(len(a.body)+len(b))) {
		a.body = append(a.body, b...)
	}
}

// event reads one event of a stream and reports whether it has output.
func (a *answer) event(data []byte) bool {
	if bytes.Equal(data, []byte("[DONE]")) {
		return false
	}
	var c completion
	if json.Unmarshal(data, &c) != nil || len(c.Error) > 0 {
		a.broken = true
		return false
	}
	return a.take(&c)
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
		a.events.add(body, func(data []byte) { a.event(data) })
		return nil
	}
	var c completion
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	a.take(&c)
	return nil
}

// completion is what is read of an answer, or of a chunk of one.
type completion struct {
	Choices []openai.Choice `json:"choices"`
	Usage   *openai.Usage   `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// take adds what an answer, or a chunk of one, says and reports whether it has output.
func (a *answer) take(c *completion) (output bool) {
	if c.Usage != nil {
		a.usage = c.Usage
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		before := a.text.size()
		if choice.Message != nil {
			a.text.add(choice.Index, choice.Message, true)
		}
		if choice.Delta != nil {
			a.text.add(choice.Index, choice.Delta, false)
		}
		if choice.Text != nil {
			a.text.content.write(choice.Index, *choice.Text)
		}
		output = output || a.text.size() > before
	}
	return output
}

// answerText is the text of an answer.
type answerText struct {
	content, reasoning choiceText
	calls              []openai.ToolCall // of the first choice
	callBytes          int64
	held               int64 // of the budget
}

// choiceText is the text of the first choice, and how much the others have.
type choiceText struct {
	first  strings.Builder
	others strings.Builder
}

func (c *choiceText) write(choice int, text string) {
	if choice == 0 {
		c.first.WriteString(text)
	} else {
		c.others.WriteString(text)
	}
}

func (c *choiceText) size() int64 { return int64(c.first.Len() + c.others.Len()) }

func (t *answerText) size() int64 { return t.content.size() + t.reasoning.size() + t.callBytes }

// add takes in a message, whole or what came of one. The calls of a whole one are in their order, others say which they are of.
func (t *answerText) add(choice int, d *openai.Delta, whole bool) {
	if d.Content != nil {
		t.content.write(choice, *d.Content)
	}
	if d.Reasoning != "" { // some servers say it under both names
		t.reasoning.write(choice, d.Reasoning)
	} else {
		t.reasoning.write(choice, d.ReasoningContent)
	}
	var calls []openai.ToolCall
	if len(d.ToolCalls) == 0 || json.Unmarshal(d.ToolCalls, &calls) != nil {
		return
	}
	for i := range calls {
		if whole {
			calls[i].Index = i
		}
		t.addCall(choice, &calls[i])
	}
}

// maxCalls bounds the calls of an answer that are told apart.
const maxCalls = 1024

func (t *answerText) addCall(choice int, call *openai.ToolCall) {
	t.callBytes += int64(len(call.Function.Name) + len(call.Function.Arguments))
	if choice != 0 || call.Index < 0 || call.Index >= maxCalls {
		return
	}
	for len(t.calls) <= call.Index {
		t.calls = append(t.calls, openai.ToolCall{Index: len(t.calls)})
	}
	known := &t.calls[call.Index].Function
	known.Name += call.Function.Name
	known.Arguments += call.Function.Arguments
}

// appendTokens appends the tokens of the first choice: its reasoning, then what a conversation goes on from.
func (t *answerText) appendTokens(tokenizer tokens.Tokenizer, to []uint32) []uint32 {
	to = tokenizer.AppendTokens(to, t.reasoning.first.String())
	return tokenizer.AppendTokens(to, tokens.AnswerText(t.content.first.String(), t.calls))
}

// otherTokens counts the tokens of all other choices.
func (t *answerText) otherTokens(tokenizer tokens.Tokenizer) int {
	return len(tokenizer.AppendTokens(tokenizer.AppendTokens(nil, t.reasoning.others.String()), t.content.others.String()))
}
