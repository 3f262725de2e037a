package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Trigger says which moment in the life of a request an edge counts from.
type Trigger uint8

const (
	// OnCompletion counts from the request's end.
	OnCompletion Trigger = iota
	// OnDispatch counts from the request's release.
	OnDispatch
)

// String returns the trigger's name in traces.
func (t Trigger) String() string { return [...]string{"completion", "dispatch"}[t] }

// Relation says why a request waits for another one.
type Relation uint8

const (
	// Sequence is the next turn of a session.
	Sequence Relation = iota
	// Spawn is the first request of a subagent.
	Spawn
	// Join is a turn that needs what a subagent has found.
	Join
	// Barrier keeps the recorded order of sessions that run side by side.
	Barrier
)

// String returns the relation's name in traces.
func (r Relation) String() string {
	return [...]string{"sequence", "spawn", "join", "replay_barrier"}[r]
}

// Edge makes a request wait for another one of the same play.
type Edge struct {
	// From is the request that is waited for.
	From int32
	// DelayMs is the least time between the trigger and the release, in ms.
	DelayMs float64
	// Trigger is the moment that DelayMs counts from.
	Trigger Trigger
	// Relation says why.
	Relation Relation
}

// Graph says when the requests of a [Workload] may start, if that is more than one turn after another. A request is
// released at the latest of its floor and of each edge's trigger plus delay, and Workload.DelayMs later
// (spec/workloads.md §1.3, §2).
//
// All slices are indexed by request unless they say otherwise, and must not be changed.
type Graph struct {
	// Rank orders requests that are released at the same time. It is the order of the source.
	Rank []int32
	// NotBeforeMs is the floor, in ms from the start of the replay; -Inf for none.
	NotBeforeMs []float64
	// Play numbers the plays, which have no edges between them, in the order in which lanes take them.
	Play []int32
	// PlayNames are the names of the plays.
	PlayNames []string
	// Model is the index in ModelNames of the model that served the request; -1 when the source does not say.
	Model []int32
	// ModelNames are the models' names, in order of appearance.
	ModelNames []string
	// Parent holds the session that each session was spawned by, as the source says or an edge does; -1 for none. It is
	// indexed by session.
	Parent []int32
	// Orphans names the sessions whose parent the source names without having any request of it, by that parent.
	Orphans map[int32]string
	// RecordedStartMs and RecordedEndMs tell when the request ran in the source, in ms from the source's own zero; NaN
	// when it does not say.
	RecordedStartMs, RecordedEndMs []float64
	// ToolWaitMs is how much of the time before the request its session's tools took in the source, in ms. It is part of the
	// delays, for people.
	ToolWaitMs []float64

	in, out           []Edge // by the request that waits; by the request that is waited for, From being the one that waits
	inStart, outStart []uint32
}

// Edges returns what a request waits for.
func (g *Graph) Edges(request int32) []Edge { return g.in[g.inStart[request]:g.inStart[request+1]] }

// Dependants returns the edges to the requests that wait for a request; From is the one that waits.
func (g *Graph) Dependants(request int32) []Edge {
	return g.out[g.outStart[request]:g.outStart[request+1]]
}

// Plays is the number of plays.
func (g *Graph) Plays() int { return len(g.PlayNames) }

// Pacing says whether requests that wait for others have floors too: PacingWithFloor, or PacingCausal if none has.
func (g *Graph) Pacing() string {
	for i, floor := range g.NotBeforeMs {
		if floor > 0 && len(g.Edges(int32(i))) > 0 {
			return PacingWithFloor
		}
	}
	return PacingCausal
}

// Edges appends what a request waits for to edges: its graph's edges or, without a graph, the turn before it.
func (w *Workload) Edges(edges []Edge, request, session int32) []Edge {
	if w.Graph != nil {
		return append(edges, w.Graph.Edges(request)...)
	}
	if request == w.SessionStart[session] {
		return edges
	}
	return append(edges, Edge{From: request - 1, DelayMs: w.DelayMs[request]})
}

// GraphRequest is one request of a graph as its source describes it. ArrivalMs of the request is not used; DelayMs is the
// time between the moment all that it waits for has come and its release.
type GraphRequest struct {
	Request
	// NotBeforeMs is its floor in ms from the start of the replay; -Inf for none.
	NotBeforeMs float64
	// Play names the play; without names a play is what edges connect.
	Play string
	// ParentSession names the session that spawned this request's session; "" for none.
	ParentSession string
	// Model names the model that served it; "" when unknown.
	Model string
	// RecordedStartMs and RecordedEndMs tell when it ran in the source, in ms; NaN when unknown.
	RecordedStartMs, RecordedEndMs float64
	// ToolWaitMs is how much of the time before it tools took, in ms; 0 when unknown.
	ToolWaitMs float64
}

