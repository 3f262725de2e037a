package workload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	// Private gives each play of a conversation blocks of its own.
	Private bool
	// Floors keeps requests from starting before their recorded time.
	Floors bool
	// Plays is the number of conversations after the first ones.
	Plays int
}

// AgentXScenario says what the requests of an expanded workload are. Its first plays warm the cache up, then come the
// users' first conversations, then those that follow, in the order in which users take them.
type AgentXScenario struct {
	// WarmUps is the number of plays that warm up, Users that of first conversations.
	WarmUps, Users int
	// Base is the request of the conversations that each request repeats.
	Base []int32
}

// WarmUp reports whether a play warms the cache up.
func (s *AgentXScenario) WarmUp(play int32) bool { return int(play) < s.WarmUps }

// maxAgentXRequests bounds what a scenario is expanded to; beyond it nothing but mistakes lie.
const maxAgentXRequests = 2_000_000

// AgentX expands conversations to the requests of a scenario. The workload must have a graph. Errors: no conversation
// fits the context length, the scenario has too many requests, or ctx ends.
func AgentX(ctx context.Context, base *Workload, plan AgentXPlan) (*Workload, *AgentXScenario, error) {
	x := newAgentXExpansion(base, plan)
	if len(x.plays) == 0 {
		return nil, nil, fmt.Errorf("none of the %d plays of %s fits a context of %d tokens", base.Graph.Plays(), base.Name, plan.ContextLength)
	}
	if plan.Users > maxAgentXRequests {
		return nil, nil, x.tooMany()
	}
	herd := make([]agentXPlay, plan.Users)
	for user := range herd {
		herd[user] = x.first(user)
	}
	steps := []struct {
		n  int
		do func(i int)
	}{
		{len(herd), func(user int) {
			if x.warmUp(user, &herd[user]) {
				x.scenario.WarmUps++
			}
		}},
		{len(herd), func(user int) { x.add(&herd[user]) }},
		{plan.Plays, func(i int) { x.add(x.instance(plan.Users + i)) }},
	}
	for _, step := range steps {
		for i := range step.n {
			if step.do(i); x.builder.Requests() > maxAgentXRequests {
				return nil, nil, x.tooMany()
			}
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
		}
	}
	x.scenario.Users = plan.Users
	x.builder.requests.names.hashes = x.hashes()
	w, err := x.builder.Build()
	if err != nil {
		return nil, nil, err
	}
	// The builder groups requests by session.
	number := make([]int32, len(x.scenario.Base))
	for i, at := range w.Graph.Rank {
		number[i] = x.scenario.Base[at]
	}
	x.scenario.Base = number
	return w, &x.scenario, nil
}

func (x *agentXExpansion) tooMany() error {
	return fmt.Errorf("the AgentX scenario has more than %d requests; take fewer users, fewer primers or a shorter window", maxAgentXRequests)
}

// hashes are the hash ids of the block names: the base's, or new ones if plays have blocks of their own.
func (x *agentXExpansion) hashes() []uint64 {
	if !x.plan.Private {
		return x.base.names
	}
	hashes := make([]uint64, x.names)
	for name := range hashes {
		hashes[name] = uint64(name)
	}
	return hashes
}

// agentXExpansion collects the requests of a scenario.
type agentXExpansion struct {
	base     *Workload
	plan     AgentXPlan
	plays    []sourcePlay // in the order of the users' cursor
	builder  *GraphBuilder
	scenario AgentXScenario
	sessions []int32           // of the base's requests
	planned  map[uint64]uint32 // names of the base's blocks by hash id, if it plans outputs
	names    uint32            // of blocks so far
}

// sourcePlay is a conversation.
type sourcePlay struct {
	number   int32
	requests []int32 // by rank
	main     []int32 // those of the main agent by start
	zeroMs   float64 // the floor of its first root
	low, end uint32  // its block names
}

// agentXPlay is one play of a conversation.
type agentXPlay struct {
	source   *sourcePlay
	instance int
	fromMs   float64 // what started before has been; -Inf for none
	names    uint32  // the first of its block names
}

