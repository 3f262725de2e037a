package prompts

import (
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore/workload"
)

// turns splits a prompt where the turns before it in its session ended, as far as it goes on from them: what the user said, the
// answer, what the user said next.
func (p *Prompter) turns(request int, prompt []uint32) []live.Message {
	first := request
	for p.goesOn[first] {
		first--
	}
	var messages []live.Message
	from := 0
	add := func(role string, to int) {
		messages = append(messages, live.Message{Role: role, Text: tokens.Text(p.tokenizer, prompt[from:to])})
		from = to
	}
	for r := first; r < request; r++ {
		asked := int(p.w.Input[r])
		answered := asked + int(p.w.Output[r])
		if asked > from && answered > asked && answered < len(prompt) {
			add("user", asked)
			add("assistant", answered)
		}
	}
	add("user", len(prompt))
	return messages
}

// findTurns says of each request whether its prompt begins with all whole blocks of that of the turn before it.
func findTurns(w *workload.Workload) []bool {
	goesOn := make([]bool, w.Requests())
	var before, content []workload.ContentRun
	for s := range w.Sessions() {
		for r := w.SessionStart[s]; r < w.SessionStart[s+1]; r++ {
			before, content = content, w.AppendContent(before[:0], int(r))
			if r > w.SessionStart[s] {
				shared := commonTokens(before, content)
				goesOn[r] = shared > 0 && shared > int(w.Input[r-1])-max(1, w.BlockSize)
			}
		}
	}
	return goesOn
}

// commonTokens is how many tokens two prompts begin with alike.
func commonTokens(a, b []workload.ContentRun) int {
	common := 0
	for i := range min(len(a), len(b)) {
		if a[i].Name != b[i].Name || a[i].Answer != b[i].Answer {
			break
		}
		common += min(a[i].Tokens, b[i].Tokens)
		if a[i].Tokens != b[i].Tokens {
			break
		}
	}
	return common
}
