package workload

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// workload makes the requests' workload: independent ones at their recorded times, or a graph of those that wait for
// each other (spec/workloads.md §2.2, §2.3).
func (c *dynamoCapture) workload() (*Workload, error) {
	order := make([]int32, len(c.requests))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, c.byTime)
	if c.agentic() {
		return c.graph(order)
	}
	return c.standard(order)
}

// standard makes each request a session of its own.
func (c *dynamoCapture) standard(order []int32) (*Workload, error) {
	b := NewBuilder(c.spec.name(), int(c.blockSize))
	lower := dynamoLowering{c: c, names: make([]uint32, len(c.blocks.hashes))}
	first := c.requests[order[0]].startMs
	for _, r := range order {
		request := lower.request(r)
		request.ArrivalMs = float64(c.requests[r].startMs - first)
		b.Add(request)
		if output := lower.plannedOutput(r); output != nil {
			b.plan(int32(b.Requests()-1), output)
		}
	}
	return b.Build()
}

// graph makes each request wait for the one before it in its session, a subagent's first for the request that spawned
// it, and the request that uses a subagent's answer for the subagent's last.
func (c *dynamoCapture) graph(order []int32) (*Workload, error) {
	links := c.link()
	if err := c.rows.err(); err != nil {
		return nil, err
	}
	b := NewGraphBuilder(c.spec.name(), int(c.blockSize))
	b.PlayPrefix, b.PlayOrder = "dynamo-play:", strings.Compare
	if !c.src.Rules.TiesInFileOrder {
		b.Ties = TiesByID
	}
	lower := dynamoLowering{c: c, names: make([]uint32, len(c.blocks.hashes))}
	number := make([]int32, len(order)) // in the builder
	for i, r := range order {
		number[r] = int32(i)
	}
	clock := newDynamoClock(c, c.requests[order[0]].startMs)
	tools := c.toolWaits(links)
	var waits []dynamoWait
	for _, r := range order {
		waits = links.waits(waits[:0], r)
		added := clock.request(r, waits)
		added.Request, added.DelayMs = lower.request(r), clock.delayAfterAll(r, waits)
		added.ToolWaitMs = tools[r]
		to := b.Add(added)
		if output := lower.plannedOutput(r); output != nil {
			b.requests.plan(to, output)
		}
		for _, w := range waits {
			b.AddEdge(to, clock.edge(r, w, number[w.from]))
		}
	}
	w, err := b.Build()
	return w, b.noteCycles(c.rows, err, "request.request_id", func(number int32) (string, int) {
		at := c.requests[order[number]].at
		return c.spec.Paths[at.file], int(at.line)
	})
}

// dynamoWait is a request that another one waits for.
type dynamoWait struct {
	from     int32
	relation Relation
}

// dynamoLinks says which requests wait for which.
type dynamoLinks struct {
	c *dynamoCapture
	// before is the request before each in its session, and spawner the one that spawned the session that it begins;
	// noRequest for none.
	before, spawner []int32
	// joined holds the last requests of the subagents that a request waits for.
	joined map[int32][]int32
	// barrier holds, for requests of sessions that ran several at a time, the last to end before them.
	barrier map[int32]int32
}

const noRequest = -1

// waits appends what a request waits for.
func (l *dynamoLinks) waits(waits []dynamoWait, r int32) []dynamoWait {
	if from := l.before[r]; from != noRequest {
		waits = append(waits, dynamoWait{from, Sequence})
	}
	if from := l.spawner[r]; from != noRequest {
		waits = append(waits, dynamoWait{from, Spawn})
	}
	for _, from := range l.joined[r] {
		waits = append(waits, dynamoWait{from, Join})
	}
	if from, ok := l.barrier[r]; ok {
		waits = append(waits, dynamoWait{from, Barrier})
	}
	return waits
}

// link finds out which requests wait for which. What the tools' records say about subagents goes before what times
// show.
func (c *dynamoCapture) link() *dynamoLinks {
	n := len(c.requests)
	l := &dynamoLinks{c: c, before: make([]int32, n), spawner: make([]int32, n), joined: map[int32][]int32{}, barrier: map[int32]int32{}}
	for i := range n {
		l.before[i], l.spawner[i] = noRequest, noRequest
	}
	calls := c.callsBySubagent()
	for i := range c.sessions {
		session := &c.sessions[i]
		if len(session.requests) == 0 {
			continue
		}
		l.linkTurns(session)
		if session.parent != noSession && len(c.sessions[session.parent].requests) > 0 {
			l.linkSubagent(session, calls[int32(i)])
		}
	}
	return l
}

// linkTurns makes each request of a session wait for the one before it.
func (l *dynamoLinks) linkTurns(session *dynamoSession) {
	c, overlaps := l.c, 0
	for i, r := range session.requests[1:] {
		before := session.requests[i]
		l.before[r] = before
		if c.requests[before].endMs > c.requests[r].startMs {
			overlaps++
		}
	}
	if overlaps == 0 {
		return
	}
	c.rows.warn("session %s: %d of its requests begin before the one before them has ended", shortened(session.name), overlaps)
	if !c.src.Rules.SharedDependencyDelay {
		l.linkBarriers(session)
	}
}

