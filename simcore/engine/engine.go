// Package engine simulates the scheduler of one worker: what goes into its next pass, what that does to its KV
// blocks, and when its tokens come out.
//
// Read engine.go for what the runtime sees, vllm.go for one pass of the vLLM-style scheduler, pricing.go for how long
// it takes, speculative.go for passes that give a request several tokens, run.go for how many equal passes are
// simulated at once, clock.go for why that is exact.
package engine

import (
	"fmt"
	"math"

	"github.com/servegrid/servegrid/simcore/kvcache"
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
	// Completed requests have all their output. Rejected ones could never fit.
	Completed
	Rejected
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

	ArrivalMs, AdmittedMs, FirstTokenMs, SecondTokenMs, LastTokenMs float64

	schedule
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
	synced              int64 // the steady pass up to which Tokens and the rest are current
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
	// Capped says that the simulation ends at a given time, so that requests that never complete do no harm.
	Capped bool
	// EveryPass turns runs of equal passes off. Outputs with known content need that, because any pass may then
	// complete a block that another request has or waits for; so do tests that compare both ways.
	EveryPass bool
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

// sequence returns the block identities of a request.
func (env *Environment) sequence(request int32) kvcache.Sequence {
	i := int(request)
	return kvcache.Sequence{
		Segments: env.Blocks.Segments(i),
		Known:    int32(env.Blocks.Known(i)),
		Private:  env.Blocks.Private(i, 0),
	}
}

// limitOr returns a limit, or unlimited when it is 0.
func limitOr(limit int) int {
	if limit == 0 {
		return unlimited
	}
	return limit
}
