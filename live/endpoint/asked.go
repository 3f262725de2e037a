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
	BestOf         int             `json:"best_of"`
	UseBeamSearch  bool            `json:"use_beam_search"`
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
		{"n", a.N > 1 || a.N < 0, "send a request for each answer"},
		{"best_of", a.BestOf > 1, "send a request for each answer"},
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

// wanted reports whether a parameter that is a number or a yes is given.
func wanted(value json.RawMessage) bool {
	return len(value) > 0 && string(value) != "null" && string(value) != "false"
}
