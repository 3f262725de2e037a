package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// workload makes one play of each trace.
func (c *wekaCorpus) workload() (*Workload, error) {
	b := NewGraphBuilder(c.spec.name(), int(c.traces[0].blockSize))
	b.Ties = TiesByPlayAndID
	lower := wekaLowering{builder: b, global: map[uint64]uint64{}, floored: c.spec.Pacing != PacingCausal}
	for i := range c.traces {
		t := &c.traces[i]
		graph := t.graph(c.spec)
		if graph.unsorted {
			c.rows.warn("%s: trace %s: its requests are not in order of t; they are replayed in that order", c.show(t.at), shortened(t.id))
		}
		if graph.unfinished != "" {
			c.problem(t.at, fmt.Errorf("trace %s waits for subagent %s, which has no requests; how long other work took can't be replayed", shortened(t.id), shortened(graph.unfinished)))
		}
		lower.add(t, graph)
	}
	if err := c.rows.err(); err != nil {
		return nil, err
	}
	return b.Build()
}

// wekaGraph says which requests of a trace wait for which (spec/workloads.md §2.4, §9 C1 to C4).
type wekaGraph struct {
	t     *wekaTrace
	edges []builtEdge
	// stream is the stream of each request among those of its agent.
	stream     []int32
	unsorted   bool
	unfinished string // the subagent without requests that is waited for
}

func (t *wekaTrace) graph(s TraceSpec) *wekaGraph {
	g := &wekaGraph{t: t, stream: make([]int32, len(t.requests))}
	streams := g.scope(t.main)
	for i := range t.subagents {
		a := &t.subagents[i]
		g.join(a, g.scope(a.requests), streams[g.stream[a.spawner]].requests, s.JoinDelay)
		if len(a.requests) > 0 {
			g.spawn(a, s.SpawnTrigger)
		}
	}
	return g
}

func (g *wekaGraph) edge(to, from int32, trigger Trigger, delayMs float64, relation Relation) {
	g.edges = append(g.edges, builtEdge{to, Edge{From: from, DelayMs: max(0, exactMs(delayMs)), Trigger: trigger, Relation: relation}})
}

// wekaSlackMs is how far rounding may be off where one thing has to come after another.
const wekaSlackMs = 1e-3

// wekaStream is requests of one agent whose prompts each go on from the one before.
type wekaStream struct {
	requests []int32
	tail     int32     // the last of them with hash ids; noRequest for none
	from     int32     // the request of another stream that its first one forks from; noRequest for none
	common   int       // how many hash ids these two have in common
	endedMs  []float64 // when each of the requests and all before it had ended
}

func (s *wekaStream) add(r int32, ids bool) {
	if s.requests = append(s.requests, r); ids {
		s.tail = r
	}
}

// scope finds the streams of an agent, in the order in which they begin, and what their requests wait for: the one before them, what
// their stream forks from, and what other streams had finished.
func (g *wekaGraph) scope(requests []int32) []wekaStream {
	if !slices.IsSortedFunc(requests, g.byStart) {
		g.unsorted = true
		requests = slices.Clone(requests)
		slices.SortStableFunc(requests, g.byStart)
	}
	alone := 0 // a preamble is the first request of the first stream, whatever its prompt is
	if g.preamble(requests) {
		alone = 1
	}
	streams := g.mend(g.streams(requests[alone:]))
	if alone > 0 {
		streams[0].requests = slices.Insert(streams[0].requests, 0, requests[0])
	}
	for at := range streams {
		s := &streams[at]
		slices.SortStableFunc(s.requests, g.byStart)
		ended := math.Inf(-1)
		for i, r := range s.requests {
			g.stream[r] = int32(at)
			ended = max(ended, g.t.requests[r].endMs)
			s.endedMs = append(s.endedMs, ended)
			if i > 0 {
				before := s.requests[i-1]
				g.edge(r, before, OnCompletion, g.t.requests[r].startMs-g.t.requests[before].endMs, Sequence)
			}
		}
		if s.from != noRequest {
			g.fork(s.requests[0], s.from)
		}
	}
	for at := range streams {
		follows := streams[at].from
		for _, r := range streams[at].requests {
			for other := range streams {
				if other != at {
					g.barrier(r, follows, &streams[other])
				}
			}
			follows = r
		}
	}
	return streams
}

// fork makes the first request of a stream wait for the one that it forks from: for its end, or for its start if they ran side by
// side.
func (g *wekaGraph) fork(first, from int32) {
	r, before := &g.t.requests[first], &g.t.requests[from]
	if before.endMs <= r.startMs {
		g.edge(first, from, OnCompletion, r.startMs-before.endMs, Spawn)
		return
	}
	g.edge(first, from, OnDispatch, r.startMs-before.startMs, Spawn)
}

