package perfmodel

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// exactNearest rounds seconds to whole nanoseconds without any rounding on the way, ties to even.
func exactNearest(seconds float64) Nanoseconds {
	if seconds <= 0 {
		return 0
	}
	exact := new(big.Rat).Mul(new(big.Rat).SetFloat64(seconds), big.NewRat(1e9, 1))
	low := new(big.Int).Div(exact.Num(), exact.Denom())
	rest := new(big.Rat).Sub(exact, new(big.Rat).SetInt(low))
	if c := rest.Cmp(big.NewRat(1, 2)); c > 0 || c == 0 && low.Bit(0) == 1 {
		low.Add(low, big.NewInt(1))
	}
	return Nanoseconds(low.Int64())
}

func exactQuantise(ms, ratio float64) Nanoseconds {
	n := exactNearest(ms / 1000)
	if ratio > 0 && n > 0 {
		n = exactNearest((float64(n/1e9) + float64(n%1e9)/1e9) / ratio)
	}
	return n
}

func TestQuantiseEqualsExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.OneOf(
			rapid.Float64Range(0, 100),
			rapid.Float64Range(0, 1e9),
			rapid.Custom(func(t *rapid.T) float64 { // odd 1024ths of a second lie halfway between two nanoseconds
				return float64(2*rapid.IntRange(0, 1<<20).Draw(t, "half")+1) * 1000 / 1024
			}),
			rapid.Custom(func(t *rapid.T) float64 { // next to half a nanosecond
				v := (float64(rapid.IntRange(0, 1e9).Draw(t, "ns")) + .5) / 1e6
				return rapid.SampledFrom([]float64{v, math.Nextafter(v, 0), math.Nextafter(v, math.Inf(1))}).Draw(t, "near")
			}),
		).Draw(t, "ms")
		ratio := rapid.SampledFrom([]float64{0, -1, 1, 1.7, 2, 3, .001, 1e6}).Draw(t, "ratio")
		if got, want := Quantise(ms, ratio), exactQuantise(ms, ratio); got != want {
			t.Fatalf("Quantise(%v, %v) = %d, want %d", ms, ratio, got, want)
		}
	})
}

func TestQuantise(t *testing.T) {
	for _, test := range []struct {
		ms, ratio float64
		want      Nanoseconds
	}{
		{32.1058589, 1, 32105859},
		{1000. / 1024, 1, 976562},      // 976562.5: to even
		{3 * 1000. / 1024, 1, 2929688}, // 2929687.5: to even
		{10, 0, 10_000_000},
		{10, -3, 10_000_000},
		{10, 4, 2_500_000},
		{10, 3, 3_333_333},
		{1e-7, 1, 0},
		{0, 5, 0},
		{-4, 1, 0},
		{math.NaN(), 1, 0},
		{1e30, 1, maxSeconds * 1e9},
		{math.Inf(1), 1, maxSeconds * 1e9},
		{1500.25, 1, 1_500_250_000},
	} {
		if got := Quantise(test.ms, test.ratio); got != test.want {
			t.Errorf("Quantise(%v, %v) = %d, want %d", test.ms, test.ratio, got, test.want)
		}
	}
}

// TestMs checks that durations become ms by way of seconds, as the reference's clock does.
func TestMs(t *testing.T) {
	seconds := .005898011 // a variable, so that the product is rounded
	for n, want := range map[Nanoseconds]float64{0: 0, 1e6: 1, 25e7: 250, 15e8: 1500, 5_898_011: seconds * 1000} {
		if got := n.Ms(); got != want {
			t.Errorf("%d ns are %v ms, want %v", n, got, want)
		}
	}
}

func BenchmarkQuantise(b *testing.B) {
	b.ReportAllocs()
	ms := 5.898011
	for b.Loop() {
		ms = Quantise(ms, 1.7).Ms() * 1.7
	}
}
