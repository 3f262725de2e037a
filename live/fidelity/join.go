package fidelity

import (
	"fmt"
	"strings"
)

// Join says which requests of two runs are the same.
type Join string

// The ways to join two runs.
const (
	// JoinAuto takes the first of the others by which at least half of the requests of the smaller run have a partner.
	JoinAuto Join = "auto"
	// JoinID pairs requests of the same name, also where one run knows a name as the X-Request-ID that it sent or got.
	JoinID Join = "id"
	// JoinSession pairs the same turns of the same sessions.
	JoinSession Join = "session"
	// JoinOrder pairs requests in order of their start.
	JoinOrder Join = "order"
)

// Joins lists the ways to join two runs.
func Joins() []string {
	return []string{string(JoinAuto), string(JoinID), string(JoinSession), string(JoinOrder)}
}

// pair is a request of both runs, by its place in them.
type pair struct{ a, b int }

// keyOf names a request; "" when it has no such name.
type keyOf func(*Request) string

func byID(r *Request) string       { return r.ID }
func byClientID(r *Request) string { return r.ClientID }

func bySession(r *Request) string {
	if r.Session == "" || r.Turn == Unknown {
		return ""
	}
	return fmt.Sprintf("%d of %s", r.Turn, r.Session)
}

// join pairs the requests of two runs, and says by what. The pairs are in order of A's requests.
func join(a, b *Run, how Join) (pairs []pair, used Join, err error) {
	for _, candidate := range []struct {
		join Join
		keys [][2]keyOf
	}{
		{JoinID, [][2]keyOf{{byID, byID}, {byClientID, byID}, {byID, byClientID}, {byClientID, byClientID}}},
		{JoinSession, [][2]keyOf{{bySession, bySession}}},
	} {
		if how != JoinAuto && how != candidate.join {
			continue
		}
		var best []pair
		for _, keys := range candidate.keys {
			if found := match(a, b, keys); len(found) > len(best) {
				best = found
			}
		}
		if len(best) == 0 && how == candidate.join {
			return nil, "", fmt.Errorf("--join %s: no request of %s has the same one as any of %s; %s", how, a.Name, b.Name, namesOfBoth(a, b, candidate.keys))
		}
		if how == candidate.join || 2*len(best) >= min(len(a.Requests), len(b.Requests)) {
			return best, candidate.join, nil
		}
	}
	for i := range min(len(a.Requests), len(b.Requests)) {
		pairs = append(pairs, pair{i, i})
	}
	return pairs, JoinOrder, nil
}

// match pairs requests with equal keys; where several requests of a run have one, in order of their start.
func match(a, b *Run, keys [2]keyOf) []pair {
	places := make(map[string][]int, len(b.Requests))
	for i := range b.Requests {
		if key := keys[1](&b.Requests[i]); key != "" {
			places[key] = append(places[key], i)
		}
	}
	var pairs []pair
	for i := range a.Requests {
		key := keys[0](&a.Requests[i])
		if at := places[key]; key != "" && len(at) > 0 {
			pairs = append(pairs, pair{i, at[0]})
			places[key] = at[1:]
		}
	}
	return pairs
}

// namesOfBoth gives an example of each run's names.
func namesOfBoth(a, b *Run, keys [][2]keyOf) string {
	example := func(r *Run, side int) string {
		for _, k := range keys {
			for i := range r.Requests {
				if key := k[side](&r.Requests[i]); key != "" {
					return fmt.Sprintf("%.60q", key)
				}
			}
		}
		return "none"
	}
	return fmt.Sprintf("their first names are %s and %s; give another --join: %s", example(a, 0), example(b, 1), strings.Join(Joins(), ", "))
}

// repeated counts the requests whose key another one of their run has too.
func repeated(r *Run, used Join) int {
	key := map[Join]keyOf{JoinID: byID, JoinSession: bySession}[used]
	if key == nil {
		return 0
	}
	seen := make(map[string]int, len(r.Requests))
	n := 0
	for i := range r.Requests {
		k := key(&r.Requests[i])
		if k == "" {
			continue
		}
		if seen[k]++; seen[k] > 1 {
			n++
		}
	}
	return n
}
