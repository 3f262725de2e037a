package tables

import (
	"math"
	"math/bits"
)

const msPerUs = 1e-3

// Table prices the passes of one deployment. Every result is in ms for one pass of one attention data-parallel rank;
// a pass is the sum of its parts (spec perfmodel.md §1.2). Arguments of 0 or less cost nothing, arguments beyond what
// the table covers continue its last segment. It is immutable and safe for concurrent use.
type Table struct {
	tokens, requests, generation *curve
	prefill, decode              []term
	correctionMs                 float64
}

// term is the attention of the layers that share a grid.
type term struct {
	grid *grid
	// scale is layers times ms per us; constantMs, of prefill only, is what all layers take whatever the arguments.
	scale, constantMs float64
}

// Tokens is the time of everything that depends on the number x of prompt tokens computed in a pass: matrix
// multiplications, experts, norms, collective operations.
func (t *Table) Tokens(x int) float64 { return t.tokens.at(x) }

// Requests is the time of the logits of b requests that finish their prompts.
func (t *Table) Requests(b int) float64 { return t.requests.at(b) }

// PrefillAttention is the attention of all layers for b prompts of a length in tokens of which prefix were computed
// before.
func (t *Table) PrefillAttention(b, length, prefix int) float64 {
	prefix = max(prefix, 0)
	if b <= 0 || length <= prefix {
		return 0
	}
	share := float64(prefix) / float64(length)
	triangle := 1 - float64(share*share)
	sum := 0.0
	for i := range t.prefill {
		a := &t.prefill[i]
		sum += float64(float64(a.scale*a.grid.at(b, length))*triangle) + a.constantMs
	}
	return sum
}

// Generation is the time of everything in a decode pass that depends only on the number b of sequences.
func (t *Table) Generation(b int) float64 { return t.generation.at(b) }

// GenerationAttention is the attention of all layers for b sequences of a length in tokens, the new one included.
func (t *Table) GenerationAttention(b, sequence int) float64 {
	if b <= 0 || sequence <= 0 {
		return 0
	}
	sum := t.correctionMs
	for i := range t.decode {
		a := &t.decode[i]
		sum += float64(a.scale * a.grid.at(b, sequence))
	}
	return sum
}

// CorrectionMs is the part of [Table.GenerationAttention] that corrections add to a decode pass, in ms; 0 without them
// (spec perfmodel.md §7.1.1).
func (t *Table) CorrectionMs() float64 { return t.correctionMs }

// MeasuredTokens reports whether x prompt tokens in a pass are within what the table covers.
func (t *Table) MeasuredTokens(x int) bool { return t.tokens.axis.covers(x) }

// MeasuredPrefill reports whether b prompts of a length are within what the source measured of attention.
func (t *Table) MeasuredPrefill(b, length int) bool {
	return t.requests.axis.covers(b) && measured(t.prefill, b, length)
}

// MeasuredDecode reports whether b sequences of a length are within what the source measured of attention.
func (t *Table) MeasuredDecode(b, sequence int) bool {
	return t.generation.axis.covers(b) && measured(t.decode, b, sequence)
}

func measured(terms []term, b, s int) bool {
	for i := range terms {
		if !terms[i].grid.measured(b, s) {
			return false
		}
	}
	return true
}

// bucketsPerOctave is the resolution at which an axis jumps to a segment; it must be a power of two.
const (
	bucketBits       = 4
	bucketsPerOctave = 1 << bucketBits
)

// axis is increasing knots, of which there are at least two, with an index that finds a segment in constant time: the
// first segment of every sixteenth of an octave, from where a scan over the few knots in it starts.
type axis struct {
	knots   []float64
	inverse []float64 // 1/(knots[i+1]-knots[i])
	start   []uint16
}