func newAgentXExpansion(base *Workload, plan AgentXPlan) *agentXExpansion {
	x := &agentXExpansion{base: base, plan: plan, builder: NewGraphBuilder(base.Name, base.BlockSize), sessions: make([]int32, base.Requests())}
	for s := range base.Sessions() {
		for r := base.SessionStart[s]; r < base.SessionStart[s+1]; r++ {
			x.sessions[r] = int32(s)
		}
	}
	if base.planned != nil {
		x.planned = make(map[uint64]uint32, len(base.names))
		for name, hash := range base.names {
			x.planned[hash] = uint32(name)
		}
	}
	x.names = uint32(len(base.names))
	if plan.Private {
		x.names = 0
	}
	x.collect()
	if plan.Shuffle {
		random := rand.New(rand.NewPCG(plan.Seed, 0))
		random.Shuffle(len(x.plays), func(i, j int) { x.plays[i], x.plays[j] = x.plays[j], x.plays[i] })
	}
	return x
}

// collect finds the conversations that fit.
func (x *agentXExpansion) collect() {
	g := x.base.Graph
	all := make([]sourcePlay, g.Plays())
	order := make([]int32, x.base.Requests())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(g.Rank[a], g.Rank[b]) })
	for _, r := range order {
		p := &all[g.Play[r]]
		p.number = g.Play[r]
		p.requests = append(p.requests, r)
	}
	for i := range all {
		p := &all[i]
		if !x.fit(p) {
			continue
		}
		p.zeroMs, p.low = math.Inf(1), math.MaxUint32
		for _, r := range p.requests {
			if len(g.Edges(r)) == 0 {
				p.zeroMs = min(p.zeroMs, max(0, g.NotBeforeMs[r]))
			}
			for _, run := range x.base.promptRuns(int(r)) {
				p.low, p.end = min(p.low, run.Start), max(p.end, run.Start+run.Len)
			}
			if x.sessions[r] == x.sessions[p.requests[0]] {
				p.main = append(p.main, r)
			}
		}
		p.low = min(p.low, p.end)
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
	return &agentXPlay{source: &x.plays[n%len(x.plays)], instance: n, fromMs: math.Inf(-1), names: x.takeNames(&x.plays[n%len(x.plays)])}
}

// takeNames reserves block names for a play.
func (x *agentXExpansion) takeNames(p *sourcePlay) uint32 {
	if !x.plan.Private {
		return p.low
	}
	first := x.names
	x.names += p.end - p.low
	return first
}

// first is a user's first play, which starts in the middle.
func (x *agentXExpansion) first(user int) agentXPlay {
	p := *x.instance(user)
	g := x.base.Graph
	random := rand.New(rand.NewPCG(x.plan.Seed, uint64(user)+1))
	share := x.plan.StartMin + random.Float64()*(x.plan.StartMax-x.plan.StartMin)
	switch {
	case user < len(x.plan.StartsMs):
		p.fromMs = x.plan.StartsMs[user]
	case x.plan.ByTurn:
		turn := min(int(share*float64(len(p.source.main))), len(p.source.main)-1)
		p.fromMs = g.RecordedStartMs[p.source.main[turn]]
	default:
		begin, last := math.Inf(1), math.Inf(-1)
		for _, r := range p.source.requests {
			begin, last = min(begin, g.RecordedStartMs[r]), max(last, g.RecordedStartMs[r])
		}
		p.fromMs = begin + share*(last-begin)
	}
	if math.IsNaN(p.fromMs) {
		p.fromMs = math.Inf(-1) // the source does not say when requests were; the play starts at its beginning
	}
	return p
}

// behind reports whether a play has a request behind it.
func (x *agentXExpansion) behind(p *agentXPlay, r int32) bool {
	return x.base.Graph.RecordedStartMs[r] < p.fromMs
}