func (g *wekaGraph) byStart(a, b int32) int {
	return cmp.Compare(g.t.requests[a].startMs, g.t.requests[b].startMs)
}

// streams puts each request, in order of time, into the stream whose prompt it goes on with, or into a new one that forks from the
// one with most in common. Requests without hash ids belong to the first stream.
func (g *wekaGraph) streams(requests []int32) []wekaStream {
	var streams []wekaStream
	for _, r := range requests {
		ids := g.t.ids(r)
		at, from, common := 0, int32(noRequest), 0
		if ids > 0 && slices.ContainsFunc(streams, func(s wekaStream) bool { return s.tail != noRequest }) {
			at, from, common = g.place(streams, r)
		}
		if at == len(streams) {
			streams = append(streams, wekaStream{tail: noRequest, from: from, common: common})
		}
		streams[at].add(r, ids > 0)
	}
	return streams
}

// place says which stream a request with hash ids belongs to, len(streams) for a new one, and what that forks from: of equals the
// tail with the longer prompt, then the first stream.
func (g *wekaGraph) place(streams []wekaStream, r int32) (at int, from int32, common int) {
	goesOn, longest := -1, 0
	from = noRequest
	for k := range streams {
		tail := streams[k].tail
		if tail == noRequest {
			continue
		}
		ids, shared := g.t.ids(tail), g.t.common(tail, r)
		if shared == ids && ids > longest && g.ended(tail, r) && g.sameModel(tail, r) {
			goesOn, longest = k, ids
		}
		if shared > common || shared == common && shared > 0 && ids > g.t.ids(from) {
			from, common = tail, shared
		}
	}
	if goesOn >= 0 {
		return goesOn, noRequest, 0
	}
	return len(streams), from, common
}

// ended reports whether a request had ended when another one began.
func (g *wekaGraph) ended(before, r int32) bool {
	return g.t.requests[before].endMs <= g.t.requests[r].startMs+wekaSlackMs
}

func (g *wekaGraph) sameModel(a, b int32) bool { return g.t.requests[a].model == g.t.requests[b].model }

// mend lets streams that nothing went on with go on with one that forks from their end: that is how a conversation looks whose prompt
// was cut down or edited. It returns the streams that are left.
func (g *wekaGraph) mend(streams []wekaStream) []wekaStream {
	m := wekaMending{g: g, streams: streams, gone: make([]bool, len(streams)), ends: map[int32]int{}, forks: map[int32][]int{}}
	for k := range streams {
		m.ends[streams[k].tail] = k
		if from := streams[k].from; from != noRequest {
			m.register(from, k)
		}
	}
	for len(m.left) > 0 {
		end := m.left[0]
		m.left = m.left[1:]
		if stream, is := m.ends[end]; is {
			m.goOn(stream, end)
		}
	}
	var whole []wekaStream
	for k := range streams {
		if !m.gone[k] {
			whole = append(whole, streams[k])
		}
	}
	slices.SortStableFunc(whole, func(a, b wekaStream) int { return g.byStart(a.requests[0], b.requests[0]) })
	return whole
}

// wekaMending is the mending of an agent's streams.
type wekaMending struct {
	g       *wekaGraph
	streams []wekaStream
	gone    []bool          // streams that have become part of another one
	ends    map[int32]int   // the stream that ends with a request
	forks   map[int32][]int // the streams that fork from a request
	left    []int32         // the requests with forks that are yet to be looked at, by name
}

// register notes that a stream forks from a request.
func (m *wekaMending) register(from int32, stream int) {
	m.forks[from] = append(m.forks[from], stream)
	at, there := slices.BinarySearchFunc(m.left, from, func(a, b int32) int {
		return cmp.Compare(m.g.t.requests[a].name(), m.g.t.requests[b].name())
	})
	if !there {
		m.left = slices.Insert(m.left, at, from)
	}
}

// goOn lets a stream go on with one that forks from its end, if one fits: the one with most in common, of equals the earliest. The
// other forks may rather have come from its new end.
func (m *wekaMending) goOn(stream int, end int32) {
	forks := slices.DeleteFunc(slices.Clone(m.forks[end]), func(k int) bool { return m.gone[k] })
	next := -1
	for _, k := range forks {
		if m.fits(end, k) && (next < 0 || cmp.Or(cmp.Compare(m.streams[k].common, m.streams[next].common), m.g.byStart(m.first(next), m.first(k)), cmp.Compare(next, k)) > 0) {
			next = k
		}
	}
	if next < 0 {
		return
	}
	s := &m.streams[stream]
	s.requests, s.tail = append(s.requests, m.streams[next].requests...), m.streams[next].tail
	m.gone[next], m.ends[s.tail] = true, stream
	delete(m.ends, end)
	for _, k := range forks {
		if k == next || m.g.t.requests[s.tail].startMs > m.g.t.requests[m.first(k)].startMs+wekaSlackMs {
			continue
		}
		if common := m.g.t.common(s.tail, m.first(k)); common > 0 {
			m.streams[k].from, m.streams[k].common = s.tail, common
			m.register(s.tail, k)
		}
	}
}

