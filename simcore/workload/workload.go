// Package workload holds the requests that a simulation replays: where they come from (trace files, synthetic
// generators, presets), and the immutable, flat form that all simulations of a sweep share.
//
// Read workload.go for the form, blocks.go for how prompts become KV blocks, spec.go for how users name a
// workload, then one file a source.
package workload

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// Limits on one request; beyond them sums overflow long before any model could serve it.
const (
	// MaxTokens bounds a request's input and output length, in tokens.
	MaxTokens = 1 << 28
	// maxTimeMs bounds arrival times and delays; about 30,000 years.
	maxTimeMs = 1e15
)

// Request is one request as a source describes it, before it becomes part of a [Workload].
type Request struct {
	// ID is the source's name for the request; it may be empty.
	ID string
	// Session groups requests into turns that run one after another; an empty session stands alone.
	Session string
	// ArrivalMs is when the session starts, for its first turn; NaN when the source gives no time.
	ArrivalMs float64
	// DelayMs is the time between the completion of the previous turn and this one; 0 for a first turn.
	DelayMs float64
	// Input and Output are lengths in tokens.
	Input, Output int
	// Hashes identify the prompt's content, one id per trace block; equal leading ids mean equal leading tokens.
	// Without ids the prompt shares nothing with any other.
	Hashes []uint64
	// PlannedOutput holds the exact output tokens when the source states them; otherwise outputs are unique.
	PlannedOutput []uint32
	// Hints are what the request tells the router.
	Hints Hints
	// Measured is how it was served; nil when the source does not say.
	Measured *Measured
}

// tokenRuns writes tokens as runs of equal ones.
func tokenRuns(tokens []uint32) []tokenRun {
	runs := []tokenRun{}
	for _, token := range tokens {
		if last := len(runs) - 1; last >= 0 && runs[last].token == uint64(token) {
			runs[last].count++
		} else {
			runs = append(runs, tokenRun{token: uint64(token), count: 1})
		}
	}
	return runs
}

// Hints are what a request tells the queue of a router (spec/engine.md §11.4). Engines do not see them.
type Hints struct {
	// Priority moves the request forward, StrictPriority ahead of all requests that have less.
	Priority       int32
	StrictPriority uint32
	// PolicyClass names the class, or the family of classes, of a router with several; empty is the default.
	PolicyClass string
}

// Workload is an immutable set of requests in sessions, safe for concurrent use. Requests are numbered by
// session in order of the sessions' first appearance, then by turn.
type Workload struct {
	// Name says what the workload is, for people.
	Name string
	// Format is the trace format that it was read from; "" when it was generated.
	Format string
	// Detected says how the format shows in the trace; "" when the spec named it.
	Detected string
	// Warnings say what about its source people should know: what was left out or taken for something.
	Warnings []string
	// LeftOut counts the damaged records and files of the source that salvaging left out; 0 when it was whole.
	LeftOut int
	// BlockSize is the number of tokens that one hash id stands for; 0 when there are none.
	BlockSize int
	// Input and Output are each request's lengths in tokens.
	Input, Output []int32
	// ArrivalMs is each first turn's start in ms, unshifted, as the source states it; NaN when it states none.
	// Later turns hold NaN.
	ArrivalMs []float64
	// DelayMs is each later turn's wait after the completion of the turn before, in ms.
	DelayMs []float64
	// SessionStart holds the first request of each session, then the number of requests.
	SessionStart []int32
	// Graph says what requests wait for; nil when the turns of each session run one after another and that is all.
	Graph *Graph

	ids          []string
	sessionNames []string
	names        []uint64 // the hash id of each block name; see hashNames
	runStart     []uint32
	runs         []Segment // of block names, request by request
	planned      map[int32][]tokenRun
	hints        []Hints      // nil when no request has any
	measured     []*Measured  // nil when the source does not say
	transcripts  *transcripts // instead of hashes and planned, when turns go on where the one before ended

	chains    func() *chainIndex // made on first use
	tableMu   sync.Mutex
	tables    map[tableKey]*BlockTable
	tableErrs map[tableKey]error
	tableOf   func(blockSize int, sharing bool) (*BlockTable, error) // makes the tables, unless they follow from the prompts
	digest    string
}

