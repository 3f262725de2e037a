// Package fault decides which requests go wrong, and how: overload, errors, stalls, slow tokens, lost connections, broken streams.
//
// Read rule.go for what a rule says, parse.go for how it is written, and injector.go for which requests it is about.
package fault

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Kind is what a rule does to a request.
type Kind string

// The kinds of faults.
const (
	// Status answers with an HTTP status instead of serving the request.
	Status Kind = "status"
	// Stall sends nothing for a while.
	Stall Kind = "stall"
	// Slow makes the time between tokens several times as long.
	Slow Kind = "slow"
	// Drop ends the connection.
	Drop Kind = "drop"
	// MalformedSSE sends an event that is no JSON, or half of an answer that is no stream.
	MalformedSSE Kind = "malformed_sse"
	// ErrorEvent ends a stream with an error message.
	ErrorEvent Kind = "error_event"
	// NoDone leaves out the event that ends a stream, and the end of the stream is all that says so.
	NoDone Kind = "no_done"
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{Status, Stall, Slow, Drop, MalformedSSE, ErrorEvent, NoDone} }

// Rule says what goes wrong, when, and with which requests.
type Rule struct {
	Kind Kind
	// Code is the HTTP status of kind Status, RetryAfter what its answer says of when to try again; 0 says nothing.
	Code       int
	RetryAfter time.Duration
	// For is how long a Stall takes, in real time.
	For time.Duration
	// Factor is how many times as long Slow makes the time between tokens.
	Factor float64
	// AfterTokens is how many tokens come before; only a status has none.
	AfterTokens int
	// Share is the share of the requests that match, drawn from a seed; 0 is all of them.
	Share float64
	// Every is every so manieth request that matches; 0 is each.
	Every int
	// Times is how often the rule applies at most; 0 is always.
	Times int
	// From and Until bound the time since the start of the server in which requests come that the rule is about; Until 0 is
	// without end.
	From, Until time.Duration
	// Session, Model and Path are patterns of what the rule is about, as of [path.Match]; empty is any.
	Session, Model, Path string
}

// problem is what is wrong with one key of a rule.
type problem struct{ key, text string }

// problems lists what is wrong with a rule.
func (r *Rule) problems() []problem {
	var out []problem
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			out = append(out, problem{key, fmt.Sprintf(format, args...)})
		}
	}
	kind := string(r.Kind)
	check(r.Kind != "", "", "says nothing to do; give one of: %s", kindNames())
	check(r.Kind != Status || r.Code >= 400 && r.Code <= 599, kind, "status=%d is not allowed; give 400 to 599", r.Code)
	check(r.Kind != Stall || r.For > 0, kind, "stall=%s is not allowed; give a duration above 0, such as 5s", r.For)
	check(r.Kind != Slow || r.Factor > 1 && r.Factor <= 1e6, kind, "slow=%gx is not allowed; give more than 1x and up to 1000000x", r.Factor)
	check(r.RetryAfter >= 0, "retry_after", "retry_after=%s is not allowed; give 0 or more", r.RetryAfter)
	check(r.RetryAfter == 0 || r.Kind == Status, "retry_after", "retry_after is for status")
	check(r.AfterTokens == 0 || r.Kind != Status && r.Kind != NoDone, "after_tokens", "after_tokens is not for %s", r.Kind)
	check(r.AfterTokens >= 0, "after_tokens", "after_tokens=%d is not allowed; give 0 or more", r.AfterTokens)
	check(r.Share >= 0 && r.Share <= 1, "share", "share=%g is not allowed; give more than 0 and up to 1", r.Share)
	check(r.Every >= 0, "every", "every=%d is not allowed; give 1 or more", r.Every)
	check(r.Times >= 0, "times", "times=%d is not allowed; give 1 or more", r.Times)
	check(r.From >= 0, "from", "from=%s is not allowed; give 0 or more", r.From)
	check(r.Until >= 0, "until", "until=%s is not allowed; give a duration above 0", r.Until)
	check(r.Until <= 0 || r.From < r.Until, "until", "until=%s is not after from=%s; give a later one", r.Until, r.From)
	check(r.Share == 0 || r.Every == 0, "share", "share and every are two ways to choose requests; give one")
	for _, p := range []struct{ key, pattern string }{{"session", r.Session}, {"model", r.Model}, {"path", r.Path}} {
		_, err := path.Match(p.pattern, "")
		check(err == nil, p.key, "%s=%s is no pattern; a [ needs its ], and a \\ something behind it", p.key, p.pattern)
	}
	return out
}

// matches reports whether a rule is about a request.
func (r *Rule) matches(q Request) bool {
	if q.At < r.From || r.Until > 0 && q.At >= r.Until {
		return false
	}
	for _, p := range []struct{ pattern, name string }{{r.Session, q.Session}, {r.Model, q.Model}, {r.Path, q.Path}} {
		if p.pattern == "" {
			continue
		}
		if ok, err := path.Match(p.pattern, p.name); err != nil || !ok {
			return false
		}
	}
	return true
}

// String is the rule as [Parse] reads it.
func (r Rule) String() string {
	parts := []string{string(r.Kind)}
	switch r.Kind {
	case Status:
		parts[0] = fmt.Sprintf("status=%d", r.Code)
	case Stall:
		parts[0] = fmt.Sprintf("stall=%s", r.For)
	case Slow:
		parts[0] = fmt.Sprintf("slow=%gx", r.Factor)
	}
	add := func(given bool, format string, v any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	add(r.RetryAfter != 0, "retry_after=%s", r.RetryAfter)
	add(r.AfterTokens != 0, "after_tokens=%d", r.AfterTokens)
	add(r.Share != 0, "share=%g", r.Share)
	add(r.Every != 0, "every=%d", r.Every)
	add(r.Times != 0, "times=%d", r.Times)
	add(r.From != 0, "from=%s", r.From)
	add(r.Until != 0, "until=%s", r.Until)
	add(r.Session != "", "session=%s", r.Session)
	add(r.Model != "", "model=%s", r.Model)
	add(r.Path != "", "path=%s", r.Path)
	return strings.Join(parts, ",")
}

func kindNames() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
