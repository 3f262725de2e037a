package router

import (
	"slices"
	"testing"

	"github.com/servegrid/servegrid/simcore/workload"
)

func routeAll(t *testing.T, r Router, requests ...int32) []int32 {
	t.Helper()
	var out []int32
	for _, q := range requests {
		out = append(out, arrive(t, r, 0, q))
	}
	return out
}

func TestRoundRobin(t *testing.T) {
	p := newPool(t, 3, prompts(5)...)
	if got := routeAll(t, New(DefaultConfig(), p.Environment), 0, 1, 2, 3, 4); !slices.Equal(got, []int32{0, 1, 2, 0, 1}) {
		t.Errorf("workers %v", got)
	}
}

// TestLeastLoaded checks that the worker with the fewest unfinished requests is taken, and each as often as the others when
// several have.
func TestLeastLoaded(t *testing.T) {
	c := DefaultConfig()
	c.Policy = PolicyLeastLoaded
	p := newPool(t, 4, prompts(9)...)
	firsts := make([]int, 4)
	for seed := range 400 {
		c.Seed = uint64(seed)
		r := New(c, p.Environment)
		first := routeAll(t, r, 0, 1, 2, 3)
		firsts[first[0]]++
		if slices.Sort(first); !slices.Equal(first, []int32{0, 1, 2, 3}) {
			t.Fatalf("the first requests go to %v", first)
		}
		r.Ended(1, 2)
		if got, want := arrive(t, r, 1, 4), r.(*leastLoaded).seatOf[2]; got != want {
			t.Fatalf("the next one goes to %d and not to idle worker %d", got, want)
		}
	}
	if x := chiSquared(firsts); x > 16.3 { // 0.1 % with 3 degrees of freedom
		t.Errorf("first workers %v", firsts)
	}
}

// TestPowerOfTwo checks that of two different workers the less loaded is taken: with two workers that is the less loaded
// one, with one it is that one, and the most loaded of three never.
func TestPowerOfTwo(t *testing.T) {
	c := DefaultConfig()
	c.Policy = PolicyPowerOfTwo
	two := New(c, newPool(t, 2, prompts(8)...).Environment).(*powerOfTwo)
	for request := range int32(8) {
		arrive(t, two, 0, request)
		if d := two.unfinished[0] - two.unfinished[1]; d < -1 || d > 1 {
			t.Fatalf("workers have %v requests", two.unfinished)
		}
	}
	if got := routeAll(t, New(c, newPool(t, 1, prompts(2)...).Environment), 0, 1); !slices.Equal(got, []int32{0, 0}) {
		t.Errorf("one worker: %v", got)
	}
	counts := make([]int, 3)
	three := New(c, newPool(t, 3, prompts(1)...).Environment).(*powerOfTwo)
	for range 600 {
		copy(three.unfinished, []int32{5, 1, 1})
		counts[arrive(t, three, 0, 0)]++
	}
	if counts[0] > 0 || chiSquared(counts[1:]) > 10.8 {
		t.Errorf("picks %v", counts)
	}
}

// TestSessionAffinity checks that turns stay where their session is, and that new sessions go where there is least to do.
func TestSessionAffinity(t *testing.T) {
	c := DefaultConfig()
	c.Policy = PolicySessionAffinity
	turn := func(session string) workload.Request {
		return workload.Request{Session: session, Hashes: []uint64{1}}
	}
	// Requests 0 and 1 are of session a, 2 and 3 of b, 4 of c.
	r := New(c, newPool(t, 2, turn("a"), turn("a"), turn("b"), turn("b"), turn("c")).Environment)
	got := routeAll(t, r, 0, 1, 2, 3)
	if got[0] != got[1] || got[2] != got[3] || got[0] == got[2] {
		t.Fatalf("workers %v", got)
	}
	r.Ended(1, 0)
	if w := arrive(t, r, 1, 4); w != got[0] {
		t.Errorf("session c goes to worker %d, which has more to do", w)
	}
}

// TestPrefixAffinity checks that equal leading tokens meet, that the rest does not matter, and that workers get about the
// same number of prefixes.
func TestPrefixAffinity(t *testing.T) {
	c := DefaultConfig()
	c.Policy, c.PrefixAffinityTokens = PolicyPrefixAffinity, 2*blockSize-1 // rounded up to 2 blocks
	var requests []workload.Request
	const prefixes = 4000
	for i := range uint64(prefixes) {
		requests = append(requests,
			workload.Request{Hashes: []uint64{1, i, i + prefixes}},
			workload.Request{Hashes: []uint64{1, i, i + 2*prefixes}},
		)
	}
	p := newPool(t, 5, requests...)
	r := New(c, p.Environment)
	more := p.Environment
	more.Workers++
	s := New(c, more)
	counts, moved := make([]int, 5), 0
	for i := range int32(prefixes) {
		a := arrive(t, r, 0, 2*i)
		if b := arrive(t, r, 0, 2*i+1); a != b {
			t.Fatalf("prompts with the same prefix go to workers %d and %d", a, b)
		}
		counts[a]++
		if b := arrive(t, s, 0, 2*i); b != a {
			moved++
			if b != 5 {
				t.Fatalf("one worker more moves a prefix from worker %d to %d", a, b)
			}
		}
	}
	if x := chiSquared(counts); x > 18.5 { // 0.1 % with 4 degrees of freedom
		t.Errorf("prefixes by worker: %v", counts)
	}
	if moved < prefixes/8 || moved > prefixes/5 { // a sixth
		t.Errorf("one worker more takes %d of %d prefixes", moved, prefixes)
	}
	short := newPool(t, 5, workload.Request{Input: 3, Hashes: []uint64{1}}, workload.Request{Input: 3, Hashes: []uint64{1}})
	routeAll(t, New(c, short.Environment), 0, 1) // prompts without a full block are routed somewhere
}
