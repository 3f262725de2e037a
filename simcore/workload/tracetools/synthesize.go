package tracetools

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Synthesis says how much of what to make of a trace; 1 is as much as the trace has.
type Synthesis struct {
	// Requests is how long it goes on: twice as many requests take twice the time.
	Requests float64
	// Users is how many people send requests at the same time. Their pauses stay as they are.
	Users float64
	// Rate is how fast users come: twice the rate brings as many requests of twice as many users in half the time. Their
	// pauses stay as they are.
	Rate float64
	// InputLength and OutputLength scale prompts, shared parts included, and answers.
	InputLength, OutputLength float64
	// Sharing scales the share of prompt blocks that a cache without limit would hit, from 0 to 1.
	Sharing float64
	// Seed makes another trace of the same kind.
	Seed uint64
}

// DefaultSynthesis makes as much as the trace has.
func DefaultSynthesis() Synthesis {
	return Synthesis{Requests: 1, Users: 1, Rate: 1, InputLength: 1, OutputLength: 1, Sharing: 1}
}

// The bounds of a synthesis.
const (
	maxSynthetic   = 1 << 24 // requests
	maxRepetitions = 1 << 14
	maxFactor      = 1e6
)

// Validate returns all problems of a synthesis.
func (s Synthesis) Validate() problem.List {
	var l problem.List
	for _, f := range []struct {
		name   string
		factor float64
	}{{"requests", s.Requests}, {"users", s.Users}, {"rate", s.Rate}, {"input_length", s.InputLength}, {"output_length", s.OutputLength}} {
		if !(f.factor > 0 && f.factor <= maxFactor) {
			l.Add(f.name, f.factor, "give a factor above 0 and up to %g, such as 2 for twice as much", maxFactor)
		}
	}
	if !(s.Sharing >= 0 && s.Sharing <= 1) {
		l.Add("sharing", s.Sharing, "give 0 to 1; traces cannot be made to share more")
	}
	return l
}

// Synthesize makes more, or less, requests of the kind of a trace. It repeats the trace's users: sessions, or plays of
// sessions that wait for each other, together with those that share a prompt with them. Each repetition is turned round in
// time by a random amount, so that it meets the others at another point, and has prompts of its own; but what a fiftieth of
// all sessions begin with, such as a system prompt, stays the same for all.
//
// It ends with the context.
func Synthesize(ctx context.Context, w *workload.Workload, s Synthesis) (*workload.Workload, []string, error) {
	if err := s.Validate().Err(); err != nil {
		return nil, nil, err
	}
	if n := float64(w.Requests()) * s.Requests * s.Users; n > maxSynthetic || math.Ceil(s.Requests/s.Rate)*math.Ceil(s.Users*s.Rate) > maxRepetitions {
		return nil, nil, fmt.Errorf("that would be about %.3g requests in %.3g repetitions; at most %d in %d can be made", n,
			math.Ceil(s.Requests/s.Rate)*math.Ceil(s.Users*s.Rate), maxSynthetic, maxRepetitions)
	}
	m := newMaker(w, s)
	var said notes
	if !m.timed && s.Rate != 1 {
		said.add("rate has no effect: the trace does not say when its users start, or they all start together")
		m.s.Rate = 1
	}
	m.out.blockSize = w.BlockSize
	if err := m.repeat(ctx); err != nil {
		return nil, nil, err
	}
	if m.dropped > 0 {
		said.add("the exact answers of %d requests are left out; their lengths stay", m.dropped)
	}
	if len(m.out.list) == 0 {
		return nil, nil, fmt.Errorf("no request is left of %s; use larger factors or another seed", w.Name)
	}
	out, err := m.out.build()
	if err == nil && s.Sharing < 1 {
		out, err = m.shareLess(ctx, out, &said)
	}
	if err != nil {
		return nil, nil, err
	}
	out.Format = w.Format
	return out, said, nil
}

