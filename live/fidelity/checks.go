package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Outcome says how a check went, or whether a condition is the same.
type Outcome string

// The outcomes of a check, which holds or fails, and of a condition, which holds or differs.
const (
	Holds     Outcome = "ok"
	Fails     Outcome = "failed"
	Differs   Outcome = "differs"
	NotStated Outcome = "not stated"
)

// Check is something that must be equal in both runs, or zero.
type Check struct {
	// Name is what was checked; A and B are what the runs have.
	Name    string  `json:"name"`
	A       string  `json:"a"`
	B       string  `json:"b"`
	Outcome Outcome `json:"outcome"`
	// Detail says what is wrong, or why there is nothing to say.
	Detail string `json:"detail,omitempty"`

	// each says that it is about single requests or sessions: A says how many were compared, and B how many are equal.
	each bool
}

// failure says what is wrong.
func (c *Check) failure() string {
	if c.each {
		return c.Name + ": " + c.Detail
	}
	return fmt.Sprintf("%s: %s in A, %s in B: %s", c.Name, c.A, c.B, c.Detail)
}

// ofEach fills in a check of single requests or sessions.
func (c *Check) ofEach(compared int, different []string) {
	c.each, c.A, c.B, c.Outcome = true, fmt.Sprintf("%d compared", compared), fmt.Sprintf("%d equal", compared-len(different)), Holds
	if len(different) > 0 {
		c.Outcome, c.Detail = Fails, listed(fmt.Sprintf("%d of %d differ: ", len(different), compared), different)
	}
}

// checksOf makes all checks of two runs.
func checksOf(a, b *Run, pairs []pair) []Check {
	checks := []Check{
		equalCounts("requests", len(a.Requests), len(b.Requests), ""),
		equalCounts("requests that were sent", a.sent(), b.sent(), unsent(a, b)),
		completedCheck(a, b),
		pairedCheck(a, b, pairs),
		errorCheck(a, b),
	}
	checks = append(checks, sessionChecks(a, b, pairs)...)
	checks = append(checks, lengthCheck(a, b, pairs))
	checks = append(checks, totalCheck("output tokens", a, b, (*Request).length))
	inputs := totalCheck("input tokens", a, b, func(r *Request) int { return r.Input })
	if a.WireLengths != b.WireLengths && inputs.Outcome == Fails {
		inputs.Outcome, inputs.Detail = NotStated, "one run has what a server or client counted, chat template and all, and the other what the workload states; see the deltas of input length"
	}
	return append(checks, inputs)
}

func equalCounts(name string, a, b int, detail string) Check {
	c := Check{Name: name, A: fmt.Sprint(a), B: fmt.Sprint(b), Outcome: Holds}
	if a != b || detail != "" {
		c.Outcome, c.Detail = Fails, cmp.Or(detail, fmt.Sprintf("B has %+d", b-a))
	}
	return c
}

// unsent counts requests that were never sent, those included that a live run planned and did not come to.
func unsent(a, b *Run) string {
	var parts []string
	for _, side := range []struct {
		name string
		run  *Run
	}{{"A", a}, {"B", b}} {
		n := len(side.run.Requests) - side.run.sent()
		if planned := side.run.Planned; planned > 0 {
			n = max(n, planned-side.run.WarmUps-side.run.sent())
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s were never sent", n, side.name))
		}
	}
	return joined(parts)
}

func completedCheck(a, b *Run) Check {
	return equalCounts("requests that completed", a.completed(), b.completed(), "")
}

// errorCheck wants no request that did not complete.
func errorCheck(a, b *Run) Check {
	c := equalCounts("errors", len(a.Requests)-a.completed(), len(b.Requests)-b.completed(), "")
	c.Outcome, c.Detail = Holds, ""
	if a.completed() < len(a.Requests) || b.completed() < len(b.Requests) {
		c.Outcome = Fails
		c.Detail = joined([]string{problemsOf("A", a), problemsOf("B", b)})
	}
	return c
}

// problemsOf counts why requests of a run did not complete.
func problemsOf(side string, r *Run) string {
	counts := map[string]int{}
	for i := range r.Requests {
		if !r.Requests[i].Completed {
			counts[r.Requests[i].Problem]++
		}
	}
	var parts []string
	for _, problem := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", problem, counts[problem]))
	}
	if len(parts) == 0 {
		return ""
	}
	return side + ": " + strings.Join(parts, ", ")
}

func pairedCheck(a, b *Run, pairs []pair) Check {
	aloneA, aloneB := alone(a, pairs, func(p pair) int { return p.a }), alone(b, pairs, func(p pair) int { return p.b })
	c := Check{Name: "requests without a partner", A: fmt.Sprint(len(aloneA)), B: fmt.Sprint(len(aloneB)), Outcome: Holds}
	if len(aloneA)+len(aloneB) > 0 {
		c.Outcome = Fails
		c.Detail = joined([]string{listed("only in A: ", aloneA), listed("only in B: ", aloneB)})
	}
	return c
}

// alone names the requests of a run that no pair has.
func alone(r *Run, pairs []pair, side func(pair) int) []string {
	paired := make([]bool, len(r.Requests))
	for _, p := range pairs {
		paired[side(p)] = true
	}
	var out []string
	for i, is := range paired {
		if !is {
			out = append(out, r.Requests[i].name())
		}
	}
	return out
}

func lengthCheck(a, b *Run, pairs []pair) Check {
	c := Check{Name: "output length of each request", Outcome: NotStated}
	known := 0
	var different []string
	for _, p := range pairs {
		x, y := a.Requests[p.a].length(), b.Requests[p.b].length()
		if x == Unknown || y == Unknown {
			continue
		}
		if known++; x != y {
			different = append(different, fmt.Sprintf("%s %d and %d", a.Requests[p.a].name(), x, y))
		}
	}
	if c.Detail = "a run does not say how long its answers are"; known > 0 {
		c.Detail = ""
		c.ofEach(known, different)
	}
	return c
}

// totalCheck compares a sum over all requests.
func totalCheck(name string, a, b *Run, of func(*Request) int) Check {
	sum := func(r *Run) (total int, known bool) {
		for i := range r.Requests {
			n := of(&r.Requests[i])
			if n == Unknown {
				continue
			}
			total, known = total+n, true
		}
		return total, known
	}
	sumA, knownA := sum(a)
	sumB, knownB := sum(b)
	if !knownA || !knownB {
		return Check{Name: name, Outcome: NotStated, Detail: "a run does not say them"}
	}
	return equalCounts(name, sumA, sumB, "")
}

// mostListed bounds how many names a detail has.
const mostListed = 5

func listed(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	more := ""
	if n := len(names) - mostListed; n > 0 {
		names, more = names[:mostListed], fmt.Sprintf(" and %d more", n)
	}
	return what + strings.Join(names, ", ") + more
}

func joined(parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
