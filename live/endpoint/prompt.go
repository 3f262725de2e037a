package endpoint

import (
	"fmt"
	"sync"

	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// answerPlan is what the answer to a request will be.
type answerPlan struct {
	// input is the length of the prompt, text the tokens of the answer.
	input int
	text  []uint32
	// thoughts counts the tokens of text, from its beginning, that are the model's thoughts.
	thoughts int
	// whole says that the answer ends by itself, and not because the request bounds it.
	whole bool
	// blocks are the KV blocks of prompt and answer.
	blocks []uint64
	hints  workload.Hints
	// repeated says that the choice before has the same prompt.
	repeated bool
}

// maxAnswers bounds the tokens of all answers to a request, where there are several.
const maxAnswers = maxContext

// tokenBuffers are those in which prompts are tokenized.
var tokenBuffers = sync.Pool{New: func() any { return new([]uint32) }}

// plan tokenizes the prompts of a request and makes their answers, prompt after prompt: the text depends on the prompt and the seeds
// alone, and is known to the deployment beforehand, so that the next turn of a conversation finds its KV blocks.
func (s *Server) plan(r *asked) ([]answerPlan, *refusal) {
	buf := tokenBuffers.Get().(*[]uint32)
	defer func() {
		if cap(*buf) <= maxKept {
			tokenBuffers.Put(buf)
		}
	}()
	prompts, ends, err := tokens.AppendPrompts(s.opt.Tokenizer, (*buf)[:0], &r.Request)
	*buf = prompts
	if err != nil {
		return nil, badRequest("", "%v.", err)
	}
	if n := len(ends) * r.made; n > maxChoices {
		return nil, badRequest("prompt", "%d prompts with %d answers each are more than the %d that a request may have; send several requests.", len(ends), r.made, maxChoices)
	}
	plans, begin := make([]answerPlan, 0, len(ends)*r.made), 0
	for i, end := range ends {
		var refused *refusal
		if plans, refused = s.appendPlans(plans, prompts[begin:end], buf, r); refused != nil {
			if len(ends) > 1 {
				refused.body.Message = fmt.Sprintf("prompt[%d]: %s", i, refused.body.Message)
			}
			return nil, refused
		}
		begin = end
	}
	return plans, nil
}

// appendPlans makes the answers to one prompt. Behind what is in the buffer there is room to work.
func (s *Server) appendPlans(plans []answerPlan, prompt []uint32, buf *[]uint32, r *asked) ([]answerPlan, *refusal) {
	if len(prompt) == 0 {
		return nil, badRequest("prompt", "The prompt is empty.")
	}
	seed := s.answerSeed(prompt, &r.Request)
	shared := tokens.Hashes(prompt, s.block)
	for i := range r.made {
		seed := seed ^ uint64(i)*0xbf58476d1ce4e5b9
		output, whole, refused := s.outputLength(len(prompt), seed, &r.Request)
		if refused != nil {
			return nil, refused
		}
		if most := maxAnswers / (len(plans) + 1); output > most && len(plans) > 0 {
			return nil, badRequest("max_tokens", "The answers to a request may have %d tokens together, and %d of %d tokens are more; send several requests.", maxAnswers, len(plans)+1, output)
		}
		p := answerPlan{input: len(prompt), whole: whole, text: s.opt.Tokenizer.Fill(seed, output), hints: r.hints(), repeated: i > 0}
		if len(r.Messages) > 0 {
			p.thoughts = int(s.opt.ReasoningShare * float64(output))
		}
		p.blocks = append(make([]uint64, 0, (len(prompt)+output)/s.block), shared...)
		kept := len(*buf)
		*buf = append(append(*buf, prompt[len(shared)*s.block:]...), p.text...)
		p.blocks = tokens.AppendHashes(p.blocks, (*buf)[kept:], s.block)
		*buf = (*buf)[:kept]
		plans = append(plans, p)
	}
	return plans, nil
}

// answerSeed is what the text of an answer depends on.
func (s *Server) answerSeed(prompt []uint32, r *openai.Request) uint64 {
	seed := tokens.Hashes(prompt, len(prompt))[0] ^ s.opt.Seed*0x9e3779b97f4a7c15
	if r.Seed != nil {
		seed ^= uint64(*r.Seed) * 0xd1b54a32d192ed03
	}
	return seed
}

// outputLength is how many tokens the answer has, and whether it then ends by itself.
func (s *Server) outputLength(input int, seed uint64, r *openai.Request) (output int, whole bool, refused *refusal) {
	room := s.limit - input
	if room < 1 {
		return 0, false, badRequest("messages", "This model's maximum context length is %d tokens. However, your request has %d input tokens. Please reduce the length of the input.", s.limit, input)
	}
	if most := maxTokens(r); most != nil {
		if *most > room {
			return 0, false, badRequest("max_tokens", "'max_tokens' or 'max_completion_tokens' is too large: %d. This model's maximum context length is %d tokens and your request has %d input tokens (%d > %d - %d).",
				*most, s.limit, input, *most, s.limit, input)
		}
		return *most, false, nil
	}
	output = max(s.opt.OutputTokens.draw(seed), r.MinTokens)
	if output >= room {
		return room, false, nil
	}
	return output, !r.IgnoreEOS, nil
}

// request is what the deployment is asked for.
func (p *answerPlan) request(session string) simcore.OnlineRequest {
	return simcore.OnlineRequest{Input: p.input, Output: len(p.text), Blocks: p.blocks, Session: session, Hints: p.hints}
}
