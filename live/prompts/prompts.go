// Package prompts makes the text of a workload's prompts.
//
// Traces have no texts: they name the blocks of a prompt and say how many tokens it has. A prompt made here has exactly that
// many, and two prompts begin with the same text as far as the workload says that they share blocks. So a server that caches
// prefixes finds what the one of the trace found. Read prompts.go for the text and turns.go for how it becomes messages.
package prompts

import (
	"github.com/zeebo/xxh3"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Options say how texts become messages.
type Options struct {
	// Turns splits the prompt of a later turn into messages, where the turns before it and their answers ended. Otherwise it is
	// one message of the user. The text, and so its tokens, are the same.
	Turns bool
}

// SaltTokens is how many tokens at the beginning of a prompt a salt takes.
const SaltTokens = 8

// Prompter makes the prompts of a workload. It is safe for concurrent use and keeps nothing of what it has made.
type Prompter struct {
	w         *workload.Workload
	tokenizer tokens.Tokenizer
	opt       Options
	seed      uint64
	goesOn    []bool // whether a request's prompt begins with that of the turn before it; nil without Options.Turns
}

// New returns a prompter: the same workload and tokenizer give the same prompts.
func New(w *workload.Workload, t tokens.Tokenizer, opt Options) *Prompter {
	p := &Prompter{w: w, tokenizer: t, opt: opt, seed: xxh3.HashString(w.Digest())}
	if opt.Turns {
		p.goesOn = findTurns(w)
	}
	return p
}

// Messages is the prompt of a request.
func (p *Prompter) Messages(request int) []live.Message { return p.MessagesIn(request, 0) }

// MessagesIn is the prompt of a request among those with a salt, which share nothing with others: their first [SaltTokens]
// tokens are the salt's. 0 is no salt.
func (p *Prompter) MessagesIn(request int, salt uint64) []live.Message {
	prompt := p.Tokens(request, salt)
	if p.opt.Turns {
		return p.turns(request, prompt)
	}
	return []live.Message{{Role: "user", Text: tokens.Text(p.tokenizer, prompt)}}
}

// What a seed stands for, so that equal numbers of different things have different texts.
const (
	seedBlock = iota
	seedAnswer
	seedRequest
	seedSalt
)

// Tokens are the tokens of a request's prompt, with or without a salt.
func (p *Prompter) Tokens(request int, salt uint64) []uint32 {
	input := int(p.w.Input[request])
	prompt := make([]uint32, 0, input)
	for _, run := range p.w.AppendContent(nil, request) {
		kind := uint64(seedBlock)
		if run.Answer {
			kind = seedAnswer
		}
		prompt = append(prompt, p.tokenizer.Fill(tokens.Seed(p.seed, kind, run.Name), run.Tokens)...)
	}
	if rest := input - len(prompt); rest > 0 {
		prompt = append(prompt, p.tokenizer.Fill(tokens.Seed(p.seed, seedRequest, uint64(request)), rest)...)
	}
	if salt != 0 {
		copy(prompt, p.tokenizer.Fill(tokens.Seed(p.seed, seedSalt, salt), min(SaltTokens, input)))
	}
	return prompt
}