// TieOrder says in which order requests go that are released at the same time.
type TieOrder uint8

const (
	// TiesAsAdded is the order of Add.
	TiesAsAdded TieOrder = iota
	// TiesByID is the order of the requests' ids.
	TiesByID
	// TiesByPlayAndID is the order of plays and, within one, of ids.
	TiesByPlayAndID
)

// GraphBuilder collects requests and what they wait for, and makes a [Workload] of them.
type GraphBuilder struct {
	// PlayOrder compares two plays by name, for lanes; nil keeps the order in which they appear.
	PlayOrder func(a, b string) int
	// Ties orders requests that are released at the same time.
	Ties TieOrder
	// PlayPrefix begins the names of plays that are named after the request that starts first.
	PlayPrefix string

	requests *Builder
	extra    []graphExtra
	edges    []builtEdge
	plays    names
	models   names
}

// graphExtra is what a request has beyond those of plain sessions.
type graphExtra struct {
	notBeforeMs, startMs, endMs float64
	toolWaitMs                  float64
	play, model                 int32
	parent                      string
}

type builtEdge struct {
	to int32
	Edge
}

// names numbers strings in order of appearance.
type names struct {
	list   []string
	number map[string]int32
}

func (n *names) of(name string) int32 {
	if number, ok := n.number[name]; ok {
		return number
	}
	if n.number == nil {
		n.number = map[string]int32{}
	}
	number := int32(len(n.list))
	n.list = append(n.list, name)
	n.number[name] = number
	return number
}

// NewGraphBuilder starts a workload whose hash ids stand for blockSize tokens each.
func NewGraphBuilder(name string, blockSize int) *GraphBuilder {
	return &GraphBuilder{requests: NewBuilder(name, blockSize)}
}

// Requests is the number of requests added so far.
func (b *GraphBuilder) Requests() int { return b.requests.Requests() }

// Add appends one request and returns its number for AddEdge. The caller has checked lengths and times; hash ids are
// copied. Either all requests name their play or
// none does.
func (b *GraphBuilder) Add(r GraphRequest) int32 {
	number := int32(b.requests.Requests())
	r.ArrivalMs = math.NaN()
	b.requests.Add(r.Request)
	extra := graphExtra{notBeforeMs: r.NotBeforeMs, startMs: r.RecordedStartMs, endMs: r.RecordedEndMs, toolWaitMs: r.ToolWaitMs, play: -1, model: -1, parent: r.ParentSession}
	if r.Play != "" {
		extra.play = b.plays.of(r.Play)
	}
	if r.Model != "" {
		extra.model = b.models.of(r.Model)
	}
	b.extra = append(b.extra, extra)
	return number
}

// AddEdge makes a request wait for the one named by e.From; both are numbers that Add returned or will return.
func (b *GraphBuilder) AddEdge(to int32, e Edge) { b.edges = append(b.edges, builtEdge{to, e}) }

// Build checks the graph and returns the workload. The builder must not be used again. Errors: no requests, an edge
// between plays, and requests that wait for each other, which are named.
func (b *GraphBuilder) Build() (*Workload, error) {
	n := b.requests.Requests()
	plays := make([]int32, n)
	for i := range plays {
		plays[i] = b.extra[i].play
	}
	if len(b.plays.list) == 0 {
		b.connect(plays)
	}
	b.orderPlays(plays)
	for _, e := range b.edges {
		if plays[e.to] != plays[e.From] {
			return nil, fmt.Errorf("request %s of play %s waits for request %s of play %s; edges stay within a play",
				b.id(e.to), b.plays.list[plays[e.to]], b.id(e.From), b.plays.list[plays[e.From]])
		}
	}
	if err := b.checkCycles(); err != nil {
		return nil, err
	}
	return b.requests.build(func(w *Workload, order []int32) { w.Graph = b.graph(w, order, plays) })
}

// id names a request for people.
func (b *GraphBuilder) id(number int32) string {
	if ids := b.requests.w.ids; int(number) < len(ids) && ids[number] != "" {
		return ids[number]
	}
	return fmt.Sprintf("#%d", number+1)
}

// connect numbers the plays that edges connect, and names each after a request.
func (b *GraphBuilder) connect(plays []int32) {
	connected := newDisjointSets(len(plays))
	for _, e := range b.edges {
		connected.join(e.to, e.From)
	}
	var firsts []int32
	for i := range plays {
		if r := connected.of(int32(i)); r == int32(i) { // the first request of a play names it
			plays[i] = int32(len(firsts))
			firsts = append(firsts, r)
		} else {
			plays[i] = plays[r]
		}
	}
	b.chooseFirsts(plays, firsts)
	for _, first := range firsts {
		b.plays.list = append(b.plays.list, b.PlayPrefix+b.id(first))
	}
}

