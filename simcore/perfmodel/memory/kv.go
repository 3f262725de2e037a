package memory

import (
	"fmt"
	"math"
)

// The lengths at which a KVCurve is known.
const (
	shortTokens  = 64
	middleTokens = 4096
	longTokens   = 131072
)

// sameSlope is the relative difference of two slopes that is rounding.
const sameSlope = 1e-9

// KVCurve is the KV cache of one sequence on one GPU, in bytes, at three lengths. Where all layers attend to the
// whole context it is a straight line; where some stop at a window it bends once, between 64 and 4096 tokens.
type KVCurve struct {
	// Bytes64, Bytes4096 and Bytes131072 are the bytes of a sequence of so many tokens.
	Bytes64, Bytes4096, Bytes131072 float64
}

// LinearKV is the curve of a model whose every token takes the same bytes.
func LinearKV(bytesPerToken float64) KVCurve {
	return KVCurve{Bytes64: shortTokens * bytesPerToken, Bytes4096: middleTokens * bytesPerToken, Bytes131072: longTokens * bytesPerToken}
}

// Bytes is the KV cache of a sequence of so many tokens.
func (k KVCurve) Bytes(tokens float64) float64 {
	window := k.window()
	if tokens <= window {
		return tokens * k.head()
	}
	return float64(window*k.head()) + float64((tokens-window)*k.tail())
}

// Tokens is the length of the longest sequence whose KV cache is at most the budget in bytes, 0 for none.
func (k KVCurve) Tokens(budget float64) int {
	if !(budget > 0) {
		return 0
	}
	window := k.window()
	tokens := budget / k.head()
	if tokens > window {
		tokens = window + (budget-float64(window*k.head()))/k.tail()
	}
	return int(min(math.Floor(tokens), math.MaxInt32))
}

// head is the slope before the window, tail the one beyond it, in bytes a token.
func (k KVCurve) head() float64 { return k.Bytes64 / shortTokens }

func (k KVCurve) tail() float64 { return (k.Bytes131072 - k.Bytes4096) / (longTokens - middleTokens) }

// window is the length in tokens at which the two straight parts meet, infinite when there is just one.
func (k KVCurve) window() float64 {
	head, tail := k.head(), k.tail()
	if head <= tail*(1+sameSlope) {
		return math.Inf(1)
	}
	return (k.Bytes4096 - float64(middleTokens*tail)) / (head - tail)
}

// valid reports a curve that falls, bends upwards or is no number.
func (k KVCurve) valid() error {
	if !(k.Bytes64 > 0 && k.Bytes4096 > k.Bytes64 && k.Bytes131072 > k.Bytes4096) || math.IsInf(k.Bytes131072, 0) {
		return fmt.Errorf("memory: KV cache of %v, %v and %v bytes at 64, 4096 and 131072 tokens; it must be over 0 and grow",
			k.Bytes64, k.Bytes4096, k.Bytes131072)
	}
	if k.tail() > k.head()*(1+sameSlope) {
		return fmt.Errorf("memory: KV cache grows by %v bytes a token up to 64 tokens and by %v beyond 4096; it cannot grow faster later",
			k.head(), k.tail())
	}
	return nil
}