// Requests is the number of requests.
func (w *Workload) Requests() int { return len(w.Input) }

// Sessions is the number of sessions.
func (w *Workload) Sessions() int { return len(w.SessionStart) - 1 }

// SingleTurn reports whether every session has exactly one turn.
func (w *Workload) SingleTurn() bool { return w.Sessions() == w.Requests() }

// ID returns the source's name of a request; "" when it has none.
func (w *Workload) ID(request int) string {
	if w.ids == nil {
		return ""
	}
	return w.ids[request]
}

// RequestName is the name of a request in its source, or a UUID made from its number. IDs of weka are those of a conversation, and
// come after its name.
func (w *Workload) RequestName(request int) string {
	id := w.ID(request)
	switch {
	case id == "":
		return fmt.Sprintf("00000000-0000-8000-8000-%012x", request)
	case w.Format == FormatWeka:
		return w.Graph.PlayNames[w.Graph.Play[request]] + "/" + id
	}
	return id
}

// SessionNamed reports whether the source names a session.
func (w *Workload) SessionNamed(session int) bool {
	return session < len(w.sessionNames) && w.sessionNames[session] != ""
}

// SessionName returns the source's name of a session, or "request_<n>" for the n-th session without one.
func (w *Workload) SessionName(session int) string {
	if w.SessionNamed(session) {
		return w.sessionNames[session]
	}
	return fmt.Sprintf("request_%d", session+1)
}

// Hashes returns the hash ids of a request's prompt in a new slice.
func (w *Workload) Hashes(request int) []uint64 {
	return w.appendHashes(make([]uint64, 0, w.HashCount(request)), request)
}

// HashCount is the number of hash ids of a request's prompt.
func (w *Workload) HashCount(request int) int { return runBlocks(w.promptRuns(request)) }

// HashEntries is what the memory of all hash ids grows with: different ones, and runs of those that came one after another
// before.
func (w *Workload) HashEntries() int { return len(w.names) + len(w.runs) }

// promptRuns returns the block names of a request's prompt.
func (w *Workload) promptRuns(request int) []Segment {
	return w.runs[w.runStart[request]:w.runStart[request+1]]
}

func (w *Workload) appendHashes(hashes []uint64, request int) []uint64 {
	for _, run := range w.promptRuns(request) {
		hashes = append(hashes, w.names[run.Start:run.Start+run.Len]...)
	}
	return hashes
}

// PlannedOutput returns the exact output tokens of a request in a new slice; nil when its source does not state them. A
// token names the same content as the hash id of its value.
func (w *Workload) PlannedOutput(request int) []uint32 {
	planned, ok := w.planned[int32(request)]
	if !ok {
		return nil
	}
	tokens := make([]uint32, 0, w.Output[request])
	for _, run := range planned {
		for range run.count {
			tokens = append(tokens, uint32(run.token))
		}
	}
	return tokens
}

// Hints returns what a request tells the router.
func (w *Workload) Hints(request int) Hints {
	if w.hints == nil {
		return Hints{}
	}
	return w.hints[request]
}

// HasHints reports whether any request tells the router anything.
func (w *Workload) HasHints() bool { return w.hints != nil }

// HasArrivals reports whether every session states when it starts, or follows from another. If not, the first session
// that does not is returned.
func (w *Workload) HasArrivals() (bool, int) {
	if w.Graph != nil {
		return true, 0
	}
	for s, first := range w.SessionStart[:w.Sessions()] {
		if math.IsNaN(w.ArrivalMs[first]) {
			return false, s
		}
	}
	return true, 0
}

