package tokens

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/servegrid/servegrid/live/openai"
)

// AppendRequest appends the tokens of the prompt of a request, which is a conversation, a text or tokens as they are. The error
// says which part of it is none of these.
func AppendRequest(t Tokenizer, tokens []uint32, r *openai.Request) ([]uint32, error) {
	if ids, ok, err := promptTokens(r.Prompt); ok || err != nil {
		return append(tokens, ids...), err
	}
	messages, err := Conversation(r)
	if err != nil {
		return tokens, err
	}
	return AppendPrompt(t, tokens, messages), nil
}

// Conversation is what the prompt of a request says: the tools in front, as they are written, then the messages; or the text of
// a completion, as one message of the user. Tool calls are text of the message that makes them. What is no text, as an image,
// stands as its type and a digest, so that equal ones are equal.
func Conversation(r *openai.Request) ([]Message, error) {
	if len(r.Messages) == 0 {
		text, err := promptText(r.Prompt)
		if err != nil {
			return nil, err
		}
		return []Message{{Role: "user", Text: text}}, nil
	}
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

// promptText is the text of a completion's prompt.
func promptText(prompt json.RawMessage) (string, error) {
	if absent(prompt) {
		return "", fmt.Errorf("there are no messages and no prompt")
	}
	var text string
	if json.Unmarshal(prompt, &text) == nil {
		return text, nil
	}
	var texts []string
	if json.Unmarshal(prompt, &texts) == nil && len(texts) == 1 {
		return texts[0], nil
	}
	return "", fmt.Errorf("prompt must be one text, a list of one text, or a list of token ids")
}

// promptTokens are the tokens of a completion's prompt; ok says whether it consists of tokens: a list of them, or a list of one
// such list.
func promptTokens(prompt json.RawMessage) (tokens []uint32, ok bool, err error) {
	if absent(prompt) || prompt[0] != '[' {
		return nil, false, nil
	}
	if json.Unmarshal(prompt, &tokens) == nil {
		return tokens, len(tokens) > 0, nil
	}
	var lists [][]uint32
	if json.Unmarshal(prompt, &lists) != nil {
		return nil, false, nil
	}
	if len(lists) != 1 {
		return nil, false, fmt.Errorf("prompt must be one list of token ids, there are %d", len(lists))
	}
	return lists[0], true, nil
}
