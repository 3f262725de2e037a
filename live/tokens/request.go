package tokens

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/servegrid/servegrid/live/openai"
)

// AppendRequest appends the tokens of the prompt of a request that has one. The error says which part of it is none, or that
// there are several.
func AppendRequest(t Tokenizer, tokens []uint32, r *openai.Request) ([]uint32, error) {
	tokens, ends, err := AppendPrompts(t, tokens, r)
	if err == nil && len(ends) != 1 {
		err = fmt.Errorf("prompt must be one text or one list of token ids, there are %d", len(ends))
	}
	return tokens, err
}

// AppendPrompts appends the tokens of the prompts of a request, one after another, and returns where in the tokens each of them
// ends. A conversation is one prompt, and so are a text and a list of token ids; a list of texts, or of lists of token ids, is
// several. The error says which part of them is none of these.
func AppendPrompts(t Tokenizer, tokens []uint32, r *openai.Request) (_ []uint32, ends []int, err error) {
	if len(r.Messages) > 0 {
		messages, err := Conversation(r)
		if err != nil {
			return tokens, nil, err
		}
		tokens = AppendPrompt(t, tokens, messages)
		return tokens, []int{len(tokens)}, nil
	}
	if absent(r.Prompt) {
		return tokens, nil, errors.New("there are no messages and no prompt")
	}
	var text string
	if json.Unmarshal(r.Prompt, &text) == nil {
		tokens = t.AppendTokens(tokens, text)
		return tokens, []int{len(tokens)}, nil
	}
	ofNumbers := !bytes.ContainsRune(r.Prompt, 'n') // a null would become a 0
	var ids []uint32
	if ofNumbers && json.Unmarshal(r.Prompt, &ids) == nil && len(ids) > 0 {
		tokens = append(tokens, ids...)
		return tokens, []int{len(tokens)}, nil
	}
	var texts []string
	if json.Unmarshal(r.Prompt, &texts) == nil && len(texts) > 0 {
		for _, text := range texts {
			tokens = t.AppendTokens(tokens, text)
			ends = append(ends, len(tokens))
		}
		return tokens, ends, nil
	}
	var lists [][]uint32
	if ofNumbers && json.Unmarshal(r.Prompt, &lists) == nil && len(lists) > 0 {
		for _, ids := range lists {
			tokens = append(tokens, ids...)
			ends = append(ends, len(tokens))
		}
		return tokens, ends, nil
	}
	return tokens, nil, errors.New("prompt must be a text, a list of texts, a list of token ids, or a list of such lists")
}

// Conversation is what the messages of a request say: the tools in front, as they are written, then the messages. Tool calls are
// text of the message that makes them. What is no text, as an image, stands as its type and a digest, so that equal ones are
// equal.
func Conversation(r *openai.Request) ([]Message, error) {
	messages := make([]Message, 0, len(r.Messages)+1)
	if !absent(r.Tools) {
		messages = append(messages, Message{Role: "system", Text: string(r.Tools)})
	}
	for i := range r.Messages {
		text, err := messageText(&r.Messages[i])
		if err != nil {
			return nil, fmt.Errorf("messages[%d].%w", i, err)
		}
		messages = append(messages, Message{Role: r.Messages[i].Role, Text: text})
	}
	return messages, nil
}

// AnswerText is the text of an answer as it stands in the conversation that goes on from it: what it says, then its tool calls.
func AnswerText(content string, calls []openai.ToolCall) string {
	if len(calls) == 0 {
		return content
	}
	var text strings.Builder
	text.WriteString(content)
	for i := range calls {
		text.WriteString(calls[i].Function.Name)
		text.WriteString(calls[i].Function.Arguments)
	}
	return text.String()
}

// absent reports whether a field is not there or null.
func absent(field json.RawMessage) bool {
	return len(field) == 0 || bytes.Equal(field, []byte("null"))
}

func messageText(m *openai.Message) (string, error) {
	content, err := contentText(m.Content)
	if err != nil {
		return "", fmt.Errorf("content: %w", err)
	}
	if absent(m.ToolCalls) {
		return content, nil
	}
	var calls []openai.ToolCall
	if json.Unmarshal(m.ToolCalls, &calls) != nil {
		return "", fmt.Errorf("tool_calls must be a list of calls of functions")
	}
	return AnswerText(content, calls), nil
}

// contentText is the text of a content, which is one or a list of parts.
func contentText(content json.RawMessage) (string, error) {
	if absent(content) {
		return "", nil
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return "", fmt.Errorf("must be a text, a list of parts or null")
	}
	var all strings.Builder
	for i, raw := range parts {
		var part struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if json.Unmarshal(raw, &part) != nil {
			return "", fmt.Errorf("part %d must be an object with a type", i)
		}
		if part.Text != nil {
			all.WriteString(*part.Text)
		} else {
			fmt.Fprintf(&all, "[%s %016x]", part.Type, xxh3.Hash(raw))
		}
	}
	return all.String(), nil
}
