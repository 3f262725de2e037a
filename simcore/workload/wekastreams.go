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
	// stream is the stream of each request of the main agent, and streams their requests in order.
	stream     []int32
	unsorted   bool
	unfinished string // the subagent without requests that is waited for
}

func (t *wekaTrace) graph(s TraceSpec) *wekaGraph {
	g := &wekaGraph{t: t, stream: make([]int32, len(t.requests))}
	streams := g.scope(t.main)
	for i := range t.subagents {
		a := &t.subagents[i]
		g.join(a, g.scope(a.requests), streams[g.stream[a.spawner]], s.JoinDelay)
		if len(a.requests) > 0 {
			g.spawn(a, s.SpawnTrigger)
		}
	}
	return g
}

func (g *wekaGraph) edge(to, from int32, trigger Trigger, delayMs float64, relation Relation) {
	g.edges = append(g.edges, builtEdge{to, Edge{From: from, DelayMs: max(0, exactMs(delayMs)), Trigger: trigger, Relation: relation}})
}

// follow makes a request wait for an earlier one: for its end, or for its start if they ran side by side.
func (g *wekaGraph) follow(to, from int32) {
	r, before := &g.t.requests[to], &g.t.requests[from]
	if before.endMs <= r.startMs {
		g.edge(to, from, OnCompletion, r.startMs-before.endMs, Sequence)
		return
	}
	g.edge(to, from, OnDispatch, r.startMs-before.startMs, Spawn)
}

// scope finds the streams of an agent: runs of requests whose prompts each go on from the one before. Requests wait for the
// one before them in their stream or the one that they fork from, and for what other streams had finished.
func (g *wekaGraph) scope(requests []int32) (streams [][]int32) {
	if !slices.IsSortedFunc(requests, g.byStart) {
		g.unsorted = true
		requests = slices.Clone(requests)
		slices.SortStableFunc(requests, g.byStart)
	}
	if !slices.ContainsFunc(requests, func(r int32) bool { return g.t.fullBlocks(r) > 0 }) {
		return g.chain(requests)
	}
	var found []wekaStream
	for i, r := range requests {
		at, from := g.place(found, requests, i)
		if at == len(found) {
			found = append(found, wekaStream{prompt: r})
		}
		hashed := g.t.fullBlocks(r) > 0
		switch {
		case from != noRequest && g.t.common(from, r) == 0: // nothing says that they ran side by side on purpose
			g.edge(r, from, OnCompletion, g.t.requests[r].startMs-g.t.requests[from].endMs, Sequence)
		case from != noRequest:
			g.follow(r, from)
		}
		for other := range found {
			if other != at {
				g.barrier(r, from, &found[other])
			}
		}
		s := &found[at]
		s.requests = append(s.requests, r)
		s.endMs = max(s.endMs, g.t.requests[r].endMs)
		s.endedMs = append(s.endedMs, s.endMs)
		if hashed {
			s.prompt = r
		}
		g.stream[r] = int32(at)
	}
	for _, s := range found {
		streams = append(streams, s.requests)
	}
	return streams
}

// wekaStream is requests of one agent whose prompts each go on from the one before.
type wekaStream struct {
	requests []int32
	prompt   int32     // the last of them with hash ids
	endMs    float64   // when all of them had ended
	endedMs  []float64 // when each and all before it had
}

func (s *wekaStream) tail() int32 { return s.requests[len(s.requests)-1] }

func (g *wekaGraph) byStart(a, b int32) int {
	return cmp.Compare(g.t.requests[a].startMs, g.t.requests[b].startMs)
}

// chain makes the requests of an agent without hash ids wait one for another.
func (g *wekaGraph) chain(requests []int32) [][]int32 {
	for i := 1; i < len(requests); i++ {
		r, before := requests[i], requests[i-1]
		g.edge(r, before, OnCompletion, g.t.requests[r].startMs-g.t.requests[before].endMs, Sequence)
	}
	return [][]int32{requests}
}