func newAxis(knots []float64) axis {
	a := axis{knots: knots, inverse: make([]float64, len(knots)-1)}
	for i := range a.inverse {
		a.inverse[i] = 1 / (knots[i+1] - knots[i])
	}
	a.start = make([]uint16, bucket(int(knots[len(knots)-1]))+1)
	segment := 0
	for k := range a.start {
		octave, part := k>>bucketBits, k&(bucketsPerOctave-1)
		low := math.Ldexp(1+float64(part)/bucketsPerOctave, octave)
		for segment < len(knots)-2 && knots[segment+1] <= low {
			segment++
		}
		a.start[k] = uint16(segment)
	}
	return a
}

// bucket is the sixteenth of an octave that v, 1 or more, lies in.
func bucket(v int) int {
	octave := bits.Len(uint(v)) - 1
	if octave < bucketBits {
		return octave<<bucketBits | (v<<(bucketBits-octave))&(bucketsPerOctave-1)
	}
	return octave<<bucketBits | (v>>(octave-bucketBits))&(bucketsPerOctave-1)
}

// segment is the last knot at or before v that starts a segment, and how far v is from it; v before the first knot
// counts as that knot.
func (a *axis) segment(v int) (int, float64) {
	f := float64(v)
	last := len(a.knots) - 2
	if f >= a.knots[last] {
		return last, f - a.knots[last]
	}
	if v < 1 {
		return 0, 0
	}
	i := int(a.start[bucket(v)])
	for a.knots[i+1] <= f {
		i++
	}
	return i, max(0, f-a.knots[i])
}

// covers reports whether v lies between the first and the last knot.
func (a *axis) covers(v int) bool {
	return float64(v) >= a.knots[0] && float64(v) <= a.knots[len(a.knots)-1]
}

// curve is piecewise linear in one whole number.
type curve struct {
	axis  axis
	y     []float64 // ms
	slope []float64 // ms per unit of the axis
}

func newCurve(x, y []float64) *curve {
	c := &curve{axis: newAxis(x), y: y, slope: make([]float64, len(x)-1)}
	for i := range c.slope {
		c.slope[i] = (y[i+1] - y[i]) / (x[i+1] - x[i])
	}
	return c
}

func (c *curve) at(v int) float64 {
	if v <= 0 {
		return 0
	}
	i, distance := c.axis.segment(v)
	if last := len(c.y) - 1; float64(v) > c.axis.knots[last] && c.slope[i] < 0 {
		return c.y[last] // more work never takes less time
	}
	return c.y[i] + float64(c.slope[i]*distance)
}

// The kinds of grids, as files spell them.
const (
	kindPrefill = "ctx"
	kindDecode  = "gen"
)

// grid is the attention of one layer, in us, over batch and length. Prefill grids hold square roots, because
// attention is nearly quadratic in the length: the root is interpolated along the length and squared.
type grid struct {
	kind           string
	square         bool
	batch, length  axis
	values         []float64 // rows of equal batch
	measuredLength []float64 // for each row, the longest length that the source measured
}

func (g *grid) at(b, s int) float64 {
	row, rowDistance := g.batch.segment(b)
	column, distance := g.length.segment(s)
	u := distance * g.length.inverse[column]
	width := len(g.length.knots)
	k := row*width + column
	low, high := g.values[k:k+2], g.values[k+width:k+width+2]
	below, above := along(low, u), along(high, u)
	if g.square {
		below, above = float64(below*below), float64(above*above)
	}
	return along([]float64{below, above}, float64(rowDistance*g.batch.inverse[row]))
}

// along interpolates between two values; beyond the second one it never falls, as more work never takes less time.
func along(v []float64, t float64) float64 {
	if t > 1 && v[1] < v[0] {
		return v[1]
	}
	return v[0] + float64((v[1]-v[0])*t)
}

// measured reports whether the rows at or around b were measured up to s.
func (g *grid) measured(b, s int) bool {
	if !g.batch.covers(b) || float64(s) < g.length.knots[0] {
		return false
	}
	row, distance := g.batch.segment(b)
	limit := g.measuredLength[row]
	if distance > 0 {
		limit = min(limit, g.measuredLength[row+1])
	}
	return float64(s) <= limit
}
