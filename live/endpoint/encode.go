package endpoint

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/servegrid/servegrid/live/openai"
)

// encoder writes the chunks of one answer. What they have in common is encoded once, so that a chunk is appended without garbage.
type encoder struct {
	chat bool
	// reasoning is what the engine calls the model's thoughts.
	reasoning string
	// head ends where the text of a chunk begins.
	head []byte
	text []byte
}

func (e *exchange) encoder() *encoder {
	c := &encoder{chat: e.chat, reasoning: e.server.reasoning}
	object := "text_completion"
	if e.chat {
		object = "chat.completion.chunk"
	}
	c.head = e.appendCommon(append(c.head, "data: "...), object)
	return c
}

// appendCommon appends what all answers begin with, up to their choices.
func (e *exchange) appendCommon(b []byte, object string) []byte {
	prefix := "cmpl-"
	if e.chat {
		prefix = "chatcmpl-"
	}
	b = append(append(b, `{"id":"`...), prefix...)
	b = appendEscaped(b, e.id)
	b = append(append(append(b, `","object":"`...), object...), `","created":`...)
	b = strconv.AppendInt(b, e.created, 10)
	b = appendEscaped(append(b, `,"model":"`...), e.model)
	return append(b, `","choices":[`...)
}

// role is the first chunk of a choice of a chat.
func (c *encoder) role(b []byte, index int) []byte {
	b = strconv.AppendInt(append(append(b, c.head...), `{"index":`...), int64(index), 10)
	return append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
}

// chunk appends a chunk with text of a choice, or with thoughts, up to its choices; finish is "" until the last one.
func (c *encoder) chunk(b []byte, index int, text []byte, thoughts bool, finish string) []byte {
	b = strconv.AppendInt(append(append(b, c.head...), `{"index":`...), int64(index), 10)
	if c.chat {
		name := "content"
		if thoughts {
			name = c.reasoning
		}
		b = append(append(append(b, `,"delta":{"`...), name...), `":"`...)
		b = append(appendEscaped(b, text), `"},"logprobs":null,"finish_reason":`...)
	} else {
		b = append(b, `,"text":"`...)
		b = append(appendEscaped(b, text), `","logprobs":null,"finish_reason":`...)
	}
	return append(appendReason(b, finish), `}]`...)
}

func appendReason(b []byte, finish string) []byte {
	if finish == "" {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), finish...), '"')
}

// appendCounts appends the usage of a chunk, which says how many tokens there were until then.
func appendCounts(b []byte, input, output int) []byte {
	b = strconv.AppendInt(append(b, `,"usage":{"prompt_tokens":`...), int64(input), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(input+output), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(output), 10)
	return append(b, '}')
}

// appendUsage appends the usage of an answer: each prompt counts once, and the tokens of all choices do.
func (e *exchange) appendUsage(b []byte) []byte {
	u := openai.Usage{PromptTokensDetails: &openai.PromptDetails{}}
	thoughts := openai.CompletionDetails{}
	for i := range e.choices {
		c := &e.choices[i]
		if !c.answer.repeated {
			u.PromptTokens += c.answer.input
			u.PromptTokensDetails.CachedTokens += c.cached
		}
		u.CompletionTokens += c.sent
		if c.answer.thoughts > 0 {
			thoughts.ReasoningTokens += min(c.sent, c.answer.thoughts)
			u.CompletionTokensDetails = &thoughts
		}
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	usage, _ := json.Marshal(u) // numbers
	return append(append(b, `,"usage":`...), usage...)
}

// appendEscaped appends a text as it stands between the quotes of JSON. What is no UTF-8 becomes the replacement character.
func appendEscaped[T string | []byte](b []byte, text T) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < ' ' || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, size := decodeRune(text[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, `\ufffd`...)
			} else {
				b = append(b, text[i:i+size]...)
			}
			i += size
			continue
		}
		i++
	}
	return b
}

// decodeRune decodes the first character of a text, of which no more than its bytes are copied.
func decodeRune[T string | []byte](text T) (rune, int) {
	var first [utf8.UTFMax]byte
	return utf8.DecodeRune(first[:copy(first[:], text)])
}
