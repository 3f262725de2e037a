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
	// ScheduledMs is when it is due, in ms since the run began; of those due together that with the lowest Order first, and of those
	// with the same Order that which is sent first.
	ScheduledMs float64
	Order       int32
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
	// is complete, has failed or ctx is done, whose cause is then [*GaveUp]. The error is an [*Error].
	Send(ctx context.Context, call *Call, event func(Event)) error
}

// GaveUp is why the context of requests under way is done: the run is over.
type GaveUp struct {
	// AtMs is since when, in ms since the run began.
	AtMs float64
}

// Error says so.
func (g *GaveUp) Error() string { return "the run is over" }

// Submitter is a target in this process that takes requests in the order in which they are due, and whose time stands still until
// they have come. Others get requests from a goroutine each, and so in any order those that are due together.
type Submitter interface {
	Target
	// Submit hands a request over without waiting for anything; wait then does the rest of what Send does.
	Submit(call *Call) (wait func(ctx context.Context, event func(Event)) error)
	// Settled says that everything has been submitted that follows from the end of a call and is due by now.
	Settled(call *Call)
	// Until says that nothing is due before a time, in ms since the run began, but what follows from the end of a call.
	Until(ms float64)
}

// Event is something that came back.
type Event struct {
	// At is when it was read. A simulated deployment says instead in AtMs when it was, in ms since the run began, and At is zero.
	At   time.Time
	AtMs float64
	// Tokens is how many output tokens came with it as far as the target says so, 1 for a chunk with text or reasoning and 0
	// for one without.
	Tokens int
	// Usage is set when the event says how many tokens there were.
	Usage *Usage
	// Ended says that the call ended then, well or not, so that it does not matter when that was noticed.
	Ended bool
	// Data is the event as it was read, for traces of every chunk; it is valid during the call.
	Data []byte
}

// Usage is what a target says of the tokens of a request.
type Usage struct {
	// Input, Cached and Output count tokens: of the prompt, those of it that were in the prefix cache (-1 if not said), and of
	// the answer, reasoning included.
	Input, Cached, Output int
}
