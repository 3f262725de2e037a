package workload

import (
	"math"
	"slices"
)

// Histogram counts values in bins whose bounds are whole numbers, about four to a doubling; the first bin ends at 1.
type Histogram struct {
	// Bins are next to each other, from the one that holds the least value to the one that holds the greatest; it is empty
	// without values.
	Bins []Bin `json:"bins,omitempty"`
}

// Bin counts the values from From up to, but without, To.
type Bin struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Count int     `json:"count"`
}

// Count is the number of values.
func (h Histogram) Count() int {
	n := 0
	for _, b := range h.Bins {
		n += b.Count
	}
	return n
}

// Histograms show how lengths and gaps are distributed.
type Histograms struct {
	// Input and Output are the lengths of requests, in tokens.
	Input  Histogram `json:"input_tokens"`
	Output Histogram `json:"output_tokens"`
	// Gaps are the waits between the end of a turn and the next turn of its session, in ms.
	Gaps Histogram `json:"delay_ms"`
}

// NewHistograms counts the lengths and gaps of a workload.
func NewHistograms(w *Workload) Histograms {
	return Histograms{histogramOf(w.Input), histogramOf(w.Output), histogramOf(gaps(w))}
}

func histogramOf[T int32 | float64](values []T) Histogram {
	if len(values) == 0 {
		return Histogram{}
	}
	bounds := []float64{0}
	for k := 0; len(bounds) < 2 || float64(slices.Max(values)) >= bounds[len(bounds)-1]; k++ {
		if next := math.Round(math.Exp2(float64(k) / 4)); next > bounds[len(bounds)-1] {
			bounds = append(bounds, next)
		}
	}
	counts := make([]int, len(bounds)-1)
	for _, v := range values {
		at, exact := slices.BinarySearch(bounds, max(float64(v), 0))
		if !exact {
			at--
		}
		counts[at]++
	}
	first := slices.IndexFunc(counts, func(n int) bool { return n > 0 })
	var h Histogram
	for i := first; i < len(counts); i++ {
		h.Bins = append(h.Bins, Bin{bounds[i], bounds[i+1], counts[i]})
	}
	return h
}