// maker makes a synthesis.
type maker struct {
	s      Synthesis
	source *requests
	out    requests
	units  []unit // sessions, or plays of a graph
	family []int  // of each unit
	// families counts them; common says which of the source's ids, numbered from 0, stay the same in all repetitions.
	families int
	common   []bool
	// first is when the trace starts, span the time after which the next repetition does, in ms. A trace that is not timed
	// does not say when its units start, or they all start together.
	first  float64
	span   float64
	timed  bool
	starts []float64 // of the units that have one, in order
	random *rand.Rand
	// parts is the most blocks that one of the source's becomes, repetitions how many were made.
	parts       int
	repetitions int
	dropped     int
}

// unit is a set of requests that stay together.
type unit struct {
	requests []int32
	start    float64 // in ms; NaN when the source does not say
}

func newMaker(w *workload.Workload, s Synthesis) *maker {
	m := &maker{s: s, source: takeApart(w), random: rand.New(rand.NewPCG(s.Seed, 0x74726163)), parts: int(math.Ceil(s.InputLength)) + 1}
	m.out = requests{name: w.Name + " synthesized", graph: w.Graph != nil}
	m.numberIDs()
	m.findUnits(w)
	m.findFamilies()
	return m
}

// shareLess replaces the ends of what prompts share by blocks of their own, until a cache without limit hits as much less
// as was asked for.
func (m *maker) shareLess(ctx context.Context, whole *workload.Workload, said *notes) (*workload.Workload, error) {
	reuse := workload.Stats(whole).Reuse
	if reuse == nil || reuse.Ideal == 0 {
		said.add("sharing has no effect: the trace's prompts share nothing, or it does not say so")
		return whole, nil
	}
	target := reuse.Ideal * m.s.Sharing
	full := m.out.list
	known := m.knownBlocks(whole)
	var best *workload.Workload
	nearest := math.Inf(1)
	low, high := 0.0, 1.0
	for range sharingSteps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		keep := (low + high) / 2
		if m.s.Sharing == 0 {
			keep = 0
		}
		m.out.list = m.cut(full, known, keep)
		w, err := m.out.build()
		if err != nil {
			return nil, err
		}
		ideal := workload.Stats(w).Reuse.Ideal
		if off := math.Abs(ideal - target); off < nearest {
			best, nearest = w, off
		}
		if m.s.Sharing == 0 || nearest < sharingAccuracy {
			break
		}
		if ideal < target {
			low = keep
		} else {
			high = keep
		}
	}
	return best, nil
}

// The search for a hit ratio ends when it is as near as this, or after so many steps.
const (
	sharingAccuracy = .001
	sharingSteps    = 14
)

// knownBlocks counts the leading blocks of each request that an earlier one has, in the order in which they start.
func (m *maker) knownBlocks(w *workload.Workload) []int {
	starts := w.RecordedStarts()
	order := make([]int, w.Requests())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(starts[a], starts[b]) })
	known := make([]int, len(m.out.list))
	seen := map[chainBlock]uint32{}
	for _, i := range order {
		n, parent := 0, uint32(0)
		for k, id := range w.Hashes(i) {
			block := chainBlock{parent, id}
			number, was := seen[block]
			if !was {
				number = uint32(len(seen)) + 1
				seen[block] = number
			} else if n == k {
				n++
			}
			parent = number
		}
		if w.Graph != nil {
			i = int(w.Graph.Rank[i]) // the list is in the order of its source
		}
		known[i] = n
	}
	return known
}

// chainBlock is a block after those before it.
type chainBlock struct {
	parent uint32
	id     uint64
}

// cut keeps a part of the known blocks of each request; what follows becomes its own.
func (m *maker) cut(full []workload.GraphRequest, known []int, keep float64) []workload.GraphRequest {
	random := rand.New(rand.NewPCG(m.s.Seed, 0x637574))
	out := slices.Clone(full)
	next := m.idOf(m.repetitions, 0, 0) // beyond all others
	for i := range out {
		n := int(float64(known[i])*keep + random.Float64())
		if n >= known[i] {
			continue
		}
		ids := slices.Clone(out[i].Hashes)
		for k := n; k < known[i]; k++ {
			ids[k] = next
			next++
		}
		out[i].Hashes = ids
	}
	return out
}

