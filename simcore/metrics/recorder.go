package metrics

import (
	"math"
	"slices"
	"sync"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// sample is a value with its number of occurrences. Keys sort as the values do.
type sample struct {
	key    uint64
	weight int64
}

// spareSamples has the room of distributions that are done with, for those that come: a sweep has thousands of runs, one like the
// other, and room that was just used is still in the processor's cache.
var spareSamples sync.Pool // of *[]sample

// takeSamples returns room for n samples, or for more.
func takeSamples(n int) []sample {
	if room, ok := spareSamples.Get().(*[]sample); ok && cap(*room) >= n {
		return (*room)[:0]
	}
	return make([]sample, 0, n)
}

// giveSamples hands room to whoever takes some next.
func giveSamples(room []sample) {
	if cap(room) > 0 {
		spareSamples.Put(&room)
	}
}

// GapRecorder collects the gaps between tokens. It keeps one entry a distinct gap, so its size does not grow with
// the number of tokens.
type GapRecorder struct {
	folded []sample // sorted, distinct
	recent []sample
	spare  []sample
}

// minFold is how many entries are collected before they are folded.
const minFold = 1 << 14

// RecordGaps notes that count gaps took so long.
func (g *GapRecorder) RecordGaps(gap perfmodel.Nanoseconds, count int64) {
	key := uint64(max(gap, 0))
	if n := len(g.recent); n > 0 && g.recent[n-1].key == key {
		g.recent[n-1].weight += count
		return
	}
	if len(g.recent) == cap(g.recent) {
		g.makeRoom()
	}
	g.recent = append(g.recent, sample{key, count})
}

// makeRoom makes room for another entry.
func (g *GapRecorder) makeRoom() {
	most := max(minFold, len(g.folded))
	switch {
	case len(g.recent) >= most:
		g.fold()
	case len(g.recent) == 0:
		g.recent = takeSamples(0)
	case 2*len(g.recent) >= most:
		larger := append(takeSamples(most), g.recent...)
		giveSamples(g.recent)
		g.recent = larger
	}
}

// fold sorts the recent entries and merges them into the folded ones.
func (g *GapRecorder) fold() {
	most := len(g.folded) + len(g.recent)
	g.reserve(len(g.recent))
	g.recent, g.spare = sortSamples(g.recent, g.spare)
	g.reserve(most)
	merged := g.spare[:0]
	a, b := g.folded, g.recent
	for len(a) > 0 || len(b) > 0 {
		var next sample
		if len(b) == 0 || len(a) > 0 && a[0].key <= b[0].key {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if n := len(merged); n > 0 && merged[n-1].key == next.key {
			merged[n-1].weight += next.weight
		} else {
			merged = append(merged, next)
		}
	}
	g.folded, g.spare, g.recent = merged, g.folded, g.recent[:0]
}

// reserve makes spare, whose samples do not matter, room for n.
func (g *GapRecorder) reserve(n int) {
	if cap(g.spare) < n {
		giveSamples(g.spare)
		g.spare = takeSamples(n)
	}
}

// ITL summarises the gaps in ms.
func (g *GapRecorder) ITL() Summary {
	g.fold()
	return summarise(g.folded, func(key uint64) float64 { return float64(key) / 1e6 })
}

// ThroughputPerUser summarises 1000 / gap, in tokens/s, over the gaps above 0.
func (g *GapRecorder) ThroughputPerUser() Summary {
	g.fold()
	positive := g.folded
	if len(positive) > 0 && positive[0].key == 0 {
		positive = positive[1:]
	}
	g.spare = append(g.spare[:0], positive...)
	slices.Reverse(g.spare)
	return summarise(g.spare, func(key uint64) float64 { return 1000 / (float64(key) / 1e6) })
}

// Free empties the recorder, and leaves its room to others.
func (g *GapRecorder) Free() {
	for _, room := range [][]sample{g.folded, g.recent, g.spare} {
		giveSamples(room)
	}
	*g = GapRecorder{}
}

// Values collects one distribution of values of 0 or more.
type Values struct {
	samples []sample
}

// Grow reserves room for n values.
func (v *Values) Grow(n int) { v.samples = takeSamples(n) }

// Add adds a value; what is below 0 counts as 0.
func (v *Values) Add(value float64) {
	v.samples = append(v.samples, sample{math.Float64bits(max(value, 0)), 1})
}

// Summary summarises the values added so far.
func (v *Values) Summary() Summary {
	sorted, room := sortSamples(v.samples, takeSamples(len(v.samples)))
	v.samples = sorted
	giveSamples(room)
	return summarise(v.samples, math.Float64frombits)
}

// Free forgets the values, and leaves their room to others.
func (v *Values) Free() {
	giveSamples(v.samples)
	v.samples = nil
}
