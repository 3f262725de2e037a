package router

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func always(*Class) bool { return true }

// TestQueueOrder checks the order of one class by hand.
func TestQueueOrder(t *testing.T) {
	type entry struct {
		kept
		priority int32
		seconds  float64
	}
	entries := []entry{
		{kept{request: 0, raw: 100}, 0, 1},
		{kept{request: 1, raw: 100, cached: 90}, 0, 2},
		{kept{request: 2, raw: 50}, 3, 3},
		{kept{request: 3, raw: 100}, -5, 1}, // a priority below 0 is none
		{kept{request: 4, raw: 900, strict: 1}, 0, 9},
		{kept{request: 5, raw: 100, cached: 100}, 0, 4}, // counts as 1 uncached token
		{kept{request: 6, raw: 900, strict: 1}, 0, 8},
	}
	for policy, want := range map[string][]int32{
		QueueFCFS: {6, 4, 2, 0, 3, 1, 5},
		QueueLCFS: {4, 6, 2, 5, 1, 0, 3},
		QueueWSPT: {4, 6, 5, 1, 2, 0, 3},
	} {
		q := newQueue([]Class{{QueuePolicy: policy, Quantum: 1}})
		for _, e := range entries {
			q.push(0, e.kept, e.priority, e.seconds)
		}
		var got []int32
		for q.waiting > 0 {
			next, _ := q.pop(always)
			got = append(got, next.request)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", policy, got, want)
		}
	}
}

// TestQueueShares checks that classes which always have requests share by quantum, whatever the costs.
func TestQueueShares(t *testing.T) {
	q := newQueue([]Class{{QueuePolicy: QueueFCFS, Quantum: 300}, {QueuePolicy: QueueFCFS, Quantum: 100}, {QueuePolicy: QueueFCFS, Quantum: 7}})
	costs := [][]int64{{10, 990, 50}, {70, 5}, {1000}} // of the requests of each class in turn
	sent := make([]int64, 3)
	next := make([]int, 3)
	push := func(class int) {
		list := costs[class]
		q.push(class, kept{request: int32(class), raw: list[next[class]%len(list)]}, 0, float64(next[class]))
		next[class]++
	}
	for class := range costs {
		push(class)
		push(class)
	}
	for range 20_000 {
		k, ok := q.pop(always)
		if !ok {
			t.Fatal("nothing goes")
		}
		sent[k.request] += k.cost()
		push(int(k.request))
	}
	total := float64(sent[0]+sent[1]+sent[2]) / 407
	for class, quantum := range []float64{300, 100, 7} {
		if share := float64(sent[class]) / total; share < .98*quantum || share > 1.02*quantum {
			t.Errorf("class %d sends %v tokens for every %v", class, share, quantum)
		}
	}
}

// TestQueueKeepsClosedClasses checks that a class which may not send neither does nor earns meanwhile.
func TestQueueKeepsClosedClasses(t *testing.T) {
	q := newQueue([]Class{{Name: "a", QueuePolicy: QueueFCFS, Quantum: 10}, {Name: "b", QueuePolicy: QueueFCFS, Quantum: 10}})
	q.push(0, kept{request: 0, raw: 100}, 0, 0)
	q.push(1, kept{request: 1, raw: 100}, 0, 0)
	if _, ok := q.pop(func(*Class) bool { return false }); ok {
		t.Error("a request goes though no class may send")
	}
	onlyB := func(c *Class) bool { return c.Name == "b" }
	if k, ok := q.pop(onlyB); !ok || k.request != 1 {
		t.Errorf("request %d goes", k.request)
	}
	if credit := q.classes[0].credit; credit != 0 {
		t.Errorf("the closed class has earned %d", credit)
	}
	if _, ok := q.pop(onlyB); ok {
		t.Error("a request of the closed class goes")
	}
}