// numberIDs numbers the ids of the source in order of appearance.
func (m *maker) numberIDs() {
	number := map[uint64]uint64{}
	for i := range m.source.list {
		ids := m.source.list[i].Hashes
		for k, id := range ids {
			n, known := number[id]
			if !known {
				n = uint64(len(number))
				number[id] = n
			}
			ids[k] = n
		}
	}
	m.common = make([]bool, len(number))
}

// findUnits groups the requests and measures the time that a repetition takes.
func (m *maker) findUnits(w *workload.Workload) {
	var starts []float64
	if w.Graph == nil {
		for s := range w.Sessions() {
			u := unit{start: w.ArrivalMs[w.SessionStart[s]]}
			for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
				u.requests = append(u.requests, i)
			}
			m.units = append(m.units, u)
		}
	} else {
		m.units = make([]unit, w.Graph.Plays())
		for i := range m.units {
			m.units[i].start = math.Inf(1)
		}
		for _, i := range m.bySourceOrder() {
			u := &m.units[w.Graph.Play[i]]
			u.requests = append(u.requests, i)
			if len(w.Graph.Edges(i)) == 0 {
				u.start = min(u.start, max(0, w.Graph.NotBeforeMs[i]))
			}
		}
	}
	for _, u := range m.units {
		if !math.IsNaN(u.start) {
			starts = append(starts, u.start)
		}
	}
	m.first, m.span = 0, spanOf(starts)
	if m.starts = starts; len(starts) > 0 { // which are sorted now
		m.first = starts[0]
	}
	if m.timed = m.span > 0; !m.timed { // the next repetition follows the end of this one
		times := newSchedule(w)
		for i := range times.end {
			m.span = max(m.span, times.end[i])
		}
	}
}

func (m *maker) bySourceOrder() []int32 {
	order := make([]int32, len(m.source.list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(m.source.rank[a], m.source.rank[b]) })
	return order
}

// spanOf is the time from the first start to the last, and one usual interval more. Production traces have times in ticks,
// which sums of their intervals keep.
func spanOf(starts []float64) float64 {
	if len(starts) == 0 {
		return 0
	}
	slices.Sort(starts)
	var intervals []float64
	for i := 1; i < len(starts); i++ {
		if d := starts[i] - starts[i-1]; d > 0 {
			intervals = append(intervals, d)
		}
	}
	if len(intervals) == 0 {
		return 0
	}
	slices.Sort(intervals)
	return starts[len(starts)-1] - starts[0] + intervals[len(intervals)/2]
}

// findFamilies joins units that share a block, unless a fiftieth of all units have it.
func (m *maker) findFamilies() {
	units := make([]int, len(m.common)) // how many have each id
	last := make([]int, len(m.common))  // the last of them, plus one
	for n, u := range m.units {
		for _, i := range u.requests {
			for _, id := range m.source.list[i].Hashes {
				if last[id] != n+1 {
					last[id] = n + 1
					units[id]++
				}
			}
		}
	}
	many := max(4, (len(m.units)+49)/50)
	for id, n := range units {
		if n >= many {
			m.common[id] = true
		}
	}
	root := make([]int, len(m.units))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	clear(last)
	for n, u := range m.units {
		for _, i := range u.requests {
			for _, id := range m.source.list[i].Hashes {
				if m.common[id] {
					continue
				}
				if before := last[id]; before != 0 {
					a, b := find(before-1), find(n)
					root[max(a, b)] = min(a, b)
				}
				last[id] = n + 1
			}
		}
	}
	m.family = make([]int, len(m.units))
	for n := range m.units {
		if r := find(n); r == n {
			m.family[n] = m.families
			m.families++
		} else {
			m.family[n] = m.family[r]
		}
	}
}