func (m *wekaMending) first(stream int) int32 { return m.streams[stream].requests[0] }

// fits reports whether a stream that forks from a request can be how that one's stream went on.
func (m *wekaMending) fits(end int32, stream int) bool {
	const longMs, half = 3_600_000, .5 // after so long a pause, that part of the prompt has to be the same
	first := m.first(stream)
	pauseMs := m.g.t.requests[first].startMs - m.g.t.requests[end].endMs
	return m.g.ended(end, first) && m.g.sameModel(end, first) && !(pauseMs > longMs && float64(m.streams[stream].common) < half*float64(m.g.t.ids(end)))
}

// preamble reports whether an agent's first request has nothing in common with any other; after a long answer not even hash ids at
// other places.
func (g *wekaGraph) preamble(requests []int32) bool {
	const long = 64 // output tokens
	if len(requests) < 2 || g.t.ids(requests[0]) == 0 {
		return false
	}
	first := requests[0]
	for _, r := range requests[1:] {
		if g.t.common(first, r) > 0 {
			return false
		}
	}
	return g.t.requests[first].output <= long || !g.t.sharesIDs(first, requests[1:])
}

// barrier makes a request wait for the last of another stream to end before it began, unless it follows that one anyway.
func (g *wekaGraph) barrier(r, follows int32, s *wekaStream) {
	start, last := g.t.requests[r].startMs, int32(noRequest)
	began, _ := slices.BinarySearchFunc(s.requests, start, func(f int32, start float64) int { return cmp.Compare(g.t.requests[f].startMs, start) })
	for i, from := range slices.Backward(s.requests[:began]) {
		if last != noRequest && s.endedMs[i] <= g.t.requests[last].endMs {
			break // none before it ended later
		}
		if g.ended(from, r) && (last == noRequest || g.t.requests[from].endMs > g.t.requests[last].endMs) {
			last = from
		}
	}
	if last != noRequest && last != follows {
		g.edge(r, last, OnCompletion, 0, Barrier)
	}
}

// spawn makes a subagent's first request wait for the main agent's request before its marker.
func (g *wekaGraph) spawn(a *wekaSubagent, trigger string) {
	first := slices.MinFunc(a.requests, g.byStart)
	r, spawner := &g.t.requests[first], &g.t.requests[a.spawner]
	if trigger == SpawnDispatch || trigger != SpawnCompletion && r.startMs < spawner.endMs {
		g.edge(first, a.spawner, OnDispatch, r.startMs-spawner.startMs, Spawn)
		return
	}
	g.edge(first, a.spawner, OnCompletion, r.startMs-spawner.endMs, Spawn)
}

// join makes the first request of the spawning stream that comes after a subagent, and started after its end, wait for the last
// request of each of the subagent's streams.
func (g *wekaGraph) join(a *wekaSubagent, own []wekaStream, stream []int32, delay string) {
	after := slices.Index(stream, a.spawner) + 1
	at := slices.IndexFunc(stream[after:], func(r int32) bool {
		return g.t.requests[r].outer > a.outer && g.t.requests[r].startMs >= a.endMs-wekaSlackMs
	})
	if at < 0 {
		return
	}
	if len(a.requests) == 0 {
		g.unfinished = cmp.Or(a.agent, "without a name")
		return
	}
	turn := stream[after+at]
	for _, of := range own {
		last := of.requests[len(of.requests)-1]
		wait := g.t.requests[turn].startMs - g.t.requests[last].endMs
		if delay == JoinNone {
			wait = 0
		}
		g.edge(turn, last, OnCompletion, wait, Join)
	}
}

// fullBlocks is the number of whole blocks of a prompt that have hash ids.
func (t *wekaTrace) fullBlocks(r int32) int {
	request := &t.requests[r]
	return min(t.ids(r), int(request.input)/int(t.blockSize))
}

// ids is the number of hash ids of a request, whether they are of whole blocks or not; 0 for none.
func (t *wekaTrace) ids(r int32) int {
	if r == noRequest {
		return 0
	}
	return runBlocks(t.promptRuns(r))
}