// TestQueueConserves checks that a random queue gives every request once, counts what it holds, and keeps the order within
// each class.
func TestQueueConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var classes []Class
		for range rapid.IntRange(1, 4).Draw(t, "classes") {
			classes = append(classes, Class{
				QueuePolicy: rapid.SampledFrom(QueuePolicies()).Draw(t, "policy"),
				Quantum:     rapid.SampledFrom([]int64{1, 7, 1000, maxPolicyNumber}).Draw(t, "quantum"),
			})
		}
		q := newQueue(classes)
		inside := map[int32]kept{}
		classOf := map[int32]int{}
		seconds := 0.0
		for request := range int32(rapid.IntRange(0, 60).Draw(t, "steps")) {
			if rapid.Bool().Draw(t, "pops") {
				k, ok := q.pop(always)
				if ok != (len(inside) > 0) {
					t.Fatalf("%d requests wait, and a request goes: %v", len(inside), ok)
				}
				if !ok {
					continue
				}
				for other, o := range inside {
					if classOf[other] == classOf[k.request] && (o.strict > k.strict) {
						t.Fatalf("request %d of strict priority %d goes before %d of %d", k.request, k.strict, other, o.strict)
					}
				}
				delete(inside, k.request)
			} else {
				seconds += rapid.Float64Range(0, 2).Draw(t, "wait")
				k := kept{request: request, raw: rapid.Int64Range(0, 5000).Draw(t, "raw"), strict: rapid.Uint32Range(0, 2).Draw(t, "strict")}
				k.cached = rapid.Int64Range(0, k.raw).Draw(t, "cached")
				classOf[request] = rapid.IntRange(0, len(classes)-1).Draw(t, "class")
				q.push(classOf[request], k, rapid.Int32Range(-2, 3).Draw(t, "priority"), seconds)
				inside[request] = k
			}
			if q.waiting != len(inside) {
				t.Fatalf("%d requests wait, counted %d", len(inside), q.waiting)
			}
			for i := range q.classes {
				c := &q.classes[i]
				if c.credit < 0 || len(c.heap) == 0 && (c.credit != 0 || c.raw != 0 || c.cached != 0) {
					t.Fatalf("class %d with %d requests: %+v", i, len(c.heap), *c)
				}
			}
		}
	})
}

// TestQueueLimits checks that a limit is for all workers together, and that the request which exceeds it still goes in.
func TestQueueLimits(t *testing.T) {
	for _, test := range []struct {
		class Class
		want  string
	}{
		{Class{RequestQueueLimit: 1, RawTokenQueueLimit: Unset, CachedTokenQueueLimit: Unset}, "2 are waiting, and request_queue_limit_per_worker allows 2"},
		{Class{RequestQueueLimit: Unset, RawTokenQueueLimit: 90, CachedTokenQueueLimit: Unset}, "200 are waiting, and raw_isl_token_queue_limit_per_worker allows 180"},
		{Class{RequestQueueLimit: Unset, RawTokenQueueLimit: Unset, CachedTokenQueueLimit: 30}, "80 are waiting, and cached_token_queue_limit_per_worker allows 60"},
	} {
		q := newQueue([]Class{test.class})
		for i := range int32(2) {
			if err := q.classes[0].full(2); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			q.push(0, kept{request: i, raw: 100, cached: 40}, 0, 0)
		}
		err := q.classes[0].full(2)
		if err == nil || !strings.Contains(err.Error(), test.want) || err.Reason() != "router_queue_limit" {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

// TestWithdrawnRequestsAreGone checks that a kept request can be taken out, that the others go in order as if it had never come,
// and that one that is not kept cannot.
func TestWithdrawnRequestsAreGone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all, rest queue
		classes := []Class{{Name: "a", QueuePolicy: QueueFCFS, Quantum: 10}, {Name: "b", QueuePolicy: QueueWSPT, Quantum: 25}}
		all, rest = newQueue(classes), newQueue(classes)
		gone := map[int32]bool{}
		n := rapid.Int32Range(1, 20).Draw(rt, "requests")
		for request := range n {
			class := rapid.IntRange(0, 1).Draw(rt, "class")
			k := kept{request: request, raw: rapid.Int64Range(1, 40).Draw(rt, "tokens")}
			all.push(class, k, 0, float64(request))
			if gone[request] = rapid.Bool().Draw(rt, "withdrawn"); !gone[request] {
				rest.push(class, k, 0, float64(request))
			}
		}
		for _, request := range rapid.Permutation(slices.Sorted(maps.Keys(gone))).Draw(rt, "order") {
			if !gone[request] {
				continue
			}
			if out, ok := all.withdraw(request); !ok || out.request != request {
				rt.Fatalf("withdraw %d: %v, %v", request, out.request, ok)
			}
			if _, again := all.withdraw(request); again {
				rt.Fatalf("request %d was withdrawn twice", request)
			}
		}
		for {
			a, some := all.pop(func(*Class) bool { return true })
			b, want := rest.pop(func(*Class) bool { return true })
			if some != want || a.request != b.request {
				rt.Fatalf("request %d (%v) goes, want %d (%v)", a.request, some, b.request, want)
			}
			if !some {
				break
			}
		}
		if all.waiting != 0 || all.classes[0].raw != 0 || all.classes[1].raw != 0 {
			rt.Fatalf("%d requests, %d and %d tokens are left", all.waiting, all.classes[0].raw, all.classes[1].raw)
		}
	})
}
