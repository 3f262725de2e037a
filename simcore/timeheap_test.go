package simcore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTimeHeapIsInOrder checks that what is left after removals comes in order of time, then of order.
func TestTimeHeapIsInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var h timeHeap
		var want []timed
		for i := range rapid.Int32Range(0, 40).Draw(rt, "pushes") {
			x := timed{float64(rapid.IntRange(0, 9).Draw(rt, "at")), int64(i), i}
			h.push(x)
			want = append(want, x)
			if rapid.IntRange(0, 2).Draw(rt, "removes") == 0 {
				gone := rapid.SampledFrom(want).Draw(rt, "gone")
				h.remove(slices.Index(h, gone))
				want = slices.DeleteFunc(want, func(x timed) bool { return x == gone })
			}
		}
		slices.SortFunc(want, func(a, b timed) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		for _, x := range want {
			if got := h.pop(); got != x {
				rt.Fatalf("got %v, want %v", got, x)
			}
		}
		if len(h) > 0 {
			rt.Fatalf("%d are left", len(h))
		}
	})
}