// chooseFirsts makes of the first request of each play the one that starts first: of those that wait for nothing the one with
// the least floor and, among equals, the least id.
func (b *GraphBuilder) chooseFirsts(plays, firsts []int32) {
	waits := make([]bool, len(plays))
	for _, e := range b.edges {
		waits[e.to] = true
	}
	sooner := func(x, y int32) bool {
		return cmp.Or(cmp.Compare(b.extra[x].notBeforeMs, b.extra[y].notBeforeMs), strings.Compare(b.id(x), b.id(y))) < 0
	}
	for i, play := range plays {
		if first := firsts[play]; !waits[i] && (waits[first] || sooner(int32(i), first)) {
			firsts[play] = int32(i)
		}
	}
}

// orderPlays numbers the plays in the order that PlayOrder asks for.
func (b *GraphBuilder) orderPlays(plays []int32) {
	if b.PlayOrder == nil {
		return
	}
	order := make([]int32, len(b.plays.list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(x, y int32) int { return b.PlayOrder(b.plays.list[x], b.plays.list[y]) })
	sorted, number := make([]string, len(order)), make([]int32, len(order))
	for at, play := range order {
		sorted[at], number[play] = b.plays.list[play], int32(at)
	}
	b.plays.list = sorted
	for i := range plays {
		plays[i] = number[plays[i]]
	}
}

// maxBlocked is how many requests the error about a cycle names.
const maxBlocked = 10

// cycleError says that requests wait for each other.
type cycleError struct {
	text string
	// loops are builder's numbers of requests each of which waits for the next, and the last for the first: at most
	// maxTraceProblems, and at least one.
	loops [][]int32
}

func (e *cycleError) Error() string { return e.text }

// checkCycles reports requests that can never be released.
func (b *GraphBuilder) checkCycles() error {
	n := len(b.extra)
	start, edges := group(n, b.edges, func(e builtEdge) int32 { return e.From })
	waits := make([]int32, n)
	for _, e := range b.edges {
		waits[e.to]++
	}
	ready := make([]int32, 0, n)
	for i := range waits {
		if waits[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	for at := 0; at < len(ready); at++ {
		for _, e := range edges[start[ready[at]]:start[ready[at]+1]] {
			if waits[e.to]--; waits[e.to] == 0 {
				ready = append(ready, e.to)
			}
		}
	}
	if len(ready) == n {
		return nil
	}
	var blocked []string
	for i := range waits {
		if waits[i] > 0 {
			if len(blocked) == maxBlocked {
				blocked = append(blocked, "…")
				break
			}
			blocked = append(blocked, b.id(int32(i)))
		}
	}
	return &cycleError{
		text:  fmt.Sprintf("cycle detected among %d requests, which wait for each other: %s", n-len(ready), strings.Join(blocked, ", ")),
		loops: b.loops(waits),
	}
}

// loops finds cycles among the requests that still wait for others: each waits for one that does so too, so following that
// comes to a request that was there before.
func (b *GraphBuilder) loops(waits []int32) (loops [][]int32) {
	waitsFor := make([]int32, len(waits)) // one that each request waits for and that waits itself
	for _, e := range b.edges {
		if waits[e.to] > 0 && waits[e.From] > 0 {
			waitsFor[e.to] = e.From
		}
	}
	seen := make([]int32, len(waits)) // which walk came by, from 1
	for i := range waits {
		if waits[i] == 0 || seen[i] != 0 {
			continue
		}
		at, walk := int32(i), int32(i)+1
		for ; seen[at] == 0; at = waitsFor[at] {
			seen[at] = walk
		}
		if seen[at] != walk {
			continue // it leads to a loop that is known
		}
		loop := []int32{at}
		for next := waitsFor[at]; next != at; next = waitsFor[next] {
			loop = append(loop, next)
		}
		if loops = append(loops, loop); len(loops) == maxTraceProblems {
			break
		}
	}
	return loops
}

// noteCycles notes the cycles that an error is about, with the place of each request; field is what names a request there.
// Other errors are returned.
func (b *GraphBuilder) noteCycles(found *findings, err error, field string, place func(number int32) (path string, line int)) error {
	var cycle *cycleError
	if !errors.As(err, &cycle) {
		return err
	}
	found.fatal = true
	for _, loop := range cycle.loops {
		names := make([]string, min(len(loop), maxBlocked))
		for i := range names {
			path, line := place(loop[i])
			names[i] = fmt.Sprintf("%s (%s:%d)", b.id(loop[i]), path, line)
		}
		rest := append(slices.Clone(names[1:]), names[0])
		if len(names) < len(loop) {
			rest[len(rest)-1] = "…"
		}
		path, line := place(loop[0])
		found.add(path, line, &fieldError{field, shortened(b.id(loop[0])),
			fmt.Sprintf("%s: %s waits for %s", cycle.text, names[0], strings.Join(rest, ", which waits for "))})
	}
	return found.err()
}

// graph lowers what was collected; order holds the builder's number of each request of w.
func (b *GraphBuilder) graph(w *Workload, order, plays []int32) *Graph {
	n := len(order)
	g := &Graph{
		Rank: order, NotBeforeMs: make([]float64, n), Play: make([]int32, n), PlayNames: b.plays.list,
		Model: make([]int32, n), ModelNames: b.models.list,
		RecordedStartMs: make([]float64, n), RecordedEndMs: make([]float64, n), ToolWaitMs: make([]float64, n), Parent: make([]int32, w.Sessions()),
	}
	if b.Ties != TiesAsAdded {
		g.Rank = b.ranksByID(order, plays)
	}
	number := make([]int32, n)
	for i, old := range order {
		number[old] = int32(i)
		x := &b.extra[old]
		g.NotBeforeMs[i], g.Play[i], g.Model[i] = x.notBeforeMs, plays[old], x.model
		g.RecordedStartMs[i], g.RecordedEndMs[i], g.ToolWaitMs[i] = x.startMs, x.endMs, x.toolWaitMs
	}
	for i := range b.edges {
		e := &b.edges[i]
		e.to, e.From = number[e.to], number[e.From]
	}
	g.inStart, g.in = edgesBy(n, b.edges, func(e builtEdge) (int32, Edge) { return e.to, e.Edge })
	for s := range g.Parent {
		g.Parent[s] = -1
		first := w.SessionStart[s]
		named := b.extra[order[first]].parent
		if parent, ok := b.requests.bySession[named]; ok {
			g.Parent[s] = parent
			continue
		}
		if named != "" {
			if g.Orphans == nil {
				g.Orphans = map[int32]string{}
			}
			g.Orphans[int32(s)] = named
		}
		for _, e := range g.Edges(first) {
			if from := w.sessionOf(e.From); e.Relation == Spawn && from != int32(s) {
				g.Parent[s] = from
				break
			}
		}
	}
	g.outStart, g.out = edgesBy(n, b.edges, func(e builtEdge) (int32, Edge) {
		from := e.From
		e.From = e.to
		return from, e.Edge
	})
	return g
}

// sessionOf finds the session of a request.
func (w *Workload) sessionOf(request int32) int32 {
	at, exact := slices.BinarySearch(w.SessionStart, request)
	if !exact {
		at--
	}
	return int32(at)
}

// ranksByID ranks requests by their ids, of one play after another where Ties says so.
func (b *GraphBuilder) ranksByID(order, plays []int32) []int32 {
	sorted := make([]int32, len(order))
	for i := range sorted {
		sorted[i] = int32(i)
	}
	slices.SortStableFunc(sorted, func(x, y int32) int {
		x, y = order[x], order[y]
		if b.Ties == TiesByPlayAndID && plays[x] != plays[y] {
			return cmp.Compare(plays[x], plays[y])
		}
		return strings.Compare(b.id(x), b.id(y))
	})
	ranks := make([]int32, len(order))
	for rank, request := range sorted {
		ranks[request] = int32(rank)
	}
	return ranks
}

// edgesBy groups edges by a request; among those of one, they are in order of the other.
func edgesBy(n int, edges []builtEdge, of func(builtEdge) (int32, Edge)) ([]uint32, []Edge) {
	start, grouped := group(n, edges, func(e builtEdge) int32 { at, _ := of(e); return at })
	out := make([]Edge, len(grouped))
	for i, e := range grouped {
		_, out[i] = of(e)
	}
	for i := range n {
		slices.SortStableFunc(out[start[i]:start[i+1]], func(a, b Edge) int { return cmp.Compare(a.From, b.From) })
	}
	return start, out
}

// group sorts edges by a request; those of request i are from start[i] to start[i+1].
func group(n int, edges []builtEdge, by func(builtEdge) int32) (start []uint32, grouped []builtEdge) {
	start = make([]uint32, n+1)
	for _, e := range edges {
		start[by(e)+1]++
	}
	for i := range n {
		start[i+1] += start[i]
	}
	next := slices.Clone(start)
	grouped = make([]builtEdge, len(edges))
	for _, e := range edges {
		at := by(e)
		grouped[next[at]] = e
		next[at]++
	}
	return start, grouped
}