// Digest identifies the work: the hex SHA-256 of block size, sessions, times, lengths, prompt identities, hints and what
// requests wait for.
// Names of requests and sessions do not count, but for the order in which requests of a graph are released at the same time.
func (w *Workload) Digest() string { return w.digest }

// Builder collects requests in the order of their source and groups them into a [Workload].
type Builder struct {
	w         Workload
	names     hashNames
	bySession map[string]int32
	sessionOf []int32
	turns     []int32
	multiTurn bool
}

// NewBuilder starts a workload whose hash ids stand for blockSize tokens each.
func NewBuilder(name string, blockSize int) *Builder {
	return &Builder{
		w:         Workload{Name: name, BlockSize: blockSize, runStart: []uint32{0}},
		bySession: map[string]int32{},
	}
}

// Grow reserves room for n more requests.
func (b *Builder) Grow(n int) {
	b.w.Input = growTo(b.w.Input, n)
	b.w.Output = growTo(b.w.Output, n)
	b.w.ArrivalMs = growTo(b.w.ArrivalMs, n)
	b.w.DelayMs = growTo(b.w.DelayMs, n)
	b.w.runStart = growTo(b.w.runStart, n)
	b.w.runs = growTo(b.w.runs, 3*n)
	b.sessionOf = growTo(b.sessionOf, n)
	b.turns = growTo(b.turns, n)
}

func growTo[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(make([]T, 0, len(s)+n), s...)
}

// Add appends one request. The caller has checked lengths and times; hash ids are copied.
func (b *Builder) Add(r Request) {
	session, known := int32(len(b.turns)), false
	if r.Session != "" {
		if of, ok := b.bySession[r.Session]; ok {
			session, known = of, true
		} else {
			b.bySession[r.Session] = session
			for len(b.w.sessionNames) < int(session) {
				b.w.sessionNames = append(b.w.sessionNames, "")
			}
			b.w.sessionNames = append(b.w.sessionNames, r.Session)
		}
	}
	b.addTurn(r, session, known)
}

// addTurn appends a request to a session by number; the session is new unless known.
func (b *Builder) addTurn(r Request, session int32, known bool) {
	w, n := &b.w, int32(len(b.w.Input))
	if known {
		b.turns[session]++
		b.multiTurn = true
	} else {
		b.turns = append(b.turns, 1)
	}
	b.sessionOf = append(b.sessionOf, session)
	w.Input = append(w.Input, int32(r.Input))
	w.Output = append(w.Output, int32(r.Output))
	w.ArrivalMs = append(w.ArrivalMs, r.ArrivalMs)
	w.DelayMs = append(w.DelayMs, r.DelayMs)
	w.runs = b.names.appendRuns(w.runs, r.Hashes)
	w.runStart = append(w.runStart, uint32(len(w.runs)))
	if r.ID != "" || w.ids != nil {
		for int32(len(w.ids)) < n {
			w.ids = append(w.ids, "")
		}
		w.ids = append(w.ids, r.ID)
	}
	if r.Hints != (Hints{}) || w.hints != nil {
		for int32(len(w.hints)) < n {
			w.hints = append(w.hints, Hints{})
		}
		w.hints = append(w.hints, r.Hints)
	}
	if r.Measured != nil || w.measured != nil {
		for int32(len(w.measured)) < n {
			w.measured = append(w.measured, nil)
		}
		w.measured = append(w.measured, r.Measured)
	}
	if r.PlannedOutput != nil {
		b.plan(n, tokenRuns(r.PlannedOutput))
	}
}

// plan states the output of a request that was added.
func (b *Builder) plan(request int32, output []tokenRun) {
	if b.w.planned == nil {
		b.w.planned = map[int32][]tokenRun{}
	}
	b.w.planned[request] = output
}

// Requests is the number of requests added so far.
func (b *Builder) Requests() int { return len(b.w.Input) }

