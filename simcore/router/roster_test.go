package router

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/workload"
)

// TestRoundRobinWhileWorkersChange follows the place in the list of ready workers, which wraps over those that there are.
func TestRoundRobinWhileWorkersChange(t *testing.T) {
	r := New(DefaultConfig(), newPool(t, 3, prompts(20)...).Environment)
	got := routeAll(t, r, 0, 1, 2)
	r.Leave(2)
	got = append(got, routeAll(t, r, 3, 4)...) // the next place would be 3, of two workers: 3 mod 2 is 1
	r.Join(0, Member{Worker: 3, Seat: 2, Tier: -1})
	got = append(got, routeAll(t, r, 5, 6, 7)...)
	if want := []int32{0, 1, 2, 1, 0, 1, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("workers %v, want %v", got, want)
	}
}

// TestSessionsLeaveWithTheirWorker checks that a session goes to another worker when its own takes no more requests, also
// when a third one has its seat.
func TestSessionsLeaveWithTheirWorker(t *testing.T) {
	c := DefaultConfig()
	c.Policy = PolicySessionAffinity
	turns := make([]workload.Request, 4)
	for i := range turns {
		turns[i] = workload.Request{Hashes: []uint64{uint64(i)}, Session: "a"}
	}
	r := New(c, newPool(t, 2, turns...).Environment)
	first := arrive(t, r, 0, 0)
	r.Leave(first)
	second := arrive(t, r, 0, 1)
	r.Ended(1, 0)
	r.Join(2, Member{Worker: 2, Seat: first, Tier: -1})
	if third := arrive(t, r, 3, 2); second == first || third != second {
		t.Errorf("turns go to workers %d, %d, %d", first, second, third)
	}
}

// TestKVRouterForgetsSeats checks that a worker which takes the seat of another has nothing of what that had: in its cache, of
// requests that wait, and as load.
func TestKVRouterForgetsSeats(t *testing.T) {
	c := kvConfig()
	c.RouterQueueThreshold = 0
	request := workload.Request{Hashes: []uint64{1, 2, 3}}
	p := newPool(t, 1, request, request, request)
	p.caches(0, 0, 3)
	r := New(c, p.Environment).(*kvRouter)
	arrive(t, r, 0, 0)
	r.prefills[0].tokens = 1 // as if some of its prompt were not cached, so that it is busy
	if w := arrive(t, r, 0, 1); w != Queued {
		t.Fatalf("the request goes to %d", w)
	}
	r.Leave(0)
	if kept := r.Ended(1, 0); len(kept) != 0 {
		t.Fatalf("requests %v go to a worker that takes none", kept)
	}
	r.prefills[0].tokens = 0
	p.index.Clear(0)
	kept := r.Join(2, Member{Worker: 1, Seat: 0, Tier: -1})
	if len(kept) != 1 || kept[0] != (Dispatch{Request: 1, Worker: 1}) || r.Overlap(1) != 0 {
		t.Errorf("%v go, with an overlap of %d tokens", kept, r.Overlap(1))
	}
}

// TestRoutersPickReadyWorkers checks with all policies and workers that come and go that requests go to ready ones.
func TestRoutersPickReadyWorkers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := DefaultConfig()
		c.Policy = rapid.SampledFrom(Policies()).Draw(rt, "policy")
		c.RouterTemperature = rapid.SampledFrom([]float64{0, .5}).Draw(rt, "temperature")
		c.RouterQueueThreshold = rapid.SampledFrom([]float64{Unset, 0, 1}).Draw(rt, "threshold")
		requests := make([]workload.Request, 60)
		for i := range requests {
			requests[i] = workload.Request{Hashes: []uint64{uint64(i % 4), uint64(i % 7)}, Session: string(rune('a' + i%5))}
		}
		p := newPool(t, 2, requests...)
		r := New(c, p.Environment)
		ready, seats, made := []int32{0, 1}, map[int32]int32{0: 0, 1: 1}, int32(2)
		on := map[int32]int32{}
		take := func(request, worker int32) {
			if !slices.Contains(ready, worker) {
				rt.Fatalf("request %d goes to worker %d, and %v are ready", request, worker, ready)
			}
			on[request] = worker
		}
		for i := range int32(60) {
			switch rapid.IntRange(0, 3).Draw(rt, "change") {
			case 0:
				seat := int32(0)
				for slices.ContainsFunc(ready, func(w int32) bool { return seats[w] == seat }) || heldBy(on, seats, seat) {
					seat++
				}
				p.index.Grow(int(seat) + 1)
				seats[made] = seat
				ready = append(ready, made)
				for _, d := range r.Join(float64(i), Member{Worker: made, Seat: seat, Tier: -1}) {
					take(d.Request, d.Worker)
				}
				made++
			case 1:
				if len(ready) > 1 {
					r.Leave(ready[len(ready)-1])
					ready = ready[:len(ready)-1]
				}
			}
			if w := arrive(t, r, float64(i), i); w != Queued {
				take(i, w)
			}
			if ended := i - 3; ended >= 0 {
				if _, ok := on[ended]; ok {
					delete(on, ended)
					for _, d := range r.Ended(float64(i), ended) {
						take(d.Request, d.Worker)
					}
				}
			}
		}
	})
}

// heldBy reports whether a worker at a seat has requests.
func heldBy(on, seats map[int32]int32, seat int32) bool {
	for _, worker := range on {
		if seats[worker] == seat {
			return true
		}
	}
	return false
}
