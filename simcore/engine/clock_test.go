package engine

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestAdvanceEqualsRepeatedAddition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.OneOf(rapid.Float64Range(0, 4), rapid.Float64Range(0, 1e7), rapid.Float64Range(0, 1e13), rapid.Just(0.0)).Draw(t, "start")
		ns := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(1e5, 5e8)).Draw(t, "ns")
		step := float64(ns) / 1e9 * 1000
		if rapid.Bool().Draw(t, "tie") {
			step = math.Ldexp(float64(rapid.IntRange(1, 64).Draw(t, "mantissa")), rapid.IntRange(-50, 4).Draw(t, "exponent"))
		}
		n := rapid.IntRange(0, 5000).Draw(t, "n")
		want := start
		for range n {
			want += step
		}
		if got := advance(start, step, n); got != want {
			t.Fatalf("advance(%v, %v, %d) = %v, want %v", start, step, n, got, want)
		}
		at := start + float64(n)*step*rapid.Float64Range(0, 1.2).Draw(t, "at")
		if n == 0 {
			return
		}
		k, end := 1, start+step
		for k < n && end < at {
			end += step
			k++
		}
		gotK, gotEnd := passesUntil(start, step, n, at)
		if step > 0 && (gotK != k || gotEnd != end) {
			t.Fatalf("passesUntil(%v, %v, %d, %v) = %d, %v; want %d, %v", start, step, n, at, gotK, gotEnd, k, end)
		}
	})
}

func BenchmarkAdvance(b *testing.B) {
	t := 1000.0
	for b.Loop() {
		if t = advance(t, 5.898011, 64); t > 1e9 {
			t = 1000
		}
	}
}
