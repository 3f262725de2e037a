// Package engine simulates the scheduler of one worker: what goes into its next pass, what that does to its KV
// blocks, and when its tokens come out.
//
// Read engine.go for what the runtime sees, vllm.go for one pass of the vLLM-style scheduler, pricing.go for how long
// it takes, speculative.go for passes that give a request several tokens, run.go for how many equal passes are
// simulated at once, clock.go for why that is exact, passload.go and passlog.go for what is told of passes.
package engine

import (
	"fmt"
	"math"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// State says where a request is in its life.
type State int8

// The states of a request.
const (
	// Pending requests have not arrived.
	Pending State = iota
	// Waiting requests have arrived and hold nothing; Running ones hold KV blocks; Preempted ones wait again.
	Waiting
	Running
	Preempted
	// Completed requests have all their output. Rejected ones could never fit. Failed ones had their prompt computed by a
	// prefill worker, but could never fit a decode worker. Cancelled ones were given up before they had all their output.
	Completed
	Rejected
	Failed
	Cancelled
)

// Never is the time of something that did not happen.
const Never = -1

// Request is the life of one request. Times are simulated ms, or [Never].
type Request struct {
	// Number is the request's number in the workload.
	Number int32
	// Input and Output are the lengths in tokens; Output is what the engine will produce.
	Input, Output int32
	// Tokens counts the output tokens produced so far.
	Tokens int32
	// ReusedFirst and Reused count prompt tokens found in the prefix cache, at the first and the best admission.
	ReusedFirst, Reused int32
	// Worker is the index of the worker that serves the request.
	Worker int32
	State  State
	// Truncated marks an output cut to the context length.
	Truncated bool

	// LoadedTokens counts the tokens whose KV cache was loaded from lower memory tiers, and LoadWaitMs is how long the
	// request waited for that.
	LoadedTokens int32
	LoadWaitMs   float64

	// RouteOverlap counts the prompt tokens that a router knew to be in the worker's prefix cache when it routed the request.
	RouteOverlap int32

	// RoutedMs is when the router sent the request to its worker: at its arrival unless the router kept it.
	ArrivalMs, RoutedMs, AdmittedMs, FirstTokenMs, SecondTokenMs, LastTokenMs float64

	schedule

	// StallMs is how long it was stalled until its latest token: from losing its KV blocks until the next token, waits for
	// lower memory tiers included. FirstStallMs is the part of it before the first token. AdmitLoadMs is the part of LoadWaitMs
	// before the first admission, StallLoadMs that which StallMs includes.
	StallMs, FirstStallMs    float64
	AdmitLoadMs, StallLoadMs float64
	stalledSinceMs           float64
}

// schedule is the scheduler's part of a request.
type schedule struct {
	computed int32 // tokens whose KV exists
	full     int32 // full blocks, with an identity
	blocks   int32 // full blocks held
	partial  bool  // holds the partial block after them
	drafts   int32 // speculative tokens that the next pass verifies, or this one once it is scheduled
	burst    int32 // tokens that this pass gives
	// What this pass gave the request, to be taken back when it is preempted in the same pass.
	pass                int64
	used, before, after int32
	handedOver          bool  // its prompt was computed by another worker
	stalled             bool  // it has lost its KV blocks, and got no token since
	synced              int64 // the steady pass up to which Tokens and the rest are current
	// For SGLang, blocks are the pages that it has locked in the tree, up to the node locked. The KV of other tokens is
	// its own: of those beyond, and of duplicates that were computed although their pages are in the tree.
	locked     kvcache.Node
	duplicates int32
	joined     int64 // place among all requests that have joined running, for vLLM among those that have got a reservation
	// loading counts the blocks that come, or have come, from lower memory tiers, for which the request holds room from
	// the load's turn until it is admitted; loaded says that they are there.
	loading     int32
	loaded      bool
	loadTurn    int64
	loadBegunMs float64
}

// length is the number of known tokens: prompt and output so far.
func (r *Request) length() int32 { return r.Input + r.Tokens }

// GapRecorder receives the time between successive tokens.
type GapRecorder interface {
	// RecordGaps notes that count gaps took so long.
	RecordGaps(gap perfmodel.Nanoseconds, count int64)
}

// Environment is what the workers of one simulation share.
type Environment struct {
	Config Config
	Rules  rules.Set
	Model  perfmodel.Model
	Blocks *workload.BlockTable
	// Requests are those that the workers serve, and Blocks has a row for each; engines know a request by its place
	// there.
	Requests []Request
	Gaps     GapRecorder
	// PromptsEndMs is when the last prompt of a request that asks for no output was computed, which ends the request.
	PromptsEndMs float64
	// stalled is how many requests are stalled.
	stalled int
	// Capped says that the simulation ends at a given time, so that requests that never complete do no harm.
	Capped bool
	// Role is what the workers do, RoleUnknown says that they do not know it: see [Config].WorkerType.
	Role        Role
	RoleUnknown bool
	// Index, when set, is told which blocks each worker holds, as a router sees them.
	Index *kvcache.Index
	// Tiers, when set, are the memory tiers below that of the workers' GPUs, as TierConfig says.
	Tiers      *tiers.Hierarchy
	TierConfig tiers.Config
	// Passes, when set, collects what the workers do, who are those of the pool with the given number.
	Passes *PassLog
	Pool   int
	// Kept, when set, counts the requests that the router of the workers keeps.
	Kept *Backlog
	// EveryPass turns runs of equal passes off. Outputs with known content need that, because any pass may then
	// complete a block that another request has or waits for; so do tests that compare both ways.
	EveryPass bool
}

// Role is what the workers of a pool do.
type Role int8

// The roles.
const (
	// Aggregated workers do prefill and decode; the other two one of them.
	Aggregated Role = iota
	Prefill
	Decode
)

// Place says which worker an engine is.
type Place struct {
	// Worker is its id in the pool.
	Worker int
	// Seat is its number in the index, Tier that in the lower memory tiers. Once a worker is gone another one may have them.
	Seat, Tier int
}

// unlimited stands for a limit that is not set.
const unlimited = math.MaxInt32

// StuckError reports a request that can make no progress, ever.
type StuckError struct {
	// Request is the request's number in the workload.
	Request int
	// TimeMs is the simulated time at which that became certain.
	TimeMs float64
	// Why says what it would need.
	Why string
}

// Error names the request, the time and the reason.
func (e *StuckError) Error() string {
	return fmt.Sprintf("request %d makes no progress after %.3f simulated ms: %s", e.Request, e.TimeMs, e.Why)
}

// Reason is the stable category of the error in results.
func (e *StuckError) Reason() string { return "dead_end" }

// Worker is the scheduler of one worker as the runtime drives it. What begins at a time is computed whole at that time;
// its effects on the requests' times and its signals count from its end.
type Worker interface {
	// Reset makes the worker idle with an empty cache, as another worker. Its memory is kept, and it goes on counting.
	Reset(p Place)
	// Recycle leaves the memory of the worker's cache to those that are made later, in this run or another. The worker must
	// not be used any more.
	Recycle()
	// Submit adds a request to the waiting queue.
	Submit(request int32)
	// HasWork reports whether any request waits or runs.
	HasWork() bool
	// Start begins what comes next at the given time: a pass, or a run of passes in which nothing but decoding
	// happens, none of which starts at stop or later, nor at arrival or later if the request that arrives then could
	// join. It returns when that ends. progress is false when there was nothing that the worker could do; it then waits
	// for another request. The error is a [*StuckError].
	Start(now, arrival, stop float64) (end float64, progress bool, err error)
	// Interrupt tells the worker, before it is submitted, that a request arrives at the given time, while what Start
	// began is under way. It returns when that now ends: a run is cut at the first pass end from then on, if the
	// request could join there.
	Interrupt(at float64) (end float64)
	// LastPassStart returns when the last pass of what Start began starts.
	LastPassStart() float64
	// Finish completes what Start began, at its end, and returns what it did to requests: rejections first, then in the
	// order in which tokens came out. The slice is valid until the next Start.
	Finish() []Signal
	// Sync brings the requests' counters up to date, which lag behind during runs.
	Sync()
	// Stuck explains, when the worker has requests but nothing will ever happen, which one is to blame and why. It
	// returns nil for a worker without requests.
	Stuck(now float64) error
	// Preemptions counts how often a running request lost its KV blocks since the worker was made.
	Preemptions() int64
	// Passes counts the passes since the worker was made, and those of them that lie outside of the data behind the
	// timing model.
	Passes() (all, extrapolated int64)
	// Limited says what kept the worker from admitting requests since it was made and until what it began has ended.
	Limited() *LimitedTimes
	OnlineWorker
}

// Signal is what a pass did to a request, as a router and a driver hear of it at the end of the pass.
type Signal struct {
	Request int32
	// First says that its first token came out, so that its prefill is done.
	First bool
	// Ended says that it completed or was rejected; on a prefill worker, that its prompt is computed and held as the
	// source of a transfer, or that it was rejected.
	Ended bool
}

// PrefillWorker is a worker of the prefill pool of a disaggregated deployment. It computes prompts, reports no token,
// and holds the KV blocks of a finished prompt until they are released.
type PrefillWorker interface {
	Worker
	// ReleaseSource gives up the KV blocks of a finished prompt. The worker must be idle.
	ReleaseSource(request int32)
}

// DecodeWorker is a worker of the decode pool of a disaggregated deployment. Requests reach it through a reservation
// instead of Submit, and charge no prefill time (spec/engine.md §12).
type DecodeWorker interface {
	Worker
	// Reserve takes the room for a request's prompt, sharing what is cached, or nothing. fresh is the number of tokens
	// to be transferred in timing mode destination_missing; never says that the prompt exceeds the pool.
	Reserve(request int32) (fresh int, ok, never bool)
	// Activate makes a reserved request, whose prompt has arrived, wait to be decoded. It reports whether room was given
	// back, so that another reservation may succeed. The worker must be idle.
	Activate(request int32) (gaveBack bool)
	// Cancel gives up what Reserve took for a request that will not come. The worker must be idle.
	Cancel(request int32)
	// Await tells that a request waits for room, or no longer does. While any does, only requests whose prompt is there are
	// admitted.
	Await(request int32, waits bool)
	// Arriving tells that so many prompts more are on their way from prefill workers, or fewer if it is negative.
	Arriving(prompts int, now float64)
	// CutShort ends a run with the first pass that ends at the given time or later, because something waits for the
	// worker to be idle. It returns when that is.
	CutShort(at float64) (end float64)
	// Released counts the occasions on which the worker gave up KV blocks: completions, preemptions and the like. A
	// reservation that failed is tried again when it has changed.
	Released() int64
}

// New returns an idle worker with the scheduler that the configuration names.
func New(env *Environment, p Place) Worker {
	switch env.Config.Type {
	case TypeSGLang:
		return NewSGLang(env, p)
	case TypeTensorRTLLM:
		return NewTensorRTLLM(env, p)
	}
	return NewVLLM(env, p)
}

// sequence returns the block identities of a request.
func (env *Environment) sequence(request int32) kvcache.Sequence {
	return kvcache.SequenceOf(env.Blocks, request)
}

// noteReuse notes how many tokens an admission of a request found cached.
func (env *Environment) noteReuse(r *Request, cached int32) {
	if !env.Rules.ReuseCountsOutput {
		cached = min(cached, r.Input)
	}
	r.Reused = max(r.Reused, cached)
}

// limitOr returns a limit, or unlimited when it is 0.
func limitOr(limit int) int {
	if limit == 0 {
		return unlimited
	}
	return limit
}