// warmUp adds the requests that fill the cache with what a play has behind it, one after another; false means that there
// are none.
func (x *agentXExpansion) warmUp(user int, p *agentXPlay) bool {
	last := map[int32]int32{} // of each session
	goesOn := map[int32]bool{}
	for _, r := range p.source.requests {
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
	if len(primers) == 0 {
		return false
	}
	before := int32(noRequest)
	for i := range len(primers) + x.plan.PrimersPerUser {
		r := primers[i%len(primers)]
		request := x.request(p, r, fmt.Sprintf("warm-up %d", user))
		request.ID, request.Output, request.NotBeforeMs = fmt.Sprintf("warm-up:%d:%d", user, i), x.plan.PrimerTokens, 0
		number := x.addRequest(p, r, request)
		if before != noRequest {
			x.builder.AddEdge(number, Edge{From: before})
		}
		before = number
	}
	return true
}

// request copies one of the base's for a play.
func (x *agentXExpansion) request(p *agentXPlay, r int32, play string) GraphRequest {
	g := x.base.Graph
	request := GraphRequest{
		Request: Request{ID: x.base.ID(int(r)), Session: x.sessionName(p, x.sessions[r]), Input: int(x.base.Input[r]), Output: int(x.base.Output[r]),
			DelayMs: x.base.DelayMs[r], Hints: x.base.Hints(int(r))},
		NotBeforeMs: math.Inf(-1), Play: play, RecordedStartMs: g.RecordedStartMs[r], RecordedEndMs: g.RecordedEndMs[r], ToolWaitMs: g.ToolWaitMs[r],
	}
	if parent := g.Parent[x.sessions[r]]; parent >= 0 {
		request.ParentSession = x.sessionName(p, parent)
	}
	if model := g.Model[r]; model >= 0 {
		request.Model = g.ModelNames[model]
	}
	return request
}

func (x *agentXExpansion) sessionName(p *agentXPlay, session int32) string {
	return fmt.Sprintf("%s#%d", x.base.SessionName(int(session)), p.instance)
}

// addRequest adds a request with the blocks of the base's in the play's own names.
func (x *agentXExpansion) addRequest(p *agentXPlay, r int32, request GraphRequest) int32 {
	number := x.builder.Add(request)
	b := x.builder.requests
	for _, run := range x.base.promptRuns(int(r)) {
		b.w.runs = append(b.w.runs, Segment{run.Start - p.source.low + p.names, run.Len})
	}
	b.w.runStart[len(b.w.runStart)-1] = uint32(len(b.w.runs))
	if planned := x.base.planned[r]; planned != nil && request.Output == int(x.base.Output[r]) {
		if own, ok := x.ownOutput(p, planned); ok {
			b.plan(number, own)
		}
	}
	x.scenario.Base = append(x.scenario.Base, r)
	return number
}

// ownOutput renames the blocks of an output; false means that some are none of the conversation's.
func (x *agentXExpansion) ownOutput(p *agentXPlay, planned []tokenRun) ([]tokenRun, bool) {
	own := slices.Clone(planned)
	for i := range own {
		name, ok := x.planned[own[i].token]
		if !ok || name < p.source.low || name >= p.source.end {
			return nil, false
		}
		own[i].token = uint64(name - p.source.low + p.names)
	}
	return own, true
}

// add adds what a play has before it.
func (x *agentXExpansion) add(p *agentXPlay) {
	g := x.base.Graph
	play := fmt.Sprintf("%s#%d", g.PlayNames[p.source.number], p.instance)
	numbers := map[int32]int32{}
	var ahead []int32
	for _, r := range p.source.requests {
		if !x.behind(p, r) {
			numbers[r] = int32(x.builder.Requests() + len(ahead))
			ahead = append(ahead, r)
		}
	}
	for _, r := range ahead {
		request := x.request(p, r, play)
		request.NotBeforeMs = x.floor(p, r, numbers)
		number := x.addRequest(p, r, request)
		for _, e := range g.Edges(r) {
			from, ok := numbers[e.From]
			if !ok {
				continue
			}
			e.From = from
			if e.Trigger == OnCompletion {
				e.DelayMs = min(e.DelayMs, x.plan.GapCapMs)
			}
			x.builder.AddEdge(number, e)
		}
	}
}

// floor is when a request of a play may start, from the play's own start. What waits for something behind the play is due
// when it was, as are roots.
func (x *agentXExpansion) floor(p *agentXPlay, r int32, ahead map[int32]int32) float64 {
	g := x.base.Graph
	behind, waits := false, false
	for _, e := range g.Edges(r) {
		_, is := ahead[e.From]
		waits, behind = waits || is, behind || !is
	}
	if math.IsInf(p.fromMs, -1) {
		if waits && !x.plan.Floors {
			return math.Inf(-1)
		}
		return g.NotBeforeMs[r] - p.source.zeroMs
	}
	if waits && !behind && !x.plan.Floors {
		return math.Inf(-1)
	}
	return min(g.RecordedStartMs[r]-p.fromMs, x.plan.GapCapMs)
}
