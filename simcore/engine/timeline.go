package engine

import (
	"math"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// timeline says when each pass of a run ends, a run being passes in which nothing but decoding happens.
type timeline struct {
	start, end float64
	passes     int
	// Passes of equal duration have a step and its price.
	equal bool
	step  perfmodel.Nanoseconds
	price perfmodel.Price
	// Otherwise steps holds the duration and ends the end of each pass.
	steps []perfmodel.Nanoseconds
	ends  []float64
	// extrapolated counts the passes up to and with each one that the timing model extrapolated.
	extrapolated []int64
}

// maxVarying bounds the passes of a run whose durations differ.
const maxVarying = 512

// single is a pass by itself.
func (l *timeline) single(start, end float64) { l.start, l.end, l.passes = start, end, 1 }

// plan prices up to most passes of requests with the given total length, which grows by a token each in every pass.
// None starts at limit or later.
func (l *timeline) plan(p *pricer, now, limit float64, most, requests int, lengths int64, held int) {
	l.start = now
	p.setPrefill(prefillWork{})
	p.setDecode(requests, lengths, held)
	if l.equal = p.equalPasses(); l.equal {
		l.price = p.env.Model.Price(&p.pass)
		_, l.step = p.quantise(l.price)
		l.passes, l.end = passesUntil(now, l.step.Ms(), most, limit)
		return
	}
	l.steps, l.ends, l.extrapolated = l.steps[:0], l.ends[:0], l.extrapolated[:0]
	extrapolated := int64(0)
	most = min(most, maxVarying)
	for l.passes, l.end = 0, now; l.passes < most && (l.passes == 0 || l.end < limit); l.passes++ {
		p.setDecode(requests, lengths, held)
		price := p.env.Model.Price(&p.pass)
		_, step := p.quantise(price)
		l.end += step.Ms()
		if price.Extrapolated {
			extrapolated++
		}
		l.steps, l.ends, l.extrapolated = append(l.steps, step), append(l.ends, l.end), append(l.extrapolated, extrapolated)
		lengths += int64(requests)
	}
}

// cut ends the run with the first pass that ends at the given time or later.
func (l *timeline) cut(at float64) {
	if l.equal {
		l.passes, l.end = passesUntil(l.start, l.step.Ms(), l.passes, at)
		return
	}
	for i, end := range l.ends[:l.passes] {
		if end >= at {
			l.passes, l.end = i+1, end
			return
		}
	}
}

// firstEnd returns when the first pass of the run ends, lastStart when its last one starts.
func (l *timeline) firstEnd() float64 {
	if l.equal {
		return l.start + l.step.Ms()
	}
	return l.ends[0]
}

func (l *timeline) lastStart() float64 {
	switch {
	case l.passes <= 1:
		return l.start
	case l.equal:
		return advance(l.start, l.step.Ms(), l.passes-1)
	}
	return l.ends[l.passes-2]
}

// record records the gaps of so many requests and counts the passes.
func (l *timeline) record(gaps GapRecorder, p *pricer, requests int) {
	p.passes += int64(l.passes)
	if l.equal {
		gaps.RecordGaps(l.step, int64(requests)*int64(l.passes))
		if l.price.Extrapolated {
			p.extrapolated += int64(l.passes)
		}
		return
	}
	p.extrapolated += l.extrapolated[l.passes-1]
	for _, step := range l.steps[:l.passes] {
		gaps.RecordGaps(step, int64(requests))
	}
}

func least(numbers []int64) int64 {
	low := int64(math.MaxInt64)
	for _, n := range numbers {
		low = min(low, n)
	}
	return low
}
