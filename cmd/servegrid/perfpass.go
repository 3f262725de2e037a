package main

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// passFlags describe one pass.
type passFlags struct{ prefill, decode []string }

// prompts are equal prompts of a pass: fresh tokens are computed of each, before exist already.
type prompts struct{ count, fresh, before int }

// sequences are equal sequences of a decode step.
type sequences struct{ count, context int }

// Bounds of what a pass may be asked for; no engine comes near.
const (
	maxPassRequests = 1 << 16
	maxPassTokens   = 1 << 24
)

// given reports whether a pass was asked for.
func (f passFlags) given() bool { return len(f.prefill)+len(f.decode) > 0 }

// pass builds the pass that holds all prompts and sequences, as the engine would.
func (f passFlags) pass() (perfmodel.Pass, error) {
	var p perfmodel.Pass
	length, before := 0, 0
	for _, text := range f.prefill {
		g, err := parsePrompts(text)
		if err != nil {
			return p, err
		}
		p.Prefill.Requests += g.count
		p.Prefill.Tokens += g.count * g.fresh
		length += g.count * (g.fresh + g.before)
		before += g.count * g.before
		for range g.count {
			p.Prefill.Chunks = append(p.Prefill.Chunks, perfmodel.Chunk{Before: g.before, Length: g.fresh + g.before})
		}
	}
	if n := p.Prefill.Requests; n > 0 {
		p.Prefill.Finishing, p.Prefill.Length, p.Prefill.Prefix = n, length/n, before/n
	}
	held := 0
	for _, text := range f.decode {
		g, err := parseSequences(text)
		if err != nil {
			return p, err
		}
		p.Decode.Requests += g.count
		held += g.count * g.context
	}
	if n := p.Decode.Requests; n > 0 {
		p.Decode.Context = held / n
	}
	return p, nil
}

var (
	promptsForm   = regexp.MustCompile(`^(\d+)x(\d+)(?:\+(\d+))?$`)
	sequencesForm = regexp.MustCompile(`^(\d+)x(\d+)$`)
)

func parsePrompts(text string) (prompts, error) {
	found := promptsForm.FindStringSubmatch(text)
	if found == nil {
		return prompts{}, fmt.Errorf("--prefill: %q is not allowed; write BATCHxNEW or BATCHxNEW+PREFIX, such as 4x2048 or 4x512+8192", text)
	}
	g := prompts{count: wholePassNumber(found[1]), fresh: wholePassNumber(found[2]), before: wholePassNumber(found[3])}
	if err := checkPass(g.count, g.fresh+g.before); err != nil || g.fresh < 1 {
		return g, fmt.Errorf("--prefill: %q is not allowed; give 1 to %d prompts with new tokens, up to %d tokens each", text, maxPassRequests, maxPassTokens)
	}
	return g, nil
}

func parseSequences(text string) (sequences, error) {
	found := sequencesForm.FindStringSubmatch(text)
	if found == nil {
		return sequences{}, fmt.Errorf("--decode: %q is not allowed; write BATCHxCONTEXT, such as 32x2048", text)
	}
	g := sequences{count: wholePassNumber(found[1]), context: wholePassNumber(found[2])}
	if err := checkPass(g.count, g.context); err != nil {
		return g, fmt.Errorf("--decode: %q is not allowed; give 1 to %d sequences, up to %d tokens each", text, maxPassRequests, maxPassTokens)
	}
	return g, nil
}

// wholePassNumber is the number that digits stand for, a large one when there are too many of them.
func wholePassNumber(digits string) int {
	if digits == "" {
		return 0
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return maxPassTokens + 1
	}
	return int(n)
}

func checkPass(count, tokens int) error {
	if count < 1 || count > maxPassRequests || tokens > maxPassTokens {
		return fmt.Errorf("%d × %d tokens", count, tokens)
	}
	return nil
}
