package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/problem"
)

// MaxSpeculativeTokens bounds Config.NumSpeculativeTokens.
const MaxSpeculativeTokens = 5

// defaultAcceptance is the reference's acceptance rate of each speculative token.
func defaultAcceptance() [MaxSpeculativeTokens]float64 {
	return [MaxSpeculativeTokens]float64{.85, .3}
}

// speculation decides how many speculative tokens are accepted (engine specification §9). The zero value never
// speculates.
type speculation struct {
	// drafts is the number of tokens that are proposed with each decode step of a request.
	drafts int32
	// accept holds the acceptance rate of each one, given that those before it were accepted, in units of 2^-64;
	// math.MaxUint64 stands for certainty.
	accept [MaxSpeculativeTokens]uint64
	seed   uint64
	random stdRNG
}

func newSpeculation(c Config) speculation {
	s := speculation{drafts: int32(c.NumSpeculativeTokens), seed: c.SpeculationSeed}
	rates, _ := c.acceptance() // the configuration is valid
	for i, rate := range rates {
		if s.accept[i] = math.MaxUint64; rate < 1 {
			s.accept[i] = uint64(rate * (1 << 64))
		}
	}
	return s
}

// TokensPerStep is the number of tokens that a decode step gives a request on average, accepted speculative ones included, of
// a valid configuration.
func (c Config) TokensPerStep() float64 {
	tokens, accepted := 1.0, 1.0
	rates, _ := c.acceptance()
	for _, rate := range rates[:c.NumSpeculativeTokens] {
		accepted *= rate
		tokens += accepted
	}
	return tokens
}

// start begins the sequence of draws of the worker with the given index.
func (s *speculation) start(index int32) {
	if s.drafts > 0 {
		s.random.seed(s.seed + uint64(index))
	}
}

// draw returns how many of so many speculative tokens are accepted. A certain one takes no draw, as in the
// reference.
func (s *speculation) draw(drafts int32) int32 {
	for i, accept := range s.accept[:drafts] {
		if accept != math.MaxUint64 && s.random.Uint64() >= accept {
			return int32(i)
		}
	}
	return drafts
}

// acceptance returns the acceptance rate of each speculative token. Rates that are missing are 0, those beyond the
// last speculative token are not looked at by anyone.
func (c Config) acceptance() ([MaxSpeculativeTokens]float64, error) {
	if strings.TrimSpace(c.AcceptanceRates) == "" {
		return defaultAcceptance(), nil
	}
	var rates [MaxSpeculativeTokens]float64
	for i, text := range strings.Split(c.AcceptanceRates, ",") {
		rate, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(rate >= 0 && rate <= 1) {
			return rates, fmt.Errorf("rate %d is not a number from 0 to 1", i+1)
		}
		if i < len(rates) {
			rates[i] = rate
		}
	}
	return rates, nil
}

// validateSpeculation returns the problems of the settings for speculative decoding.
func (c Config) validateSpeculation() problem.List {
	var l problem.List
	if c.NumSpeculativeTokens < 0 || c.NumSpeculativeTokens > MaxSpeculativeTokens {
		l.Add("num_speculative_tokens", c.NumSpeculativeTokens, "give 1 to %d tokens, or 0 to switch speculative decoding off", MaxSpeculativeTokens)
	}
	if _, err := c.acceptance(); err != nil {
		l.Add("acceptance_rates", c.AcceptanceRates, "%v; give a comma-separated list such as 0.85,0.3", err)
	}
	if c.NumSpeculativeTokens > 0 && c.DecodeSpeedupRatio != 1 {
		l.Add("decode_speedup_ratio", c.DecodeSpeedupRatio, "with num_speculative_tokens give 1: what speculative decoding gains is simulated, not set")
	}
	return l
}

// readyWithRoom preempts requests until there are blocks for all tokens that the ready ones may get in this pass, of
// which all drafts may be accepted. The arguments are what [VLLM.ready] returned, the results what it now returns.
func (v *VLLM) readyWithRoom(now float64, decoding int, lengths int64) (int, int64, error) {
	for {
		// Taking the blocks evicts others for them. What is not needed in the end is free then, and is not held.
		if need := v.needForReady(); v.cache.Hold(kvcache.Sequence{}, 0, 0, 0, need) {
			for range need {
				v.cache.ReleaseAnonymous()
			}
			return decoding, lengths, nil
		}
		victim, _ := v.victim()
		if len(v.running) == 1 {
			r := &v.env.Requests[victim]
			most := v.mostTokens(r)
			return 0, 0, v.stuck(now, victim, most, ceilDiv(r.length()+most, v.blockSize))
		}
		v.preempt(now, victim)
		var err error
		if decoding, lengths, err = v.ready(now); err != nil {
			return 0, 0, err
		}
	}
}

// needForReady counts the blocks that the ready requests lack for the most tokens that they may get.
func (v *VLLM) needForReady() int {
	need := 0
	for _, id := range v.emitted {
		r := &v.env.Requests[id]
		held := r.blocks
		if r.partial {
			held++
		}
		need += int(max(0, ceilDiv(r.length()+v.mostTokens(r), v.blockSize)-held))
	}
	return need
}

// mostTokens is the most that a ready request may get in this pass.
func (v *VLLM) mostTokens(r *Request) int32 { return min(1+v.draftsOf(r), r.Output-r.Tokens) }

// draftsOf returns how many speculative tokens of a ready request the pass verifies. Where the first token costs a
// decode step, that step verifies like any other; otherwise the pass that computes the prompt, the first time or after
// a preemption, gives one token, and verification is limited by the token budget.
func (v *VLLM) draftsOf(r *Request) int32 {
	if v.env.Rules.DecodeInPrefillPass {
		return v.speculation.drafts
	}
	return r.drafts
}

// burst returns how many tokens the pass gives a ready request, and proposes those of the next pass.
func (v *VLLM) burst(r *Request) int32 {
	most, drafts := v.mostTokens(r), v.draftsOf(r)
	if !v.env.Rules.DecodeInPrefillPass {
		r.drafts = v.speculation.drafts
	}
	if drafts == 0 {
		return most
	}
	return min(1+v.speculation.draw(drafts), most)
}
