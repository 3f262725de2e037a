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
	// one of each agent that goes on. PrimersPerUser is how many of them are repeated after that.
	PrimerTokens, PrimersPerUser int
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

// Owner returns the user whom a play that warms up, or a first conversation, belongs to.
func (s *AgentXScenario) Owner(play int) int { return int(s.blocks.plays[play].instance) }

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
	herd := make([]agentXPlay, plan.Users)
	for user := range herd {
		if herd[user] = x.first(user); len(herd[user].primers) > 0 {
			x.scenario.WarmUps++
		}
	}
	x.blocks.plays = make([]plannedPlay, x.scenario.WarmUps, x.scenario.WarmUps+plan.Users+plan.Plays)
	for user := range herd {
		if x.add(&herd[user]); len(x.w.Input) > maxAgentXRequests {
			return nil, ErrTooManyAgentXRequests
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	for i := range plan.Plays {
		if len(x.w.Input) > maxAgentXRequests {
			x.scenario.Cut = true
			break
		}
		if x.add(x.instance(plan.Users + i)); ctx.Err() != nil {
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
	sessions []int32 // of the base's requests
	warmUps  int32   // plays that warm up so far
	rank     int32   // the next one
	number   []int32 // of the base's requests in the play at hand; -1 for those that it does not have
	chain    []int32 // the numbers of the requests that warm up for the play at hand
}

// sourcePlay is a conversation.
type sourcePlay struct {
	number   int32
	requests []int32 // session by session
	place    []int32 // of each of them in the order of the source
	main     []int32 // those of the main agent by start
	zeroMs   float64 // the floor of its first root
}

// agentXPlay is one play of a conversation.
type agentXPlay struct {
	source   int // in agentXExpansion.plays
	instance int
	fromMs   float64 // what started before has been; -Inf for none
	primers  []int32 // what fills the cache with that, one after another
}

func newAgentXExpansion(base *Workload, plan AgentXPlan) *agentXExpansion {
	x := &agentXExpansion{base: base, plan: plan, sessions: make([]int32, base.Requests()), number: make([]int32, base.Requests())}
	for s := range base.Sessions() {
		for r := base.SessionStart[s]; r < base.SessionStart[s+1]; r++ {
			x.sessions[r], x.number[r] = int32(s), noRequest
		}
	}
	x.collect()
	if plan.Shuffle {
		random := rand.New(rand.NewPCG(plan.Seed, 0))
		random.Shuffle(len(x.plays), func(i, j int) { x.plays[i], x.plays[j] = x.plays[j], x.plays[i] })
	}
	x.blocks = newAgentXBlocks(x)
	x.w = &Workload{
		Name: base.Name, BlockSize: base.BlockSize, tables: map[tableKey]*BlockTable{}, tableErrs: map[tableKey]error{}, tableOf: x.blocks.table,
		Graph: &Graph{inStart: []uint32{0}, outStart: []uint32{0}},
	}
	return x
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
		byRank := slices.Clone(p.requests)
		slices.SortFunc(byRank, func(a, b int32) int { return cmp.Compare(g.Rank[a], g.Rank[b]) })
		p.place = make([]int32, len(byRank))
		p.zeroMs = math.Inf(1)
		for at, r := range byRank {
			own, _ := slices.BinarySearch(p.requests, r)
			p.place[own] = int32(at)
			if len(g.Edges(r)) == 0 {
				p.zeroMs = min(p.zeroMs, max(0, g.NotBeforeMs[r]))
			}
			if x.sessions[r] == x.sessions[byRank[0]] {
				p.main = append(p.main, r)
			}
		}
		slices.SortStableFunc(p.main, func(a, b int32) int { return cmp.Compare(g.RecordedStartMs[a], g.RecordedStartMs[b]) })
		x.plays = append(x.plays, *p)
	}
}

// fit cuts a conversation off before its first request that is too long; false means that nothing of it is left.
func (x *agentXExpansion) fit(p *sourcePlay) bool {
	if x.plan.ContextLength == 0 {
		return len(p.requests) > 0
	}
	cut := math.Inf(1)
	for _, r := range p.requests {
		if int(x.base.Input[r])+int(x.base.Output[r]) > x.plan.ContextLength {
			cut = min(cut, x.base.Graph.RecordedStartMs[r])
		}
	}
	if x.plan.DropLong && !math.IsInf(cut, 1) {
		return false
	}
	p.requests = slices.DeleteFunc(p.requests, func(r int32) bool { return x.base.Graph.RecordedStartMs[r] >= cut })
	return len(p.requests) > 0
}

// instance is the n-th play that users start.
func (x *agentXExpansion) instance(n int) *agentXPlay {
	return &agentXPlay{source: n % len(x.plays), instance: n, fromMs: math.Inf(-1)}
}

// first is a user's first play, which starts in the middle.
func (x *agentXExpansion) first(user int) agentXPlay {
	p, g := *x.instance(user), x.base.Graph
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
	p.primers = x.primers(&p)
	return p
}

// behind reports whether a play has a request behind it.
func (x *agentXExpansion) behind(p *agentXPlay, r int32) bool {
	return x.base.Graph.RecordedStartMs[r] < p.fromMs
}

// primers returns the requests that fill the cache with what a play has behind it, one after another.
func (x *agentXExpansion) primers(p *agentXPlay) []int32 {
	last := map[int32]int32{} // of each session
	goesOn := map[int32]bool{}
	for _, r := range x.plays[p.source].requests {
		s := x.sessions[r]
		if !x.behind(p, r) {
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
	if own := len(primers); own > 0 {
		for i := range x.plan.PrimersPerUser {
			primers = append(primers, primers[i%own])
		}
	}
	return primers
}

// add adds what a play has before it, and what warms the cache up for it. They share sessions, whose requests are
// neighbours.
func (x *agentXExpansion) add(p *agentXPlay) {
	source, first := &x.plays[p.source], len(x.w.Input)
	play := int32(x.scenario.WarmUps + p.instance)
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
		if !x.behind(p, r) {
			x.number[r] = x.addRequest(r, play, x.rank+source.place[at], x.base.Output[r])
		}
	}
	x.rank += int32(len(source.requests))
	x.addEdges(p, first)
	if len(p.primers) > 0 {
		x.blocks.add(x.warmUps, p, first, len(x.w.Input))
		x.warmUps++
	}
	x.blocks.add(play, p, first, len(x.w.Input))
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
			g.in = x.appendEdges(g.in, base.Edges(r))
			g.out = x.appendEdges(g.out, base.Dependants(r))
		}
		g.inStart = append(g.inStart, uint32(len(g.in)))
		g.outStart = append(g.outStart, uint32(len(g.out)))
	}
}

// appendEdges appends those edges of the base's whose other end the play at hand has.
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

// floor is when a request of a play may start, from the play's own start. What waits for something behind the play is due
// when it was, as are roots.
func (x *agentXExpansion) floor(p *agentXPlay, r int32) float64 {
	g := x.base.Graph
	behind, waits := false, false
	for _, e := range g.Edges(r) {
		is := x.number[e.From] != noRequest
		waits, behind = waits || is, behind || !is
	}
	if math.IsInf(p.fromMs, -1) {
		if waits && !x.plan.Floors {
			return math.Inf(-1)
		}
		return g.NotBeforeMs[r] - x.plays[p.source].zeroMs
	}
	if waits && !behind && !x.plan.Floors {
		return math.Inf(-1)
	}
	return min(g.RecordedStartMs[r]-p.fromMs, x.plan.GapCapMs)
}

// finish completes the scenario.
func (x *agentXExpansion) finish() *AgentXScenario {
	x.beginSession() // the number of requests ends the sessions
	x.w.Graph.PlayNames = make([]string, len(x.blocks.plays))
	x.scenario.Workload, x.scenario.Users, x.scenario.blocks = x.w, x.plan.Users, x.blocks
	x.blocks.base = x.scenario.Base
	return &x.scenario
}
