package aiperf

import (
	"cmp"
	"math"
	"slices"
)

// span is when a completed request was sent, began to answer and ended, in ns since 1970 as reals, as AIPerf has them; began is NaN
// where nothing says so. Lengths are NaN where they are not known.
type span struct {
	sent, began, ended float64
	input, output      float64
	gaps               []float64 // between its chunks, in ns; nil where they were not kept
}

func spanOf(r *Record) span {
	number := func(tag string) float64 {
		if v, ok := r.Number(tag); ok {
			return v
		}
		return math.NaN()
	}
	sent := r.Metadata.RequestStartNs
	s := span{sent: float64(sent), began: math.NaN(), ended: float64(r.Metadata.RequestEndNs), input: number(inputLength), output: number(outputLength)}
	if ms, ok := r.Number(timeToFirstToken); ok {
		s.began = float64(sent + int64(math.Round(ms*1e6)))
	}
	for _, ms := range r.Metrics[interChunkLatency].Value.Numbers {
		s.gaps = append(s.gaps, math.Round(ms*1e6))
	}
	return s
}

// addOverTime adds the metrics whose values count by how long they held: how many requests were under way, how fast prompts and answers
// came in sum and for each of these requests, and how many tokens they held. The phase took so many seconds.
func (s Summary) addOverTime(spans []span, seconds float64) {
	byChunk := slices.ContainsFunc(spans, func(s span) bool { return len(s.gaps) > 0 })
	answers, held := span.answers, span.held
	if byChunk {
		answers, held = span.chunks, span.heldByChunk
	}
	const perSecond = 1e9
	var room scratch
	set := func(i int, c curve, scale float64) curve {
		s[overTime[i].tag] = c.stat(&room, seconds*1e9, scale, overTime[i].unit)
		return c
	}
	// Few curves are there at a time: each is as long as the run.
	set(0, room.curveOf(spans, span.whole), 1)
	decode, answered := set(1, room.curveOf(spans, answers), perSecond), set(3, room.curveOf(spans, span.answering), 1)
	set(6, decode.over(answered), perSecond)
	prefill, asked := set(2, room.curveOf(spans, span.prompts), perSecond), set(4, room.curveOf(spans, span.waiting), 1)
	set(7, prefill.over(asked), perSecond)
	set(5, room.curveOf(spans, func(s span, to []change) []change { return s.answers(s.prompts(to)) }), perSecond)
	set(8, room.curveOf(spans, held), 1)
}

// scratch is memory that all curves of a run are made in.
type scratch struct {
	changes []change
	parts   []part
}

// change is by how much a quantity changes at a time, in ns.
type change struct{ at, by float64 }

// during appends that a quantity is larger by an amount for some time, if that is known.
func during(to []change, from, until, by float64) []change {
	if !(until > from) || math.IsNaN(by) {
		return to
	}
	return append(to, change{from, by}, change{until, -by})
}

func (s span) whole(to []change) []change     { return append(to, change{s.sent, 1}, change{s.ended, -1}) }
func (s span) waiting(to []change) []change   { return during(to, s.sent, s.began, 1) }
func (s span) answering(to []change) []change { return during(to, s.began, s.ended, 1) }

// prompts is the rate at which the prompt is read until the first token.
func (s span) prompts(to []change) []change {
	return during(to, s.sent, s.began, s.input/(s.began-s.sent))
}

// answers is the rate at which tokens come after the first one.
func (s span) answers(to []change) []change {
	if !(s.output >= 1) {
		return to
	}
	return during(to, s.began, s.ended, (s.output-1)/(s.ended-s.began))
}

// chunks is the same by the gaps between chunks, which share the tokens evenly. Chunks that came together count as one.
func (s span) chunks(to []change) []change {
	n := 0.0
	for _, gap := range s.gaps {
		if gap > 0 {
			n++
		}
	}
	if !(s.output >= 1) || math.IsNaN(s.began) {
		return to
	}
	passed := 0.0
	for _, gap := range s.gaps {
		if passed += gap; gap > 0 {
			end := s.began + passed
			to = append(to, change{end - gap, (s.output - 1) / n / gap}, change{end, -(s.output - 1) / n / gap})
		}
	}
	return to
}

