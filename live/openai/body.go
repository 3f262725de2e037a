package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/servegrid/servegrid/live"
)

// bodyMaker makes the bodies of requests.
type bodyMaker struct {
	head       []byte // all fields that are equal in all requests
	chat       bool
	limitField string // "" when an extra field takes its place
	minTokens  bool
}

func newBodyMaker(o *TargetOptions) (*bodyMaker, error) {
	fields := map[string]json.RawMessage{
		"stream": json.RawMessage("true"), "stream_options": json.RawMessage(`{"include_usage":true}`),
	}
	model, err := json.Marshal(o.Model)
	if err != nil {
		return nil, err
	}
	fields["model"] = model
	if o.IgnoreEOS {
		fields["ignore_eos"] = json.RawMessage("true")
	}
	m := &bodyMaker{chat: o.Type == Chat, limitField: o.LimitField, minTokens: o.MinTokens}
	for name, value := range o.Extra {
		switch name {
		case MaxCompletionTokens, MaxTokens:
			m.limitField = ""
		case "min_tokens":
			m.minTokens = false
		}
		fields[name] = value
	}
	m.head = []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		m.head = append(appendText(m.head, name), ':')
		m.head = append(append(m.head, fields[name]...), ',')
	}
	return m, nil
}

// make makes the body of a request.
func (m *bodyMaker) make(output int, messages []live.Message) []byte {
	size := len(m.head) + 128
	for i := range messages {
		size += len(messages[i].Text) + 48
	}
	b := append(make([]byte, 0, size), m.head...)
	output = max(1, output) // no server makes none
	if m.limitField != "" {
		b = append(strconv.AppendInt(append(appendText(b, m.limitField), ':'), int64(output), 10), ',')
	}
	if m.minTokens {
		b = append(strconv.AppendInt(append(b, `"min_tokens":`...), int64(output), 10), ',')
	}
	if !m.chat {
		b = append(b, `"prompt":`...)
		return append(appendText(b, joined(messages)), '}')
	}
	b = append(b, `"messages":[`...)
	for i := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"role":`...), messages[i].Role)
		b = appendText(append(b, `,"content":`...), messages[i].Text)
		b = append(b, '}')
	}
	return append(b, ']', '}')
}

// joined is the text of a conversation.
func joined(messages []live.Message) string {
	if len(messages) == 1 {
		return messages[0].Text
	}
	var text []byte
	for i := range messages {
		text = append(text, messages[i].Text...)
	}
	return string(text)
}

// appendText appends a text as JSON has it.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // every text can be marshalled
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	return append(append(b, text...), '"')
}

// body is the body of a request. It forgets the text as soon as that is sent: tens of thousands of requests are under way, and
// prompts are long.
type body struct{ bytes.Reader }

func newBody(data []byte) io.ReadCloser {
	b := new(body)
	b.Reset(data)
	return b
}

// Close forgets the text.
func (b *body) Close() error {
	b.Reset(nil)
	return nil
}
