package exact

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// values draws finite numbers of very different sizes, many of which cancel.
func values(t *rapid.T) []float64 {
	one := rapid.OneOf(
		rapid.Float64Range(-1e9, 1e9),
		rapid.SampledFrom([]float64{1, -1, 0x1p-53, -0x1p-53, 0x1p-54, 0x1p-106, 0x1p53, -0x1p53, 3, 0}),
		rapid.Custom(func(t *rapid.T) float64 {
			return math.Ldexp(rapid.Float64Range(-1, 1).Draw(t, "mantissa"), rapid.IntRange(-200, 200).Draw(t, "exponent"))
		}),
	)
	return rapid.SliceOfN(one, 0, 40).Draw(t, "values")
}

// TestSumIsExact compares with numbers of three thousand bits.
func TestSumIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var forth, back, twice Sum
		want := new(big.Float).SetPrec(3000)
		all := values(t)
		for i, v := range all {
			forth.Add(v)
			back.Add(all[len(all)-1-i])
			twice.Add(2 * v)
			want.Add(want, new(big.Float).SetPrec(3000).SetFloat64(v))
		}
		nearest, _ := want.Float64()
		if forth.Value() != nearest || back.Value() != nearest || twice.Value() != 2*nearest {
			t.Fatalf("%v forth, %v back, %v for twice as much; want %v", forth.Value(), back.Value(), twice.Value(), nearest)
		}
		copied := forth
		copied.AddSum(&back, -1)
		if copied.Value() != 0 || forth.Value() != nearest {
			t.Fatalf("a sum less itself is %v, and it has become %v", copied.Value(), forth.Value())
		}
	})
}

// BenchmarkAdd adds times of about one size.
func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	var s Sum
	v := 1234.5678
	for b.Loop() {
		v += 1e-9
		s.Add(v)
	}
}