func (t *wekaTrace) promptRuns(r int32) []Segment {
	prompt := t.requests[r].prompt
	return t.runs[prompt.from:prompt.to]
}

// common is the number of leading hash ids that two requests share.
func (t *wekaTrace) common(a, b int32) int { return commonBlocks(t.promptRuns(a), t.promptRuns(b)) }

// sharesIDs reports whether a request has a hash id that one of others has.
func (t *wekaTrace) sharesIDs(r int32, others []int32) bool {
	for _, own := range t.promptRuns(r) {
		for _, other := range others {
			if slices.ContainsFunc(t.promptRuns(other), func(run Segment) bool {
				return run.Start < own.Start+own.Len && own.Start < run.Start+run.Len
			}) {
				return true
			}
		}
	}
	return false
}

// wekaLowering turns traces into requests of a workload.
type wekaLowering struct {
	builder *GraphBuilder
	plays   names
	next    uint64            // the next hash id that has no meaning yet
	global  map[uint64]uint64 // hash ids of traces with global ones
	hashes  []uint64
	floored bool
}

func (l *wekaLowering) add(t *wekaTrace, g *wekaGraph) {
	zero := math.Inf(1)
	for i := range t.requests {
		zero = min(zero, t.requests[i].startMs)
	}
	waits := make([]bool, len(t.requests))
	for _, e := range g.edges {
		waits[e.to] = true
	}
	play := l.unique(t.id)
	session, parent := l.sessions(t, play)
	first := l.next
	l.next += uint64(len(t.blocks.hashes))
	base := int32(l.builder.Requests())
	for i := range t.requests {
		r := &t.requests[i]
		start := exactMs(r.startMs - zero)
		added := GraphRequest{
			Request:     Request{ID: r.name(), Session: session[i], Input: int(r.input), Output: int(r.output), Hashes: l.prompt(t, int32(i), first)},
			NotBeforeMs: math.Inf(-1), Play: play, ParentSession: parent[i], Model: r.model,
			RecordedStartMs: start, RecordedEndMs: exactMs(r.endMs - zero),
		}
		if l.floored || !waits[i] {
			added.NotBeforeMs = start
		}
		l.builder.Add(added)
	}
	for _, e := range g.edges {
		e.From += base
		l.builder.AddEdge(base+e.to, e.Edge)
	}
}

// unique is a name that no play has yet: traces of two files may have the same.
func (l *wekaLowering) unique(name string) string {
	for n, given := 2, name; ; n++ {
		if _, taken := l.plays.number[name]; !taken {
			l.plays.of(name)
			return name
		}
		name = fmt.Sprintf("%s (%d)", given, n)
	}
}

// sessions names the session of each request and the one that started that.
func (l *wekaLowering) sessions(t *wekaTrace, play string) (session, parent []string) {
	session, parent = make([]string, len(t.requests)), make([]string, len(t.requests))
	for _, r := range t.main {
		session[r] = play
	}
	for _, a := range t.subagents {
		name := l.unique(play + "/" + cmp.Or(a.agent, fmt.Sprint(a.outer)))
		for _, r := range a.requests {
			session[r], parent[r] = name, play
		}
	}
	return session, parent
}

// name is the request's place in its trace, as the newest peer calls it.
func (r *wekaRequest) name() string {
	if r.inner < 0 {
		return fmt.Sprintf("outer:%d", r.outer)
	}
	return fmt.Sprintf("outer:%d:inner:%d", r.outer, r.inner)
}

// prompt writes the hash ids of a prompt; blocks without one, and the rest after the last whole block, are its own. The
// names of a trace's blocks begin at first.
func (l *wekaLowering) prompt(t *wekaTrace, number int32, first uint64) []uint64 {
	r := &t.requests[number]
	l.hashes = l.hashes[:0]
	full := t.fullBlocks(number)
	for _, run := range t.promptRuns(number) {
		for name := run.Start; name < run.Start+run.Len && len(l.hashes) < full; name++ {
			l.hashes = append(l.hashes, l.block(t, name, first))
		}
	}
	for len(l.hashes)*int(t.blockSize) < int(r.input) {
		l.hashes = append(l.hashes, l.next)
		l.next++
	}
	return l.hashes
}

// block is the hash id of a trace's block in the workload.
func (l *wekaLowering) block(t *wekaTrace, name uint32, first uint64) uint64 {
	id := first + uint64(name)
	if !t.global {
		return id
	}
	if known, ok := l.global[t.blocks.hashes[name]]; ok {
		return known
	}
	l.global[t.blocks.hashes[name]] = id
	return id
}
