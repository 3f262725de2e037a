package perfmodel

import (
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// Config selects a timing model and its parameters.
type Config struct {
	// Source is "polynomial" or "fixed".
	Source string `json:"source"`
	// PrefillMs is the duration of any prefill with the fixed model, in ms.
	PrefillMs float64 `json:"prefill_ms"`
	// DecodeMs is the duration of any decode step with the fixed model, in ms.
	DecodeMs float64 `json:"decode_ms"`
	// TP is the tensor-parallel size of one worker: GPUs per rank.
	TP int `json:"tp"`
	// DP is the number of attention data-parallel ranks of one worker.
	DP int `json:"dp"`
}

// The timing sources.
const (
	// SourcePolynomial is the reference's default model; it knows no GPU.
	SourcePolynomial = "polynomial"
	// SourceFixed gives every prefill and every decode step a constant duration.
	SourceFixed = "fixed"
)

// Sources lists the accepted values of Config.Source.
func Sources() []string { return []string{SourcePolynomial, SourceFixed} }

// DefaultConfig is the polynomial model on one GPU per worker.
func DefaultConfig() Config { return Config{Source: SourcePolynomial, TP: 1, DP: 1} }

// Validate returns all problems of the configuration.
func (c Config) Validate() problem.List {
	var l problem.List
	if !slices.Contains(Sources(), c.Source) {
		l.Add("source", c.Source, "use one of: %s", strings.Join(Sources(), ", "))
	}
	for _, d := range []struct {
		key   string
		value float64
	}{{"prefill_ms", c.PrefillMs}, {"decode_ms", c.DecodeMs}} {
		if !(d.value >= 0) || math.IsInf(d.value, 0) {
			l.Add(d.key, d.value, "give a duration of 0 ms or more")
		} else if d.value > 0 && c.Source == SourcePolynomial {
			l.Add(d.key, d.value, "only source fixed takes a duration; the polynomial computes its own")
		}
	}
	if c.Source == SourceFixed && c.DecodeMs == 0 {
		l.Add("decode_ms", c.DecodeMs, "source fixed needs the duration of a decode step in ms")
	}
	if c.TP < 1 {
		l.Add("tp", c.TP, "give the number of GPUs per rank, 1 or more")
	}
	if c.DP < 1 {
		l.Add("dp", c.DP, "give the number of data-parallel ranks, 1 or more")
	}
	return l
}
