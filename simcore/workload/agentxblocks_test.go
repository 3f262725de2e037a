package workload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sharing makes conversations of some turns and subagents whose prompts share blocks in every way, and say what some
// outputs are.
func sharing(t *rapid.T) *Workload {
	b := NewGraphBuilder("made", 16)
	b.Ties = TieOrder(rapid.IntRange(0, 2).Draw(t, "ties"))
	for play := range rapid.IntRange(1, 3).Draw(t, "plays") {
		var numbers []int32
		for turn := range rapid.IntRange(1, 6).Draw(t, "turns") {
			hashes := rapid.SliceOfN(rapid.Uint64Range(0, 5), 1, 6).Draw(t, "hashes")
			r := GraphRequest{
				Request: Request{
					ID: fmt.Sprintf("%d.%d", play, turn), Session: fmt.Sprintf("%d.%d", play, rapid.IntRange(0, 2).Draw(t, "agent")),
					Input: 16*len(hashes) - rapid.IntRange(0, 15).Draw(t, "cut"), Output: rapid.IntRange(1, 40).Draw(t, "output"), Hashes: hashes,
				},
				NotBeforeMs: 0, Play: fmt.Sprint(play), RecordedStartMs: float64(1000 * turn), RecordedEndMs: float64(1000*turn + 500),
			}
			if rapid.Bool().Draw(t, "planned") {
				r.PlannedOutput = make([]uint32, r.Output)
			}
			number := b.Add(r)
			if turn > 0 {
				b.AddEdge(number, Edge{From: numbers[rapid.IntRange(0, turn-1).Draw(t, "waits for")], DelayMs: float64(turn)})
			}
			numbers = append(numbers, number)
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Whatever conversations share, two requests with the same salt have the same blocks in common as those that they repeat,
// and two of different salts have none.
func TestAgentXBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := sharing(t)
		plan := AgentXPlan{
			Users: rapid.IntRange(1, 3).Draw(t, "users"), Shuffle: true, Seed: rapid.Uint64().Draw(t, "seed"), StartMax: 1, ByTurn: true, GapCapMs: math.Inf(1),
			PrimerTokens: 1, PrimersPerUser: rapid.IntRange(0, 9).Draw(t, "primers"), Plays: rapid.IntRange(0, 8).Draw(t, "later plays"),
			PlayOn: rapid.Bool().Draw(t, "play on"),
			Salt:   rapid.SampledFrom([]string{SaltPlay, SaltUser, SaltNone}).Draw(t, "salt"),
		}
		s, err := AgentX(context.Background(), base, plan)
		if err != nil {
			t.Fatal(err)
		}
		w, size := s.Workload, rapid.SampledFrom([]int{8, 16, 24, 32}).Draw(t, "block size")
		early, err := w.Blocks(size, true)
		if err != nil {
			t.Fatal(err)
		}
		saltOf := make([]int, w.Graph.Plays())
		for play := range saltOf {
			user := (play - s.WarmUps) % plan.Users
			if play < s.WarmUps {
				user = s.User(play)
			}
			s.Begin(play, user)
			switch plan.Salt {
			case SaltUser:
				saltOf[play] = user
			case SaltPlay:
				saltOf[play] = s.Instance(play)
			}
		}
		// A table that is asked for later is the same.
		delete(w.tables, tableKey{size, true})
		late, err := w.Blocks(size, true)
		if err != nil {
			t.Fatal(err)
		}
		of, err := base.Blocks(size, true)
		if err != nil {
			t.Fatal(err)
		}
		private := map[uint32]bool{}
		for a := range w.Requests() {
			ids, own := blockIDs(early, a), blockIDs(of, int(s.Base[a]))
			if fmt.Sprint(ids) != fmt.Sprint(blockIDs(late, a)) {
				t.Fatalf("request %d has the blocks %v, in a later table %v", a, ids, blockIDs(late, a))
			}
			if len(ids) != early.Known(a) || !s.WarmUp(w.Graph.Play[a]) && len(ids) != len(own) || len(ids) > len(own) {
				t.Fatalf("request %d has %d blocks, %d by their number, and repeats one with %d", a, len(ids), early.Known(a), len(own))
			}
			for k := range int(w.Input[a]+w.Output[a])/size + 1 - len(ids) {
				if id := early.Private(a, k); private[id] || id < early.Shared || id >= early.IDs {
					t.Fatalf("request %d has the private block %d again; %d are shared, %d there", a, id, early.Shared, early.IDs)
				} else {
					private[id] = true
				}
			}
			for z := range a {
				other, theirs := blockIDs(early, z), blockIDs(of, int(s.Base[z]))
				sameSalt := saltOf[w.Graph.Play[a]] == saltOf[w.Graph.Play[z]]
				if plan.Salt != SaltNone {
					sameSalt = sameSalt && base.Graph.Play[s.Base[a]] == base.Graph.Play[s.Base[z]]
				}
				for k := range min(len(ids), len(other)) {
					if got, want := ids[k] == other[k], sameSalt && own[k] == theirs[k]; got != want {
						t.Fatalf("salt %s: block %d of requests %d and %d is the same: %v, want %v", plan.Salt, k, a, z, got, want)
					}
				}
			}
		}
	})
}

