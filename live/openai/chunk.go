package openai

import (
	"encoding/json"
	"errors"
)

// Chunk is what measuring needs of an answer or of one chunk of its stream.
type Chunk struct {
	// Text says that some choice has text, reasoning or a tool call, which are all output.
	Text bool
	// Finished says that some choice has ended.
	Finished bool
	// HasUsage says that Usage is stated.
	HasUsage bool
	Usage    ChunkUsage
	// Failed says that it is an error instead, and Message what it says.
	Failed  bool
	Message string
}

// ChunkUsage counts tokens; what is not stated is -1.
type ChunkUsage struct {
	Prompt, Completion, Cached int
}

// ErrNotJSON says that the data of an event is no JSON object.
var ErrNotJSON = errors.New("the data of an event is no JSON object")

// ParseChunk finds in a chunk what measuring needs, without allocating unless it is an error. It accepts what the servers send,
// which is more than what OpenAI specifies: the thoughts of a model are in reasoning or reasoning_content, and an error is an
// object or a text under the key error, or the body itself.
func ParseChunk(data []byte) (Chunk, error) {
	var c Chunk
	s := scanner{data: data}
	failed := s.object(func(key []byte) { c.field(&s, key) })
	s.space()
	if failed || s.at != len(data) {
		return Chunk{}, ErrNotJSON
	}
	if c.Failed {
		c.Message = ErrorMessage(data)
	}
	return c, nil
}

// field reads one field of a chunk.
func (c *Chunk) field(s *scanner, key []byte) {
	switch string(key) {
	case "choices":
		s.array(func() {
			s.object(func(key []byte) { c.choice(s, key) })
		})
	case "usage":
		if s.peek() == '{' {
			c.HasUsage, c.Usage = true, ChunkUsage{-1, -1, -1}
			s.object(func(key []byte) { c.Usage.field(s, key) })
			return
		}
		s.skip()
	case "error":
		c.Failed = c.Failed || s.peek() != 'n'
		s.skip()
	case "object":
		s.space()
		begin := s.at
		s.skip()
		c.Failed = c.Failed || !s.failed && string(s.data[begin:s.at]) == `"error"` // of older vLLM
	default:
		s.skip()
	}
}

// choice reads one field of a choice.
func (c *Chunk) choice(s *scanner, key []byte) {
	switch string(key) {
	case "delta", "message":
		if s.peek() == '{' {
			s.object(func(key []byte) { c.delta(s, key) })
			return
		}
		s.skip()
	case "text":
		c.Text = s.filled() || c.Text
	case "finish_reason":
		c.Finished = c.Finished || s.peek() != 'n'
		s.skip()
	default:
		s.skip()
	}
}

// delta reads one field of what has come of a message.
func (c *Chunk) delta(s *scanner, key []byte) {
	switch string(key) {
	case "content", "reasoning", "reasoning_content", "refusal", "tool_calls":
		c.Text = s.filled() || c.Text
	default:
		s.skip()
	}
}

// field reads one count.
func (u *ChunkUsage) field(s *scanner, key []byte) {
	switch string(key) {
	case "prompt_tokens":
		u.Prompt = s.count()
	case "completion_tokens":
		u.Completion = s.count()
	case "prompt_tokens_details":
		if s.peek() == '{' {
			s.object(func(key []byte) {
				if string(key) == "cached_tokens" {
					u.Cached = s.count()
				} else {
					s.skip()
				}
			})
			return
		}
		s.skip()
	default:
		s.skip()
	}
}

// ErrorMessage is what the body of a failed answer says, for people: the message of an OpenAI error, or what came instead. It may be
// long, and no text.
func ErrorMessage(body []byte) string {
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	text := string(body)
	if json.Unmarshal(body, &answer) != nil {
		return text
	}
	var inner struct {
		Message string `json:"message"`
	}
	var plain string
	switch {
	case answer.Error != nil && json.Unmarshal(answer.Error, &inner) == nil && inner.Message != "":
		text = inner.Message
	case answer.Error != nil && json.Unmarshal(answer.Error, &plain) == nil && plain != "":
		text = plain
	case answer.Message != "":
		text = answer.Message
	case answer.Detail != nil:
		text = string(answer.Detail)
	}
	return text
}
