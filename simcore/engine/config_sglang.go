package engine

import (
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// SGLangConfig holds the settings that only the SGLang-style scheduler has (engine specification §8.1). Sizes are in tokens.
type SGLangConfig struct {
	// SchedulePolicy orders waiting requests: "fifo" (or "fcfs", the same) by arrival, "lpm" those with the longest cached
	// prefix first; empty means fifo.
	SchedulePolicy string `json:"schedule_policy"`
	// PageSize is another name for Config.BlockSize; 0 (null in a spec) leaves it to that.
	PageSize int `json:"page_size"`
	// MaxPrefillTokens bounds the prompt tokens of a prefill batch; 0 (null in a spec) means 16384.
	MaxPrefillTokens int `json:"max_prefill_tokens"`
	// ChunkedPrefillSize is the most that a pass computes of prompts, of longer ones in whole pages; 0 (null in a spec)
	// means 8192. Config.MaxNumBatchedTokens and Config.EnableChunkedPrefill do not matter for SGLang.
	ChunkedPrefillSize int `json:"chunked_prefill_size"`
	// ClipMaxNewTokens bounds the output for which room is reserved; 0 (null in a spec) means 4096.
	ClipMaxNewTokens int `json:"clip_max_new_tokens"`
	// ScheduleConservativeness scales the room that is reserved for the output of running requests, 0 to 1.
	ScheduleConservativeness float64 `json:"schedule_conservativeness"`
}

// The schedule policies.
const (
	PolicyFIFO = "fifo"
	PolicyFCFS = "fcfs"
	PolicyLPM  = "lpm"
)

// TypeSGLang is the SGLang-style scheduler.
const TypeSGLang = "sglang"

// SchedulePolicies lists the accepted values of SGLangConfig.SchedulePolicy.
func SchedulePolicies() []string { return []string{PolicyFIFO, PolicyFCFS, PolicyLPM} }

// The sizes that SGLang uses where none is given.
const (
	defaultMaxPrefillTokens   = 16384
	defaultChunkedPrefillSize = 8192
	defaultClipMaxNewTokens   = 4096
)

// DefaultSGLang holds the reference's default settings.
func DefaultSGLang() SGLangConfig {
	return SGLangConfig{SchedulePolicy: PolicyFIFO, ScheduleConservativeness: 1}
}

// validateSGLang returns the problems of the settings of the SGLang-style scheduler.
func (c Config) validateSGLang(r rules.Set) problem.List {
	var l problem.List
	s := c.SGLang
	if s.SchedulePolicy != "" && !r.UnknownPolicyIsFIFO && !slices.Contains(SchedulePolicies(), s.SchedulePolicy) {
		l.Add("sglang.schedule_policy", s.SchedulePolicy, "use one of: %s", strings.Join(SchedulePolicies(), ", "))
	}
	for _, size := range []struct {
		key   string
		value int
	}{
		{"page_size", s.PageSize}, {"max_prefill_tokens", s.MaxPrefillTokens},
		{"chunked_prefill_size", s.ChunkedPrefillSize}, {"clip_max_new_tokens", s.ClipMaxNewTokens},
	} {
		if size.value < 0 {
			l.Add("sglang."+size.key, size.value, "give 1 or more tokens, or null for the default")
		}
	}
	if !(s.ScheduleConservativeness >= 0 && s.ScheduleConservativeness <= 1) {
		l.Add("sglang.schedule_conservativeness", s.ScheduleConservativeness, "give a factor from 0 to 1")
	}
	if page, problems := c.ResolvedBlockSize(); len(problems) == 0 && page > 0 && s.ChunkedPrefillSize > 0 && s.ChunkedPrefillSize%page != 0 {
		l.Add("sglang.chunked_prefill_size", s.ChunkedPrefillSize, "give a multiple of the page size, %d tokens", page)
	}
	return l
}

// ResolvedBlockSize returns the number of tokens in a KV block, where 0 (null in a spec) stands for the engine's
// default: 64 for vLLM, 32 for TensorRT-LLM, and for SGLang its page size, which is 1 unless sglang.page_size says
// otherwise. Giving both sizes of SGLang with different values is a problem.
func (c Config) ResolvedBlockSize() (int, problem.List) {
	var l problem.List
	page := c.SGLang.PageSize
	switch {
	case c.Type == TypeSGLang && page > 0 && c.BlockSize > 0 && page != c.BlockSize:
		l.Add("sglang.page_size", page, "block_size is %d, and both mean the same; give one of them", c.BlockSize)
		return c.BlockSize, l
	case c.BlockSize != 0:
		return c.BlockSize, nil
	case c.Type == TypeSGLang:
		return max(1, page), nil
	case c.Type == TypeTensorRTLLM:
		return 32, nil
	}
	return 64, nil
}

// SharesPrefixes reports whether requests share the KV of equal beginnings.
func (c Config) SharesPrefixes(r rules.Set) bool {
	return c.EnablePrefixCaching || c.Type == TypeSGLang && r.RadixCacheAlwaysOn
}