// Each play waits for what its conversation waits for, in the same order, and its numbers are those of its own.
func TestAgentXEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := sharing(t)
		s, err := AgentX(context.Background(), base, AgentXPlan{Users: 2, Plays: 4, StartsMs: []float64{0, 0}, GapCapMs: 3, Salt: SaltPlay})
		if err != nil {
			t.Fatal(err)
		}
		w, g := s.Workload, s.Workload.Graph
		if s.WarmUps != 0 || g.Plays() != 6 || w.Sessions() == 0 || int(w.SessionStart[w.Sessions()]) != w.Requests() {
			t.Fatalf("%d plays warm up, %d are there; %d requests, %v", s.WarmUps, g.Plays(), w.Requests(), w.SessionStart)
		}
		for r := range w.Requests() {
			for _, lists := range []struct{ own, base []Edge }{
				{g.Edges(int32(r)), base.Graph.Edges(s.Base[r])}, {g.Dependants(int32(r)), base.Graph.Dependants(s.Base[r])},
			} {
				if len(lists.own) != len(lists.base) {
					t.Fatalf("request %d has the edges %v, want %v", r, lists.own, lists.base)
				}
				for i, e := range lists.own {
					want := lists.base[i]
					if s.Base[e.From] != want.From || g.Play[e.From] != g.Play[r] || e.DelayMs != min(want.DelayMs, 3) || e.Relation != want.Relation {
						t.Fatalf("request %d has the edge %v, want %v", r, e, want)
					}
				}
			}
		}
	})
}

// Users who play on to warm the cache up do what they would do without: each request of their conversations once, in the warm-up or
// after it, and none before what it waits for.
func TestAgentXPlaysOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := sharing(t)
		plan := AgentXPlan{
			Users: rapid.IntRange(1, 3).Draw(t, "users"), GapCapMs: math.Inf(1),
			PrimerTokens: 1, PrimersPerUser: rapid.IntRange(0, 12).Draw(t, "primers"), PlayOn: true, Salt: SaltPlay,
		}
		for user := range plan.Users {
			last := 0.0
			for r := range base.Requests() {
				if int(base.Graph.Play[r]) == user%base.Graph.Plays() {
					last = max(last, base.Graph.RecordedStartMs[r])
				}
			}
			plan.StartsMs = append(plan.StartsMs, rapid.Float64Range(0, last).Draw(t, "start"))
		}
		s, err := AgentX(context.Background(), base, plan)
		if err != nil {
			t.Fatal(err)
		}
		w, g := s.Workload, s.Workload.Graph
		type played struct{ warmUp, measured []int32 } // requests of the base
		plays, ofUser := make([]played, s.blocks.expansion.taken), make([]int, plan.Users)
		byRank := make([]int32, w.Requests())
		for r := range byRank {
			byRank[r] = int32(r)
		}
		slices.SortFunc(byRank, func(a, b int32) int { return cmp.Compare(g.Rank[a], g.Rank[b]) })
		for _, r := range byRank {
			p, output := &plays[s.Instance(int(g.Play[r]))], base.Output[s.Base[r]]
			if s.WarmUp(g.Play[r]) {
				p.warmUp, output = append(p.warmUp, s.Base[r]), 1
				ofUser[s.User(int(g.Play[r]))]++
			} else {
				p.measured = append(p.measured, s.Base[r])
			}
			if w.Output[r] != output {
				t.Fatalf("request %d has an output of %d, want %d", s.Base[r], w.Output[r], output)
			}
		}
		for instance, p := range plays {
			var want []int32 // what is not behind the play
			resumes, past := map[int32]bool{}, map[int32]bool{}
			of := append(slices.Clone(p.warmUp), p.measured...)[0]
			for r := range int32(base.Requests()) {
				switch {
				case base.Graph.Play[r] != base.Graph.Play[of]:
				case instance < plan.Users && base.Graph.RecordedStartMs[r] < plan.StartsMs[instance]:
					past[s.blocks.expansion.threads.of(r)] = true
				default:
					want = append(want, r)
					resumes[s.blocks.expansion.threads.of(r)] = true
				}
			}
			for thread := range past {
				if resumes[thread] {
					p.warmUp = p.warmUp[1:] // the last one of a thread that goes on
					ofUser[instance]--
				}
			}
			for i, r := range p.warmUp {
				for _, e := range base.Graph.Edges(r) {
					if slices.Contains(want, e.From) && !slices.Contains(p.warmUp[:i], e.From) {
						t.Fatalf("play %d warms up with %v, where %d waits for %d", instance, p.warmUp, r, e.From)
					}
				}
			}
			if got := slices.Sorted(slices.Values(append(p.warmUp, p.measured...))); !slices.Equal(got, want) {
				t.Fatalf("play %d warms up with %v and goes on with %v, want each of %v once", instance, p.warmUp, p.measured, want)
			}
		}
		for user, n := range ofUser {
			if n != plan.PrimersPerUser {
				t.Fatalf("user %d plays on for %d requests, not %d", user, n, plan.PrimersPerUser)
			}
		}
	})
}
