package live

import "fmt"

// Record is what is known of one request of a live run. Times are ms since the run began, or [Never].
type Record struct {
	// Call is what was asked.
	Call *Call
	// Phase is [PhaseWarmUp] or [PhaseProfile] in the AgentX scenario, and "" otherwise.
	Phase string
	// ScheduledMs is when the request was to be sent, SentMs when it was.
	ScheduledMs, SentMs float64
	// FirstTokenMs, SecondTokenMs and LastTokenMs are when tokens came, EndMs when the answer was complete or had failed.
	FirstTokenMs, SecondTokenMs, LastTokenMs, EndMs float64
	// Chunks counts the chunks with text or reasoning.
	Chunks int
	// OutputTokens counts the tokens of the answer: what the target says, or else its chunks.
	OutputTokens int
	// InputTokens and CachedTokens are what the target says of the prompt; -1 if it does not.
	InputTokens, CachedTokens int
	// Cancelled says that the run ended the request, which is no error.
	Cancelled bool
	// Err is what went wrong; nil if nothing did.
	Err *Error
}

// The phases of the AgentX scenario.
const (
	PhaseWarmUp  = "warm_up"
	PhaseProfile = "profile"
)

// Never is the time of something that did not happen.
const Never = -1

// ErrorKind is a stable name of what can go wrong with a request.
type ErrorKind string

// What can go wrong with a request.
const (
	// ErrConnect: no connection was made. ErrTLS: the certificate was refused.
	ErrConnect ErrorKind = "connect"
	ErrTLS     ErrorKind = "tls"
	// ErrTimeout: nothing came for longer than allowed.
	ErrTimeout ErrorKind = "timeout"
	// ErrUnauthorized, ErrOverloaded, ErrClientStatus and ErrServerStatus are the HTTP statuses 401 and 403, 429 and 503, other
	// 4xx and other 5xx.
	ErrUnauthorized ErrorKind = "unauthorized"
	ErrOverloaded   ErrorKind = "overloaded"
	ErrClientStatus ErrorKind = "client_status"
	ErrServerStatus ErrorKind = "server_status"
	// ErrDropped: the connection ended before the answer was complete.
	ErrDropped ErrorKind = "dropped"
	// ErrMalformed: what came is no valid stream of events.
	ErrMalformed ErrorKind = "malformed"
	// ErrServer: the stream contains an error message.
	ErrServer ErrorKind = "server"
	// ErrTooLarge: an event or an answer is larger than allowed.
	ErrTooLarge ErrorKind = "too_large"
	// ErrRejected: a simulated deployment can never serve the request.
	ErrRejected ErrorKind = "rejected"
)

// Error is why a request failed.
type Error struct {
	Kind ErrorKind
	// Status is the HTTP status; 0 without an answer.
	Status int
	// Message says it for people.
	Message string
}

// Error names the kind and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Kind, e.Message) }
