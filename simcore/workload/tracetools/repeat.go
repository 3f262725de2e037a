package tracetools

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/servegrid/servegrid/simcore/workload"
)

// repeat adds all repetitions: those that run beside each other, again and again. A higher rate is more users for a
// shorter time.
func (m *maker) repeat(ctx context.Context) error {
	users, requests := m.s.Users*m.s.Rate, m.s.Requests/m.s.Rate
	var placed []placedUnit
	for after := range int(math.Ceil(requests)) {
		part := min(1, requests-float64(after))
		turn := m.turn(users, part)
		for beside := range int(math.Ceil(users)) {
			r := &repetition{maker: m, number: m.repetitions, random: rand.New(rand.NewPCG(m.random.Uint64(), uint64(m.repetitions)))}
			kept := r.pick(min(1, users-float64(beside)))
			placed = r.place(placed, kept, turn(beside), float64(after)*m.span, part)
			m.repetitions++
		}
	}
	slices.SortStableFunc(placed, func(a, b placedUnit) int { return cmp.Compare(a.at, b.at) })
	for i, p := range placed {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p.add()
	}
	return nil
}

// turnsTried is how many ways to turn a trace round are compared when only a part of its time is wanted.
const turnsTried = 32

// turn draws by how much the repetitions that run beside each other are turned round in time. Of each only a part of the
// time may be wanted; then each has the part before that of the one before, so that together they have as much of
// each time as can be, and of several draws the one whose number of requests is nearest to what the part should have is taken.
func (m *maker) turn(users, part float64) func(beside int) float64 {
	step := part * m.span
	if part == 1 {
		step = m.span / math.Ceil(users)
	}
	base, nearest := 0.0, math.Inf(1)
	for try := range turnsTried {
		drawn := m.drawTurn(m.random.Float64() * m.span)
		if part == 1 || !m.timed {
			base = drawn
			break
		}
		off := math.Abs(m.inParts(drawn, step, users)/(float64(len(m.source.list))*users*part) - 1)
		if try == 0 || off < nearest {
			base, nearest = drawn, off
		}
	}
	return func(beside int) float64 { return m.drawTurn(math.Mod(base+float64(beside)*step, max(m.span, 1))) }
}

// drawTurn is the distance from the first unit of the first one that starts so late. So times that are in ticks stay so.
func (m *maker) drawTurn(late float64) float64 {
	at, _ := slices.BinarySearch(m.starts, m.first+late)
	if at == len(m.starts) {
		return 0
	}
	return m.starts[at] - m.first
}

// inParts counts the requests in the parts of repetitions that run beside each other.
func (m *maker) inParts(base, step, users float64) float64 {
	requests := 0.0
	for beside := range int(math.Ceil(users)) {
		turn := m.drawTurn(math.Mod(base+float64(beside)*step, m.span))
		for i := range m.units {
			if m.own(&m.units[i], turn) < step {
				requests += float64(len(m.units[i].requests)) * min(1, users-float64(beside))
			}
		}
	}
	return requests
}

// own is when a unit starts in a repetition's own time, turned round.
func (m *maker) own(u *unit, turn float64) float64 {
	own := u.start - m.first + turn
	if own >= m.span {
		own -= m.span
	}
	return own
}

// repetition is one copy of the trace.
type repetition struct {
	*maker
	number int
	random *rand.Rand
}

// placedUnit is a unit of a repetition and when it starts, in ms; NaN when nobody knows.
type placedUnit struct {
	*repetition
	unit *unit
	at   float64
}

// pick draws the families of a part of the users.
func (r *repetition) pick(share float64) []bool {
	kept := make([]bool, r.families)
	for i := range kept {
		kept[i] = share == 1 || r.random.Float64() < share
	}
	return kept
}

