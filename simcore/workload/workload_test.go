package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuilderGroupsTurns(t *testing.T) {
	w := buildRequests(t, 10,
		Request{ID: "1", Session: "b", ArrivalMs: 5, Input: 10, Output: 1, Hashes: []uint64{1}},
		Request{ArrivalMs: 3, Input: 20, Output: 2, Hashes: []uint64{2, 3}, PlannedOutput: []uint32{7, 8}},
		Request{ID: "3", Session: "a", ArrivalMs: none, Input: 30, Output: 3},
		Request{Session: "b", ArrivalMs: none, DelayMs: 9, Input: 40, Output: 4, Hashes: []uint64{4, 5, 6, 7}, PlannedOutput: []uint32{1, 2, 3, 4}},
		Request{ID: "5", Session: "a", ArrivalMs: none, DelayMs: 1, Input: 50, Output: 5, Hashes: []uint64{1}},
		Request{Session: "b", ArrivalMs: none, DelayMs: 2, Input: 60, Output: 6},
	)
	want := []Request{
		{ID: "1", Session: "b", ArrivalMs: 5, Input: 10, Output: 1, Hashes: []uint64{1}},
		{Session: "b", ArrivalMs: none, DelayMs: 9, Input: 40, Output: 4, Hashes: []uint64{4, 5, 6, 7}, PlannedOutput: []uint32{1, 2, 3, 4}},
		{Session: "b", ArrivalMs: none, DelayMs: 2, Input: 60, Output: 6},
		{Session: "request_2", ArrivalMs: 3, Input: 20, Output: 2, Hashes: []uint64{2, 3}, PlannedOutput: []uint32{7, 8}},
		{ID: "3", Session: "a", ArrivalMs: none, Input: 30, Output: 3},
		{ID: "5", Session: "a", ArrivalMs: none, DelayMs: 1, Input: 50, Output: 5, Hashes: []uint64{1}},
	}
	if diff := cmp.Diff(want, requestsOf(w), sameRequests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.Sessions() != 3 || w.SingleTurn() {
		t.Errorf("%d sessions, single turn: %v", w.Sessions(), w.SingleTurn())
	}
	if ok, session := w.HasArrivals(); ok || session != 2 {
		t.Errorf("HasArrivals is %v, %d; want session 2 without one", ok, session)
	}
}

func TestBuilder(t *testing.T) {
	if _, err := NewBuilder("nothing", 0).Build(); err == nil || !strings.Contains(err.Error(), "nothing did not contain any requests") {
		t.Errorf("got %v", err)
	}
	b := NewBuilder("n", 4)
	hashes := []uint64{1, 2}
	b.Grow(1)
	b.Add(Request{Session: "x", Input: 8, Output: 1, Hashes: hashes})
	hashes[0] = 9 // hash ids are copied
	b.Add(Request{Input: 8, Output: 1, Hashes: hashes})
	if b.Requests() != 2 || !b.SessionKnown("x") || b.SessionKnown("y") {
		t.Errorf("%d requests, sessions x %v and y %v", b.Requests(), b.SessionKnown("x"), b.SessionKnown("y"))
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if w.Hashes(0)[0] != 1 || w.Hashes(1)[0] != 9 || w.ID(0) != "" || !w.SingleTurn() {
		t.Errorf("hashes %v and %v", w.Hashes(0), w.Hashes(1))
	}
	if got := []string{w.SessionName(0), w.SessionName(1)}; got[0] != "x" || got[1] != "request_2" {
		t.Errorf("sessions are named %q", got)
	}
	if ok, _ := w.HasArrivals(); !ok {
		t.Error("a session has no arrival")
	}
}

// TestDigest pins the digest and checks what it depends on. A change makes results of earlier sweeps unusable.
func TestDigest(t *testing.T) {
	requests := func() []Request {
		return []Request{
			{ID: "a", Session: "s", ArrivalMs: 1, Input: 20, Output: 3, Hashes: []uint64{1, 2}},
			{ID: "b", Session: "s", ArrivalMs: none, DelayMs: 5, Input: 30, Output: 2, Hashes: []uint64{1, 2, 3}, PlannedOutput: []uint32{8, 9}},
			{ID: "c", Session: "t", ArrivalMs: 2, Input: 5, Output: 1, Hashes: []uint64{4}},
		}
	}
	const pinned = "1daae92d3ba843537a444df7ad44f9554a3f28a63b501208ef68420923b694c0"
	digest := func(blockSize int, change func([]Request)) string {
		r := requests()
		change(r)
		return buildRequests(t, blockSize, r...).Digest()
	}
	if got := digest(10, func([]Request) {}); got != pinned {
		t.Errorf("the digest is %s, want %s", got, pinned)
	}
	for name, change := range map[string]func([]Request){
		"ids":           func(r []Request) { r[0].ID, r[2].ID = "", "z" },
		"session names": func(r []Request) { r[0].Session, r[1].Session, r[2].Session = "x", "x", "" },
	} {
		if got := digest(10, change); got != pinned {
			t.Errorf("it depends on %s", name)
		}
	}
	seen := map[string]string{pinned: "nothing", digest(11, func([]Request) {}): "block size"}
	for name, change := range map[string]func([]Request){
		"arrival":        func(r []Request) { r[2].ArrivalMs = math.Nextafter(2, 3) },
		"no arrival":     func(r []Request) { r[2].ArrivalMs = none },
		"delay":          func(r []Request) { r[1].DelayMs = 6 },
		"input":          func(r []Request) { r[0].Input = 19 },
		"output":         func(r []Request) { r[0].Output = 4 },
		"hash":           func(r []Request) { r[2].Hashes[0] = 5 },
		"hash moved":     func(r []Request) { r[0].Hashes, r[1].Hashes = []uint64{1, 2, 1}, []uint64{2, 3} },
		"planned output": func(r []Request) { r[1].PlannedOutput[1] = 7 },
		"no planned":     func(r []Request) { r[1].PlannedOutput = nil },
		"sessions":       func(r []Request) { r[1].Session = "u" },
		"order":          func(r []Request) { r[0], r[2] = r[2], r[0] },
		"lengths":        func(r []Request) { r[0].Input, r[0].Output = r[0].Output, r[0].Input },
	} {
		got := digest(10, change)
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s give the same digest", name, other)
		}
		seen[got] = name
	}
}
