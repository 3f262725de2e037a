package live

import (
	"time"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// Run is what is known of a live run when it is over, or was ended.
type Run struct {
	// Started is the time of ms 0.
	Started time.Time
	// Records are what became of each request that was sent, in the order in which they were to be sent; nil where somebody else
	// keeps them.
	Records []Record
	// Planned counts the requests of the schedule; -1 when it has no end of its own.
	Planned int
	// EndMs is when it was over.
	EndMs float64
	// Window is the measured window of the AgentX scenario; nil without one.
	Window *Window
	// Scenario is how that went; nil without one, or when the window did not begin.
	Scenario *simcore.Scenario
	// Interrupted says that it was ended before its time.
	Interrupted bool
	// Gaps are the gaps between two tokens of requests that are measured: a chunk of n tokens that comes a gap after the one
	// before counts as n gaps of an n-th of it. nil where that is not known.
	Gaps *metrics.GapRecorder
	// EvenGaps are the same gaps as the server made them, as far as one can tell: tokens that were held back on their way and read at
	// once share the time since the one before them evenly. nil as Gaps.
	EvenGaps *metrics.GapRecorder
	// Samples are what the servers said of themselves beside it, in order of time.
	Samples []Sample
}

// Play numbers the play of a record in the order in which users took them; -1 where that is not known, or without the AgentX scenario.
func (r *Run) Play(record *Record) int {
	if r.Scenario == nil {
		return -1
	}
	return r.Scenario.Play(record.Call.Number)
}

// Window is a part of a run, in ms since it began.
type Window struct{ StartMs, EndMs float64 }

// Sample is what a server's Prometheus metrics said at a time. Gauges and counters that it does not have are NaN.
type Sample struct {
	// AtMs is when it was read, in ms since the run began, and Endpoint where.
	AtMs     float64
	Endpoint string
	// Running and Waiting count requests, KVUsage is the share of KV blocks in use, from 0 to 1.
	Running, Waiting, KVUsage float64
	// CachedTokens and PromptTokens count tokens since the server started: those found in the prefix cache, of those looked up.
	CachedTokens, PromptTokens float64
	// OutputTokens and Preemptions count since the server started.
	OutputTokens, Preemptions float64
}