// place adds the units that start in the first part of the trace's time, once it is turned round. Without times a part of a
// trace is its first units.
func (r *repetition) place(placed []placedUnit, kept []bool, turn, offset, part float64) []placedUnit {
	for n := range r.units {
		u := &r.units[n]
		if !kept[r.family[n]] {
			continue
		}
		own := r.own(u, turn)
		inside := own < part*r.span
		if !r.timed {
			own, inside = u.start-r.first, float64(n) < part*float64(len(r.units))
		}
		if inside {
			placed = append(placed, placedUnit{r, u, rounded(r.first + offset + own)})
		}
	}
	return placed
}

// add adds the requests of a unit and, of a play, what they wait for.
func (p placedUnit) add() {
	number := make(map[int32]int32, len(p.unit.requests)) // of requests, in the synthesis
	for _, i := range p.unit.requests {
		number[i] = int32(len(p.out.list))
		p.out.list = append(p.out.list, p.request(i, p.unit.start, p.at))
	}
	if p.out.graph {
		p.addGraph(number)
	}
}

func (p placedUnit) addGraph(number map[int32]int32) {
	for _, i := range p.unit.requests {
		var edges []workload.Edge
		for _, e := range p.source.edges[i] {
			e.From = number[e.From]
			edges = append(edges, e)
		}
		p.out.edges = append(p.out.edges, edges)
		p.out.rank = append(p.out.rank, int32(len(p.out.rank)))
	}
	p.out.plays = append(p.out.plays, p.named(p.source.list[p.unit.requests[0]].Play))
}

// request is a request of this repetition, whose unit starts at another time.
func (r *repetition) request(i int32, from, to float64) workload.GraphRequest {
	x := r.source.list[i]
	x.ID, x.Session, x.ParentSession, x.Play = r.named(x.ID), r.named(x.Session), r.named(x.ParentSession), r.named(x.Play)
	if !math.IsNaN(x.ArrivalMs) {
		x.ArrivalMs = to
	}
	if r.out.graph {
		x.NotBeforeMs += to - from
		if len(r.source.edges[i]) == 0 {
			x.NotBeforeMs = max(x.NotBeforeMs, to)
		}
		x.RecordedStartMs += to - from
		x.RecordedEndMs += to - from
	}
	x.Input, x.Output = scaled(x.Input, r.s.InputLength), scaled(x.Output, r.s.OutputLength)
	x.Hashes = r.blocks(x.Hashes, x.Input)
	if x.PlannedOutput != nil {
		x.PlannedOutput = nil
		r.dropped++
	}
	return x
}

// named tells repetitions apart.
func (r *repetition) named(name string) string {
	if r.number == 0 || name == "" {
		return name
	}
	return fmt.Sprintf("%s/%d", name, r.number+1)
}

// scaled is a length times a factor, at least 1 where it was.
func scaled(length int, factor float64) int {
	if length == 0 {
		return 0
	}
	return int(min(max(1, math.Round(float64(length)*factor)), workload.MaxTokens))
}

// blocks gives a prompt of another length its blocks: each of the trace's becomes several, or some of them go, in the same
// way wherever it stands in a prompt.
func (r *repetition) blocks(ids []uint64, input int) []uint64 {
	if len(ids) == 0 {
		return nil
	}
	f := r.s.InputLength
	count := int(math.Ceil(float64(len(ids)) * f))
	if size := r.source.blockSize; size > 0 {
		count = min(count, (input+size-1)/size)
	}
	out := make([]uint64, 0, count)
	part, last := 0, -1
	for k := range max(count, 1) {
		at := min(int(float64(k)/f), len(ids)-1)
		if part++; at != last {
			part, last = 0, at
		}
		copy := r.number
		if r.common[ids[at]] {
			copy = -1
		}
		out = append(out, r.idOf(copy, ids[at], part))
	}
	return out
}

// idOf is the id of a part of one of the source's blocks in a repetition, or in all of them if that is -1.
func (m *maker) idOf(repetition int, id uint64, part int) uint64 {
	return (uint64(repetition+1)*uint64(len(m.common))+id)*uint64(m.parts) + uint64(part)
}
