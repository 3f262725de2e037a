package live

import (
	"context"
	"time"
)

// Call is one request to an endpoint.
type Call struct {
	// Number is unique in a run: that of the release. Request is the number of the request in the workload.
	Number  int32
	Request int
	// ID is unique in a run, and goes along as X-Request-ID.
	ID string
	// Session and ParentSession name the session of the request and the one that spawned it; "" where there is none.
	Session, ParentSession string
	// Turn is the number of the request in its session, from 0.
	Turn int
	// Input and Output are the lengths in tokens that the workload states.
	Input, Output int
	// ScheduledMs is when it is due, in ms since the run began.
	ScheduledMs float64
	// Prompt is what the request says, made only when it is sent. It may be called again, from any goroutine, and says the same.
	Prompt func() []Message
	// Blocks are the KV blocks of the prompt and of the answer where it is known, as simcore.OnlineRequest has them, for targets
	// in this process that want no text.
	Blocks []uint64
}

// Message is one message of a conversation.
type Message struct {
	// Role is system, user, assistant or tool.
	Role string
	// Text is its content.
	Text string
}

// Target is what requests are sent to: an endpoint behind HTTP, or a simulated deployment in this process.
type Target interface {
	// Send sends a request and calls event for everything that comes back, in order and from one goroutine, until the answer
	// is complete, has failed or ctx is done. The error is an [*Error].
	Send(ctx context.Context, call *Call, event func(Event)) error
}

// Submitter is a target that takes requests in the order in which they are due. Others get them from a goroutine each, and so in
// any order those that are due together.
type Submitter interface {
	Target
	// Submit hands a request over without waiting for anything; wait then does the rest of what Send does.
	Submit(call *Call) (wait func(ctx context.Context, event func(Event)) error)
}

// Event is something that came back.
type Event struct {
	// At is when it was read.
	At time.Time
	// Tokens is how many output tokens came with it as far as the target says so, 1 for a chunk with text or reasoning and 0
	// for one without.
	Tokens int
	// Usage is set when the event says how many tokens there were.
	Usage *Usage
	// Data is the event as it was read, for traces of every chunk; it is valid during the call.
	Data []byte
}

// Usage is what a target says of the tokens of a request.
type Usage struct {
	// Input, Cached and Output count tokens: of the prompt, those of it that were in the prefix cache (-1 if not said), and of
	// the answer, reasoning included.
	Input, Cached, Output int
}
