package workload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// The values of [AgentXPlan.Salt].
const (
	// SaltPlay gives each play of a conversation KV blocks of its own.
	SaltPlay = "play"
	// SaltUser gives each user blocks of its own, which all plays of a conversation by that user share.
	SaltUser = "user"
	// SaltNone lets all plays share blocks as the source does.
	SaltNone = "none"
)

// AgentXPlan says how conversations become load for the AgentX scenario: users who each play one conversation after
// another, the first from somewhere in its middle (spec/workloads.md §3).
type AgentXPlan struct {
	// Users is the number of conversations that run at a time.
	Users int
	// Seed draws the order of conversations and where the first ones start.
	Seed uint64
	// Shuffle draws the order; otherwise it is the source's.
	Shuffle bool
	// StartMin and StartMax bound the share of a conversation that a user's first one has behind it: of its main agent's
	// turns if ByTurn is set, otherwise of the time between its first and last request.
	StartMin, StartMax float64
	ByTurn             bool
	// StartsMs gives where the first conversations start, in ms of their own time, instead of drawing it.
	StartsMs []float64
	// PrimerTokens is the output of the requests that fill the cache with what a first conversation has behind it: the last
	// one of each agent that goes on. PrimersPerUser is how many further requests of each user do that after these: the same ones
	// again or, with PlayOn, those that come next, in this conversation and the ones after it.
	PrimerTokens, PrimersPerUser int
	PlayOn                       bool
	// GapCapMs bounds the time between an answer and the next request; +Inf for no bound.
	GapCapMs float64
	// ContextLength is how many tokens a request may have, input and output; 0 for no limit. Conversations that exceed it are
	// left out if DropLong is set, and end before it otherwise.
	ContextLength int
	DropLong      bool
	// Salt says which plays share KV blocks: SaltPlay, SaltUser or SaltNone.
	Salt string
	// Floors keeps requests from starting before their recorded time.
	Floors bool
	// WaitForSubagents lets each agent wait for all subagents that it has spawned before its next turn; otherwise it waits for
	// those that it waited for in the source.
	WaitForSubagents bool
	// Plays is the number of conversations after the first ones.
	Plays int
}

// AgentXScenario is what conversations were expanded to. Its first plays warm the cache up, then come the users' first
// conversations, then those that follow, in the order in which users take them.
type AgentXScenario struct {
	// Workload has what a simulation reads of the requests: lengths, hints, and of the graph plays, ranks, floors and edges,
	// but no names and no digest. Its KV blocks are named when plays begin, so it serves one simulation.
	Workload *Workload
	// WarmUps is the number of plays that warm up, Users that of first conversations.
	WarmUps, Users int
	// Base is the request of the conversations that each request repeats.
	Base []int32
	// Cut says that there are fewer plays than asked for, because there were too many requests.
	Cut bool

	blocks *agentXBlocks
}

// WarmUp reports whether a play warms the cache up.
func (s *AgentXScenario) WarmUp(play int32) bool { return int(play) < s.WarmUps }

// User returns whose a play is that warms the cache up; its plays follow each other, one after another.
func (s *AgentXScenario) User(play int) int { return int(s.blocks.plays[play].user) }

// Instance numbers the conversations in the order in which users take them. What warms the cache up for a play has its number.
func (s *AgentXScenario) Instance(play int) int { return int(s.blocks.plays[play].instance) }

// Begin names the KV blocks of a play that a user begins. It must be called before any of its requests is released.
func (s *AgentXScenario) Begin(play, user int) { s.blocks.begin(int32(play), int32(user)) }

// maxAgentXRequests bounds what a scenario is expanded to; beyond it nothing but mistakes lie.
const maxAgentXRequests = 2_000_000

// ErrTooManyAgentXRequests says that a scenario is longer than it can be simulated.
var ErrTooManyAgentXRequests = fmt.Errorf("the AgentX scenario has more than %d requests; take fewer users, fewer primers or a shorter window", maxAgentXRequests)