// held is the tokens of the prompt, and from the first token on also those of the answer.
func (s span) held(to []change) []change {
	if s.began > s.sent && !math.IsNaN(s.input) {
		to = append(to, change{s.sent, s.input}, change{s.ended, -s.input})
	}
	return during(to, s.began, s.ended, s.output)
}

// heldByChunk is the tokens of the prompt, and those of the answer as their chunks come.
func (s span) heldByChunk(to []change) []change {
	if s.began > s.sent && !math.IsNaN(s.input) {
		to = append(to, change{s.sent, s.input}, change{s.ended, -s.input})
	}
	if len(s.gaps) == 0 || !(s.output >= 1) || math.IsNaN(s.began) {
		return to
	}
	to = append(to, change{s.began, 1}, change{s.ended, -s.output})
	passed := 0.0
	for _, gap := range s.gaps {
		passed += gap
		at := s.began + passed
		if at >= s.ended {
			at = math.Nextafter(s.ended, math.Inf(-1)) // it is there before everything goes
		}
		to = append(to, change{at, (s.output - 1) / float64(len(s.gaps))})
	}
	return to
}

// curve is a quantity over time: value[i] from at[i] on, and 0 before all.
type curve struct{ at, value []float64 }

// curveOf adds up what requests change.
func (room *scratch) curveOf(spans []span, of func(span, []change) []change) curve {
	changes := room.changes[:0]
	for _, s := range spans {
		changes = of(s, changes)
	}
	room.changes = changes
	slices.SortStableFunc(changes, func(a, b change) int { // what ends at a time goes before what begins
		begins := func(c change) int {
			if c.by > 0 {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.at, b.at), begins(a)-begins(b))
	})
	c := curve{make([]float64, len(changes)), make([]float64, len(changes))}
	now, most := 0.0, 0.0
	for i, ch := range changes {
		now += ch.by
		most = max(most, math.Abs(now))
		c.at[i], c.value[i] = ch.at, now
	}
	for i, v := range c.value { // what rounding left of a 0
		if math.Abs(v) < 1e-9*most {
			c.value[i] = 0
		}
	}
	return c
}

// over is one quantity for each of another, 0 where there is none of that.
func (c curve) over(of curve) curve {
	var out curve
	if len(c.at) == 0 || len(of.at) == 0 {
		return out
	}
	out.at, out.value = make([]float64, 0, len(c.at)+len(of.at)), make([]float64, 0, len(c.at)+len(of.at))
	i, k, above, below := 0, 0, 0.0, 0.0
	for i < len(c.at) || k < len(of.at) {
		at := math.Inf(1)
		if i < len(c.at) {
			at = c.at[i]
		}
		if k < len(of.at) {
			at = min(at, of.at[k])
		}
		for ; i < len(c.at) && c.at[i] == at; i++ {
			above = c.value[i]
		}
		for ; k < len(of.at) && of.at[k] == at; k++ {
			below = of.value[k]
		}
		each := 0.0
		if below > 0 {
			each = above / below
		}
		out.at, out.value = append(out.at, at), append(out.value, each)
	}
	return out
}

// part is a value that held for some ns.
type part struct{ value, ns float64 }

// stat computes the statistics of a quantity over so many ns, in which it is 0 outside of the curve.
func (c curve) stat(room *scratch, ns, scale float64, unit string) Stat {
	s := Stat{Unit: unit, Weighted: true}
	parts, rest := room.parts[:0], ns
	for i := 0; i+1 < len(c.at); i++ {
		if took := c.at[i+1] - c.at[i]; took > 0 {
			parts = append(parts, part{c.value[i] * scale, took})
			rest -= took
		}
	}
	if rest > 0 {
		parts = append(parts, part{0, rest})
	}
	room.parts = parts
	if len(parts) == 0 || ns <= 0 {
		return s
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.value, b.value) })
	s.Min, s.Max = parts[0].value, parts[len(parts)-1].value
	all := 0.0
	for _, p := range parts {
		s.Avg += p.value * p.ns / ns
		all += p.ns
	}
	for _, p := range parts {
		s.Std += p.ns / ns * (p.value - s.Avg) * (p.value - s.Avg)
	}
	s.Std = math.Sqrt(s.Std)
	for _, p := range percentiles {
		below := 0.0
		for i := range parts {
			if below += parts[i].ns; below/all >= p.percent/100 || i+1 == len(parts) {
				*p.of(&s) = parts[i].value
				break
			}
		}
	}
	return s
}
