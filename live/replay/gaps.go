package replay

import (
	"slices"
	"time"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// gaps are the times between the tokens of one request, in µs: exact enough for what a network tells, and so few different ones
// that those of a long run take little memory.
type gaps []uint32

// gapRecorder takes the gaps of all requests; metrics.GapRecorder is one.
type gapRecorder interface {
	RecordGaps(gap perfmodel.Nanoseconds, count int64)
}

// add notes that tokens came, ms after those before. before is how many there were by then.
func (g *gaps) add(before, tokens int, ms float64) {
	if before == 0 { // there is no gap before the first one
		tokens, ms = tokens-1, 0
	}
	for range tokens {
		*g = append(*g, uint32(min(max(0, 1000*ms/float64(tokens)+.5), 1<<32-1)))
	}
}

// mostTogether is the gap in µs below which a token can have been read together with the one before: no engine in common use is
// that fast with requests that share it.
const mostTogether = 5000

// even returns the gaps with those that are far shorter than most shared out: whoever reads late finds several tokens, the
// first a long time after the one before and the others at once.
func (g gaps) even() gaps {
	if len(g) < 2 {
		return g
	}
	sorted := slices.Clone(g)
	slices.Sort(sorted)
	short := min(sorted[len(sorted)*3/4]/2, mostTogether) // few gaps are long for another reason, and few short ones are no reason
	even := sorted[:0]                                    // written no faster than g is read
	for i := 0; i < len(g); {
		total, next := uint64(g[i]), i+1
		for next < len(g) && (g[next] < short || total < uint64(short)) {
			total += uint64(g[next])
			next++
		}
		for n := uint64(next - i); i < next; i++ {
			even = append(even, uint32(total/n))
		}
	}
	return even
}

// record tells of them. When the target says that there were more tokens than came chunks, these share out the chunks evenly.
func (g gaps) record(to gapRecorder, tokens int) {
	want := max(tokens-1, len(g))
	for i, us := range g {
		n := (i+1)*want/len(g) - i*want/len(g)
		gap := time.Duration(us) * time.Microsecond / time.Duration(n)
		to.RecordGaps(perfmodel.Nanoseconds(gap.Round(time.Microsecond)), int64(n))
	}
}