// place says which stream the i-th request of an agent belongs to, len(streams) for a new one, and which request it
// follows; noRequest for none. Requests without hash ids belong to the agent's first stream.
func (g *wekaGraph) place(streams []wekaStream, requests []int32, i int) (at int, from int32) {
	r := requests[i]
	if g.t.fullBlocks(r) == 0 && len(streams) > 0 {
		return 0, streams[0].tail()
	}
	start := g.t.requests[r].startMs
	goesOn, goesOnBlocks := -1, 0 // the stream that goes on with this request
	fork, forkBlocks := -1, 0     // the stream with most in common
	for k := range streams {
		s := &streams[k]
		common := g.t.common(s.prompt, r)
		if common == 0 {
			continue
		}
		if s.endMs <= start && common == g.t.fullBlocks(s.prompt) && (common > goesOnBlocks || common == goesOnBlocks && g.nearer(s, &streams[goesOn], start)) {
			goesOn, goesOnBlocks = k, common
		}
		if common > forkBlocks || common == forkBlocks && g.nearer(s, &streams[fork], start) {
			fork, forkBlocks = k, common
		}
	}
	switch {
	case goesOn >= 0:
		return goesOn, streams[goesOn].tail()
	case fork >= 0:
		return len(streams), streams[fork].prompt
	case i == 1 && g.preamble(requests):
		return 0, requests[0]
	}
	return len(streams), noRequest
}

// nearer prefers, of two streams with as much in common with a request that starts at a time, one that has ended by then,
// then the one that ended last, then the one whose last request started last.
func (g *wekaGraph) nearer(s, than *wekaStream, start float64) bool {
	if ended := s.endMs <= start; ended != (than.endMs <= start) {
		return ended
	}
	a, b := s.tail(), than.tail()
	return cmp.Or(cmp.Compare(s.endMs, than.endMs), g.byStart(a, b), cmp.Compare(a, b)) > 0
}

// preamble reports whether an agent's first request has nothing in common with any other.
func (g *wekaGraph) preamble(requests []int32) bool {
	first := requests[0]
	for _, r := range requests[1:] {
		if g.t.common(first, r) > 0 {
			return false
		}
	}
	return true
}

// barrier makes a request wait for the last of another stream to end before it began, unless it follows that one anyway.
func (g *wekaGraph) barrier(r, follows int32, s *wekaStream) {
	start, last := g.t.requests[r].startMs, int32(noRequest)
	for i, from := range slices.Backward(s.requests) {
		if last != noRequest && s.endedMs[i] <= g.t.requests[last].endMs {
			break // none before it ended later
		}
		f := &g.t.requests[from]
		if f.startMs < start && f.endMs <= start && (last == noRequest || f.endMs > g.t.requests[last].endMs) {
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
func (g *wekaGraph) join(a *wekaSubagent, own [][]int32, stream []int32, delay string) {
	const slackMs = 1e-3
	after := slices.Index(stream, a.spawner) + 1
	at := slices.IndexFunc(stream[after:], func(r int32) bool {
		return g.t.requests[r].outer > a.outer && g.t.requests[r].startMs >= a.endMs-slackMs
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
		last := of[len(of)-1]
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
	return min(runBlocks(t.runs[request.prompt.from:request.prompt.to]), int(request.input)/int(t.blockSize))
}

// common is the number of leading whole blocks that two prompts share.
func (t *wekaTrace) common(a, b int32) int {
	x, y := &t.requests[a], &t.requests[b]
	n := commonBlocks(t.runs[x.prompt.from:x.prompt.to], t.runs[y.prompt.from:y.prompt.to])
	return min(n, int(x.input)/int(t.blockSize), int(y.input)/int(t.blockSize))
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
	for _, run := range t.runs[r.prompt.from:r.prompt.to] {
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
