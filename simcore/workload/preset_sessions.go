package workload

import (
	"fmt"
	"math"
)

// sessionFit describes a closed-loop workload: agents that send a growing prompt turn by turn, each turn a pause
// after the end of the one before.
type sessionFit struct {
	requests  int     // of the traces it is fitted to
	rate      float64 // mean requests per second by which sessions start
	blockSize int     // tokens per hash id
	// kinds are the kinds of sessions.
	kinds []sessionKind
	// pauseSeconds is the time from the end of a turn to the next.
	pauseSeconds quantiles
	// output is the answer's length in tokens.
	output quantiles
	// growth is what a turn adds to the prompt besides the last answer, in tokens; earlyGrowth the same for the turns
	// before the early-th, in which an agent reads most. A turn adds at least leastGrowth, answer included.
	growth, earlyGrowth quantiles
	early, leastGrowth  int
	// A session whose prompt reaches its limit is compacted: the next prompt keeps the part compactKeep of the
	// first one and has compactTo tokens. clear is the chance of the same at any other turn.
	limit       quantiles
	clear       float64
	compactKeep quantiles
	compactTo   quantiles
}

// sessionKind is a kind of session: how long its first prompt is, and how many turns it has.
type sessionKind struct {
	share float64
	first quantiles // tokens
	turns quantiles
}

// meanTurns is the mean number of turns of a session.
func (f *sessionFit) meanTurns() float64 {
	var turns, share float64
	for _, k := range f.kinds {
		turns += float64(k.share * k.turns.mean())
		share += k.share
	}
	return turns / share
}

// generate makes the workload of a spec without defaults left open, session by session.
func (f *sessionFit) generate(s PresetSpec) (*Workload, error) {
	b := NewBuilder(s.Name, f.blockSize)
	sessionRate := 1 / f.meanTurns()
	random := workloadPhase.open(s.Seed)
	lengths, sharing := random.lengths, random.sharing
	clock := newArrivals(arrivalFit{}, f.rate*sessionRate, s.Rate*sessionRate, random.arrivals)
	m := sessionMaker{fit: f, scale: s.Scale}
	for _, k := range f.kinds {
		m.weights = append(m.weights, k.share)
	}
	session := 0
	for at := clock.next(); b.Requests() < s.Requests && at < s.DurationSeconds*1000; at = clock.next() {
		session++
		turns := m.begin(sharing.Float64(), sharing.Float64(), sharing.Float64(), lengths.Float64())
		r := Request{Session: fmt.Sprintf("session_%d", session), ArrivalMs: at}
		for turn := 0; turn < turns && b.Requests() < s.Requests; turn++ {
			d := sessionDraws{
				output: lengths.Float64(), growth: lengths.Float64(), compactTo: lengths.Float64(),
				clear: sharing.Float64(), keep: sharing.Float64(), pause: sharing.Float64(),
			}
			if turn > 0 {
				m.grow(turn, d)
				r.ArrivalMs, r.DelayMs = math.NaN(), roundMs(f.pauseSeconds.at(d.pause)*1000)
			}
			m.output = scaledTokens(f.output.at(d.output), s.Scale, 1)
			r.Input, r.Output, r.Hashes = m.input, m.output, m.hashes()
			b.Add(r)
		}
	}
	return b.Build()
}

// sessionDraws are the random numbers of one turn; all are drawn, used or not.
type sessionDraws struct{ output, growth, compactTo, clear, keep, pause float64 }

// sessionMaker holds the session that is being generated.
type sessionMaker struct {
	fit     *sessionFit
	scale   float64
	weights []float64
	nextID  uint64

	blocks               []uint64
	first, input, output int
	limit                float64
}

// begin starts a session and returns its number of turns.
func (m *sessionMaker) begin(kind, turns, limit, first float64) int {
	k := &m.fit.kinds[pick(kind, m.weights)]
	m.blocks = m.blocks[:0]
	m.first = scaledTokens(k.first.at(first), m.scale, 1)
	m.limit = max(m.fit.limit.at(limit)*m.scale, float64(m.first)*1.1)
	m.become(m.first)
	return scaledTokens(k.turns.at(turns), 1, 1)
}

// grow makes the prompt of the next turn.
func (m *sessionMaker) grow(turn int, d sessionDraws) {
	f := m.fit
	growth := &f.growth
	if turn < f.early {
		growth = &f.earlyGrowth
	}
	least := scaledTokens(float64(f.leastGrowth), m.scale, 1)
	next := m.input + max(least, m.output+scaledTokens(growth.at(d.growth), m.scale, -m.output))
	if float64(next) > m.limit || d.clear < f.clear {
		kept := float64(m.first) * f.compactKeep.at(d.keep)
		m.blocks = m.blocks[:min(int(kept)/f.blockSize, len(m.blocks))]
		next = min(scaledTokens(f.compactTo.at(d.compactTo), m.scale, 1), int(m.limit))
		next = max(next, len(m.blocks)*f.blockSize+1)
	}
	m.become(next)
}

// become sets the prompt's length and gives new ids to the full blocks that it adds.
func (m *sessionMaker) become(input int) {
	m.input = input
	for full := input / m.fit.blockSize; len(m.blocks) < full; m.nextID++ {
		m.blocks = append(m.blocks, m.nextID)
	}
}

// hashes lists the prompt's ids, with one of its own for a partial last block.
func (m *sessionMaker) hashes() []uint64 {
	if m.input%m.fit.blockSize == 0 {
		return m.blocks
	}
	ids := append(m.blocks, m.nextID)
	m.nextID++
	return ids
}
