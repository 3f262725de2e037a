package planner

import (
	"slices"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// listener is a model that remembers what it was told.
type listener struct {
	regression
	heard []int64 // prefillTokens of the passes
}

func (l *listener) observe(passes []pass) {
	for _, p := range passes {
		l.heard = append(l.heard, p.prefillTokens)
	}
}

// TestNewestPasses feeds one tick after another; a pass is its worker and its number, which is told as prefillTokens.
func TestNewestPasses(t *testing.T) {
	type tick struct {
		ready  []int32
		passes [][3]int64 // worker, number, whether it took no time
	}
	for _, c := range []struct {
		name   string
		compat rules.Compat
		ticks  []tick
		seen   [][2]int64 // at the end: worker and number
		heard  []int64
	}{
		{"the newest of each worker, the others first", rules.Dynamo12,
			[]tick{{[]int32{0, 1}, [][3]int64{{0, 1}, {1, 2}, {0, 3}, {1, 4}, {0, 5}}}},
			[][2]int64{{0, 5}, {1, 4}}, []int64{1, 2, 3, 5, 4}},
		{"a worker keeps its place", rules.Dynamo12,
			[]tick{{[]int32{0, 1}, [][3]int64{{1, 1}, {0, 2}}}, {[]int32{0, 1}, [][3]int64{{0, 3}, {1, 4}}}},
			[][2]int64{{1, 4}, {0, 3}}, []int64{1, 2, 4, 3}},
		{"an idle worker is learned again, 1.2", rules.Dynamo12,
			[]tick{{[]int32{0, 1}, [][3]int64{{0, 1}, {1, 2}}}, {[]int32{0, 1}, [][3]int64{{1, 3}}}},
			[][2]int64{{0, 1}, {1, 3}}, []int64{1, 2, 1, 3}},
		{"an idle worker is idle", "",
			[]tick{{[]int32{0, 1}, [][3]int64{{0, 1}, {1, 2}}}, {[]int32{0, 1}, [][3]int64{{1, 3}}}},
			[][2]int64{{0, 0}, {1, 3}}, []int64{1, 2, 3}},
		{"passes without a duration teach nothing unless they are the newest, 1.2", rules.Dynamo12,
			[]tick{{[]int32{0}, [][3]int64{{0, 1, 1}, {0, 2}, {0, 3, 1}}}}, [][2]int64{{0, 3}}, []int64{2, 3}},
		{"the newest of a worker that is gone teaches nothing, the ones before do", rules.Dynamo12,
			[]tick{{[]int32{0}, [][3]int64{{0, 1}, {1, 2}, {1, 3}}}}, [][2]int64{{0, 1}}, []int64{2, 1}},
		// Worker 1 drains while worker 2 is ready: 1.2 and 1.3 take the ready ones for those with the lowest ids (T8).
		{"a younger worker is not seen, 1.2", rules.Dynamo12,
			[]tick{{[]int32{0, 1}, [][3]int64{{0, 1}, {1, 2}}}, {[]int32{0, 2}, [][3]int64{{0, 3}, {1, 4}, {2, 5}}}},
			[][2]int64{{0, 3}, {1, 4}}, []int64{1, 2, 3, 4}},
		{"a younger worker is seen", "",
			[]tick{{[]int32{0, 1}, [][3]int64{{0, 1}, {1, 2}}}, {[]int32{0, 2}, [][3]int64{{0, 3}, {1, 4}, {2, 5}}}},
			[][2]int64{{0, 3}, {2, 5}}, []int64{1, 2, 3, 5}},
		// A worker that is ready and has had no pass is missing there (T8b), and idle by our rules.
		{"a new worker is missing, 1.2", rules.Dynamo12,
			[]tick{{[]int32{0, 1}, [][3]int64{{0, 1}}}}, [][2]int64{{0, 1}}, []int64{1}},
		{"a new worker is idle", "",
			[]tick{{[]int32{0, 1}, [][3]int64{{0, 1}}}}, [][2]int64{{0, 1}, {1, 0}}, []int64{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := newTestCore(t, testSLA(), c.compat, poolSetup{kind: aggregatedPool, limits: testLimits, gpus: 1})
			model := &listener{regression: *regressionOf(core.pools[0])}
			core.pools[0].model = model
			for _, k := range c.ticks {
				in := tickInput{load: true, pools: []poolInput{{ready: k.ready}}}
				for _, p := range k.passes {
					in.pools[0].passes = append(in.pools[0].passes, pass{
						worker: int32(p[0]), prefills: 1, prefillTokens: p[1], wallSeconds: float64(1 - p[2]),
					})
				}
				core.tick(&in)
			}
			var seen [][2]int64
			for _, p := range core.pools[0].seen {
				seen = append(seen, [2]int64{int64(p.worker), p.prefillTokens})
			}
			if !slices.Equal(seen, c.seen) {
				t.Errorf("it sees %v, want %v", seen, c.seen)
			}
			if !slices.Equal(model.heard, c.heard) {
				t.Errorf("it learned %v, want %v", model.heard, c.heard)
			}
		})
	}
}
