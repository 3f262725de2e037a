package metrics

import (
	"math"
	"math/bits"
)

// summarise computes the figures of sorted samples exactly; value turns a key into the sample's value.
func summarise(sorted []sample, value func(uint64) float64) Summary {
	var n int64
	var sum float64
	for _, s := range sorted {
		n += s.weight
		sum += float64(s.weight) * value(s.key)
	}
	if n == 0 {
		return Summary{}
	}
	mean := sum / float64(n)
	var squares float64
	for _, s := range sorted {
		d := value(s.key) - mean
		squares += float64(s.weight) * (d * d)
	}
	out := Summary{
		Mean: mean,
		Min:  value(sorted[0].key),
		Max:  value(sorted[len(sorted)-1].key),
		Std:  math.Sqrt(squares / float64(n)),
	}
	var below int64
	at := 0
	for _, p := range []struct {
		percent float64
		to      *float64
	}{{50, &out.Median}, {75, &out.P75}, {90, &out.P90}, {95, &out.P95}, {99, &out.P99}} {
		rank := int64(math.Round(float64(n-1) * p.percent / 100))
		for below+sorted[at].weight <= rank {
			below += sorted[at].weight
			at++
		}
		*p.to = value(sorted[at].key)
	}
	return out
}

const (
	maxDigitBits = 13
	maxDigits    = 1 << maxDigitBits
)

// sortSamples sorts by key with a radix sort, using spare as room. It returns the sorted samples and the slice
// that is now spare.
func sortSamples(samples, spare []sample) (sorted, room []sample) {
	var differ uint64 // bits in which keys differ
	for i := range samples {
		differ |= samples[i].key ^ samples[0].key
	}
	if cap(spare) < len(samples) {
		spare = make([]sample, len(samples))
	}
	spare = spare[:len(samples)]
	// As few digits as can be, of about the same size.
	width := bits.Len64(differ)
	digit := ceilDiv(width, max(1, ceilDiv(width, maxDigitBits)))
	mask := uint64(1)<<digit - 1
	for shift := 0; shift < width; shift += digit {
		if differ>>shift&mask == 0 {
			continue
		}
		var count [maxDigits]int32
		for i := range samples {
			count[samples[i].key>>shift&mask&(maxDigits-1)]++
		}
		start := int32(0)
		for i, n := range count[:mask+1] {
			count[i] = start
			start += n
		}
		for i := range samples {
			at := &count[samples[i].key>>shift&mask&(maxDigits-1)]
			spare[*at] = samples[i]
			*at++
		}
		samples, spare = spare, samples
	}
	return samples, spare
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
