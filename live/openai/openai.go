// Package openai is the wire format of OpenAI-compatible endpoints: requests, answers, and streams of events, as far as serving
// and measuring need it.
package openai

import "encoding/json"

// Request is the body of /v1/chat/completions and /v1/completions. Keys that are not listed are ignored.
type Request struct {
	Model string `json:"model"`
	// Messages is the conversation of a chat completion.
	Messages []Message `json:"messages,omitempty"`
	// Prompt is that of a completion: text or token ids, or a list of several of either.
	Prompt json.RawMessage `json:"prompt,omitempty"`
	// Tools counts as text of the prompt.
	Tools         json.RawMessage `json:"tools,omitempty"`
	Stream        bool            `json:"stream,omitempty"`
	StreamOptions *StreamOptions  `json:"stream_options,omitempty"`
	// MaxCompletionTokens and MaxTokens bound the output; the first counts.
	MaxCompletionTokens *int `json:"max_completion_tokens,omitempty"`
	MaxTokens           *int `json:"max_tokens,omitempty"`
	MinTokens           int  `json:"min_tokens,omitempty"`
	IgnoreEOS           bool `json:"ignore_eos,omitempty"`
	// N is how many answers there are to each prompt; nil means 1.
	N    *int   `json:"n,omitempty"`
	Seed *int64 `json:"seed,omitempty"`
}

// StreamOptions asks for a last chunk with the usage.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
	// ContinuousUsageStats asks for the usage in every chunk.
	ContinuousUsageStats bool `json:"continuous_usage_stats,omitempty"`
}

// Message is one message of a conversation.
type Message struct {
	Role string `json:"role"`
	// Content is a text, a list of parts, or null.
	Content json.RawMessage `json:"content,omitempty"`
	// ToolCalls count as text of the prompt.
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`
	Name      string          `json:"name,omitempty"`
}

// ToolCall is one call of a function that an assistant asks for, or what has come of it.
type ToolCall struct {
	// Index tells the calls of a stream apart.
	Index    int          `json:"index"`
	Function ToolFunction `json:"function"`
}

// ToolFunction is what a call calls: arguments are JSON, as a text.
type ToolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Completion is an answer, or one chunk of a stream of it.
type Completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
	// Error is set instead of the rest when a stream fails.
	Error *Error `json:"error,omitempty"`
}

// Choice is one answer of several, or what has come of it.
type Choice struct {
	Index int `json:"index"`
	// Message is set in answers to chats, Delta in chunks of them, Text in completions.
	Message *Delta  `json:"message,omitempty"`
	Delta   *Delta  `json:"delta,omitempty"`
	Text    *string `json:"text,omitempty"`
	// FinishReason is null until the end, then "stop" or "length".
	FinishReason *string `json:"finish_reason"`
}

// Delta is what has come of a message.
type Delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	// Reasoning and ReasoningContent are what vLLM and others name the model's thoughts, which are output too.
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	ToolCalls        json.RawMessage `json:"tool_calls,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens        int            `json:"prompt_tokens"`
	CompletionTokens    int            `json:"completion_tokens"`
	TotalTokens         int            `json:"total_tokens"`
	PromptTokensDetails *PromptDetails `json:"prompt_tokens_details,omitempty"`
	// CompletionTokensDetails is not there where a model does not think.
	CompletionTokensDetails *CompletionDetails `json:"completion_tokens_details,omitempty"`
}

// CompletionDetails says how many tokens of the answer are the model's thoughts.
type CompletionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// PromptDetails says how many tokens of the prompt came from the prefix cache.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// Error is the body of an answer that is none, under the key error.
type Error struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param,omitempty"`
	Code    any    `json:"code,omitempty"`
}
