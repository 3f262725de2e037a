package tokens

// Message is one message of a conversation.
type Message struct {
	// Role is system, user, assistant or tool.
	Role string
	// Text is its content.
	Text string
}

// AppendPrompt appends the tokens of a conversation as an engine sees them: message after message, so that a conversation that
// goes on begins with the same tokens. Roles have none: the length of a prompt is that of its texts.
func AppendPrompt(t Tokenizer, tokens []uint32, messages []Message) []uint32 {
	for i := range messages {
		tokens = t.AppendTokens(tokens, messages[i].Text)
	}
	return tokens
}