// SessionKnown reports whether the session already has a turn.
func (b *Builder) SessionKnown(session string) bool {
	_, ok := b.bySession[session]
	return ok
}

// Build groups the turns of each session together and returns the workload. The builder must not be used again.
// A workload without requests, or with more hash ids than 32 bits can count, is an error.
func (b *Builder) Build() (*Workload, error) { return b.build(nil) }

// build makes the workload; finish, unless nil, completes it before its digest is taken and gets the number in the
// builder of each of its requests.
func (b *Builder) build(finish func(w *Workload, order []int32)) (*Workload, error) {
	n := len(b.w.Input)
	if n == 0 {
		return nil, fmt.Errorf("%s did not contain any requests", b.w.Name)
	}
	if uint64(max(len(b.w.runs), len(b.names.hashes))) >= math.MaxUint32 {
		return nil, fmt.Errorf("%s has too many hash ids: %d different ones in %d runs; at most %d are supported", b.w.Name, len(b.names.hashes), len(b.w.runs), uint32(math.MaxUint32))
	}
	src := &b.w
	w := &Workload{Name: src.Name, BlockSize: src.BlockSize, sessionNames: src.sessionNames, names: b.names.hashes, tables: map[tableKey]*BlockTable{}, tableErrs: map[tableKey]error{}}
	w.SessionStart = make([]int32, len(b.turns)+1)
	for s, t := range b.turns {
		w.SessionStart[s+1] = w.SessionStart[s] + t
	}
	if !b.multiTurn {
		w.Input, w.Output, w.ArrivalMs, w.DelayMs = src.Input, src.Output, src.ArrivalMs, src.DelayMs
		w.ids, w.runStart, w.runs, w.planned, w.hints = src.ids, src.runStart, src.runs, src.planned, src.hints
		w.measured = src.measured
	}
	if b.multiTurn || finish != nil {
		order := b.order(w)
		if b.multiTurn {
			b.regroup(w, order)
		}
		if finish != nil {
			finish(w, order)
		}
	}
	w.chains = sync.OnceValue(func() *chainIndex { return newChainIndex(w) })
	w.digest = w.computeDigest()
	return w, nil
}

// order returns the builder's number of each request of w, in which the turns of a session are neighbours.
func (b *Builder) order(w *Workload) []int32 {
	order := make([]int32, len(b.sessionOf))
	next := slices.Clone(w.SessionStart)
	for old, s := range b.sessionOf {
		order[next[s]] = int32(old)
		next[s]++
	}
	return order
}

// regroup copies the requests into w in the given order.
func (b *Builder) regroup(w *Workload, order []int32) {
	src, n := &b.w, len(b.w.Input)
	w.Input, w.Output = make([]int32, n), make([]int32, n)
	w.ArrivalMs, w.DelayMs = make([]float64, n), make([]float64, n)
	w.runStart = make([]uint32, 1, n+1)
	w.runs = make([]Segment, 0, len(src.runs))
	if src.ids != nil {
		w.ids = make([]string, n)
	}
	if src.hints != nil {
		w.hints = make([]Hints, n)
	}
	if src.measured != nil {
		w.measured = make([]*Measured, n)
	}
	if src.planned != nil {
		w.planned = make(map[int32][]tokenRun, len(src.planned))
	}
	for i, old := range order {
		w.Input[i], w.Output[i] = src.Input[old], src.Output[old]
		w.ArrivalMs[i], w.DelayMs[i] = src.ArrivalMs[old], src.DelayMs[old]
		w.runs = append(w.runs, src.promptRuns(int(old))...)
		w.runStart = append(w.runStart, uint32(len(w.runs)))
		if src.ids != nil {
			w.ids[i] = src.ids[old]
		}
		if src.hints != nil {
			w.hints[i] = src.hints[old]
		}
		if src.measured != nil {
			w.measured[i] = src.measured[old]
		}
		if p, ok := src.planned[old]; ok {
			w.planned[int32(i)] = p
		}
	}
}
