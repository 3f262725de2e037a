package fidelity

import "fmt"

// sessionChecks compare how many sessions there are, and how many turns each has. The session of B that is one of A's is that of
// its first request with a partner, so that their names may differ.
func sessionChecks(a, b *Run, pairs []pair) []Check {
	turnsA, turnsB := turnsOf(a), turnsOf(b)
	if len(turnsA) == 0 || len(turnsB) == 0 {
		const why = "a run has no sessions"
		return []Check{{Name: "sessions", Outcome: NotStated, Detail: why}, {Name: "turns of each session", Outcome: NotStated, Detail: why}}
	}
	return []Check{equalCounts("sessions", len(turnsA), len(turnsB), ""), turnsCheck(a, b, pairs, turnsA, turnsB)}
}

// turnsOf counts the requests of each session.
func turnsOf(r *Run) map[string]int {
	turns := map[string]int{}
	for i := range r.Requests {
		if s := r.Requests[i].Session; s != "" {
			turns[s]++
		}
	}
	return turns
}

func turnsCheck(a, b *Run, pairs []pair, turnsA, turnsB map[string]int) Check {
	partner, differs := map[string]string{}, map[string]bool{}
	var different []string
	compared := 0
	differ := func(session, how string) {
		if !differs[session] {
			differs[session] = true
			different = append(different, how)
		}
	}
	for _, p := range pairs {
		session, other := a.Requests[p.a].Session, b.Requests[p.b].Session
		if session == "" || other == "" {
			continue
		}
		known, met := partner[session]
		if !met {
			partner[session] = other
			compared++
		} else if known != other {
			differ(session, fmt.Sprintf("%s is in B partly %s and partly %s", session, known, other))
		}
	}
	for _, p := range pairs {
		session := a.Requests[p.a].Session
		if other := partner[session]; other != "" && turnsA[session] != turnsB[other] {
			differ(session, fmt.Sprintf("%s %d and %d", session, turnsA[session], turnsB[other]))
		}
	}
	c := Check{Name: "turns of each session"}
	c.ofEach(compared, different)
	return c
}
