package endpoint

import (
	"encoding/json"

	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/simcore/workload"
)

// asked is the body of a request: what all clients say, what Dynamo's say to its router, and what is not supported.
type asked struct {
	openai.Request
	Nvext struct {
		AgentHints struct {
			Priority       int32  `json:"priority"`
			StrictPriority uint32 `json:"strict_priority"`
			PolicyClass    string `json:"policy_class"`
		} `json:"agent_hints"`
	} `json:"nvext"`
	Logprobs       json.RawMessage `json:"logprobs"`
	TopLogprobs    json.RawMessage `json:"top_logprobs"`
	PromptLogprobs json.RawMessage `json:"prompt_logprobs"`
	Echo           bool            `json:"echo"`
	BestOf         *int            `json:"best_of"`
	UseBeamSearch  bool            `json:"use_beam_search"`

	// made is how many answers there are to each prompt, sent how many of them are sent.
	made, sent int
}

// hints are what the request tells the router.
func (a *asked) hints() workload.Hints {
	h := a.Nvext.AgentHints
	return workload.Hints{Priority: h.Priority, StrictPriority: h.StrictPriority, PolicyClass: h.PolicyClass}
}

// unsupported refuses what would need an answer of another kind than the server makes; nil is nothing.
func (a *asked) unsupported() *refusal {
	for _, p := range []struct {
		name  string
		given bool
		why   string
	}{
		{"use_beam_search", a.UseBeamSearch, "text is made up, and none is better than another"},
		{"logprobs", wanted(a.Logprobs), "text is made up, and no token has a probability"},
		{"top_logprobs", wanted(a.TopLogprobs) && string(a.TopLogprobs) != "0", "text is made up, and no token has a probability"},
		{"prompt_logprobs", wanted(a.PromptLogprobs), "text is made up, and no token has a probability"},
		{"echo", a.Echo, "the prompt is not repeated"},
	} {
		if p.given {
			return badRequest(p.name, "%s is not supported: %s; leave it out.", p.name, p.why)
		}
	}
	return nil
}

// maxN bounds how many answers there are to a prompt, and maxBestOf of how many they are chosen, as OpenAI does. maxChoices
// bounds the answers to all prompts of a request.
const (
	maxN       = 128
	maxBestOf  = 20
	maxChoices = 2048
)

// count finds how many answers are made to each prompt and how many of them are sent, or why there can be none.
func (a *asked) count(chat bool) *refusal {
	a.sent = 1
	if a.N != nil {
		a.sent = *a.N
	}
	if a.sent < 1 || a.sent > maxN {
		return badRequest("n", "n must be at least 1 and at most %d, got %d.", maxN, a.sent)
	}
	a.made = a.sent
	if a.BestOf == nil {
		return nil
	}
	a.made = *a.BestOf
	switch {
	case chat && a.made != 1:
		return badRequest("best_of", "best_of is for completions, not for chats; leave it out.")
	case a.made < 1 || a.made > maxBestOf:
		return badRequest("best_of", "best_of must be at least 1 and at most %d, got %d.", maxBestOf, a.made)
	case a.made < a.sent:
		return badRequest("best_of", "best_of must be at least n=%d, got %d: so many answers are chosen of it.", a.sent, a.made)
	case a.made > a.sent && a.Stream:
		return badRequest("best_of", "best_of=%d with n=%d cannot be streamed: the best answers are known at the end.", a.made, a.sent)
	}
	return nil
}

// wanted reports whether a parameter that is a number or a yes is given.
func wanted(value json.RawMessage) bool {
	return len(value) > 0 && string(value) != "null" && string(value) != "false"
}
