package fault

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Request is what rules look at.
type Request struct {
	// Session is the name of its session, Model that of its model, Path that of the URL.
	Session, Model, Path string
	// At is how long after the start of the server it came.
	At time.Duration
}

// None says that something comes after no number of tokens: it does not happen.
const None = -1

// Plan is what goes wrong with one request. [NoFault] is nothing.
type Plan struct {
	// Code is the HTTP status to answer with; 0 serves the request.
	Code       int
	RetryAfter time.Duration
	// Stall is how long nothing is sent once StallAfter tokens were.
	Stall      time.Duration
	StallAfter int
	// Slow is the factor between tokens once SlowAfter tokens were sent; 0 is none.
	Slow      float64
	SlowAfter int
	// DropAfter, MalformedAfter and ErrorAfter say after how many tokens that happens, or [None].
	DropAfter, MalformedAfter, ErrorAfter int
	// NoDone leaves out the end of a stream.
	NoDone bool
	// Kinds are those of the rules that apply.
	Kinds []Kind
}

// NoFault is the plan of a request with which nothing goes wrong.
func NoFault() Plan {
	return Plan{StallAfter: None, SlowAfter: None, DropAfter: None, MalformedAfter: None, ErrorAfter: None}
}

// Injector decides what goes wrong, by rules: each is asked about each request that it matches, and of several of a kind that
// apply the first counts. With one seed the same requests in the same order have the same faults. It is safe for concurrent use;
// nil is one without rules.
type Injector struct {
	mu    sync.Mutex
	rules []counted
}

// counted is a rule with the requests that it has seen.
type counted struct {
	Rule
	random         *rand.Rand
	seen, happened int
}

// NewInjector returns an injector of rules that [Parse] or [ParseFile] has read.
func NewInjector(rules []Rule, seed uint64) *Injector {
	in := &Injector{}
	for i, r := range rules {
		in.rules = append(in.rules, counted{Rule: r, random: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	return in
}

// Plan says what goes wrong with the next request.
func (in *Injector) Plan(q Request) Plan {
	p := NoFault()
	if in == nil || len(in.rules) == 0 {
		return p
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.rules {
		if r := &in.rules[i]; r.matches(q) && r.applies() {
			p.add(&r.Rule)
		}
	}
	return p
}

// applies counts a request that the rule matches and reports whether it is one that goes wrong.
func (r *counted) applies() bool {
	r.seen++
	chosen := (r.Share == 0 || r.random.Float64() < r.Share) && (r.Every == 0 || r.seen%r.Every == 0)
	if !chosen || r.Times > 0 && r.happened >= r.Times {
		return false
	}
	r.happened++
	return true
}

// add adds what a rule does, unless an earlier one does the same.
func (p *Plan) add(r *Rule) {
	for _, k := range p.Kinds {
		if k == r.Kind {
			return
		}
	}
	p.Kinds = append(p.Kinds, r.Kind)
	switch r.Kind {
	case Status:
		p.Code, p.RetryAfter = r.Code, r.RetryAfter
	case Stall:
		p.Stall, p.StallAfter = r.For, r.AfterTokens
	case Slow:
		p.Slow, p.SlowAfter = r.Factor, r.AfterTokens
	case Drop:
		p.DropAfter = r.AfterTokens
	case MalformedSSE:
		p.MalformedAfter = r.AfterTokens
	case ErrorEvent:
		p.ErrorAfter = r.AfterTokens
	case NoDone:
		p.NoDone = true
	}
}