// AgentX expands conversations to the requests of a scenario. The workload must have a graph. Errors: no conversation
// fits the context length, the first conversations alone have too many requests, or ctx ends.
func AgentX(ctx context.Context, base *Workload, plan AgentXPlan) (*AgentXScenario, error) {
	x := newAgentXExpansion(base, plan)
	if len(x.plays) == 0 {
		return nil, fmt.Errorf("none of the %d plays of %s fits a context of %d tokens", base.Graph.Plays(), base.Name, plan.ContextLength)
	}
	if plan.Users > maxAgentXRequests {
		return nil, ErrTooManyAgentXRequests
	}
	herd := x.herd()
	for _, plays := range herd {
		for i := range plays {
			if len(plays[i].primers) > 0 {
				x.scenario.WarmUps++
			}
		}
	}
	x.blocks.plays = make([]plannedPlay, x.scenario.WarmUps, x.scenario.WarmUps+plan.Users+plan.Plays)
	for _, plays := range herd {
		for i := range plays {
			if x.add(&plays[i]); len(x.w.Input) > maxAgentXRequests {
				return nil, ErrTooManyAgentXRequests
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	for range plan.Plays {
		if len(x.w.Input) > maxAgentXRequests {
			x.scenario.Cut = true
			break
		}
		play := x.next(noUser)
		if x.add(&play); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return x.finish(), nil
}

// agentXExpansion collects the requests of a scenario.
type agentXExpansion struct {
	base     *Workload
	plan     AgentXPlan
	plays    []sourcePlay // in the order of the users' cursor
	scenario AgentXScenario
	w        *Workload
	blocks   *agentXBlocks
	sessions []int32      // of the base's requests
	threads  disjointSets // of them: those that go on with each other's prompts
	taken    int          // conversations that users have taken so far
	warmUps  int32        // plays that warm up so far
	rank     int32        // the next one
	number   []int32      // of the base's requests in the play at hand; -1 for those that it does not have
	chain    []int32      // the numbers of the requests that warm up for the play at hand
	waits    agentXWaits
}

// sourcePlay is a conversation.
type sourcePlay struct {
	number   int32
	requests []int32 // session by session
	place    []int32 // of each of them in the order of the source
	byRank   []int32 // their places here, in that order
	main     []int32 // those of the main agent by start
	zeroMs   float64 // the floor of its first root
}

// agentXPlay is one play of a conversation.
type agentXPlay struct {
	source   int // in agentXExpansion.plays
	instance int
	user     int     // who warms the cache up for it
	behind   []bool  // of each of its source's requests, whether it has been; nil when none has
	left     int     // how many have not
	fromMs   float64 // when the play goes on, in its own time; -Inf for at its beginning
	primers  []int32 // what fills the cache with what has been, one after another
}

// noUser is the user of a play that anybody may take.
const noUser = -1

func newAgentXExpansion(base *Workload, plan AgentXPlan) *agentXExpansion {
	x := &agentXExpansion{
		base: base, plan: plan, sessions: make([]int32, base.Requests()), threads: newDisjointSets(base.Requests()), number: make([]int32, base.Requests()),
		waits: agentXWaits{map[int32][]Edge{}, map[int32][]Edge{}},
	}
	for s := range base.Sessions() {
		for r := base.SessionStart[s]; r < base.SessionStart[s+1]; r++ {
			x.sessions[r], x.number[r] = int32(s), noRequest
		}
	}
	for s := range base.Sessions() {
		x.findThreads(base.SessionStart[s], base.SessionStart[s+1])
	}
	x.collect()
	if plan.Shuffle {
		random := rand.New(rand.NewPCG(plan.Seed, 0))
		random.Shuffle(len(x.plays), func(i, j int) { x.plays[i], x.plays[j] = x.plays[j], x.plays[i] })
	}
	x.blocks = newAgentXBlocks(x)
	x.w = &Workload{
		Name: base.Name, LeftOut: base.LeftOut, BlockSize: base.BlockSize, tables: map[tableKey]*BlockTable{}, tableErrs: map[tableKey]error{}, tableOf: x.blocks.table,
		Graph: &Graph{inStart: []uint32{0}, outStart: []uint32{0}},
	}
	return x
}

// findThreads finds the threads of a session, whose requests are from one number up to another: those that follow one another. A
// session that does not say what follows what is one thread.
func (x *agentXExpansion) findThreads(from, to int32) {
	alone := true
	for r := from; r < to; r++ {
		for _, e := range x.base.Graph.Edges(r) {
			if e.Relation == Sequence && from <= e.From && e.From < to {
				x.threads.join(r, e.From)
				alone = false
			}
		}
	}
	for r := from; r < to && alone; r++ {
		x.threads.join(from, r)
	}
}

// collect finds the conversations that fit.
func (x *agentXExpansion) collect() {
	g := x.base.Graph
	all := make([]sourcePlay, g.Plays())
	for r := range x.base.Requests() {
		p := &all[g.Play[r]]
		p.number = g.Play[r]
		p.requests = append(p.requests, int32(r))
	}
	for i := range all {
		p := &all[i]
		if !x.fit(p) {
			continue
		}
		p.byRank, p.place = make([]int32, len(p.requests)), make([]int32, len(p.requests))
		for own := range p.byRank {
			p.byRank[own] = int32(own)
		}
		slices.SortFunc(p.byRank, func(a, b int32) int { return cmp.Compare(g.Rank[p.requests[a]], g.Rank[p.requests[b]]) })
		p.zeroMs = math.Inf(1)
		for at, own := range p.byRank {
			r := p.requests[own]
			p.place[own] = int32(at)
			if len(g.Edges(r)) == 0 {
				p.zeroMs = min(p.zeroMs, max(0, g.NotBeforeMs[r]))
			}
			if x.sessions[r] == x.sessions[p.requests[p.byRank[0]]] {
				p.main = append(p.main, r)
			}
		}
		slices.SortStableFunc(p.main, func(a, b int32) int { return cmp.Compare(g.RecordedStartMs[a], g.RecordedStartMs[b]) })
		x.plays = append(x.plays, *p)
		if x.plan.WaitForSubagents {
			x.waitForSubagents(p)
		}
	}
}

// fit cuts a conversation off before its first request that is too long; false means that nothing of it is left. Without recorded
// times requests are in the order of the source.
func (x *agentXExpansion) fit(p *sourcePlay) bool {
	if x.plan.ContextLength == 0 {
		return len(p.requests) > 0
	}
	g := x.base.Graph
	at := func(r int32) float64 { return g.RecordedStartMs[r] }
	if slices.ContainsFunc(p.requests, func(r int32) bool { return math.IsNaN(at(r)) }) {
		at = func(r int32) float64 { return float64(g.Rank[r]) }
	}
	cut := math.Inf(1)
	for _, r := range p.requests {
		if int(x.base.Input[r])+int(x.base.Output[r]) > x.plan.ContextLength {
			cut = min(cut, at(r))
		}
	}
	if x.plan.DropLong && !math.IsInf(cut, 1) {
		return false
	}
	p.requests = slices.DeleteFunc(p.requests, func(r int32) bool { return at(r) >= cut })
	return len(p.requests) > 0
}

// next is the next conversation that a user takes, from its beginning.
func (x *agentXExpansion) next(user int) agentXPlay {
	n := x.taken
	x.taken++
	source := n % len(x.plays)
	return agentXPlay{source: source, instance: n, user: user, fromMs: math.Inf(-1), left: len(x.plays[source].requests)}
}

// herd is what users begin with: the plays of each that only warm the cache up, and the first one that is measured.
func (x *agentXExpansion) herd() [][]agentXPlay {
	herd := make([][]agentXPlay, x.plan.Users)
	for user := range herd {
		herd[user] = []agentXPlay{x.first(user)}
	}
	if x.plan.PlayOn {
		x.playOn(herd)
	}
	return herd
}

// first is a user's first play, which starts in the middle.
func (x *agentXExpansion) first(user int) agentXPlay {
	p, g := x.next(user), x.base.Graph
	source := &x.plays[p.source]
	random := rand.New(rand.NewPCG(x.plan.Seed, uint64(user)+1))
	share := x.plan.StartMin + random.Float64()*(x.plan.StartMax-x.plan.StartMin)
	switch {
	case user < len(x.plan.StartsMs):
		p.fromMs = x.plan.StartsMs[user]
	case x.plan.ByTurn:
		turn := min(int(share*float64(len(source.main))), len(source.main)-1)
		p.fromMs = g.RecordedStartMs[source.main[turn]]
	default:
		begin, last := math.Inf(1), math.Inf(-1)
		for _, r := range source.requests {
			begin, last = min(begin, g.RecordedStartMs[r]), max(last, g.RecordedStartMs[r])
		}
		p.fromMs = begin + share*(last-begin)
	}
	if math.IsNaN(p.fromMs) {
		p.fromMs = math.Inf(-1) // the source does not say when requests were; the play starts at its beginning
	}
	for own, r := range source.requests {
		if g.RecordedStartMs[r] < p.fromMs {
			p.leaveBehind(own)
		}
	}
	p.primers = x.primers(&p)
	return p
}

// leaveBehind lets a request have been.
func (p *agentXPlay) leaveBehind(own int) {
	if p.behind == nil {
		p.behind = make([]bool, p.left)
	}
	p.behind[own] = true
	p.left--
}

// isBehind reports whether a play has a request behind it.
func (p *agentXPlay) isBehind(own int) bool { return p.behind != nil && p.behind[own] }

// playOn lets users go on with their conversations, and take the next ones when those are over, for some requests each that only
// warm the cache up: those that wait for nothing more, round by round. Then the one whose next request is due first in the time of
// its own play goes on at once, and the others as much later as theirs are.
func (x *agentXExpansion) playOn(herd [][]agentXPlay) {
	goOn := func(user int) *agentXPlay {
		if herd[user][len(herd[user])-1].left == 0 {
			herd[user] = append(herd[user], x.next(user))
		}
		return &herd[user][len(herd[user])-1]
	}
	left := slices.Repeat([]int{x.plan.PrimersPerUser}, x.plan.Users)
	for slices.Max(left) > 0 {
		for user := range herd {
			if left[user] > 0 {
				left[user] -= x.playRound(goOn(user), left[user])
			}
		}
	}
	soonest := math.Inf(1)
	due := make([]float64, len(herd))
	for user := range herd {
		due[user] = x.due(goOn(user))
		soonest = min(soonest, due[user])
	}
	for user := range herd {
		if p := goOn(user); p.behind != nil && !math.IsNaN(soonest) {
			p.fromMs = x.zero(p) + soonest
		}
	}
}

// playRound leaves what waits for nothing more behind, as far as at most some requests, and returns how many it were.
func (x *agentXExpansion) playRound(p *agentXPlay, most int) int {
	source := &x.plays[p.source]
	begun := map[int32]bool{} // in this round
	waits := func(e Edge) bool { return x.isLeft(p, e.From) && !(e.Trigger == OnDispatch && begun[e.From]) }
	var round []int
	for more := true; more; {
		more = false
		for _, own := range source.byRank {
			r := source.requests[own]
			if len(round) == most || begun[r] || p.isBehind(int(own)) || x.waitsFor(r, waits) {
				continue
			}
			begun[r], more = true, true
			round = append(round, int(own))
			p.primers = append(p.primers, r)
		}
	}
	for _, own := range round {
		p.leaveBehind(own)
	}
	return len(round)
}

// isLeft reports whether a request is one that a play has before it.
func (x *agentXExpansion) isLeft(p *agentXPlay, r int32) bool {
	own, is := slices.BinarySearch(x.plays[p.source].requests, r)
	return is && !p.isBehind(own)
}

// waitsFor reports whether a request waits for anything of a kind.
func (x *agentXExpansion) waitsFor(r int32, kind func(Edge) bool) bool {
	return slices.ContainsFunc(x.base.Graph.Edges(r), kind) || slices.ContainsFunc(x.waits.in[r], kind)
}

// zero is when a play begins, which may be in its middle, in the time of its source.
func (x *agentXExpansion) zero(p *agentXPlay) float64 {
	if !math.IsInf(p.fromMs, -1) {
		return p.fromMs
	}
	zero := math.Inf(1)
	for _, r := range x.plays[p.source].requests {
		zero = min(zero, x.base.Graph.RecordedStartMs[r])
	}
	return zero
}

// due is how long after that the next request of a play is due that waits for nothing more.
func (x *agentXExpansion) due(p *agentXPlay) float64 {
	due := math.Inf(1)
	for own, r := range x.plays[p.source].requests {
		if !p.isBehind(own) && !x.waitsFor(r, func(e Edge) bool { return x.isLeft(p, e.From) }) {
			due = min(due, x.base.Graph.RecordedStartMs[r]-x.zero(p))
		}
	}
	return due
}

// primers returns the requests that fill the cache with what a play has behind it, one after another: of each thread that goes on the
// last one. Where none does, the play's next request takes their place in what is repeated.
func (x *agentXExpansion) primers(p *agentXPlay) []int32 {
	last := map[int32]int32{} // of each thread
	goesOn := map[int32]bool{}
	for own, r := range x.plays[p.source].requests {
		s := x.threads.of(r)
		if !p.isBehind(own) {
			goesOn[s] = true
		} else if of, ok := last[s]; !ok || x.base.Graph.RecordedStartMs[r] >= x.base.Graph.RecordedStartMs[of] {
			last[s] = r
		}
	}
	var primers []int32
	for s, r := range last {
		if goesOn[s] {
			primers = append(primers, r)
		}
	}
	slices.SortFunc(primers, func(a, b int32) int { return cmp.Compare(x.base.Graph.Rank[a], x.base.Graph.Rank[b]) })
	if x.plan.PlayOn {
		return primers
	}
	repeated := primers
	if len(primers) == 0 {
		repeated = x.soonest(p)
	}
	if len(repeated) == 0 {
		return nil
	}
	for i := range x.plan.PrimersPerUser {
		primers = append(primers, repeated[i%len(repeated)])
	}
	return primers
}

// soonest is the first request that a play has before it, in a list; the list is empty when the source does not say when it was.
func (x *agentXExpansion) soonest(p *agentXPlay) (first []int32) {
	at := math.Inf(1)
	for own, r := range x.plays[p.source].requests {
		if start := x.base.Graph.RecordedStartMs[r]; !p.isBehind(own) && start < at {
			at, first = start, []int32{r}
		}
	}
	return first
}

// add adds what a play has before it, and what warms the cache up for it. They share sessions, whose requests are
// neighbours.
func (x *agentXExpansion) add(p *agentXPlay) {
	source, first := &x.plays[p.source], len(x.w.Input)
	play := int32(len(x.blocks.plays))
	x.chain = slices.Grow(x.chain[:0], len(p.primers))[:len(p.primers)]
	warmUpRank := x.rank
	x.rank += int32(len(p.primers))
	session := int32(noRequest)
	for at, r := range source.requests {
		if s := x.sessions[r]; s != session {
			session = s
			x.beginSession()
			for i, primer := range p.primers {
				if x.sessions[primer] == s {
					x.chain[i] = x.addRequest(primer, x.warmUps, warmUpRank+int32(i), int32(x.plan.PrimerTokens))
				}
			}
		}
		if !p.isBehind(at) {
			x.number[r] = x.addRequest(r, play, x.rank+source.place[at], x.base.Output[r])
		}
	}
	x.rank += int32(len(source.requests))
	x.addEdges(p, first)
	planned := plannedPlay{source: int32(p.source), instance: int32(p.instance), user: int32(p.user), first: int32(first), end: int32(len(x.w.Input)), over: p.left == 0}
	if len(p.primers) > 0 {
		x.blocks.plays[x.warmUps] = planned
		x.warmUps++
	}
	if !planned.over {
		x.blocks.plays = append(x.blocks.plays, planned)
	}
	for _, r := range source.requests {
		x.number[r] = noRequest
	}
}

// beginSession lets the requests from here on be of another session; the one before is none if it has no request.
func (x *agentXExpansion) beginSession() {
	here := int32(len(x.w.Input))
	if last := len(x.w.SessionStart) - 1; last < 0 || x.w.SessionStart[last] < here {
		x.w.SessionStart = append(x.w.SessionStart, here)
	}
}

// addRequest repeats a request of the base's and returns its number.
func (x *agentXExpansion) addRequest(r, play, rank, output int32) int32 {
	w, g, number := x.w, x.w.Graph, int32(len(x.w.Input))
	w.Input = append(w.Input, x.base.Input[r])
	w.Output = append(w.Output, output)
	w.DelayMs = append(w.DelayMs, x.base.DelayMs[r])
	if x.base.hints != nil {
		w.hints = append(w.hints, x.base.hints[r])
	}
	g.Rank = append(g.Rank, rank)
	g.Play = append(g.Play, play)
	x.scenario.Base = append(x.scenario.Base, r)
	return number
}

// addEdges adds the floors and edges of a play whose requests, and those that warm up for it, start with a given one.
func (x *agentXExpansion) addEdges(p *agentXPlay, first int) {
	g, base := x.w.Graph, x.base.Graph
	link := 0 // of the chain that warms up; its requests are numbered session by session
	for number := first; number < len(x.w.Input); number++ {
		r := x.scenario.Base[number]
		if x.number[r] != int32(number) {
			link = slices.Index(x.chain, int32(number))
			g.NotBeforeMs = append(g.NotBeforeMs, 0)
			if link > 0 {
				g.in = append(g.in, Edge{From: x.chain[link-1]})
			}
			if link+1 < len(x.chain) {
				g.out = append(g.out, Edge{From: x.chain[link+1]})
			}
		} else {
			g.NotBeforeMs = append(g.NotBeforeMs, x.floor(p, r))
			g.in = x.appendEdges(x.appendEdges(g.in, base.Edges(r)), x.waits.in[r])
			g.out = x.appendEdges(x.appendEdges(g.out, base.Dependants(r)), x.waits.out[r])
		}
		g.inStart = append(g.inStart, uint32(len(g.in)))
		g.outStart = append(g.outStart, uint32(len(g.out)))
	}
}

// appendEdges appends those edges whose other end the play at hand has.
func (x *agentXExpansion) appendEdges(edges, of []Edge) []Edge {
	for _, e := range of {
		if e.From = x.number[e.From]; e.From == noRequest {
			continue
		}
		if e.Trigger == OnCompletion {
			e.DelayMs = min(e.DelayMs, x.plan.GapCapMs)
		}
		edges = append(edges, e)
	}
	return edges
}

// floor is when a request of a play may start, from the play's own start. Where the play goes on with something behind it, and where
// nothing is left to wait for, that is when the request did start, or when what is behind would have let it.
func (x *agentXExpansion) floor(p *agentXPlay, r int32) float64 {
	g := x.base.Graph
	due, goesOn, waits := g.RecordedStartMs[r], false, false
	for _, e := range g.Edges(r) {
		if x.number[e.From] != noRequest {
			waits = true
			continue
		}
		goesOn = goesOn || e.Relation == Sequence || e.Relation == Spawn
		if !x.plan.PlayOn { // a warm-up that plays on has been through these waits
			due = max(due, g.releasedMs(e))
		}
	}
	if math.IsInf(p.fromMs, -1) {
		if waits && !x.plan.Floors {
			return math.Inf(-1)
		}
		return g.NotBeforeMs[r] - x.plays[p.source].zeroMs
	}
	if waits && !goesOn && !x.plan.Floors {
		return math.Inf(-1)
	}
	return min(due-p.fromMs, x.plan.GapCapMs)
}

// releasedMs is when an edge let the request that waits start in the source, in ms.
func (g *Graph) releasedMs(e Edge) float64 {
	at := g.RecordedStartMs[e.From]
	if end := g.RecordedEndMs[e.From]; e.Trigger == OnCompletion && !math.IsNaN(end) {
		at = end
	}
	return exactMs(at + e.DelayMs)
}

// finish completes the scenario.
func (x *agentXExpansion) finish() *AgentXScenario {
	x.beginSession() // the number of requests ends the sessions
	x.w.Graph.PlayNames = make([]string, len(x.blocks.plays))
	x.scenario.Workload, x.scenario.Users, x.scenario.blocks = x.w, x.plan.Users, x.blocks
	x.blocks.base = x.scenario.Base
	return &x.scenario
}
