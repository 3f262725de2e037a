package fidelity

import (
	"cmp"
	"math"
	"slices"
)

// Kind says where a run comes from.
type Kind string

// The kinds of runs.
const (
	// KindReplay is a simulation: what replay and sweep write of each request.
	KindReplay Kind = "replay"
	// KindLive is a run against an endpoint by `servegrid live`.
	KindLive Kind = "live"
	// KindAIPerf is one by AIPerf.
	KindAIPerf Kind = "aiperf"
	// KindCapture is a Dynamo request trace of what a server did.
	KindCapture Kind = "capture"
)

// Run is what is known of the requests of a run.
type Run struct {
	// Name is the path that it was read from, Kind what that holds.
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Requests are in order of their start; those of a warm-up are left out.
	Requests []Request `json:"-"`
	// WarmUps counts the requests of a warm-up, which are no part of a comparison.
	WarmUps int `json:"warm_ups,omitempty"`
	// Planned counts the requests that were to be sent, in the profile and the warm-up; 0 where the run does not say.
	Planned int `json:"planned,omitempty"`
	// WireLengths says that input lengths are what a server counted, with its chat template, and not what the workload states.
	WireLengths bool `json:"wire_lengths,omitempty"`
	// Facts say how it was run, as far as its files do.
	Facts Facts `json:"facts"`
	// Notes are what to know about the files.
	Notes []string `json:"notes,omitempty"`
}

// Facts are the conditions of a run that ought to be equal; "" where its files do not say.
type Facts struct {
	// Model is the name by which a server was asked, which people choose, and Timing that of the model whose times are simulated:
	// the one says nothing of the other.
	Model     string `json:"model,omitempty"`
	Timing    string `json:"timing_model,omitempty"`
	Tokenizer string `json:"tokenizer,omitempty"`
	BlockSize string `json:"block_size,omitempty"`
	Topology  string `json:"topology,omitempty"`
	// Cache says what was in the prefix cache at the beginning.
	Cache string `json:"cache,omitempty"`
	// Workload is the digest of the requests that were asked for.
	Workload string `json:"workload,omitempty"`
}

// Request is one request of a run. Times are in ms, NaN where the run does not say; counts are in tokens, [Unknown] likewise.
type Request struct {
	// ID is the name that it went by, and ClientID the X-Request-ID that it came or was sent with, where a run has both.
	ID, ClientID string
	// Session and Turn are its place in a session; "" and [Unknown] where it has none.
	Session string
	Turn    int
	// Number is its number in the workload; [Unknown] where the run does not say.
	Number int
	// StartMs is when it was sent or arrived, on the run's own clock, and LagMs how much later than planned.
	StartMs, LagMs float64
	// TTFTMs, ITLMs and E2EMs are the times to the first token, on average between two, and to the last token.
	TTFTMs, ITLMs, E2EMs float64
	// Input is the length of the prompt, Output what was asked for and Tokens what came.
	Input, Output, Tokens int
	// Cached are the prompt's tokens that were in the prefix cache.
	Cached int
	// Completed says that it ended well; Problem says why not.
	Completed bool
	Problem   string
}

// Unknown is a count that a run does not state.
const Unknown = -1

// unknownRequest is a request of which nothing is known.
func unknownRequest() Request {
	nan := math.NaN()
	return Request{
		Turn: Unknown, Number: Unknown, StartMs: nan, LagMs: nan, TTFTMs: nan, ITLMs: nan, E2EMs: nan,
		Input: Unknown, Output: Unknown, Tokens: Unknown, Cached: Unknown,
	}
}

// name is what people call the request.
func (r *Request) name() string { return cmp.Or(r.ID, r.ClientID, r.Session) }

// length is the length of its answer: what came, or what was asked for where that is all that the run says.
func (r *Request) length() int {
	if r.Tokens != Unknown {
		return r.Tokens
	}
	return r.Output
}

// reuse is the share of the prompt that came from the prefix cache; NaN when that is not known.
func (r *Request) reuse() float64 {
	if r.Cached < 0 || r.Input <= 0 {
		return math.NaN()
	}
	return float64(r.Cached) / float64(r.Input)
}

// deriveITL fills in the mean time between two tokens where it follows from the rest.
func (r *Request) deriveITL() {
	if math.IsNaN(r.ITLMs) && r.Tokens > 1 {
		r.ITLMs = (r.E2EMs - r.TTFTMs) / float64(r.Tokens-1)
	}
}

// sort puts the requests in order of their start, those that start together in the order of the source.
func (r *Run) sort() {
	slices.SortStableFunc(r.Requests, func(a, b Request) int { return cmp.Compare(a.StartMs, b.StartMs) })
}

// sent counts the requests that started.
func (r *Run) sent() int {
	return count(r.Requests, func(q *Request) bool { return !math.IsNaN(q.StartMs) })
}

func (r *Run) completed() int {
	return count(r.Requests, func(q *Request) bool { return q.Completed })
}

func count(requests []Request, which func(*Request) bool) int {
	n := 0
	for i := range requests {
		if which(&requests[i]) {
			n++
		}
	}
	return n
}