// linkBarriers makes each request of a session that ran several at a time wait for the last that ended before it began,
// if that is not the one before it.
func (l *dynamoLinks) linkBarriers(session *dynamoSession) {
	c := l.c
	byEnd := make([]int, len(session.requests)) // places in the session
	for i := range byEnd {
		byEnd[i] = i
	}
	end := func(i int) uint64 { return c.requests[session.requests[i]].endMs }
	slices.SortStableFunc(byEnd, func(a, b int) int { return cmp.Compare(end(a), end(b)) })
	last, next := noRequest, 0
	for i, r := range session.requests {
		for next < len(byEnd) && end(byEnd[next]) <= c.requests[r].startMs && byEnd[next] < i {
			last = byEnd[next]
			next++
		}
		if last != noRequest && last != i-1 {
			l.barrier[r] = session.requests[last]
		}
	}
}

// callsBySubagent returns the tool calls of parents that say which session they spawned.
func (c *dynamoCapture) callsBySubagent() map[int32][]*dynamoTool {
	calls := map[int32][]*dynamoTool{}
	for i := range c.tools {
		tool := &c.tools[i]
		if tool.child == "" {
			continue
		}
		if child, ok := c.byName[tool.child]; ok && c.sessions[child].parent == tool.session {
			calls[child] = append(calls[child], tool)
		}
	}
	return calls
}

// linkSubagent makes the first request of a session wait for the request that spawned it, and a request of its parent
// for the session's last to end.
func (l *dynamoLinks) linkSubagent(session *dynamoSession, calls []*dynamoTool) {
	c := l.c
	parent := &c.sessions[session.parent]
	first, last := session.requests[0], session.requests[0]
	for _, r := range session.requests {
		if c.requests[r].endMs >= c.requests[last].endMs {
			last = r
		}
	}
	if len(calls) > 1 {
		c.problem(calls[1].at, "tool.claude.child_session_id is %s: tool call %s names it too; one call spawns a session", shortened(session.name), c.show(calls[0].at))
		calls = nil
	}
	spawner, consumer := c.spawnerByTime(parent, first), c.consumerByTime(parent, last)
	if len(calls) == 1 {
		if named, ok := c.namedRequest(calls[0], "source_request_id", calls[0].source, session.parent); ok {
			spawner = named
		}
		// The harness knows who used the answer, if anyone did.
		consumer = noRequest
		if named, ok := c.namedRequest(calls[0], "consumer_request_id", calls[0].consumer, session.parent); ok {
			if c.src.Rules.EarlyConsumers || c.requests[named].startMs >= c.requests[last].endMs {
				consumer = named
			}
		}
	}
	l.spawner[first] = spawner
	if consumer != noRequest {
		l.joined[consumer] = append(l.joined[consumer], last)
	}
}

// spawnerByTime is the parent's last request to begin no later than a subagent's first.
func (c *dynamoCapture) spawnerByTime(parent *dynamoSession, first int32) int32 {
	after, _ := slices.BinarySearchFunc(parent.requests, c.requests[first].startMs+1, c.startsBefore)
	if after == 0 {
		return noRequest
	}
	return parent.requests[after-1]
}

// consumerByTime is the parent's first request to begin no earlier than a subagent's last has ended.
func (c *dynamoCapture) consumerByTime(parent *dynamoSession, last int32) int32 {
	at, _ := slices.BinarySearchFunc(parent.requests, c.requests[last].endMs, c.startsBefore)
	if at == len(parent.requests) {
		return noRequest
	}
	return parent.requests[at]
}

// startsBefore compares the start of a request with a time, for searches; equal ones count as later.
func (c *dynamoCapture) startsBefore(r int32, ms uint64) int {
	if c.requests[r].startMs < ms {
		return -1
	}
	return 1
}

// namedRequest finds the request that a tool's record names; it must be one of the given session.
func (c *dynamoCapture) namedRequest(tool *dynamoTool, field, id string, session int32) (int32, bool) {
	if id == "" {
		return noRequest, false
	}
	r, known := c.byID[id]
	switch {
	case !known:
		c.problem(tool.at, "tool.claude.%s is %s: tool call %s names a request that was not captured", field, shortened(id), shortened(tool.call))
		return noRequest, false
	case c.requests[r].session == noSession:
		c.problem(tool.at, "tool.claude.%s is %s: tool call %s names a request without a session", field, shortened(id), shortened(tool.call))
		return noRequest, false
	case c.requests[r].session != session:
		c.problem(tool.at, "tool.claude.%s is %s: tool call %s names a request of another session, %s", field, shortened(id), shortened(tool.call),
			shortened(c.sessions[c.requests[r].session].name))
		return noRequest, false
	}
	return r, true
}

// dynamoClock turns recorded times into floors and delays.
type dynamoClock struct {
	c       *dynamoCapture
	zeroMs  uint64
	shared  bool // one delay after all that a request waits for
	spawn   string
	join    string
	floored bool
}

func newDynamoClock(c *dynamoCapture, zeroMs uint64) dynamoClock {
	k := dynamoClock{c: c, zeroMs: zeroMs, spawn: c.spec.SpawnTrigger, join: c.spec.JoinDelay, floored: c.spec.Pacing == PacingWithFloor}
	if k.spawn == "" {
		k.spawn = SpawnDispatch
		if c.src.Rules.SpawnAfterCompletion {
			k.spawn = SpawnCompletion
		}
	}
	k.shared = c.src.Rules.SharedDependencyDelay && k.join != JoinNone
	return k
}

// request returns when a request ran and may start; those that wait for nothing start at their recorded time.
func (k *dynamoClock) request(number int32, waits []dynamoWait) GraphRequest {
	r := &k.c.requests[number]
	start := float64(r.startMs - k.zeroMs)
	added := GraphRequest{NotBeforeMs: math.Inf(-1), RecordedStartMs: start, RecordedEndMs: float64(r.endMs - k.zeroMs), Model: r.model}
	if r.session != noSession {
		if parent := k.c.sessions[r.session].parent; parent != noSession {
			added.ParentSession = k.c.sessions[parent].name
		}
	}
	if len(waits) == 0 || k.floored {
		added.NotBeforeMs = start
	}
	return added
}

// delayAfterAll is the recorded time between the end of the last request that one waits for and its start.
func (k *dynamoClock) delayAfterAll(number int32, waits []dynamoWait) float64 {
	var last uint64
	counts := false
	for _, w := range waits {
		if k.shared && !k.onDispatch(number, w) {
			last, counts = max(last, k.c.requests[w.from].endMs), true
		}
	}
	if !counts {
		return 0
	}
	return gapMs(last, k.c.requests[number].startMs)
}

// onDispatch reports whether a request counts from the start of one that it waits for.
func (k *dynamoClock) onDispatch(number int32, w dynamoWait) bool {
	r, from := &k.c.requests[number], &k.c.requests[w.from]
	switch w.relation {
	case Spawn:
		return k.spawn == SpawnDispatch || k.spawn == SpawnRecorded && r.startMs < from.endMs
	case Sequence:
		return !k.c.src.Rules.SharedDependencyDelay && r.startMs < from.endMs
	}
	return false
}

// edge is the edge to a request that waits for another, which has the given number in the builder.
func (k *dynamoClock) edge(number int32, w dynamoWait, builder int32) Edge {
	r, from := &k.c.requests[number], &k.c.requests[w.from]
	e := Edge{From: builder, Relation: w.relation}
	switch {
	case k.onDispatch(number, w):
		// Traces allow this trigger to spawns alone; a request beside the one before it in its session is one too.
		e.Trigger, e.Relation, e.DelayMs = OnDispatch, Spawn, gapMs(from.startMs, r.startMs)
	case k.shared, w.relation == Barrier, w.relation == Join && k.join == JoinNone:
	default:
		e.DelayMs = gapMs(from.endMs, r.startMs)
	}
	return e
}

// gapMs is the time from one moment to another, 0 when that was before.
func gapMs(from, to uint64) float64 {
	if to <= from {
		return 0
	}
	return float64(to - from)
}

// dynamoLowering turns captured requests into those of a workload, in order of time: blocks are named anew in that
// order, so that a workload does not depend on the order of the files.
type dynamoLowering struct {
	c      *dynamoCapture
	names  []uint32 // new name of each block, plus one so that 0 means none
	known  uint32
	hashes []uint64
}

// request is valid until the next one is made.
func (l *dynamoLowering) request(number int32) Request {
	r := &l.c.requests[number]
	l.hashes = l.expand(l.hashes[:0], r.prompt)
	session := ""
	if r.session != noSession {
		session = l.c.sessions[r.session].name
	}
	return Request{ID: r.id, Session: session, Input: int(r.input), Output: int(r.output), Hashes: l.hashes, Measured: r.measured}
}

// expand appends the names of the blocks of some runs.
func (l *dynamoLowering) expand(names []uint64, runs span) []uint64 {
	for _, run := range l.c.runs[runs.from:runs.to] {
		for block := run.Start; block < run.Start+run.Len; block++ {
			if l.names[block] == 0 {
				l.known++
				l.names[block] = l.known
			}
			names = append(names, uint64(l.names[block]-1))
		}
	}
	return names
}

// plannedOutput is the content of the output where its blocks are known: all tokens of a block are its name, as those of
// prompts are.
func (l *dynamoLowering) plannedOutput(number int32) []tokenRun {
	r := &l.c.requests[number]
	if r.answer.from == r.answer.to || r.output == 0 {
		return nil
	}
	blocks, size := l.expand(nil, r.answer), int(l.c.blockSize)
	var runs []tokenRun
	for at, end := int(r.input), int(r.input)+int(r.output); at < end; {
		block := at / size
		next := min((block+1)*size, end)
		runs = append(runs, tokenRun{token: blocks[block], count: int32(next - at)})
		at = next
	}
	return runs
}
